"""PyG `Data` objects: `x`, `edge_index`, `edge_attr`, `edge_weight`, `pos` and `y`.

A `y` with one row per node of every graph belongs to nodes, one with one row per edge to edges;
PyG's own graph-level targets are `[1, T]`. Anything with those attributes is read, so PyG itself
is never imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..assembly import Record, assemble
from ..graph_set import Floats, GraphSet, Level
from .options import Options
from .targets import from_block

Array = NDArray[Any]


def is_pyg(item: object) -> bool:
    """Whether an object is a graph in PyG's form."""
    return hasattr(item, "edge_index") and hasattr(item, "num_nodes")


def read_pyg(items: Iterable[Any], options: Options) -> GraphSet:
    """Read a list of `Data` or a PyG dataset.

    Raises:
        DataError: Naming the graph and the attribute at fault.
    """
    data = list(items)
    records = [_record(item, f"graph {number}") for number, item in enumerate(data)]
    ids = [str(getattr(item, "id", None) or number) for number, item in enumerate(data)]
    extra: dict[str, Any] = {}
    notes: list[str] = []
    found = [_array(getattr(item, "y", None)) for item in data]
    if any(y is not None for y in found) and (options.target is None or len(options.target)):
        level = options.level or _level(found, records)
        block = _block(found, records, level)
        whole = all(y is None or y.dtype.kind in "biu" for y in found)
        values, columns, notes = from_block(block, whole, options.task, options.target)
        extra = {"level": level, "targets": values, "columns": columns}
    name = options.name or "graphs"
    return assemble(records, name=name, ids=ids, notes=notes, source={"format": "pyg"}, **extra)


def _record(item: Any, where: str) -> Record:
    if not is_pyg(item) or item.edge_index is None:
        raise DataError(
            f"{where} is {type(item).__name__} without an edge_index; expected a PyG Data with one "
            "(HeteroData: to_homogeneous(); adj_t: keep edge_index too)"
        )
    edges = _array(item.edge_index)
    if edges is None or edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        shape = None if edges is None else f"{edges.dtype} {list(edges.shape)}"
        raise DataError(f"{where}: edge_index is {shape}, expected whole numbers [2, E]")
    return Record(
        size=_size(item, edges),
        edges=edges.astype(np.int64),
        node_features=_columns(getattr(item, "x", None), f"{where}: x"),
        edge_features=_columns(getattr(item, "edge_attr", None), f"{where}: edge_attr"),
        weights=_weights(getattr(item, "edge_weight", None)),
        positions=_positions(getattr(item, "pos", None)),
    )


def _size(item: Any, edges: Array) -> int:
    """Number of nodes; from x where there is one, as PyG warns when it must count edge ends."""
    features = _array(getattr(item, "x", None))
    return int(item.num_nodes if features is None else len(features))


def _array(value: Any) -> Array | None:
    """A tensor, array or number as an array."""
    if value is None:
        return None
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _columns(value: Any, where: str) -> Floats | None:
    values = _array(value)
    if values is None:
        return None
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        raise DataError(f"{where} is {values.dtype} {list(values.shape)}, expected numbers [n, F]")
    return values.reshape(len(values), -1 if values.size else 1).astype(np.float32)


def _weights(value: Any) -> Floats | None:
    weights = _array(value)
    return None if weights is None else weights.reshape(-1).astype(np.float32)


def _positions(value: Any) -> Floats | None:
    places = _array(value)
    if places is None or places.ndim != 2 or places.shape[1] != 3:
        return None
    return places.astype(np.float32)


def _level(found: Sequence[Array | None], records: Sequence[Record]) -> Level:
    """Graphs if each y is one row; nodes or edges if every y has as many rows as there are."""
    if all(y is None or y.ndim == 0 or len(y) == 1 for y in found):
        return "graph"
    present = [(y, record) for y, record in zip(found, records, strict=True) if y is not None]
    if all(y.ndim and len(y) == record.size for y, record in present):
        return "node"
    if all(y.ndim and len(y) == record.edges.shape[1] for y, record in present):
        return "edge"
    return "graph"


def _block(
    found: Sequence[Array | None], records: Sequence[Record], level: Level
) -> NDArray[np.float64]:
    """Targets `[rows, T]`, NaN for every row of a graph without `y`."""
    blocks: list[NDArray[np.float64] | None] = []
    rows: list[int] = []
    for index, (y, record) in enumerate(zip(found, records, strict=True)):
        count = {"graph": 1, "node": record.size, "edge": record.edges.shape[1]}[level]
        rows.append(count)
        if y is not None and (y.dtype.kind not in "biuf" or y.size % max(count, 1)):
            raise DataError(
                f"graph {index}: y is {y.dtype} {list(y.shape)}, expected numbers in {count} rows "
                f"as the targets belong to {level}s"
            )
        blocks.append(None if y is None else y.astype(np.float64).reshape(count, -1))
    widths = {block.shape[1] for block in blocks if block is not None and len(block)}
    if len(widths) > 1:
        raise DataError(
            f"y has {' and '.join(map(str, sorted(widths)))} columns in different graphs; "
            "expected one number of targets everywhere, NaN where one is missing"
        )
    width = widths.pop() if widths else 0
    return np.concatenate(
        [
            np.full((count, width), np.nan) if block is None or not count else block
            for block, count in zip(blocks, rows, strict=True)
        ]
    )
