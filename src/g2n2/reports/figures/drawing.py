"""Drawings: one style, written as PNG and SVG, and as part of a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from ...demonstration.inline_svg import FAINT, INK, inline

BLUE, ORANGE, GREEN, PINK, SKY, GOLD = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
)
"""Okabe and Ito's colours: told apart by readers with every kind of colour vision."""
NETWORKS = {
    "G²N²": (BLUE, "o"),
    "PPGN": (ORANGE, "s"),
    "GNNML3": (GREEN, "^"),
    "GNNML1": (PINK, "v"),
    "GIN": (GOLD, "D"),
    "ChebNet": (PINK, "v"),
    "GCN": (SKY, "P"),
}
"""Colour and marker of each network, the same in every figure."""

_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 9.5,
    "legend.frameon": False,
    "svg.hashsalt": "g2n2",  # the same numbers give the same file
    "axes.formatter.use_mathtext": False,
}
_NAMELESS = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure to be drawn.

    Attributes:
        name: Of its files.
        alt: What it shows, in words.
        size: Width and height in inches.
        draw: Draws on an empty matplotlib figure.
    """

    name: str
    alt: str
    size: tuple[float, float]
    draw: Callable[[Any], None]


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def save(drawing: Drawing, folder: Path, svg: bool = True) -> str:
    """Write `name.png` and, where asked, `name.svg`; the SVG as part of a page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=drawing.size, layout="constrained")
        FigureCanvasAgg(figure)  # measures texts before they are placed
        drawing.draw(figure)
        figure.savefig(folder / f"{drawing.name}.png", dpi=150)
        if svg:
            figure.savefig(folder / f"{drawing.name}.svg", metadata=_NAMELESS)
        text = StringIO()
        figure.savefig(text, format="svg", metadata=_NAMELESS, transparent=True)
    return inline(text.getvalue(), drawing.alt, f"{drawing.name}-")
