"""Triton kernels of a layer's rules on graphs of few nodes.

Products: a program owns BC channels of one graph, all n × n entries in one tile of 16 or 32, which
are one batched product on tensor cores. Everything else: a program owns one row of a graph's matrix
(and the same column on the way back), all channels side by side; the last ones clear the rows that
belong to no graph. Where graph g lies is read from tensors: SIZES its nodes, NODES and PAIRS its
first ones, OWNERS the graph of each node, −1 for rows that are no node.

On an H200, 512 molecules of QM9, width 64 in bfloat16: 36 µs a product with three programs on a
processor and small graphs in the small tile (45 with two and one tile; its bytes take 15), 33 µs
all else (25). Products without tensor cores, channels side by side and no tile re-laid, with all
else 100 µs; all in one launch on tensor cores 142: large programs leave no room for small ones.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..tf32 import tensor_core_operand


@triton.jit
def powered(SCALE, g, POWER: tl.constexpr):
    value = tl.load(SCALE + g).to(tl.float32)
    result = value
    for _ in tl.static_range(1, POWER):
        result *= value
    return result


@triton.jit
def clear_tail(X, TOTAL, part, parts, count, width, stride, BM: tl.constexpr, BC: tl.constexpr):
    """This part's share of the rows from the total on."""
    for start in range(tl.load(TOTAL).to(tl.int32) + part * BM, count, parts * BM):
        rows = start + tl.arange(0, BM)
        for first in range(0, width, BC):
            c = first + tl.arange(0, BC)
            place = X + rows.to(tl.int64)[:, None] * stride + c[None, :]
            zeros = tl.zeros([BM, BC], dtype=X.dtype.element_ty)
            tl.store(place, zeros, mask=(rows < count)[:, None] & (c < width)[None, :])


