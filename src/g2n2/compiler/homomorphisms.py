"""Homomorphism counts as words, and subgraph counts as combinations of them.

`sub(F, G) = Σ_π μ(π) hom(F/π, G) / aut(F)` over the partitions π of the vertices of F into blocks
without an edge inside. A pattern of treewidth at most 2 is taken apart vertex by vertex, which
writes its homomorphism count as a sentence of r-G_L3: a leaf is a matrix times a vector, a vertex
of degree two a product of matrices, two edges between the same vertices an entrywise product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import factorial, prod

import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher

from ..grammars.membership import factors, joined
from ..language.terms import ONE, A, Term, apply

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
        known = next((graph for graph in alike if nx.is_isomorphic(graph, image)), None)
        if known is None:
            alike.append(known := image)
        total[known] = total.get(known, 0) + sign
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
        for place, block in enumerate(blocks):
            if not any(pattern.has_edge(u, v) for u in block):
                yield from grown(v + 1, (*blocks[:place], (*block, v), *blocks[place + 1 :]))
        yield from grown(v + 1, (*blocks, (v,)))

    return grown(0, ())


def _quotient(pattern: nx.Graph, blocks: Blocks) -> nx.Graph:
    place = {v: number for number, block in enumerate(blocks) for v in block}
    image: nx.Graph = nx.empty_graph(len(blocks))
    image.add_edges_from((place[a], place[b]) for a, b in pattern.edges)
    return image


def _shape(graph: nx.Graph) -> object:
    """A cheap invariant: the degrees of every vertex and its neighbours."""
    degrees = dict(graph.degree)
    return tuple(sorted((degrees[v], *sorted(degrees[u] for u in graph[v])) for v in graph))
