"""What the memories and selectors of a plan are called, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..language.sorts import M, R, S, Sort, V
from .plan import LayerPlan, NetworkPlan, RuleStep, Selector
from .readout_plan import ReadoutPlan

SYMBOLS: dict[Sort, str] = {M: "C", V: "H", R: "R", S: "s"}
"""C and H as in the paper; R holds rows and s scalars, where a grammar has them."""

AXES: dict[Sort, tuple[str, ...]] = {M: ("B", "N", "N"), V: ("B", "N"), R: ("B", "N"), S: ("B",)}

LEGEND = "B graphs of N nodes; the last number counts channels"


class NumberedSelector(NamedTuple):
    """One selector of a layer with its number: L1, L2, …"""

    number: int
    step: RuleStep
    operand: int
    selector: Selector


def shape(sort: Sort, channels: int | str) -> str:
    """`[B, N, N, 64]` for a matrix memory of 64 channels."""
    return f"[{', '.join((*AXES[sort], str(channels)))}]"


def widths_before(plan: NetworkPlan, layer: int) -> dict[Sort, int]:
    """Channels of each memory that layer number `layer` reads, counted from 0; empty ones left out.

    After the last layer: `widths_before(plan, len(plan.layers))`.
    """
    widths = dict(plan.inputs.widths)
    widths |= {sort: linear.width_out for sort, linear in plan.embeddings}
    for earlier in plan.layers[:layer]:
        widths |= earlier.widths()
    return {sort: width for sort, width in widths.items() if width}


def numbered_selectors(part: LayerPlan | ReadoutPlan) -> list[NumberedSelector]:
    """The selectors of a layer or of a read-out, numbered as in the paper."""
    found = sorted(_selectors(part), key=lambda item: list(SYMBOLS).index(item[2].sort))
    return [NumberedSelector(number, *item) for number, item in enumerate(found, start=1)]


def _selectors(part: LayerPlan | ReadoutPlan) -> Iterator[tuple[RuleStep, int, Selector]]:
    updates = part.updates if isinstance(part, LayerPlan) else (part,)
    for update in updates:
        for step in update.steps:
            for operand, selector in enumerate(step.selectors):
                yield step, operand, selector
