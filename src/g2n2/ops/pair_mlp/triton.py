"""The matrix-memory update through the fused kernels: same signature and gradients as `reference`.

No hidden layer is ever written: the backward pass makes it anew. `[B, N, N, S]` tensors are read
where they are, so slices of a wider tensor cost no copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..precision import dot_precision
from ..tiling import as_rows, block, processors, programs
from .kernels import fused, weights
from .layout import MOST_PAIRS, Columns, laid_out
from .parts import Part
from .reference import Map, pair_mask


@dataclass(frozen=True)
class Tiles:
    """How a kernel is cut: rows and hidden units of a tile, warps, pipeline stages."""

    rows: int
    hidden: int
    warps: int
    stages: int

    def cut(self, hidden: int) -> dict[str, int]:
        """A kernel's settings; fewer hidden units where the tile's do not divide the layer."""
        units = next(size for size in (self.hidden, 32, 16) if hidden % size == 0)
        return {"BM": self.rows, "BH": units, "num_warps": self.warps, "num_stages": self.stages}


TILES = {
    "forward": Tiles(128, 32, 8, 3),
    "inputs": Tiles(128, 32, 8, 3),
    "weights": Tiles(32, 64, 4, 3),
}
"""The fastest of those tried on an H200 at width 64 in bfloat16; see docs/performance.md."""
WIDE_TILES = {
    "forward": Tiles(64, 32, 8, 1),
    "inputs": Tiles(64, 32, 8, 1),
    "weights": Tiles(32, 32, 4, 1),
}
"""For float32 and widths above `NARROW`: larger ones do not fit a Hopper chip's shared memory."""
NARROW = 64


