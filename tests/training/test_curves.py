"""TensorBoard curves: one value for each epoch, also after resuming."""

import pytest

from g2n2.training.curves import TensorBoardCurves

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
