"""Ten-fold splits of TU datasets: index files that come with a set, or the folds of the GIN code.

Two conventions are in use and give different numbers. The index files of pytorch_DGCNN hold test
folds of floor(G / 10) graphs each, so up to nine graphs are never tested. The GIN code
(powerful-gnns) shuffles by class with seed 0, on the graphs in its own order.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..assembly import frozen, stratified_folds
from ..graph_set import GraphSet, Ints
from .text import RawFiles

Folds = Literal["stored", "gin", "none"]

# Entry k is the place in the TU files of the GIN code's graph k; the other sets have one order.
MUTAG_GIN_ORDER = np.fromstring(
    """
    92 101 91 89 104 105 106 107 108 9 111 114 116 67 10 120 121 102 125 126 127 11 46 135
    136 12 139 144 145 147 148 150 151 152 156 157 158 14 50 161 133 163 164 165 166 168 15
    169 170 171 172 173 175 176 177 179 182 183 186 17 0 19 20 21 22 23 24 25 26 27 28 29 30
    31 32 34 36 40 42 43 44 45 162 47 48 3 49 160 51 52 53 55 56 57 58 59 60 62 63 66 117 68
    5 70 71 73 74 78 79 80 81 82 84 85 86 7 103 90 124 100 93 94 95 96 98 99 109 110 112 113
    115 118 119 122 123 128 129 130 131 132 134 137 138 140 141 142 143 146 13 149 153 154
    155 159 167 174 178 16 180 181 184 185 187 18 1 33 35 37 38 2 39 41 54 4 61 64 65 69 72
    75 76 77 6 83 87 88 97 8
    """,
    dtype=np.int64,
    sep=" ",
)


def gin_folds(labels: NDArray[Any], order: NDArray[Any] | None = None) -> dict[str, Ints]:
    """The ten folds of the GIN code, `fold-1` to `fold-10`, each naming its test graphs.

    Args:
        labels: `[G]` class of each graph.
        order: `[G]` place of the GIN code's graph k in `labels`; the same order where None.
    """
    if order is None:
        return stratified_folds(labels)
    folds = stratified_folds(np.asarray(labels)[order])
    return {name: order[indices] for name, indices in folds.items()}


def with_folds(graphs: GraphSet, raw: RawFiles, folds: Folds) -> GraphSet:
    """Give a set the folds asked for.

    Raises:
        DataError: If it has no classes, or its index files name a graph twice or none.
    """
    if folds == "none":
        return graphs
    if folds == "gin":
        if not graphs.columns or not graphs.columns[0].classes or np.isnan(graphs.targets).any():
            raise DataError(
                f"folds='gin' needs one class for every graph, and {graphs.name} has none: "
                "take folds='stored' or 'none'"
            )
        order = MUTAG_GIN_ORDER if graphs.name == "MUTAG" and len(graphs) == 188 else None
        return replace(graphs, splits=frozen(gin_folds(graphs.targets[:, 0], order)))
    if not raw.folds:
        note = (
            "there are no index files 10fold_idx/test_idx-K.txt: no splits (folds='gin' makes ten)"
        )
        return replace(graphs, notes=(*graphs.notes, note))
    splits, tested = _stored_folds(raw, len(graphs))
    notes = graphs.notes
    if tested < len(graphs):
        notes = (*notes, f"{len(graphs) - tested} graph(s) are in no test fold, by the index files")
    return replace(graphs, splits=frozen(splits), notes=notes)


def _stored_folds(raw: RawFiles, graphs: int) -> tuple[dict[str, Ints], int]:
    """The splits of the index files, and how many graphs they test."""
    splits: dict[str, Ints] = {}
    first_seen: dict[int, str] = {}
    for number, table in raw.folds.items():
        indices = table.integers()[:, 0].astype(np.int64)
        for row, index in enumerate(indices.tolist()):
            if not 0 <= index < graphs:
                raise DataError(
                    f"{table.at(row)}: got {index}, expected a graph from 0 to {graphs - 1}"
                )
            if index in first_seen:
                raise DataError(
                    f"{table.at(row)}: graph {index} was tested before, in {first_seen[index]}"
                )
            first_seen[index] = table.at(row)
        splits[f"fold-{number}"] = indices
    return splits, len(first_seen)
