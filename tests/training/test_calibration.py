"""Intervals, calibrated probabilities and what a run folder says about them."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from g2n2.data.graph_set import Target
from g2n2.errors import DataError
from g2n2.training import checkpoint
from g2n2.training.calibration import (
    COLDEST,
    KEPT_ERRORS,
    Calibration,
    check_interval,
    conformal_rank,
    fit_temperature,
    percent,
)
from g2n2.training.display import reliability_sentences
from g2n2.training.evaluate import Outcome, csv_lines
from g2n2.training.run import Run
from g2n2.training.run_folder import CALIBRATION, RunFolder
from g2n2.training.session import Watch, train_config
from g2n2.training.setup import Parts
from g2n2.training.task import Scaling, Task
from small_runs import no_pictures, small_config, small_graphs
from small_sets import small_set

TASK = Task.of(small_set(graphs=4))


four_graphs = cache(partial(small_set, graphs=4))


def predicted(graphs, values, targets=None, **more) -> Outcome:
    """Predictions for the graphs in their order, which may have other targets."""
    graphs = graphs if targets is None else replace(graphs, targets=targets)
    return Outcome(graphs, Task.of(graphs), np.arange(len(values)), values, **more)


def fitted(errors, kind="regression", values=None, labels=None) -> Calibration:
    """A calibration whose validation rows have these errors, or these probabilities."""
    graphs = four_graphs(kind=kind)
    task = Task.of(graphs)
    splits = {"train": np.arange(4)}
    parts = Parts(graphs, splits, task, Scaling((0.0,), (1.0,)), ())
    train = predicted(graphs, np.zeros((4, task.out)))
    if values is None:
        values, labels = np.asarray(errors, float)[:, None], np.zeros((len(errors), 1))
    validation = predicted(graphs, values, labels)
    return Calibration.fit(parts, train, validation, distances=False)


LEVELS = [0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99]


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6), max_size=45),
    st.sampled_from(LEVELS),
)
def test_the_half_width_is_the_least_error_that_enough_errors_do_not_exceed(errors, level):
    """By the definition: the new error is one of n + 1 equally likely places."""
    sizes = sorted(abs(error) for error in errors)
    enough = Fraction(str(level)) * (len(sizes) + 1)
    wanted = next((s for s in sizes if sum(e <= s for e in sizes) >= enough), math.inf)
    found = fitted(errors)
    assert found.half_widths(level).tolist() == [wanted]
    few = [sentence for sentence in found.lacking(level) if "it is left empty" in sentence]
    assert bool(few) == math.isinf(wanted)


@pytest.mark.parametrize(("count", "level", "rank"), [(99, 0.55, 55), (99, 0.07, 7), (9, 0.9, 9)])
def test_a_level_is_the_decimal_that_was_written(count, level, rank):
    """In binary 100 · 0.55 is above 55, and rounding up would give one rank too many."""
    assert conformal_rank(count, level) == rank


@pytest.mark.parametrize("count", [KEPT_ERRORS, KEPT_ERRORS + 1, 12_345])
def test_of_many_errors_a_thousand_are_kept_and_no_interval_is_too_narrow(count):
    errors = np.random.default_rng(1).permutation(np.arange(1, count + 1))
    found = fitted(errors)
    assert len(found.errors[0]) <= KEPT_ERRORS
    for level in (0.01, 0.5, 0.9, 0.999):
        rank = conformal_rank(count, level)
        assert rank <= found.half_widths(level)[0] <= rank + math.ceil(count / KEPT_ERRORS)


@pytest.mark.parametrize("bad", [-0.1, 1.0, 90, float("nan")])
def test_a_level_that_cannot_be_had_is_refused(bad):
    with pytest.raises(DataError, match="expected a share below 1"):
        check_interval(bad)


@pytest.mark.parametrize("truth", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_a_known_temperature_is_found(truth, classes):
    random = np.random.default_rng(0)
    logits = random.normal(scale=3.0, size=(20_000, classes))
    noise = random.gumbel(size=logits.shape)  # argmax of logits + Gumbel noise draws by softmax
    labels = (logits / truth + noise).argmax(axis=1)
    assert fit_temperature(logits, labels) == pytest.approx(truth, rel=0.05)


def test_few_rows_that_are_all_right_do_not_make_the_network_certain():
    logits = np.tile([0.0, 2.0], (12, 1))
    temperature = fit_temperature(logits, np.ones(12, dtype=np.int64))
    assert temperature > COLDEST
    certain = 1 / (1 + math.exp(-2.0 / temperature))
    assert certain == pytest.approx(13 / 14, abs=1e-6), "the rule of succession"
    assert fit_temperature(logits[:9], np.ones(9, dtype=np.int64)) == 1.0


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.05, 20.0), st.sampled_from(["binary", "multiclass"]))
def test_the_most_probable_class_stays(seed, temperature, kind):
    random = np.random.default_rng(seed)
    task = Task.of(small_set(graphs=8, kind=kind))
    values = task.decode(random.normal(scale=10.0, size=(30, task.out)))
    values[0] = 1.0 / max(2, task.out)
    if kind == "binary":
        values[1] = np.nextafter(0.5, 0.0)  # any temperature above 1 would round it to a half
    found = replace(
        fitted(None, kind, values, np.zeros((30, 1))), temperatures=(temperature,)
    ).probabilities(task, values)
    if kind == "binary":
        np.testing.assert_array_equal(found >= 0.5, values >= 0.5)
        assert ((found >= 0) & (found <= 1)).all()
    else:
        np.testing.assert_array_equal(found.argmax(1), values.argmax(1))
        np.testing.assert_allclose(found.sum(1), 1.0)


def test_probabilities_that_are_too_bold_are_reported_as_such_and_mended():
    random = np.random.default_rng(0)
    honest = random.uniform(0.3, 0.7, size=(8000, 1))
    labels = (random.random(honest.shape) < honest).astype(float)
    bold = honest**6 / (honest**6 + (1 - honest) ** 6)
    graphs = four_graphs(kind="binary")
    found = fitted(None, "binary", bold[:4000], labels[:4000])
    said = found.reliability(predicted(graphs, bold[4000:], labels[4000:]))["t0"]
    assert said["temperature"] == pytest.approx(6, rel=0.15)
    assert said["nll"] < said["nll_before"]
    assert said["ece"] < 0.03 < said["ece_before"]
    mended = found.probabilities(Task.of(graphs), bold)
    np.testing.assert_allclose(mended, honest, atol=0.03)


def test_a_prediction_is_noted_where_it_exceeds_all_of_the_training_graphs():
    graphs = small_set(graphs=4)
    parts = Parts(graphs, {"train": np.arange(4)}, TASK, Scaling((0.0,), (1.0,)), ())
    most = graphs.targets.max()
    train = predicted(graphs, graphs.targets + most)
    calibration = Calibration.fit(parts, train, train, distances=False)
    assert calibration.notes(train) == [""] * 4, "its own predictions count"
    beyond = predicted(graphs, graphs.targets + 3 * most)
    note = calibration.notes(beyond)[int(graphs.targets.argmax())]
    low = graphs.targets.min()
    outside = f"t0 {4 * most:g} bonds predicted, in training {low:g} to {2 * most:g}"
    assert note == f"{outside}; so far outside, there is no interval"
    for excess, noted in ((0.005, False), (0.02, True)):  # a hundredth of the range is no news
        values = np.full((4, 1), 2 * most + excess * (2 * most - low))
        notes = calibration.notes(predicted(graphs, values))
        assert [bool(note) for note in notes] == [noted] * 4
    unbounded = predicted(graphs, np.full((4, 1), np.nan))
    assert all("predicted" in note for note in calibration.notes(unbounded))


@pytest.mark.parametrize(
    ("share", "has_interval"), [(-0.11, False), (-0.09, True), (1.09, True), (1.11, False)]
)
def test_no_interval_is_claimed_for_values_far_outside_those_of_training(share, has_interval):
    graphs = small_set(graphs=20, columns=2)
    parts = Parts(graphs, {"train": np.arange(20)}, Task.of(graphs), Scaling((0.0,), (1.0,)), ())
    exact = predicted(graphs, graphs.targets)
    calibration = Calibration.fit(parts, exact, exact, distances=False)
    low, high = graphs.targets[:, 0].min(), graphs.targets[:, 0].max()
    values = graphs.targets.copy()
    values[3, 0] = low + share * (high - low)
    outcome = replace(predicted(graphs, values), calibration=calibration)
    lower, upper = outcome.intervals
    assert np.isfinite(upper - lower).sum() == 40 - (not has_interval)
    assert np.isfinite(lower[3]).tolist() == [has_interval, True]
    assert ("there is no interval of t0" in outcome.notes[3]) == (not has_interval)
    cells = outcome.rows()[3]
    assert math.isnan(cells["t0 low [bonds]"]) == (not has_interval)
    unread = {"unread": {20: "no molecule"}, "rows": tuple(range(20))}
    rows = replace(outcome, graphs=replace(outcome.graphs, source=unread)).rows()
    assert len(rows) == 21
    assert {type(row[name]) for row in rows for name in row if " [" in name} == {float}
    header, *lines = csv_lines(outcome.rows(), outcome.columns(), header=True).decode().splitlines()
    place = header.split(",").index("t0 low [bonds]")
    assert (lines[3].split(",")[place] == "") == (not has_interval)
    assert not any("interval" in note for note in replace(outcome, interval=0).notes)


def test_no_interval_is_claimed_for_graphs_far_larger_or_smaller_than_those_of_training():
    graphs = small_set(graphs=40)
    sizes = graphs.sizes.tolist()
    middle = [i for i, size in enumerate(sizes) if size == 6]
    parts = Parts(graphs, {"train": np.array(middle)}, TASK, Scaling((0.0,), (1.0,)), ())
    exact = predicted(graphs, graphs.targets)
    calibration = Calibration.fit(parts, exact, exact, distances=False)
    calibration = replace(calibration, predictions=((0.0, 100.0),))
    outcome = replace(exact, calibration=calibration)
    assert np.isfinite(outcome.intervals[0][:, 0]).tolist() == [size == 6 for size in sizes]
    for size, note in zip(sizes, outcome.notes, strict=True):
        assert note.endswith("so far outside, there is no interval") == (size != 6)
    known, far = outcome.reliability["t0"], len(sizes) - len(middle)
    assert (known["rows"], known["far"], known["coverage"]) == (len(middle), far, 1.0)
    wrong = np.where(graphs.sizes[:, None] == 6, graphs.targets, graphs.targets + 1)
    assert replace(outcome, predicted=wrong).reliability["t0"]["coverage"] == 1.0
    (said,) = reliability_sentences(TASK, outcome.reliability, "graph")
    assert f"hold 100.0 % of {len(middle)} of 40 graphs; {far} are too far outside" in said
    larger = replace(outcome, calibration=replace(calibration, predictions=((500.0, 600.0),)))
    assert larger.reliability == {}, "none is left"


def test_names_of_bounds_never_take_the_place_of_another_column():
    graphs = small_set(graphs=3, columns=2)
    graphs = replace(graphs, columns=(Target("a", "eV"), Target("a low", "eV")))
    one = fitted([1.0] * 20)
    calibration = replace(
        one, columns=("a", "a low"), validation=(20, 5), errors=(*one.errors, (1.0,) * 5)
    )
    for truth in (False, True):
        outcome = predicted(graphs, graphs.targets, calibration=calibration)
        rows, header = outcome.rows(truth), outcome.columns(truth)
        named = ["a [eV]", "interval a low [eV]", "a high [eV]", "a low [eV]"]
        told = ["true a [eV]", "true a low [eV]"] * truth
        bounds = ["a low low [eV]", "a low high [eV]"]
        assert header == ["id", *told, *named, *bounds, "note"]
        assert list(rows[0]) == header
        assert rows[0]["interval a low [eV]"] == graphs.targets[0, 0] - 1.0
        assert math.isnan(rows[0]["a low low [eV]"]), "5 rows are too few for 90 %"
    plain = replace(outcome, interval=0)
    assert plain.columns() == ["id", "a [eV]", "a low [eV]", "note"]


RUN_GRAPHS = small_graphs()
CONFIG = small_config(grammar="GNNML1")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    with no_pictures():
        train_config(CONFIG, folder, graphs=RUN_GRAPHS)
    return folder


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_a_run_says_how_far_to_trust_it(trained):
    run = Run(trained, "cpu")
    validation = run.evaluate("validation", RUN_GRAPHS)
    for level in (0.5, 0.9):
        outcome = run.evaluate("test", RUN_GRAPHS, interval=level)
        low, high = outcome.intervals
        rank = conformal_rank(10, level)
        errors = np.sort(np.abs(validation.predicted - validation.targets), axis=0)
        np.testing.assert_allclose(high - outcome.values, np.tile(errors[rank - 1], (10, 1)))
        np.testing.assert_allclose(high - low, 2 * (high - outcome.values))
        inside = (low <= outcome.targets) & (outcome.targets <= high)
        said = outcome.reliability
        assert [said[c.name]["coverage"] for c in run.task.columns] == inside.mean(0).tolist()
    assert json.loads((trained / "result.json").read_text())["test_reliability"] == said
    assert run.predict(RUN_GRAPHS, interval=0).intervals is None
    with pytest.raises(DataError, match="expected a share below 1"):
        run.predict(RUN_GRAPHS, interval=95)


def test_training_graphs_have_no_note(trained):
    run = Run(trained, "cpu")
    assert not any(run.evaluate("train", RUN_GRAPHS).notes)


@pytest.mark.parametrize(("level", "kind"), [("node", "multiclass"), ("edge", "regression")])
def test_nodes_and_edges_have_them_too(level, kind, tmp_path):
    graphs = small_set(level, kind, missing=0.2)
    config = small_config(grammar="r-G_L3", dataset="small", options={}, epochs=2)
    with no_pictures():
        result = train_config(config, tmp_path / "run", graphs=graphs)
    run = Run(tmp_path / "run", "cpu")
    validation = graphs.select(result.parts.splits["validation"])
    assert run.calibration.validation == (int(np.isfinite(validation.targets).sum()),)
    assert not any(run.evaluate("train", graphs).notes)
    outcome = run.evaluate("test", graphs)
    if kind == "multiclass":
        np.testing.assert_allclose(outcome.values.sum(1), 1.0)
        assert result.reliability["t0"]["temperature"] != 1.0
        assert outcome.intervals is None
    else:
        assert outcome.rows()[0]["t0 low [bonds]"] == outcome.intervals[0][0, 0]
    first, last = outcome.index[[0, -1]]
    larger = replace(graphs, node_features=graphs.node_features.copy())
    offsets = graphs.node_offsets if level == "node" else graphs.edge_offsets
    owner = int(np.searchsorted(offsets, last, side="right") - 1)
    larger.node_features[graphs.node_offsets[owner + 1] - 1, 1] = 99.0
    notes = run.predict(larger).notes
    assert notes[first] == ""
    assert notes[last].startswith("b 99 of a node, in training ")


def test_a_run_of_an_earlier_version_predicts_without_and_says_how_to_get_them(folder):
    before = (folder / CALIBRATION).read_bytes()
    (folder / CALIBRATION).unlink()
    (folder / checkpoint.MANIFEST).unlink()
    run = Run(folder, "cpu")
    assert f"make it: g2n2 train --resume {folder}" in run.note
    outcome = run.predict(RUN_GRAPHS)
    assert outcome.intervals is None
    assert not any(outcome.notes)
    assert not outcome.reliability
    with no_pictures():
        train_config(CONFIG, folder, graphs=RUN_GRAPHS, resume=True, watch=Watch())
    assert (folder / CALIBRATION).read_bytes() == before
    assert Run(folder, "cpu").note == ""


def test_a_calibration_that_was_lost_is_called_lost(folder):
    (folder / CALIBRATION).unlink()
    assert f"{folder} has lost {CALIBRATION}: predictions have no interval" in Run(folder).note


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.9, "90 %"), (0.123456, "12.35 %"), (0.999999, "99.9999 %"), (1.0, "100 %"), (0.0, "0 %")],
)
def test_a_share_below_1_is_never_shown_as_all(share, text):
    assert percent(share) == text


def altered(said: dict) -> None:
    said["errors"][0] = [error / 10 for error in said["errors"][0]]


def test_errors_made_smaller_by_hand_are_refused(folder):
    path = folder / CALIBRATION
    said = json.loads(path.read_text())
    altered(said)
    path.write_text(json.dumps(said, indent=2))
    with pytest.raises(DataError, match=rf"{CALIBRATION} is not the file this run wrote"):
        Run(folder, "cpu").predict(RUN_GRAPHS)
    with pytest.raises(DataError, match=rf"{CALIBRATION} is not the file this run wrote"):
        Run(folder, "cpu").evaluate("test", RUN_GRAPHS)


DAMAGES = {
    "format": [2, 0, "1", None],
    "columns": [["other", "names"], []],
    "validation": [[10], [11, 10], [-1, 10]],
    "errors": [[], [[1.0], [2.0]], [["a"] * 10] * 2, [[9.0] * 9 + [1.0]] * 2, [[-1.0] * 10] * 2],
    "temperatures": [[1.0, 1.0], 7],
    "predictions": [[], [[2.0, 1.0]] * 2, [[1.0]] * 2],
    "training": [{}, [], {"elements": [], "nodes": [[1, 2], [1, 2]]}],
}


@pytest.mark.parametrize("field", DAMAGES)
def test_what_no_run_writes_is_refused_by_name_without_checksums_too(field, folder):
    (folder / checkpoint.MANIFEST).unlink()
    path = folder / CALIBRATION
    whole = json.loads(path.read_text())
    for value in DAMAGES[field]:
        path.write_text(json.dumps({**whole, field: value}))
        with pytest.raises(DataError, match=CALIBRATION):
            RunFolder(folder).calibration(Task(RunFolder(folder).trained_on.columns, "regression"))
