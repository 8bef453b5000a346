"""Formulas as weights: a network of the preset `paper` that computes given terms exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import nn

from ..compiler.plan import NetworkPlan
from ..compiler.presets import Preset
from ..errors import LoweringError
from ..language.printing import to_text
from ..language.terms import Term
from ..nn.layer import linear_maps
from ..nn.model import GrammarGNN
from .formula_plan import Formula, FormulaPlan, Requirements, plan_formulas
from .schedule_to_weights import write_layer, write_readout

TASKS = {"S": "graph", "V": "node", "R": "node", "M": "edge"}
"""Which task gives one number for each entry of a term."""


def write_formula(
    model: GrammarGNN,
    term: Formula | Sequence[Formula],
    output: int = 0,
    domain: Sequence[int] | None = None,
    names: Mapping[str, int] | None = None,
    by_rules: bool = False,
) -> Requirements:
    """Set the weights so that the network computes a term, or several, exactly (Theorem 3).

    >>> from g2n2 import GraphBatch, GrammarGNN, write_formula
    >>> model = GrammarGNN("r-G_L3", width=4, layers=2, preset="paper").double()
    >>> print(write_formula(model, "1ᵀ(A²⊙A)1"))  # six times the triangles
    depth 2; width V 1, M 2; rules M → MM ×1, M → (M⊙M) ×1
    >>> import torch
    >>> model(GraphBatch.of(["C~", "Bw"], dtype=torch.float64)).round().flatten().tolist()
    [24.0, 6.0]

    All other weights become zero. The text of the formula is kept as `model.formula`.

    Args:
        model: A network of the preset `paper`, wide and deep enough; in float64 for exact values.
        term: A sentence for the task `graph`, a vector for `node`, a matrix for `edge`; several of
            them go to the outputs from `output` on.
        output: The output that gets the (first) term.
        domain: Integers on which functions other than ReLU and |x| are to be exact.
        names: Which feature a free variable stands for: `{"v": 0}` is node feature 0, `{"N": 2}`
            edge feature 2.
        by_rules: Apply a rule wherever one fits, even where a linear map or the MLP would do.

    Returns:
        The depth and width that were needed.

    Raises:
        LoweringError: Another preset, task or read-out, a term out of the grammar's reach, or a
            network too small; the message says what is needed.
    """
    refuse_preset(model.plan.preset)
    _refuse_marks(model.plan)
    readout = model.plan.readout
    plan = plan_formulas(
        model.plan.grammar,
        model.plan.inputs,
        term,
        domain,
        names,
        by_rules,
        pooled=readout.mode != "grammar",
        sentence_rules=[step.rule for step in readout.steps],
    )
    needed = plan.requirements()
    _check(model, plan, needed, output)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        stages = plan.stages(len(model.layers))
        for stage, layer, laid_out in zip(stages, model.layers, model.plan.layers, strict=True):
            write_layer(layer, laid_out, stage, domain)
        widths = model.plan.layers[-1].widths()
        write_readout(model.readout, widths, stages[-1].after, plan, output, _mixers(model))
    given = [term] if isinstance(term, (Term, str)) else term
    model.formula = "; ".join(x if isinstance(x, str) else to_text(x) for x in given)
    return needed


def _mixers(model: GrammarGNN) -> list[list[nn.Linear]] | None:
    """The maps in front of each sum over marks that has some, the innermost first."""
    if model.marks is None:
        return None
    maps = (linear_maps(cast(nn.Sequential, mixer)) for mixer in model.marks.mixers)
    return [own for own in maps if own]


def refuse_preset(preset: Preset) -> None:
    """Refuse a preset whose layers cannot carry a value unchanged.

    Raises:
        LoweringError: Saying what stands in the way.
    """
    reasons = []
    if preset.normalised:
        reasons.append("it normalises every memory, so no channel keeps its value")
    if preset.selector_scale:
        reasons.append("it divides operands by the width")
    if not preset.mixer_bias:
        reasons.append("its MLPs have no bias")
    if preset.between:
        reasons.append("it cuts negative values off between layers")
    if preset.activation != "relu":
        reasons.append(f"relu(x) − relu(−x) = x does not hold for {preset.activation}")
    if preset.selector == "mlp":
        reasons.append("its selectors end in ReLU, which cuts negative operands off")
    if preset.hidden != 2:
        reasons.append("its mixers have no hidden layer of twice their input")
    if preset.pooling != "sum":
        reasons.append(f"its read-out takes the {preset.pooling}, and formulas are sums")
    if reasons:
        raise LoweringError(
            f"formulas cannot be written into the preset {preset.name}: {'; '.join(reasons)}. "
            'Make the network with preset="paper"'
        )


def _refuse_marks(plan: NetworkPlan) -> None:
    """Refuse a network whose sum is not that over all vertices, or whose layers do not all see it.

    Raises:
        LoweringError: Saying what would do.
    """
    if plan.marks is None:
        return
    if plan.marks.chosen == "heavy":
        raise LoweringError(
            "marks='heavy' leaves vertices out, and a formula sums over all: make the network with "
            "marks='all' or 'orbits'"
        )
    if plan.trunk:
        raise LoweringError(
            "formulas are written into layers that see the mark: make the network with trunk=0"
        )


def _check(model: GrammarGNN, plan: FormulaPlan, needed: Requirements, output: int) -> None:
    readout = model.plan.readout
    for term in plan.terms:
        if (task := TASKS[term.sort.letter]) != readout.task:
            raise LoweringError(
                f"{to_text(term)} is {term.sort.english}, which the task {task!r} gives; this "
                f"network has the task {readout.task!r}"
            )
    if not 0 <= output < readout.out:
        raise LoweringError(f"the network has outputs 0 to {readout.out - 1}, got output={output}")
    if (needs := output + len(plan.terms)) > readout.out:
        raise LoweringError(
            f"{len(plan.terms)} terms from output {output} on need out={needs}, the network has "
            f"out={readout.out}"
        )
    widths = {sort.letter: width for sort, width in model.plan.layers[-1].widths().items()}
    least = 2 * len(plan.terms)
    if any(maps[-1].out_features < len(plan.terms) for maps in _mixers(model) or ()):
        raise LoweringError(
            f"{len(plan.terms)} terms need as many channels behind the sum over the mark: make the "
            f"network with a width of at least {len(plan.terms)}"
        )
    narrow = [
        f"a decision layer {part.width_out} wide, {least} needed: decision=({least},)"
        for part in readout.maps[:-1]
        if part.width_out < least
    ]
    if len(model.layers) < needed.depth:
        narrow.append(f"{len(model.layers)} layers")
    short = [f"width {x} {widths[x]}" for x, w in needed.width.items() if widths.get(x, w) < w]
    copies = {step.rule: step.copies for step in readout.steps}
    for rule, own in plan.occurrences().items():
        if copies[rule] < len(own):
            short.append(f"{copies[rule]} occurrences of {rule}")
    if narrow or short:
        raise LoweringError(
            f"the network is too small ({', '.join(narrow + short)}); the formula needs {needed}. "
            f"Make it with layers={needed.depth}, width={dict(needed.width)}"
        )
    ways = dict(readout.pools)
    for part in {name for reading in plan.readings for name in reading.parts}:
        pooled = part in ("nodes", "rows", "scalars", "diagonal", "off-diagonal")
        way = ways.get(part, "none") if pooled else "sum"
        way = readout.local_pooling if part == "row sums C" else way
        if way != "sum" and not (part == "scalars" and way != "none"):
            raise LoweringError(
                f"the formula sums over {part}, the network's read-out takes {way}; make it "
                'with pooling="sum"'
            )
