"""The two splits of QM9 that papers report on."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import DataError
from ..graph_set import Ints

SplitKind = Literal["80/10/10", "110k/10k/rest"]


def qm9_splits(count: int, kind: SplitKind = "80/10/10", seed: int = 0) -> dict[str, Ints]:
    """Split at random; a pure function of its arguments.

    Args:
        count: How many molecules there are.
        kind: `80/10/10` per cent as the paper, or 110,000 / 10,000 / the rest as the geometric
            networks.
        seed: Same seed, same split, on every machine and with every numpy.

    Returns:
        Indices by `train`, `validation`, `test`, each in random order, so that the first of them
        are a fair sample.

    Raises:
        DataError: If the kind is unknown or there are too few molecules for it.
    """
    if kind == "80/10/10":
        train, validation = count * 8 // 10, count // 10
    elif kind == "110k/10k/rest":
        train, validation = 110_000, 10_000
    else:
        raise DataError(f"QM9 has no split {kind!r}; choose '80/10/10' or '110k/10k/rest'")
    if min(train, validation, count - train - validation) < 1:
        raise DataError(f"the split {kind} needs more than {count:,} molecules; take more of them")
    # RandomState's stream is frozen; that of numpy's newer generators may change.
    order = np.random.RandomState(seed).permutation(count).astype(np.int64)
    return {
        "train": order[:train],
        "validation": order[train : train + validation],
        "test": order[train + validation :],
    }
