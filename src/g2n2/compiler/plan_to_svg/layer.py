"""One layer, as in the paper's figure: memories, selectors, rules, concatenation, MLPs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ...errors import LoweringError
from ...language.sorts import M, Sort
from ..plan import (
    MemoryUpdate,
    NetworkPlan,
    NumberedSelector,
    RuleStep,
    numbered_selectors,
    symbol,
)
from ..plan_to_text import mixer_sizes, sizes_text
from .canvas import FAINT, Box, Canvas, text_width
from .palette import BELOW, MEMORY, MIXER, RULE, SELECTOR, SIZE, memory_icon

PITCH, ROW = 34.0, 26.0
"""Distance between two rows, and the height of the boxes in them."""

LANE = 15.0
"""Distance between the upright lines that carry the memories to their readers."""

_BAND_GAP = 34.0
_JOIN = 24.0
_MIXER = 48.0
BILINEAR = "Σ_k C_k H W_k"


@dataclass(frozen=True)
class Band:
    """The rows that make the new memory of one variable, its skip connection first."""

    update: MemoryUpdate
    top: float
    bottom: float
    skip: float | None
    # the rules, and the heights of their selectors
    rules: tuple[tuple[RuleStep, tuple[tuple[NumberedSelector, float], ...]], ...]

    @property
    def axis(self) -> float:
        """The height of the memory's drawing, on which its MLP stands too."""
        return (self.top + self.bottom - BELOW) / 2

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def body_label(step: RuleStep) -> str:
    """The body of a rule, without the brackets around a Hadamard product."""
    text = step.rule.body_text()
    return text[1:-1] if text.startswith("(") and text.find(")") == len(text) - 1 else text


def layer_svg(plan: NetworkPlan, layer: int | None = None) -> str:
    """The figure of one layer, counted from 1; the last with all memories where none is named."""
    number = plan.shown_layer + 1 if layer is None else layer
    if not 1 <= number <= len(plan.layers):
        raise LoweringError(f"the network has layers 1 to {len(plan.layers)}, got {number}")
    title = f"{plan.grammar.name or 'The given grammar'}, layer {number} of {len(plan.layers)}"
    canvas = Canvas()
    canvas.text(0, -34, f"{title}, preset {plan.preset.name}", 17, anchor="start", bold=True)
    draw_layer(canvas, plan, number - 1, 0.0, 0.0)
    return canvas.svg(title)


def draw_layer(canvas: Canvas, plan: NetworkPlan, index: int, x: float, y: float) -> None:
    """Draw layer number `index`, counted from 0, with its upper left corner at (x, y)."""
    drawing = _LayerDrawing(canvas, plan, index, x, y)
    drawing.draw_memories()
    for band in drawing.updated:
        drawing.draw_rules(band)
        drawing.draw_mixer(band)
    drawing.draw_new_c()
    drawing.draw_legend()


