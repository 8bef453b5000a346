"""Gradients of the weights, for which each program owns a chunk of the hidden layer."""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import activated, hidden_chunk, places, product_tile, real_rows, slope, tile


@triton.jit
def first_weight_stored(dw, DW1, h, total, OFFSET: tl.constexpr, S: tl.constexpr, P: tl.constexpr):
    """Write the gradient of columns OFFSET … OFFSET + S for a chunk of hidden units."""
    c = tl.arange(0, P)
    tl.store(DW1 + h[:, None] * total + OFFSET + c[None, :], dw, mask=(c < S)[None, :])


@triton.jit
def weights_kernel(
    X0, X1, X2, X3, Y3, W1, B1, DIAG, W2, DOUT, MASK, DW1, DB1, DW2,
    count, N, stride0, stride1, stride2, stride3, stride_y, total, H, span,
    S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr, P3: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BIAS: tl.constexpr, DIAGONAL: tl.constexpr,
    SILU: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of both weights and the hidden bias: one chunk of hidden units, one span of rows.

    Each span writes its own partial sum, so that the result does not depend on timing.
    """
    h = tl.program_id(0) * BH + tl.arange(0, BH)
    part = tl.program_id(1)
    o = tl.arange(0, PO)
    w2 = tl.load(W2 + o[:, None] * H + h[None, :], mask=(o < SO)[:, None], other=0.0)
    dw0 = tl.zeros([BH, P0], dtype=tl.float32)
    dw1 = tl.zeros([BH, P1], dtype=tl.float32)
    dw2 = tl.zeros([BH, P2], dtype=tl.float32)
    dw3 = tl.zeros([BH, P3], dtype=tl.float32)
    dsecond = tl.zeros([PO, BH], dtype=tl.float32)
    dbias = tl.zeros([BH], dtype=tl.float32)
    for start in range(part * span, tl.minimum((part + 1) * span, count), BM):
        rows = start + tl.arange(0, BM)
        real, on_diagonal, node = real_rows(rows, count, MASK, N)
        x0 = tile(X0, rows, stride0, count, S0, P0)
        x1 = tile(X1, rows, stride1, count, S1, P1)
        x2 = tile(X2, rows, stride2, count, S2, P2)
        x3 = product_tile(X3, Y3, rows, stride3, stride_y, count, S3, P3)
        inside = real[:, None] & (o < SO)[None, :]
        dout = tl.load(DOUT + places(rows, SO, o), mask=inside, other=0.0)
        pre = hidden_chunk(
            x0, x1, x2, x3, W1, B1, DIAG, h, node, on_diagonal, total, H, BM, BH,
            S0, S1, S2, S3, P0, P1, P2, P3, C0, C1, C2, C3, BIAS, DIAGONAL, PRECISION,
        )  # fmt: skip
        back = tl.dot(dout, w2, input_precision=PRECISION)
        flow = back * slope(pre, SILU)
        dbias += tl.sum(flow, axis=0)
        dpre = tl.trans(flow.to(dout.dtype))
        value = activated(pre, SILU).to(dout.dtype)
        dsecond = tl.dot(tl.trans(dout), value, dsecond, input_precision=PRECISION)
        dw0 = tl.dot(dpre, x0, dw0, input_precision=PRECISION)
        if S1 > 0:
            dw1 = tl.dot(dpre, x1, dw1, input_precision=PRECISION)
        if S2 > 0:
            dw2 = tl.dot(dpre, x2, dw2, input_precision=PRECISION)
        if S3 > 0:
            dw3 = tl.dot(dpre, x3, dw3, input_precision=PRECISION)
    own = DW1 + part * H * total
    first_weight_stored(dw0, own, h, total, C0, S0, P0)
    if S1 > 0:
        first_weight_stored(dw1, own, h, total, C1, S1, P1)
    if S2 > 0:
        first_weight_stored(dw2, own, h, total, C2, S2, P2)
    if S3 > 0:
        first_weight_stored(dw3, own, h, total, C3, S3, P3)
    tl.store(DW2 + part * SO * H + o[:, None] * H + h[None, :], dsecond, mask=(o < SO)[:, None])
    if BIAS:
        tl.store(DB1 + part * H + h, dbias)
