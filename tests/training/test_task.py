"""Tasks: losses against torch's own, scaling, decoding, columns of a predictions file."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from g2n2.data.graph_set import Target
from g2n2.errors import DataError
from g2n2.training.task import Scaling, Task, for_json, log_loss, metrics, roc_auc
from g2n2.validation import read_as
from small_sets import small_set

THREE = ("x", "y", "z")


def task(kind, columns=1):
    classes = {"regression": (), "binary": ("no", "yes"), "multiclass": THREE}[kind]
    return Task(tuple(Target(f"t{i}", "eV", kind, classes) for i in range(columns)), kind)


@pytest.mark.parametrize(
    ("mean", "deviation", "digits"),
    [(1.5, 1.2, 9), (0.0, 1e-30, 9), (-411.0, 40.0, 9), (1e9, 1.0, 16), (-1e6, 1e-20, 17)],
)
def test_predictions_in_a_file_have_digits_of_the_spread(mean, deviation, digits):
    assert Scaling((0.0, mean), (1.0, deviation)).digits == digits


def test_losses_are_torch_s_over_known_targets_only():
    torch.manual_seed(0)
    outputs = torch.randn(9, 2)
    targets = (torch.rand(9, 2) > 0.5).float()
    targets[::3, 0] = torch.nan
    known = targets.isfinite()
    loss, count = task("regression", 2).loss(outputs, targets)
    assert count == known.sum() == 15
    assert torch.allclose(loss, functional.l1_loss(outputs[known], targets[known], reduction="sum"))
    loss, count = task("binary", 2).loss(outputs, targets)
    wanted = functional.binary_cross_entropy(
        outputs[known].sigmoid(), targets[known], reduction="sum"
    )
    assert torch.allclose(loss, wanted)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 3, 3)], ids=["graph", "node", "edge"])
def test_multiclass_loss_at_every_level(shape):
    torch.manual_seed(0)
    outputs = torch.randn(*shape, 3)
    targets = torch.randint(0, 3, (*shape, 1)).float()
    targets.view(-1)[1] = torch.nan
    loss, count = task("multiclass").loss(outputs, targets)
    known = targets[..., 0].isfinite()
    wanted = functional.cross_entropy(
        outputs[known], targets[..., 0][known].long(), reduction="sum"
    )
    assert torch.allclose(loss, wanted)
    assert count == known.sum()


def test_a_missing_target_has_no_gradient():
    outputs = torch.full((3, 1), 0.5, requires_grad=True)
    targets = torch.tensor([[1.0], [torch.nan], [torch.inf]])
    loss, count = task("regression").loss(outputs, targets)
    loss.backward()
    assert (loss.item(), count.item()) == (0.5, 1)
    assert outputs.grad is not None
    assert outputs.grad.tolist() == [[-1.0], [0.0], [0.0]]


def test_decoding_gives_probabilities():
    raw = np.array([[-800.0], [0.0], [800.0]])
    assert task("binary").decode(raw).tolist() == [[0.0], [0.5], [1.0]]
    rows = task("multiclass").decode(np.array([[900.0, 0.0, 0.0], [1.0, 2.0, 3.0]]))
    assert rows.sum(1) == pytest.approx([1.0, 1.0])
    assert rows[1] == pytest.approx(np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())


def test_columns_have_units_and_classes_their_names():
    assert task("regression").table(np.array([[2.5]])) == [("t0 [eV]", [2.5])]
    two = task("binary").table(np.array([[0.25], [0.75]]))
    assert two == [("t0", ["no", "yes"]), ("p(t0=yes)", [0.25, 0.75])]
    three = task("multiclass").table(np.array([[0.1, 0.7, 0.2]]))
    assert three == [("t0", ["y"]), ("p(x)", [0.1]), ("p(y)", [0.7]), ("p(z)", [0.2])]


def test_columns_no_run_can_learn_together_are_refused():
    from dataclasses import replace

    graphs = small_set(columns=2)
    mixed = replace(graphs, columns=(Target("a"), Target("b", kind="binary")))
    with pytest.raises(DataError, match="a, b mix binary and regression"):
        Task.of(mixed)
    several = replace(
        graphs, columns=(Target("a", kind="multiclass"), Target("b", kind="multiclass"))
    )
    with pytest.raises(DataError, match="several multiclass"):
        Task.of(several)
    with pytest.raises(DataError, match="a target called 'all'"):
        Task.of(replace(graphs, columns=(Target("a"), Target("all"))))
    none = replace(graphs, columns=(), targets=graphs.targets[:, :0])
    with pytest.raises(DataError, match="no target to learn"):
        Task.of(none)


def test_what_was_found_in_place_of_a_target_is_said():
    graphs = replace(small_set(), columns=(), notes=("Column y is left out: 'x' is no number.",))
    with pytest.raises(DataError, match=r"--target\. Column y is left out"):
        Task.of(graphs)


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


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_log_loss_is_the_loss_of_training_and_scikit_learn_s(kind):
    random, multiclass = np.random.default_rng(2), kind == "multiclass"
    count = 1 if multiclass else 3
    classes = ("x", "y", "z") if multiclass else ("0", "1")
    columns = tuple(Target(name, kind=kind, classes=classes) for name in "abc"[:count])
    task = Task(columns, kind)
    truth = random.integers(0, len(classes), (40, count)).astype(float)
    truth[random.random((40, count)) < 0.3] = np.nan
    logits = 3.0 * random.normal(size=(40, task.out))
    found = log_loss(task, task.decode(logits), truth)
    total, known = task.loss(torch.tensor(logits), torch.tensor(truth))
    assert known < truth.size
    assert found == pytest.approx(float(total / known), rel=1e-12)
    rows = np.isfinite(truth)
    values = task.decode(logits)[rows[:, 0]] if multiclass else task.decode(logits)[rows]
    assert found == pytest.approx(sklearn.log_loss(truth[rows], values, labels=range(len(classes))))


def test_the_log_loss_without_a_known_target_or_a_number_and_of_sure_mistakes():
    two = Task((Target("b", kind="binary", classes=("0", "1")),), "binary")
    sure, wrong = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])
    assert str(log_loss(two, sure, sure)) == "0.0", "and not −0"
    assert 20.0 < log_loss(two, wrong, sure) < np.inf
    assert np.isnan(log_loss(two, sure, np.full((2, 1), np.nan)))
    assert np.isnan(log_loss(two, np.array([[np.nan], [1.0]]), sure))


def test_the_best_weights_of_a_rare_class_are_not_those_of_a_constant_guess():
    two = Task((Target("b", kind="binary", classes=("0", "1")),), "binary")
    truth = np.array([[0.0]] * 9 + [[1.0]])
    guess, ranked = np.full((10, 1), 0.1), np.linspace(0.5, 0.9, 10)[:, None]
    values = {id(v): metrics(two, v, truth)["all"] for v in (guess, ranked)}
    assert values[id(guess)]["accuracy"] > values[id(ranked)]["accuracy"]
    assert values[id(guess)][two.metric] < values[id(ranked)][two.metric] == 1.0


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


def test_training_targets_get_mean_0_and_deviation_1_and_come_back():
    graphs = small_set(columns=2, missing=0.2)
    task = Task.of(graphs)
    scaling = Scaling.of(task, graphs, normalise=True, references=False)
    scaled = scaling.scale(task, graphs)
    assert np.nanmean(scaled, axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert np.nanstd(scaled, axis=0) == pytest.approx([1, 1])
    back = scaling.unscale(task, graphs, scaled)
    assert np.allclose(back, graphs.targets, equal_nan=True)
    assert read_as(Scaling, json.loads(json.dumps(asdict(scaling))), "scaling", "a file") == scaling


def test_classes_and_plain_recipes_are_left_alone():
    classes = small_set(kind="multiclass")
    assert Scaling.of(Task.of(classes), classes, True, False) == Scaling((0.0,), (1.0,))
    numbers = small_set()
    assert Scaling.of(Task.of(numbers), numbers, False, False) == Scaling((0.0,), (1.0,))


def test_a_constant_column_is_not_blown_up():
    graphs = small_set()
    constant = replace(graphs, targets=np.full_like(graphs.targets, 0.1 + 0.2))
    scaling = Scaling.of(Task.of(constant), constant, normalise=True, references=False)
    assert scaling.deviation == (1.0,)
    assert np.abs(scaling.scale(Task.of(constant), constant)).max() < 1e-12


@pytest.mark.parametrize("unit", [1e-150, 1e-10, 1.0, 1e30])
def test_the_unit_of_a_target_makes_no_difference(unit):
    graphs = small_set()
    task = Task.of(graphs)
    plain = Scaling.of(task, graphs, normalise=True)
    small = replace(graphs, targets=graphs.targets * unit)
    scaling = Scaling.of(task, small, normalise=True)
    assert scaling.scale(task, small) == pytest.approx(plain.scale(task, graphs))


def test_what_references_leave_of_exact_sums_is_not_blown_up():
    graphs = small_set()
    elements = np.ones_like(graphs.node_features[:, :1])
    made = replace(
        graphs,
        node_features=elements,
        node_names=("C",),
        targets=-1234.5678 * graphs.sizes[:, None].astype(float),
    )
    assert Scaling.of(Task.of(made), made, normalise=True, references=True).deviation == (1.0,)


def test_references_are_what_the_elements_give():
    graphs = small_set()
    random = np.random.default_rng(0)
    elements = np.eye(2, dtype=np.float32)[random.integers(0, 2, len(graphs.node_features))]
    counts = np.add.reduceat(elements, graphs.node_offsets[:-1]).astype(float)
    sums = counts @ np.array([[3.0], [-2.0]])
    made = replace(graphs, node_features=elements, node_names=("H", "C"), targets=sums)
    task = Task.of(made)
    scaling = Scaling.of(task, made, normalise=False, references=True)
    assert scaling.references["t0"] == pytest.approx({"H": 3.0, "C": -2.0})
    assert scaling.scale(task, made) == pytest.approx(np.zeros_like(sums), abs=1e-9)
    noisy = replace(made, targets=sums + random.normal(size=sums.shape))
    both = Scaling.of(task, noisy, normalise=True, references=True)
    scaled = both.scale(task, noisy)
    assert (scaled.mean(), scaled.std()) == pytest.approx((0, 1), abs=1e-9)
    assert both.unscale(task, noisy, scaled) == pytest.approx(noisy.targets)


def test_the_extent_comes_off_and_back_with_the_references():
    graphs = small_set()
    random = np.random.default_rng(1)
    atoms = len(graphs.node_features)
    made = replace(
        graphs,
        node_features=np.eye(2, dtype=np.float32)[random.integers(0, 2, atoms)],
        node_names=("H", "C"),
        positions=random.normal(size=(atoms, 3)).astype(np.float32),
    )
    spread = [
        float(((r[:, None] - r[None]) ** 2).sum() / (h @ np.array([1.0, 6.0])).sum())
        for r, h in zip(
            np.split(made.positions.astype(np.float64), made.node_offsets[1:-1]),
            np.split(made.node_features, made.node_offsets[1:-1]),
            strict=True,
        )
    ]
    made = replace(made, targets=3.0 * np.array(spread)[:, None])
    task = Task.of(made)
    scaling = Scaling.of(task, made, normalise=False, references=True, extent=True)
    assert np.abs(scaling.scale(task, made)).max() < 1e-6
    assert scaling.unscale(task, made, np.zeros_like(made.targets)) == pytest.approx(made.targets)
    assert read_as(Scaling, json.loads(json.dumps(asdict(scaling))), "scaling", "a file") == scaling
