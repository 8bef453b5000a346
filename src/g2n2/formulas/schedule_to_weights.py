"""A schedule of atoms as the weights of layers and read-out; every weight is zero at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from torch import Tensor, nn

from ..compiler.plan import LayerPlan
from ..errors import LoweringError
from ..language.sorts import M, R, S, Sort, V
from ..nn.layer import ApplyRule, Select, Update, linear_maps
from ..nn.readout import Readout, SentenceRule
from .atoms_to_schedule import (
    Application,
    Atom,
    Basis,
    Combination,
    Constant,
    Pointwise,
    Stage,
)
from .formula_plan import FormulaPlan, Occurrence
from .piecewise_linear import IDENTITY, Unit, relu_units

_SORT_OF_PART = {
    **{"nodes": V, "rows": R, "scalars": S, "diagonal": M, "off-diagonal": M},
    **{"H": V, "R": R, "row sums C": M, "diag C": M, "C": M, "H_i": V, "H_j": V},
    **{"R_i": R, "R_j": R},
}
"""The memory each part of a read-out is taken from."""


def write_layer(
    layer: nn.Module, plan: LayerPlan, stage: Stage, domain: Sequence[int] | None
) -> None:
    """Selectors that bring the operands of each application, and mixers that keep the results."""
    updates = layer.get_submodule("updates")
    for planned in plan.updates:
        update = updates.get_submodule(planned.sort.letter)
        assert isinstance(update, Update)
        places: dict[Atom, int] = {}
        start = planned.width_in
        for step, applied in zip(planned.steps, update.steps, strict=True):
            assert isinstance(applied, ApplyRule)
            for copy, atom in enumerate(stage.applications.get(step.rule, ())):
                assert isinstance(atom.made, Application)
                places[atom] = start + copy
                _select(applied, copy, atom.made.operands, stage.before)
            start += step.copies
        _Mixer(update.mixer, stage, planned.sort, places).write(domain)


def _select(
    applied: ApplyRule, copy: int, operands: Sequence[Combination], memories: Mapping[Sort, Basis]
) -> None:
    """Let one occurrence of a rule read its operands out of the memories."""
    for select, operand in zip(applied.selectors, operands, strict=True):
        assert isinstance(select, Select)
        for channel, weight in memories[select.sort].coordinates(operand).items():
            _first(select.maps).weight[copy, channel] = float(weight)


@dataclass
class _Mixer:
    """Writes the MLP of one memory in one layer."""

    maps: nn.Sequential
    stage: Stage
    sort: Sort
    places: Mapping[Atom, int]
    free: int = 0
    """The first hidden unit not yet taken."""

    def write(self, domain: Sequence[int] | None) -> None:
        """Each channel of the new memory is a linear form, kept by two units, and functions."""
        last = self.maps[-1]
        assert isinstance(last, nn.Linear)
        readers: dict[Atom, list[tuple[int, float]]] = {}
        for channel, combination in enumerate(self.stage.after[self.sort].channels):
            earlier, made = self.stage.parted(combination)
            linear = []
            for atom, weight in made:
                if isinstance(atom.made, Pointwise):
                    readers.setdefault(atom, []).append((channel, float(weight)))
                elif isinstance(atom.made, Constant):
                    self.add_bias(last, channel, float(weight))
                else:
                    linear.append((atom, weight))
            form = self.form((*earlier, *linear))
            if form:
                self.units(IDENTITY, form, [(channel, 1.0)])
        for atom, channels in readers.items():
            assert isinstance(atom.made, Pointwise)
            units, start = relu_units(atom.made.functions, domain)
            self.units(units, self.form(atom.made.argument), channels)
            for channel, factor in channels:
                self.add_bias(last, channel, factor * start)

    def form(self, combination: Combination) -> dict[int, Fraction]:
        """Weights of the MLP's inputs that sum to a combination."""
        earlier, made = self.stage.parted(combination)
        form = self.stage.before[self.sort].coordinates(earlier)
        return form | {self.places[atom]: weight for atom, weight in made}

    def units(
        self, units: Sequence[Unit], form: Mapping[int, Fraction], readers: list[tuple[int, float]]
    ) -> None:
        first, last = _first(self.maps), self.maps[-1]
        assert isinstance(last, nn.Linear)
        if first is last:  # one map without a hidden layer can hold a linear form as it is
            if units is not IDENTITY:
                raise LoweringError(
                    f"{self.sort.variable} is mixed by one linear map, which computes no function; "
                    'make the network with functions="mlp"'
                )
            for channel, factor in readers:
                for place, coefficient in form.items():
                    first.weight[channel, place] = factor * float(coefficient)
            return
        if self.free + len(units) > first.out_features:
            raise LoweringError(
                f"the MLP of {self.sort.variable} in layer {self.stage.number} has "
                f"{first.out_features} hidden units, too few for the formula; use a greater width"
            )
        for slope, bias, weight in units:
            for place, coefficient in form.items():
                first.weight[self.free, place] = slope * float(coefficient)
            self.add_bias(first, self.free, bias)
            for channel, factor in readers:
                last.weight[channel, self.free] = weight * factor
            self.free += 1

    def add_bias(self, part: nn.Linear, row: int, value: float) -> None:
        """Add to a bias, which a map need not have where nothing is added."""
        bias = cast(Tensor | None, part.bias)
        if bias is not None:
            bias[row] += value
        elif value:
            raise LoweringError(
                f"the MLP of {self.sort.variable} has no biases, and the formula needs one; make "
                'the network with functions="mlp" and pair_bias=True'
            )


