"""`.npz` files of adjacency matrices, and graph6 files.

An `.npz` holds:

| array | shape | meaning |
|-|-|-|
| `A` | `[G, n, n]` or `[n, n]` | weight of each edge, 0 where there is none |
| `sizes` | `[G]` | nodes of each graph if smaller graphs are padded to n; all n without it |
| `x` | `[G, n, F]`, `[G, n]` or `[ΣN, F]` | node features |
| `e` | `[G, n, n, K]` or `[G, n, n]` | edge features, read where A is not 0 |
| `y` | `[G]`, `[G, T]`; `[ΣN]`, `[ΣN, T]`; `[ΣE]`, `[ΣE, T]`, `[G, n, n]` | targets, by level |
| `positions` | `[G, n, 3]` or `[ΣN, 3]` | coordinates in Å |
| `ids`, `target_names` | `[G]`, `[T]` | text |

ΣE counts the entries of A that are not 0, row by row. A `y` with G rows belongs to graphs unless
`level` says otherwise; whole numbers in `y` are classes unless `task` says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import read_graph6_file
from ..archives import read_npz
from ..graph_set import GraphRecord, GraphSet, Level, assemble, graph_set
from . import Options
from .labels import numbers, read_labels, stored_split, targets_of_array
from .tables import GRAPH_NAMES, read_table, shortened

_TEXTS = ("ids", "target_names")
_NUMBERS = ("A", "sizes", "x", "e", "y", "positions")
Array = NDArray[Any]


def read_npz_graphs(path: str | Path, options: Options) -> GraphSet:
    """Read a `.npz` with the arrays above; no pickle is opened."""
    arrays = read_npz(Path(path))
    if "A" not in arrays:
        raise DataError(f"{path} holds {shortened(arrays) or 'nothing'}; expected an array 'A'")
    for key in _NUMBERS:
        if key in arrays and arrays[key].dtype.kind not in "biuf":
            raise DataError(f"array {key!r} holds {arrays[key].dtype}, expected real numbers")
    if arrays["A"].ndim == 2:  # a single graph: give its arrays the axis of graphs
        for key in arrays.keys() & {"A", "e", "x"}:
            if key != "x" or arrays[key].ndim == 1:
                arrays[key] = arrays[key][None]
    matrices = arrays["A"]
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or 0 in matrices.shape:
        raise DataError(f"array 'A' has shape {list(matrices.shape)}, expected [G, n, n]")
    if len(bad := np.argwhere(~np.isfinite(matrices))):
        graph, i, j = bad[0].tolist()
        raise DataError(
            f"entry ({i}, {j}) of graph {graph} in 'A' is {matrices[graph, i, j]}, expected a "
            "finite number: write 0 where there is no edge"
        )
    graphs, n = matrices.shape[:2]
    sizes = arrays.get("sizes", np.full(graphs, n))
    if sizes.shape != (graphs,) or sizes.dtype.kind not in "iu":
        raise DataError(
            f"array 'sizes' is {sizes.dtype} {list(sizes.shape)}, expected whole numbers [{graphs}]"
        )
    if len(odd := np.flatnonzero((sizes < 1) | (sizes > n))):
        raise DataError(f"graph {odd[0]} has size {sizes[odd[0]]}, expected 1 to {n}")
    is_node, is_edge = np.arange(n) < sizes[:, None], matrices != 0
    if len(bad := np.argwhere(is_edge & ~(is_node[:, :, None] & is_node[:, None]))):
        g = bad[0, 0]
        raise DataError(f"graph {g} has an edge beyond its {sizes[g]} nodes; correct 'sizes'")
    ids = [str(value) for value in np.atleast_1d(arrays.get("ids", np.arange(graphs)))]
    if len(ids) != graphs:
        raise DataError(f"array 'ids' has {len(ids)} entries, expected {graphs}")

    def flat(key: str, present: NDArray[np.bool_], dtype: type | None = np.float32) -> Any:
        """`[rows, F]` of an array stored so, or with the axes of `present`."""
        values, rows, axes = arrays[key], int(present.sum()), present.ndim
        if values.shape[:axes] == present.shape and values.ndim <= axes + 1:
            values = values[present]
        elif values.ndim > 2 or len(values) != rows:
            wide = ", ".join(map(str, present.shape))
            raise DataError(
                f"array {key!r} has shape {list(values.shape)}, expected [{wide}, F] or "
                f"[{rows}, F] for the {rows} {'nodes' if axes == 2 else 'edges'} of {graphs} graphs"
            )
        return values.reshape(rows, -1 if values.size else 0).astype(dtype or values.dtype)

    notes = [f"Array {key!r} is not used." for key in arrays if key not in (*_NUMBERS, *_TEXTS)]
    fields: dict[str, Any] = {}
    if "y" in arrays and options.target != ():
        y = arrays["y"] = np.atleast_1d(arrays["y"])
        nodes, edges = int(is_node.sum()), int(is_edge.sum())
        by_rows: dict[int, Level] = {edges: "edge", nodes: "node", graphs: "graph"}
        level = options.level or ("edge" if y.ndim >= 3 else by_rows.get(len(y)))
        if level is None or (level == "graph" and (y.ndim > 2 or len(y) != graphs)):
            raise DataError(
                f"array 'y' has shape {list(y.shape)}, expected {graphs} rows (one per graph), "
                f"{nodes} (per node) or {edges} (per edge)"
            )
        block = y.reshape(graphs, -1) if level == "graph" else None
        if block is None:
            block = flat("y", is_node if level == "node" else is_edge, None)
        names = [str(name) for name in np.atleast_1d(arrays.get("target_names", ()))]
        fields = {**targets_of_array(block, options, names), "level": level}
        notes += fields.pop("notes")
    if (weights := matrices[is_edge].astype(np.float32)).size and (weights != 1).any():
        fields["weights"] = weights
    if "positions" in arrays:
        fields["positions"] = flat("positions", is_node)
    return graph_set(
        sizes.astype(np.int64),
        is_edge.sum(axis=(1, 2)),
        np.stack(np.nonzero(is_edge)[1:]).astype(np.int64),
        flat("x", is_node) if "x" in arrays else None,
        flat("e", is_edge) if "e" in arrays else None,
        name=options.set_name(path),
        ids=ids,
        notes=notes,
        source={"format": "npz"},
        **fields,
    )


def read_graph6(path: str | Path, options: Options) -> GraphSet:
    """Read a graph6 file, one graph a line; its targets may be in `NAME_graphs.csv` beside it.

    That table has one row for each graph, in the file's order, and a column for each target; it may
    have ids and a split column too.
    """
    records = [GraphRecord.of_matrix(matrix) for matrix in read_graph6_file(path)]
    beside = Path(path).with_name(f"{Path(path).name.partition('.')[0]}_graphs.csv")
    fields: dict[str, Any] = {}
    if not beside.is_file() and options.target != ():
        lack = f"targets are read from {beside.name} beside it, a row for each graph"
        if options.target:
            raise DataError(f"{path} has no target {options.target[0]!r}: {lack}")
        fields["notes"] = [f"{lack[0].upper()}{lack[1:]}."]
    source: dict[str, Any] = {"format": "graph6"}
    if beside.is_file() and options.target != ():
        table = read_table(beside)
        if len(table) != len(records):
            raise DataError(f"{table.name} has {len(table)} rows for {len(records)} graphs")
        naming = table.find(options.id) if options.id else table.first_of((*GRAPH_NAMES, "id"))
        numbered = numbers(table.columns[naming]) if naming else None
        if numbered is not None and np.unique(np.sort(numbered) - np.arange(len(table))).size > 1:
            numbered = None  # not 0, 1, 2, …: numbers without an order of their own
        if numbered is not None and len(back := np.flatnonzero(np.diff(numbered) < 0)):
            row = back[0] + 1
            raise DataError(
                f"{table.name}, {table.places[row]}: {naming} {numbered[row]:g} after "
                f"{numbered[row - 1]:g}; expected the graphs in the order of {path}"
            )
        if options.target is None:
            others = {naming, stored_split(table, options, [*table.columns], [])[0]}
            options = replace(options, target=tuple(c for c in table.columns if c not in others))
        fields = read_labels(table, options, [naming] if naming else (), (), naming)
        source |= fields.pop("source")
    return assemble(records, name=options.set_name(path), source=source, **fields)
