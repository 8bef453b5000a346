"""What the fused kernels share: reading inputs and weights, and a chunk of the hidden layer.

A row is one pair (b, i, j) and its channels. There are four places for inputs: place k reads S_k
channels (0: it is empty) in a tile P_k wide and meets the first weight's columns from C_k on. The
last place holds a Hadamard product.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def activated(pre, SILU: tl.constexpr):
    return pre * tl.sigmoid(pre) if SILU else tl.maximum(pre, 0.0)


@triton.jit
def slope(pre, SILU: tl.constexpr):
    if SILU:
        gate = tl.sigmoid(pre)
        return gate * (1.0 + pre * (1.0 - gate))
    return tl.where(pre > 0, 1.0, 0.0)


@triton.jit
def places(rows, stride, c):
    """`[BM, P]` where channels c of some rows are; 32 bits would overflow at 3,700 nodes."""
    return rows.to(tl.int64)[:, None] * stride + c[None, :]


@triton.jit
def tile(x, rows, stride, count, S: tl.constexpr, P: tl.constexpr):
    """`[BM, P]` rows of an input of S channels, zero beyond them."""
    c = tl.arange(0, P)
    inside = (rows < count)[:, None] & (c < S)[None, :]
    return tl.load(x + places(rows, stride, c), mask=inside, other=0.0)


@triton.jit
def product_tile(x, y, rows, stride_x, stride_y, count, S: tl.constexpr, P: tl.constexpr):
    """`[BM, P]` rows of a Hadamard product, zero where there is none."""
    value = tl.zeros([rows.shape[0], P], dtype=x.dtype.element_ty)
    if S > 0:
        left = tile(x, rows, stride_x, count, S, P).to(tl.float32)
        right = tile(y, rows, stride_y, count, S, P).to(tl.float32)
        value = (left * right).to(x.dtype.element_ty)
    return value


@triton.jit
def stored(value, out, rows, count, S: tl.constexpr, P: tl.constexpr):
    """Write `[BM, P]` rows of S channels."""
    c = tl.arange(0, P)
    inside = (rows < count)[:, None] & (c < S)[None, :]
    tl.store(out + places(rows, S, c), value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def first_weight(w1, h, total, OFFSET: tl.constexpr, S: tl.constexpr, P: tl.constexpr):
    """`[P, BH]` columns OFFSET … OFFSET + S of the first weight, for a chunk of hidden units."""
    c = tl.arange(0, P)
    return tl.load(w1 + h[None, :] * total + OFFSET + c[:, None], mask=(c < S)[:, None], other=0.0)


@triton.jit
def real_rows(rows, count, mask, N):
    """Whether each row is a pair of nodes that are there, is on the diagonal; and its node i."""
    inside = rows < count
    b, rest = rows // (N * N), rows % (N * N)
    i, j = rest // N, rest % N
    there = tl.load(mask + b * N + i, mask=inside, other=0) > 0
    here = tl.load(mask + b * N + j, mask=inside, other=0) > 0
    return there & here, inside & (i == j), b * N + i


@triton.jit
def hidden_chunk(
    x0, x1, x2, x3, w1, b1, diag, h, node, on_diagonal,
    total, H, BM: tl.constexpr, BH: tl.constexpr,
    S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr, P3: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr,
    BIAS: tl.constexpr, DIAGONAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """`[BM, BH]` a chunk of the hidden layer before the activation, in float32."""
    pre = tl.zeros([BM, BH], dtype=tl.float32)
    pre = tl.dot(x0, first_weight(w1, h, total, C0, S0, P0), pre, input_precision=PRECISION)
    if S1 > 0:
        w = first_weight(w1, h, total, C1, S1, P1)
        pre = tl.dot(x1, w, pre, input_precision=PRECISION)
    if S2 > 0:
        w = first_weight(w1, h, total, C2, S2, P2)
        pre = tl.dot(x2, w, pre, input_precision=PRECISION)
    if S3 > 0:
        w = first_weight(w1, h, total, C3, S3, P3)
        pre = tl.dot(x3, w, pre, input_precision=PRECISION)
    if BIAS:
        pre += tl.load(b1 + h)[None, :].to(tl.float32)
    if DIAGONAL:
        extra = tl.load(diag + node[:, None] * H + h[None, :], mask=on_diagonal[:, None], other=0.0)
        pre += extra.to(tl.float32)
    return pre
