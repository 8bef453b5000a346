"""Sums of packed graphs that a read-out needs, in one pass, and one pass back.

A program takes a graph. The numbers are those of `ops.packed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..derivatives import once_differentiable
from ..graph_index import GraphIndex
from ..rule_kernels.triton import TAIL
from ..tiling import block, programs
from . import kernels

ENTRIES = 128
ROW = 32
"""Entries of a row at a time."""
MANY, CHANNELS = 256, 32
"""Entries and channels of a packed graph at a time."""


def packed_pools(
    matrix: Tensor | None,
    vector: Tensor | None,
    index: GraphIndex,
    pools: Sequence[str],
    unit: float = 1.0,
) -> Tensor:
    """`[G, …]` float32: sums of packed rows side by side, in the order of `pools`.

    Rows that belong to no graph have gradient 0.

    Args:
        matrix: `[P, S]`, summed where `pools` has `diagonal` or `off-diagonal`.
        vector: `[Q, S]`, summed over `nodes`.
        index: Where graphs lie.
        pools: Which sums, each once.
        unit: A sum over nodes is divided by it, one over pairs by its square.
    """
    result: Tensor = _Pools.apply(  # type: ignore[no-untyped-call]
        matrix if {*pools} - {"nodes"} else None,
        vector if "nodes" in pools else None,
        index,
        tuple(pools),
        unit,
    )
    return result


def packed_sums(rows: Tensor, index: GraphIndex) -> tuple[Tensor, Tensor]:
    """`[G, S]` over the diagonal of each graph's `[P, S]`, and over all other pairs."""
    diagonal, rest = packed_pools(rows, None, index, ("diagonal", "off-diagonal")).chunk(2, dim=-1)
    return diagonal, rest


class _Pools(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        matrix, vector, index, pools, unit = args
        given = [None if x is None else x.contiguous() for x in (matrix, vector)]
        some = next(x for x in given if x is not None)
        widths = [0 if x is None else x.shape[1] for x in given]
        starts, width = {}, 0
        for pool in pools:
            starts[pool] = width
            width += widths[pool == "nodes"]
        ctx.shared = _shared(starts, widths, width, unit)
        ctx.index, ctx.like, ctx.widths = index, [x is not None for x in given], widths
        ctx.dtype, ctx.rows = some.dtype, [0 if x is None else len(x) for x in given]
        graphs = len(index.sizes)
        out: Tensor = some.new_empty(graphs, width, dtype=torch.float32)
        channels = min(CHANNELS, block(max(widths)))
        kernels.pool_kernel[(graphs, programs(max(widths), channels))](
            *(some if x is None else x for x in given), out, index.sizes, index.node_starts,
            index.pair_starts, **ctx.shared, BC=channels, BM=MANY, FEW=ROW, num_warps=8,
        )  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        index: GraphIndex = ctx.index
        grads_in = [
            grads[0].new_empty(count, width, dtype=ctx.dtype) if there else None
            for count, width, there in zip(ctx.rows, ctx.widths, ctx.like, strict=True)
        ]
        parts = programs(index.most**2, ENTRIES)
        work, tails = parts * len(index.sizes), TAIL if index.totals is not None else 0
        kernels.pool_spread_kernel[(work + tails,)](
            grads[0].contiguous(), *(grads[0] if x is None else x for x in grads_in), index.sizes,
            index.node_starts, index.pair_starts, *(index.totals or (index.sizes, index.sizes)),
            work, parts, tails, *ctx.rows, **ctx.shared, PM=block(ctx.widths[0]),
            PV=block(ctx.widths[1]), BM=ENTRIES, TAIL=tails > 0,
        )  # fmt: skip
        return *grads_in, None, None, None


def _shared(
    starts: dict[str, int], widths: list[int], width: int, unit: float
) -> dict[str, int | float | bool]:
    """What both kernels are told about the sums."""
    return {
        "width": width,
        "per_node": 1.0 / unit,
        "per_pair": 1.0 / unit**2,
        "at_nodes": starts.get("nodes", 0),
        "at_diagonal": starts.get("diagonal", 0),
        "at_rest": starts.get("off-diagonal", 0),
        "SM": widths[0],
        "SV": widths[1],
        "OF_NODES": "nodes" in starts,
        "OF_DIAGONAL": "diagonal" in starts,
        "OF_REST": "off-diagonal" in starts,
    }
