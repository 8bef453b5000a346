"""Outputs within memory, and predictions as rows of a CSV file."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import torch
from torch import nn

from g2n2.data.graph_set import Target
from g2n2.data.store import GraphStore
from g2n2.errors import TrainingError
from g2n2.training.evaluate import Outcome, outputs, write_rows
from g2n2.training.task import Task
from small_sets import small_set


class EdgeCount(nn.Module):
    """Counts edges, with memory for so many graphs at a time."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def forward(self, batch):
        if len(batch.adjacency) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return batch.adjacency.sum((1, 2))[:, None]


def test_a_batch_that_runs_out_of_memory_is_cut():
    graphs = small_set(graphs=20)
    values, rows = outputs(EdgeCount(3), GraphStore(graphs), np.arange(1, 20))
    assert sorted(rows) == list(range(1, 20))
    assert values[:, 0].tolist() == graphs.edge_counts[rows].tolist()
    with pytest.raises(TrainingError, match=r"memory does not suffice for one graph of \d+ nodes"):
        outputs(EdgeCount(0), GraphStore(graphs), np.arange(2))


class PairNumber(nn.Module):
    """10 i + j for the pair of nodes (i, j)."""

    def forward(self, batch):
        nodes = torch.arange(float(batch.adjacency.shape[1]))
        return (10 * nodes[:, None] + nodes).expand(batch.adjacency.shape)[..., None]


def test_an_edge_has_the_output_of_its_pair_and_an_undirected_one_the_mean_of_both():
    graphs = small_set("edge", graphs=6)
    start, end = graphs.edges
    values, rows = outputs(PairNumber(), GraphStore(graphs), np.arange(6))
    assert np.array_equal(values[:, 0], (5.5 * (start + end))[rows])
    one_way = start < end
    owner = np.repeat(np.arange(6), graphs.edge_counts)[one_way]
    graphs = replace(
        graphs,
        edges=graphs.edges[:, one_way],
        edge_counts=np.bincount(owner, minlength=6),
        edge_features=graphs.edge_features[one_way],
        targets=graphs.targets[one_way],
    )
    values, rows = outputs(PairNumber(), GraphStore(graphs), np.arange(6))
    assert np.array_equal(values[:, 0], (10 * start + end)[one_way][rows])


def outcome(graphs, values=None):
    """Predictions that are the targets themselves, if no other values are given."""
    rows = np.arange(len(graphs.targets))
    return Outcome(graphs, Task.of(graphs), rows, graphs.targets if values is None else values)


def test_records_that_were_not_read_keep_their_place(tmp_path):
    graphs = small_set(graphs=3)
    source = {"rows": (0, 2, 3), "record_ids": ("a", "b", "c", "d"), "unread": {1: "not SMILES"}}
    graphs = replace(graphs, ids=("a", "c", "d"), source=MappingProxyType(source))
    rows = outcome(graphs).rows()
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert [list(row) for row in rows] == [["id", "t0 [bonds]", "note"]] * 4, "the same keys"
    assert [row["note"] for row in rows] == ["", "not predicted: not SMILES", "", ""]
    assert np.isnan(rows[1]["t0 [bonds]"])
    write_rows(tmp_path / "p.csv", rows, outcome(graphs).columns())
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "id,t0 [bonds],note"
    assert lines[2] == "b,,not predicted: not SMILES"
    assert lines[3] == f"c,{graphs.targets[1, 0]:g},"
    values = outcome(graphs).values
    np.testing.assert_array_equal(values, [[row["t0 [bonds]"]] for row in rows])
    assert outcome(graphs).notes == [row["note"] for row in rows]
    part = replace(outcome(graphs), index=np.arange(2), predicted=graphs.targets[:2])
    assert len(part.values) == len(part.rows()) == 2, "a part of a set has no unread records"
    read = outcome(graphs).rows(truth=True)
    assert len(read) == 3
    assert read[0]["true t0 [bonds]"] == read[0]["t0 [bonds]"]


def test_ids_follow_a_selection():
    source = {"rows": (0, 2, 3), "record_ids": ("a", "b", "c", "d"), "unread": {}}
    graphs = replace(small_set(graphs=3), source=MappingProxyType(source))
    assert [row["id"] for row in outcome(graphs.select([2, 0])).rows()] == ["a", "d"]


