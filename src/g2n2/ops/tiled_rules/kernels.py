"""Triton kernels of products on packed graphs of any size.

Where graph g lies is read from tensors: SIZES its nodes, NODES and PAIRS its first ones, OWNERS the
graph of each node, −1 for rows that are no node.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_rows(start, n, i, j, TURN: tl.constexpr):
    """`[T, T, 1]` rows of the pairs (i, j), or (j, i) where the matrix is to be turned."""
    row = j[None, :] * n + i[:, None] if TURN else i[:, None] * n + j[None, :]
    return (start + row)[:, :, None]


@triton.jit
def matrix_matrix_kernel(
    X, Y, SCALE, OUT, SIZES, PAIRS, tiles, stride_x, stride_y, stride_out, x_from, y_from, to,
    TURN_X: tl.constexpr, TURN_Y: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
    BC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of XY in BC channels of one graph, times its scale."""
    me = tl.program_id(0)
    g, i0, j0 = me // (tiles * tiles), me // tiles % tiles * T, me % tiles * T
    n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
    if (i0 < n) & (j0 < n):
        c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, None, :]
        i, j = i0 + tl.arange(0, T), j0 + tl.arange(0, T)
        total = tl.zeros([BC, T, T], dtype=tl.float32)
        for k0 in range(0, n, T):
            k = k0 + tl.arange(0, T)
            inside = ((i < n)[:, None] & (k < n)[None, :])[:, :, None] & (c < S)
            place = X + tile_rows(start, n, i, k, TURN_X) * stride_x + x_from + c
            x = tl.permute(tl.load(place, mask=inside, other=0.0), (2, 0, 1))
            inside = ((k < n)[:, None] & (j < n)[None, :])[:, :, None] & (c < S)
            place = Y + tile_rows(start, n, k, j, TURN_Y) * stride_y + y_from + c
            y = tl.permute(tl.load(place, mask=inside, other=0.0), (2, 0, 1))
            total += tl.dot(x, y, input_precision=PRECISION, out_dtype=tl.float32)
        value = tl.permute(total * tl.load(SCALE + g), (1, 2, 0)).to(OUT.dtype.element_ty)
        inside = ((i < n)[:, None] & (j < n)[None, :])[:, :, None] & (c < S)
        tl.store(OUT + tile_rows(start, n, i, j, False) * stride_out + to + c, value, mask=inside)


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
        row = start + (j * n + i if TURN else i * n + j)
        x = tl.load(X + row[:, None] * stride_x + c[None, :] * step, mask=inside, other=0.0)
        v = tl.load(V + (first + j)[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
        total += tl.sum(x.to(tl.float32) * v.to(tl.float32), axis=0)
    value = (total * tl.load(SCALE + g)).to(OUT.dtype.element_ty)
    tl.store(OUT + node.to(tl.int64) * S + c, value, mask=c < S)
