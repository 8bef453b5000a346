"""Which graphs of a set are the same: by canonical SMILES, else by Weisfeiler-Leman colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph_set import GraphSet, Ints
from .scaffolds import smiles_of

_ROUNDS = 4
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Duplicates:
    """How many graphs occur again.

    Attributes:
        by: What "the same" means here, as a phrase.
        repeated: Graphs that occurred before in the set.
        shared: Part of the split to the number of its graphs that the training part holds too.
    """

    by: str
    repeated: int
    shared: dict[str, int]


def find_duplicates(graphs: GraphSet, parts: Mapping[str, Ints]) -> Duplicates:
    """Count graphs that are the same as another, and those that leak from the training part."""
    if (smiles := smiles_of(graphs)) is not None:
        by = "by canonical SMILES"
        _, keys = np.unique(np.array(smiles), return_inverse=True)
    else:
        by = f"as far as {_ROUNDS} rounds of 1-WL with all features tell"
        _, keys = np.unique(graph_hashes(graphs), return_inverse=True)
    train = keys[parts["train"]] if "train" in parts else keys[:0]
    shared = {
        part: int(np.isin(keys[members], train).sum())
        for part, members in parts.items()
        if part != "train"
    }
    return Duplicates(by, len(keys) - len(np.unique(keys)), shared)


def graph_hashes(graphs: GraphSet, rounds: int = _ROUNDS) -> Hashes:
    """`[G]` numbers that are equal for isomorphic graphs, features, weights and positions included.

    Colour refinement over both directions of the edges; it keeps graphs alike that 1-WL cannot
    tell apart, whatever the number of rounds.
    """
    offset = np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    source, target = graphs.edges + offset
    colours = _row_hashes(graphs.node_features)
    marks = _row_hashes(graphs.edge_features)
    if graphs.weights is not None:
        marks = _mixed(marks + _row_hashes(graphs.weights[:, None]))
    if graphs.positions is not None:
        # Lengths do not change when the molecule is moved or turned; rounded, as files round.
        gaps = graphs.positions[source] - graphs.positions[target]
        lengths = np.linalg.norm(gaps, axis=1).round(3).astype(np.float32)
        marks = _mixed(marks + _row_hashes(lengths[:, None]))
    for _ in range(rounds):
        heard = np.zeros((2, len(colours)), dtype=np.uint64)
        np.add.at(heard[0], target, _mixed(colours[source] ^ marks))
        np.add.at(heard[1], source, _mixed(colours[target] ^ marks))
        colours = _mixed(_mixed(_mixed(colours) + heard[0]) + heard[1])
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    total = np.zeros(len(graphs), dtype=np.uint64)
    np.add.at(total, owner, _mixed(colours))
    return _mixed(total + graphs.sizes.astype(np.uint64))


def _row_hashes(values: NDArray[np.float32]) -> Hashes:
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        bits = (column + np.float32(0)).view(np.uint32)  # -0 and 0 are one number
        hashes = _mixed(hashes + bits.astype(np.uint64) + np.uint64(1))
    return hashes


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of the input moves every bit of the result."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)
