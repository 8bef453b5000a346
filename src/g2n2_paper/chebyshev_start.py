"""A start for G²N² on a grid: its layers compute Chebyshev polynomials before they learn anything.

Only graph words are written into the weights, as they are built into ChebNet; no filter is used.
With r-G_L3 and the preset `paper`:

- Layer 1 makes T₁ = I − κ((D − A) + a(D' − A')). D stands on the diagonal of A², and A' joins the
  pixels across a corner, where A² is 2 and less on every other pair. With a = ¼ the stencil is
  nearly the same in all directions, with a = 0 it is D − A.
- Layer 2 makes a second one, S₁ = I + diag(w)(T₁ − I), with w = 1 inside and less on the border:
  T₁ mirrors the image at the border, S₁ lets border pixels hold on to their own value.
- A layer that finds T_m in C makes T_2m = 2 T_m T_m − I of it, and adds to T_0 f … T_(m−1) f in H
  as many more, T_(m+j) f = 2 T_m (T_j f) − T_(m−j) f. The same for S.

After L layers H holds all degrees of T below 2^(L−1) and of S below 2^(L−2). Everything else starts
small and at random, and is learned like the rest, but for the biases of MLP_M: what a bias puts on
all pairs grows n-fold in every product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from g2n2.errors import LoweringError
from g2n2.nn.layer import ApplyRule, Select, Update
from g2n2.nn.model import GrammarGNN
from g2n2.nn.readout import Readout

FAR = 10.0
"""More than any entry of A² on a grid: what closes a gate."""
SCALE = 0.25
"""κ, which brings the spectrum of the grid's Laplacian from 0 … 8 to −1 … 1."""
UNIT, MIRROR, HOLD, BORDER = range(4)
"""The channels of C for I, for T_m, for S_m and for diag(w)."""


@dataclass
class Series:
    """Polynomials of one matrix on their way into H."""

    matrix: int  # channel of C that holds the one of degree m
    start: int  # channel of H for degree 1; degree 0 is f, in channel 0 for all
    capacity: int  # degrees stay below this
    count: int = 1  # degrees in H so far

    def channel(self, degree: int) -> int:
        return self.start + degree - 1 if degree else 0


@torch.no_grad()
def write_chebyshev_start(
    model: GrammarGNN, corner: float, hold: float, spread: float = 0.02
) -> list[int]:
    """Write the start into a network of r-G_L3 with the preset `paper` and one node feature.

    `corner` is the weight a of pixels across a corner, `hold` what w is on the border, `spread` the
    size of what stays random. Returned are the channels of H that hold polynomials in the end.
    """
    updates = [_updates(layer) for layer in model.layers]
    plan, half = model.plan.inputs, _width(updates[0][1]) // 2
    inputs = (plan.matrix, plan.column, plan.node_features, model.plan.preset.name)
    if inputs != (("I", "A"), ("X", "1"), 1, "paper") or _width(updates[0][0]) <= BORDER:
        raise LoweringError(
            "the Chebyshev start needs r-G_L3, one node feature, the preset paper and four "
            "channels in C or more"
        )
    for matrix, column in updates:
        for first, last in (_maps(matrix.mixer), _maps(column.mixer)):
            last.weight.mul_(spread)
            first.bias.zero_()
            last.bias.zero_()
        for part in _maps(matrix.mixer):
            part.bias.requires_grad_(False)
    mirror, held = Series(MIRROR, 1, half), Series(HOLD, half, half)
    _first_layer(updates[0][0], corner, hold)
    _linear(updates[0][1], 0, {0: 1.0})
    for number, (matrix, column) in enumerate(updates[1:], start=2):
        _linear(column, 0, {0: 1.0})
        first_free = _extend(column, mirror, 0)
        _linear(matrix, UNIT, {UNIT: 1.0})
        _square(matrix, mirror.matrix, 0)
        if number == 2:  # S₁ = I + diag(w)(T₁ − I)
            product = _product(matrix)
            _read(product, 1, {BORDER: 1.0}, {MIRROR: 1.0, UNIT: -1.0})
            _linear(matrix, HOLD, {UNIT: 1.0, _output(matrix, product) + 1: 1.0})
        else:
            _extend(column, held, first_free)
            _square(matrix, held.matrix, 1)
    return [0, *(s.channel(degree) for s in (mirror, held) for degree in range(1, s.count))]


@torch.no_grad()
def write_linear_readout(readout: Readout, weights: Tensor, constant: float) -> None:
    """A linear map of all features as the start of two decision layers, the rest kept as it is.

    The read-out has two linear maps with ReLU between them, and perhaps one beside them.
    """
    first, last = (part for part in readout.decision if isinstance(part, nn.Linear))
    last.weight.zero_()
    for row, sign in enumerate((1.0, -1.0)):
        first.weight[row], first.bias[row] = sign * weights, 0.0
        last.weight[0, row] = sign
    last.bias.fill_(constant)
    if readout.straight is not None:
        readout.straight.weight.zero_()


