"""Rows of a predictions file."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from g2n2.data.graph_set import Target
from g2n2.training.evaluate import Predictions
from g2n2.training.predict import prediction_rows, write_rows
from g2n2.training.task import Task
from small_sets import small_set


def predictions(graphs, values=None):
    rows = np.arange(len(graphs.targets))
    return Predictions(rows, graphs.targets if values is None else values, graphs.targets)


def test_records_that_were_not_read_keep_their_place(tmp_path):
    graphs = small_set(graphs=3)
    source = {"rows": (0, 2, 3), "record_ids": ("a", "b", "c", "d"), "unread": {1: "not SMILES"}}
    graphs = replace(graphs, ids=("a", "c", "d"), source=MappingProxyType(source))
    made = predictions(graphs)
    rows = prediction_rows(graphs, Task.of(graphs), made, truth=False, unread=True)
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[1] == {"id": "b", "note": "not predicted: not SMILES"}
    write_rows(tmp_path / "p.csv", rows)
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "id,t0 [bonds],note"
    assert lines[2] == "b,,not predicted: not SMILES"
    assert lines[3] == f"c,{graphs.targets[1, 0]:g},"
    own = prediction_rows(graphs, Task.of(graphs), made, truth=True, unread=False)
    assert len(own) == 3
    assert own[0]["true t0 [bonds]"] == own[0]["t0 [bonds]"]


def test_nodes_and_edges_are_counted_within_their_graph():
    graphs = small_set("node", graphs=3)
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=False, unread=True)
    places = [(row["id"], row["node"]) for row in rows]
    assert places == [(f"g{g}", n) for g in range(3) for n in range(graphs.sizes[g])]
    graphs = small_set("edge", "binary", graphs=3)
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=True, unread=True)
    first = graphs.edge_counts[0]
    assert [(row["source"], row["target"]) for row in rows[:first]] == list(
        zip(*graphs.edges[:, :first].tolist(), strict=True)
    )
    assert rows[first]["id"] == "g1"
    assert all(row["true t0"] == row["t0"] for row in rows)
    assert {row["true t0"] for row in rows} == {"no", "yes"}


def test_unknown_targets_are_empty():
    graphs = small_set(missing=0.5)
    rows = prediction_rows(
        graphs, Task.of(graphs), predictions(graphs, np.zeros((60, 1))), truth=True, unread=False
    )
    empty = [row["true t0 [bonds]"] == "" for row in rows]
    assert empty == np.isnan(graphs.targets[:, 0]).tolist()
    assert any(empty)


def test_ids_of_the_input_are_kept_where_they_repeat_or_are_empty():
    source = {"rows": (0, 1, 2), "record_ids": ("a", "a", ""), "unread": {}}
    graphs = replace(small_set(graphs=3), ids=("0", "1", "2"), source=MappingProxyType(source))
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=False, unread=True)
    assert [row["id"] for row in rows] == ["a", "a", ""]


def test_energies_keep_their_digits(tmp_path):
    write_rows(tmp_path / "p.csv", [{"id": "a", "u0 [hartree]": -286.4950123}])
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
def test_a_target_never_takes_the_place_of_another_column(level, names, header, tmp_path):
    graphs = small_set(level, graphs=3, columns=len(names))
    graphs = replace(graphs, columns=tuple(Target(name) for name in names))
    task, rows = Task.of(graphs), len(graphs.targets)
    values = graphs.targets + 100.0
    made = predictions(graphs, values)
    beside = prediction_rows(graphs, task, made, truth=True, unread=False)
    assert list(beside[0]) == header
    assert [row["id"] for row in beside[:: max(1, rows - 1)]] == ["g0", "g2"]
    told = header[-2 * len(names) :]
    for place, (true, predicted) in enumerate(
        zip(told[: len(names)], told[len(names) :], strict=True)
    ):
        assert [row[true] for row in beside] == graphs.targets[:, place].tolist()
        assert [row[predicted] for row in beside] == values[:, place].tolist()
    alone = prediction_rows(graphs, task, made, truth=False, unread=True)
    assert list(alone[0])[-len(names) :] == told[len(names) :], "the same names without the truth"


def test_a_class_of_the_target_s_own_name_keeps_its_column():
    graphs = small_set(kind="multiclass", graphs=30)
    column = replace(graphs.columns[0], name="p(few)")
    graphs = replace(graphs, columns=(column,))
    made = predictions(graphs, np.tile([0.5, 0.3, 0.2], (30, 1)))
    rows = prediction_rows(graphs, Task.of(graphs), made, truth=False, unread=False)
    assert rows[0] == {
        "id": "g0",
        "p(few)": "few",
        "predicted p(few)": 0.5,
        "p(some)": 0.3,
        "p(many)": 0.2,
    }
