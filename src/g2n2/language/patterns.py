"""Terms as small labelled multigraphs; equality of terms is isomorphism of patterns.

A pattern has one vertex per summation index and a boundary of one vertex per axis of size n: `A` is
an edge, `1` a bare vertex, `·` glues one boundary vertex, `⊙` glues all, `diag` makes both boundary
positions one vertex, `Tr` glues the two ends; in general an operation makes one vertex of all axes
with one letter of its signature. Two terms over these operations are equal for every n
and every real input **iff** their patterns are isomorphic. `+` and `×` make a linear combination of
patterns; a pointwise function becomes a label named by the normal form of its argument, which is
sound but knows no law of the function itself.

Inside `Σv. e` the mark v is one vertex with the label `∂v`: all vertices with it are one vertex,
and where it carries nothing else it is dropped, for 1ᵀv = 1. Σv takes the label off and keeps the
vertex, which is a bare one where e does not use v (`Σv. e = n × e`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from math import prod
from typing import Literal, NamedTuple

from ..errors import GrammarError, SortError
from ..validation import check_option
from .canonical import canonical_order
from .operations import OPERATIONS, Operation
from .parsing import TermLike, as_term
from .sorts import M, Sort
from .terms import Apply, Hole, Leaf, MarkSum, Number, Term

Assumption = Literal["none", "symmetric", "simple"]
"""What is known of A: nothing (directed, weighted), A = Aᵀ, or also 0/1 with a zero diagonal."""

ASSUMPTIONS: tuple[Assumption, ...] = ("none", "symmetric", "simple")
MAX_MONOMIALS = 5000
MAX_VERTICES = 400


class Edge(NamedTuple):
    """A label on a tuple of vertices: a matrix on two, a vector on one, a scalar on none."""

    label: str
    symmetric: bool
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A labelled multigraph with a boundary; vertices are 0 … vertices − 1."""

    vertices: int
    edges: tuple[Edge, ...]
    boundary: tuple[int, ...]

    @property
    def vanishes(self) -> bool:
        """Whether it is zero on every simple graph: it holds a loop of A."""
        return any(e.label == "A" and e.ends[0] == e.ends[1] for e in self.edges)


Combination = dict[Pattern, Fraction]
"""A linear combination of canonical patterns; the empty one is zero."""

BARE = Pattern(1, (), (0,))
DIAGONAL = Pattern(1, (), (0, 0))
EMPTY = Pattern(0, (), ())


def leaf_pattern(name: str, sort: Sort, assume: Assumption = "symmetric") -> Pattern:
    """The pattern of a named leaf other than J, which is a combination."""
    if name == "1":
        return BARE
    if name == "I":
        return DIAGONAL
    size = sort.boundary
    ends = tuple(range(size))
    return Pattern(size, (Edge(name, name == "A" and assume != "none", ends),), ends)


_MARK = "∂"


def mark_pattern(mark: str) -> Pattern:
    """The pattern of a mark inside its scope."""
    return Pattern(1, (Edge(_MARK + mark, False, (0,)),), (0,))


def _marks_united(pattern: Pattern) -> Pattern:
    """One vertex for each mark; a mark on an inner vertex with nothing else is dropped."""
    vertex_of: dict[str, int] = {}
    merges: list[tuple[int, int]] = []
    edges: list[Edge] = []
    for edge in pattern.edges:
        if edge.label in vertex_of:
            merges.append((vertex_of[edge.label], edge.ends[0]))
            continue
        if edge.label.startswith(_MARK):
            vertex_of[edge.label] = edge.ends[0]
        edges.append(edge)
    if not vertex_of:
        return pattern
    united = _merged(pattern.vertices, tuple(edges), pattern.boundary, merges)
    uses = Counter(v for edge in united.edges for v in edge.ends)
    idle = {
        edge.ends[0]
        for edge in united.edges
        if edge.label.startswith(_MARK) and uses[edge.ends[0]] == 1
    }.difference(united.boundary)
    if not idle:
        return united
    number = {v: i for i, v in enumerate(v for v in range(united.vertices) if v not in idle)}
    return Pattern(
        len(number),
        tuple(
            Edge(e.label, e.symmetric, tuple(number[v] for v in e.ends))
            for e in united.edges
            if idle.isdisjoint(e.ends)
        ),
        tuple(number[v] for v in united.boundary),
    )


