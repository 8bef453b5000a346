"""Devices, precision and processes through Lightning Fabric, and the optimiser."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..errors import DataError
from .config import PRECISIONS, RunConfig
from .recipes import Recipe


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
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.precision == "tf32":
        torch.set_float32_matmul_precision("high")
    found = "cuda" if torch.cuda.is_available() else "cpu"
    fabric = Fabric(
        accelerator=found if config.device == "auto" else config.device,
        devices=config.devices,
        precision=PRECISIONS[config.precision],
        # Rules whose output no read-out uses have no gradient; DDP must not wait for one.
        strategy=DDPStrategy(find_unused_parameters=True) if config.devices > 1 else "auto",
    )
    fabric.launch()
    return fabric


def make_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimiser; matrices decay, biases and gains do not."""
    if recipe.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=recipe.rate)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.decay},
        {"params": others},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, weight_decay=0.0)
