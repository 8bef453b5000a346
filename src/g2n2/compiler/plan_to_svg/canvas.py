"""A canvas that writes SVG: boxes, texts and arrows, and a frame that holds all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal, NamedTuple

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

INK = "#2b2f36"
FAINT = "#7b828c"
PAPER = "#ffffff"
_MARGIN = 24.0
_TIP = 8.0


class Paint(NamedTuple):
    """The colours of a box."""

    stroke: str
    fill: str


class Box(NamedTuple):
    """A rectangle on the canvas."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def cx(self) -> float:
        return self.x + self.width / 2

    @property
    def cy(self) -> float:
        return self.y + self.height / 2


class Canvas:
    """Collects shapes; `svg` frames them so that nothing is cut off."""

    def __init__(self) -> None:
        self._shapes: list[str] = []
        self._extent: list[Box] = []

    @property
    def bounds(self) -> Box:
        """The smallest rectangle around everything drawn so far."""
        left, top = min(b.x for b in self._extent), min(b.y for b in self._extent)
        right, bottom = max(b.right for b in self._extent), max(b.bottom for b in self._extent)
        return Box(left, top, right - left, bottom - top)

    def box(
        self,
        box: Box,
        paint: Paint,
        kind: str,
        name: str,
        label: str = "",
        size: float = 14.0,
        color: str = INK,
        bold: bool = True,
        detail: str = "",
        radius: float = 5.0,
    ) -> Box:
        """A rectangle with a label in the middle, and a small line of detail below it.

        `kind` and `name` say in the file what it stands for.
        """
        self._extent.append(box)
        self._shapes.append(
            f'<rect class="box {kind}" data-name="{escape(name)}" x="{_n(box.x)}" y="{_n(box.y)}" '
            f'width="{_n(box.width)}" height="{_n(box.height)}" rx="{_n(radius)}" '
            f'fill="{paint.fill}" stroke="{paint.stroke}" stroke-width="1.5"/>'
        )
        if label:
            self.text(box.cx, box.cy - (10 if detail else 0), label, size, color, bold=bold)
        if detail:
            self.text(box.cx, box.cy + 11, detail, 11, FAINT)
        return box

    def patch(self, box: Box, paint: Paint) -> None:
        """A small square-cornered rectangle that is part of an icon."""
        self._extent.append(box)
        self._shapes.append(
            f'<rect class="patch" x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" '
            f'height="{_n(box.height)}" fill="{paint.fill}" stroke="{paint.stroke}" '
            'stroke-width="1.2"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 14.0,
        color: str = INK,
        anchor: Anchor = "middle",
        bold: bool = False,
    ) -> None:
        """One line of text, centred on the height `y`; `_` and `^` shift what follows."""
        width = text_width(text, size, bold)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self._extent.append(Box(left, y - 0.75 * size, width, 1.5 * size))
        if "<tspan" in (spans := _spans(text, size)):
            x, anchor = left, "start"  # some viewers centre every piece by itself
        weight = ' font-weight="bold"' if bold else ""
        self._shapes.append(
            f'<text x="{_n(x)}" y="{_n(y + 0.36 * size)}" font-size="{_n(size)}" fill="{color}" '
            f'text-anchor="{anchor}"{weight} xml:space="preserve">{spans}</text>'
        )

    def line(self, points: Sequence[Point], color: str = INK, width: float = 1.6) -> None:
        """A line through points."""
        self._extent += [Box(x, y, 0, 0) for x, y in points]
        self._shapes.append(_path("line", points, color, width))

    def dot(self, x: float, y: float, color: str = INK) -> None:
        """Where a line branches."""
        self._shapes.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="2.8" fill="{color}"/>')

    def arrow(self, points: Sequence[Point], color: str = INK, width: float = 1.6) -> None:
        """A line whose end touches what it points at; the last piece is level or upright."""
        self._extent += [Box(x, y, 0, 0) for x, y in points]
        (x0, y0), (x, y) = points[-2], points[-1]
        length = abs(x - x0) + abs(y - y0)
        dx, dy = (x - x0) / length, (y - y0) / length
        back = (x - _TIP * dx, y - _TIP * dy)
        wings = [(back[0] - s * 0.5 * _TIP * dy, back[1] + s * 0.5 * _TIP * dx) for s in (1, -1)]
        self._shapes.append(_path("arrow", points, color, width, end=back))
        corners = " ".join(f"{_n(a)},{_n(b)}" for a, b in ((x, y), *wings))
        self._shapes.append(f'<polygon class="tip" points="{corners}" fill="{color}"/>')

    def svg(self, title: str) -> str:
        """The whole file."""
        frame = self.bounds
        x, y = frame.x - _MARGIN, frame.y - _MARGIN
        width, height = frame.width + 2 * _MARGIN, frame.height + 2 * _MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{_n(x)} {_n(y)} {_n(width)} '
                f'{_n(height)}" width="{_n(width)}" height="{_n(height)}" '
                f'font-family="{FONTS}" role="img">',
                f"<title>{escape(title)}</title>",
                f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" '
                f'fill="{PAPER}"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def _path(
    kind: str, points: Sequence[Point], color: str, width: float, end: Point | None = None
) -> str:
    """A path through points; a drawn end short of the true one leaves room for the tip."""
    drawn = [*points[:-1], end or points[-1]]
    steps = " L ".join(f"{_n(x)} {_n(y)}" for x, y in drawn)
    return (
        f'<path class="{kind}" d="M {steps}" fill="none" stroke="{color}" '
        f'stroke-width="{_n(width)}" stroke-linejoin="round"/>'
    )