def tiles_for(dtype: torch.dtype, widest: int) -> dict[str, Tiles]:
    """How the kernels are cut for inputs and outputs of so many channels."""
    return WIDE_TILES if dtype == torch.float32 or widest > NARROW else TILES


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """See `reference.mix`. All tensors share one dtype."""
    layout = laid_out(parts)
    result: Tensor = _Mix.apply(  # type: ignore[no-untyped-call]
        activation,
        layout.columns,
        mask,
        *first,
        *second,
        layout.diagonal,
        residual,
        layout.left,
        layout.right,
        *layout.pairs,
    )
    return result


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        activation, columns, mask, w1, b1, w2, b2, vector, residual, left, right, *pairs = args
        w1, w2 = w1.contiguous(), w2.contiguous()
        reach = None
        if vector is not None:  # what the diagonal adds to the hidden layer: n rows and not n²
            own = slice(columns.diagonal, columns.diagonal + vector.shape[-1])
            reach = vector @ w1[:, own].T
        rows = [as_rows(x) for x in pairs]
        factors = () if left is None else (as_rows(left), as_rows(right))
        call = _Call(rows, factors, mask.to(torch.int8), w1, b1, w2, reach, activation, columns)
        ctx.add, ctx.bias2, ctx.activation = residual is not None, b2 is not None, activation
        ctx.factors, ctx.columns = len(factors), columns
        ctx.save_for_backward(call.mask, w1, b1, w2, vector, reach, *factors, *rows)
        return call.forward(b2, None if residual is None else residual.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        mask, w1, b1, w2, vector, reach, *rows = ctx.saved_tensors
        factors, pairs = tuple(rows[: ctx.factors]), rows[ctx.factors :]
        call = _Call(pairs, factors, mask, w1, b1, w2, reach, ctx.activation, ctx.columns)
        dout = grads[0].contiguous()
        dpairs, dfactors, dreach, dresidual = call.input_gradients(dout, ctx.add)
        dw1, db1, dw2 = call.weight_gradients(dout)
        dvector = db2 = None
        if dreach is not None:
            own = slice(ctx.columns.diagonal, ctx.columns.diagonal + vector.shape[-1])
            dvector = dreach @ w1[:, own]
            dw1[:, own] = dreach.flatten(0, 1).T @ vector.flatten(0, 1)
        if ctx.bias2:
            real = dout * pair_mask(mask > 0) if dresidual is None else dresidual
            db2 = real.flatten(0, -2).sum(0, dtype=torch.float32).to(w2.dtype)
        shape = dout.shape[:3]
        left, right = (g.view(*shape, -1) for g in dfactors) if dfactors else (None, None)
        shaped = (g.view(*shape, -1) for g in dpairs)
        return None, None, None, dw1, db1, dw2, db2, dvector, dresidual, left, right, *shaped


@dataclass
class _Call:
    """One update: its tensors as rows `[BNN, S]`, and the three kernels on them."""

    pairs: list[Tensor]
    factors: tuple[Tensor, ...]
    mask: Tensor
    w1: Tensor
    b1: Tensor | None
    w2: Tensor
    reach: Tensor | None
    activation: str
    columns: Columns

    def __post_init__(self) -> None:
        self.batch, self.nodes = self.mask.shape
        self.count = self.batch * self.nodes**2
        self.hidden = len(self.w1)
        self.empty = MOST_PAIRS - len(self.pairs)
        some = self.pairs[0]  # stands where nothing is read
        places = [*self.pairs, *[some] * self.empty, *(self.factors or (some, some))]
        self.inputs = (*places, self.w1, self.b1, self.reach, self.w2)
        strides = (x.stride(0) for x in places)
        self.sizes = (self.count, self.nodes, *strides, self.w1.shape[1], self.hidden)
        widths = [x.shape[1] for x in self.pairs] + [0] * self.empty
        widths.append(self.factors[0].shape[1] if self.factors else 0)
        starts = [*self.columns.pairs, *[0] * self.empty, self.columns.hadamard]
        self.tiles = tiles_for(self.w1.dtype, max(*widths, len(self.w2)))
        self.settings = {
            **{f"S{k}": width for k, width in enumerate(widths)},
            **{f"P{k}": block(width) for k, width in enumerate(widths)},
            **{f"C{k}": start for k, start in enumerate(starts)},
            "SO": len(self.w2),
            "PO": block(len(self.w2)),
            "BIAS": self.b1 is not None,
            "DIAGONAL": self.reach is not None,
            "SILU": self.activation == "silu",
            "PRECISION": dot_precision(),
        }

    def forward(self, b2: Tensor | None, residual: Tensor | None) -> Tensor:
        """`[B, N, N, O]`."""
        out = self.w2.new_empty(self.batch, self.nodes, self.nodes, len(self.w2))
        tiles = self.tiles["forward"]
        fused.forward_kernel[(programs(self.count, tiles.rows),)](
            *self.inputs, b2, residual, self.mask, out, *self.sizes, **self.settings,
            **tiles.cut(self.hidden), ADD=residual is not None,
        )  # fmt: skip
        return out

    def input_gradients(
        self, dout: Tensor, add: bool
    ) -> tuple[list[Tensor], list[Tensor], Tensor | None, Tensor | None]:
        """Gradients of the inputs, both Hadamard factors, the diagonal's reach, the residual."""
        dpairs = [x.new_empty(self.count, x.shape[1]) for x in self.pairs]
        dfactors = [x.new_empty(self.count, x.shape[1]) for x in self.factors]
        dreach = None if self.reach is None else torch.empty_like(self.reach)
        dresidual = torch.empty_like(dout) if add else None
        tiles = self.tiles["inputs"]
        fused.inputs_kernel[(programs(self.count, tiles.rows),)](
            *self.inputs, dout, self.mask,
            *dpairs, *[None] * self.empty, *(dfactors or (None, None)), dreach, dresidual,
            *self.sizes, **self.settings, **tiles.cut(self.hidden), ADD=add,
        )  # fmt: skip
        return dpairs, dfactors, dreach, dresidual

    def weight_gradients(self, dout: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Partial sums, one for each span of rows and chunk of hidden units, then added up."""
        tiles = self.tiles["weights"]
        cut = tiles.cut(self.hidden)
        chunks = self.hidden // cut["BH"]
        wanted = max(1, 2 * processors(dout.device) // chunks)
        span = programs(programs(self.count, wanted), tiles.rows) * tiles.rows
        sums = programs(self.count, span)
        wide = torch.float32
        dw1 = dout.new_empty(sums, *self.w1.shape, dtype=wide)
        dw2 = dout.new_empty(sums, *self.w2.shape, dtype=wide)
        db1 = None if self.b1 is None else dout.new_empty(sums, self.hidden, dtype=wide)
        weights.weights_kernel[(chunks, sums)](
            *self.inputs, dout, self.mask, dw1, db1, dw2, *self.sizes, span,
            **self.settings, **cut,
        )  # fmt: skip
        bias = None if db1 is None else db1.sum(0).to(self.w1.dtype)
        return dw1.sum(0).to(self.w1.dtype), bias, dw2.sum(0).to(self.w2.dtype)
