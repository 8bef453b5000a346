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
from typing import Any, cast

import torch
from torch import Tensor, nn

from g2n2.errors import LoweringError
from g2n2.nn.layer import ApplyRule, Select, Update
from g2n2.nn.model import GrammarGNN
from g2n2.nn.readout import Readout

CORNER, HOLD = 0.25, 0.25
"""The weight a of pixels across a corner, and w on the border: of a = ¼, ½ and w = 0, ¼, ½, ¾, 1¼,
1½ the pair that is best on the validation image before training (band-pass, six layers).
"""
SPREAD = 0.02
"""Size of what stays random."""
FAR = 10.0
"""More than any entry of A² on a grid: what closes a gate."""
SCALE = 0.25
"""κ, which brings the spectrum of the grid's Laplacian from 0 … 8 to −1 … 1."""
UNIT, MIRROR, HELD, BORDER = range(4)
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
    model: GrammarGNN, corner: float = CORNER, hold: float = HOLD
) -> list[int]:
    """Write the start into a network of r-G_L3 with the preset `paper` and one node feature.

    Returned are the channels of H that hold polynomials in the end.
    """
    plan = model.plan.inputs
    inputs = (plan.matrix, plan.column, plan.node_features, model.plan.preset.name)
    blocks = []
    if inputs == (("I", "A"), ("X", "1"), 1, "paper"):
        updates = [cast(Any, layer).updates for layer in model.layers]
        blocks = [(Block(parts["M"]), Block(parts["V"])) for parts in updates]
    if not blocks or blocks[0][0].width <= BORDER:
        raise LoweringError(
            "the Chebyshev start needs r-G_L3, one node feature, the preset paper and four "
            "channels in C or more"
        )
    for block in (block for pair in blocks for block in pair):
        block.last.weight.mul_(SPREAD)
        block.first.bias.zero_()
        block.last.bias.zero_()
    for matrix, _ in blocks:
        matrix.first.bias.requires_grad_(False)
        matrix.last.bias.requires_grad_(False)
    half = blocks[0][1].width // 2
    mirror, held = Series(MIRROR, 1, half), Series(HELD, half, half)
    (matrix, column), *later = blocks
    _first_layer(matrix, corner, hold)
    column.linear(0, {0: 1.0})
    for number, (matrix, column) in enumerate(later):
        column.linear(0, {0: 1.0})
        first_free = _extend(column, mirror, 0)
        matrix.linear(UNIT, {UNIT: 1.0})
        _square(matrix, mirror.matrix, 0)
        if number == 0:  # S₁ = I + diag(w)(T₁ − I)
            matrix.read(1, {BORDER: 1.0}, {MIRROR: 1.0, UNIT: -1.0})
            matrix.linear(HELD, {UNIT: 1.0, matrix.output + 1: 1.0})
        else:
            _extend(column, held, first_free)
            _square(matrix, held.matrix, 1)
    return [0, *(s.channel(degree) for s in (mirror, held) for degree in range(1, s.count))]


@torch.no_grad()
def write_linear_readout(readout: Readout, weights: Tensor, constant: float) -> None:
    """A linear map of all features as the start of two decision layers, the rest kept as it is.

    The read-out has two linear maps with ReLU between them, and perhaps one beside them.
    """
    first, last = linear_maps(readout.decision)
    last.weight.zero_()
    for row, sign in enumerate((1.0, -1.0)):
        first.weight[row], first.bias[row] = sign * weights, 0.0
        last.weight[0, row] = sign
    last.bias.fill_(constant)
    if readout.straight is not None:
        readout.straight.weight.zero_()


