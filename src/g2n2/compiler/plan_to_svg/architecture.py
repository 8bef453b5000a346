"""The whole network: graph, first memories, layers, read-outs, decision, output."""

from __future__ import annotations

from typing import NamedTuple

from ...described import counted
from ...language.sorts import M, R, S, Sort, V
from ..plan import NetworkPlan, shape, symbol
from ..plan_to_text import input_text, local_texts, pool_texts, sizes_text
from .canvas import FAINT, Box, Canvas, Point, text_width
from .layer import BILINEAR, body_label
from .palette import BELOW, INPUT, MEMORY, MIXER, RULE, SELECTOR, SIZE, memory_icon

_GAP = 58.0
"""Room for an arrow between two columns."""

_LINE = 19.0
_PART, _PART_PITCH = 28.0, 38.0
_SHOWN = 4
"""Layers drawn one by one; of more, those in the middle stand behind one box."""

_PARTS = {"H": V, "R": R, "s": S}


def architecture_svg(plan: NetworkPlan) -> str:
    """The figure of a whole network."""
    title = f"{plan.grammar.name or 'The given grammar'}: the whole network"
    canvas = Canvas()
    drawing = _Architecture(canvas, plan)
    heading = f"{title}, preset {plan.preset.name}"
    if drawing.sums:
        shared = f"after {counted(len(plan.trunk), 'shared layer')} " if plan.trunk else ""
        heading += f"; {shared}a copy for each marked node, added up at Σ"
    canvas.text(0, drawing.top - 62, heading, 17, anchor="start", bold=True)
    drawing.draw()
    return canvas.svg(title)


class _Part(NamedTuple):
    """A part of the read-out: its text, the memory it stands beside, the memories it reads."""

    text: str
    beside: Sort
    sources: tuple[Sort, ...]