def test_nodes_and_edges_are_counted_within_their_graph():
    graphs = small_set("node", graphs=3)
    rows = outcome(graphs).rows()
    places = [(row["id"], row["node"]) for row in rows]
    assert places == [(f"g{g}", n) for g in range(3) for n in range(graphs.sizes[g])]
    graphs = small_set("edge", "binary", graphs=3)
    rows = outcome(graphs).rows(truth=True)
    first = graphs.edge_counts[0]
    assert [(row["source"], row["target"]) for row in rows[:first]] == list(
        zip(*graphs.edges[:, :first].tolist(), strict=True)
    )
    assert rows[first]["id"] == "g1"
    assert all(row["true t0"] == row["t0"] for row in rows)
    assert {row["true t0"] for row in rows} == {"no", "yes"}


def test_nodes_have_the_names_the_user_gave_them():
    nodes, edges = small_set("node", graphs=2), small_set("edge", graphs=2)
    names = {"names_of_nodes": tuple(tuple(f"n{k + 1}" for k in range(n)) for n in nodes.sizes)}
    rows = outcome(replace(nodes, source=MappingProxyType(names))).rows()
    assert [row["node"] for row in rows] == [f"n{k + 1}" for n in nodes.sizes for k in range(n)]
    rows = outcome(replace(edges, source=MappingProxyType(names)).select([1])).rows()
    assert [row["source"] for row in rows] == [
        f"n{k + 1}" for k in edges.edges[0, edges.edge_counts[0] :]
    ]


def test_unknown_targets_are_empty():
    graphs = small_set(missing=0.5)
    rows = outcome(graphs, np.zeros((60, 1))).rows(truth=True)
    empty = [row["true t0 [bonds]"] == "" for row in rows]
    assert empty == np.isnan(graphs.targets[:, 0]).tolist()
    assert any(empty)


def test_ids_of_the_input_are_kept_where_they_repeat_or_are_empty():
    source = {"rows": (0, 1, 2), "record_ids": ("a", "a", ""), "unread": {}}
    graphs = replace(small_set(graphs=3), ids=("0", "1", "2"), source=MappingProxyType(source))
    rows = outcome(graphs).rows()
    assert [row["id"] for row in rows] == ["a", "a", ""]


def test_energies_keep_their_digits(tmp_path):
    row = {"id": "a", "u0 [hartree]": -286.4950123}
    write_rows(tmp_path / "p.csv", [row], list(row))
    assert (tmp_path / "p.csv").read_text().splitlines()[1] == "a,-286.495012"


CLASHES = [
    ("graph", ("id",), ["id", "true id", "predicted id"]),
    ("graph", ("note", "a"), ["id", "true note", "true a", "predicted note", "a"]),
    (
        "graph",
        ("a", "true a"),
        ["id", "true a", "true true a", "a", "predicted true a"],
    ),
    (
        "graph",
        ("predicted id", "id"),
        ["id", "true predicted id", "true id", "predicted id", "predicted predicted id"],
    ),
    ("graph", ("target",), ["id", "true target", "target"]),
    ("node", ("node",), ["id", "node", "true node", "predicted node"]),
    ("edge", ("target",), ["id", "source", "target", "true target", "predicted target"]),
]


@pytest.mark.parametrize(("level", "names", "header"), CLASHES)
def test_a_target_never_takes_the_place_of_another_column(level, names, header):
    graphs = small_set(level, graphs=3, columns=len(names))
    graphs = replace(graphs, columns=tuple(Target(name) for name in names))
    values = graphs.targets + 100.0
    with_truth = outcome(graphs, values).rows(truth=True)
    assert list(with_truth[0]) == [*header, "note"]
    assert [with_truth[0]["id"], with_truth[-1]["id"]] == ["g0", "g2"]
    true, predicted = header[-2 * len(names) : -len(names)], header[-len(names) :]
    for index in range(len(names)):
        assert [row[true[index]] for row in with_truth] == graphs.targets[:, index].tolist()
        assert [row[predicted[index]] for row in with_truth] == values[:, index].tolist()
    alone = outcome(graphs, values).rows()
    assert list(alone[0])[-len(names) - 1 : -1] == predicted, "the same names without the truth"


def test_a_class_of_the_target_s_own_name_keeps_its_column():
    graphs = small_set(kind="multiclass", graphs=30)
    column = replace(graphs.columns[0], name="p(few)")
    graphs = replace(graphs, columns=(column,))
    rows = outcome(graphs, np.tile([0.5, 0.3, 0.2], (30, 1))).rows()
    assert rows[0] == {
        "id": "g0",
        "p(few)": "few",
        "predicted p(few)": 0.5,
        "p(some)": 0.3,
        "p(many)": 0.2,
        "note": "",
    }
