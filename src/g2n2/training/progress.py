"""Where a run is: small numbers that go into every checkpoint."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Progress:
    """Where a run is.

    Attributes:
        epoch: Counted from 0.
        step: Steps done in this epoch.
        steps: Steps done in all.
        loss: Sum of the losses of this epoch.
        known: Targets behind that sum.
        seconds: Time spent training.
        micro: Graphs sent through the network at once; less than a batch where memory is short.
        history: One row of numbers for each finished epoch.
    """

    epoch: int = 0
    step: int = 0
    steps: int = 0
    loss: float = 0.0
    known: int = 0
    seconds: float = 0.0
    micro: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def best(self, metric: str, higher: bool) -> tuple[int, float]:
        """The first epoch with the best result and that result; (-1, NaN) before there is one.

        Without a single result, as where no validation target is known, the last epoch counts.
        """
        results = [(row[metric], -epoch) for epoch, row in enumerate(self.history)]
        usable = [(v if higher else -v, e) for v, e in results if math.isfinite(v)]
        if not usable:
            return len(self.history) - 1, math.nan
        value, epoch = max(usable)
        return -epoch, value if higher else -value

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
