"""What a cell runs on: device, precision, and what a record says of them."""

from __future__ import annotations

from typing import Any

from ..training.config import RunConfig


def precision_on(config: RunConfig, device: str) -> str:
    """A config's precision on a GPU; 32 bits on a CPU, which gains nothing by fewer."""
    return config.precision if device_called(device).type == "cuda" else "32"


def machine(device: str) -> dict[str, Any]:
    """Hardware, versions and commit behind a record."""
    from ..training.run_folder import provenance

    return provenance(device_called(device))


def device_called(name: str) -> Any:
    import torch

    found = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(found if name == "auto" else name)


def free_gpu() -> None:
    """A run's CUDA graphs hold memory until Python collects the loop that made them."""
    import gc

    from ..training.processes import free_cached_memory

    gc.collect()
    free_cached_memory(device_called("auto"))
