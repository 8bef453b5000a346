"""Node and edge features of QM9, made from the arrays of its cache; see `g2n2.data.qm9`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .graph_set import Ints
from .readers.molecules import ATOM_FEATURES, BOND_FEATURES

Arrays = Mapping[str, NDArray[Any]]
Features = Literal["pyg", "ppgn", "sanitized", "smiles"]

AROMATIC_BIT = 4
"""Set in a bond's order if the bond is aromatic; the other bits are its Kekulé order, 1 to 3."""
_GROUND = 1e-6  # conductance of each node to ground, so that a graph may have several components
_ENTRIES = 2**22  # of the matrices that are inverted at a time
ATOMIC_NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
_PYG_NAMES = (*ATOMIC_NUMBERS, "Z", "aromatic", "sp", "sp2", "sp3", "hydrogens")
FEATURE_NOTES = {
    "pyg": "features pyg: aromatic, sp, sp2, sp3 and aromatic bonds are 0 for every molecule, "
    "as in PyG's own processing; bonds are Kekulé bonds",
    "ppgn": "features ppgn: the sanitized features, and hydrogen-bond donor and acceptor as "
    "RDKit's BaseFeatures.fdef defines them",
    "sanitized": "features sanitized: PyG's columns with what RDKit says of aromaticity and "
    "hybridisation",
    "smiles": "features smiles: those of a molecule read from SMILES with its hydrogens, without "
    "R, S, E and Z",
}


class Columns(NamedTuple):
    """Features with their names, and what the source of a set says of them."""

    nodes: NDArray[np.float32]
    edges: NDArray[np.float32]
    node_names: tuple[str, ...]
    edge_names: tuple[str, ...]
    source: dict[str, Any]


def feature_columns(
    arrays: Arrays, features: Features, sizes: Ints, edge_counts: Ints, edges: Ints
) -> Columns:
    """The features of all molecules, by name."""
    if features == "smiles":
        return _smiles_features(arrays, sizes, edge_counts, edges)
    return _own_features(arrays, features)


def _own_features(arrays: Arrays, features: Features) -> Columns:
    """The features of PyG's files, and of MPNN and PPGN."""
    # One-hot H C N O F and Z; aromatic, sp, sp2, sp3; hydrogens; donor and acceptor.
    by_element = np.zeros((max(ATOMIC_NUMBERS.values()) + 1, 13), dtype=np.float32)
    for column, number in enumerate(ATOMIC_NUMBERS.values()):
        by_element[number, [column, 5]] = 1, number
    nodes = by_element.take(arrays["elements"], axis=0)
    aromatic, hybridisation, donor, acceptor, hydrogens, _ = arrays["atoms"].T
    nodes[:, 10] = hydrogens
    if features != "pyg":
        nodes[:, 6], nodes[:, 11], nodes[:, 12] = aromatic, donor, acceptor
        nodes[:, 7:10] = hybridisation[:, None] == (1, 2, 3)
    node_names = (*_PYG_NAMES, "donor", "acceptor") if features == "ppgn" else _PYG_NAMES
    return Columns(
        np.ascontiguousarray(nodes[:, : len(node_names)]),
        _bond_orders(arrays, kekule=features == "pyg"),
        node_names,
        ("single", "double", "triple", "aromatic"),
        {},
    )


def _smiles_features(arrays: Arrays, sizes: Ints, edge_counts: Ints, edges: Ints) -> Columns:
    """The features `readers.molecules` makes of a SMILES with hydrogens, 0 for R, S, E and Z."""
    symbols = {number: symbol for symbol, number in ATOMIC_NUMBERS.items()}
    aromatic, hybridisation, _, _, hydrogens, charges = arrays["atoms"].astype(np.int64).T
    on_ring = ring_edges(sizes, edge_counts, edges)
    first = np.repeat(np.cumsum(sizes) - sizes, edge_counts) + edges[0]
    values: dict[str, NDArray[Any]] = {
        **{symbol: arrays["elements"] == number for number, symbol in symbols.items()},
        "formal charge": charges - 8,
        "aromatic": aromatic,
        **{name: hybridisation == rank for rank, name in enumerate(("sp", "sp2", "sp3"), 1)},
        "hydrogens": hydrogens,
        "in ring": np.bincount(first, weights=on_ring, minlength=len(aromatic)) > 0,
    }
    nodes = np.zeros((len(aromatic), len(ATOM_FEATURES)), dtype=np.float32)
    for name, column in values.items():
        nodes[:, ATOM_FEATURES.index(name)] = column
    bonds = np.zeros((len(on_ring), len(BOND_FEATURES)), dtype=np.float32)
    bonds[:, :4] = _bond_orders(arrays, kekule=False)
    bonds[:, BOND_FEATURES.index("in ring")] = on_ring
    element_sets = [
        frozenset(map(symbols.get, atoms)) for atoms in _distinct(arrays["elements"], sizes)
    ]
    # Read by runs: how a SMILES has to be read to have these features.
    source = {"hydrogens": True, "stereo": False, "elements": tuple(element_sets)}
    return Columns(nodes, bonds, ATOM_FEATURES, BOND_FEATURES, source)


def _distinct(values: NDArray[Any], sizes: Ints) -> Iterator[set[int]]:
    """The distinct values of each graph's nodes."""
    listed, start = values.tolist(), 0
    for size in sizes.tolist():
        yield set(listed[start : start + size])
        start += size


def _bond_orders(arrays: Arrays, *, kekule: bool) -> NDArray[np.float32]:
    """`[ΣE, 4]` one-hot single, double, triple, aromatic."""
    by_order = np.zeros((2 * AROMATIC_BIT, 4), dtype=np.float32)
    for order in (1, 2, 3):
        by_order[order, order - 1] = 1
        by_order[order | AROMATIC_BIT, order - 1 if kekule else 3] = 1
    return by_order.take(arrays["orders"], axis=0)


def ring_edges(sizes: Ints, edge_counts: Ints, edges: Ints) -> NDArray[np.bool_]:
    """`[ΣE]` whether each edge of undirected simple graphs of some hundred nodes lies on a cycle.

    An edge is on no cycle exactly if it is a bridge, and its effective resistance is 1 then. On a
    cycle of k nodes it is at most (k − 1) / k.
    """
    on_cycle = np.zeros(edges.shape[1], dtype=bool)
    owner = np.repeat(np.arange(len(sizes)), edge_counts)
    for size in np.unique(sizes[edge_counts > 0]).tolist():
        members = np.flatnonzero((sizes == size) & (edge_counts > 0))
        at_once = max(1, _ENTRIES // size**2)
        for start in range(0, len(members), at_once):
            chosen = members[start : start + at_once]
            place = np.full(len(sizes), -1)
            place[chosen] = np.arange(len(chosen))
            rows = np.flatnonzero(place[owner] >= 0)
            graph, (i, j) = place[owner[rows]], edges[:, rows]
            laplacian = np.zeros((len(chosen), size, size))
            laplacian[graph, i, j] = -1.0
            nodes = np.arange(size)
            laplacian[:, nodes, nodes] = _GROUND - laplacian.sum(2)
            inverse = np.linalg.inv(laplacian)
            resistance = inverse[graph, i, i] + inverse[graph, j, j] - 2.0 * inverse[graph, i, j]
            on_cycle[rows] = resistance < 1.0 - 0.5 / size
    return on_cycle
