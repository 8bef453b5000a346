"""Pictures: drawn for every kind of task, and read back."""

import errno
import os

import numpy as np
import pytest

from g2n2.errors import DataError
from g2n2.training.evaluate import Outcome
from g2n2.training.plots import TensorBoardCurves, _learning_curve, draw
from g2n2.training.task import Task
from small_sets import small_set

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def predictions(graphs, task):
    random = np.random.default_rng(0)
    count = len(graphs.targets)
    values = random.random((count, task.out))
    return Outcome(graphs, task, np.arange(count), values)


@pytest.mark.parametrize(
    ("kind", "columns", "name"),
    [
        ("regression", 3, "parity.png"),
        ("binary", 1, "confusion.png"),
        ("multiclass", 1, "confusion.png"),
    ],
)
def test_pictures_are_drawn_and_not_empty(tmp_path, kind, columns, name):
    from matplotlib.image import imread

    graphs = small_set(kind=kind, columns=columns, missing=0.1)
    task = Task.of(graphs)
    history = [
        {"epoch": float(e), "loss": 1.0 / e, f"validation {task.metric}": 0.5 + 0.1 / e}
        for e in range(1, 6)
    ]
    drawn = draw(tmp_path, task, history, predictions(graphs, task), best_epoch=5)
    assert drawn == ["learning_curve.png", name]
    for file in ("learning_curve.png", name):
        picture = imread(tmp_path / file)
        assert picture.shape[0] > 300
        assert len(np.unique(picture[..., :3] @ [1.0, 10.0, 100.0])) > 20  # colours
    assert {path.name for path in tmp_path.iterdir()} == {"learning_curve.png", name}


@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_a_target_without_a_known_value_has_an_empty_panel(tmp_path, kind):
    graphs = small_set(kind=kind, columns=2)
    graphs.targets[:, 0] = np.nan
    task = Task.of(graphs)
    history = [{"epoch": 1.0, "loss": 1.0, f"validation {task.metric}": 1.0}]
    assert len(draw(tmp_path, task, history, predictions(graphs, task), best_epoch=1)) == 2


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    graphs = small_set()
    task = Task.of(graphs)
    history = [{"epoch": 1.0, "loss": 1.0, f"validation {task.metric}": 1.0}]
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"learning_curve.png \(No space left on device\)"):
        draw(tmp_path, task, history, predictions(graphs, task), best_epoch=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("values", [[0.5, 1.0, 1.0], [np.nan] * 3])
def test_the_curve_marks_the_epoch_whose_weights_were_kept(values):
    from matplotlib.figure import Figure

    task, figure = Task.of(small_set(kind="binary")), Figure()
    history = [
        {"epoch": float(e), "loss": 1.0 / e, f"validation {task.metric}": value}
        for e, value in enumerate(values, 1)
    ]
    _learning_curve(figure, task, history, best_epoch=3)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["", "best 1 in epoch 3" if values[-1] == 1.0 else ""]


accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="reads what TensorBoard wrote"
)


def rows(count):
    return [
        {"epoch": float(e), "loss": 1.0 / e, "seconds": 0.1, "validation mae": 2.0 / e}
        for e in range(1, count + 1)
    ]


def test_a_resumed_run_has_no_step_twice(tmp_path):
    first = TensorBoardCurves(tmp_path)
    for count in range(1, 5):
        first.update(rows(count))
    first.close()  # the checkpoint is older: the run goes on from epoch 3
    second = TensorBoardCurves(tmp_path)
    for count in range(3, 7):
        second.update(rows(count))
    second.close()
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {"loss", "validation/mae"}
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3, 4, 5, 6]
    values = [event.value for event in events.Scalars("validation/mae")]
    assert values == pytest.approx([2.0 / e for e in range(1, 7)])
