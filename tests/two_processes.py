"""What two processes do together; started by torchrun, each writes what it saw to a file.

torchrun --nproc_per_node 2 two_processes.py FOLDER
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from g2n2.data.graph_set import GraphSet
from g2n2.errors import G2N2Error
from g2n2.nn.model import GrammarGNN
from g2n2.training import loop
from g2n2.training.session import Watch, train_config
from small_runs import class_graphs, small_config, small_graphs

# 30 graphs in batches of 29: the second batch has one graph, fewer than there are processes.
UNEVEN: dict[str, Any] = {"batch": 29, "epochs": 3, "checkpoint_seconds": 0.0}


def uneven_graphs(extreme: float = 1.0) -> GraphSet:
    """Most targets of the first graphs are unknown, so that no two shares weigh the same.

    Args:
        extreme: Targets of one graph, which one process alone will see in each step.
    """
    graphs = small_graphs()
    targets = graphs.targets.copy()
    targets[:12] = np.nan
    targets[20:26, 1] = np.nan
    targets[28] = extreme
    return replace(graphs, targets=targets)


def run(
    folder: Path,
    watch: Watch | None = None,
    resume: bool = False,
    extreme: float = 1.0,
    **changes: Any,
) -> Any:
    config = small_config(**{**UNEVEN, **changes})
    made = train_config(config, folder, graphs=uneven_graphs(extreme), watch=watch, resume=resume)
    return {"history": made.history, "scores": made.scores["all"]}


def tied(folder: Path) -> Any:
    """Classes whose metrics tie in every epoch: the loss decides."""
    real, loop.metrics = loop.metrics, lambda *_: {"all": {"accuracy": 1.0, "roc_auc": 1.0}}
    try:
        config = small_config(precision="64", epochs=4, rate=0.03)
        made = train_config(config, folder, graphs=class_graphs())
    finally:
        loop.metrics = real
    losses = [row["validation loss"] for row in made.history]
    return {"losses": losses, "best epoch": made.best_epoch}


def failing(action: Callable[[], Any]) -> str:
    """What a user is told."""
    try:
        action()
    except (G2N2Error, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing failed"


@contextmanager
def little_memory(rank: int) -> Iterator[None]:
    """One process can hold 3 graphs only."""
    real = GrammarGNN.network

    def network(self: GrammarGNN, adjacency: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        if rank == 1 and len(adjacency) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, adjacency, *rest)

    GrammarGNN.network = network  # type: ignore[method-assign]
    yield
    GrammarGNN.network = real  # type: ignore[method-assign]


@contextmanager
def full_disk() -> Iterator[None]:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    real, os.fsync = os.fsync, refuse
    yield
    os.fsync = real


def main(folder: Path) -> None:
    rank = int(os.environ["RANK"])
    left = folder / f"{rank}.left"  # what comes first here is done last at the end
    atexit.register(lambda: left.write_text(str(not distributed.is_initialized())))

    def interrupt(loop: Any) -> None:
        if rank == 1 and loop.progress.steps == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    def disk_fills(loop: Any) -> None:
        if loop.progress.steps == 2:
            stack.__enter__()

    stack = full_disk()
    seen: dict[str, Any] = {"double": run(folder / "double", precision="64")}
    seen["interrupted"] = failing(
        lambda: run(folder / "again", Watch(step=interrupt), precision="64")
    )
    seen["again"] = run(folder / "again", resume=True, precision="64")
    seen["tied"] = tied(folder / "tied")
    with little_memory(rank):
        seen["memory"] = run(folder / "memory", precision="64")
    seen["no data"] = failing(
        lambda: train_config(small_config(options={"nodes": 3}), folder / "none")
    )
    seen["nan"] = failing(lambda: run(folder / "nan", extreme=3e38, recipe="paper"))
    seen["full disk"] = failing(lambda: run(folder / "full", Watch(step=disk_fills)))
    stack.__exit__(None, None, None)
    (folder / f"{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
