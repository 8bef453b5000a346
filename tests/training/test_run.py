"""A trained run: new graphs matched to those it was trained on."""

from dataclasses import replace

import numpy as np
import pytest

from g2n2.data.graph_set import Target
from g2n2.data.readers import Options
from g2n2.data.readers.labels import targets_of_array
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.setup import Parts
from g2n2.training.task import Scaling, Task
from g2n2.training.trained_on import TrainedOn
from small_sets import small_set


def described(graphs, **changes):
    parts = Parts(graphs, {}, Task.of(graphs), Scaling((0.0,), (1.0,)), ())
    return replace(TrainedOn.of(RunConfig("small"), parts), **changes)


def test_features_are_put_into_the_order_of_training():
    trained = small_set()
    swapped = replace(trained, node_features=trained.node_features[:, ::-1], node_names=("b", "a"))
    matched = described(trained).matched(swapped)
    assert np.array_equal(matched.node_features, trained.node_features)
    assert matched.node_names == ("a", "b")


def test_missing_and_unknown_features_are_named():
    trained = small_set()
    other = replace(trained, node_names=("a", "c"))
    with pytest.raises(DataError) as caught:
        described(trained).matched(other)
    assert "lacks the node feature b and has unknown to the run the node feature c" in str(
        caught.value
    )


def test_another_number_of_features_without_names_is_refused():
    trained = small_set()
    nameless = replace(trained, node_features=trained.node_features[:, :1], node_names=())
    with pytest.raises(DataError, match="has 1 node features, the run was trained on 2: a, b"):
        described(trained).matched(nameless)


def test_a_target_of_the_run_is_no_feature():
    trained = small_set("node")
    features = np.concatenate([trained.node_features, trained.targets], 1).astype(np.float32)
    more = replace(trained, node_features=features, node_names=("a", "b", "t0"))
    matched = described(trained).matched(described(trained).without_labels(more))
    assert np.array_equal(matched.node_features, trained.node_features)


def test_a_target_of_the_run_is_no_feature_where_the_run_has_none():
    trained = small_set("edge")
    bare = replace(
        trained, edge_features=np.zeros((len(trained.targets), 0), np.float32), edge_names=()
    )
    labelled = replace(
        bare, edge_features=trained.targets.astype(np.float32), edge_names=("t0",), level="graph"
    )
    unlabelled = described(bare).without_labels(labelled)
    matched = described(bare).matched(unlabelled)
    assert matched.edge_features.shape == bare.edge_features.shape
    other = replace(labelled, edge_names=("length",))
    with pytest.raises(DataError, match="has unknown to the run the edge feature length; give"):
        described(bare).matched(other)


def test_classes_are_matched_by_name():
    trained = small_set(kind="multiclass")
    column = Target("T0", kind="multiclass", classes=("many", "few"))
    values = np.array([[0.0], [1.0], [np.nan]] * 20)
    new = replace(trained, targets=values, columns=(column,))
    matched = described(trained).matched(new)
    assert matched.targets[:2, 0].tolist() == [2.0, 0.0]
    assert np.isnan(matched.targets[2, 0])
    odd = replace(new, columns=(Target("t0", kind="multiclass", classes=("many", "none")),))
    with pytest.raises(
        DataError, match="class 'none', unknown to the run; it knows few, some, many"
    ):
        described(trained).matched(odd)


def test_classes_are_matched_in_any_case_unless_two_differ_in_it_only():
    trained = small_set(kind="multiclass")
    new = replace(trained, columns=(Target("t0", kind="multiclass", classes=("MANY", "Few")),))
    new = replace(new, targets=np.array([[0.0], [1.0], [1.0]] * 20))
    assert described(trained).matched(new).targets[:2, 0].tolist() == [2.0, 0.0]
    alike = Target("t0", kind="multiclass", classes=("few", "Few", "many"))
    two = described(replace(trained, columns=(alike,)))
    with pytest.raises(DataError, match="class 'MANY', unknown to the run"):
        two.matched(new)


def test_classes_that_are_numbers_are_numbers_of_a_regression():
    trained = small_set()
    target = trained.columns[0]
    new = replace(trained, columns=(replace(target, kind="binary", classes=("-1", "1")),))
    new = replace(new, targets=np.array([[0.0], [1.0], [np.nan]] * 20))
    matched = described(trained).matched(new).targets[:3, 0]
    assert matched[:2].tolist() == [-1.0, 1.0]
    assert np.isnan(matched[2])
    text = replace(new, columns=(replace(target, kind="binary", classes=("no", "yes")),))
    with pytest.raises(DataError, match="has the value 'no', and the run predicts numbers"):
        described(trained).matched(text)


@pytest.mark.parametrize("kind", ["regression", "multiclass"])
def test_classes_of_long_numbers_are_told_apart(kind):
    names = ("1000001", "1000002", "1000003")
    graphs = small_set(kind="multiclass")
    trained = replace(graphs, columns=(replace(graphs.columns[0], classes=names),))
    numbers = np.array([[1000002.0], [1000003.0], [1000001.0]] * 20)
    table = targets_of_array(numbers, Options(task="multiclass"))
    assert table["columns"][0].classes == names
    new = replace(trained, targets=numbers, columns=(Target("T0"),))
    if kind == "multiclass":
        new = replace(new, targets=table["targets"], columns=(Target("T0", "", kind, names),))
    assert described(trained).matched(new).targets[:3, 0].tolist() == [1.0, 2.0, 0.0]


def test_targets_that_are_not_there_are_unknown():
    trained = small_set("edge", "binary")
    bare = replace(trained, targets=np.zeros((len(trained), 0)), columns=(), level="graph")
    matched = described(trained).matched(bare)
    assert matched.targets.shape == trained.targets.shape
    assert np.isnan(matched.targets).all()


def test_positions_are_asked_for_where_distances_were_learned():
    trained = small_set()
    with pytest.raises(DataError, match="no positions"):
        described(trained, positions=True).matched(trained)
    placed = replace(trained, positions=np.zeros((trained.sizes.sum(), 3), dtype=np.float32))
    assert described(trained).matched(placed).positions is None