class Block:
    """One update of a layer: its MLP, and its product MM or MV_c."""

    def __init__(self, update: Update) -> None:
        self.first, self.last = linear_maps(update.mixer)
        rules = [cast(ApplyRule, step) for step in update.steps]
        bodies = [rule.rule.body_text() for rule in rules]
        place = next(n for n, body in enumerate(bodies) if body in ("MM", "MV_c"))
        self.selectors = _selectors(rules[place])
        copies = [_selectors(rule)[0].out_features for rule in rules]
        # where the products begin in what the MLP reads
        self.output = self.first.in_features - sum(copies[place:])

    @property
    def width(self) -> int:
        return self.last.out_features

    def linear(self, channel: int, form: Mapping[int, float]) -> None:
        """One channel as a linear form of the MLP's inputs: relu(x) − relu(−x)."""
        self.last.weight[channel] = _row(self.last, {2 * channel: 1.0, 2 * channel + 1: -1.0})
        for unit, sign in ((2 * channel, 1.0), (2 * channel + 1, -1.0)):
            self.first.weight[unit] = sign * _row(self.first, form)
            self.first.bias[unit] = 0.0

    def read(self, copy: int, *forms: Mapping[int, float]) -> None:
        """Let one copy of the product read these forms of the memories' channels."""
        for selector, form in zip(self.selectors, forms, strict=True):
            selector.weight[copy] = _row(selector, form)


def _first_layer(matrix: Block, corner: float, hold: float) -> None:
    """I, T₁ and diag(w) from I, A and A², entry by entry."""
    identity, edge, walks = 0, 1, matrix.output
    matrix.read(0, {edge: 1.0}, {edge: 1.0})
    units = [  # weights of the inputs, and bias: all inputs are whole numbers, and none is negative
        ({identity: 1.0}, 0.0),
        ({edge: 1.0}, 0.0),
        ({walks: 1.0, identity: FAR}, -FAR),  # the degree, on the diagonal
        ({walks: 1.0, identity: FAR}, -FAR - 3.0),  # 1 for inner pixels, on the diagonal
        ({walks: 1.0, identity: -FAR}, -1.0),  # A'
    ]
    for row, (weights, bias) in enumerate(units):
        matrix.first.weight[row] = _row(matrix.first, weights)
        matrix.first.bias[row] = bias
    # a pixel of degree 2, 3, 4 has 1, 2, 4 others across a corner: degree − 1, and 1 more inside.
    across = SCALE * corner
    channels = {
        UNIT: (1.0,),
        MIRROR: (1.0 + across, SCALE, -SCALE - across, -across, across),
        BORDER: (hold, 0.0, 0.0, 1.0 - hold),
    }
    for channel, shares in channels.items():
        matrix.last.weight[channel] = _row(matrix.last, dict(enumerate(shares)))


def _square(matrix: Block, channel: int, copy: int) -> None:
    """T_2m = 2 T_m T_m − I."""
    matrix.read(copy, {channel: 1.0}, {channel: 1.0})
    matrix.linear(channel, {matrix.output + copy: 2.0, UNIT: -1.0})


def _extend(column: Block, series: Series, copy: int) -> int:
    """Keep the polynomials there are and add as many more; return the next free copy."""
    degree = series.count
    for lower in range(1, degree):
        column.linear(series.channel(lower), {series.channel(lower): 1.0})
    for j in range(min(degree, series.capacity - degree)):
        column.read(copy, {series.matrix: 1.0}, {series.channel(j): 1.0})
        product = column.output + copy
        form = {product: 2.0, series.channel(degree - j): -1.0} if j else {product: 1.0}
        column.linear(series.channel(degree + j), form)
        series.count, copy = series.count + 1, copy + 1
    return copy


def _row(part: nn.Linear, form: Mapping[int, float]) -> Tensor:
    row = torch.zeros_like(part.weight[0])
    for index, weight in form.items():
        row[index] = weight
    return row


def _selectors(rule: ApplyRule) -> list[nn.Linear]:
    return [cast(nn.Linear, cast(Select, select).maps[0]) for select in rule.selectors]


def linear_maps(mlp: nn.Sequential) -> tuple[nn.Linear, nn.Linear]:
    first, last = (part for part in mlp if isinstance(part, nn.Linear))
    return first, last
