"""Ready formulas: counts of small subgraphs and powers of Laplacians, as words over A, 1 and I.

A count is of subgraphs, not necessarily induced, each once, in simple graphs. It is a linear
combination of sentences of r-G_L3 exactly if every homomorphic image of the subgraph has treewidth
at most 2: cycles up to C₇ and paths of up to 7 vertices, but not K₄, C₈ or the path of 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations
from math import factorial, prod

import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher

from ..errors import LoweringError
from ..language.parsing import parse
from ..language.terms import ONE, A, Term, apply, power
from .membership import factors, joined

Blocks = tuple[tuple[int, ...], ...]


def images(pattern: nx.Graph) -> list[tuple[nx.Graph, int]]:
    """The homomorphic images of a pattern, one of each kind, with their Möbius coefficients."""
    kinds: dict[object, list[nx.Graph]] = {}
    total: dict[nx.Graph, int] = {}
    numbered = nx.convert_node_labels_to_integers(pattern)
    for blocks in _partitions(numbered):
        sign = prod((-1) ** (len(b) - 1) * factorial(len(b) - 1) for b in blocks)
        image = _quotient(numbered, blocks)
        alike = kinds.setdefault(_shape(image), [])
        same = next((graph for graph in alike if nx.is_isomorphic(graph, image)), None)
        if same is None:
            alike.append(same := image)
        total[same] = total.get(same, 0) + sign
    return [(image, count) for image, count in total.items() if count]


def automorphisms(pattern: nx.Graph) -> int:
    """How many isomorphisms a pattern has to itself."""
    return sum(1 for _ in GraphMatcher(pattern, pattern).isomorphisms_iter())


def homomorphisms(pattern: nx.Graph) -> Term | None:
    """The column whose sum counts homomorphisms of a connected pattern; None past treewidth 2.

    Taking apart a vertex of degree one or two never gets stuck at treewidth 2; of several, the one
    with the shallowest words around it goes first.
    """
    ways: dict[int, dict[int, Term]] = {v: dict.fromkeys(pattern[v], A) for v in pattern}
    columns: dict[int, tuple[Term, ...]] = dict.fromkeys(pattern, ())
    while len(ways) > 1:
        least = min(len(near) for near in ways.values())
        if least > 2:
            return None
        v = min(
            (v for v in ways if len(ways[v]) == least),
            key=lambda v: sum(way.depth for way in ways[v].values()),
        )
        _take_apart(v, ways, columns)
    (last,) = columns.values()
    return _column(last)


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


MOST_VERTICES = 9
"""The patterns tried have at most as many partitions as the ninth Bell number, 21,147."""

LAPLACIAN = "diag(A1) − A"
NORMALISED_LAPLACIAN = "diag(inv(sqrt(A1)))(diag(A1) − A)diag(inv(sqrt(A1)))"
"""Zero in the rows of isolated nodes, for inv(0) = 0."""


def subgraph_count(pattern: nx.Graph, induced: bool = False) -> Term:
    """The sentence that counts the subgraphs isomorphic to a connected pattern, each once.

    With `induced`, which works up to three vertices, only induced subgraphs are counted. A count
    that no sentence of r-G_L3 gives is refused, with the reason.
    """
    _check(pattern)
    total: dict[nx.Graph, Fraction] = {}
    for sign, larger in _supergraphs(pattern) if induced else [(1, pattern)]:
        for image, count in images(larger):
            total[image] = total.get(image, Fraction(0)) + sign * count
    copies = automorphisms(pattern)
    return _sentence([(image, x / copies) for image, x in total.items()], pattern, induced)


def _sentence(parts: list[tuple[nx.Graph, Fraction]], pattern: nx.Graph, induced: bool) -> Term:
    """`Σ number × (1ᵀ column)`."""
    sentences = []
    for image, number in parts:
        column = homomorphisms(image)
        if column is None:
            raise LoweringError(_beyond(pattern, image, induced))
        sentences.append(number * product_of([ONE.T, column]))
    return reduce(lambda a, b: a + b, sentences)


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
    size = pattern.number_of_nodes()
    if not 1 <= size <= MOST_VERTICES:
        raise LoweringError(f"a pattern has 1 to {MOST_VERTICES} vertices, got {size}")
    if pattern.is_directed() or nx.number_of_selfloops(pattern):
        raise LoweringError("a pattern is a simple undirected graph, without loops")
    if not nx.is_connected(pattern):
        raise LoweringError(
            "the pattern is not connected: its count needs products of sentences, which r-G_L3 "
            "does not have; count its parts apart"
        )


def _beyond(pattern: nx.Graph, image: nx.Graph, induced: bool) -> str:
    size, edges = image.number_of_nodes(), image.number_of_edges()
    shown = f"K{size}" if edges == size * (size - 1) // 2 else f"{size} vertices, {edges} edges"
    whose = (
        "induced counts subtract those of every denser pattern, among whose images"
        if induced
        else "among the pattern's homomorphic images"
    )
    return (
        f"no sentence of r-G_L3 counts this pattern of {pattern.number_of_nodes()} vertices and "
        f"{pattern.number_of_edges()} edges: {whose} is one of treewidth 3 or more ({shown}), and "
        "3-WL sees treewidth 2 only"
    )


def laplacian_power(exponent: int, normalised: bool = False) -> Term:
    """`(diag(A1) − A)^k`; the normalised one needs the degrees as `domain=` to be written."""
    if exponent < 1:
        raise LoweringError(f"the power of a Laplacian is at least 1, got {exponent}; L⁰ is I")
    return power(parse(NORMALISED_LAPLACIAN if normalised else LAPLACIAN), exponent)


FORMULAS: dict[str, Callable[[], Term]] = {
    **{f"C{k}": lambda k=k: subgraph_count(nx.cycle_graph(k)) for k in range(3, 8)},  # type: ignore[misc]
    **{f"P{k}": lambda k=k: subgraph_count(nx.path_graph(k)) for k in range(2, 8)},  # type: ignore[misc]
    **{f"star {k}": lambda k=k: subgraph_count(nx.star_graph(k)) for k in range(2, 7)},  # type: ignore[misc]
    "tailed triangle": lambda: subgraph_count(nx.lollipop_graph(3, 1)),
    "chordal cycle": lambda: subgraph_count(nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])),
    "Laplacian": lambda: laplacian_power(1),
    "normalised Laplacian": lambda: laplacian_power(1, normalised=True),
}
"""Formulas by name: Ck a cycle and Pk a path of k vertices, `star k` one of k leaves."""


@lru_cache(maxsize=64)
def formula(name: str) -> Term:
    """A formula of FORMULAS by its name; `Laplacian^3` is a power.

    >>> from g2n2 import evaluate, formula
    >>> float(evaluate(formula("C4"), "D~{")[0, 0])  # cycles of length 4 in K5
    15.0

    Raises:
        LoweringError: There is none of that name, or it is out of reach (K4, C8, P8).
    """
    wanted = name.strip()
    if wanted in FORMULAS:
        return FORMULAS[wanted]()
    if m := re.fullmatch(r"(normalised )?Laplacian ?\^ ?(\d{1,2})", wanted):
        return laplacian_power(int(m[2]), normalised=bool(m[1]))
    makers = {"C": nx.cycle_graph, "P": nx.path_graph, "K": nx.complete_graph}
    makers["star "] = nx.star_graph
    if (m := re.fullmatch(r"(C|P|K|star )(\d{1,3})", wanted)) and int(m[2]) > (m[1] == "C") * 2:
        return subgraph_count(makers[m[1]](int(m[2])))
    raise LoweringError(
        f"no formula is called {name!r}; known: {', '.join(FORMULAS)}, Laplacian^k, "
        "normalised Laplacian^k"
    )
