"""Learning curves for TensorBoard, written anew on resuming so that no step stands twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class TensorBoardCurves:
    """The columns of the history as TensorBoard scalars, against the epoch.

    Args:
        folder: Where its event files go.

    `missing` says why nothing is written, where TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.missing = ""
        self._folder = folder
        self._written = 0
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self.missing = (
                "no curves for TensorBoard, which is not installed: pip install tensorboard"
            )
            return
        for stale in folder.glob("events.out.tfevents.*"):
            stale.unlink()
        self._writer = SummaryWriter(str(folder))

    def update(self, history: list[dict[str, float]]) -> None:
        """Write the rows not yet written."""
        if self._writer is None:
            return
        for row in history[self._written :]:
            for name, value in row.items():
                if name not in ("epoch", "seconds"):
                    self._writer.add_scalar(name.replace(" ", "/"), value, int(row["epoch"]))
        self._written = len(history)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
