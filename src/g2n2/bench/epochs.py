"""A whole epoch through `g2n2 train`: data, validation, curves and checkpoints included."""

from __future__ import annotations

import tempfile
import time
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import DataError
from .cases import Case

EPOCHS = 5


def find_cache(options: dict[str, Any]) -> Path | None:
    """The cache file of QM9: the one named, or the user's; None where the user has none.

    Raises:
        DataError: There is no file of that name, or an option is not `cache`.
    """
    from ..data.files import cache_folder

    for key in options:
        if key != "cache":
            raise DataError(f"bench has no option {key!r}; the only one: cache=PATH")
    if "cache" not in options:
        path = cache_folder() / "qm9.cache"
        return path if path.is_file() else None
    path = Path(str(options["cache"]))
    if not path.is_file():
        raise DataError(
            f"cache={path}: there is no such file; name a cache file of QM9, or leave the option "
            "out to measure on graphs of QM9's sizes"
        )
    return path


def time_epochs(case: Case, cache: Path, device: str, quick: bool) -> dict[str, float]:
    """Train on R² with distances; seconds of an epoch after the first, and of its steps alone.

    An epoch lasts until the next one's line is written, so that nothing of it is left out.
    """
    from rich.console import Console

    from ..training.config import RunConfig
    from ..training.display import Display
    from ..training.loop import Loop
    from ..training.session import Watch, train_config

    config = RunConfig(
        dataset="qm9",
        target=("r2",),
        options={"cache": str(cache), "track": "distance"},
        limit=600 if quick else 0,
        width=case.width,
        layers=case.layers,
        preset=case.preset,
        batch=case.batch,
        epochs=3 if quick else EPOCHS,
        precision=case.precision,
        device=device,
    )
    ends: list[float] = []
    display = Display(Console(file=StringIO(), width=120))  # speaks as it would to a person

    def ended(loop: Loop) -> None:
        display.epoch(loop)
        ends.append(time.perf_counter())

    watch = Watch(display.summary, display.start, display.step, ended, display.note)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, display:
        result = train_config(config, Path(folder) / "run", watch=watch)
    steps = [row["seconds"] for row in result.history]
    epochs = [later - earlier for earlier, later in pairwise(ends)]
    molecules = len(result.parts.splits["train"])
    return {
        "epoch_seconds": median(epochs),
        "epoch_seconds_least": min(epochs),
        "epoch_seconds_most": max(epochs),
        "steps_seconds": median(b - a for a, b in pairwise(steps)),
        "first_epoch_seconds": ends[0] - started,
        "molecules": float(molecules),
        "graphs_per_second": molecules / median(epochs),
    }