def _mark_summed(mark: str, pattern: Pattern) -> Pattern:
    """The label of the mark taken off; its vertex stays, a bare one where it had none."""
    edges = tuple(edge for edge in pattern.edges if edge.label != _MARK + mark)
    unused = len(edges) == len(pattern.edges)
    return Pattern(pattern.vertices + unused, edges, pattern.boundary)


def glue(operation: Operation, patterns: Sequence[Pattern], sorts: Sequence[Sort]) -> Pattern:
    """The pattern of a multilinear operation on patterns of the given sorts.

    Boundary vertices with one letter of the signature become one vertex; a letter that only the
    result has is a bare vertex. Vertices stay numbered by first appearance, reading the term's
    leaves left to right, bare ones of the operation after its operands'; the certificates rely on
    it.
    """
    letters = operation.contraction(tuple(sorts))
    vertices = 0
    edges: list[Edge] = []
    at: dict[str, int] = {}
    merges: list[tuple[int, int]] = []
    for axes, pattern in zip(letters.inputs, patterns, strict=True):
        for letter, v in zip(axes, pattern.boundary, strict=True):
            first = at.setdefault(letter, v + vertices)
            if first != v + vertices:
                merges.append((first, v + vertices))
        edges += _shifted(pattern.edges, vertices)
        vertices += pattern.vertices
    for letter in letters.fresh:
        at[letter] = vertices
        vertices += 1
    boundary = tuple(at[letter] for letter in letters.output)
    if not merges:
        return Pattern(vertices, tuple(edges), boundary)
    return _merged(vertices, tuple(edges), boundary, merges)


def beside(left: Pattern, right: Pattern) -> Pattern:
    """Two patterns as one, with the boundary of both."""
    boundary = left.boundary + tuple(v + left.vertices for v in right.boundary)
    edges = left.edges + tuple(_shifted(right.edges, left.vertices))
    return Pattern(left.vertices + right.vertices, edges, boundary)


def _shifted(edges: Iterable[Edge], shift: int) -> Iterable[Edge]:
    if not shift:
        return edges
    return (Edge(e.label, e.symmetric, tuple(v + shift for v in e.ends)) for e in edges)


def _merged(
    vertices: int, edges: tuple[Edge, ...], boundary: tuple[int, ...], merges: list[tuple[int, int]]
) -> Pattern:
    root = list(range(vertices))
    for a, b in merges:
        low, high = sorted((root[a], root[b]))
        if low != high:
            root = [low if r == high else r for r in root]
    number = {r: i for i, r in enumerate(sorted(set(root)))}
    new_number = [number[r] for r in root]
    return Pattern(
        len(number),
        tuple(Edge(e.label, e.symmetric, tuple(new_number[v] for v in e.ends)) for e in edges),
        tuple(new_number[v] for v in boundary),
    )


def canonical(pattern: Pattern) -> Pattern:
    """The representative of the isomorphism class of a pattern."""
    return _canonical(pattern)[0]


def canonical_with_order(pattern: Pattern) -> tuple[Pattern, tuple[int, ...]]:
    """The representative and where each vertex went."""
    return _canonical(pattern)


@lru_cache(maxsize=200_000)
def _canonical(pattern: Pattern) -> tuple[Pattern, tuple[int, ...]]:
    order = canonical_order(pattern.vertices, pattern.edges, pattern.boundary)
    return _renumbered(pattern, order), order


