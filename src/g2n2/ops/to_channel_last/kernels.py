"""Triton kernel of a copy between layouts."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def turn_kernel(
    X, OUT, rows, width, x_row, x_channel, out_row, out_channel,
    BR: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """BR rows of BC channels; both sides are touched in the order they lie."""
    r = (tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR))[:, None]
    c = (tl.program_id(1) * BC + tl.arange(0, BC)).to(tl.int64)[None, :]
    inside = (r < rows) & (c < width)
    value = tl.load(X + r * x_row + c * x_channel, mask=inside)
    tl.store(OUT + r * out_row + c * out_channel, value, mask=inside)
