"""One layer, as in the paper's figure: memories, selectors, rules, concatenation, MLPs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import LoweringError
from ...language.sorts import M, Sort
from ..plan import (
    SYMBOLS,
    LayerPlan,
    MemoryUpdate,
    NetworkPlan,
    NumberedSelector,
    RuleStep,
    numbered_selectors,
)
from ..plan_to_text import mixer_sizes, sizes_text
from .palette import MEMORY, MIXER, RULE, SELECTOR
from .svg import BELOW, FAINT, SIZE, Box, Canvas, memory_icon, text_width

PITCH, ROW = 34.0, 26.0
"""Distance between two rows, and the height of the boxes in them."""

LANE = 15.0
"""Distance between the upright lines that carry the memories to their readers."""

_BAND_GAP = 34.0


@dataclass(frozen=True)
class RuleRow:
    """A rule and the heights of its selectors."""

    step: RuleStep
    selectors: tuple[tuple[NumberedSelector, float], ...]

    @property
    def top(self) -> float:
        return self.selectors[0][1] - ROW / 2

    @property
    def bottom(self) -> float:
        return self.selectors[-1][1] + ROW / 2


@dataclass(frozen=True)
class Band:
    """The rows that make the new memory of one variable, its skip connection first."""

    update: MemoryUpdate
    top: float
    bottom: float
    skip: float | None
    rules: tuple[RuleRow, ...]

    @property
    def axis(self) -> float:
        """The height of the memory's drawing, on which its MLP stands too."""
        return (self.top + self.bottom - BELOW) / 2


@dataclass(frozen=True)
class LayerColumns:
    """Where each column begins, and how wide its boxes are."""

    memory: float
    norm: float
    lanes: float
    selectors: float
    selector_width: float
    rules: float
    rule_width: float
    join: float
    mixer: float
    mixer_width: float
    output: float


def bands(layer: LayerPlan, y: float) -> list[Band]:
    """The bands of a layer, from the height `y` down."""
    numbered = numbered_selectors(layer)
    placed = []
    for update in layer.updates:
        band = _band(update, numbered, y)
        placed.append(band)
        y = band.bottom + _BAND_GAP
    return placed


def columns(layer: LayerPlan, x: float, mixers: Sequence[str]) -> LayerColumns:
    """Columns wide enough for every text in them; `mixers` are the lines in the MLPs' boxes."""
    steps = [step for update in layer.updates for step in update.steps]
    norm = x + SIZE + 24
    lanes = norm + (74 if layer.norms else 0)
    selectors = lanes + LANE * len(layer.updates) + 20
    labels = [sizes_text(item.selector.maps) for item in numbered_selectors(layer)]
    selector_width = max((text_width("L_{99}", 14) + text_width(w, 11) for w in labels), default=0)
    selector_width += 26 if steps else 0
    rules = selectors + selector_width + (30 if steps else 0)
    bodies = [body_label(step) for step in steps]
    rule_width = max((text_width(body, 15, bold=True) + 24 for body in bodies), default=0)
    join = rules + rule_width + (text_width("b = 9999", 11) + 26 if steps else 60)
    mixer = join + 24 + 34
    mixer_width = max(text_width(line, 13, bold=True) for line in mixers) + 24
    output = mixer + mixer_width + 40
    edges = (x, norm, lanes, selectors, selector_width, rules, rule_width)
    return LayerColumns(*edges, join, mixer, mixer_width, output)


def body_label(step: RuleStep) -> str:
    """The body of a rule, without the brackets around a Hadamard product."""
    text = step.rule.body_text()
    return text[1:-1] if text.startswith("(") and text.count("(") == 1 else text


def _band(update: MemoryUpdate, numbered: list[NumberedSelector], top: float) -> Band:
    selectors = [[item for item in numbered if item.step is step] for step in update.steps]
    skips = update.kind == "mix" and update.width_in > 0
    count = int(skips) + sum(map(len, selectors))
    height = max(PITCH * count, SIZE + BELOW)
    y = top + (height - PITCH * count) / 2 + PITCH / 2
    skip = y if skips else None
    y += PITCH if skips else 0
    rules = []
    for step, items in zip(update.steps, selectors, strict=True):
        in_order = sorted(items, key=lambda item: item.operand)
        rules.append(RuleRow(step, tuple((item, y + PITCH * k) for k, item in enumerate(in_order))))
        y += PITCH * len(items)
    return Band(update, top, top + height, skip, tuple(rules))