@triton.jit
def multiplied(x, y, to, row_x, step_x, step_y, row_y, row_to, step_to, n, channel, power,
               S: tl.constexpr, P: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """The matrices with entries Σₖ x[i, k] y[k, j] times `power`, in some channels.

    Of x, the next i is `row_x` further, the next k `step_x`; of y, `step_y` and j `row_y`.
    """
    c = channel[None, None, :]
    i, j = tl.arange(0, P)[:, None, None], tl.arange(0, P)[None, :, None]
    inside = (i < n) & (j < n) & (c < S)
    left = tl.load(x + (i * row_x + j * step_x + c), mask=inside, other=0.0)
    right = tl.load(y + (i * step_y + j * row_y + c), mask=inside, other=0.0)
    left, right = tensor_core_operand(left, PRECISION), tensor_core_operand(right, PRECISION)
    value = tl.dot(
        tl.permute(left, (2, 0, 1)), tl.permute(right, (2, 0, 1)),
        input_precision=PRECISION, out_dtype=tl.float32,
    )  # fmt: skip
    value = tl.permute((value * power).to(to.dtype.element_ty), (1, 2, 0))
    tl.store(to + (i * row_to + j * step_to + c), value, mask=inside)


@triton.jit
def place_of(node, SIZES, NODES, PAIRS, OWNERS):
    """Of a node: its graph, that graph's size and first node and pair, its own number."""
    owner = tl.load(OWNERS + node)
    g = tl.maximum(owner, 0)
    n = tl.where(owner < 0, 0, tl.load(SIZES + g))
    first = tl.load(NODES + g)
    return g, n, first.to(tl.int64), tl.load(PAIRS + g), node - first


@triton.jit
def product_kernel(
    X, Y, SCALE, OUT, SIZES, PAIRS, stride_x, stride_y, stride_out, x_from, y_from, to,
    S: tl.constexpr, P: tl.constexpr, BC: tl.constexpr,
    POWER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """XY of BC channels of one graph."""
    parts: tl.constexpr = (S + BC - 1) // BC
    g = tl.program_id(0) // parts
    channel = tl.program_id(0) % parts * BC + tl.arange(0, BC)
    n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
    x, y = X + start * stride_x + x_from, Y + start * stride_y + y_from
    out = OUT + start * stride_out + to
    power = 1.0
    if POWER > 0:
        power = powered(SCALE, g, POWER)
    if P == 32 and n <= 16:
        multiplied(
            x, y, out, n * stride_x, stride_x, n * stride_y, stride_y, n * stride_out,
            stride_out, n, channel, power, S, 16, PRECISION,
        )  # fmt: skip
    else:
        multiplied(
            x, y, out, n * stride_x, stride_x, n * stride_y, stride_y, n * stride_out,
            stride_out, n, channel, power, S, P, PRECISION,
        )  # fmt: skip


@triton.jit
def product_back_kernel(
    X, Y, SCALE, DOUT, DX, DY, SIZES, PAIRS, stride, stride_out, x_from, y_from, to,
    S: tl.constexpr, P: tl.constexpr, BC: tl.constexpr,
    POWER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dX = dOUT Yᵀ by even programs, dY = Xᵀ dOUT by odd ones: a transpose is another address."""
    parts: tl.constexpr = (S + BC - 1) // BC
    g = tl.program_id(0) // (2 * parts)
    channel = tl.program_id(0) // 2 % parts * BC + tl.arange(0, BC)
    n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
    power = 1.0
    if POWER > 0:
        power = powered(SCALE, g, POWER)
    down, over = n * stride, n * stride_out
    if tl.program_id(0) % 2 == 0:
        x, y, out = DOUT + start * stride_out + to, Y + start * stride + y_from, DX + x_from
        row_x, step_x, step_y, row_y = over, stride_out, stride, down
    else:
        x, y, out = X + start * stride + x_from, DOUT + start * stride_out + to, DY + y_from
        row_x, step_x, step_y, row_y = stride, down, over, stride_out
    out += start * stride
    if P == 32 and n <= 16:
        multiplied(
            x, y, out, row_x, step_x, step_y, row_y, down, stride, n, channel, power,
            S, 16, PRECISION,
        )  # fmt: skip
    else:
        multiplied(
            x, y, out, row_x, step_x, step_y, row_y, down, stride, n, channel, power,
            S, P, PRECISION,
        )  # fmt: skip


@triton.jit
def entries_kernel(
    Z, V, SCALE, OUT, COLUMN, SIZES, NODES, PAIRS, OWNERS, NODE_TOTAL, PAIR_TOTAL,
    rows, tails, pair_rows, node_rows, stride_z, stride_v, out_width, column_width,
    left, right, to_hadamard, along, to_diagonal, matrix, vector, to_column,
    S: tl.constexpr, P: tl.constexpr, PS: tl.constexpr, TAIL: tl.constexpr,
    HADAMARD: tl.constexpr, DIAGONAL: tl.constexpr, MV: tl.constexpr, POWER: tl.constexpr,
):  # fmt: skip
    """Row i of a graph: M⊙M, diag(v), and entry i of M·v."""
    me = tl.program_id(0)
    if me < rows:
        g, n, first, start, i = place_of(me, SIZES, NODES, PAIRS, OWNERS)
        j = tl.arange(0, P)
        c = tl.arange(0, PS)[None, :]
        inside = (j < n)[:, None] & (c < S)
        row = (start + i * n + j)[:, None]
        node = (first + j)[:, None]
        dtype = OUT.dtype.element_ty
        if HADAMARD:
            x = tl.load(Z + row * stride_z + left + c, mask=inside, other=0.0).to(tl.float32)
            y = tl.load(Z + row * stride_z + right + c, mask=inside, other=0.0).to(tl.float32)
            tl.store(OUT + row * out_width + to_hadamard + c, (x * y).to(dtype), mask=inside)
        if DIAGONAL:
            here = inside & (j == i)[:, None]
            value = tl.load(V + node * stride_v + along + c, mask=here, other=0.0)
            tl.store(OUT + row * out_width + to_diagonal + c, value, mask=inside)
        if MV:
            m = tl.load(Z + row * stride_z + matrix + c, mask=inside, other=0.0).to(tl.float32)
            v = tl.load(V + node * stride_v + vector + c, mask=inside, other=0.0).to(tl.float32)
            value = tl.sum(m * v, axis=0)
            if POWER > 0:
                value *= powered(SCALE, g, POWER)
            c = tl.arange(0, PS)
            place = COLUMN + (first + i) * column_width + to_column + c
            tl.store(place, value.to(COLUMN.dtype.element_ty), mask=c < tl.where(n > 0, S, 0))
    elif TAIL:
        me -= rows
        clear_tail(OUT, PAIR_TOTAL, me, tails, pair_rows, out_width, out_width, 16, 64)
        clear_tail(COLUMN, NODE_TOTAL, me, tails, node_rows, column_width, column_width, 16, 64)


@triton.jit
def entries_back_kernel(
    Z, V, SCALE, DOUT, DCOLUMN, DZ, DV, SIZES, NODES, PAIRS, OWNERS, NODE_TOTAL, PAIR_TOTAL,
    rows, tails, pair_rows, node_rows, stride_z, stride_v, out_width, column_width,
    left, right, to_hadamard, along, to_diagonal, matrix, vector, to_column,
    S: tl.constexpr, P: tl.constexpr, PS: tl.constexpr, TAIL: tl.constexpr,
    HADAMARD: tl.constexpr, DIAGONAL: tl.constexpr, MV: tl.constexpr, POWER: tl.constexpr,
):  # fmt: skip
    """Column j of a graph: gradients of both factors, of v, and of what meets entry j of v."""
    me = tl.program_id(0)
    if me < rows:
        g, n, first, start, j = place_of(me, SIZES, NODES, PAIRS, OWNERS)
        i = tl.arange(0, P)
        channels = tl.arange(0, PS)
        c = channels[None, :]
        inside = (i < n)[:, None] & (c < S)
        here = channels < tl.where(n > 0, S, 0)
        row = (start + i * n + j)[:, None]
        mine = (first + j) * stride_v + channels
        dtype = DZ.dtype.element_ty
        if HADAMARD:
            flow = tl.load(DOUT + row * out_width + to_hadamard + c, mask=inside, other=0.0)
            flow = flow.to(tl.float32)
            x = tl.load(Z + row * stride_z + left + c, mask=inside, other=0.0).to(tl.float32)
            y = tl.load(Z + row * stride_z + right + c, mask=inside, other=0.0).to(tl.float32)
            tl.store(DZ + row * stride_z + left + c, (flow * y).to(dtype), mask=inside)
            tl.store(DZ + row * stride_z + right + c, (flow * x).to(dtype), mask=inside)
        if DIAGONAL:
            entry = DOUT + (start + j * n + j) * out_width + to_diagonal + channels
            tl.store(DV + mine + along, tl.load(entry, mask=here), mask=here)
        if MV:
            place = DCOLUMN + (first + i)[:, None] * column_width + to_column + c
            sent = tl.load(place, mask=inside, other=0.0).to(tl.float32)
            if POWER > 0:
                sent *= powered(SCALE, g, POWER)
            m = tl.load(Z + row * stride_z + matrix + c, mask=inside, other=0.0).to(tl.float32)
            v = tl.load(V + mine + vector, mask=here, other=0.0).to(tl.float32)
            tl.store(DZ + row * stride_z + matrix + c, (sent * v[None, :]).to(dtype), mask=inside)
            dv = tl.sum(m * sent, axis=0)
            tl.store(DV + mine + vector, dv.to(DV.dtype.element_ty), mask=here)
    elif TAIL:
        me -= rows
        clear_tail(DZ, PAIR_TOTAL, me, tails, pair_rows, stride_z, stride_z, 16, 64)
        clear_tail(DV, NODE_TOTAL, me, tails, node_rows, stride_v, stride_v, 16, 64)
