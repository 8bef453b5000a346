"""What a plan reads out and which functions its memories have, in words."""

from __future__ import annotations

from collections.abc import Iterable

from ..grammars.rules import Rule
from .plan import Mixing, NetworkPlan
from .plan_rows import local_texts, pool_texts
from .readout_plan import ReadoutPlan, pool_rules_of, spans

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
    functions = functions_text(plan)
    lines.append(f"functions   {functions}")
    if added := plan.added_rules():
        lines.append(f"            they add {rules_text(added)} to the words of the grammar")
    elif plan.only_free:
        lines.append("            they add nothing to the words of the grammar")
    return lines


def readout_text(plan: NetworkPlan) -> str:
    """`pooled: S → 1ᵀV_c | Tr(M), joined by S → Tr(MMM)`: what is read out, as rules."""
    readout = plan.readout
    parts = [*_local(readout), *_pooled(readout)]
    own = rules_text(step.rule for step in readout.steps)
    if readout.mode == "grammar":
        parts += [own] if own else []
        own = ""
    joined = f", joined by {own}" if own else ""
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
    own = [step.rule for step in readout.steps]
    if all(spans(own, rule) for rule in pool_rules_of(plan.functions())):
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
