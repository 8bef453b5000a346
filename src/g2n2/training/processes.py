"""What the processes of a run must share: failures, decisions and gradients.

A process that leaves alone (out of memory, disk full, Ctrl-C) would let the others wait for it
forever, so whatever ends or pauses a run is agreed on first.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from ..data.graph_set import Ints
from ..errors import G2N2Error, TrainingError

Made = TypeVar("Made")

LOST = ("gloo/", "closed by peer", "reset by peer", "Broken pipe")
"""In what a backend says of a process it no longer reaches."""


class Processes:
    """The processes of a launched Fabric; with one of them everything here costs nothing."""

    def __init__(self, fabric: Any) -> None:
        self.rank: int = fabric.global_rank
        self.count: int = fabric.world_size
        # Decisions travel between the hosts: over NCCL each would wait for the device.
        # The wait is long, as for a data set that is built; who dies is noticed at once.
        self._hosts: Any = None
        if self.count > 1:
            self._hosts = distributed.new_group(timeout=timedelta(days=1), backend="gloo")

    @contextmanager
    def ending_together(self, folder: Path) -> Iterator[None]:
        """Say in a sentence that another process was killed, or its machine is gone.

        Raises:
            TrainingError: It was.
        """
        try:
            yield
        except G2N2Error:
            raise
        except RuntimeError as error:
            if self.count == 1 or not _of_lost_process(error):
                raise
            with suppress(ValueError):  # in a thread: torchrun ends us before this can be said
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            begun = (folder / "config.json").is_file()
            advice = f"go on: g2n2 train --resume {folder}" if begun else "start it again"
            raise TrainingError(
                f"another of the {self.count} processes of this run was killed or cannot be "
                f"reached any more, so all stop; {advice}"
            ) from None

    def in_turn(self, work: Callable[[], Made]) -> Made:
        """Work the first process does before the others, who then find its cache file.

        Raises:
            G2N2Error: As with `all_or_none`.
        """
        for first in (True, False):
            with self.all_or_none():
                if first == (self.rank == 0):
                    made = work()
        return made

    def share(self, indices: Ints) -> Ints:
        """This process's part of a batch."""
        return indices[self.rank :: self.count]

    def most(self, *values: float) -> list[float]:
        """The largest of each value over all processes."""
        if self.count == 1:
            return list(values)
        told = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(told, op=distributed.ReduceOp.MAX, group=self._hosts)
        found: list[float] = told.tolist()
        return found

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Work of each process whose failure in one stops all.

        Raises:
            G2N2Error: The failure, or in the other processes that there was one.
        """
        failure: G2N2Error | None = None
        try:
            yield
        except G2N2Error as error:
            failure = error
        if self.most(float(failure is not None))[0]:
            raise failure or TrainingError("another process of this run stopped and says why")

    def add_up(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """The loss over all processes, and in place its gradients, in one exchange.

        DDP would exchange gradients during the backward pass, and one process that runs out of
        memory there and tries again could no longer be followed by the others.
        """
        if self.count == 1:
            return loss
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([loss.to(gradients[0].dtype).view(1), *(g.view(-1) for g in gradients)])
        distributed.all_reduce(flat)
        pieces = torch.split(flat[1:], [g.numel() for g in gradients])
        for gradient, piece in zip(gradients, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))
        return flat[0]


def _of_lost_process(error: RuntimeError) -> bool:
    return isinstance(error, distributed.DistError) or any(said in str(error) for said in LOST)