class _Architecture:
    """Draws from left to right; `x` is where the next column begins."""

    def __init__(self, canvas: Canvas, plan: NetworkPlan) -> None:
        self.canvas, self.plan, self.x = canvas, plan, 0.0
        self.sums = plan.marks if plan.marks and not plan.scoped else None
        self.final = plan.widths_before(len(plan.layers))
        self.parts = _readout_parts(plan)
        self.rows: dict[Sort, Box] = {}
        y = 0.0
        for sort in self.final:
            height = self._row_height(sort)
            self.rows[sort] = Box(0, y, 0, height)
            y += height + 30
        self.top, self.bottom = 0.0, y - 30

    def draw(self) -> None:
        self._graph()
        self._memories(0, formulas=True)
        if self.plan.embeddings:
            self._embeddings()
        count = len(self.plan.layers)
        hidden = range(2, count - 1) if count > _SHOWN else range(0)
        for index in range(count):
            if index not in hidden:
                self._layer(index)
            elif index == hidden[0]:
                self._hidden_layers(hidden[0] + 1, hidden[-1] + 1, index)
        self._memories(count)
        self._readouts()

    def _row_height(self, sort: Sort) -> float:
        updates = [update for layer in self.plan.layers for update in layer.updates]
        rules = max((len(update.steps) for update in updates if update.sort == sort), default=0)
        parts = sum(part.beside == sort for part in self.parts)
        return max(SIZE + BELOW + 24, _LINE * rules + 20, _PART_PITCH * parts)

    def _axis(self, sort: Sort) -> float:
        return self.rows[sort].cy

    def _widths(self, layer: int) -> dict[Sort, int]:
        """Channels before a layer; after the last of the memories that it makes."""
        widths = self.plan.widths_before(layer)
        last = layer == len(self.plan.layers)
        return self.plan.layers[-1].widths() if last else widths

    def _arrows(self, layer: int, end: float, start: float) -> None:
        """One arrow for each memory that goes into layer number `layer`, with its channels."""
        for sort, width in self._widths(layer).items():
            y = self._axis(sort)
            self.canvas.arrow([(start, y), (end, y)], MEMORY[sort.plain].stroke)
            self.canvas.text((start + end) / 2 - 3, y - 11, str(width), 11, FAINT)

    def _fan(
        self, start: Point, heights: list[float], end: float, color: str, share: float = 0.5
    ) -> None:
        """Arrows from one point to several heights, by one upright line, `share` of the way."""
        if heights == [start[1]]:
            self.canvas.arrow([start, (end, start[1])], color)
        elif heights:
            bend = start[0] + share * (end - start[0])
            self.canvas.line([start, (bend, start[1])], color)
            reached = [start[1], *heights]
            self.canvas.line([(bend, min(reached)), (bend, max(reached))], color)
            for y in heights:
                self.canvas.arrow([(bend, y), (end, y)], color)

    def _graph(self) -> None:
        inputs = self.plan.inputs
        lines = [("A", "n×n")]
        if inputs.node_features:
            lines.append(("X", f"n×{inputs.node_features}"))
        if inputs.edge_features:
            lines.append(("E", f"n×n×{inputs.edge_features}"))
        height = 44 + 24 * len(lines)
        box = Box(0, (self.top + self.bottom - height) / 2, 116, height)
        self.canvas.box(box, INPUT, "graph", "graph")
        self.canvas.text(box.cx, box.y + 20, "graph", 14, INPUT.stroke, bold=True)
        for row, (name, size) in enumerate(lines):
            y = box.y + 48 + 24 * row
            self.canvas.text(box.x + 14, y, name, 14, INPUT.stroke, "start", bold=True)
            self.canvas.text(box.right - 14, y, size, 11, FAINT, "end")
        widths = [text_width(input_text(self.plan, s), 12) for s in _input_widths(self.plan)]
        self.x = box.right + max(_GAP, max(widths) - SIZE + 16)  # what stands above the icons
        ends = [self._axis(sort) for sort in _input_widths(self.plan)]
        self._fan((box.right, box.cy), ends, self.x, INPUT.stroke)

    def _memories(self, layer: int, formulas: bool = False) -> None:
        """A column of memories: the inputs, or what the last layer made."""
        widths = _input_widths(self.plan) if formulas else self._widths(layer)
        if not formulas:
            self._arrows(layer, self.x + _GAP, self.x)
            self.x += _GAP
        for sort, width in widths.items():
            cy = self._axis(sort) + BELOW / 2
            frame = memory_icon(self.canvas, self.x, cy, sort, str(layer), width, f"at {layer}")
            if formulas:
                text = input_text(self.plan, sort)
                self.canvas.text(frame.cx, frame.y - 13, text, 12, INPUT.stroke)
        self.x += SIZE

    def _embeddings(self) -> None:
        label = max((sizes_text([m]) for _, m in self.plan.embeddings), key=len)
        width = max(text_width("linear", 13, bold=True), text_width(label, 11)) + 20
        for sort, linear in self.plan.embeddings:
            y = self._axis(sort)
            box = Box(self.x + _GAP, y - 22, width, 44)
            self.canvas.arrow([(self.x, y), (box.x, y)], MEMORY[sort.plain].stroke)
            sizes = sizes_text([linear])
            self.canvas.box(box, MIXER, "embedding", symbol(sort), "linear", 13, detail=sizes)
        self.x += _GAP + width

    def _layer(self, index: int) -> None:
        layer = self.plan.layers[index]
        bodies = {
            update.sort: [body_label(step) for step in update.steps] for update in layer.updates
        }
        texts = [body for labels in bodies.values() for body in labels]
        width = max([text_width("layer 99", 14, True), *(text_width(text, 13) for text in texts)])
        box = self._column(index, width + 32, f"layer {index + 1}")
        for update in layer.updates:
            sort = update.sort
            shown = bodies[sort] or ([BILINEAR] if update.kind == "bilinear" else [])
            first = self._axis(sort) - _LINE * (len(shown) - 1) / 2
            for row, body in enumerate(shown):
                self.canvas.text(box.cx, first + _LINE * row, body, 13, RULE.stroke)

    def _hidden_layers(self, first: int, last: int, index: int) -> None:
        name = f"layers {first}–{last}" if last > first else f"layer {first}"
        box = self._column(index, text_width(name, 14, bold=True) + 20, name)
        self.canvas.text(box.cx, box.cy, "…", 20, RULE.stroke)

    def _column(self, index: int, width: float, name: str) -> Box:
        """A box over all rows with the memories going in."""
        start = self.x
        self.x += _GAP
        self._arrows(index, self.x, start)
        box = Box(self.x, self.top - 36, width, self.bottom - self.top + 48)
        self.canvas.box(box, RULE, "layer", name)
        self.canvas.text(box.cx, box.y + 18, name, 14, RULE.stroke, bold=True)
        self.x = box.right
        return box

    def _readouts(self) -> None:
        start, x = self.x, self.x + _GAP
        width = max(text_width(part.text, 13) for part in self.parts) + 24
        join = x + width + 0.6 * _GAP
        read: dict[Sort, list[float]] = {sort: [] for sort in self.final}
        for sort in self.final:
            owned = [part for part in self.parts if part.beside == sort]
            top = self._axis(sort) - _PART_PITCH * (len(owned) - 1) / 2
            for row, (text, _, sources) in enumerate(owned):
                y = top + _PART_PITCH * row
                for number, source in enumerate(sources):
                    read[source].append(y + 8 * (number - (len(sources) - 1) / 2))
                box = Box(x, y - _PART / 2, width, _PART)
                color = SELECTOR.stroke
                self.canvas.box(box, SELECTOR, "readout", text, text, 13, color, bold=False)
                self.canvas.arrow([(box.right, y), (join, y)], color)
        shares = [(row + 1) / (len(read) + 1) for row in range(len(read))]
        if not any(len(part.sources) > 1 for part in self.parts):
            shares = [0.5] * len(read)  # no line crosses another
        for (sort, heights), share in zip(read.items(), shares, strict=True):
            self._fan((start, self._axis(sort)), heights, x, MEMORY[sort.plain].stroke, share)
        self._decision(join)

    def _decision(self, x: float) -> None:
        plan = self.plan.readout
        joined = Box(x, self.top, 24, self.bottom - self.top)
        middle, x = joined.cy, joined.right
        self.canvas.box(joined, MIXER, "join", "‖", "‖", 17)
        if self.sums:
            for mark, mixer in zip(reversed(self.sums.names), self.sums.mixers, strict=True):
                x = self._sum_over(mark, sizes_text(mixer) if mixer else "", x, middle)
        maps = plan.maps[1:] if plan.linear_path else plan.maps
        sizes = sizes_text(maps) + (", + linear" if plan.linear_path else "")
        width = max(text_width(sizes, 11), text_width("decision", 14, bold=True)) + 24
        box = Box(x + 0.7 * _GAP, middle - 28, width, 56)
        self.canvas.arrow([(x, middle), (box.x, middle)])
        self.canvas.box(box, MIXER, "decision", "decision", "decision", detail=sizes)
        label = f"{plan.task} output"
        end = Box(box.right + 0.7 * _GAP, middle - 24, text_width(label, 13, bold=True) + 20, 48)
        self.canvas.arrow([(box.right, middle), (end.x, middle)])
        size = shape(plan.sort, plan.out)
        self.canvas.box(end, INPUT, "output", "output", label, 13, INPUT.stroke, detail=size)

    def _sum_over(self, mark: str, sizes: str, x: float, middle: float) -> float:
        """The MLP of each copy and the sum over its marks; where the box ends."""
        width = max(text_width(sizes, 11), text_width("MLP, Σv", 14, bold=True)) + 24
        box = Box(x + 0.7 * _GAP, middle - 28, width, 56)
        self.canvas.arrow([(x, middle), (box.x, middle)])
        label = f"MLP, Σ{mark}" if sizes else f"Σ{mark}"
        self.canvas.box(box, MIXER, "sum", f"Σ{mark}", label, detail=sizes)
        return box.right


def _input_widths(plan: NetworkPlan) -> dict[Sort, int]:
    """Channels of the first memories, before any embedding."""
    return {sort: width for sort, width in plan.first_widths.items() if width}


def _readout_parts(plan: NetworkPlan) -> list[_Part]:
    """What is read out; a rule of S stands beside the first memory it reads."""
    texts = [*local_texts(plan.readout), *pool_texts(plan.readout)]
    owners = [_PARTS.get(text.split()[-1].split("_")[0], M) for text in texts]
    parts = [_Part(text, sort, (sort,)) for text, sort in zip(texts, owners, strict=True)]
    anywhere = next(iter(plan.layers[-1].widths()))
    for step in plan.readout.steps:
        sources = tuple(dict.fromkeys(step.rule.holes))
        parts.append(_Part(body_label(step), (sources or (anywhere,))[0], sources))
    return parts
