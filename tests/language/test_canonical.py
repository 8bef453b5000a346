"""Canonical forms of patterns, against networkx."""

from __future__ import annotations

import time
from itertools import combinations
from random import Random

import networkx as nx

from cases import GRAPHS
from g2n2.language.patterns import Edge, Pattern, canonical, canonical_with_order


def as_pattern(graph: nx.Graph, label: str = "A", boundary: tuple[int, ...] = ()) -> Pattern:
    edges = tuple(Edge(label, not graph.is_directed(), (u, v)) for u, v in graph.edges)
    return Pattern(graph.number_of_nodes(), edges, boundary)


def shuffled(rng: Random, pattern: Pattern) -> Pattern:
    place = list(range(pattern.vertices))
    rng.shuffle(place)
    edges = [
        Edge(e.label, e.symmetric, tuple(place[v] for v in e.ends)[:: rng.choice((1, -1))])
        if e.symmetric
        else Edge(e.label, e.symmetric, tuple(place[v] for v in e.ends))
        for e in pattern.edges
    ]
    rng.shuffle(edges)
    return Pattern(pattern.vertices, tuple(edges), tuple(place[b] for b in pattern.boundary))


REGULAR = [
    nx.cycle_graph(6),
    GRAPHS["2·C3"],
    nx.complete_bipartite_graph(3, 3),
    nx.circular_ladder_graph(3),
    GRAPHS["Petersen"],
    nx.circular_ladder_graph(5),
    nx.cubical_graph(),
    nx.moebius_kantor_graph(),
    nx.heawood_graph(),
    GRAPHS["rook 4×4"],
    GRAPHS["Shrikhande"],
    nx.complete_graph(9),
    nx.windmill_graph(12, 3),
    nx.disjoint_union_all([nx.complete_graph(3)] * 20),
    nx.disjoint_union_all([nx.cycle_graph(5), nx.cycle_graph(4), nx.cycle_graph(5)]),
    nx.cycle_graph(60),
    nx.frucht_graph(),  # regular, yet without symmetry: cells are not orbits
    nx.complement(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4))),
    *(nx.random_regular_graph(3, 14, seed=seed) for seed in range(5)),
]


def test_canonical_forms_of_symmetric_graphs() -> None:
    """Where colour refinement alone sees nothing, and many automorphisms tempt to blow up."""
    rng = Random(1)
    start = time.process_time()
    forms = [canonical(as_pattern(graph)) for graph in REGULAR]
    for graph, form in zip(REGULAR, forms, strict=True):
        for _ in range(3):
            assert canonical(shuffled(rng, as_pattern(graph))) == form
    for (g, one), (h, two) in combinations(zip(REGULAR, forms, strict=True), 2):
        assert one != two, (g, h)
    assert time.process_time() - start < 10


def labelled(pattern: Pattern) -> nx.MultiDiGraph:
    """The pattern for networkx: a symmetric edge in both directions, boundary as a colour."""
    graph = nx.MultiDiGraph()
    for v in range(pattern.vertices):
        graph.add_node(v, mark=tuple(i for i, b in enumerate(pattern.boundary) if b == v))
    for label, symmetric, ends in pattern.edges:
        graph.add_edge(*ends, label=label)
        if symmetric and ends[0] != ends[1]:
            graph.add_edge(*ends[::-1], label=label)
    return graph


def random_pattern(rng: Random) -> Pattern:
    n = rng.randint(1, 6)
    kinds = [("A", True), ("N", False)]
    edges = tuple(
        Edge(*rng.choice(kinds), (rng.randrange(n), rng.randrange(n)))
        for _ in range(rng.randint(0, 7))
    )
    return Pattern(n, edges, tuple(rng.randrange(n) for _ in range(rng.randint(0, 2))))


def test_canonical_forms_agree_with_networkx() -> None:
    rng = Random(2)
    patterns = [random_pattern(rng) for _ in range(400)]
    found = 0
    for left in patterns:
        right = shuffled(rng, left)
        if rng.random() < 0.7 and right.edges:  # one edge moved
            edges = list(right.edges)
            at = rng.randrange(len(edges))
            ends = (rng.randrange(right.vertices), edges[at].ends[1])
            edges[at] = Edge(edges[at].label, edges[at].symmetric, ends)
            right = Pattern(right.vertices, tuple(edges), right.boundary)
        isomorphic = nx.is_isomorphic(
            labelled(left),
            labelled(right),
            node_match=lambda a, b: a["mark"] == b["mark"],
            edge_match=lambda a, b: (
                sorted(e["label"] for e in a.values()) == sorted(e["label"] for e in b.values())
            ),
        )
        assert (canonical(left) == canonical(right)) == isomorphic, (left, right)
        found += isomorphic
    assert 100 < found < 350


def test_the_canonical_order_is_an_isomorphism() -> None:
    rng = Random(3)
    for _ in range(200):
        pattern = random_pattern(rng)
        form, order = canonical_with_order(pattern)
        assert sorted(order) == list(range(pattern.vertices))
        assert form.boundary == tuple(order[v] for v in pattern.boundary)
        moved = sorted(
            (
                e.label,
                sorted(order[v] for v in e.ends) if e.symmetric else [order[v] for v in e.ends],
            )
            for e in pattern.edges
        )
        assert moved == sorted((e.label, list(e.ends)) for e in form.edges)
