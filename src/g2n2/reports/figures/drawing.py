"""Drawings: one style, written as PNG and SVG, and as part of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from ...demonstration.inline_svg import FAINT, INK, SOFT, inline

BLUE, ORANGE, GREEN, PINK, SKY, GOLD = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
)
"""Okabe and Ito's colours: told apart by readers with every kind of colour vision."""
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
_SHOWN = "Source"
"""Where a PNG says what numbers it shows."""
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


def say_not_run(axes: Any) -> None:
    """In the middle of a panel that has nothing to show."""
    axes.text(0.5, 0.5, "not run yet", transform=axes.transAxes, ha="center", color=SOFT)


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def save(drawing: Drawing, folder: Path, svg: bool = True) -> str:
    """Write `name.png` and, where asked, `name.svg`; the SVG as part of a page."""
    with _drawn(drawing) as figure:
        shown = {_SHOWN: _fingerprint(figure)}
        figure.savefig(folder / f"{drawing.name}.png", dpi=150, metadata=shown)
        if svg:
            figure.savefig(folder / f"{drawing.name}.svg", metadata=_NAMELESS)
        text = StringIO()
        figure.savefig(text, format="svg", metadata=_NAMELESS, transparent=True)
    return inline(text.getvalue(), drawing.alt, f"{drawing.name}-")


def shows(path: Path, drawing: Drawing) -> bool:
    """Whether a PNG is there, whole, and shows what the drawing would; colours are not compared."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            picture.load()
            said = picture.info.get(_SHOWN)
    except OSError:
        return False
    with _drawn(drawing) as figure:
        return bool(said == _fingerprint(figure))


@contextmanager
def _drawn(drawing: Drawing) -> Iterator[Any]:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=drawing.size, layout="constrained")
        FigureCanvasAgg(figure)  # measures texts before they are placed
        drawing.draw(figure)
        yield figure


def _fingerprint(figure: Any) -> str:
    """Of the numbers and words in a figure, which no version of matplotlib changes."""
    found: list[Any] = []
    for axes in figure.axes:
        found += [line.get_xydata().tolist() for line in axes.lines]
        found += [patch.get_bbox().bounds for patch in axes.patches]
        found += [collection.get_offsets().tolist() for collection in axes.collections]
        found += [text.get_text() for text in (*axes.texts, *axes.get_yticklabels())]
    said = json.dumps(found, default=float)
    rounded = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", said)
    return sha256(rounded.encode()).hexdigest()
