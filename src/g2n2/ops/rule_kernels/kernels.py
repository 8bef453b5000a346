"""Triton kernels of a layer's rules on graphs of few nodes.

Products: a program owns some channels of one graph, all n × n entries in one tile, so that they are
one batched product on tensor cores. Everything else: a program owns one row of a graph's matrix
(one column on the way back), all channels side by side. Where graph g lies is read from tensors:
SIZES its nodes, WIDTHS the pairs from one row of its matrix to the next, NODES and PAIRS its first
ones, OWNERS the graph of each node, −1 for rows that are no node.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def powered(SCALE, g, POWER: tl.constexpr):
    value = tl.load(SCALE + g).to(tl.float32)
    result = value
    for _ in tl.static_range(1, POWER):
        result *= value
    return result


@triton.jit
def square(g, SIZES, WIDTHS, PAIRS, P: tl.constexpr):
    """`[P, P, 1]` numbers of the pairs of graph g, and which of them are there."""
    i = tl.arange(0, P)
    n, width = tl.load(SIZES + g), tl.load(WIDTHS + g)
    row = tl.load(PAIRS + g) + (i[:, None] * width + i[None, :])
    return row[:, :, None], ((i < n)[:, None] & (i < n)[None, :])[:, :, None]


@triton.jit
def place_of(node, SIZES, WIDTHS, NODES, PAIRS, OWNERS):
    """Of a node: its graph, that graph's size, width and first node and pair, its own number."""
    owner = tl.load(OWNERS + node)
    g = tl.maximum(owner, 0)
    n = tl.where(owner < 0, 0, tl.load(SIZES + g))
    first = tl.load(NODES + g)
    return g, n, tl.load(WIDTHS + g), first.to(tl.int64), tl.load(PAIRS + g), node - first


