"""A plan with its costs as a table, and as JSON: what a user sees before anything is allocated."""

from __future__ import annotations

from typing import Any

from .costs import Cost, NetworkCost
from .memories import LEGEND
from .plan import NetworkPlan
from .plan_rows import Row, plan_rows
from .power_text import power_lines, readout_text

HEADERS = ("part", "step", "b", "maps", "output", "parameters", "FLOPs", "memory")
NUMERIC = frozenset({"b", "parameters", "FLOPs", "memory"})
"""Columns that are aligned to the right."""

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
        for place, row in enumerate(rows):
            copies = "" if row.copies is None else str(row.copies)
            cells = (row.step, copies, row.maps, row.output, *_cost_cells(row.cost))
            shown.append((label if place == 0 else "", *cells))
    return [*shown, ("total", "", "", "", "", *_cost_cells(cost.total))]


def plan_summary(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> list[str]:
    """Two lines above the table, the title and the legend; totals, read-out and functions below."""
    cost = NetworkCost(plan, batch, nodes)
    total = cost.total
    count = len(plan.layers)
    name = plan.grammar.name or "the given grammar"
    layers = "1 layer" if count == 1 else f"{count} layers"
    return [
        f"{name}: {layers}, preset {plan.preset.name}, {plan.readout.task} level",
        f"{LEGEND}; here B = {batch}, N = {nodes}. b: occurrences of a rule.",
        f"parameters  {total.parameters:,}",
        f"forward     {flops_text(total.flops)}",
        f"training    {flops_text(cost.training_flops)} forward and backward",
        f"memory      {bytes_text(FLOAT * total.activations)} of activations kept for the backward "
        f"pass in float32, and {bytes_text(FLOAT * ADAM * total.parameters)} for parameters, "
        "gradients and Adam",
        *power_lines(plan),
    ]


def plan_text(plan: NetworkPlan, batch: int = 1, nodes: int = 29) -> str:
    """Title, table and totals as plain text with aligned columns."""
    title, legend, *totals = plan_summary(plan, batch, nodes)
    table = [HEADERS, *plan_table(plan, batch, nodes)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if name in NUMERIC else cell.ljust(width)
            for cell, width, name in zip(row, widths, HEADERS, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([title, legend, "", *lines, "", *totals])


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


def flops_text(number: int) -> str:
    """Operations with a unit: `1.23 GFLOPs`."""
    return _scaled(number, 1000, ("", "K", "M", "G", "T", "P")) + "FLOPs"


def bytes_text(number: int) -> str:
    """Bytes with a unit: `1.23 GiB`."""
    return _scaled(number, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi")) + "B"


def _with_equal_layers_joined(parts: list[list[Row]]) -> list[tuple[str, list[Row]]]:
    """Each part's label and lines; a run of equal layers is one part, `layers 2–3, each`."""
    joined: list[tuple[list[Row], list[Row]]] = []
    for rows in filter(None, parts):  # without memories there is nothing in a layer
        if joined and _content(joined[-1][1]) == _content(rows):
            joined[-1] = (joined[-1][0], rows)
        else:
            joined.append((rows, rows))
    labelled = []
    for first, last in joined:
        label = first[0].part
        if first is not last:
            end = last[0].part.removeprefix("layer ")
            label = f"{label.replace('layer', 'layers')}–{end}, each"
        labelled.append((label, first))
    return labelled


def _content(rows: list[Row]) -> list[tuple[object, ...]]:
    return [row[1:] for row in rows]


def _scaled(number: int, base: int, units: tuple[str, ...]) -> str:
    value, unit = float(number), 0
    while value >= base - 0.5 and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    digits = 0 if unit == 0 or value >= 99.5 else 1 if value >= 9.95 else 2
    return f"{value:.{digits}f} {units[unit]}"


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
