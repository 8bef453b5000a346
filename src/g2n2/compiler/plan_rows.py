"""A plan cut into the lines of its table, each with its cost; together they cost what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..language.sorts import M, S, Sort, V
from .costs import Cost, NetworkCost, rule_flops
from .memories import SYMBOLS, NumberedSelector, numbered_selectors, shape
from .plan import Linear, MemoryUpdate, NetworkPlan, RuleStep
from .readout_plan import ReadoutPlan

POOLED = {
    "nodes": "H",
    "rows": "R",
    "scalars": "s",
    "diagonal": "diag C",
    "off-diagonal": "offdiag C",
}
"""What each part of the read-out is called."""

SIGNS = {"sum": "Σ", "mean": "mean", "max": "max", "none": ""}


_LONGEST = 40


class Row(NamedTuple):
    """One line: a memory, a rule with its selectors, an MLP, or a map.

    Attributes:
        part: `inputs`, `layer 1`, …, `read-out` or `decision`.
        step: What is computed, in the paper's notation.
        copies: The multiplicity b of a rule.
        maps: The linear maps it takes, as channels in → channels out, or what it is made of.
        output: The shape it makes.
        cost: Its share of the network's cost.
    """

    part: str
    step: str
    copies: int | None
    maps: str
    output: str
    cost: Cost


def plan_rows(cost: NetworkCost) -> list[list[Row]]:
    """The lines of the inputs, of each layer, of the read-out and of the decision."""
    layers = [_layer_rows(cost, number) for number in range(len(cost.plan.layers))]
    return [_input_rows(cost), *layers, _readout_rows(cost), _decision_rows(cost)]


def input_text(plan: NetworkPlan, sort: Sort) -> str:
    """`I ‖ A ‖ E`: what the memory of a variable starts with."""
    given = {M: plan.inputs.matrix, V: plan.inputs.column}.get(sort, ("1",))
    return " ‖ ".join(given)


def mixer_name(update: MemoryUpdate) -> str:
    """`MLP_M`; one map alone is no MLP, and the released code's node update is a formula."""
    if update.kind == "bilinear":
        return "Σₖ Cₖ H Wₖ"
    return ("MLP_" if len(update.mixer) > 1 else "linear_") + update.sort.variable


def sizes_text(maps: Sequence[Linear]) -> str:
    """`262→524→64`: the widths on the way through maps that follow one another."""
    return "→".join(str(width) for width in (maps[0].width_in, *(m.width_out for m in maps)))


def pool_texts(plan: ReadoutPlan) -> list[str]:
    """`Σ H`, `Σ diag C`, …: what is pooled, and how."""
    if not plan.pooled_width:
        return []
    return [
        POOLED[part] if part == "scalars" else f"{SIGNS[how]} {POOLED[part]}"
        for part, how in plan.pools
    ]


def local_texts(plan: ReadoutPlan) -> list[str]:
    """What a node or an edge reads of its own: `H`, `Σ row C`, …"""
    rows = f"{SIGNS[plan.local_pooling]} row C"
    return [rows if part == "row sums C" else part for part in plan.local]


def _input_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan
    rows = [
        Row(
            "inputs",
            f"{SYMBOLS[sort]}⁰ = {input_text(plan, sort)}",
            None,
            "",
            shape(sort, width),
            cost.memory(sort, width),
        )
        for sort, width in plan.inputs.widths.items()
        if width
    ]
    for name, term in plan.grammar.supports:
        work = Cost(flops=cost.batch * rule_flops(term, cost.nodes))
        rows.append(Row("inputs", f"support {name}", None, _cut(str(term)), shape(M, 1), work))
    for sort, linear in plan.embeddings:
        embedded = shape(sort, linear.width_out)
        step = f"embed {SYMBOLS[sort]}"
        rows.append(
            Row("inputs", step, None, sizes_text([linear]), embedded, cost.linear(sort, linear))
        )
    return rows


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _layer_rows(cost: NetworkCost, number: int) -> list[Row]:
    part, layer = f"layer {number + 1}", cost.plan.layers[number]
    rows = []
    if layer.norms:
        rows.append(Row(part, "RMS norms", None, "", "", cost.norms(number)))
    for update in layer.updates:
        for step in update.steps:
            total = cost.selectors(step) + cost.rule(step)
            output = shape(update.sort, step.copies)
            own = [item for item in numbered_selectors(layer) if item.step is step]
            rows.append(Row(part, str(step.rule), step.copies, _selectors(own), output, total))
        output = shape(update.sort, update.width_out)
        rows.append(Row(part, mixer_name(update), None, _mixer(update), output, cost.mixer(update)))
    return rows


def _selectors(own: list[NumberedSelector]) -> str:
    """`L1, L2 [B, N, N, 6→64]`: selectors of one shape together."""
    by_shape: dict[str, list[str]] = {}
    for item in sorted(own, key=lambda item: item.operand):
        text = shape(item.selector.sort, sizes_text(item.selector.maps))
        by_shape.setdefault(text, []).append(f"L{item.number}")
    return "; ".join(f"{', '.join(names)} {text}" for text, names in by_shape.items())


def _mixer(update: MemoryUpdate) -> str:
    if update.kind == "bilinear":
        channels = update.mixer[0].width_in // update.width_in
        return f"{channels}×{update.width_in}→{update.width_out}"
    return sizes_text(update.mixer)


def _readout_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan.readout
    rows = []
    for step in plan.steps:
        total = cost.selectors(step) + cost.rule(step)
        own = [item for item in numbered_selectors(plan) if item.step is step]
        maps = _selectors(own) if own else step_text(step)
        output = shape(S, step.copies)
        rows.append(Row("read-out", str(step.rule), step.copies, maps, output, total))
    parts = [*local_texts(plan), *pool_texts(plan), *(step.rule.body_text() for step in plan.steps)]
    width = plan.graph_width + plan.local_width
    name = "pool" if plan.mode != "grammar" and pool_texts(plan) else "take"
    joined = shape(plan.sort, width)
    return [*rows, Row("read-out", name, None, " ‖ ".join(parts), joined, cost.pooling())]


def step_text(step: RuleStep) -> str:
    """What a rule of S without selectors reads."""
    holes = step.rule.holes
    return f"all channels of {SYMBOLS[holes[0]]}" if holes else "of the graph"


def _decision_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan.readout
    maps = plan.maps[1:] if plan.linear_path else plan.maps
    text = sizes_text(maps)
    if plan.linear_path:
        text += f"; beside it {sizes_text(plan.maps[:1])}"
    output = shape(plan.sort, plan.out)
    step = "MLP" if len(maps) > 1 else "linear"
    return [Row("decision", step, None, text, output, cost.decision())]
