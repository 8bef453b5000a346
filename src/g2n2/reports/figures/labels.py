"""Names beside points, placed so that none covers another, a point, a bar or a line."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

Box = tuple[float, float, float, float]
Side = tuple[int, int, int]
"""Right 1 or left −1, above 1 or below −1, and how far, in points."""

NEAR = 7
"""At this distance a name needs no line to its point."""
ROOM = 2.0
"""Around a name: two that touch read as one."""
DOT = 5.0
"""Half a point's width, and what of its bar is kept free to both sides."""
ORDERS = 40
"""Orders tried; in each, a name takes the nearest side the names before it left free."""

_SIDES: tuple[Side, ...] = tuple(
    (along, above, distance)
    for distance in (NEAR, 16, 28, 42, 58, 76, 96)
    for along, above in ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
)
NOWHERE: Side = (1, 0, 1000)
"""Where every side is taken; worse than any, and not written."""
_ALIGN = {1: "left", 0: "center", -1: "right"}
_LEVEL = {1: "bottom", 0: "center", -1: "top"}


def label_points(
    axes: Any,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    colours: Sequence[str],
    bars: Sequence[float],
) -> None:
    """Write each name near its point, with a line where it is not beside it.

    The limits of the axes must be final: they decide what is near.

    Args:
        axes: With the points.
        points: Where they are, as the axes count.
        names: Of the points.
        colours: Of the names.
        bars: How far an error bar reaches above and below each point.
    """
    figure = axes.get_figure()
    figure.canvas.draw()
    scale = figure.dpi / 72
    frame = axes.get_window_extent().extents / scale
    centres = [tuple(centre / scale) for centre in axes.transData.transform(points)]
    ends = [(x, y + bar) for (x, y), bar in zip(points, bars, strict=True)]
    tops = axes.transData.transform(ends)[:, 1] / scale
    reach = [float(top) - y for top, (_, y) in zip(tops, centres, strict=True)]
    sizes = [_size(axes, name, scale) for name in names]
    for at, (along, above, distance) in enumerate(arrange(centres, sizes, tuple(frame), reach)):
        if distance == NOWHERE[2]:
            continue
        line = {"arrowstyle": "-", "linewidth": 0.6, "color": colours[at], "shrinkB": 3}
        axes.annotate(
            names[at],
            points[at],
            xytext=(along * distance, above * distance),
            textcoords="offset points",
            ha=_ALIGN[along],
            va=_LEVEL[above],
            fontsize=8.5,
            color=colours[at],
            arrowprops=line if distance > NEAR else None,
        )


def arrange(
    centres: Sequence[tuple[float, ...]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    reach: Sequence[float],
) -> list[Side]:
    """A side for each name, all in points: the nearest ones of many orders of choosing.

    Args:
        centres: Of the points.
        sizes: Width and height of the names.
        frame: Nothing is written outside.
        reach: Of each point's bar, up and down.
    """
    draw = Random(0)  # the same points give the same figure
    found = []
    for _ in range(ORDERS):
        order = draw.sample(range(len(centres)), len(centres))
        found.append(_choose(centres, sizes, frame, reach, order))
    return min(found, key=lambda sides: sum(distance**2 for *_, distance in sides))


def _choose(
    centres: Sequence[tuple[float, ...]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    reach: Sequence[float],
    order: Sequence[int],
) -> list[Side]:
    dots = [_around(x, y, DOT) for x, y in centres]
    bars = [_around(x, y, DOT, max(DOT, r)) for (x, y), r in zip(centres, reach, strict=True)]
    taken: list[Box] = []
    sides: list[Side] = [NOWHERE] * len(centres)
    for own in order:
        others = [*taken, *(dot for at, dot in enumerate(dots) if at != own)]
        for side in _SIDES:
            covered = _covered(centres[own], sizes[own], side)
            free = _within(covered[0], frame) and not any(_meet(covered[0], bar) for bar in bars)
            if free and not any(_meet(a, b) for a in covered for b in others):  # a line may cross
                taken += covered
                sides[own] = side
                break
    return sides


def _covered(centre: Sequence[float], size: tuple[float, float], side: Side) -> list[Box]:
    """The box of a name at a side and, where it is far, small ones along its line."""
    (x, y), (width, height), (along, above, distance) = centre, size, side
    left = x + along * distance + (along - 1) * width / 2
    low = y + above * distance + (above - 1) * height / 2
    box = (left - ROOM, low - ROOM, left + width + ROOM, low + height + ROOM)
    if distance == NEAR:
        return [box]
    end = (left + width / 2, low + height / 2)
    shares = [step / 24 for step in range(2, 24)]
    return [box, *(_around(x + s * (end[0] - x), y + s * (end[1] - y), 1.0) for s in shares)]


def _size(axes: Any, name: str, scale: float) -> tuple[float, float]:
    """Width and height of a name in points."""
    text = axes.text(0, 0, name, fontsize=8.5)
    extent = text.get_window_extent()
    text.remove()
    return extent.width / scale, extent.height / scale


def _within(box: Box, frame: Box) -> bool:
    return frame[0] <= box[0] and frame[1] <= box[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _around(x: float, y: float, radius: float, height: float | None = None) -> Box:
    up = radius if height is None else height
    return (x - radius, y - up, x + radius, y + up)


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
