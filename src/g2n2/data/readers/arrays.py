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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import read_graph6_file
from ..archives import read_npz
from ..graph_set import GraphRecord, GraphSet, Ints, Level, assemble
from . import Options
from .labels import targets_of_array, targets_of_columns
from .tables import read_table, shortened

_USED = ("A", "sizes", "x", "e", "y", "positions", "ids", "target_names")
Array = NDArray[Any]


def read_npz_graphs(path: str | Path, options: Options) -> GraphSet:
    """Read a `.npz` with the arrays above; no pickle is opened."""
    arrays = read_npz(Path(path))
    if "A" not in arrays:
        raise DataError(f"{path} holds {shortened(arrays) or 'nothing'}; expected an array 'A'")
    if arrays["A"].ndim == 2:  # a single graph: give its arrays the axis of graphs
        for key in arrays.keys() & {"A", "e", "x"}:
            if key != "x" or arrays[key].ndim == 1:
                arrays[key] = arrays[key][None]
    matrices = _real(arrays["A"], "A")
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or 0 in matrices.shape:
        raise DataError(f"array 'A' has shape {list(matrices.shape)}, expected [G, n, n]")
    if len(bad := np.argwhere(~np.isfinite(matrices))):
        graph, i, j = bad[0].tolist()
        raise DataError(
            f"entry ({i}, {j}) of graph {graph} in 'A' is {matrices[graph, i, j]}, expected a "
            "finite number: write 0 where there is no edge"
        )
    sizes = _sizes(arrays.get("sizes"), matrices)
    bare = [
        GraphRecord.of_matrix(matrix[:n, :n]) for matrix, n in zip(matrices, sizes, strict=True)
    ]
    edges = [record.edges for record in bare]
    ids = [str(value) for value in np.atleast_1d(arrays.get("ids", np.arange(len(bare))))]
    if len(ids) != len(bare):
        raise DataError(f"array 'ids' has {len(ids)} entries, expected {len(bare)}")

    def per_graph(key: str) -> Sequence[Any]:
        if key not in arrays:
            return [None] * len(bare)
        values = _real(arrays[key], key)
        blocks = _per_edge(values, key, edges) if key == "e" else _per_node(values, key, sizes)
        return [block.astype(np.float32) for block in blocks]

    records = [
        GraphRecord(record.size, record.edges, x, e, record.weights, positions)
        for record, x, e, positions in zip(
            bare, per_graph("x"), per_graph("e"), per_graph("positions"), strict=True
        )
    ]
    fields: dict[str, Any] = {}
    notes = [f"Array {key!r} is not used." for key in arrays if key not in _USED]
    if "y" in arrays and (options.target is None or len(options.target)):
        level, block = _target_block(_real(arrays["y"], "y"), options.level, sizes, edges)
        names = [str(name) for name in np.atleast_1d(arrays.get("target_names", ()))]
        whole = block.dtype.kind in "biu"
        values, columns, more = targets_of_array(
            block.astype(np.float64), whole, options.task, options.target, names
        )
        fields = {"level": level, "targets": values, "columns": columns}
        notes += more
    name, source = options.set_name(path), {"format": "npz"}
    return assemble(records, name=name, ids=ids, notes=notes, source=source, **fields)


def read_graph6(path: str | Path, options: Options) -> GraphSet:
    """Read a graph6 file, one graph a line; its targets may be in `NAME_graphs.csv` beside it.

    That table has one row for each graph, in the file's order, and a column for each target.
    """
    records = [GraphRecord.of_matrix(matrix) for matrix in read_graph6_file(path)]
    beside = Path(path).with_name(f"{Path(path).name.partition('.')[0]}_graphs.csv")
    fields: dict[str, Any] = {}
    if beside.is_file() and options.target != ():
        table = read_table(beside)
        if len(table) != len(records):
            raise DataError(
                f"{table.name} has {len(table)} rows for {len(records)} graphs; expected one each"
            )
        rest = [key for key in table.columns if key.lower() not in ("graph", "graph_id", "id")]
        wanted = [table.find(key) for key in options.target] if options.target else rest
        block = targets_of_columns(table, wanted, options.task)
        fields = dict(zip(("targets", "columns", "notes"), block, strict=True))
    return assemble(records, name=options.set_name(path), source={"format": "graph6"}, **fields)


