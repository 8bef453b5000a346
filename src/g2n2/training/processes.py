"""Devices and processes, and what processes must agree on.

A process that stops alone (out of memory, disk full, Ctrl-C) would leave the others waiting
forever, so whatever ends or pauses a run is agreed on first.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from ..data.graph_set import Ints
from ..errors import DataError, G2N2Error, TrainingError
from .config import RunConfig

Value = TypeVar("Value")

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
LOST = ("gloo/", "closed by peer", "reset by peer", "Broken pipe")
"""In the messages of a backend about a process it no longer reaches."""


def first_process() -> bool:
    """Whether this process prints and writes, before Fabric can be asked."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) == 0


def launch(config: RunConfig) -> Processes:
    """Start one process for each device, or join those started by torchrun.

    Fabric, whose import takes two seconds, is needed by several processes only.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise DataError("device cuda was asked for, but there is none here; leave --device out")
    devices, nodes, device = config.devices, 1, find_device(config.device)
    if distributed.is_available() and distributed.is_torchelastic_launched():
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    if devices * nodes == 1:
        if device.type == "cuda":
            device = torch.device("cuda", torch.cuda.current_device())
        processes = Processes(device)
    else:
        try:
            from lightning.fabric import Fabric
            from lightning.fabric.strategies import DDPStrategy
        except ImportError:
            raise DataError('several processes need lightning: pip install "g2n2[train]"') from None
        strategy = DDPStrategy(broadcast_buffers=False)
        fabric = Fabric(
            accelerator=device.type, strategy=strategy, devices=devices, num_nodes=nodes
        )
        fabric.launch()
        atexit.register(leave_others)  # as Fabric does for NCCL alone
        processes = Processes(fabric.device, fabric.global_rank, fabric.world_size)
    if config.threads:
        torch.set_num_threads(config.threads)  # after the launch, which sets its own
    return processes


def leave_others() -> None:
    """End what connects this process to the others: threads of gloo must not outlive it."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def find_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU if there is one."""
    best = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(best if name == "auto" else name)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; on a CPU only its message tells."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in OUT_OF_MEMORY)


def free_cached_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


def within_memory(
    device: torch.device, work: Callable[[], Value]
) -> tuple[Value, str] | tuple[None, str]:
    """What the work returns; None, and what the backend says, if memory ran out."""
    try:
        return work(), ""
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        lack = str(error)
    # Only here are the tensors of the failed attempt gone, which its traceback held.
    free_cached_memory(device)
    return None, lack


class Processes:
    """All processes of a run; with one process everything here is free."""

    def __init__(self, device: torch.device, rank: int = 0, count: int = 1) -> None:
        self.device, self.rank, self.count = device, rank, count
        # Decisions travel between the hosts: over NCCL each would wait for the device. The timeout
        # is long, as a data set may be built meanwhile; a process that dies is noticed at once.
        self._hosts: Any = None
        if self.count > 1:
            self._hosts = distributed.new_group(timeout=timedelta(days=1), backend="gloo")

    @contextmanager
    def ending_together(self, folder: Path) -> Iterator[None]:
        """Turn the loss of another process or machine into a TrainingError."""
        try:
            yield
        except G2N2Error:
            raise
        except RuntimeError as error:
            lost = isinstance(error, distributed.DistError) or any(s in str(error) for s in LOST)
            if self.count == 1 or not lost:
                raise
            with suppress(ValueError):  # in a thread: torchrun ends us before this can be said
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            begun = (folder / "config.json").is_file()
            advice = f"go on: g2n2 train --resume {folder}" if begun else "start it again"
            raise TrainingError(
                f"another of the {self.count} processes of this run was killed or cannot be "
                f"reached any more, so all stop; {advice}"
            ) from None

    def in_turn(self, work: Callable[[], Value]) -> Value:
        """Let the first process work before the others, who then find its cache file."""
        for first in (True, False):
            with self.all_or_none():
                if first == (self.rank == 0):
                    value = work()
        return value

    def share(self, indices: Ints) -> Ints:
        """This process's part of a batch."""
        return indices[self.rank :: self.count]

    def give_weights(self, model: nn.Module) -> None:
        """Give every process the weights of the first."""
        if self.count > 1:
            for weights in model.state_dict().values():
                distributed.broadcast(weights, src=0)

    def gathered(self, value: Value) -> list[Value]:
        """The value of each process."""
        values = [value] * self.count
        if self.count > 1:
            distributed.all_gather_object(values, value)
        return values

    def largest(self, *values: float) -> list[float]:
        """The largest of each value over all processes."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX, group=self._hosts)
        largest: list[float] = tensor.tolist()
        return largest

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Work whose failure in one process raises a G2N2Error in all of them."""
        failure: G2N2Error | None = None
        try:
            yield
        except G2N2Error as error:
            failure = error
        if self.largest(float(failure is not None))[0]:
            raise failure or TrainingError("another process of this run stopped and says why")

    def add_up(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Sum the loss and, in place, the gradients over all processes, in one exchange.

        DDP would exchange gradients during the backward pass; the others could not follow a process
        that runs out of memory there and tries again.
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


class Interruption:
    """Ctrl-C and SIGTERM in the main thread: the first sets `asked`, the second stops at once."""

    def __init__(self) -> None:
        self.asked = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
