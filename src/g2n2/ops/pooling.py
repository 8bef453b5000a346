"""Sums of packed graphs that a read-out needs, in one pass, and one pass back.

A program takes a graph. The numbers are those of `ops.packed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .derivatives import once_differentiable
from .graph_index import GraphIndex
from .rule_kernels.kernels import clear_tail
from .rule_kernels.triton import TAIL
from .tiling import block, programs

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
        pool_kernel[(graphs, programs(max(widths), channels))](
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
        pool_spread_kernel[(work + tails,)](
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


@triton.jit
def strided_sums(x, stride, count, c, S: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """`[BM, BC]` sums of every BM-th of `count` rows, each a stride further than the one before."""
    total = tl.zeros([BM, BC], dtype=tl.float32)
    for start in range(0, count, BM):
        i = start + tl.arange(0, BM)
        inside = (i < count)[:, None] & (c < S)[None, :]
        place = x + i[:, None] * stride + c[None, :]
        total += tl.load(place, mask=inside, other=0.0).to(tl.float32)
    return total


@triton.jit
def pool_kernel(
    M, V, OUT, SIZES, NODES, PAIRS, width, per_node, per_pair, at_nodes, at_diagonal, at_rest,
    SM: tl.constexpr, SV: tl.constexpr, BC: tl.constexpr, BM: tl.constexpr, FEW: tl.constexpr,
    OF_NODES: tl.constexpr, OF_DIAGONAL: tl.constexpr, OF_REST: tl.constexpr,
):  # fmt: skip
    """BC channels of the sums of one packed graph, times the factors, where `at` says."""
    g = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    n = tl.load(SIZES + g)
    m, v = M + tl.load(PAIRS + g) * SM, V + tl.load(NODES + g).to(tl.int64) * SV
    out = OUT + g * width + c
    # Everything is read before anything is added up across threads.
    nodes, diagonal = tl.zeros([FEW, BC], tl.float32), tl.zeros([FEW, BC], tl.float32)
    every = tl.zeros([BM, BC], tl.float32)
    if OF_REST:
        every = strided_sums(m, SM, n * n, c, SM, BM, BC)
    if OF_DIAGONAL or OF_REST:
        diagonal = strided_sums(m, (n + 1) * SM, n, c, SM, FEW, BC)
    if OF_NODES:
        nodes = strided_sums(v, SV, n, c, SV, FEW, BC)
        tl.store(out + at_nodes, tl.sum(nodes, axis=0) * per_node, mask=c < SV)
    if OF_DIAGONAL or OF_REST:
        total = tl.sum(diagonal, axis=0)
        if OF_DIAGONAL:
            tl.store(out + at_diagonal, total * per_node, mask=c < SM)
        if OF_REST:
            tl.store(out + at_rest, (tl.sum(every, axis=0) - total) * per_pair, mask=c < SM)


@triton.jit
def pool_spread_kernel(
    DOUT, DM, DV, SIZES, NODES, PAIRS, NODE_TOTAL, PAIR_TOTAL, work, parts, tails, pair_rows,
    node_rows, width, per_node, per_pair, at_nodes, at_diagonal, at_rest,
    SM: tl.constexpr, SV: tl.constexpr, PM: tl.constexpr, PV: tl.constexpr, BM: tl.constexpr,
    OF_NODES: tl.constexpr, OF_DIAGONAL: tl.constexpr, OF_REST: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """BM pairs of a graph, and its nodes, have the gradients of their sums; tails are cleared."""
    me = tl.program_id(0)
    if me < work:
        g, part = me // parts, me % parts
        n = tl.load(SIZES + g)
        i = part * BM + tl.arange(0, BM)
        if OF_DIAGONAL or OF_REST:
            c = tl.arange(0, PM)
            channel = (c < SM)[None, :]
            diagonal, rest = tl.zeros([PM], dtype=tl.float32), tl.zeros([PM], dtype=tl.float32)
            if OF_DIAGONAL:
                diagonal += tl.load(DOUT + g * width + at_diagonal + c, mask=c < SM, other=0.0)
            if OF_REST:
                rest += tl.load(DOUT + g * width + at_rest + c, mask=c < SM, other=0.0)
            same = (i % tl.maximum(n + 1, 1) == 0)[:, None]
            value = tl.where(same, (diagonal * per_node)[None, :], (rest * per_pair)[None, :])
            place = DM + (tl.load(PAIRS + g) + i[:, None]) * SM + c[None, :]
            inside = (i < n * n)[:, None] & channel
            tl.store(place, value.to(DM.dtype.element_ty), mask=inside)
        if OF_NODES:
            c = tl.arange(0, PV)
            flow = tl.load(DOUT + g * width + at_nodes + c, mask=c < SV, other=0.0) * per_node
            value = flow.to(DV.dtype.element_ty)[None, :] + tl.zeros([BM, 1], DV.dtype.element_ty)
            place = DV + (tl.load(NODES + g).to(tl.int64) + i[:, None]) * SV + c[None, :]
            tl.store(place, value, mask=(i < n)[:, None] & (c < SV)[None, :])
    elif TAIL:
        me -= work
        if OF_DIAGONAL or OF_REST:
            clear_tail(DM, PAIR_TOTAL, me, tails, pair_rows, SM, SM, 16, 64)
        if OF_NODES:
            clear_tail(DV, NODE_TOTAL, me, tails, node_rows, SV, SV, 16, 64)