def _renumbered(pattern: Pattern, order: tuple[int, ...]) -> Pattern:
    edges = []
    for label, symmetric, ends in pattern.edges:
        moved = tuple(order[v] for v in ends)
        edges.append(Edge(label, symmetric, tuple(sorted(moved)) if symmetric else moved))
    boundary = tuple(order[v] for v in pattern.boundary)
    return Pattern(pattern.vertices, tuple(sorted(edges)), boundary)


def normal_form(
    term: Term, assume: Assumption = "symmetric", marks: frozenset[str] = frozenset()
) -> Combination:
    """The linear combination of canonical patterns a term stands for, inside the given marks."""
    return {canonical(p): c for p, c in _collected(_expand(term, assume, marks), assume).items()}


def equal(left: TermLike, right: TermLike, assume: Assumption = "symmetric") -> bool:
    """Whether two terms have the same value for every n and every input that meets `assume`.

    >>> from g2n2 import equal
    >>> equal("1ᵀA1", "1ᵀAᵀ1"), equal("A", "A²"), equal("A⊙A", "A", assume="simple")
    (True, False, True)

    Args:
        left: A term, or its text.
        right: Another.
        assume: What is known of A: `symmetric`, `simple` (0/1 besides, no loops) or `none`.

    Raises:
        ParseError: A text is no term.
        SortError: A term is too large to expand.
        GrammarError: `assume` is none of these.
    """
    check_option("assume", assume, ASSUMPTIONS, GrammarError)
    a, b = as_term(left), as_term(right)
    return a.sort == b.sort and normal_form(a, assume) == normal_form(b, assume)


def pattern_of(term: Term, assume: Assumption = "symmetric") -> Pattern:
    """The one pattern of a multilinear term, vertices as glued (not canonical)."""
    form = _expand(term, assume)
    if len(form) != 1 or next(iter(form.values())) != 1:
        raise SortError(f"{term} is a sum; it has no single pattern")
    return next(iter(form))


def _collected(form: Combination, assume: Assumption) -> Combination:
    """Merge isomorphic patterns, apply the laws of a 0/1 matrix, drop zeros."""
    total: Combination = {}
    for pattern, coefficient in form.items():
        if assume == "simple":
            if pattern.vanishes:
                continue
            pattern = collapsed(pattern)
        key = canonical(pattern)
        total[key] = total.get(key, Fraction(0)) + coefficient
    if len(total) > MAX_MONOMIALS:
        raise SortError(f"the sum expands to more than {MAX_MONOMIALS} products; compare parts")
    return {p: c for p, c in total.items() if c != 0}


def collapsed(pattern: Pattern) -> Pattern:
    """A⊙A = A for a 0/1 matrix: parallel edges of A are one edge."""
    kept: list[Edge] = []
    seen: set[tuple[int, ...]] = set()
    for edge in pattern.edges:
        if edge.label == "A":
            ends = tuple(sorted(edge.ends))
            if ends in seen:
                continue
            seen.add(ends)
        kept.append(edge)
    return Pattern(pattern.vertices, tuple(kept), pattern.boundary)


def _expand(term: Term, assume: Assumption, marks: frozenset[str] = frozenset()) -> Combination:
    """The patterns of a term inside the scopes of `marks`."""
    match term:
        case Number(value=value):
            return {EMPTY: value} if value else {}
        case Leaf(name="J"):
            return {Pattern(2, (), (0, 1)): Fraction(1), DIAGONAL: Fraction(-1)}
        case Leaf(name=name) if name in marks:
            return {mark_pattern(name): Fraction(1)}
        case Leaf(name=name, sort=sort):
            return {leaf_pattern(name, sort, assume): Fraction(1)}
        case Hole():
            raise SortError(f"{term} is a grammar variable; fill it with a word first")
        case Apply(op="add", args=(a, b)):
            total = _expand(a, assume, marks).copy()
            for pattern, coefficient in _expand(b, assume, marks).items():
                total[pattern] = total.get(pattern, Fraction(0)) + coefficient
            return _collected(total, assume)
        case MarkSum(mark=mark, body=body):
            summed: Combination = {}
            for pattern, coefficient in _expand(body, assume, marks | {mark}).items():
                key = _mark_summed(mark, pattern)
                summed[key] = summed.get(key, Fraction(0)) + coefficient
            return summed if len(summed) <= 1 else _collected(summed, assume)
        case Apply(args=(a,), function=function) if function:
            return {_function_pattern(function, a, assume, marks): Fraction(1)}
        case Apply(op=op, args=args) if OPERATIONS[op].multilinear:
            forms = [_expand(arg, assume, marks) for arg in args]
            return _multilinear(OPERATIONS[op], forms, [arg.sort for arg in args], assume)
    symbol = OPERATIONS[term.op].symbol if isinstance(term, Apply) else str(term)
    raise SortError(f"{term} has no pattern: {symbol} is not multilinear")


