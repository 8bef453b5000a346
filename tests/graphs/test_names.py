"""Names of graphs: right, unique, and blind to the order of nodes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.graphs import adjacency, names, parse_graph6, read_graph, to_graph6
from g2n2.graphs.families import bicyclopentyl, decalin, rook_graph, shrikhande_graph
from g2n2.graphs.names import graph_name, graph_of_name, graph_text, pair_text

NAMED = [
    ("K1", nx.empty_graph(1)),
    ("2·K1", nx.empty_graph(2)),
    ("K2", nx.path_graph(2)),
    ("P3", nx.path_graph(3)),
    ("P7", nx.path_graph(7)),
    ("C3", nx.complete_graph(3)),
    ("C6", nx.cycle_graph(6)),
    ("2·C3", nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))),
    ("K5", nx.complete_graph(5)),
    ("K1,4", nx.star_graph(4)),
    ("K2,3", nx.complete_bipartite_graph(2, 3)),
    ("K2,2,2", nx.octahedral_graph()),
    ("C4+K1", nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1))),
    ("C4+2·K2", nx.disjoint_union_all([nx.path_graph(2), nx.cycle_graph(4), nx.path_graph(2)])),
    ("spider(2,2,2)", nx.Graph([(0, 1), (1, 2), (0, 3), (3, 4), (0, 5), (5, 6)])),
    ("complement of C7", nx.complement(nx.cycle_graph(7))),
    ("wheel over C5", nx.wheel_graph(6)),
    ("paw", nx.lollipop_graph(3, 1)),
    ("house", nx.house_graph()),
    ("cube", nx.hypercube_graph(3)),
    ("prism", nx.circular_ladder_graph(3)),
    ("Petersen graph", nx.kneser_graph(5, 2)),
    ("rook 4×4", nx.line_graph(nx.complete_bipartite_graph(4, 4))),
    ("Shrikhande graph", shrikhande_graph()),
    ("decalin", decalin()),
    ("bicyclopentyl", bicyclopentyl()),
]


@pytest.mark.parametrize(("name", "graph"), NAMED, ids=[name for name, _ in NAMED])
def test_names(name: str, graph: nx.Graph) -> None:
    matrix = adjacency(graph)
    assert graph_name(matrix) == name
    order = np.random.default_rng(0).permutation(len(matrix))
    assert graph_name(matrix[np.ix_(order, order)]) == name


def test_no_two_graphs_of_one_size_share_a_name() -> None:
    seen: dict[tuple[int, str], str] = {}
    for graph in load_suite("atlas").graphs:
        name = graph_name(graph)
        if name is not None:
            assert (len(graph), name) not in seen
            seen[len(graph), name] = to_graph6(graph)
    assert len(seen) > 200
    assert graph_name(rook_graph(4)) != graph_name(shrikhande_graph())


def test_what_has_no_name_is_graph6_and_digraphs_are_arcs() -> None:
    odd = next(g for g in load_suite("atlas").graphs if graph_name(g) is None)
    assert graph_text(odd) == to_graph6(odd)
    assert graph_text(np.array([[0.0, 1.0], [0.0, 0.0]])) == "arcs 0→1"
    assert pair_text(adjacency("EhEG"), adjacency("EJaG")) == "C6 and 2·C3"


# -- and back: the graph of a name ----------------------------------------------------------------


@pytest.mark.parametrize(("name", "graph"), NAMED, ids=[name for name, _ in NAMED])
def test_a_name_is_read_as_its_graph(name: str, graph: nx.Graph) -> None:
    wanted = nx.from_numpy_array(adjacency(graph))
    for read in (adjacency(name), adjacency(f"name:{name}"), read_graph(name)):
        assert nx.is_isomorphic(nx.from_numpy_array(read), wanted)
    with pytest.raises(DataError):  # a name never hides a graph6 string
        parse_graph6(name)


def test_every_printed_name_is_read() -> None:
    for graph in load_suite("atlas").graphs:
        name = graph_name(graph)
        if name is not None:
            read = nx.from_numpy_array(adjacency(name))
            assert nx.is_isomorphic(read, nx.from_numpy_array(graph)), name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("2C3", "2·C3"),
        ("2*c3", "2·C3"),
        ("2 × C3", "2·C3"),
        ("c3 + C3", "2·C3"),
        ("K3", "C3"),
        ("Petersen", "Petersen graph"),
        ("petersen GRAPH", "Petersen graph"),
        ("Rook 4×4", "rook 4×4"),
        ("rook 4x4", "rook 4×4"),
        ("Shrikhande", "Shrikhande graph"),
        ("K4-e", "K1,1,2"),
        ("2K1,4", "2·K1,4"),
        ("Complement of C7", "complement of C7"),
        ("CSL(41,3)", "CSL(41, 3)"),
        ("twisted cfi(K2,3)", "twisted CFI(K2,3)"),
    ],
)
def test_spellings_of_names(spelling: str, name: str) -> None:
    assert graph_name(adjacency(spelling)) == name


USUAL = [
    ("diamond", [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
    ("K4 minus an edge", [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
    ("claw", [(0, 1), (0, 2), (0, 3)]),
    ("gem", [(0, 1), (1, 2), (2, 3), (4, 0), (4, 1), (4, 2), (4, 3)]),
    # a diamond with a leaf, at a vertex of degree three and of degree two
    ("dart", [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (0, 4)]),
    ("kite", [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 4)]),
    ("fork", [(0, 1), (0, 2), (0, 3), (3, 4)]),
    ("cross", [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5)]),
    ("cricket", [(0, 1), (1, 2), (2, 0), (0, 3), (0, 4)]),
    ("Bowtie graph", [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 0)]),
    ("banner", [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]),
    ("net", [(0, 1), (1, 2), (2, 0), (0, 3), (1, 4), (2, 5)]),
    ("domino", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]),
    ("pentagon", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
]


@pytest.mark.parametrize(("name", "edges"), USUAL, ids=[name for name, _ in USUAL])
def test_usual_names_are_read(name: str, edges: list[tuple[int, int]]) -> None:
    assert nx.is_isomorphic(nx.from_numpy_array(adjacency(name)), nx.Graph(edges))


def test_all_names_that_are_read_are_listed_and_hide_no_graph6() -> None:
    for name in (*names._ALSO_READ, *names._SINGLE):
        assert name in names.KNOWN_NAMES
        assert len(adjacency(name)) > 0
        for spelled in (name, name.capitalize(), name.upper(), f"{name.capitalize()}graph"):
            with pytest.raises(DataError):
                parse_graph6(spelled)
    with pytest.raises(DataError, match=r"known: .* gem, .* bull, "):
        adjacency("name:gnu")


@pytest.mark.parametrize(
    "text", ["C2", "C0", "K0", "P0", "0C3", "C6+", "+C6", "K", "C", "K1,", "K1,0", "2", "C3C3", "",
             "complement of", "complement of complement of C7", "C6²", "K٣"],
)  # fmt: skip
def test_what_is_no_name(text: str) -> None:
    assert graph_of_name(text) is None
    with pytest.raises(DataError, match="no graph is called"):
        adjacency(f"name:{text}")


def test_names_of_huge_graphs_are_refused_before_they_are_made() -> None:
    for text in ("K99999", "9999999C9999999", "complement of 3000K1", "name:C2001"):
        with pytest.raises(DataError, match="a graph is made of its name up to 2,000"):
            adjacency(text)
