"""The roofline: what a fused layer could reach, and what was measured below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..atomic_files import make_folder
from ..errors import DataError
from .results import Result, writing

APART = 1.13
"""Ratio of the heights of two names that do not touch."""
COLOURS = {"bf16": "#2a6f97", "tf32": "#d1603d", "32": "#5b8e4d"}
NAMES = {"bf16": "bfloat16", "tf32": "tf32", "32": "float32"}


def draw_roofline(path: Path, results: Sequence[Result]) -> bool:
    """Draw the measured cases of one GPU under the roof of its measured peaks.

    Returns:
        Whether there was a measured case to draw.

    Raises:
        DataError: Matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError('a figure needs matplotlib: pip install "g2n2[plot]"') from None
    points = [r for r in results if r.made_with["device"] != "cpu" and r.value("flops_per_byte")]
    if not points:
        return False
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    made = points[-1].made_with
    speed = made["bandwidth_gb_per_second"] * 1e9
    peaks: dict[str, float] = {}
    for result in points:
        peaks |= result.made_with["peak_tflops"]
    for precision, peak in peaks.items():
        ridge = peak * 1e12 / speed
        ends = [1.0, ridge, 4096.0]
        roof = [speed / 1e12, peak, peak]
        label = f"{NAMES[precision]}: {peak:.0f} TFLOP/s"
        axes.plot(ends, roof, color=COLOURS[precision], linewidth=1.5, label=label)
    for result in points:
        _point(axes, result)
    _names(axes, (result for result in points if result.floor is not None))
    axes.set(xscale="log", yscale="log", xlim=(8, 2048))
    axes.set_xlabel("useful FLOP for each byte a fused layer moves")
    axes.set_ylabel("useful TFLOP/s")
    axes.set_title(f"{made['device']}, {speed / 1e12:.2g} TB/s measured", loc="left", fontsize=10)
    axes.grid(True, color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
    with writing(path):
        make_folder(path.parent)
        figure.savefig(path, dpi=130)
    return True


def _point(axes: Any, result: Result) -> None:
    colour = COLOURS[result.settings["precision"]]
    named = result.floor is not None
    size, alpha = (5, 1.0) if named else (3, 0.4)
    axes.plot(*_place(result), "o", color=colour, markersize=size, alpha=alpha)


def _names(axes: Any, results: Iterable[Result]) -> None:
    """Names to the left of their points, pushed up where they would lie on one another."""
    lowest: dict[float, float] = {}
    for result in sorted(results, key=lambda result: _place(result)[1]):
        across, height = _place(result)
        column = round(across, -1)
        lowest[column] = max(height, lowest.get(column, 0.0) * APART)
        axes.annotate(
            result.case,
            (across, height),
            (across / 1.2, lowest[column]),
            fontsize=6,
            ha="right",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "0.6"},
        )


def _place(result: Result) -> tuple[float, float]:
    return result.figures["flops_per_byte"], result.figures["tflops"]