def _spans(text: str, size: float) -> str:
    """Pieces of a text, each moved relative to the one before it."""
    written, at = [], 0.0
    for run in runs(text):
        move = (run.drop - at) * size
        at = run.drop
        if move == 0.0 and run.scale == 1.0:
            written.append(escape(run.text))
        else:
            written.append(
                f'<tspan dy="{_n(move)}" font-size="{_n(run.scale * size)}">'
                f"{escape(run.text)}</tspan>"
            )
    return "".join(written)


def _n(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


FONTS = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif"
_SHRINK = 0.72
_DROP = 0.22
_RAISE = -0.38
_SHIFTED = re.compile(r"([_^])(?:(?<=G_)(\{[^{}]*\})|\{((?:[^{}]|\{[^{}]*\})*)\}|(L?\d+Σ*|\w))")

_ADVANCES: dict[int, str] = {
    29: "ijlIJ'",
    34: " ,./:;|·",
    40: "()[]-!tfᵀ⁰¹²³⁴⁵⁶⁷⁸⁹",
    50: '*^_`"rsz‖–ₖ?',
    60: "ckvxyFLPTY",
    64: "0123456789abdeghnopquESZΣ{}∖",
    70: "ABCKRVX",
    76: "DGHNU∪&",
    86: "MOQ#+<=>~⊙→×−w",
    100: "mW@%…",
}
_EM = {letter: width / 100 for width, letters in _ADVANCES.items() for letter in letters}
"""Advance widths in em, rounded up from DejaVu Sans, the widest of the fonts asked for."""

_BOLD = 1.16


class TextRun(NamedTuple):
    """A piece of text: how far it is moved down and how much it is shrunk, relative to 1 em."""

    text: str
    drop: float
    scale: float


def runs(text: str, drop: float = 0.0, scale: float = 1.0) -> Iterator[TextRun]:
    """Cut `MLP_{V_c}` or `C^{(l+1)}` into pieces; `_x` shifts one letter, `_12` a number.

    The braces of a fragment are part of its name: `G_{·, Tr}` keeps them.
    """
    position = 0
    for match in _SHIFTED.finditer(text):
        if match.start() > position:
            yield TextRun(text[position : match.start()], drop, scale)
        shift = (_DROP if match[1] == "_" else _RAISE) * scale
        yield from runs(match[2] or match[3] or match[4] or "", drop + shift, scale * _SHRINK)
        position = match.end()
    if position < len(text):
        yield TextRun(text[position:], drop, scale)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is drawn at most."""
    total = sum(run.scale * sum(_EM.get(letter, 1.0) for letter in run.text) for run in runs(text))
    return size * total * (_BOLD if bold else 1.0)