def _multilinear(
    operation: Operation, forms: list[Combination], sorts: list[Sort], assume: Assumption
) -> Combination:
    """An operation on linear combinations, product by product."""
    if prod(map(len, forms)) > MAX_MONOMIALS:
        raise SortError(f"the sum expands to more than {MAX_MONOMIALS} products; compare parts")
    total: Combination = {}
    single = all(len(form) == 1 for form in forms)
    for monomials in product(*(form.items() for form in forms)):
        parts = [pattern for pattern, _ in monomials]
        if len(parts) > 1 and sum(p.vertices for p in parts) > MAX_VERTICES:
            raise SortError(f"the pattern has more than {MAX_VERTICES} vertices; compare parts")
        glued = _marks_united(glue(operation, parts, sorts))
        # A single pattern keeps its numbering, which certificates rely on.
        key = glued if single or len(parts) == 1 else canonical(glued)
        total[key] = total.get(key, Fraction(0)) + prod(c for _, c in monomials)
    return total if single or len(forms) == 1 else _collected(total, assume)


def _function_pattern(
    function: str, argument: Term, assume: Assumption, marks: frozenset[str]
) -> Pattern:
    """A label named by the argument's normal form; f(Xᵀ) = f(X)ᵀ fixes its direction.

    A mark the argument depends on is one more end of the label, whose name does not hold the
    mark's name: marks are numbered in the order that gives the least name.
    """
    form = _collected(_expand(argument, assume, marks), assume)
    labels = {edge.label for pattern in form for edge in pattern.edges}
    used = sorted(label for label in labels if label.startswith(_MARK))
    size = argument.sort.boundary
    flips = (False, True) if argument.sort == M else (False,)
    names = {
        (flip, order): f"{function}[{_serialised(_renamed(form, order, flip))}]"
        for flip in flips
        for order in permutations(used)
    }
    (flip, order), name = min(names.items(), key=lambda item: (item[1], item[0]))
    symmetric = not used and len(flips) == 2 and len(set(names.values())) == 1
    boundary = tuple(range(size))
    ends = (boundary[::-1] if flip else boundary) + tuple(range(size, size + len(used)))
    mark_edges = (Edge(mark, False, (size + i,)) for i, mark in enumerate(order))
    return Pattern(size + len(used), (Edge(name, symmetric, ends), *mark_edges), boundary)


def _renamed(form: Combination, marks: Sequence[str], flip: bool) -> Combination:
    """The form with marks called by their numbers, and transposed where `flip` says so."""
    number = {mark: f"{_MARK}{i}" for i, mark in enumerate(marks)}
    return {
        canonical(
            Pattern(
                p.vertices,
                tuple(Edge(number.get(e.label, e.label), e.symmetric, e.ends) for e in p.edges),
                p.boundary[::-1] if flip else p.boundary,
            )
        ): coefficient
        for p, coefficient in form.items()
    }


def _serialised(form: Combination) -> str:
    parts = sorted(
        f"{c}:{p.vertices}{[tuple(e) for e in p.edges]}{p.boundary}" for p, c in form.items()
    )
    return ";".join(parts)
