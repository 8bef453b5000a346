"""Training runs of a second or two, and what is compared of them."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from g2n2.data.benchmarks import regular_counting_set
from g2n2.data.graph_set import GraphSet, Target
from g2n2.training.checkpoint import CHECKPOINT, load_checkpoint
from g2n2.training.config import RunConfig

# The smallest grammar with matrices: quick, and every part of training is the same.
SMALL: dict[str, Any] = {
    "dataset": "regular",
    "options": {"count": 50, "nodes": 8},
    "width": 4,
    "layers": 1,
    "batch": 8,
    "epochs": 3,
    "threads": 1,
    "device": "cpu",
}


@contextmanager
def no_pictures() -> Iterator[None]:
    """Runs that draw nothing, which takes most of the time of a small one."""
    from g2n2.training import session

    real, session.draw = session.draw, lambda *_: True
    try:
        yield
    finally:
        session.draw = real


def small_config(**changes: Any) -> RunConfig:
    return RunConfig.from_dict({**SMALL, **changes})


def small_graphs(count: int = 50) -> GraphSet:
    """30 graphs to train on, 10 to validate and 10 to test; two targets."""
    return regular_counting_set(count=count, nodes=8)


def class_graphs() -> GraphSet:
    """The same graphs; two classes of each target, some of them unknown."""
    graphs = small_graphs()
    targets = (graphs.targets > np.median(graphs.targets, axis=0)).astype(float)
    targets[::7, 1] = np.nan
    columns = tuple(Target(name, kind="binary", classes=("few", "many")) for name in "ab")
    return replace(graphs, targets=targets, columns=columns)


def learned_state(folder: Path) -> dict[str, Any]:
    """What a checkpoint says of the numbers: everything but times."""
    content, troubles = load_checkpoint(folder)
    assert content is not None
    assert not troubles
    progress = {k: v for k, v in content["progress"].items() if k != "seconds"}
    progress["history"] = [
        {k: v for k, v in row.items() if k != "seconds"} for row in progress["history"]
    ]
    kept = ("model", "optimiser", "average", "random")
    return {**{name: content[name] for name in kept}, "progress": progress}


def same_bytes(left: Any, right: Any) -> bool:
    """Whether two nests of plain values and tensors are equal to the last bit."""
    if isinstance(left, torch.Tensor):
        return (
            left.dtype == right.dtype
            and left.shape == right.shape
            and left.numpy().tobytes() == right.numpy().tobytes()
        )
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_bytes(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same_bytes, left, right))
    return bool(left == right)


def largest_difference(left: dict[str, Any], right: dict[str, Any]) -> float:
    """Over all weights of two checkpoints."""
    pairs = zip(left["model"].values(), right["model"].values(), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


Moment = tuple[str, int, signal.Signals]
"""A signal that a process sends itself: before its `step` of that number, or halfway through the
`write` of that number of its checkpoint."""


def command_line(
    words: list[str], log: Path, moment: Moment | None = None, largest_file: int = 0
) -> None:
    """Run `g2n2 WORDS` in this process, its output in a file.

    Args:
        words: Of the command line.
        log: Where output goes.
        moment: When to be hit by a signal.
        largest_file: In bytes, as on a disk that is full; 0 for no limit.
    """
    from g2n2 import atomic_files
    from g2n2.cli import main
    from g2n2.training.loop import Loop

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if moment is not None and moment[0] == "step":
        Loop.step = _hit_before(Loop.step, moment)  # type: ignore[method-assign]
    if moment is not None and moment[0] == "write":
        atomic_files.put = _hit_halfway(moment)
    if largest_file:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, hard))
    sys.argv = ["g2n2", *words]
    with no_pictures():
        main()


def _hit_before(step: Callable[..., None], moment: Moment) -> Callable[..., None]:
    numbers = count(1)

    def watched(*arguments: Any) -> None:
        if next(numbers) == moment[1]:
            os.kill(os.getpid(), moment[2])
        step(*arguments)

    return watched


def _hit_halfway(moment: Moment) -> Callable[[Any, bytes], None]:
    numbers = count(1)

    def put(file: Any, content: bytes) -> None:
        half = len(content) // 2
        file.write(content[:half])
        file.flush()
        if CHECKPOINT in str(file.name) and next(numbers) == moment[1]:
            os.kill(os.getpid(), moment[2])
        file.write(content[half:])

    return put
