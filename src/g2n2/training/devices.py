"""Devices, precision and processes through Lightning Fabric, and the optimiser."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import distributed, nn

from ..errors import DataError
from .config import RunConfig
from .recipes import Recipe

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")


def make_fabric(config: RunConfig) -> Any:
    """A launched Fabric: one process for each device, or those torchrun has started.

    Raises:
        DataError: Lightning is not installed, or the device is not there.
    """
    try:
        from lightning.fabric import Fabric
        from lightning.fabric.strategies import DDPStrategy
    except ImportError:
        raise DataError('training needs lightning: pip install "g2n2[train]"') from None
    if config.device == "cuda" and not torch.cuda.is_available():
        raise DataError("device cuda was asked for, but there is none here; leave --device out")
    found = "cuda" if torch.cuda.is_available() else "cpu"
    devices, nodes = _places(config)
    fabric = Fabric(
        accelerator=found if config.device == "auto" else config.device,
        devices=devices,
        num_nodes=nodes,
        strategy=DDPStrategy(broadcast_buffers=False) if devices * nodes > 1 else "auto",
    )
    fabric.launch()
    if config.threads:
        torch.set_num_threads(config.threads)  # after the launch, which sets its own
    return fabric


def _places(config: RunConfig) -> tuple[int, int]:
    """Devices of each machine, and machines: torchrun's where it started this process."""
    if not (distributed.is_available() and distributed.is_torchelastic_launched()):
        return config.devices, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    return here, everywhere // here


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory does not suffice; a CPU says so only in words."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in OUT_OF_MEMORY)


def free_cached_memory(device: torch.device) -> None:
    """Give back what the allocator keeps in pieces that did not fit."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def make_optimiser(model: nn.Module, recipe: Recipe, device: torch.device) -> torch.optim.Optimizer:
    """The recipe's optimiser; matrices decay, biases and gains do not.

    On a GPU its rate is a tensor and it can be recorded in a CUDA graph.
    """
    on_gpu = device.type == "cuda"
    rate = torch.tensor(recipe.rate, device=device) if on_gpu else recipe.rate
    options: dict[str, Any] = {"lr": rate, "capturable": on_gpu, "fused": True}
    if recipe.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), **options)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.decay},
        {"params": others},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.0, **options)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next step; a tensor is filled in place, as CUDA graphs read it."""
    for group in optimiser.param_groups:
        if not isinstance(group["lr"], torch.Tensor):
            group["lr"] = rate
            continue
        home = group["params"][0].device
        if group["lr"].device != home:  # a checkpoint brings it back on the CPU
            group["lr"] = group["lr"].to(home)
        group["lr"].fill_(rate)
