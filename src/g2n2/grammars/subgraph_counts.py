"""Ready formulas: counts of small subgraphs and powers of Laplacians, as words over A, 1 and I.

A count is of subgraphs, not necessarily induced, each once, in simple graphs. It is a linear
combination of sentences of r-G_L3 exactly if every homomorphic image of the subgraph has treewidth
at most 2: cycles up to C₇ and paths of up to 7 vertices, but not K₄, C₈ or the path of 8. With one
mark, in r-G_L3Σ, it is one if every image has an apex, a vertex whose removal leaves treewidth 2:
K₄, cycles up to C₉, paths of up to 10 vertices and induced counts up to 4 vertices, but not K₅,
which is an image of C₁₀ and of the path of 11. With two marks an image has two such vertices, and
over L1 what they leave has treewidth 1. A pattern in several parts has products of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import combinations, permutations
from math import factorial, prod

import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher

from ..errors import LoweringError
from ..graphs.names import KNOWN_NAMES, graph_of_name
from ..language.parsing import parse
from ..language.sorts import M, V
from ..language.terms import ONE, A, Apply, Leaf, Term, apply, mark_sum, power
from .coercion import GrammarLike, as_grammar
from .complete_images import has_complete_image
from .membership import factors, joined

Blocks = tuple[tuple[int, ...], ...]

_MARKS = tuple(Leaf(mark, V) for mark in "vu")
"""Marks, the innermost first."""

_FEW_SUMMANDS = 50


def images(*patterns: tuple[int, nx.Graph]) -> list[tuple[nx.Graph, int]]:
    """The homomorphic images of a sum of patterns, one of each kind, with their factors."""
    kinds: dict[object, list[nx.Graph]] = {}
    total: dict[nx.Graph, int] = {}
    for factor, pattern in patterns:
        numbered = nx.convert_node_labels_to_integers(pattern)
        for blocks in _partitions(numbered):
            sign = prod((-1) ** (len(b) - 1) * factorial(len(b) - 1) for b in blocks)
            image = _quotient(numbered, blocks)
            alike = kinds.setdefault(_shape(image), [])
            same = next((graph for graph in alike if nx.is_isomorphic(graph, image)), None)
            if same is None:
                alike.append(same := image)
            total[same] = total.get(same, 0) + factor * sign
    return [(image, count) for image, count in total.items() if count]


def automorphisms(pattern: nx.Graph) -> int:
    """How many isomorphisms a pattern has to itself."""
    return sum(1 for _ in GraphMatcher(pattern, pattern).isomorphisms_iter())


def homomorphisms(
    pattern: nx.Graph,
    given: Mapping[int, Term] | None = None,
    root: int | None = None,
    width: int = 2,
) -> Term | None:
    """The column whose sum counts homomorphisms of a connected pattern; None past the treewidth.

    Taking apart a vertex of degree one or two never gets stuck at treewidth 2; of several, the one
    with the shallowest words around it goes first. `given` are columns that multiply at vertices,
    `root` the vertex the column is about. Treewidth 1 needs no matrix but A.
    """
    ways: dict[int, dict[int, Term]] = {v: dict.fromkeys(pattern[v], A) for v in pattern}
    columns: dict[int, tuple[Term, ...]] = dict.fromkeys(pattern, ())
    columns |= {v: (column,) for v, column in (given or {}).items()}
    while len(ways) > 1:
        least = min(len(near) for v, near in ways.items() if v != root)
        if least > width:
            return None
        v = min(
            (v for v in ways if len(ways[v]) == least and v != root),
            key=lambda v: sum(way.depth for way in ways[v].values()),
        )
        _take_apart(v, ways, columns)
    (last,) = columns.values()
    return _column(last)


def marked_homomorphisms(pattern: nx.Graph, marks: int = 1, width: int = 2) -> Term | None:
    """The sentence Σv. … that counts homomorphisms of a connected pattern; None without an apex.

    An apex is a vertex whose removal leaves the treewidth. It is the mark: a neighbour of it in the
    rest is one where Av is 1. A rest in several parts is read at the mark, where they multiply.
    Several marks are as many such vertices, the innermost first.
    """
    column = homomorphisms(pattern, width=width)
    parts = None if column is None else [ONE.T, column]
    order, used = sorted(pattern, key=pattern.degree, reverse=True), 0
    while parts is None and used < marks:
        used += 1
        found = (_at_marks(pattern, apexes, width) for apexes in permutations(order, used))
        parts = next((parts for parts in found if parts is not None), None)
    if parts is None:
        return None
    unused = (apply("diag", mark) for mark in _MARKS[used:marks])
    sentence = product_of([parts[0], *unused, *parts[1:]])
    return reduce(lambda body, mark: mark_sum(mark.name, body), _MARKS[:marks], sentence)


def _at_marks(pattern: nx.Graph, apexes: Sequence[int], width: int) -> list[Term] | None:
    """The factors of what is summed over marks at given vertices; None if they do not do."""
    first, *others = apexes
    rest = pattern.subgraph(set(pattern) - {*apexes})
    parts = [rest.subgraph(part) for part in nx.connected_components(rest)]
    at = dict(zip(apexes, _MARKS, strict=False))
    near = {x: [A @ at[apex] for apex in apexes if apex in pattern[x]] for x in pattern}
    if len(parts) == 1 and not any(near[apex] for apex in apexes):
        word = homomorphisms(rest, {x: _column((*near[x],)) for x in rest if near[x]}, width=width)
        return None if word is None else [ONE.T, word]
    columns = [A @ at[apex] for apex in others if apex in pattern[first]]
    for part in parts:
        root = min(set(pattern[first]) & set(part), default=None)
        if root is None:
            return None
        near[root] = near[root][1:]  # A in front of the column says it
        given = {x: _column((*near[x],)) for x in part if near[x]}
        inner = homomorphisms(part, given, root, width)
        if inner is None:
            return None
        columns.append(product_of([A, inner]))
    return [ONE.T, apply("diag", at[first]), _column((*columns,))]


def _take_apart(
    v: int, ways: dict[int, dict[int, Term]], columns: dict[int, tuple[Term, ...]]
) -> None:
    """Sum over the images of one vertex.

    `ways[a][b]` is the matrix from a to b, `columns[a]` the vectors that multiply at a.
    """
    out, here = ways.pop(v), columns.pop(v)
    into = {a: ways[a].pop(v) for a in out}
    if len(out) == 1:
        (a,) = out
        columns[a] = (*columns[a], product_of([into[a], _column(here)]))
        return
    for a, b in (tuple(out), tuple(out)[::-1]):
        path = product_of([into[a], *(apply("diag", vector) for vector in here), out[b]])
        ways[a][b] = apply("hadamard", ways[a][b], path) if b in ways[a] else path


def _column(vectors: tuple[Term, ...]) -> Term:
    """The entrywise product of columns, as r-G_L3 writes it: diag(u)diag(v)w."""
    if not vectors:
        return ONE
    return product_of([*(apply("diag", vector) for vector in vectors[:-1]), vectors[-1]])


def product_of(parts: Iterable[Term]) -> Term:
    """A product without brackets inside it, as the paper prints it."""
    return joined(factor for part in parts for factor in factors(part))


def _partitions(pattern: nx.Graph) -> Iterator[Blocks]:
    """Partitions of 0 … n − 1 into blocks without an edge inside."""

    def grown(v: int, blocks: Blocks) -> Iterator[Blocks]:
        if v == len(pattern):
            yield blocks
            return
        for index, block in enumerate(blocks):
            if not any(pattern.has_edge(u, v) for u in block):
                yield from grown(v + 1, (*blocks[:index], (*block, v), *blocks[index + 1 :]))
        yield from grown(v + 1, (*blocks, (v,)))

    return grown(0, ())


def _quotient(pattern: nx.Graph, blocks: Blocks) -> nx.Graph:
    block_of = {v: number for number, block in enumerate(blocks) for v in block}
    image: nx.Graph = nx.empty_graph(len(blocks))
    image.add_edges_from((block_of[a], block_of[b]) for a, b in pattern.edges)
    return image


def _shape(graph: nx.Graph) -> object:
    """A cheap invariant: the degrees of every vertex and its neighbours."""
    degrees = dict(graph.degree)
    return tuple(sorted((degrees[v], *sorted(degrees[u] for u in graph[v])) for v in graph))


MOST_VERTICES = 10
"""A path of ten vertices has as many partitions as the ninth Bell number, 21,147."""

LAPLACIAN = "diag(A1) − A"
NORMALISED_LAPLACIAN = "diag(inv(sqrt(A1)))(diag(A1) − A)diag(inv(sqrt(A1)))"
"""Zero in the rows of isolated nodes, for inv(0) = 0."""


def subgraph_count(
    pattern: nx.Graph, induced: bool = False, marks: int = 1, width: int = 2
) -> Term:
    """The sentence that counts the subgraphs isomorphic to a pattern, each once.

    With `induced` only induced subgraphs are counted. It is a combination of sentences of r-G_L3
    where that has one, else of r-G_L3Σ, with a mark, or with as many as `marks`; of products of
    them where the pattern is in several parts. `width=1` takes L1 for L3. What none of them gives
    is refused, with the image of the pattern that is out of reach.
    """
    _check(pattern)
    too_dense = induced and len(pattern) > marks + width + 1
    if not too_dense:
        _check_size(pattern, marks, width)
    total: list[tuple[nx.Graph, int]] = []
    if not induced:
        total = images((1, pattern))
    elif not too_dense:
        total = images(*_supergraphs(pattern))
    else:  # K_n is among its supergraphs, with factor ±1
        total = [(nx.complete_graph(len(pattern)), 1)]
    missing: list[nx.Graph] = []
    for used in range(marks + 1):
        terms = [(x, _homomorphisms(g, used, width)) for g, x in total]
        missing = [g for (g, _), (_, term) in zip(total, terms, strict=True) if term is None]
        if not missing:
            copies = automorphisms(pattern)
            return sum_of([Fraction(x, copies) * term for x, term in terms if term is not None])
    hardest = max(missing, key=lambda image: (_degeneracy(image), -len(image)))
    raise LoweringError(_beyond(pattern, hardest, marks, width, induced=induced))


def _homomorphisms(image: nx.Graph, marks: int, width: int) -> Term | None:
    """The sentence that counts homomorphisms; of several parts the product, with marks as needed.

    A part without a mark is `1ᵀ column`.
    """
    parts = [image.subgraph(part) for part in nx.connected_components(image)]
    sentences = []
    for part in parts:
        fewest = marks if len(parts) == 1 else 0
        options = (marked_homomorphisms(part, used, width) for used in range(fewest, marks + 1))
        sentences.append(next((term for term in options if term is not None), None))
    found = sorted((term for term in sentences if term is not None), key=str)
    return joined(found) if len(found) == len(parts) else None


def _degeneracy(graph: nx.Graph) -> int:
    """A lower bound of the treewidth."""
    return max(nx.core_number(graph).values(), default=0)


def sum_of(summands: Sequence[Term]) -> Term:
    """The sum, from the left where it is short, else halved: it may have hundreds of summands."""
    if len(summands) <= _FEW_SUMMANDS:
        return reduce(lambda a, b: a + b, summands)
    half = len(summands) // 2
    left, right = sum_of(summands[:half]), sum_of(summands[half:])
    return Apply("add", (left, right), left.sort)


def _supergraphs(pattern: nx.Graph) -> list[tuple[int, nx.Graph]]:
    """Inclusion and exclusion over the edges a pattern lacks."""
    lacking = list(nx.complement(pattern).edges)
    supergraphs = []
    for count in range(len(lacking) + 1):
        for extra in combinations(lacking, count):
            larger = pattern.copy()
            larger.add_edges_from(extra)
            supergraphs.append(((-1) ** count, larger))
    return supergraphs


def _check(pattern: nx.Graph) -> None:
    if pattern.is_directed() or nx.number_of_selfloops(pattern):
        raise LoweringError("a pattern is a simple undirected graph, without loops")
    if not pattern:
        raise LoweringError("a pattern has at least one vertex, got none")


def _check_size(pattern: nx.Graph, marks: int, width: int) -> None:
    """Refuse what has too many images to list, with one that is out of reach if there is one."""
    size, most, parts = len(pattern), MOST_VERTICES, ""
    if not nx.is_connected(pattern):
        most, parts = most - 1, " in several parts"  # which may fall together in more ways
    if size <= most:
        return
    out_of_reach = width + marks + 2
    if has_complete_image(pattern, out_of_reach):
        shown = f"one with K{out_of_reach} as a minor"
        raise LoweringError(_beyond(pattern, nx.complete_graph(out_of_reach), marks, width, shown))
    raise LoweringError(
        f"a pattern{parts} has 1 to {most} vertices, got {size}: larger ones have too many images"
    )


def _beyond(
    pattern: nx.Graph,
    image: nx.Graph,
    marks: int,
    width: int,
    shown: str = "",
    induced: bool = False,
) -> str:
    """Why a pattern with that image has no sentence; `shown` is what the image is called."""
    size, edges = image.number_of_nodes(), image.number_of_edges()
    listed = ", ".join(f"{a}–{b}" for a, b in sorted(image.edges))
    complete = edges == size * (size - 1) // 2
    shown = shown or (f"K{size}" if complete else f"{size} vertices, {edges} edges: {listed}")
    whose = (
        "induced counts subtract those of every denser pattern, among whose images"
        if induced
        else "among the pattern's homomorphic images"
    )
    count = f"{pattern.number_of_nodes()} vertices and {pattern.number_of_edges()} edges"
    with_marks = ("", " with one mark", " with two marks")[marks]
    no_sentence = f"no sentence{with_marks} over L{2 * width - 1}"
    seen = width + marks
    test = f"{seen}-FWL" if seen > 1 else "1-WL"
    if _degeneracy(image) > seen or not marks:
        return (
            f"{no_sentence} counts this pattern of {count}: {whose} is one of treewidth "
            f"{seen + 1} or more ({shown}), and {test}, which bounds them, sees treewidth "
            f"{seen} only"
        )
    apex = "an apex, a vertex" if marks == 1 else f"{marks} apexes, vertices"
    return (
        f"{no_sentence} is known to count this pattern of {count}: {whose} is one without {apex} "
        f"whose removal leaves treewidth {width} ({shown}); whether others do is open"
    )


def laplacian_power(exponent: int, normalised: bool = False) -> Term:
    """`(diag(A1) − A)^k`; the normalised one needs the degrees as `domain=` to be written."""
    if exponent < 1:
        raise LoweringError(f"the power of a Laplacian is at least 1, got {exponent}; L⁰ is I")
    return power(parse(NORMALISED_LAPLACIAN if normalised else LAPLACIAN), exponent)


_CHORDAL = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
_INDUCED: dict[str, nx.Graph] = {
    "P4": nx.path_graph(4),
    "C4": nx.cycle_graph(4),
    "star 3": nx.star_graph(3),
    "tailed triangle": nx.lollipop_graph(3, 1),
    "chordal cycle": _CHORDAL,
}

FORMULAS: dict[str, partial[Term]] = {
    **{f"C{k}": partial(subgraph_count, nx.cycle_graph(k)) for k in range(3, 8)},
    **{f"P{k}": partial(subgraph_count, nx.path_graph(k)) for k in range(2, 8)},
    **{f"star {k}": partial(subgraph_count, nx.star_graph(k)) for k in range(2, 7)},
    "tailed triangle": partial(subgraph_count, nx.lollipop_graph(3, 1)),
    "chordal cycle": partial(subgraph_count, _CHORDAL),
    "Laplacian": partial(laplacian_power, 1),
    "normalised Laplacian": partial(laplacian_power, 1, normalised=True),
}
"""Formulas by name: Ck a cycle and Pk a path of k vertices, `star k` one of k leaves."""

MARKED_FORMULAS: dict[str, partial[Term]] = {
    "K4": partial(subgraph_count, nx.complete_graph(4)),
    **{f"C{k}": partial(subgraph_count, nx.cycle_graph(k)) for k in (8, 9)},
    **{f"P{k}": partial(subgraph_count, nx.path_graph(k)) for k in (8, 9, 10)},
    **{f"induced {x}": partial(subgraph_count, g, induced=True) for x, g in _INDUCED.items()},
}
"""Formulas with a mark, which 3-WL does not have."""

_INDUCED_NAME = re.compile(r"(?:(induced)\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_NICKNAMES = {
    "diamond": "chordal cycle",
    "paw": "tailed triangle",
    "claw": "star 3",
    "triangle": "C3",
}


def formula(name: str, grammar: GrammarLike | None = None) -> Term:
    """A formula by name: the count of a named graph, `induced` or not, or a power of a Laplacian.

    The names are those of FORMULAS and MARKED_FORMULAS, and those of graphs: `K4`, `K2,3`, `bull`.
    A count is written with at most one mark, or as the grammar has it: with its marks, and without
    products of matrices where it has no matrices but A.

    >>> from g2n2 import evaluate, formula
    >>> float(evaluate(formula("C4"), "D~{")[0, 0])  # cycles of length 4 in K5
    15.0

    Raises:
        LoweringError: There is none of that name, or it is out of reach (K5, C10, P11).
    """
    if grammar is None:
        return _formula(name, 1, 2)
    chosen = as_grammar(grammar)
    return _formula(name, chosen.scope, 1 + any(x.plain == M for x in chosen.variables))


@lru_cache(maxsize=64)
def _formula(name: str, marks: int, width: int) -> Term:
    read = _INDUCED_NAME.fullmatch(name.strip())
    assert read is not None, "any text fits"
    induced, spelled = read.groups()
    known = _NICKNAMES.get(spelled.lower(), spelled)
    if make := (FORMULAS | MARKED_FORMULAS).get(f"induced {known}" if induced else known):
        return make(marks=marks, width=width) if make.func is subgraph_count else make()
    if not induced and (m := re.fullmatch(r"(normalised )?Laplacian ?\^ ?(\d{1,2})", known)):
        return laplacian_power(int(m[2]), normalised=bool(m[1]))
    plain = known.replace("_", "")
    star = re.fullmatch(r"star (\d{1,3})", plain)
    graph = graph_of_name(f"K1,{star[1]}" if star else plain)
    if graph is not None:
        return subgraph_count(nx.from_numpy_array(graph), bool(induced), marks, width)
    raise LoweringError(
        f"no formula is called {name!r}; known: {', '.join(FORMULAS | MARKED_FORMULAS)}, "
        "Laplacian^k, normalised Laplacian^k; and counts of graphs that have a name, also of "
        f"induced ones: {KNOWN_NAMES}"
    )
