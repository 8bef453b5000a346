"""Scaling of targets and its inverse."""

from dataclasses import replace

import numpy as np
import pytest

from g2n2.training.scaling import Scaling
from g2n2.training.task import Task
from small_sets import small_set


def test_training_targets_get_mean_0_and_deviation_1_and_come_back():
    graphs = small_set(columns=2, missing=0.2)
    task = Task.of(graphs)
    scaling = Scaling.of(task, graphs, normalise=True, references=False)
    scaled = scaling.scale(task, graphs)
    assert np.nanmean(scaled, axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert np.nanstd(scaled, axis=0) == pytest.approx([1, 1])
    back = scaling.unscale(task, graphs, scaled)
    assert np.allclose(back, graphs.targets, equal_nan=True)
    assert Scaling.from_dict(scaling.as_dict()) == scaling


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
    assert Scaling.from_dict(scaling.as_dict()) == scaling
