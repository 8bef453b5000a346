"""Metrics against scikit-learn's."""

import json

import numpy as np
import pytest

from g2n2.data.graph_set import Target
from g2n2.training.metrics import for_json, metrics, roc_auc
from g2n2.training.task import Task

sklearn = pytest.importorskip("sklearn.metrics", reason="compares with scikit-learn")


def test_regression_is_scikit_learn_s_and_leaves_missing_values_out():
    random = np.random.default_rng(0)
    truth, values = random.normal(size=(80, 2)), random.normal(size=(80, 2))
    truth[random.random((80, 2)) < 0.3] = np.nan
    found = metrics(Task((Target("a"), Target("b")), "regression"), values, truth)
    for place, name in enumerate("ab"):
        known = ~np.isnan(truth[:, place])
        pair = truth[known, place], values[known, place]
        assert found[name]["mae"] == pytest.approx(sklearn.mean_absolute_error(*pair))
        assert found[name]["rmse"] == pytest.approx(sklearn.mean_squared_error(*pair) ** 0.5)
        assert found[name]["r2"] == pytest.approx(sklearn.r2_score(*pair))
    both = [found[name]["mae"] for name in "ab"]
    assert found["all"]["mae"] == pytest.approx(sum(both) / 2)


@pytest.mark.parametrize("ties", [False, True])
def test_roc_auc_is_scikit_learn_s(ties):
    random = np.random.default_rng(1)
    truth = (random.random(200) < 0.3).astype(float)
    scores = random.random(200) + 0.4 * truth
    scores = np.round(scores, 1) if ties else scores
    assert roc_auc(scores, truth) == pytest.approx(sklearn.roc_auc_score(truth, scores))


def test_classes():
    truth = np.array([[0.0], [1.0], [2.0], [np.nan], [1.0]])
    values = np.eye(3)[[0, 1, 1, 2, 0]]
    task = Task((Target("c", kind="multiclass", classes=("x", "y", "z")),), "multiclass")
    assert metrics(task, values, truth)["c"] == {"accuracy": 0.5}
    two = Task((Target("b", kind="binary", classes=("0", "1")),), "binary")
    found = metrics(
        two, np.array([[0.2], [0.9], [0.6], [0.1]]), np.array([[0.0], [1.0], [0.0], [np.nan]])
    )
    assert found["b"] == {"accuracy": pytest.approx(2 / 3), "roc_auc": 1.0}


def test_what_cannot_be_said_is_nan():
    task = Task((Target("a"),), "regression")
    found = metrics(task, np.zeros((2, 1)), np.full((2, 1), np.nan))
    assert all(np.isnan(value) for value in found["a"].values())
    assert np.isnan(roc_auc(np.array([0.1, 0.2]), np.array([1.0, 1.0])))
    constant = metrics(task, np.ones((3, 1)), np.full((3, 1), 5.0))
    assert constant["a"]["mae"] == 4.0
    assert np.isnan(constant["a"]["r2"])


def test_the_mean_is_over_targets_that_can_be_scored_and_json_has_no_nan():
    columns = tuple(Target(name, kind="binary", classes=("0", "1")) for name in "abc")
    truth = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, np.nan]])
    found = metrics(Task(columns, "binary"), np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.5]]), truth)
    assert found["all"] == {"accuracy": 0.75, "roc_auc": 1.0}  # b is of one class, c unknown
    assert for_json(found)["c"] == {"accuracy": None, "roc_auc": None}
    json.dumps(for_json(found), allow_nan=False)


def test_errors_of_several_targets_are_compared_in_parts_of_their_spread():
    """Two units: 1 of a spread of 2 weighs as much as 0.001 of 0.002."""
    task = Task((Target("a"), Target("b")), "regression")
    truth = np.array([[-2.0, -0.002], [2.0, 0.002]])
    scores = metrics(task, truth + np.array([1.0, 0.0005]), truth)
    assert scores["a"]["relative_mae"] == pytest.approx(0.5)
    assert scores["b"]["relative_mae"] == pytest.approx(0.25)
    assert scores["all"]["relative_mae"] == pytest.approx(0.375)
    assert task.metric == "relative_mae"
    one = Task((Target("a"),), "regression")
    assert one.metric == "mae"
    assert "relative_mae" not in metrics(one, truth[:, :1], truth[:, :1])["a"]
