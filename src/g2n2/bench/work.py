"""How much work a case is: useful arithmetic, bytes of a fused layer, memory it may take."""

from __future__ import annotations

import numpy as np

from ..data.graph_set import Ints
from .cases import Case, Precision

BYTES: dict[Precision, int] = {"bf16": 2, "tf32": 4, "32": 4}
KEPT = 12
"""Numbers of the width S a layer keeps for each pair in training, at most."""
EXPECTED = {"cpu": 0.2, "cuda": 0.03}
"""Share of the peak a case reaches at least, to foretell how long it takes."""


def pair_flops(width: int, nodes: float) -> float:
    """Arithmetic of one layer of r-G_L3 for one pair of nodes, forward.

    Five selectors S × S; the MLP from the memory and the two products, 3S, over 8S to S (what
    `diag` adds is n entries, not n²); and the channel-wise product.
    """
    s = width
    return 2.0 * (5 * s * s + 3 * s * 8 * s + 8 * s * s + nodes * s)


def useful_flops(sizes: Ints, width: int, layers: int, training: bool) -> float:
    """Arithmetic of a network for graphs of these sizes; padding does not count.

    The backward pass takes each product twice, so that training is three times the work.
    """
    counts = np.bincount(sizes)
    forward = sum(
        float(count) * n**2 * pair_flops(width, n) for n, count in enumerate(counts.tolist())
    )
    forward *= layers
    return 3.0 * forward if training else forward


def pair_bytes(width: int, precision: Precision) -> float:
    """Bytes a fused layer moves for one pair, forward: eight numbers for each channel.

    The memory is read and written once, the two operands of the product are written and read, and
    so is the product itself.
    """
    return 8.0 * width * BYTES[precision]


def intensity(width: int, nodes: float, precision: Precision) -> float:
    """Useful arithmetic for each byte a fused layer moves."""
    return pair_flops(width, nodes) / pair_bytes(width, precision)


def kept_bytes(case: Case, sizes: Ints) -> float:
    """Memory of one batch of a case, at most."""
    widest = float(sizes.max(initial=1))
    layers = case.layers if case.training else 1
    return case.batch * widest**2 * case.width * KEPT * layers * BYTES[case.precision]


def hidden_bytes(case: Case, sizes: Ints) -> int:
    """Bytes of the hidden layer of one update, 8S numbers for each pair of a padded batch."""
    return len(sizes) * int(sizes.max()) ** 2 * 8 * case.width * BYTES[case.precision]


def block_diagonal_bytes(case: Case, sizes: Ints) -> float:
    """Memory of the block-diagonal baseline: matrices of all nodes of a batch, for each channel."""
    nodes = float(sizes.mean()) * case.batch
    matrices = 4 * case.layers if case.training else 3
    return matrices * case.width * nodes**2 * BYTES[case.precision]
