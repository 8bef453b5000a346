"""Where the parts of a layer stand: a band for each memory, a row for each selector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..memories import NumberedSelector, numbered_selectors
from ..plan import LayerPlan, MemoryUpdate, RuleStep
from ..plan_rows import sizes_text
from .icons import BELOW, SIZE
from .rich_text import text_width

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
class Columns:
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


def columns(layer: LayerPlan, x: float, mixers: Sequence[str]) -> Columns:
    """Columns wide enough for every text in them; `mixers` are the lines in the MLPs' boxes."""
    steps = [step for update in layer.updates for step in update.steps]
    norm = x + SIZE + 24
    lanes = norm + (74 if layer.norms else 0)
    selectors = lanes + LANE * len(layer.updates) + 20
    labels = [selector_label(item) for item in numbered_selectors(layer)]
    selector_width = max((text_width("L_{99}", 14) + text_width(w, 11) for w in labels), default=0)
    selector_width += 26 if steps else 0
    rules = selectors + selector_width + (30 if steps else 0)
    bodies = [body_label(step) for step in steps]
    rule_width = max((text_width(body, 15, bold=True) + 24 for body in bodies), default=0)
    join = rules + rule_width + (text_width("b = 9999", 11) + 26 if steps else 60)
    mixer = join + 24 + 34
    mixer_width = max(text_width(line, 13, bold=True) for line in mixers) + 24
    output = mixer + mixer_width + 40
    return Columns(
        x,
        norm,
        lanes,
        selectors,
        selector_width,
        rules,
        rule_width,
        join,
        mixer,
        mixer_width,
        output,
    )


def selector_label(item: NumberedSelector) -> str:
    return sizes_text(item.selector.maps)


def body_label(step: RuleStep) -> str:
    """The body of a rule, without the brackets around a Hadamard product."""
    text = step.rule.body_text()
    return text[1:-1] if text.startswith("(") and text.count("(") == 1 else text


def _band(update: MemoryUpdate, numbered: list[NumberedSelector], top: float) -> Band:
    own = [[item for item in numbered if item.step is step] for step in update.steps]
    skips = update.kind == "mix" and update.width_in > 0
    count = int(skips) + sum(map(len, own))
    height = max(PITCH * count, SIZE + BELOW)
    y = top + (height - PITCH * count) / 2 + PITCH / 2
    skip = y if skips else None
    y += PITCH if skips else 0
    rules = []
    for step, items in zip(update.steps, own, strict=True):
        in_order = sorted(items, key=lambda item: item.operand)
        rules.append(RuleRow(step, tuple((item, y + PITCH * k) for k, item in enumerate(in_order))))
        y += PITCH * len(items)
    return Band(update, top, top + height, skip, tuple(rules))
