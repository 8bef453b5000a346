"""Parts of a run: sources, targets, splits, what a network has no place for."""

from dataclasses import replace

import numpy as np
import pytest

from g2n2.data.graph_set import Target
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.setup import (
    load_graphs,
    prepare,
    refuse_one_class,
    refuse_unknown_names,
    takes_edges,
)
from small_sets import small_set


def test_targets_are_chosen_by_name_or_symbol_in_any_case_and_order():
    graphs = replace(small_set(columns=2), columns=(Target("r2", symbol="R²"), Target("gap")))
    chosen = graphs.with_targets(("GAP", "r²"))
    assert [column.name for column in chosen.columns] == ["gap", "r2"]
    assert np.array_equal(chosen.targets, graphs.targets[:, ::-1])
    assert graphs.with_targets(None) is graphs
    with pytest.raises(DataError, match="small has no target 'homo'; it has: r2, gap"):
        graphs.with_targets(("homo",))


def test_a_target_that_no_training_graph_has_is_named():
    graphs = small_set(columns=2)
    splits = {"train": np.arange(8), "validation": np.arange(8, 10), "test": np.arange(10, 12)}
    assert not any("t1" in note for note in prepare(RunConfig("x"), graphs, splits).notes)
    targets = graphs.targets.copy()
    targets[:8, 1] = np.nan
    notes = prepare(RunConfig("x"), replace(graphs, targets=targets), splits).notes
    assert any("no training graph has a known value of t1" in note for note in notes)


def test_a_limit_draws_graphs_with_the_seed():
    def drawn(seed, limit):
        config = RunConfig("regular", options={"count": 40, "nodes": 8}, limit=limit, seed=seed)
        graphs = load_graphs(config)
        return [graphs.adjacency(i).tolist() for i in range(len(graphs))]

    assert len(drawn(0, 10)) == 10
    assert drawn(0, 10) == drawn(0, 10) != drawn(1, 10)
    assert len(drawn(0, 0)) == len(drawn(0, 1000)) == 40


def test_stored_splits_are_taken_where_there_are_some():
    graphs = small_set()
    parts = {"train": np.arange(40), "validation": np.arange(40, 50), "test": np.arange(50, 60)}
    made = prepare(RunConfig("x"), replace(graphs, splits=parts))
    assert {k: v.tolist() for k, v in made.splits.items()} == {
        k: v.tolist() for k, v in parts.items()
    }
    other = prepare(RunConfig("x", split="random"), replace(graphs, splits=parts))
    assert other.splits["train"].tolist() != parts["train"].tolist()


def test_validation_graphs_of_one_class_cannot_choose_and_that_is_said():
    column = Target("t0", kind="binary", classes=("0", "1"))
    targets = (np.arange(60) < 45).astype(float)[:, None]
    parts = {"train": np.arange(10, 50), "validation": np.arange(10), "test": np.arange(50, 60)}
    graphs = replace(small_set(), targets=targets, columns=(column,), splits=parts)
    assert any("all of one class" in note for note in prepare(RunConfig("x"), graphs).notes)
    parts |= {"validation": np.array([0, 59]), "test": np.arange(50, 59)}
    assert not prepare(RunConfig("x"), replace(graphs, splits=parts)).notes


def test_a_class_without_training_graphs_is_said():
    column = Target("t0", kind="multiclass", classes=("a", "b", "c"))
    targets = np.append(np.arange(59) % 2, 2).astype(float)[:, None]
    parts = {"train": np.arange(50), "validation": np.arange(50, 55), "test": np.arange(55, 60)}
    graphs = replace(small_set(), targets=targets, columns=(column,), splits=parts)
    assert any("no training graph has t0=c" in x for x in prepare(RunConfig("x"), graphs).notes)
    parts |= {"train": np.append(np.arange(50), 59), "test": np.arange(55, 59)}
    assert not prepare(RunConfig("x"), replace(graphs, splits=parts)).notes


def test_scaling_looks_at_training_graphs_only():
    graphs = small_set()
    first = prepare(RunConfig("x"), graphs)
    targets = graphs.targets.copy()
    targets[first.splits["test"]] += 1000
    assert prepare(RunConfig("x"), replace(graphs, targets=targets)).scaling == first.scaling


@pytest.mark.parametrize("unit", [1e300, 1e-200])
def test_numbers_whose_spread_cannot_be_computed_are_refused(unit):
    graphs = small_set()
    with pytest.raises(DataError, match=r"target 't0' of small goes from .* in another unit"):
        prepare(RunConfig("x"), replace(graphs, targets=graphs.targets * unit))
    one_value = replace(graphs, targets=np.full_like(graphs.targets, unit))
    assert prepare(RunConfig("x"), one_value).scaling.deviation == (1.0,)


def test_what_a_network_has_no_place_for_is_left_out_and_said():
    graphs = small_set()
    rich = replace(
        graphs,
        edge_features=np.ones((graphs.edges.shape[1], 2), dtype=np.float32),
        edge_names=("x", "y"),
        positions=np.zeros((graphs.sizes.sum(), 3), dtype=np.float32),
    )
    made = prepare(RunConfig("x", grammar="GNNML1"), rich)
    assert made.graphs.edge_features.shape[1] == 0
    assert made.notes == (
        "GNNML1 has no place for edge features: they are left out.",
        "GNNML1 has no place for distances: positions are not used.",
    )
    assert prepare(RunConfig("x"), rich).notes == ()
    taken = {name: takes_edges(RunConfig("x", baseline=name)) for name in ("GIN", "ppgn", "GNNML3")}
    assert taken == {"GIN": False, "ppgn": True, "GNNML3": False}


@pytest.mark.parametrize(
    ("dataset", "options", "message"),
    [
        ("nothing/here.csv", {}, "no file or folder 'nothing/here.csv'"),
        ("here.csv", {}, "no file or folder 'here.csv'"),
        ("regula", {}, "did you mean regular"),
        ("regular", {"nodse": 3}, "did you mean nodes?"),
    ],
)
def test_sources_that_are_not_there_are_said(dataset, options, message):
    with pytest.raises(DataError) as caught:
        load_graphs(RunConfig(dataset, options=options))
    assert message in str(caught.value)


def test_settings_of_marks_are_refused_beside_a_baseline_which_has_none():
    for settings in ({"marks": "heavy"}, {"trunk": 1}):
        with pytest.raises(DataError, match="the baseline GIN has none"):
            refuse_unknown_names(RunConfig("x", baseline="GIN", **settings), resume=False)
    refuse_unknown_names(RunConfig("x", baseline="GIN"), resume=False)


def test_a_limit_keeps_the_parts_that_came_with_the_data():
    config = RunConfig("regular", options={"count": 100, "nodes": 14}, limit=50)
    graphs, whole = load_graphs(config), load_graphs(replace(config, limit=0))
    part_of = {
        whole.adjacency(i).tobytes(): part for part, rows in whole.splits.items() for i in rows
    }
    assert set(graphs.splits) == {"train", "validation", "test"}
    for part, rows in graphs.splits.items():
        assert {part_of[graphs.adjacency(i).tobytes()] for i in rows} == {part}
    assert sum(map(len, graphs.splits.values())) == 50


def test_one_target_of_two_classes_suffices() -> None:
    graphs = small_set(kind="binary", columns=2)
    one = np.where(np.arange(2) == 0, 1.0, graphs.targets)
    refuse_one_class(replace(graphs, targets=one))
    with pytest.raises(DataError, match="every known value of t0, t1 is one class"):
        refuse_one_class(replace(graphs, targets=np.ones_like(one)))
