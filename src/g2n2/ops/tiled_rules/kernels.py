"""Triton kernels of products on packed graphs of any size.

Where graph g lies is read from tensors: SIZES its nodes, NODES and PAIRS its first ones, OWNERS the
graph of each node, −1 for rows that are no node.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pair_rows(start, n, i, j, TURN: tl.constexpr):
    """Rows of the pairs (i, j), or (j, i) where the matrix is to be turned."""
    return start + (j * n + i if TURN else i * n + j)


@triton.jit
def matrix_matrix_kernel(
    X, Y, SCALE, OUT, SIZES, PAIRS, tiles, stride_x, stride_y, stride_out, x_from, y_from, to,
    TURN_X: tl.constexpr, TURN_Y: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
    BC: tl.constexpr,
):  # fmt: skip
    """T × T entries of XY in BC channels of one graph, times its scale.

    Channels lie side by side, so a product in each of them is a sum of broadcast products. Tensor
    cores would re-lay every operand, and Triton 3.6 gets batches of products in float32 wrong.
    """
    me = tl.program_id(0)
    g, i0, j0 = me // (tiles * tiles), me // tiles % tiles * T, me % tiles * T
    n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
    if (i0 < n) & (j0 < n):
        c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, None, :]
        i = (i0 + tl.arange(0, T))[:, None, None]
        j = (j0 + tl.arange(0, T))[None, :, None]
        total = tl.zeros([T, T, BC], dtype=tl.float32)
        for k in range(0, n):
            place = X + pair_rows(start, n, i, k, TURN_X) * stride_x + x_from + c
            x = tl.load(place, mask=(i < n) & (c < S), other=0.0).to(tl.float32)
            place = Y + pair_rows(start, n, k, j, TURN_Y) * stride_y + y_from + c
            y = tl.load(place, mask=(j < n) & (c < S), other=0.0).to(tl.float32)
            total += x * y
        value = (total * tl.load(SCALE + g)).to(OUT.dtype.element_ty)
        place = OUT + pair_rows(start, n, i, j, False) * stride_out + to + c
        tl.store(place, value, mask=(i < n) & (j < n) & (c < S))


@triton.jit
def matrix_column_kernel(
    X, V, SCALE, OUT, SIZES, NODES, PAIRS, OWNERS, stride_x, stride_v, step,
    TURN: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Entry i of Xv in BC channels, times the graph's scale; `step` is 0 for one X of all channels.

    Rows that are no node become 0.
    """
    node = tl.program_id(0)
    owner = tl.load(OWNERS + node)
    g = tl.maximum(owner, 0)
    n = tl.where(owner < 0, 0, tl.load(SIZES + g))
    first, start = tl.load(NODES + g).to(tl.int64), tl.load(PAIRS + g)
    i = node - first
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros([BC], dtype=tl.float32)
    for j0 in range(0, n, BM):
        j = j0 + tl.arange(0, BM)
        inside = (j < n)[:, None] & (c < S)[None, :]
        row = pair_rows(start, n, i, j, TURN)
        x = tl.load(X + row[:, None] * stride_x + c[None, :] * step, mask=inside, other=0.0)
        v = tl.load(V + (first + j)[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
        total += tl.sum(x.to(tl.float32) * v.to(tl.float32), axis=0)
    value = (total * tl.load(SCALE + g)).to(OUT.dtype.element_ty)
    tl.store(OUT + node.to(tl.int64) * S + c, value, mask=c < S)
