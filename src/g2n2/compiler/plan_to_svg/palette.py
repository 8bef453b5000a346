"""The colours of the paper's figures (red memories, green selectors, blue rules), and memories."""

from __future__ import annotations

from ...language.sorts import M, R, S, Sort, V
from ..plan import symbol
from .canvas import FAINT, Box, Canvas, Paint

MEMORY: dict[Sort, Paint] = {
    M: Paint("#c62828", "#fbdcdc"),
    V: Paint("#e06a00", "#fde6cf"),
    R: Paint("#a02c78", "#f4d9ea"),
    S: Paint("#7a5230", "#eadfd4"),
}
"""Four reds, so that lines from different memories can be followed."""

SELECTOR = Paint("#2e7d32", "#e3f3e4")
RULE = Paint("#1a57b5", "#e1ebfa")
MIXER = Paint("#4a4f57", "#eceef1")
INPUT = Paint("#6a3fa0", "#ece4f7")

SIZE = 52.0
"""Height and width of every icon."""

BELOW = 40.0
"""Room for the two lines below an icon."""


def memory_icon(
    canvas: Canvas, x: float, cy: float, sort: Sort, exponent: str, channels: int, side: str
) -> Box:
    """A memory with its name and size below, as C^(l), and the box around the drawing."""
    frame = Box(x, cy - (SIZE + BELOW) / 2, SIZE, SIZE)
    canvas.box(frame, Paint("none", "none"), "memory", f"{symbol(sort)} {side}", radius=0)
    for part in _parts(sort.plain, frame):
        canvas.patch(part, MEMORY[sort.plain])
    name = f"{symbol(sort)}^{{({exponent})}}"
    canvas.text(frame.cx, frame.bottom + 15, name, 15, MEMORY[sort.plain].stroke, bold=True)
    size = "n×" * (sort.scope + sort.boundary) + str(channels)
    canvas.text(frame.cx, frame.bottom + 32, size, 11, FAINT)
    return frame


def _parts(sort: Sort, frame: Box) -> list[Box]:
    """The rectangles of an icon; together they reach all four sides of the frame."""
    x, y, size = frame.x, frame.y, frame.width
    step = size / 4
    if sort == M:
        side = size - 2 * 8
        return [Box(x + 8 * k, y + 8 * (2 - k), side, side) for k in (2, 1, 0)]
    if sort == V:
        return [Box(x + k * step, y, step, size) for k in range(4)]
    if sort == R:
        return [Box(x, y + k * step, size, step) for k in range(4)]
    return [Box(x + k * step, y + 1.5 * step, step, step) for k in range(4)]
