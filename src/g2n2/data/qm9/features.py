"""Node and edge features of QM9, in the three flavours papers use."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..graph_set import Floats
from .bonds import AROMATIC_BIT
from .cache import Molecules

Features = Literal["pyg", "ppgn", "sanitized"]

ATOMIC_NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
ELEMENTS = tuple(ATOMIC_NUMBERS)
EDGE_NAMES = ("single", "double", "triple", "aromatic")

_PYG_NAMES = (*ELEMENTS, "Z", "aromatic", "sp", "sp2", "sp3", "hydrogens")


def node_names(features: Features) -> tuple[str, ...]:
    """Names of the node features: 11, or 13 for `ppgn`."""
    return (*_PYG_NAMES, "donor", "acceptor") if features == "ppgn" else _PYG_NAMES


def node_features(molecules: Molecules, features: Features) -> Floats:
    """`[ΣN, 11]`, or `[ΣN, 13]` for `ppgn`, in the order of `node_names`."""
    by_element = np.zeros(
        (max(ATOMIC_NUMBERS.values()) + 1, len(node_names(features))), dtype=np.float32
    )
    for place, number in enumerate(ATOMIC_NUMBERS.values()):
        by_element[number, [place, 5]] = 1, number
    table = by_element.take(molecules.elements, axis=0)
    table[:, 10] = molecules.atoms[:, 4]
    if features != "pyg":
        aromatic, hybridisation, donor, acceptor = molecules.atoms.T[:4]
        table[:, 6] = aromatic
        for kind in (1, 2, 3):
            table[:, 6 + kind] = hybridisation == kind
        if features == "ppgn":
            table[:, 11], table[:, 12] = donor, acceptor
    return table


def edge_features(molecules: Molecules, features: Features) -> Floats:
    """`[ΣE, 4]` one-hot bond types; `pyg` has the Kekulé order where a bond is aromatic."""
    by_order = np.zeros((2 * AROMATIC_BIT, 4), dtype=np.float32)
    for order in (1, 2, 3):
        by_order[order, order - 1] = 1
        by_order[order | AROMATIC_BIT, order - 1 if features == "pyg" else 3] = 1
    return by_order.take(molecules.orders, axis=0)