class _LayerDrawing:
    """The bands of a layer, and its columns: where each begins, and how wide its boxes are."""

    def __init__(self, canvas: Canvas, plan: NetworkPlan, index: int, x: float, y: float) -> None:
        layer = plan.layers[index]
        numbered = numbered_selectors(layer)
        self.canvas, self.plan, self.x = canvas, plan, x
        self.widths, self.normed = plan.widths_before(index), dict(layer.norms)
        self.bands: list[Band] = []
        for update in layer.updates:
            self.bands.append(_band(update, numbered, y))
            y = self.bands[-1].bottom + _BAND_GAP
        self.updated = list(self.bands)
        for sort in {item.selector.sort: None for item in numbered}:  # read and not updated
            if all(sort != update.sort for update in layer.updates):
                only_read = MemoryUpdate(sort, 0, (), ())
                self.bands.append(_band(only_read, [], y))
                y = self.bands[-1].bottom + _BAND_GAP
        steps = [step for update in layer.updates for step in update.steps]
        self.norm = x + SIZE + 24
        self.lanes = self.norm + (74 if layer.norms else 0)
        self.selectors = self.lanes + LANE * len(self.bands) + 20
        sizes = [text_width(sizes_text(item.selector.maps), 11) for item in numbered]
        self.selector_width = max((text_width("L_{99}", 14) + width for width in sizes), default=0)
        self.selector_width += 26 if steps else 0
        self.rules = self.selectors + self.selector_width + (30 if steps else 0)
        bodies = [text_width(body_label(step), 15, bold=True) for step in steps]
        self.rule_width = max((width + 24 for width in bodies), default=0)
        self.join = self.rules + self.rule_width
        self.join += text_width("b = 9999", 11) + 26 if steps else 60
        self.mixer = self.join + _JOIN + 34
        lines = [line for update in layer.updates for line in _mixer_lines(update)]
        self.mixer_width = max(text_width(line, 13, bold=True) for line in lines) + 24
        self.output = self.mixer + self.mixer_width + 40

    def draw_memories(self) -> None:
        """Each memory, its upright line, and a branch to every reader of it."""
        readers = {sort: self._readers(sort) for sort in self.widths}
        # The memory read most stands nearest to its readers: fewest crossings.
        order = sorted((s for s in readers if readers[s]), key=lambda sort: len(readers[sort]))
        for band in self.bands:
            sort = band.update.sort
            if sort not in self.widths:
                continue
            if sort in order:
                frame = Box(self.x, band.axis - SIZE / 2, SIZE, SIZE)
                lane = self.lanes + LANE * (order.index(sort) + 1)
                others = [y for s in order if s != sort for _, y in readers[s]]
                start = _free_height(frame, [y for _, y in readers[sort]], others)
                self._draw_lane(sort, frame.cx, start, lane, readers[sort])
            memory_icon(self.canvas, self.x, band.middle, sort, "l", self.widths[sort], "in")

    def _readers(self, sort: Sort) -> list[tuple[float, float]]:
        """Where the branches of a memory end: its skip connection, and its selectors."""
        ends = []
        for band in self.bands:
            if band.update.sort == sort and band.skip is not None:
                ends.append((self.join, band.skip))
            if band.update.sort == sort and band.update.kind == "bilinear":
                ends.append((self.mixer, band.axis))
            for _, selectors in band.rules:
                read = [y for item, y in selectors if item.selector.sort == sort]
                ends += [(self.selectors, y) for y in read]
        return ends

    def _draw_lane(
        self, sort: Sort, x: float, start: float, lane: float, branches: list[tuple[float, float]]
    ) -> None:
        canvas, color = self.canvas, MEMORY[sort.plain].stroke
        heights = [start, *(y for _, y in branches)]
        if sort in self.normed:
            box = Box(self.norm, start - 11, 58, 22)
            canvas.line([(x, start), (box.x, start)], color)
            canvas.box(box, MIXER, "norm", f"norm {symbol(sort)}", "norm", 12, bold=False)
            x = box.right
        canvas.line([(x, start), (lane, start)], color)
        canvas.line([(lane, min(heights)), (lane, max(heights))], color)
        for end, y in branches:
            canvas.arrow([(lane, y), (end, y)], color)
        for y in heights:
            if min(heights) < y < max(heights) or heights.count(y) > 1:
                canvas.dot(lane, y, color)

    def draw_rules(self, band: Band) -> None:
        """The rules of a band, each behind its selectors."""
        canvas = self.canvas
        for step, selectors in band.rules:
            top, bottom = selectors[0][1] - ROW / 2, selectors[-1][1] + ROW / 2
            box = Box(self.rules, top, self.rule_width, bottom - top)
            canvas.box(box, RULE, "rule", str(step.rule), body_label(step), 15, RULE.stroke)
            for item, y in selectors:
                chosen = Box(self.selectors, y - ROW / 2, self.selector_width, ROW)
                canvas.box(chosen, SELECTOR, "selector", f"L{item.number}")
                name = f"L_{{{item.number}}}"
                canvas.text(chosen.x + 9, y, name, 14, SELECTOR.stroke, "start", bold=True)
                canvas.text(chosen.right - 9, y, sizes_text(item.selector.maps), 11, FAINT, "end")
                canvas.arrow([(chosen.right, y), (box.x, y)], SELECTOR.stroke)
            canvas.arrow([(box.right, box.cy), (self.join, box.cy)], RULE.stroke)
            middle = (box.right + self.join - 8) / 2
            canvas.text(middle, box.cy - 10, f"b = {step.copies}", 11, SELECTOR.stroke)

    def draw_mixer(self, band: Band) -> None:
        """The concatenation, the MLP and the new memory."""
        canvas, update = self.canvas, band.update
        box = Box(self.mixer, band.axis - _MIXER / 2, self.mixer_width, _MIXER)
        bilinear = update.kind == "bilinear"
        if not bilinear:
            join = Box(self.join, band.top, _JOIN, band.bottom - band.top)
            canvas.box(join, MIXER, "join", f"‖ {symbol(update.sort)}")
            canvas.text(join.cx, band.axis, "‖", 17, bold=True)
            canvas.arrow([(join.right, band.axis), (box.x, band.axis)])
        name, sizes = _mixer_lines(update)
        canvas.box(box, RULE if bilinear else MIXER, "mixer", name, name, detail=sizes)
        canvas.arrow([(box.right, band.axis), (self.output, band.axis)])
        width = update.width_out
        memory_icon(canvas, self.output, band.middle, update.sort, "l+1", width, "out")

    def draw_new_c(self) -> None:
        """The released code's node update reads the new C, straight from the MLP above it."""
        for above, band in pairwise(self.updated):
            if band.update.kind == "bilinear":
                x = self.mixer + self.mixer_width / 2
                start, end = above.axis + _MIXER / 2, band.axis - _MIXER / 2
                color, middle = MEMORY[above.update.sort.plain].stroke, (start + end) / 2
                self.canvas.arrow([(x, start), (x, end)], color)
                self.canvas.text(x + 8, middle, "C^{(l+1)}", 13, color, "start", bold=True)

    def draw_legend(self) -> None:
        """What the colours stand for, below the last band."""
        x, y = self.x, self.bands[-1].bottom + 44
        choice = "linear map" if self.plan.preset.selector == "linear" else "MLP"
        for paint, text in (
            (MEMORY[M], "memory"),
            (SELECTOR, f"L: {choice} that selects channels"),
            (RULE, "rule, applied b times"),
            (MIXER, "‖: concatenation with the old memory"),
        ):
            self.canvas.patch(Box(x, y - 6, 12, 12), paint)
            self.canvas.text(x + 19, y, text, 12, FAINT, "start")
            x += 19 + text_width(text, 12) + 22


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
        rules.append((step, tuple((item, y + PITCH * k) for k, item in enumerate(in_order))))
        y += PITCH * len(items)
    return Band(update, top, top + height, skip, tuple(rules))


def _free_height(frame: Box, branches: list[float], others: list[float]) -> float:
    """Where a memory's line leaves it: near its middle, off every other branch."""
    for y in (frame.cy + side * step for step in range(0, 20, 2) for side in (1, -1)):
        crossed = [z for z in branches if z != y] + others
        if all(abs(y - z) >= 6 for z in crossed):
            return y
    return frame.cy


def _mixer_lines(update: MemoryUpdate) -> tuple[str, str]:
    """The name of an MLP and its widths."""
    if update.kind == "bilinear":
        return BILINEAR, mixer_sizes(update)
    name = f"{'MLP' if len(update.mixer) > 1 else 'linear'}_{{{update.sort.variable}}}"
    added = f", then + {symbol(update.sort)}" if update.residual else ""
    return name, mixer_sizes(update) + added