_JOIN = 24.0
_MIXER = 48.0


def layer_svg(plan: NetworkPlan, layer: int | None = None) -> str:
    """The figure of one layer, counted from 1; the last where none is named."""
    number = len(plan.layers) if layer is None else layer
    if not 1 <= number <= len(plan.layers):
        raise LoweringError(f"the network has layers 1 to {len(plan.layers)}, got {number}")
    title = f"{plan.grammar.name or 'The given grammar'}, layer {number} of {len(plan.layers)}"
    canvas = Canvas()
    canvas.text(0, -34, f"{title}, preset {plan.preset.name}", 17, anchor="start", bold=True)
    draw_layer(canvas, plan, number - 1, 0.0, 0.0)
    return canvas.svg(title)


def draw_layer(canvas: Canvas, plan: NetworkPlan, index: int, x: float, y: float) -> None:
    """Draw layer number `index`, counted from 0, with its upper left corner at (x, y)."""
    layer = plan.layers[index]
    placed = bands(layer, y)
    mixers = {band.update.sort: _mixer_lines(band.update) for band in placed}
    at = columns(layer, x, [line for lines in mixers.values() for line in lines])
    _draw_memories(canvas, plan, index, placed, at)
    for band in placed:
        _draw_rules(canvas, band, at)
        _draw_mixer(canvas, band, at, mixers[band.update.sort])
    _draw_new_c(canvas, placed, at)
    _draw_legend(canvas, plan, x, placed[-1].bottom + 44)


def _draw_memories(
    canvas: Canvas, plan: NetworkPlan, index: int, placed: list[Band], at: LayerColumns
) -> None:
    """Each memory, its upright line, and a branch to every reader of it."""
    widths = plan.widths_before(index)
    readers = {sort: _readers(placed, at, sort) for sort in widths}
    # The memory read most stands nearest to its readers: fewest crossings.
    order = sorted((s for s in widths if readers[s]), key=lambda sort: len(readers[sort]))
    for band in placed:
        sort = band.update.sort
        if sort not in widths:
            continue
        frame = Box(at.memory, band.axis - SIZE / 2, SIZE, SIZE)
        if sort in order:
            lane = at.lanes + LANE * (order.index(sort) + 1)
            others = [y for s in order if s != sort for _, y in readers[s]]
            start = _free_height(frame, [y for _, y in readers[sort]], others)
            norm = any(read == sort for read, _ in plan.layers[index].norms)
            _draw_lane(canvas, norm, frame.cx, start, lane, readers[sort], sort, at)
        memory_icon(canvas, at.memory, (band.top + band.bottom) / 2, sort, "l", widths[sort], "in")


def _draw_lane(
    canvas: Canvas,
    norm: bool,
    x: float,
    start: float,
    lane: float,
    branches: list[tuple[float, float]],
    sort: Sort,
    at: LayerColumns,
) -> None:
    color = MEMORY[sort].stroke
    heights = [start, *(y for _, y in branches)]
    if norm:
        box = Box(at.norm, start - 11, 58, 22)
        canvas.line([(x, start), (box.x, start)], color)
        canvas.box(box, MIXER, "norm", f"norm {SYMBOLS[sort]}", "norm", 12, bold=False)
        x = box.right
    canvas.line([(x, start), (lane, start)], color)
    canvas.line([(lane, min(heights)), (lane, max(heights))], color)
    for end, y in branches:
        canvas.arrow([(lane, y), (end, y)], color)
    for y in heights:
        if min(heights) < y < max(heights) or heights.count(y) > 1:
            canvas.dot(lane, y, color)


def _readers(placed: list[Band], at: LayerColumns, sort: Sort) -> list[tuple[float, float]]:
    """Where the branches of a memory end: its skip connection, and the selectors that read it."""
    ends = []
    for band in placed:
        if band.update.sort == sort and band.skip is not None:
            ends.append((at.join, band.skip))
        if band.update.sort == sort and band.update.kind == "bilinear":
            ends.append((at.mixer, band.axis))
        for rule in band.rules:
            ends += [(at.selectors, y) for item, y in rule.selectors if item.selector.sort == sort]
    return ends