def _first_layer(matrix: Update, corner: float, hold: float) -> None:
    """I, T₁ and diag(w) from I, A and A², entry by entry."""
    product = _product(matrix)
    identity, edge = 0, 1
    _read(product, 0, {edge: 1.0}, {edge: 1.0})
    walks = _output(matrix, product)
    units = [  # weights of the inputs, and bias: all inputs are whole numbers, and none is negative
        ({identity: 1.0}, 0.0),
        ({edge: 1.0}, 0.0),
        ({walks: 1.0, identity: FAR}, -FAR),  # the degree, on the diagonal
        ({walks: 1.0, identity: FAR}, -FAR - 3.0),  # 1 for inner pixels, on the diagonal
        ({walks: 1.0, identity: -FAR}, -1.0),  # A'
    ]
    first, last = _maps(matrix.mixer)
    for row, (weights, bias) in enumerate(units):
        first.weight[row] = _row(first, weights)
        first.bias[row] = bias
    # a pixel of degree 2, 3, 4 has 1, 2, 4 others across a corner: degree − 1, and 1 more inside.
    across = SCALE * corner
    channels = {
        UNIT: (1.0,),
        MIRROR: (1.0 + across, SCALE, -SCALE - across, -across, across),
        BORDER: (hold, 0.0, 0.0, 1.0 - hold),
    }
    for channel, shares in channels.items():
        last.weight[channel] = _row(last, dict(enumerate(shares)))


def _square(matrix: Update, channel: int, copy: int) -> None:
    """T_2m = 2 T_m T_m − I."""
    product = _product(matrix)
    _read(product, copy, {channel: 1.0}, {channel: 1.0})
    _linear(matrix, channel, {_output(matrix, product) + copy: 2.0, UNIT: -1.0})


def _extend(column: Update, series: Series, copy: int) -> int:
    """Keep the polynomials there are and add as many more; return the next free copy."""
    product = _product(column)
    output, degree = _output(column, product), series.count
    for lower in range(1, degree):
        _linear(column, series.channel(lower), {series.channel(lower): 1.0})
    for j in range(min(degree, series.capacity - degree)):
        _read(product, copy, {series.matrix: 1.0}, {series.channel(j): 1.0})
        form = {output + copy: 2.0, series.channel(degree - j): -1.0} if j else {output + copy: 1.0}
        _linear(column, series.channel(degree + j), form)
        series.count, copy = series.count + 1, copy + 1
    return copy


def _linear(update: Update, channel: int, form: Mapping[int, float]) -> None:
    """One channel as a linear form of the mixer's inputs: relu(x) − relu(−x)."""
    first, last = _maps(update.mixer)
    last.weight[channel] = _row(last, {2 * channel: 1.0, 2 * channel + 1: -1.0})
    for unit, sign in ((2 * channel, 1.0), (2 * channel + 1, -1.0)):
        first.weight[unit] = sign * _row(first, form)
        first.bias[unit] = 0.0


def _read(rule: ApplyRule, copy: int, *forms: Mapping[int, float]) -> None:
    """Let one copy of a product read these forms of the memories' channels."""
    for select, form in zip(rule.selectors, forms, strict=True):
        part = cast(nn.Linear, cast(Select, select).maps[0])
        part.weight[copy] = _row(part, form)


def _row(part: nn.Linear, form: Mapping[int, float]) -> Tensor:
    row = torch.zeros_like(part.weight[0])
    for index, weight in form.items():
        row[index] = weight
    return row


def _updates(layer: nn.Module) -> tuple[Update, Update]:
    parts = cast(nn.ModuleDict, layer.get_submodule("updates"))
    return cast(Update, parts["M"]), cast(Update, parts["V"])


def _product(update: Update) -> ApplyRule:
    """The rule MM of a matrix update, MV_c of a column update."""
    return next(rule for rule in _rules(update) if rule.rule.body_text() in ("MM", "MV_c"))


def _output(update: Update, wanted: ApplyRule) -> int:
    """Where a rule's outputs begin in what the mixer reads."""
    rules = _rules(update)
    selectors = [cast(Select, rule.selectors[0]).maps[0] for rule in rules]
    copies = [cast(nn.Linear, selector).out_features for selector in selectors]
    return _maps(update.mixer)[0].in_features - sum(copies[rules.index(wanted) :])


def _rules(update: Update) -> list[ApplyRule]:
    return [cast(ApplyRule, step) for step in update.steps]


def _width(update: Update) -> int:
    return _maps(update.mixer)[1].out_features


def _maps(mixer: nn.Sequential) -> tuple[nn.Linear, nn.Linear]:
    first, last = (part for part in mixer if isinstance(part, nn.Linear))
    return first, last
