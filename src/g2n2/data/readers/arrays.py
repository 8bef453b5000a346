"""`.npz` files of adjacency matrices, and graph6 files.

An `.npz` holds:

| array | shape | meaning |
|-|-|-|
| `A` | `[G, n, n]` or `[n, n]` | weight of each edge, 0 where there is none |
| `sizes` | `[G]` | nodes of each graph where smaller ones are padded to n; all n without it |
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import adjacency, read_graph6_file
from ..assembly import Record, assemble, from_matrix
from ..graph_set import Floats, GraphSet, Ints, Level
from .options import Options
from .padding import level_of, per_edge, per_node
from .tables import Table, read_table, shortened
from .targets import from_block, from_cells, infer_together

_KNOWN = ("A", "sizes", "x", "e", "y", "positions", "ids", "target_names")
Array = NDArray[Any]


def read_matrices(items: Sequence[Any], options: Options) -> GraphSet:
    """Read a list of graphs without features: whatever `g2n2.graphs.adjacency` takes.

    Raises:
        DataError: Naming the item that is no graph.
    """
    if not items:
        raise DataError("the list holds no graph; expected at least one")
    records = []
    for number, item in enumerate(items):
        try:
            records.append(from_matrix(adjacency(item)))
        except DataError as fault:
            kinds = ", ".join(sorted({type(other).__name__ for other in items}))
            raise DataError(
                f"the list holds {kinds}; item {number} is no graph: {fault}"
            ) from fault
    name, ids = options.name or "graphs", [str(number) for number in range(len(records))]
    return assemble(records, name=name, ids=ids, source={"format": "matrices"})


def read_npz_graphs(path: str | Path, options: Options) -> GraphSet:
    """Read a `.npz` laid out as above; no pickle is opened.

    Raises:
        DataError: Naming the array that does not fit, its shape and what was expected.
    """
    from ..archives import read_npz

    arrays = read_npz(Path(path))
    if "A" not in arrays:
        raise DataError(f"{path} holds {shortened(arrays) or 'nothing'}; expected an array 'A'")
    matrices = _real(arrays["A"], "A")
    if matrices.ndim == 2:
        matrices = matrices[None]
        arrays = {key: _one_graph(key, value) for key, value in arrays.items()}
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or 0 in matrices.shape:
        raise DataError(f"array 'A' has shape {list(arrays['A'].shape)}, expected [G, n, n]")
    _refuse_not_finite(matrices)
    sizes = _sizes(arrays.get("sizes"), matrices)
    records = [from_matrix(matrix[:n, :n]) for matrix, n in zip(matrices, sizes, strict=True)]
    ids = [str(value) for value in arrays.get("ids", np.arange(len(records)))]
    if len(ids) != len(records):
        raise DataError(f"array 'ids' has {len(ids)} entries, expected {len(records)}")
    records = _with_features(records, arrays, sizes)
    notes = [f"Array {key!r} is not used." for key in arrays if key not in _KNOWN]
    targets: dict[str, Any] = {}
    if "y" in arrays and (options.target is None or len(options.target)):
        level, block = _target_block(_real(arrays["y"], "y"), options.level, sizes, records)
        values, columns, more = from_block(
            block.astype(np.float64),
            block.dtype.kind in "biu",
            options.task,
            options.target,
            [str(name) for name in arrays.get("target_names", ())],
        )
        targets = {"level": level, "targets": values, "columns": columns}
        notes += more
    name = options.name or Path(path).name.partition(".")[0]
    return assemble(records, name=name, ids=ids, notes=notes, source={"format": "npz"}, **targets)


def read_graph6(path: str | Path, options: Options) -> GraphSet:
    """Read a graph6 file, one graph a line; targets stand in `NAME_graphs.csv` beside it.

    That table has one row for each graph, in the file's order, and a column for each target.
    """
    records = [from_matrix(matrix) for matrix in read_graph6_file(path)]
    name = Path(path).name.partition(".")[0]
    beside = Path(path).with_name(f"{name}_graphs.csv")
    extra: dict[str, Any] = {"notes": []}
    if beside.is_file() and options.target != ():
        extra = _targets_beside(read_table(beside), len(records), options)
    return assemble(
        records,
        name=options.name or name,
        ids=[str(number) for number in range(len(records))],
        source={"format": "graph6"},
        **extra,
    )


def _targets_beside(table: Table, count: int, options: Options) -> dict[str, Any]:
    if len(table) != count:
        raise DataError(f"{table.name} has {len(table)} rows for {count} graphs; expected one each")
    rest = [name for name in table.columns if name.lower() not in ("graph", "graph_id", "id")]
    wanted = [table.find(name) for name in options.target] if options.target else rest
    columns = [from_cells(n, table.columns[n], table.places, options.task) for n in wanted]
    values, targets, notes = infer_together(columns)
    return {"targets": values, "columns": targets, "notes": notes}


def _real(values: Array, key: str) -> Array:
    if values.dtype.kind not in "biuf":
        raise DataError(f"array {key!r} holds {values.dtype}, expected real numbers")
    return values


def _one_graph(key: str, values: Array) -> Array:
    """An array of a single graph with the axis of graphs that the others have."""
    return values[None] if key in ("A", "e") or (key == "x" and values.ndim == 1) else values


def _refuse_not_finite(matrices: Array) -> None:
    if len(bad := np.argwhere(~np.isfinite(matrices))):
        graph, i, j = (int(place) for place in bad[0])
        raise DataError(
            f"entry ({i}, {j}) of graph {graph} in 'A' is {matrices[graph, i, j]}, expected a "
            "finite number: write 0 where there is no edge"
        )


def _sizes(given: Array | None, matrices: Array) -> Ints:
    graphs, n = matrices.shape[:2]
    if given is None:
        return np.full(graphs, n, dtype=np.int64)
    if given.shape != (graphs,) or given.dtype.kind not in "iu":
        raise DataError(
            f"array 'sizes' is {given.dtype} {list(given.shape)}, expected whole numbers [{graphs}]"
        )
    if ((given < 1) | (given > n)).any():
        at = int(np.flatnonzero((given < 1) | (given > n))[0])
        raise DataError(f"graph {at} has size {given[at]}, expected 1 to {n}")
    for index, size in enumerate(given):
        if matrices[index, size:].any() or matrices[index, :, size:].any():
            raise DataError(f"graph {index} has an edge beyond its {size} nodes; correct 'sizes'")
    return given.astype(np.int64)


def _with_features(records: list[Record], arrays: dict[str, Array], sizes: Ints) -> list[Record]:
    """The records with what the arrays say of their nodes and edges."""

    def blocks(key: str) -> list[Floats | None]:
        if key not in arrays:
            return [None] * len(records)
        values = _real(arrays[key], key)
        cut = (
            per_edge(values, key, [record.edges for record in records])
            if key == "e"
            else per_node(values, key, sizes)
        )
        return [block.astype(np.float32) for block in cut]

    found = zip(records, blocks("x"), blocks("e"), blocks("positions"), strict=True)
    return [
        replace(record, node_features=x, edge_features=e, positions=places)
        for record, x, e, places in found
    ]


def _target_block(
    y: Array, level: Level | None, sizes: Ints, records: list[Record]
) -> tuple[Level, Array]:
    """What `y` belongs to, and its values as `[rows, T]`."""
    y = y.reshape(-1) if y.ndim == 0 else y
    edges = [record.edges for record in records]
    total = sum(block.shape[1] for block in edges)
    settled = level or level_of(y, len(records), int(sizes.sum()), total)
    if settled == "node":
        return settled, np.concatenate(per_node(y, "y", sizes))
    if settled == "edge":
        return settled, np.concatenate(per_edge(y, "y", edges))
    if y.ndim > 2 or len(y) != len(records):
        raise DataError(f"array 'y' has shape {list(y.shape)}, expected [{len(records)}, T]")
    return settled, y.reshape(len(records), -1)
