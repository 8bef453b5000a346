"""Terms as small labelled multigraphs; equality of terms is isomorphism of patterns.

A pattern has one vertex per summation index and a boundary of two, one or no vertices: `A` is an
edge, `1` a bare vertex, `·` glues one boundary vertex, `⊙` glues all, `diag` makes both boundary
positions one vertex, `Tr` glues the two ends. Two terms over these operations are equal for every n
and every real input **iff** their patterns are isomorphic. `+` and `×` make a linear combination of
patterns; a pointwise function becomes a label named by the normal form of its argument, which is
sound but knows no law of the function itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from ..errors import SortError
from .canonical import canonical_order
from .coercion import TermLike, as_term
from .sorts import M, R, S, Sort, V
from .terms import Apply, Hole, Leaf, Number, Term

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


def glue(op: str, left: Pattern, right: Pattern, sorts: tuple[Sort, Sort]) -> Pattern:
    """The pattern of a binary multilinear operation.

    Vertices stay numbered by first appearance, reading the term's leaves left to right; the
    certificates rely on it.
    """
    shift = left.vertices
    second = tuple(v + shift for v in right.boundary)
    merges: list[tuple[int, int]] = []
    boundary = left.boundary + second
    if op == "matmul" and sorts[0].axes[1] == "n":
        merges = [(left.boundary[-1], second[0])]
        boundary = left.boundary[:-1] + second[1:]
    elif op == "hadamard":
        merges = list(zip(left.boundary, second, strict=True))
        boundary = left.boundary
    moved = tuple(Edge(e.label, e.symmetric, tuple(v + shift for v in e.ends)) for e in right.edges)
    return _merged(shift + right.vertices, left.edges + moved, boundary, merges)


def wrap(op: str, pattern: Pattern, sort: Sort) -> Pattern:
    """The pattern of a unary multilinear operation on a pattern of the given sort."""
    b = pattern.boundary
    if op == "transpose":
        return Pattern(pattern.vertices, pattern.edges, b[::-1])
    if op == "diag" and sort == V:
        return Pattern(pattern.vertices, pattern.edges, (b[0], b[0]))
    if op == "trace" and sort == M:
        return _merged(pattern.vertices, pattern.edges, (), [(b[0], b[1])])
    return pattern  # diag, Tr and ᵀ of a scalar


def _merged(
    vertices: int, edges: tuple[Edge, ...], boundary: tuple[int, ...], merges: list[tuple[int, int]]
) -> Pattern:
    root = list(range(vertices))
    for a, b in merges:
        low, high = sorted((root[a], root[b]))
        if low != high:
            root = [low if r == high else r for r in root]
    number = {r: i for i, r in enumerate(sorted(set(root)))}
    place = [number[r] for r in root]
    return Pattern(
        len(number),
        tuple(Edge(e.label, e.symmetric, tuple(place[v] for v in e.ends)) for e in edges),
        tuple(place[v] for v in boundary),
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


def normal_form(term: Term, assume: Assumption = "symmetric") -> Combination:
    """The linear combination of canonical patterns a term stands for.

    Raises:
        SortError: The term holds a grammar variable, or is too large to expand.
    """
    return {canonical(p): c for p, c in _collected(_expand(term, assume), assume).items()}


def equal(left: TermLike, right: TermLike, assume: Assumption = "symmetric") -> bool:
    """Whether two terms have the same value for every n and every input that meets `assume`.

    >>> equal("1ᵀA1", "1ᵀAᵀ1"), equal("A", "A²"), equal("A⊙A", "A", assume="simple")
    (True, False, True)
    """
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


def _expand(term: Term, assume: Assumption) -> Combination:
    match term:
        case Number(value=value):
            return {EMPTY: value} if value else {}
        case Leaf(name="J"):
            return {Pattern(2, (), (0, 1)): Fraction(1), DIAGONAL: Fraction(-1)}
        case Leaf(name=name, sort=sort):
            return {leaf_pattern(name, sort, assume): Fraction(1)}
        case Hole():
            raise SortError(f"{term} is a grammar variable; fill it with a word first")
        case Apply(op="add", args=(a, b)):
            total = _expand(a, assume).copy()
            for pattern, coefficient in _expand(b, assume).items():
                total[pattern] = total.get(pattern, Fraction(0)) + coefficient
            return _collected(total, assume)
        case Apply(op=op, args=(a, b)):
            return _bilinear(op, _expand(a, assume), _expand(b, assume), (a.sort, b.sort), assume)
        case Apply(args=(a,), function=function) if function:
            return {_function_pattern(function, a, assume): Fraction(1)}
        case Apply(op=op, args=(a,)):
            wrapped: Combination = {}
            for pattern, coefficient in _expand(a, assume).items():
                key = wrap(op, pattern, a.sort)  # Tr can make two patterns one
                wrapped[key] = wrapped.get(key, Fraction(0)) + coefficient
            return wrapped
    raise AssertionError(f"no pattern for {term!r}")


def _bilinear(
    op: str, left: Combination, right: Combination, sorts: tuple[Sort, Sort], assume: Assumption
) -> Combination:
    if len(left) * len(right) > MAX_MONOMIALS:
        raise SortError(f"the sum expands to more than {MAX_MONOMIALS} products; compare parts")
    if len(left) == len(right) == 1:
        (p, a), (q, b) = *left.items(), *right.items()
        if p.vertices + q.vertices > MAX_VERTICES:
            raise SortError(f"the pattern has more than {MAX_VERTICES} vertices; compare parts")
        return {glue(op, p, q, sorts): a * b}
    total: Combination = {}
    for p, a in left.items():
        for q, b in right.items():
            key = canonical(glue(op, p, q, sorts))
            total[key] = total.get(key, Fraction(0)) + a * b
    return _collected(total, assume)


def _function_pattern(function: str, argument: Term, assume: Assumption) -> Pattern:
    """A label named by the argument's normal form; f(Xᵀ) = f(X)ᵀ fixes its direction."""
    form = _collected(_expand(argument, assume), assume)
    name = f"{function}[{_serialised(form)}]"
    if argument.sort in (S, V, R):
        return leaf_pattern(name, argument.sort)
    flipped = {canonical(wrap("transpose", p, M)): c for p, c in form.items()}
    other = f"{function}[{_serialised(flipped)}]"
    ends = (0, 1) if name <= other else (1, 0)
    return Pattern(2, (Edge(min(name, other), name == other, ends),), (0, 1))


def _serialised(form: Combination) -> str:
    parts = sorted(
        f"{c}:{p.vertices}{[tuple(e) for e in p.edges]}{p.boundary}" for p, c in form.items()
    )
    return ";".join(parts)