def _real(values: Array, key: str) -> Array:
    if values.dtype.kind not in "biuf":
        raise DataError(f"array {key!r} holds {values.dtype}, expected real numbers")
    return values


def _sizes(given: Array | None, matrices: Array) -> Ints:
    graphs, n = matrices.shape[:2]
    if given is None:
        return np.full(graphs, n, dtype=np.int64)
    if given.shape != (graphs,) or given.dtype.kind not in "iu":
        raise DataError(
            f"array 'sizes' is {given.dtype} {list(given.shape)}, expected whole numbers [{graphs}]"
        )
    for index, size in enumerate(given.tolist()):
        if not 1 <= size <= n:
            raise DataError(f"graph {index} has size {size}, expected 1 to {n}")
    for index, size in enumerate(given.tolist()):
        if matrices[index, size:].any() or matrices[index, :, size:].any():
            raise DataError(f"graph {index} has an edge beyond its {size} nodes; correct 'sizes'")
    return given.astype(np.int64)


def _target_block(
    y: Array, level: Level | None, sizes: Ints, edges: Sequence[Ints]
) -> tuple[Level, Array]:
    """What `y` belongs to (by its shape: graphs, else nodes, else edges), and `[rows, T]`."""
    y = np.atleast_1d(y)
    graphs, nodes, listed = len(sizes), int(sizes.sum()), sum(ends.shape[1] for ends in edges)
    if level is None:
        by_rows: dict[int, Level] = {listed: "edge", nodes: "node", graphs: "graph"}
        level = "edge" if y.ndim >= 3 else by_rows.get(len(y))
    if level is None:
        raise DataError(
            f"array 'y' has shape {list(y.shape)}, expected {graphs} rows (one per graph), "
            f"{nodes} (per node) or {listed} (per edge)"
        )
    if level == "node":
        return level, np.concatenate(_per_node(y, "y", sizes))
    if level == "edge":
        return level, np.concatenate(_per_edge(y, "y", edges))
    if y.ndim > 2 or len(y) != graphs:
        raise DataError(f"array 'y' has shape {list(y.shape)}, expected [{graphs}, T]")
    return level, y.reshape(graphs, -1)


def _per_node(values: Array, key: str, sizes: Ints) -> list[Array]:
    """Split `[G, n, F]`, `[G, n]`, `[ΣN, F]` or `[ΣN]` into blocks `[n, F]`."""
    graphs, total, largest = len(sizes), int(sizes.sum()), int(sizes.max())
    if 1 <= values.ndim <= 2 and len(values) == total:
        return np.split(values.reshape(total, -1), np.cumsum(sizes)[:-1])
    if 2 <= values.ndim <= 3 and len(values) == graphs and values.shape[1] >= largest:
        wide = values.reshape(graphs, values.shape[1], -1)
        return [wide[index, :size] for index, size in enumerate(sizes)]
    raise DataError(
        f"array {key!r} has shape {list(values.shape)}, expected [{graphs}, {largest}, F] or "
        f"[{total}, F] for the {total} nodes of {graphs} graphs"
    )


def _per_edge(values: Array, key: str, edges: Sequence[Ints]) -> list[Array]:
    """Split `[G, n, n, K]`, `[G, n, n]`, `[ΣE, K]` or `[ΣE]` into blocks `[E, K]`."""
    counts = [ends.shape[1] for ends in edges]
    total, largest = sum(counts), max(int(ends.max(initial=0)) + 1 for ends in edges)
    if 1 <= values.ndim <= 2 and len(values) == total:
        columns = values.shape[1] if values.ndim == 2 else 1
        return np.split(values.reshape(total, columns), np.cumsum(counts)[:-1])
    square = 3 <= values.ndim <= 4 and values.shape[1] == values.shape[2] >= largest
    if square and len(values) == len(edges):
        wide = values if values.ndim == 4 else values[..., None]
        return [wide[index][ends[0], ends[1]] for index, ends in enumerate(edges)]
    raise DataError(
        f"array {key!r} has shape {list(values.shape)}, expected [{len(edges)}, n, n, K] or "
        f"[{total}, K] for the {total} edges of {len(edges)} graphs"
    )
