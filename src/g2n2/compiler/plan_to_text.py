"""A plan with its costs as a table, and as JSON: what a user sees before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..described import aligned, bytes_text, counted, flops_text
from ..grammars.network_rules import Mixing
from ..grammars.rules import Rule, spans
from ..language.sorts import M, S, Sort, V
from ..notebook_html import table as html_table
from ..notebook_html import typeset
from .costs import Cost, NetworkCost, rule_flops
from .plan import (
    LEGEND,
    Linear,
    MemoryUpdate,
    NetworkPlan,
    NumberedSelector,
    RuleStep,
    numbered_selectors,
    shape,
    symbol,
)
from .readout_plan import PARTS, ReadoutPlan, pool_rules_of

HEADERS = ("part", "step", "b", "maps", "output", "parameters", "FLOPs", "memory")
_NUMERIC = (2, 5, 6, 7)

ADAM = 4
"""Copies of the parameters a training step holds: themselves, gradients, Adam's two moments."""

FLOAT = 4
"""Bytes of a float32."""


def plan_table(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> list[tuple[str, ...]]:
    """The cells below `HEADERS`: inputs, layers, read-out, decision and the total.

    Equal layers that follow one another share their lines; the cost shown is that of each.
    """
    cost = NetworkCost(plan, batch, nodes)
    shown = []
    for label, rows in _with_equal_layers_joined(plan_rows(cost)):
        for index, row in enumerate(rows):
            copies = "" if row.copies is None else str(row.copies)
            cells = (row.step, copies, row.maps, row.output, *_cost_cells(row.cost))
            shown.append((label if index == 0 else "", *cells))
    return [*shown, ("total", "", "", "", "", *_cost_cells(cost.total))]


def plan_summary(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> list[str]:
    """Two lines above the table, the title and the legend; totals, read-out and functions below."""
    cost = NetworkCost(plan, batch, nodes)
    total = cost.total
    name = plan.grammar.name or "the given grammar"
    layers = counted(len(plan.layers), "layer")
    if plan.trunk:
        layers = f"{len(plan.trunk)} before the marks and {layers}"
    copies = "; in C′ and H′ the first N counts marked copies" if plan.scoped else ""
    return [
        f"{name}: {layers}, preset {plan.preset.name}, {plan.readout.task} level",
        f"{LEGEND}{copies}; here B = {batch}, N = {nodes}. b: occurrences of a rule.",
        *mark_lines(cost),
        f"parameters  {total.parameters:,}",
        f"forward     {flops_text(total.flops)}",
        f"training    {flops_text(cost.training_flops)} forward and backward",
        f"memory      {bytes_text(cost.activation_bytes())} of activations kept for the backward "
        f"pass in float32, and {bytes_text(FLOAT * ADAM * total.parameters)} for parameters, "
        "gradients and Adam",
        *power_lines(plan),
    ]


def mark_lines(cost: NetworkCost) -> list[str]:
    """How many marked copies the costs are of."""
    marks = cost.plan.marks
    if marks is None:
        return []
    copies = cost.copies ** len(marks.names)
    each = f"{flops_text(cost.total.flops // max(1, cost.batch * copies))} forward each"
    if isinstance(marks.chosen, int):
        return [f"marks       {copies} copies of a graph in training, all elsewhere; {each}"]
    at_most = "" if marks.chosen == "all" else f"at most, {marks.chosen} marks are fewer; "
    return [f"marks       {copies} copies of a graph; {at_most}{each}"]


def plan_text(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> str:
    """Title, table and totals as plain text with aligned columns."""
    title, legend, *totals = plan_summary(plan, batch, nodes)
    table = aligned([HEADERS, *plan_table(plan, batch, nodes)], _NUMERIC)
    return "\n".join([title, legend, "", *table, "", *totals])


def plan_html(plan: NetworkPlan) -> str:
    """The drawing of the last layer, the table of costs and the totals, for a notebook."""
    from .plan_to_svg import layer_svg

    title, legend, *totals = plan_summary(plan)
    costs = html_table(plan_table(plan), HEADERS, title)
    notes = "".join(f"<div>{typeset(line)}</div>" for line in (legend, *totals))
    return f"<div>{layer_svg(plan)}</div>{costs}{notes}"


def plan_as_json(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> dict[str, Any]:
    """The same as data, every layer by itself."""
    cost = NetworkCost(plan, batch, nodes)
    return {
        "grammar": plan.grammar.name,
        "rules": [str(rule) for rule in plan.grammar.rules],
        "preset": plan.preset.name,
        "task": plan.readout.task,
        "readout": {
            "mode": plan.readout.mode,
            "pools": dict(plan.readout.pools) if plan.readout.pooled_width else {},
            "rules": [str(step.rule) for step in plan.readout.steps],
            "text": readout_text(plan),
        },
        "functions": {sort.variable: kind for sort, kind in plan.functions().items()},
        "added_rules": [str(rule) for rule in plan.added_rules()],
        "exceptions": list(plan.exceptions()),
        "batch": batch,
        "nodes": nodes,
        "steps": [
            {**row._asdict(), "cost": _cost_json(row.cost)}
            for rows in plan_rows(cost)
            for row in rows
        ],
        "parts": {name: _cost_json(part) for name, part in cost.parts.items()},
        "total": {**_cost_json(cost.total), "training_flops": cost.training_flops},
    }


def _with_equal_layers_joined(parts: list[list[Row]]) -> list[tuple[str, list[Row]]]:
    """Each part's label and lines; a run of equal layers is one part, `layers 2–3, each`."""
    labelled = []
    # Without memories there is nothing in a layer.
    for _, equal in groupby(filter(None, parts), key=lambda rows: [row[1:] for row in rows]):
        first, *more = equal
        label = first[0].part
        if more:
            end = more[-1][0].part.rpartition(" ")[2]
            label = f"{label.replace('layer', 'layers')}–{end}, each"
        labelled.append((label, first))
    return labelled


def _cost_cells(cost: Cost) -> tuple[str, str, str]:
    return (
        f"{cost.parameters:,}" if cost.parameters else "",
        flops_text(cost.flops).removesuffix("FLOPs").rstrip() if cost.flops else "",
        bytes_text(FLOAT * cost.activations) if cost.activations else "",
    )


def _cost_json(cost: Cost) -> dict[str, int]:
    return {
        "parameters": cost.parameters,
        "flops": cost.flops,
        "activation_bytes": FLOAT * cost.activations,
    }


SIGNS = {"sum": "Σ", "mean": "mean", "max": "max", "none": ""}
_LONGEST = 40
"""Letters of the definition of a support."""


class Row(NamedTuple):
    """One line: a memory, a rule with its selectors, an MLP, or a map."""

    part: str  # `inputs`, `layer 1`, …, `read-out` or `decision`
    step: str  # what is computed, in the paper's notation
    copies: int | None = None  # the multiplicity b of a rule
    maps: str = ""  # the linear maps it takes, channels in → channels out, or what it is made of
    output: str = ""  # the shape it makes
    cost: Cost = Cost()  # its share of the network's cost


def plan_rows(cost: NetworkCost) -> list[list[Row]]:
    """The lines of the inputs, of each layer, of the read-out and of the decision.

    Layers before the marks come first; the MLPs and sums over marks follow the read-out.
    """
    before = []
    if cost.trunk is not None:
        before = [_input_rows(cost.trunk)]
        before += [_layer_rows(cost.trunk, k, "trunk") for k in range(len(cost.plan.trunk))]
    layers = [_layer_rows(cost, number) for number in range(len(cost.plan.layers))]
    sums = [_mark_rows(cost)] if cost.plan.marks and not cost.plan.scoped else []
    after = [_readout_rows(cost), *sums, _decision_rows(cost)]
    return [*before, _input_rows(cost), *layers, *after]


def input_text(plan: NetworkPlan, sort: Sort) -> str:
    """`I ‖ A ‖ E`: what the memory of a variable starts with."""
    inputs = plan.inputs.marked if plan.trunk else plan.inputs
    if plan.scoped is not None:
        inputs = plan.scoped.inside if sort.scope else plan.scoped.outside
    given = {M: inputs.matrix, V: inputs.column}.get(sort.plain, ("1",))
    if sort.scope:
        marked = plan.inputs.marked
        given += {M: marked.matrix, V: marked.column}.get(sort.plain, ())
    shared = plan.trunk and plan.first_widths[sort] > plan.inputs.marked.widths[sort]
    return " ‖ ".join([symbol(sort), *given] if shared else given)


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
        PARTS[part].symbol if part == "scalars" else f"{SIGNS[how]} {PARTS[part].symbol}"
        for part, how in plan.pools
    ]


def local_texts(plan: ReadoutPlan) -> list[str]:
    """What a node or an edge reads of its own: `H`, `Σ row C`, …"""
    rows = f"{SIGNS[plan.local_pooling]} row C"
    return [rows if part == "row sums C" else part for part in plan.local]


def _input_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan
    part = "marked copies" if plan.trunk else "inputs"
    rows = []
    for sort, width in plan.first_widths.items():
        if width:
            text = f"{symbol(sort)}⁰ = {input_text(plan, sort)}"
            memory = cost.memory(sort, width)
            rows.append(Row(part, text, output=shape(sort, width), cost=memory))
    for name, term in plan.grammar.supports:
        text = str(term)
        text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        work = Cost(flops=cost.batch * rule_flops(term, cost.nodes))
        rows.append(Row(part, f"support {name}", maps=text, output=shape(M, 1), cost=work))
    for sort, linear in plan.embeddings:
        sizes, output = sizes_text([linear]), shape(sort, linear.width_out)
        embedding = cost.linear(sort, linear)
        rows.append(Row(part, f"embed {symbol(sort)}", maps=sizes, output=output, cost=embedding))
    return rows


def _layer_rows(cost: NetworkCost, number: int, name: str = "layer") -> list[Row]:
    part, layer = f"{name} {number + 1}", cost.plan.layers[number]
    rows = []
    if layer.norms:
        how = {"entry": "", "graph": ", M by graph", "none": ", not of M"}
        pairs = any(sort.plain == M for sort in cost.plan.widths_before(number))
        text = f"RMS norms{how[cost.plan.preset.pair_norm] if pairs else ''}"
        rows.append(Row(part, text, cost=cost.norms(number)))
    numbered = numbered_selectors(layer)
    for update in layer.updates:
        rows += [_rule_row(cost, part, step, update.sort, numbered) for step in update.steps]
        output, mixer = shape(update.sort, update.width_out), cost.mixer(update)
        rows.append(Row(part, mixer_name(update), None, mixer_sizes(update), output, mixer))
    return rows


def _rule_row(
    cost: NetworkCost, part: str, step: RuleStep, sort: Sort, numbered: list[NumberedSelector]
) -> Row:
    maps = _selectors([item for item in numbered if item.step is step])
    if sort == S and not maps:  # a rule of S without selectors
        holes = step.rule.holes
        maps = f"all channels of {symbol(holes[0])}" if holes else "of the graph"
    total = cost.selectors(step) + cost.rule(step)
    return Row(part, str(step.rule), step.copies, maps, shape(sort, step.copies), total)


def _selectors(numbered: list[NumberedSelector]) -> str:
    """`L1, L2 [B, N, N, 6→64]`: selectors of one shape together."""
    by_shape: dict[str, list[str]] = {}
    for item in sorted(numbered, key=lambda item: item.operand):
        text = shape(item.selector.sort, sizes_text(item.selector.maps))
        by_shape.setdefault(text, []).append(f"L{item.number}")
    return "; ".join(f"{', '.join(names)} {text}" for text, names in by_shape.items())


def mixer_sizes(update: MemoryUpdate) -> str:
    """`262→524→64`, or `64×32→64` for the released code's node update."""
    if update.kind == "bilinear":
        channels = update.mixer[0].width_in // update.width_in
        return f"{channels}×{update.width_in}→{update.width_out}"
    return sizes_text(update.mixer)


def _readout_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan.readout
    numbered = numbered_selectors(plan)
    rows = [_rule_row(cost, "read-out", step, S, numbered) for step in plan.steps]
    parts = [*local_texts(plan), *pool_texts(plan), *(step.rule.body_text() for step in plan.steps)]
    name = "pool" if plan.mode != "grammar" and pool_texts(plan) else "take"
    joined = shape(plan.sort, plan.graph_width + plan.local_width)
    return [*rows, Row("read-out", name, None, " ‖ ".join(parts), joined, cost.pooling())]


def _mark_rows(cost: NetworkCost) -> list[Row]:
    marks = cost.plan.marks
    assert marks is not None, "asked where there are marks"
    names = reversed(marks.names)
    text = " ".join(
        f"{sizes_text(mixer)}, Σ{mark}" if mixer else f"Σ{mark}"
        for mark, mixer in zip(names, marks.mixers, strict=True)
    )
    width = cost.plan.readout.maps[0].width_in
    return [Row("marks", "MLP and sum", None, text, shape(S, width), cost.marks())]


def _decision_rows(cost: NetworkCost) -> list[Row]:
    plan = cost.plan.readout
    maps = plan.maps[1:] if plan.linear_path else plan.maps
    text = sizes_text(maps)
    if plan.linear_path:
        text += f"; beside it {sizes_text(plan.maps[:1])}"
    output = shape(plan.sort, plan.out)
    step = "MLP" if len(maps) > 1 else "linear"
    return [Row("decision", step, None, text, output, cost.decision())]


_FUNCTIONS: dict[Mixing, str] = {
    "any": "MLP with biases",
    "zero": "MLP without biases",
    "homogeneous": "MLP without biases",
    "linear": "one linear map",
}
DEPTH_COST = (
    "an own read-out reads the last memories only through the rules of S: it may need a layer more "
    "than a pooled one (an example: r-G_L3 on BREC tells 209 of 400 pairs apart after 3 layers, "
    "pooled 217)"
)


def power_lines(plan: NetworkPlan) -> list[str]:
    """The read-out as rules, the functions of each memory, and the rules those add."""
    lines = [f"read-out    {readout_text(plan)}"]
    if (note := depth_note(plan)) is not None:
        lines.append(f"            {note}")
    lines.append(f"functions   {functions_text(plan)}")
    if added := plan.added_rules():
        lines.append(f"            they add {rules_text(added)} to the words of the grammar")
    elif plan.only_free:
        lines.append("            they add nothing to the words of the grammar")
    return lines


def readout_text(plan: NetworkPlan) -> str:
    """`pooled: S → 1ᵀV_c | Tr(M), joined by S → Tr(MMM)`: what is read out, as rules."""
    readout = plan.readout
    parts = [*_local(readout), *_pooled(readout)]
    rules = rules_text(step.rule for step in readout.steps)
    if readout.mode == "grammar":
        parts += [rules] if rules else []
        rules = ""
    joined = f", joined by {rules}" if rules else ""
    return f"{readout.mode}: {', '.join(parts)}{joined}"


def functions_text(plan: NetworkPlan) -> str:
    """`MLP with biases on M, V_c; one linear map on V_r`."""
    by_kind: dict[str, list[str]] = {}
    for sort, mixing in plan.functions().items():
        kind = _FUNCTIONS[mixing]
        if plan.preset.selector == "mlp" and mixing != "linear":
            kind += " in the selectors"
        by_kind.setdefault(kind, []).append(sort.variable)
    return "; ".join(f"{kind} on {', '.join(names)}" for kind, names in by_kind.items())


def depth_note(plan: NetworkPlan) -> str | None:
    """What an own read-out costs, where a pooled one would read more."""
    readout = plan.readout
    if readout.mode != "grammar" or readout.task != "graph":
        return None
    if unread := [sort for sort in plan.grammar.unreachable() if sort in plan.functions()]:
        names = ", ".join(sort.variable for sort in unread)
        return f"no sentence reads {names}: its words have no part in the output"
    rules = [step.rule for step in readout.steps]
    if all(spans(rules, rule) for rule in pool_rules_of(plan.functions())):
        return None
    return DEPTH_COST


def rules_text(rules: Iterable[Rule]) -> str:
    """`S → 1ᵀV_c | Tr(M), M → A`: rules, those of one variable together."""
    by_head: dict[str, list[str]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.variable, []).append(rule.body_text())
    return ", ".join(f"{head} → {' | '.join(bodies)}" for head, bodies in by_head.items())


def _local(readout: ReadoutPlan) -> list[str]:
    if readout.mode == "grammar":
        return [f"the words of {readout.sort.variable}"] if readout.local else []
    return local_texts(readout)


def _pooled(readout: ReadoutPlan) -> list[str]:
    """Sums as rules; what is pooled otherwise by its name."""
    if any(how != "sum" and part != "scalars" for part, how in readout.pools):
        return pool_texts(readout)
    scalars = ["the scalars s"] if "s" in pool_texts(readout) else []
    summed = rules_text(readout.pool_rules()) if readout.mode != "grammar" else ""
    return scalars + ([summed] if summed else [])