@triton.jit
def zero_tail_kernel(X, TOTAL, count, width, stride, BM: tl.constexpr, BC: tl.constexpr):
    """Clear rows from the total on."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tail = (rows >= tl.load(TOTAL)) & (rows < count)
    if tl.sum(tail.to(tl.int32), axis=0) > 0:
        for start in range(0, width, BC):
            c = start + tl.arange(0, BC)
            place = X + rows.to(tl.int64)[:, None] * stride + c[None, :]
            zeros = tl.zeros([BM, BC], dtype=X.dtype.element_ty)
            tl.store(place, zeros, mask=tail[:, None] & (c < width)[None, :])


@triton.jit
def product_kernel(
    X, Y, SCALE, OUT, SIZES, WIDTHS, PAIRS, stride_x, stride_y, stride_out, x_from, y_from, to,
    TURN_X: tl.constexpr, TURN_Y: tl.constexpr,
    S: tl.constexpr, P: tl.constexpr, BC: tl.constexpr,
    POWER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """XY of BC channels of one graph, of XᵀY or XYᵀ where one is to be turned."""
    parts: tl.constexpr = (S + BC - 1) // BC
    g = tl.program_id(0) // parts
    c = (tl.program_id(0) % parts * BC + tl.arange(0, BC))[None, None, :]
    row, inside = square(g, SIZES, WIDTHS, PAIRS, P)
    inside = inside & (c < S)
    x = tl.load(X + row * stride_x + x_from + c, mask=inside, other=0.0)
    y = tl.load(Y + row * stride_y + y_from + c, mask=inside, other=0.0)
    x = tl.permute(x, (2, 1, 0)) if TURN_X else tl.permute(x, (2, 0, 1))
    y = tl.permute(y, (2, 1, 0)) if TURN_Y else tl.permute(y, (2, 0, 1))
    value = tl.dot(x, y, input_precision=PRECISION, out_dtype=tl.float32)
    if POWER > 0:
        value *= powered(SCALE, g, POWER)
    value = tl.permute(value.to(OUT.dtype.element_ty), (1, 2, 0))
    tl.store(OUT + row * stride_out + to + c, value, mask=inside)


@triton.jit
def entries_kernel(
    READ, Z, V, SCALE, OUT, COLUMN, SIZES, WIDTHS, NODES, PAIRS, OWNERS,
    stride_read, stride_z, stride_v, stride_out, stride_column,
    left, right, to_hadamard, along, to_diagonal, matrix, vector, to_column,
    S: tl.constexpr, P: tl.constexpr, PS: tl.constexpr, COPY: tl.constexpr,
    HADAMARD: tl.constexpr, DIAGONAL: tl.constexpr, MV: tl.constexpr, POWER: tl.constexpr,
):  # fmt: skip
    """Row i of a graph: what was read (COPY), M⊙M, diag(v), and entry i of M·v."""
    me = tl.program_id(0)
    g, n, width, first, start, i = place_of(me, SIZES, WIDTHS, NODES, PAIRS, OWNERS)
    j = tl.arange(0, P)
    c = tl.arange(0, PS)[None, :]
    inside = (j < n)[:, None] & (c < S)
    row = (start + i * width + j)[:, None]
    node = (first + j)[:, None]
    dtype = OUT.dtype.element_ty
    if COPY:
        value = tl.load(READ + row * stride_read + c, mask=inside, other=0.0)
        tl.store(OUT + row * stride_out + c, value, mask=inside)
    if HADAMARD:
        x = tl.load(Z + row * stride_z + left + c, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(Z + row * stride_z + right + c, mask=inside, other=0.0).to(tl.float32)
        tl.store(OUT + row * stride_out + to_hadamard + c, (x * y).to(dtype), mask=inside)
    if DIAGONAL:
        here = inside & (j == i)[:, None]
        value = tl.load(V + node * stride_v + along + c, mask=here, other=0.0)
        tl.store(OUT + row * stride_out + to_diagonal + c, value, mask=inside)
    if MV:
        m = tl.load(Z + row * stride_z + matrix + c, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(V + node * stride_v + vector + c, mask=inside, other=0.0).to(tl.float32)
        value = tl.sum(m * v, axis=0)
        if POWER > 0:
            value *= powered(SCALE, g, POWER)
        c = tl.arange(0, PS)
        place = COLUMN + (first + i) * stride_column + to_column + c
        tl.store(place, value.to(COLUMN.dtype.element_ty), mask=c < tl.where(n > 0, S, 0))


@triton.jit
def entries_back_kernel(
    Z, V, SCALE, DOUT, DCOLUMN, DZ, DV, SIZES, WIDTHS, NODES, PAIRS, OWNERS,
    stride_z, stride_v, stride_out, stride_column,
    left, right, to_hadamard, along, to_diagonal, matrix, vector, to_column,
    S: tl.constexpr, P: tl.constexpr, PS: tl.constexpr,
    HADAMARD: tl.constexpr, DIAGONAL: tl.constexpr, MV: tl.constexpr, POWER: tl.constexpr,
):  # fmt: skip
    """Column j of a graph: gradients of both factors, of v, and of what meets entry j of v."""
    me = tl.program_id(0)
    g, n, width, first, start, j = place_of(me, SIZES, WIDTHS, NODES, PAIRS, OWNERS)
    i = tl.arange(0, P)
    channels = tl.arange(0, PS)
    c = channels[None, :]
    inside = (i < n)[:, None] & (c < S)
    here = channels < tl.where(n > 0, S, 0)
    row = (start + i * width + j)[:, None]
    mine = (first + j) * stride_v + channels
    dtype = DZ.dtype.element_ty
    if HADAMARD:
        flow = tl.load(DOUT + row * stride_out + to_hadamard + c, mask=inside, other=0.0)
        flow = flow.to(tl.float32)
        x = tl.load(Z + row * stride_z + left + c, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(Z + row * stride_z + right + c, mask=inside, other=0.0).to(tl.float32)
        tl.store(DZ + row * stride_z + left + c, (flow * y).to(dtype), mask=inside)
        tl.store(DZ + row * stride_z + right + c, (flow * x).to(dtype), mask=inside)
    if DIAGONAL:
        entry = DOUT + (start + j * width + j) * stride_out + to_diagonal + channels
        tl.store(DV + mine + along, tl.load(entry, mask=here), mask=here)
    if MV:
        place = DCOLUMN + (first + i)[:, None] * stride_column + to_column + c
        flow = tl.load(place, mask=inside, other=0.0).to(tl.float32)
        if POWER > 0:
            flow *= powered(SCALE, g, POWER)
        m = tl.load(Z + row * stride_z + matrix + c, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(V + mine + vector, mask=here, other=0.0).to(tl.float32)
        tl.store(DZ + row * stride_z + matrix + c, (flow * v[None, :]).to(dtype), mask=inside)
        dv = tl.sum(m * flow, axis=0)
        tl.store(DV + mine + vector, dv.to(DV.dtype.element_ty), mask=here)
