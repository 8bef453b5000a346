"""Networks that come with the package: run folders without what only training needs.

`src/g2n2/pretrained_networks/NAME` has the files of a run but for checkpoints and the split, its
`training.toml` for `g2n2 train --config`, a model card, and some held-out molecules with their true
values. The manifest has the checksums of what is read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError

if TYPE_CHECKING:
    from .run import Run

FOLDER = Path(__file__).resolve().parents[1] / "pretrained_networks"
HELD_OUT = "held_out.csv"
"""Graphs the network was not trained on, with their true values."""


def pretrained_names() -> list[str]:
    """The networks that are there."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.json"))


def pretrained(name: str = "qm9", device: str = "auto") -> Run:
    """A trained run that comes with the package, ready to predict.

    >>> from g2n2 import pretrained
    >>> run = pretrained("qm9")
    >>> [column.name for column in run.task.columns][:5]
    ['mu', 'alpha', 'homo', 'lumo', 'gap']

    Args:
        name: `qm9`: twelve quantum-chemical properties of molecules of H, C, N, O and F.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: There is no such network, or its files were altered.
    """
    from .run import Run

    if name not in (known := pretrained_names()):
        raise DataError(
            f"no network called {name!r} comes with g2n2; there is: {', '.join(known) or 'none'}"
        )
    return Run(FOLDER / name, device)


def run_path(folder: str | Path) -> Path:
    """The folder of a run: the one of that path, else that of a pretrained network so called."""
    path = Path(folder)
    if not os.path.exists(path) and str(folder) in pretrained_names():
        return FOLDER / str(folder)
    return path


def is_pretrained(folder: str | Path) -> bool:
    """Whether a run folder is one of the package."""
    return Path(folder).parent == FOLDER
