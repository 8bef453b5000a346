"""The update and the gradients of its inputs; the hidden layer lives in registers only.

Both kernels walk the hidden layer in chunks: `pre` is a chunk of it before the activation, which
the backward pass makes anew.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import activated, hidden_chunk, places, product_tile, real_rows, slope, stored, tile


@triton.jit
def forward_kernel(
    X0, X1, X2, X3, Y3, W1, B1, DIAG, W2, B2, RESIDUAL, MASK, OUT,
    count, N, stride0, stride1, stride2, stride3, stride_y, total, H,
    S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr, P3: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BIAS: tl.constexpr, DIAGONAL: tl.constexpr, ADD: tl.constexpr,
    SILU: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The new memory of BM rows."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    real, on_diagonal, node = real_rows(rows, count, MASK, N)
    x0 = tile(X0, rows, stride0, count, S0, P0)
    x1 = tile(X1, rows, stride1, count, S1, P1)
    x2 = tile(X2, rows, stride2, count, S2, P2)
    x3 = product_tile(X3, Y3, rows, stride3, stride_y, count, S3, P3)
    o = tl.arange(0, PO)
    out = tl.zeros([BM, PO], dtype=tl.float32)
    for start in range(0, H, BH):
        h = start + tl.arange(0, BH)
        pre = hidden_chunk(
            x0, x1, x2, x3, W1, B1, DIAG, h, node, on_diagonal, total, H, BM, BH,
            S0, S1, S2, S3, P0, P1, P2, P3, C0, C1, C2, C3, BIAS, DIAGONAL, PRECISION,
        )  # fmt: skip
        w2 = tl.load(W2 + o[None, :] * H + h[:, None], mask=(o < SO)[None, :], other=0.0)
        value = activated(pre, SILU).to(w2.dtype)
        out = tl.dot(value, w2, out, input_precision=PRECISION)
    inside = real[:, None] & (o < SO)[None, :]
    if BIAS:
        out += tl.load(B2 + o, mask=o < SO, other=0.0)[None, :].to(tl.float32)
    if ADD:
        out += tl.load(RESIDUAL + places(rows, SO, o), mask=inside, other=0.0).to(tl.float32)
    stored(tl.where(real[:, None], out, 0.0), OUT, rows, count, SO, PO)


@triton.jit
def input_gradient(dpre, dx, w1, h, total, OFFSET: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
                   PRECISION: tl.constexpr):  # fmt: skip
    """`dx` and what a chunk of the hidden layer adds to it."""
    c = tl.arange(0, P)
    w = tl.load(w1 + h[:, None] * total + OFFSET + c[None, :], mask=(c < S)[None, :], other=0.0)
    return tl.dot(dpre, w, dx, input_precision=PRECISION)


@triton.jit
def inputs_kernel(
    X0, X1, X2, X3, Y3, W1, B1, DIAG, W2, DOUT, MASK, DX0, DX1, DX2, DX3, DY3, DDIAG, DRES,
    count, N, stride0, stride1, stride2, stride3, stride_y, total, H,
    S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr, P3: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BIAS: tl.constexpr, DIAGONAL: tl.constexpr, ADD: tl.constexpr,
    SILU: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of the inputs, of the diagonal and of the residual."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    real, on_diagonal, node = real_rows(rows, count, MASK, N)
    x0 = tile(X0, rows, stride0, count, S0, P0)
    x1 = tile(X1, rows, stride1, count, S1, P1)
    x2 = tile(X2, rows, stride2, count, S2, P2)
    x3 = product_tile(X3, Y3, rows, stride3, stride_y, count, S3, P3)
    o = tl.arange(0, PO)
    inside = real[:, None] & (o < SO)[None, :]
    dout = tl.load(DOUT + places(rows, SO, o), mask=inside, other=0.0)
    dx0 = tl.zeros([BM, P0], dtype=tl.float32)
    dx1 = tl.zeros([BM, P1], dtype=tl.float32)
    dx2 = tl.zeros([BM, P2], dtype=tl.float32)
    dx3 = tl.zeros([BM, P3], dtype=tl.float32)
    for start in range(0, H, BH):
        h = start + tl.arange(0, BH)
        pre = hidden_chunk(
            x0, x1, x2, x3, W1, B1, DIAG, h, node, on_diagonal, total, H, BM, BH,
            S0, S1, S2, S3, P0, P1, P2, P3, C0, C1, C2, C3, BIAS, DIAGONAL, PRECISION,
        )  # fmt: skip
        w2 = tl.load(W2 + o[:, None] * H + h[None, :], mask=(o < SO)[:, None], other=0.0)
        back = tl.dot(dout, w2, input_precision=PRECISION)
        dpre = (back * slope(pre, SILU)).to(dout.dtype)
        if DIAGONAL:
            tl.store(
                DDIAG + node[:, None] * H + h[None, :],
                dpre.to(DDIAG.dtype.element_ty),
                mask=on_diagonal[:, None],
            )
        dx0 = input_gradient(dpre, dx0, W1, h, total, C0, S0, P0, PRECISION)
        if S1 > 0:
            dx1 = input_gradient(dpre, dx1, W1, h, total, C1, S1, P1, PRECISION)
        if S2 > 0:
            dx2 = input_gradient(dpre, dx2, W1, h, total, C2, S2, P2, PRECISION)
        if S3 > 0:
            dx3 = input_gradient(dpre, dx3, W1, h, total, C3, S3, P3, PRECISION)
    stored(dx0, DX0, rows, count, S0, P0)
    if S1 > 0:
        stored(dx1, DX1, rows, count, S1, P1)
    if S2 > 0:
        stored(dx2, DX2, rows, count, S2, P2)
    if S3 > 0:
        left = tile(X3, rows, stride3, count, S3, P3).to(tl.float32)
        right = tile(Y3, rows, stride_y, count, S3, P3).to(tl.float32)
        stored(dx3 * right, DX3, rows, count, S3, P3)
        stored(dx3 * left, DY3, rows, count, S3, P3)
    if ADD:
        stored(dout, DRES, rows, count, SO, PO)
