"""The fifteen basis operators of 2-IGN (appendix A.3), as terms over a free matrix N.

Four indices i, j, k, l can be equal or not in fifteen ways. B_p is the order-4 tensor that is 1 on
one of them, and `B_p ·̃ N = vec⁻¹(mat(B_p) vec(N))` is a linear equivariant map of matrices. The
paper writes each map as a term; eight of the terms it prints compute something else, so both sets
are here. J is 1·1ᵀ − I; where the paper writes a scalar beside a matrix, × stands between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from g2n2.language.parsing import TERM_NAMES, parse
from g2n2.language.terms import Term

PARTITIONS: dict[int, str] = {
    1: "ijkl",
    2: "ijk l",
    3: "ijl k",
    4: "jkl i",
    5: "ikl j",
    6: "ij k l",
    7: "ik j l",
    8: "il j k",
    9: "jk i l",
    10: "jl i k",
    11: "kl i j",
    12: "ij kl",
    13: "ik jl",
    14: "il jk",
    15: "i j k l",
}
"""Which of i, j, k, l are equal: letters together are, letters apart are not."""

CORRECTED: dict[int, str] = {
    1: "N⊙I",
    2: "diag((N⊙J)1)",
    3: "diag((N⊙J)ᵀ1)",
    4: "(1·1ᵀ(N⊙I))⊙J",
    5: "((N⊙I)1·1ᵀ)⊙J",
    6: "(1ᵀ(N⊙J)1)×I − B2 − B3",
    7: "((N⊙J)1·1ᵀ − N)⊙J",
    8: "((N⊙J)ᵀ1·1ᵀ − Nᵀ)⊙J",
    9: "(1·1ᵀ(N⊙J)ᵀ − Nᵀ)⊙J",
    10: "(1·1ᵀ(N⊙J) − N)⊙J",
    11: "(1ᵀ(N⊙I)1)×J − B4 − B5",
    12: "(1ᵀ(N⊙I)1)×I − N⊙I",
    13: "N⊙J",
    14: "Nᵀ⊙J",
    15: "(1ᵀ(N⊙J)1)×J − B7 − B8 − B9 − B10 − B13 − B14",
}
"""The operators as they must be; B2 … B14 inside a text are the operators of that number."""

PRINTED: dict[int, str] = CORRECTED | {
    6: "(1(N⊙J)1ᵀ)×I − B2 − B3",
    7: "(1·1ᵀ(N⊙J) − N)⊙J",
    8: "((N⊙J)1·1ᵀ − Nᵀ)⊙J",
    9: "(1·1ᵀ(N⊙J) − Nᵀ)⊙J",
    10: "((N⊙J)1·1ᵀ − N)⊙J",
    11: "(1ᵀ(N⊙I)1)×J − B3 − B4",
    12: "(1ᵀ(N⊙I)1)×J − (1·1ᵀ(N⊙I))⊙I",
    15: "(1ᵀ(N⊙J)1)×J − B7 − B8 − B9 − B10 + B13 + B14",
}
"""The operators as the paper prints them; B6 has no sort, so reading it is a SortError."""


def basis_term(p: int, texts: Mapping[int, str] = CORRECTED) -> Term:
    """The operator B_p, p from 1 to 15 in the paper's order, as a term over N.

    The printed B6 is not conformable: reading it is a SortError.
    """
    # Names are matched longest first, so B1 never shadows B13.
    earlier = {f"B{q}": basis_term(q) for q in range(1, p) if f"B{q}" in texts[p]}
    return parse(texts[p], {**TERM_NAMES, **earlier})


def partition_operator(p: int, matrix: npt.ArrayLike) -> npt.NDArray[Any]:
    """`B_p ·̃ N` by its definition: the reference the terms are compared with."""
    values = np.asarray(matrix)
    n = values.shape[0]
    blocks = PARTITIONS[p].split()
    index = dict(zip("ijkl", np.ogrid[:n, :n, :n, :n], strict=True))
    tensor = np.ones((n, n, n, n), dtype=bool)
    for a in "ijkl":
        for b in "ijkl":
            together = any(a in block and b in block for block in blocks)
            tensor &= (index[a] == index[b]) == together
    mat = tensor.reshape(n * n, n * n).astype(values.dtype)
    result: npt.NDArray[Any] = (mat @ values.reshape(n * n)).reshape(n, n)
    return result