def _free_height(frame: Box, branches: list[float], others: list[float]) -> float:
    """Where a memory's line leaves it: near its middle, off every other branch."""
    heights = [frame.cy + side * step for step in range(0, 20, 2) for side in (1, -1)]
    for y in heights:
        if all(abs(y - z) >= 6 for z in others) and all(
            y == z or abs(y - z) >= 6 for z in branches
        ):
            return y
    return frame.cy


def _draw_rules(canvas: Canvas, band: Band, at: LayerColumns) -> None:
    for rule in band.rules:
        box = Box(at.rules, rule.top, at.rule_width, rule.bottom - rule.top)
        label = body_label(rule.step)
        canvas.box(box, RULE, "rule", str(rule.step.rule), label, 15, RULE.stroke)
        for item, y in rule.selectors:
            chosen = Box(at.selectors, y - ROW / 2, at.selector_width, ROW)
            canvas.box(chosen, SELECTOR, "selector", f"L{item.number}")
            name = f"L_{{{item.number}}}"
            canvas.text(chosen.x + 9, y, name, 14, SELECTOR.stroke, "start", bold=True)
            canvas.text(chosen.right - 9, y, sizes_text(item.selector.maps), 11, FAINT, "end")
            canvas.arrow([(chosen.right, y), (box.x, y)], SELECTOR.stroke)
        canvas.arrow([(box.right, box.cy), (at.join, box.cy)], RULE.stroke)
        middle = (box.right + at.join - 8) / 2
        canvas.text(middle, box.cy - 10, f"b = {rule.step.copies}", 11, SELECTOR.stroke)


def _draw_mixer(canvas: Canvas, band: Band, at: LayerColumns, lines: list[str]) -> None:
    sort = band.update.sort
    box = Box(at.mixer, band.axis - _MIXER / 2, at.mixer_width, _MIXER)
    bilinear = band.update.kind == "bilinear"
    if not bilinear:
        join = Box(at.join, band.top, _JOIN, band.bottom - band.top)
        canvas.box(join, MIXER, "join", f"‖ {SYMBOLS[sort]}")
        canvas.text(join.cx, band.axis, "‖", 17, bold=True)
        canvas.arrow([(join.right, band.axis), (box.x, band.axis)])
    canvas.box(box, RULE if bilinear else MIXER, "mixer", lines[0], lines[0], detail=lines[1])
    canvas.arrow([(box.right, band.axis), (at.output, band.axis)])
    middle = (band.top + band.bottom) / 2
    memory_icon(canvas, at.output, middle, sort, "l+1", band.update.width_out, "out")


def _draw_new_c(canvas: Canvas, placed: list[Band], at: LayerColumns) -> None:
    """The released code's node update reads the new C, straight from the MLP above it."""
    for above, band in pairwise(placed):
        if band.update.kind == "bilinear":
            x = at.mixer + at.mixer_width / 2
            start, end = above.axis + _MIXER / 2, band.axis - _MIXER / 2
            color = MEMORY[above.update.sort].stroke
            canvas.arrow([(x, start), (x, end)], color)
            canvas.text(x + 8, (start + end) / 2, "C^{(l+1)}", 13, color, "start", bold=True)


def _draw_legend(canvas: Canvas, plan: NetworkPlan, x: float, y: float) -> None:
    choice = "linear map" if plan.preset.selector == "linear" else "MLP"
    entries = [
        (MEMORY[M], "memory"),
        (SELECTOR, f"L: {choice} that selects channels"),
        (RULE, "rule, applied b times"),
        (MIXER, "‖: concatenation with the old memory"),
    ]
    for paint, text in entries:
        canvas.patch(Box(x, y - 6, 12, 12), paint)
        canvas.text(x + 19, y, text, 12, FAINT, "start")
        x += 19 + text_width(text, 12) + 22


def _mixer_lines(update: MemoryUpdate) -> list[str]:
    """The name of an MLP and its widths."""
    variable = update.sort.variable
    if update.kind == "bilinear":
        return ["Σ_k C_k H W_k", mixer_sizes(update)]
    name = f"{'MLP' if len(update.mixer) > 1 else 'linear'}_{{{variable}}}"
    added = f", then + {SYMBOLS[update.sort]}" if update.residual else ""
    return [name, sizes_text(update.mixer) + added]
