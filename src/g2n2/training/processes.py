"""What the processes of a run must share: failures, decisions and gradients.

A process that leaves alone (out of memory, disk full, Ctrl-C) would let the others wait for it
forever, so whatever ends or pauses a run is agreed on first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from ..data.graph_set import Ints
from ..errors import G2N2Error, TrainingError

Made = TypeVar("Made")


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
