"""Marked copies as rows: those of the padded batch, also where only the device counts them."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
import torch

from g2n2 import GrammarGNN, GraphBatch
from g2n2.data.capacities import Room
from g2n2.nn.marked_rows import RowGraphs
from g2n2.nn.marks import MarkedCopies, Marks, PaddedGraphs

GRAPHS = [nx.star_graph(4), nx.path_graph(1), nx.cycle_graph(3), nx.lollipop_graph(3, 2)]
SORTED = [1, 2, 0, 3]
"""The graphs from small to large, as they are packed."""
ROOM = Room(30, 140, 700)


def row_graphs(marks: Marks, batch: GraphBatch, room: Room | None = None) -> RowGraphs:
    model = GrammarGNN("r-G_L3Σ", node_features=1, width=4, layers=1, marks=marks)
    graphs = model.packed.pack(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    return RowGraphs.of(model.packed, replace(graphs, room=room))


def triples(copies: MarkedCopies) -> list[tuple[float, ...]]:
    """Graph, vertex and weight of each copy that counts."""
    columns = [x.double() for x in (copies.graph, copies.vertex, copies.weight)]
    rows = torch.stack(columns, dim=1)[copies.weight != 0]
    return [(int(graph), vertex, weight) for graph, vertex, weight in rows.tolist()]


def batch_of_all() -> GraphBatch:
    draw = torch.Generator().manual_seed(0)
    return GraphBatch.of(GRAPHS, nodes=[torch.rand(len(g), 1, generator=draw) for g in GRAPHS])


@pytest.mark.parametrize("marks", ["all", "orbits", "heavy", 2])
def test_rows_choose_the_copies_of_the_padded_batch(marks: Marks) -> None:
    batch = batch_of_all()
    given = batch.adjacency, batch.nodes, batch.edges, batch.mask
    padded = PaddedGraphs(lambda *_: torch.zeros(0), *given, {}).choose(marks, training=False)
    expected = sorted(triples(padded))
    counted = row_graphs(marks, batch).choose(marks, training=False)
    roomy = row_graphs(marks, batch, ROOM).choose(marks, training=False)
    assert len(roomy) == ROOM.copies
    for copies in (counted, roomy):
        assert sorted((SORTED[graph], *more) for graph, *more in triples(copies)) == expected


@pytest.mark.parametrize("room", [None, ROOM])
def test_drawn_marks_differ_and_count_all_nodes(room: Room | None) -> None:
    graphs, sizes = row_graphs(2, batch_of_all(), room), torch.tensor([1.0, 3.0, 5.0, 5.0])
    drawn = set()
    for _ in range(12):
        copies = graphs.choose(2, training=True)
        totals = torch.zeros(4).index_add(0, copies.graph, copies.weight.float())
        torch.testing.assert_close(totals, sizes)
        assert copies.graph[copies.weight != 0].bincount().tolist() == [1, 2, 2, 2]
        drawn.add(tuple(copies.vertex.tolist()))
    assert len(drawn) > 1


@pytest.mark.parametrize("room", [None, ROOM])
def test_rows_of_copies_are_those_of_their_graphs_and_gradients_add_up(room: Room | None) -> None:
    graphs = row_graphs("all", batch_of_all(), room)
    chosen, packing = graphs.choose("all", training=False), graphs.packing
    values = torch.arange(1.0, 1.0 + packing.pairs).unsqueeze(1).requires_grad_()
    nodes = torch.arange(1.0, 1.0 + packing.nodes).unsqueeze(1).requires_grad_()
    copies = replace(graphs, memories={"M": values, "V": nodes}).copies(chosen)
    pairs = [part.flatten() for part in values.detach().split([n * n for n in (1, 3, 5, 5)])]
    expected = torch.cat([part for part in pairs for _ in range(round(len(part) ** 0.5))])
    found = copies.memories["M"][:, 0]
    torch.testing.assert_close(found[: len(expected)].detach(), expected)
    assert not found[len(expected) :].any(), "the tail is zero"
    assert copies.marks.sum() == 14, "one mark in each copy"
    copies.memories["M"].sum().backward()
    copies.memories["V"].sum().backward()
    sizes = torch.tensor([1.0, 3.0, 5.0, 5.0])
    assert values.grad is not None
    assert nodes.grad is not None
    owners = torch.repeat_interleave(sizes, sizes.long() ** 2)
    torch.testing.assert_close(values.grad[:, 0], owners)
    torch.testing.assert_close(nodes.grad[:, 0], torch.repeat_interleave(sizes, sizes.long()))
