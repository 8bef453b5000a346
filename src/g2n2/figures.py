"""Figures by matplotlib, which is asked for before anything is measured for them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be drawn, before anything is measured."""
    if find_spec("matplotlib") is None:
        raise DataError("plotting needs matplotlib: pip install 'g2n2[plot]'")
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise DataError(f"cannot draw {path}: end the name in .svg, .png or .pdf")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure; the ending of the path chooses the format."""
    try:
        figure.savefig(path)
    except (OSError, ValueError) as fault:
        raise DataError(f"cannot write {path}: {fault}") from None
    return path
