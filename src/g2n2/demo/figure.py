"""The figure: what each network answers against the true counts, one panel for each target."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from .page import FAINT, INK, inline
from .settings import TARGETS
from .training_runs import TrainedNetwork, minus

COLOURS = ("#2a7fb0", "#d1603d")
JITTER = 0.2
"""Counts are integers: points are spread sideways so that they can be told apart."""

_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 9.5,
    "svg.hashsalt": "g2n2",  # the same numbers give the same file
}
_NAMELESS = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(networks: Sequence[TrainedNetwork], path: Path, title: str) -> None:
    """Write `path`.png and `path`.svg: all panels side by side."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 4.1), layout="constrained")
        figure.suptitle(title, fontsize=11.5, fontweight="bold")
        for place, axes in enumerate(figure.subplots(1, len(TARGETS))):
            _panel(axes, networks, place)
        figure.savefig(path.with_suffix(".png"), dpi=150)
        figure.savefig(path.with_suffix(".svg"), metadata=_NAMELESS)


def panels(networks: Sequence[TrainedNetwork]) -> str:
    """The panels as parts of a page, which sets their ink and breaks the row where it is narrow."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = []
    with rc_context(_STYLE):
        for place, words in enumerate(TARGETS.values()):
            figure = Figure(figsize=(4.0, 3.8), layout="constrained")
            _panel(figure.subplots(), networks, place)
            text = StringIO()
            figure.savefig(text, format="svg", metadata=_NAMELESS, transparent=True)
            drawn.append(inline(text.getvalue(), f"{words}, predicted and true", f"panel{place}-"))
    return "".join(drawn)


def _panel(axes: Any, networks: Sequence[TrainedNetwork], place: int) -> None:
    words = list(TARGETS.values())[place]
    top = networks[0].truth[:, place].max()
    axes.plot([0, top], [0, top], color=FAINT, linewidth=1.2, zorder=0)
    for which, (one, colour) in enumerate(zip(networks, COLOURS, strict=True)):
        truth = one.truth[:, place]
        spread = np.random.default_rng(which).uniform(-JITTER, JITTER, len(truth))
        style = {"s": 14, "alpha": 0.6, "linewidths": 0, "color": colour, "zorder": 3 - which}
        label = f"{one.name}   R² = {minus(one.r2()[place])}"
        axes.scatter(truth + spread, one.answers[:, place], label=label, **style)
    axes.set_xlabel(f"{words} in the graph")
    axes.set_ylabel(f"{words} predicted")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    legend = axes.legend(loc="upper left", frameon=False, handletextpad=0.2, borderaxespad=0.1)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
        handle.set_sizes([28])
    axes.set_xlim(-0.6, top + 0.6)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
