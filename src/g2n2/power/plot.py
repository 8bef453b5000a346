"""The figure of `g2n2 power --plot`: pairs told apart against layers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import DataError
from .table import PowerRow


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be drawn, before anything is measured."""
    if find_spec("matplotlib") is None:
        raise DataError("plotting needs matplotlib: pip install 'g2n2[plot]'")
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise DataError(f"cannot draw {path}: end the name in .svg, .png or .pdf")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}")


def draw_plot(rows: Sequence[PowerRow], path: Path) -> None:
    """Pairs told apart against layers, one line per grammar and suite."""
    check_plot(path)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    suites = list(dict.fromkeys(row.suite for row in rows))
    figure, axes = plt.subplots(1, len(suites), figsize=(6 * len(suites), 4.2), squeeze=False)
    for axis, suite in zip(axes[0], suites, strict=True):
        shown = [row for row in rows if row.suite == suite]
        for row in shown:
            label = f"{row.grammar}, read-out {row.readout}"
            axis.plot(range(len(row.by_layer)), row.by_layer, marker="o", markersize=4, label=label)
        axis.axhline(shown[0].pairs, color="0.8", linewidth=1)
        axis.set(title=f"{suite}: {shown[0].pairs} pairs", xlabel="layers", ylabel="told apart")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as fault:
        raise DataError(f"cannot write {path}: {fault}") from None
    finally:
        plt.close(figure)
