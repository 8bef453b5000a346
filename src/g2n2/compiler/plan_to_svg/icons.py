"""Memories as small stacks: matrices behind one another, columns side by side, rows, scalars."""

from __future__ import annotations

from ...language.sorts import M, R, S, Sort, V
from ..memories import SYMBOLS
from .palette import MEMORY, MEMORY_FILL
from .svg import FAINT, Box, Canvas

SIZE = 52.0
"""Height and width of every icon."""

BELOW = 40.0
"""Room for the two lines below an icon."""


def memory_icon(
    canvas: Canvas, x: float, cy: float, sort: Sort, exponent: str, channels: int, side: str
) -> Box:
    """A memory with its name and size below, as C^(l), and the box around the drawing."""
    frame = Box(x, cy - (SIZE + BELOW) / 2, SIZE, SIZE)
    stroke, fill = MEMORY[sort], MEMORY_FILL[sort]
    canvas.box(frame, "none", "none", "memory", f"{SYMBOLS[sort]} {side}", radius=0)
    for part in _parts(sort, frame):
        canvas.patch(part, stroke, fill)
    name = f"{SYMBOLS[sort]}^{{({exponent})}}"
    canvas.text(frame.cx, frame.bottom + 15, name, 15, stroke, bold=True)
    canvas.text(frame.cx, frame.bottom + 32, size_text(sort, channels), 11, FAINT)
    return frame


def size_text(sort: Sort, channels: int) -> str:
    """`n×n×64`: the size of a memory for one graph."""
    return {M: "n×n×", V: "n×", R: "n×"}.get(sort, "") + str(channels)


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
    assert sort == S
    return [Box(x + k * step, y + 1.5 * step, step, step) for k in range(4)]
