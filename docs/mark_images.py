"""Draws the pictures of beyond-3wl.md: `python docs/mark_images.py` writes images/mark*.svg."""

from __future__ import annotations

from html import escape
from pathlib import Path

import networkx as nx

from g2n2.compiler.grammar_to_plan import plan_network
from g2n2.compiler.plan_to_svg import layer_svg
from g2n2.grammars.catalogue import find_grammar
from g2n2.graphs import adjacency
from g2n2.graphs.layout import graph_layout

IMAGES = Path(__file__).parent / "images"
HOUSE = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (3, 4)])
SIZE, RED, BLUE, GREY = 100, "#c0392b", "#2c6fbb", "#667"
BESIDE = {
    "ab": (-12, 0),
    "bc": (0, 18),
    "ac": (12, 0),
    "va": (15, 14),
    "vb": (14, 16),
    "vc": (-14, 16),
}
"""Where the label of an edge stands, from its middle."""
Parts = list[str]


def text(x: float, y: float, words: str, size: int = 15, colour: str = "#223") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="middle">{escape(words)}</text>'
    )


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{to_x:.0f}" y2="{to_y:.0f}" stroke="{GREY}" '
        'stroke-width="1.6" marker-end="url(#head)"/>'
    )


def graph(x: float, y: float, marked: int | None) -> Parts:
    """The house with its upper left corner at (x, y), one vertex marked or none."""
    matrix = adjacency(HOUSE)
    places = [(x + SIZE * a, y + SIZE * b) for a, b in graph_layout(matrix)]
    parts = [
        f'<line x1="{places[i][0]:.1f}" y1="{places[i][1]:.1f}" x2="{places[j][0]:.1f}" '
        f'y2="{places[j][1]:.1f}" stroke="{GREY}" stroke-width="2"/>'
        for i, j in HOUSE.edges
    ]
    for vertex, (a, b) in enumerate(places):
        colour, radius = (RED, 9) if vertex == marked else (BLUE, 6)
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius}" fill="{colour}"/>')
    return parts


def picture(width: int, height: int, title: str, parts: Parts) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="DejaVu Sans, sans-serif" role="img">'
        f"<title>{escape(title)}</title>"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{GREY}"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def copies() -> str:
    """A graph, a copy of it for each marked vertex, the layers on each, and the sum."""
    parts = [*graph(20, 160, None), text(70, 295, "G")]
    for row, vertex in enumerate((0, 2, 4)):
        y = 20 + 140 * row
        parts += [
            arrow(135, 210, 195, y + 50),
            *graph(215, y, vertex),
            text(265, y + 128, f"(G, v{'₁₃₅'[row]})", 14),
            arrow(330, y + 50, 380, y + 50),
            f'<rect x="385" y="{y + 25}" width="120" height="50" rx="6" fill="#eef3fa" '
            f'stroke="{BLUE}"/>',
            text(445, y + 46, "V′ → M′V′ | 1 | v", 12),
            text(445, y + 64, "M′ → …, 3 layers", 12),
            arrow(510, y + 50, 560, y + 50),
            text(592, y + 55, f"S′(v{'₁₃₅'[row]})"),
            arrow(625, y + 50, 690 + 4 * (row == 1), 180 + 30 * row),
        ]
    parts += [
        text(
            445,
            460,
            "a copy for each of the five nodes (three are shown), the same weights for all",
            13,
            GREY,
        )
    ]
    parts += [
        f'<circle cx="718" cy="210" r="22" fill="#fff" stroke="{RED}" stroke-width="2"/>',
        text(718, 217, "Σ", 20, RED),
        arrow(742, 210, 780, 210),
        text(797, 215, "S"),
    ]
    return picture(830, 475, "One copy of the graph for each mark, and the sum over them", parts)


def pattern() -> str:
    """K4 with its labelled vertex: without it a triangle is left."""
    at = {"v": (150, 120), "a": (150, 25), "b": (55, 185), "c": (245, 185)}
    parts = []
    for one, other in (("a", "b"), ("b", "c"), ("a", "c"), ("v", "a"), ("v", "b"), ("v", "c")):
        (x, y), (to_x, to_y) = at[one], at[other]
        colour, label = (RED, "Av") if "v" in (one, other) else (GREY, "A")
        parts.append(
            f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{colour}" stroke-width="2"/>'
        )
        right, down = BESIDE[one + other]
        parts.append(text((x + to_x) / 2 + right, (y + to_y) / 2 + down, label, 13, colour))
    for name, (x, y) in at.items():
        colour = RED if name == "v" else BLUE
        parts.append(f'<circle cx="{x}" cy="{y}" r="9" fill="{colour}"/>')
    parts += [
        text(150, 148, "v", 15, RED),
        text(480, 70, "Σv. (Av)ᵀ(A·diag(Av)·A ⊙ A)(Av)", 17),
        text(480, 105, "counts each K4 24 times", 14, GREY),
        text(480, 140, "rook 4×4: 192,  Shrikhande: 0", 15),
        text(480, 175, "without v it is a triangle, which 3-WL counts", 14, GREY),
    ]
    return picture(690, 215, "K4, counted with one of its vertices marked", parts)


def layer() -> str:
    """The layer that runs on each copy, as the compiler plans it."""
    return layer_svg(plan_network(find_grammar("r-G_L3Σ"), width=32, layers=3, preset="modern"))


def main() -> None:
    for name, draw in (("mark", copies), ("mark-pattern", pattern), ("mark-layer", layer)):
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
