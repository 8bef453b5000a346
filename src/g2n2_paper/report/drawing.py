"""Figures: one style, written as PNG files that carry a digest of the numbers they show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

from g2n2.atomic_files import replace_file

INK, SOFT, FAINT = "#1f2430", "#5b6472", "#c9ced6"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PINK, SKY, GOLD = "#cc79a7", "#56b4e9", "#e69f00"
STYLE = Path(__file__).with_name("figures.mplstyle")
DIGEST = "Source"
"""The metadata field of a PNG that has the digest."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure: its size in inches, and a function that draws it."""

    size: tuple[float, float]
    draw: Callable[[Any], None]

    def save(self, path: Path) -> None:
        """Write a PNG file."""
        buffer = BytesIO()
        with style.context(STYLE):
            figure = self._drawn()
            figure.savefig(buffer, format="png", dpi=150, metadata={DIGEST: _digest(figure)})
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, buffer.getvalue())

    def is_current(self, path: Path) -> bool:
        """Whether a PNG file shows the numbers of the drawing."""
        try:
            with Image.open(path) as picture:
                picture.load()
                recorded = picture.info.get(DIGEST)
        except OSError:
            return False
        with style.context(STYLE):
            return bool(recorded == _digest(self._drawn()))

    def _drawn(self) -> Any:
        figure = Figure(figsize=self.size, layout="constrained")
        self.draw(figure)
        return figure


def _digest(figure: Any) -> str:
    """Digest of the numbers and words of a figure, independent of matplotlib's version."""
    shown: list[Any] = []
    for axes in figure.axes:
        shown += [line.get_xydata().tolist() for line in axes.lines]
        shown += [patch.get_bbox().bounds for patch in axes.patches]
        shown += [text.get_text() for text in (*axes.texts, *axes.get_yticklabels())]
    text = json.dumps(shown, default=float)
    rounded = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    return sha256(rounded.encode()).hexdigest()