def write_readout(
    readout: Readout,
    widths: Mapping[Sort, int],
    memories: Mapping[Sort, Basis],
    plan: FormulaPlan,
    output: int,
    mixers: Sequence[Sequence[nn.Linear]] | None = None,
) -> None:
    """Each output's linear form of what is read out, carried through the decision layers.

    `widths` are those of the last memories, `memories` what their first channels hold; `mixers` the
    maps in front of sums over marks, the innermost first, whose first channels then are the sums.
    """
    maps = linear_maps(readout.decision)
    forms = _forms(readout, widths, memories, plan)
    constants = [reading.constant for reading in plan.readings]
    for mixer in mixers or ():
        _write_maps(mixer, forms, constants, 0)
        forms = [{n: Fraction(1)} for n in range(len(forms))]
        constants = [Fraction(0) for _ in forms]
    constants = constants if plan.added is None else list(plan.added)
    _write_maps(maps, forms, constants, output)


def _forms(
    readout: Readout,
    widths: Mapping[Sort, int],
    memories: Mapping[Sort, Basis],
    plan: FormulaPlan,
) -> list[dict[int, Fraction]]:
    """Weights of what is read out that sum to each term, its constant aside."""
    starts = _starts(readout, widths)
    places = _select_sentences(readout, memories, plan, starts)
    rules = [step.rule for step in readout.plan.steps if step.rule.holes]
    sorts = _SORT_OF_PART | {str(rule): rule.holes[0] for rule in rules}
    forms = []
    for reading in plan.readings:
        form = {places[occurrence]: x for occurrence, x in reading.applications.items()}
        for part, combination in reading.parts.items():
            coordinates = memories[sorts[part]].coordinates(combination)
            for channel, weight in coordinates.items():
                place = starts[part] + channel
                form[place] = form.get(place, Fraction(0)) + weight
        forms.append(form)
    return forms


def _write_maps(
    maps: Sequence[nn.Linear],
    forms: Sequence[Mapping[int, Fraction]],
    constants: Sequence[Fraction],
    output: int,
) -> None:
    """Linear forms of what some maps read, as their outputs from `output` on."""
    for number, (form, constant) in enumerate(zip(forms, constants, strict=True)):
        rows = _signed_rows(2 * number) if maps[1:] else [(output + number, 1.0)]
        for place, weight in form.items():
            for row, sign in rows:
                maps[0].weight[row, place] += sign * float(weight)
        for here in maps[1:-1]:
            for row, sign in _signed_rows(2 * number):
                _carry(here.weight[row], 2 * number, sign)
        if maps[1:]:
            _carry(maps[-1].weight[output + number], 2 * number, 1.0)
        maps[-1].bias[output + number] = float(constant)


def _select_sentences(
    readout: Readout,
    memories: Mapping[Sort, Basis],
    plan: FormulaPlan,
    starts: Mapping[str, int],
) -> dict[Occurrence, int]:
    """Selectors that bring the operands of the rules of S; where each occurrence is read."""
    modules = {module.rule: module for module in readout.rules if isinstance(module, SentenceRule)}
    places: dict[Occurrence, int] = {}
    for rule, occurrences in plan.occurrences().items():
        for copy, occurrence in enumerate(occurrences):
            places[occurrence] = starts[str(rule)] + copy
            _select(modules[rule], copy, occurrence[1], memories)
    return places


def _carry(row: Tensor, start: int, sign: float) -> None:
    """Read a value that stands as relu(x), relu(−x)."""
    row[start], row[start + 1] = sign, -sign


def _signed_rows(start: int) -> list[tuple[int, float]]:
    return [(start, 1.0), (start + 1, -1.0)]


def _starts(readout: Readout, widths: Mapping[Sort, int]) -> dict[str, int]:
    """Where each part begins in what the decision layers read."""
    plan = readout.plan
    names = [*plan.local, *(name for name, _ in plan.pools if plan.pooled_width)]
    starts, start = {}, 0
    for name in names:
        starts[name] = start
        start += widths[_SORT_OF_PART[name]]
    for step in plan.steps:
        starts[str(step.rule)] = start
        start += step.copies
    return starts


def _first(maps: nn.Sequential) -> nn.Linear:
    first = maps[0]
    assert isinstance(first, nn.Linear)
    return first
