"""Which vertices are marked, and that the sum over them is the sum over all."""

from __future__ import annotations

import warnings

import networkx as nx
import pytest
import torch

from g2n2 import GraphBatch
from g2n2.compiler.marks import check_marks
from g2n2.errors import G2N2Warning, LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn.marks import MarkedCopies, Marks, PaddedGraphs, rows_summed


def copies(marks: Marks, batch: GraphBatch, training: bool = False) -> MarkedCopies:
    given = batch.adjacency, batch.nodes, batch.edges, batch.mask
    return PaddedGraphs(lambda *_: torch.zeros(0), *given, {}).choose(marks, training)


def weights(marks: Marks, *graphs: object, **features: object) -> list[list[float]]:
    batch = GraphBatch.of(list(graphs), **features)  # type: ignore[arg-type]
    chosen = copies(marks, batch)
    rows = torch.zeros(len(batch), batch.mask.shape[1])
    rows[chosen.graph, chosen.vertex] = chosen.weight
    return rows.tolist()


def test_all_marks_every_vertex_of_each_graph_and_no_padding() -> None:
    assert weights("all", nx.path_graph(3), nx.path_graph(2)) == [[1, 1, 1], [1, 1, 0]]


def test_orbits_count_the_vertices_they_stand_for() -> None:
    assert weights("orbits", nx.path_graph(3), nx.cycle_graph(3)) == [[2, 1, 0], [3, 0, 0]]


def test_orbits_respect_features_of_vertices_and_edges() -> None:
    path = nx.path_graph(3)
    assert weights("orbits", path, nodes=[[[1.0], [0.0], [0.0]]]) == [[1, 1, 1]]
    edges = torch.zeros(3, 3, 1)
    edges[0, 1] = edges[1, 0] = 1
    assert weights("orbits", path, edges=[edges]) == [[1, 1, 1]]


def test_heavy_leaves_out_leaves_but_not_whole_components() -> None:
    star = nx.star_graph(3)
    edge_and_vertex = nx.disjoint_union(nx.path_graph(2), nx.empty_graph(1))
    assert weights("heavy", star, edge_and_vertex) == [[1, 0, 0, 0], [1, 1, 1, 0]]


def test_heavy_says_that_it_loses_features_of_pairs_without_an_edge() -> None:
    path, edges, distances = nx.path_graph(3), torch.zeros(3, 3, 1), torch.ones(3, 3, 1)
    edges[0, 1] = edges[1, 0] = edges[0, 0] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert weights("heavy", path, edges=[edges]) == [[0, 1, 0]]
        weights("all", path, edges=[distances])
    with pytest.warns(G2N2Warning, match="distances"):
        weights("heavy", path, edges=[distances])


def test_drawn_marks_count_n_in_all_and_only_in_training() -> None:
    batch = GraphBatch.of([nx.path_graph(7), nx.path_graph(2)])
    drawn = copies(3, batch, training=True)
    assert drawn.graph.bincount().tolist() == [3, 2]
    totals = torch.zeros(2).index_add(0, drawn.graph, drawn.weight)
    torch.testing.assert_close(totals, torch.tensor([7.0, 2.0]))
    assert len(copies(3, batch)) == 9


def test_a_sum_over_chunks_is_the_sum_over_copies() -> None:
    batch = GraphBatch.of([nx.path_graph(4), nx.cycle_graph(3)])
    chosen = copies("orbits", batch)
    values = torch.arange(1.0, 1.0 + len(chosen)).unsqueeze(1)
    parts = chosen.chunks(2)
    total = sum(part.summed(piece, 2) for part, piece in zip(parts, values.split(2), strict=True))
    assert isinstance(total, torch.Tensor)
    torch.testing.assert_close(total, chosen.summed(values, 2))
    assert chosen.summed(values, 2).tolist() == [[2 * 1 + 2 * 2], [3 * 3]]
    assert [len(part) for part in parts] == [2, 1]


@pytest.mark.parametrize("marks", ["colours", "some", 0, True, 2.5, None])
def test_other_choices_are_refused(marks: object) -> None:
    with pytest.raises(LoweringError, match="all, orbits, heavy") as refused:
        check_marks(marks, find_grammar("r-G_L3Σ"))
    assert ("Shrikhande" in str(refused.value)) == (marks == "colours")


def test_sums_of_rows_have_the_gradients_of_sums() -> None:
    rows = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 0, 2, 1, 2])
    expected = torch.zeros(3, 2, 3, dtype=torch.float64).index_add(0, index, rows)
    torch.testing.assert_close(rows_summed(rows, index, 3), expected)
    assert torch.autograd.gradcheck(lambda x: rows_summed(x, index, 3) ** 2, rows)
    assert torch.autograd.gradgradcheck(lambda x: rows_summed(x, index, 3) ** 2, rows)
