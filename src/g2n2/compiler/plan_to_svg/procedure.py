"""A trace as a picture: the paper's four-step procedure, one row for each step."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ...language.terms import Term
from ..trace import Memories, Trace, TraceStep, title, word_text
from .canvas import FAINT, PAPER, Box, Canvas, Paint, text_width
from .palette import MEMORY, RULE, SELECTOR

_CHIP, _PITCH, _SPACE = 28.0, 36.0, 8.0
_LABEL = 44.0
_WIDEST = 420.0
"""Words of a memory stand in several lines where one would be wider."""

_LONGEST = 34
"""Letters of the longest word written out in full."""


class _Columns(NamedTuple):
    """Where the rule, the inputs, the output and the memories begin."""

    rule: float
    inputs: float
    output: float
    memories: float


def trace_svg(trace: Trace) -> str:
    """The four steps for one word, rule after rule, with the memories after each."""
    canvas = Canvas()
    canvas.text(0, -84, title(trace), 17, anchor="start", bold=True)
    at = _columns(trace)
    headings = ("1 choose a rule", "2 choose inputs", "3 compute", "4 store")
    for x, heading in zip(at, headings, strict=True):
        canvas.text(x, -34, heading, 13, FAINT, "start", bold=True)
    panel = _draw_memories(canvas, at.memories, 0.0, trace, trace.start, None)
    canvas.text(0, panel.cy, "start", 13, FAINT, "start")
    for step in trace.steps:
        panel = _draw_step(canvas, at, panel.bottom + 22, trace, step)
    return canvas.svg(title(trace))


def _columns(trace: Trace) -> _Columns:
    """Columns as wide as the widest thing in them, their headings included."""
    steps = trace.steps
    rules = [text_width(str(step.rule), 14, bold=True) + 24 for step in steps]
    inputs = [_chip_width(word) for step in steps for word in step.inputs]
    outputs = [_chip_width(step.output) for step in steps]
    x = text_width("read-out", 13) + 26
    places = [x]
    for widths, heading in ((rules, "rule"), (inputs, "inputs"), (outputs, "")):
        x += max([*widths, text_width(f"2 choose {heading}", 13, bold=True)]) + 52
        places.append(x)
    return _Columns(*places)


def _draw_step(canvas: Canvas, at: _Columns, y: float, trace: Trace, step: TraceStep) -> Box:
    """One row; returns its memories."""
    inputs = _PITCH * len(step.inputs)
    spare = max(0.0, (inputs - _panel_height(step.memories)) / 2)
    panel = _draw_memories(canvas, at.memories, y + spare, trace, step.memories, step.output)
    middle = panel.cy
    label = "read-out" if step.layer is None else f"layer {step.layer}"
    canvas.text(0, middle, label, 13, FAINT, "start")
    rule = Box(at.rule, middle - 18, text_width(str(step.rule), 14, bold=True) + 24, 36)
    canvas.box(rule, RULE, "rule", str(step.rule), str(step.rule), 14, RULE.stroke)
    output = _draw_chip(canvas, at.output, middle, step.output, "output", new=True)
    for index, word in enumerate(step.inputs):
        off = index - (len(step.inputs) - 1) / 2
        chosen = _draw_chip(canvas, at.inputs, middle + _PITCH * off, word, "input")
        bend, end = output.x - 24, middle + 12 * off
        path = [(chosen.right, chosen.cy), (bend, chosen.cy), (bend, end), (output.x, end)]
        path = [path[0], *(b for a, b in pairwise(path) if a != b)]
        canvas.arrow(path, SELECTOR.stroke)
    canvas.arrow([(output.right, middle), (panel.x, middle)])
    return Box(panel.x, panel.y, panel.width, panel.height + spare)


def _draw_memories(
    canvas: Canvas, x: float, y: float, trace: Trace, memories: Memories, new: Term | None
) -> Box:
    """Every memory with its words, the one just stored filled in."""
    panel = Box(x, y, _panel_width(trace), _panel_height(memories))
    canvas.box(panel, Paint("#c9ced6", "#fbfbfc"), "memories", "")
    row = y + _SPACE + _CHIP / 2
    for sort, words in memories.items():
        canvas.text(x + 12, row, sort.variable, 14, MEMORY[sort.plain].stroke, "start", bold=True)
        for line in _lines(words) or [[]]:
            left = x + _LABEL
            for word in line:
                chip = _draw_chip(canvas, left, row, word, "stored", new=word == new)
                left = chip.right + _SPACE
            row += _PITCH
    return panel


def _draw_chip(
    canvas: Canvas, x: float, cy: float, word: Term, kind: str, new: bool = False
) -> Box:
    box = Box(x, cy - _CHIP / 2, _chip_width(word), _CHIP)
    color, fill = MEMORY[word.sort]
    paint = Paint(color, fill if new else PAPER)
    return canvas.box(
        box, paint, kind, word_text(word), _short(word), 13, color, bold=new, radius=3
    )


def _panel_width(trace: Trace) -> float:
    last: Memories = trace.steps[-1].memories if trace.steps else trace.start
    lines = [line for words in last.values() for line in _lines(words)]
    return _LABEL + max(sum(_chip_width(word) + _SPACE for word in line) for line in lines)


def _panel_height(memories: Memories) -> float:
    return _PITCH * sum(len(_lines(words) or [[]]) for words in memories.values()) + _SPACE


def _lines(words: tuple[Term, ...]) -> list[list[Term]]:
    """The words of a memory in lines that are not too wide."""
    lines: list[list[Term]] = []
    used = 0.0
    for word in words:
        width = _chip_width(word) + _SPACE
        if lines and used + width <= _WIDEST:
            lines[-1].append(word)
            used += width
        else:
            lines.append([word])
            used = width
    return lines


def _chip_width(word: Term) -> float:
    return max(34.0, text_width(_short(word), 13, bold=True) + 18)


def _short(word: Term) -> str:
    text = word_text(word)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
