"""A sweep in a process of its own, whose trials are made up.

python sweep_processes.py SETTINGS TRIALS STORAGE FOLDER
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from g2n2.atomic_files import sole_writer
from g2n2.errors import G2N2Error
from g2n2.training import sweep
from g2n2.training.config import RunConfig

HEARTBEAT = 2


def made_up(config: RunConfig, folder: Path) -> tuple[float, str]:
    """A trial that says who ran it; while the file `stay` is there, it does not come to its end."""
    home = folder.parents[1]
    with sole_writer(folder, ""):
        with open(home / "started", "a") as file:
            file.write(f"{os.getpid()} {folder.name}\n")
        while (home / f"stay-{os.getpid()}").exists() or (home / "stay").exists():
            time.sleep(0.01)
    return float(config.width), f"validation MAE {config.width}"


def main(settings: str, trials: str, storage: str, home: str) -> None:
    if (Path(home) / "made-up").exists():
        sweep.train_trial = made_up
        pictures: AbstractContextManager[None] = nullcontext()
    else:
        from small_runs import no_pictures  # only a real trial needs torch

        pictures = no_pictures()
    plan = sweep.Sweep.read(settings)
    try:
        with pictures:
            ended = sweep.run_sweep(
                plan, int(trials), storage, Path(home) / "runs", print, heartbeat=HEARTBEAT
            )
    except G2N2Error as error:
        sys.exit(f"error: {error}")
    print(f"{len(ended.rows)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
