"""The three steps of the paper: operations, exhaustive grammar, reduced grammar, layer."""

from __future__ import annotations

from itertools import groupby

from ...grammars.fragments import Fragment
from ...grammars.grammar import Grammar
from ...grammars.rules import Rule
from ...language.operations import OPERATIONS
from ..grammar_to_plan import plan_network
from ..plan import NetworkPlan
from ..presets import Preset
from .canvas import FAINT, INK, Box, Canvas, Paint, text_width
from .layer import draw_layer
from .palette import MIXER, RULE

ColouredText = tuple[str, str, bool]
"""Text, colour, bold."""

_LINE = 25.0
_SIZE = 14.0
_CAPTION = 13.5
_WIDEST = 400.0


def overview_svg(
    larger: Grammar,
    reduced: Grammar,
    fragment: Fragment | None = None,
    width: int = 64,
    preset: str | Preset = "paper",
) -> str:
    """The figure of a grammar, usually the exhaustive one of a fragment, on its way to a layer."""
    caption = "the rules given" if fragment is None else "every typed rule"
    fragment = fragment or Fragment(larger.operations)
    reduced = reduced.named(reduced.name or f"r-{larger.name}")
    plan = plan_network(reduced, width=width, layers=3, preset=preset, supports=True)
    kept = set(reduced.all_rules)
    gone = len(set(larger.all_rules) - kept)
    operations = [OPERATIONS[name] for name in OPERATIONS if name in fragment]
    canvas = Canvas()
    title = f"From {fragment} to a network layer"
    canvas.text(0, -76, title, 17, bold=True, anchor="start")
    last = _draw_stages(
        canvas,
        [
            (
                "operations",
                [
                    [(f"{o.symbol}  ", INK, True), (o.meaning or o.name, FAINT, False)]
                    for o in operations
                ],
            ),
            (larger.name, _grammar_lines(larger, kept)),
            (reduced.name, _grammar_lines(reduced, kept)),
        ],
        [caption, f"{gone} rule{'s' * (gone != 1)} removed by proof"],
    )
    _draw_framed_layer(canvas, plan, last)
    return canvas.svg(title)


def _draw_stages(
    canvas: Canvas, stages: list[tuple[str, list[list[ColouredText]]]], captions: list[str]
) -> Box:
    """Boxes of text from left to right with arrows between them; the last box."""
    middle = max(len(lines) for _, lines in stages) * _LINE / 2 + 12
    box = _text_box(canvas, 0.0, middle, *stages[0])
    for stage, caption in zip(stages[1:], captions, strict=True):
        start, gap = box.right, text_width(caption, _CAPTION) + 36
        box = _text_box(canvas, start + gap, middle, *stage)
        canvas.arrow([(start, middle), (box.x, middle)])
        canvas.text(start + gap / 2 - 3, middle - 14, caption, _CAPTION, FAINT)
    return box


def _draw_framed_layer(canvas: Canvas, plan: NetworkPlan, last: Box) -> None:
    """The layer in a frame as wide as the stages above it, which the last of them points at."""
    trial = Canvas()
    draw_layer(trial, plan, plan.shown_layer, 0.0, 0.0)
    needed = trial.bounds
    top = canvas.bounds.bottom + 62
    width = max(last.right, needed.width + 60)
    frame = Box(0.0, top, width, needed.height + 84)
    canvas.box(frame, Paint(MIXER.stroke, "#fdfdfe"), "stage", "layer")
    canvas.text(frame.x + 24, frame.y + 24, "layer", 15, anchor="start", bold=True)
    canvas.arrow([(last.cx, last.bottom), (last.cx, frame.y)])
    caption = "a memory for each variable, a step for each rule"
    canvas.text(last.cx - 12, frame.y - 24, caption, _CAPTION, FAINT, "end")
    x = frame.cx - needed.width / 2 - needed.x
    draw_layer(canvas, plan, plan.shown_layer, x, frame.y + 52 - needed.y)


def _grammar_lines(grammar: Grammar, kept: set[Rule]) -> list[list[ColouredText]]:
    """The rules of each variable, kept ones in blue, lines broken where they get too long."""
    lines: list[list[ColouredText]] = []
    ordered = sorted(grammar.all_rules, key=lambda rule: grammar.variables.index(rule.head))
    for sort, rules in groupby(ordered, key=lambda rule: rule.head):
        line: list[ColouredText] = [(f"{sort.variable} → ", INK, True)]
        for index, rule in enumerate(rules):
            color = RULE.stroke if rule in kept else FAINT
            pieces: list[ColouredText] = [(" | ", FAINT, False)] if index else []
            pieces.append((rule.body_text(), color, rule in kept))
            if _width([*line, *pieces]) > _WIDEST:
                lines.append(line)
                line = [("      ", INK, False)]
            line += pieces
        lines.append(line)
    return lines


def _text_box(
    canvas: Canvas, x: float, middle: float, name: str, lines: list[list[ColouredText]]
) -> Box:
    """A titled box with lines of coloured text, centred on the height `middle`."""
    width = max([*map(_width, lines), text_width(name, 15, bold=True)]) + 36
    height = _LINE * len(lines) + 24
    box = Box(x, middle - height / 2, width, height)
    canvas.box(box, Paint(MIXER.stroke, "#fafbfc"), "stage", name)
    canvas.text(box.cx, box.y - 18, name, 15, bold=True)
    for row, line in enumerate(lines):
        at, y = x + 18, box.y + 12 + _LINE * (row + 0.5)
        for text, color, bold in line:
            canvas.text(at, y, text, _SIZE, color, "start", bold)
            at += text_width(text, _SIZE, bold)
    return box


def _width(line: list[ColouredText]) -> float:
    return sum(text_width(text, _SIZE, bold) for text, _, bold in line)
