"""Small graphs as SVG strings: patterns, two patterns matched vertex by vertex, a scale of power.

Colours are classes, given by the page's style sheet, so that one drawing serves light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import hypot

from ..graphs.layout import Points, stress_layout
from ..language.patterns import Pattern

HUES = 10
"""How many colours of vertices the style sheet has: classes `hue0` to `hue9`."""

_WIDTH, _HEIGHT, _RADIUS = 250.0, 136.0, 9.0


def matched_patterns(left: Pattern, right: Pattern, bijection: Sequence[int], title: str) -> str:
    """Two patterns side by side; matched vertices have one colour and a dashed line."""
    points = pattern_layout(left)
    others: Points = [(0.0, 0.0)] * right.vertices
    for vertex, mate in enumerate(bijection):
        others[mate] = points[vertex]
    gap = 90.0
    shift = _WIDTH + gap
    parts = []
    for vertex, mate in enumerate(bijection):
        (x, y), (u, v) = points[vertex], others[mate]
        parts.append(
            f'<path class="mate hue{vertex % HUES}" data-mate="{vertex}" d="M {x:.1f} {y:.1f} '
            f"C {x + 60:.1f} {y - 46:.1f} {u + shift - 60:.1f} {v - 46:.1f} {u + shift:.1f} "
            f'{v:.1f}"/>'
        )
    hues = {mate: vertex for vertex, mate in enumerate(bijection)}
    parts += _pattern(left, points, 0.0, {v: v for v in range(left.vertices)})
    parts += _pattern(right, others, shift, hues)
    middle, height = _WIDTH + gap / 2, _HEIGHT if points else 44.0
    parts.append(f'<text class="equals" x="{middle:.1f}" y="{height / 2 + 9:.1f}">=</text>')
    return _svg(2 * _WIDTH + gap, height, title, parts, "patterns")


def single_pattern(pattern: Pattern, title: str) -> str:
    """One pattern, small."""
    points = pattern_layout(pattern)
    hues = dict.fromkeys(range(pattern.vertices), 0)
    return _svg(_WIDTH, _HEIGHT, title, _pattern(pattern, points, 0.0, hues, False), "pattern")


def pattern_layout(pattern: Pattern) -> Points:
    """Where vertices are drawn; the first boundary vertex is left of the second."""
    pairs = [(e.ends[0], e.ends[1]) for e in pattern.edges if len(e.ends) == 2]
    points = stress_layout(pattern.vertices, pairs)
    ends = list(dict.fromkeys(pattern.boundary))
    if len(ends) == 2:
        (x, y), (u, v) = points[ends[0]], points[ends[1]]
        length = hypot(u - x, v - y) or 1.0
        cosine, sine = (u - x) / length, (v - y) / length
        points = [(cosine * a + sine * b, cosine * b - sine * a) for a, b in points]
    return _scaled(points)


def _scaled(points: Points) -> Points:
    """The points moved into the frame."""
    if not points:
        return []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    room = (
        (_WIDTH - 90) / max(max(xs) - min(xs), 1e-6),
        (_HEIGHT - 74) / max(max(ys) - min(ys), 1e-6),
    )
    scale = min(*room, 84.0)
    cx, cy = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    return [(_WIDTH / 2 + scale * (x - cx), _HEIGHT / 2 + 4 + scale * (y - cy)) for x, y in points]


def _pattern(
    pattern: Pattern, points: Points, shift: float, hues: dict[int, int], numbered: bool = True
) -> list[str]:
    parts: list[str] = []
    tags: dict[int, list[str]] = {}
    scalars: list[str] = []
    seen: dict[tuple[int, ...], int] = {}
    for edge in pattern.edges:
        if len(edge.ends) == 2:
            key = tuple(sorted(edge.ends))
            parts += _edge(edge.label, edge.symmetric, edge.ends, points, shift, seen.get(key, 0))
            seen[key] = seen.get(key, 0) + 1
        elif edge.ends:
            tags.setdefault(edge.ends[0], []).append(edge.label)
        else:
            scalars.append(edge.label)
    # Numbers stand in the corner, or in the middle where there is nothing else.
    left, top = (22.0, 4.0) if points else (_WIDTH / 2 - 17 * (len(scalars) - 1), 12.0)
    for place, label in enumerate(scalars):
        x = shift + left + 34 * place
        parts.append(
            f'<g class="scalar"><rect x="{x - 14:.1f}" y="{top}" width="28" height="20" rx="10"/>'
            f'<text x="{x:.1f}" y="{top + 14}">{_label(label)}</text></g>'
        )
    for vertex, (x, y) in enumerate(points):
        roles = [name for name, v in zip(_roles(pattern), pattern.boundary, strict=True)
                 if v == vertex]  # fmt: skip
        ring = " boundary" if roles else ""
        hue = hues.get(vertex, 0)
        parts.append(
            f'<g class="vertex hue{hue % HUES}{ring}" data-mate="{hue}">'
            + (f'<circle class="ring" cx="{shift + x:.1f}" cy="{y:.1f}" r="13.5"/>' if ring else "")
            + f'<circle cx="{shift + x:.1f}" cy="{y:.1f}" r="{_RADIUS}"/>'
            + (f'<text x="{shift + x:.1f}" y="{y + 4:.1f}">{vertex + 1}</text>' if numbered else "")
            + "</g>"
        )
        if roles:
            parts.append(
                f'<text class="role" x="{shift + x:.1f}" y="{y - 19:.1f}">'
                f"{escape(' = '.join(roles))}</text>"
            )
        if tags.get(vertex):
            text = " ".join(map(_label, tags[vertex]))
            parts.append(f'<text class="tag" x="{shift + x:.1f}" y="{y + 29:.1f}">{text}</text>')
    return parts


def _roles(pattern: Pattern) -> tuple[str, ...]:
    return ("row", "column") if len(pattern.boundary) == 2 else ("entry",) * len(pattern.boundary)


def _edge(
    label: str, symmetric: bool, ends: tuple[int, ...], points: Points, shift: float, again: int
) -> list[str]:
    (x, y), (u, v) = points[ends[0]], points[ends[1]]
    x, u = x + shift, u + shift
    if ends[0] == ends[1]:
        path = f"M {x - 6:.1f} {y - 7:.1f} C {x - 26:.1f} {y - 42:.1f} {x + 26:.1f} {y - 42:.1f} {x + 6:.1f} {y - 7:.1f}"  # noqa: E501
        return [f'<path class="edge" d="{path}"/>', _edge_label(label, x, y - 38)]
    length = hypot(u - x, v - y) or 1.0
    nx_, ny_ = -(v - y) / length, (u - x) / length
    bend = 22.0 * ((again + 1) // 2) * (1 if again % 2 else -1) if again else 0.0
    if ends[0] > ends[1]:
        bend = -bend
    mx, my = (x + u) / 2 + bend * nx_, (y + v) / 2 + bend * ny_
    cut = 0.0 if symmetric else _RADIUS + 5
    tx, ty = u - mx, v - my
    reach = hypot(tx, ty) or 1.0
    ex, ey = u - cut * tx / reach, v - cut * ty / reach
    parts = [f'<path class="edge" d="M {x:.1f} {y:.1f} Q {mx:.1f} {my:.1f} {ex:.1f} {ey:.1f}"/>']
    if not symmetric:
        ax, ay = tx / reach, ty / reach
        tip = [(ex + 5 * ax, ey + 5 * ay), (ex - 4 * ax - 4 * ay, ey - 4 * ay + 4 * ax),
               (ex - 4 * ax + 4 * ay, ey - 4 * ay - 4 * ax)]  # fmt: skip
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in tip)
        parts.append(f'<polygon class="tip" points="{corners}"/>')
    side = 11 if not again else 9
    off = side if bend >= 0 else -side
    parts.append(_edge_label(label, mx + off * nx_, my + off * ny_ + 4))
    return parts


def _edge_label(label: str, x: float, y: float) -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}">{_label(label)}</text>'


def _label(label: str) -> str:
    """`m0` with its number below the line; long labels are shortened."""
    if len(label) > 1 and label[1:].isdigit():
        return f'{escape(label[0])}<tspan class="sub" dy="3">{label[1:]}</tspan><tspan dy="-3"></tspan>'  # noqa: E501
    return escape(label if len(label) < 9 else label[:7] + "…")


def _svg(width: float, height: float, title: str, parts: list[str], kind: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


LADDER = ("below 1-WL", "1-WL", "between", "3-WL", "beyond")
Span = tuple[int, int]
"""From where to where on the ladder a thing may stand."""


def power_ladder(places: Sequence[tuple[str, Span | None]]) -> str:
    """A scale from below 1-WL to beyond 3-WL, with a mark or a span for each thing on it."""
    width, step = 400.0, 84.0
    xs = [36 + step * k for k in range(5)]
    top = 16 + 22 * len(places)
    parts = [f'<line class="axis" x1="8" x2="{width - 8}" y1="{top}" y2="{top}"/>']
    for x, name in zip(xs, LADDER, strict=True):
        parts.append(f'<line class="tick" x1="{x}" x2="{x}" y1="{top - 4}" y2="{top + 4}"/>')
        parts.append(f'<text class="rung" x="{x}" y="{top + 18}">{name}</text>')
    for row, (name, span) in enumerate(places):
        y = 13 + 22 * row
        if span is None:
            parts.append(f'<text class="mark-name" x="8" y="{y + 4}">{escape(name)}</text>')
            continue
        low, high = (xs[place] for place in span)
        anchor, at = ("start", high + 11) if span[1] <= 2 else ("end", low - 11)
        for x in {low, high}:
            parts.append(f'<line class="drop" x1="{x}" x2="{x}" y1="{y}" y2="{top}"/>')
        if low == high:
            parts.append(f'<circle class="mark mark{row}" cx="{low}" cy="{y}" r="5.5"/>')
        else:
            parts.append(
                f'<rect class="mark span mark{row}" x="{low - 5}" y="{y - 5}" '
                f'width="{high - low + 10}" height="10" rx="5"/>'
            )
        parts.append(
            f'<text class="mark-name" text-anchor="{anchor}" x="{at}" y="{y + 4}">'
            f"{escape(name)}</text>"
        )
    names = "; ".join(f"{name}{_span_text(span)}" for name, span in places)
    return _svg(width, top + 26, f"Power. {names}", parts, "ladder")


def _span_text(span: Span | None) -> str:
    if span is None:
        return ""
    low, high = (LADDER[place] for place in span)
    return f": {low}" if low == high else f": from {low} to {high}"
