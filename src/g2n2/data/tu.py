"""TU datasets: graph classification sets in the raw text layout of the TUDataset collection.

Two slips in the paper's settings table (appendix, TUD): it gives PTC 22 node features, the data
make 21 columns (labels 1 to 21, of which 19 occur); and MUTAG 6 edge features, which are the 4 edge
labels plus the matrices I and A. For IMDB it gives one node feature: that is `degree="value"`.

There are two sets called PTC. `PTC` is the one of the GIN paper (25.6 nodes on average), `PTC_MR`
the one of TUDataset and most PyG papers (14.3 nodes, hydrogens removed).

The ten folds of the GIN code (powerful-gnns) are shuffled by class with seed 0, on the graphs in
the order of that code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import sole_builder
from ..errors import DataError, guess
from ..input_files import read_file
from ..validation import check_option
from .archives import read_zip
from .files import DataFile, cache_folder, check_sha256, store_in_cache
from .graph_set import Floats, GraphSet, Ints, Target, one_hot
from .splits import stratified_folds

Folds = Literal["gin", "none"]
Degree = Literal["none", "one-hot", "value"]
Columns = tuple[Floats, tuple[str, ...]]

TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip"
MOST_LABELS = 4096
TU_SETS = {
    "MUTAG": (188, 3_371, 3_721),
    "PTC": (344, 8_792, 8_931),
    "PTC_MR": (344, 4_915, 5_054),
    "PROTEINS": (1_113, 43_471, 81_044),
    "NCI1": (4_110, 122_747, 132_753),
    "IMDB-BINARY": (1_000, 19_773, 96_531),
    "IMDB-MULTI": (1_500, 19_502, 98_903),
}
"""Graphs, nodes and undirected edges of the published sets."""
_PTC = (
    "It is not in the TUDataset collection; its text form is data/PTC/PTC.txt of "
    "https://github.com/muhanzhang/pytorch_DGCNN. PTC_MR can be downloaded."
)
_LARGEST_WHOLE = 2.0**53  # a float holds every whole number up to here
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WANTED = re.compile(r"_(A|graph_indicator|(graph|node|edge)_(labels|attributes))\.txt$")
# Entry k is the index in the TU files of the GIN code's graph k; the other sets have one order.
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


def load_tu(
    name_or_path: str | Path,
    data: str | Path | None = None,
    *,
    folds: Folds = "none",
    attributes: bool = False,
    degree: Degree = "none",
    directed: bool = False,
) -> GraphSet:
    """Read a TU dataset by name, or a user's own folder or zip in the same layout.

    A name is sought as `NAME.zip` or folder `NAME` in `data`, `$G2N2_DATA` and the user cache, then
    downloaded from the TUDataset site. Node and edge labels become one-hot columns from the
    smallest label to the largest; classes count from 0 and keep their names.

    Args:
        name_or_path: Name in the collection, or a path to a folder or zip with `NAME_A.txt`.
        data: Folder searched first.
        folds: `gin` makes the splits `fold-1` to `fold-10` of the GIN code.
        attributes: Append node and edge attributes to the features.
        degree: Feature of a set without node labels or attributes: `one-hot` over the degrees that
            occur, as in GIN, `value` for the degree itself; with `none`, training takes the degrees
            of its training graphs as classes.
        directed: Keep edges listed in one direction as they are.

    Raises:
        DataError: If it cannot be found or downloaded, or its files do not fit together.
    """
    check_option("folds of a TU dataset", folds, get_args(Folds))
    check_option("degree of a TU dataset", degree, get_args(Degree))
    options: dict[str, Any] = {"attributes": attributes, "degree": degree}
    options |= {"directed": directed, "folds": folds}
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or (name not in TU_SETS and Path(name).exists()):
        return _read(Path(name_or_path), None, options)
    if not _NAME.fullmatch(name):
        raise DataError(f"there is no file or folder {name!r}, and no TU dataset has such a name")
    hint = "" if name in TU_SETS else guess(name, TU_SETS)
    file = DataFile(name, f"{name}.zip", "tu", url=TU_URL.format(name=name), hint=hint)
    if name == "PTC":
        file = file._replace(url="", hint=_PTC)
    if path := _find(file, data):
        return _read(path, name, options)
    with ExitStack() as stack:
        with suppress(DataError):  # if the cache cannot be written, `store_in_cache` says so
            stack.enter_context(sole_builder(cache_folder() / "tu" / file.name))
        if path := _find(file, data):  # another process may have fetched it meanwhile
            return _read(path, name, options)
        content = file.download(data)
        graphs = _build(content, file.url, name, **options)
        # It enters the cache, with its checksum, after it was read whole.
        sha256 = hashlib.sha256(content).hexdigest()
        store_in_cache(f"{file.name}.sha256", f"{sha256}  {file.name}\n".encode(), "tu")
        path = store_in_cache(file.name, content, "tu")
    source = {"path": str(path), "url": file.url, "sha256": sha256, **options}
    return replace(graphs, source=source)


def _find(file: DataFile, data: str | Path | None) -> Path | None:
    """The zip or the folder of a set; a folder counts only if it holds a dataset."""
    folder = file._replace(name=file.dataset).find(data, folder=True)
    return file.find(data) or (folder if folder and is_tu_folder(folder) else None)


def is_tu_folder(folder: Path) -> bool:
    """Whether a folder has the files of a TU dataset, in it or in `raw`."""
    return any(folder.glob("*_A.txt")) or any(folder.glob("raw/*_A.txt"))


def _read(path: Path, name: str | None, options: dict[str, Any]) -> GraphSet:
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}")
    sha256, content = None, None
    if path.is_file():
        content = read_file(path)
        stored = path.with_name(f"{path.name}.sha256")
        if stored.is_file():
            check_sha256(content, stored.read_text().partition(" ")[0], str(path))
        sha256 = hashlib.sha256(content).hexdigest()
    graphs = _build(content or path, str(path), name, **options)
    return replace(graphs, source={"path": str(path), "sha256": sha256, **options})


class NumberTable(NamedTuple):
    """One text file of numbers: its name, `[rows, columns]` and the line of each row, from 1."""

    file: str
    values: NDArray[np.float64]
    lines: list[int]

    def at(self, row: int) -> str:
        """File and line of a row: `MUTAG_A.txt, line 3`."""
        return f"{self.file}, line {self.lines[row]}"

    def whole(self, allow_missing: bool = False) -> NDArray[np.float64]:
        """The values, refused unless whole numbers, or NaN if values may be missing."""
        whole = (abs(self.values) <= _LARGEST_WHOLE) & (self.values == np.floor(self.values))
        return self.only(whole | (allow_missing & np.isnan(self.values)), "a whole number")

    def only(self, good: NDArray[np.bool_], expected: str) -> NDArray[np.float64]:
        """The values, refused unless all are good."""
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise DataError(f"{self.at(row)}: got {self.values[row, column]}, expected {expected}")
        return self.values


Tables = Mapping[str, NumberTable]
"""By part: `A`, `graph_indicator`, `node_labels`, ..."""


def _build(
    content: Path | bytes,
    label: str,
    name: str | None,
    *,
    attributes: bool,
    degree: Degree,
    directed: bool,
    folds: Folds,
) -> GraphSet:
    """The graphs of a folder or zip; a published set must have its published counts."""
    own_name, tables = _tables(content, label, name)
    notes: list[str] = []
    for part, holds in (("graph_indicator", "the graph id of every node"), ("A", "the edges")):
        if part not in tables:
            file = f"{own_name}_{part}.txt"
            raise DataError(f"the dataset {own_name} has no file {file}; expected {holds} in it")
    if not tables.keys() & {"graph_labels", "graph_attributes"}:
        notes.append(f"no targets: they would be in {own_name}_graph_labels.txt")
    for what in ("node", "edge"):
        if not attributes and (table := tables.get(f"{what}_attributes")):
            notes.append(f"{table.file} is not read; load_tu(…, attributes=True) reads it")
    indicator, listed = tables["graph_indicator"], tables["A"]
    if not indicator.lines:
        raise DataError(f"{indicator.file} is empty: expected the graph id of every node")
    numbers = indicator.whole()[:, 0]
    if (back := np.flatnonzero(np.diff(numbers) < 0)).size:
        raise DataError(
            f"{indicator.at(back[0] + 1)}: graph {numbers[back[0] + 1]:.0f} after graph "
            f"{numbers[back[0]]:.0f}; list the nodes graph by graph"
        )
    graph_ids, owner, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    targets, columns = _targets(tables, len(graph_ids))
    node_features, node_names = _features(tables, "node", len(owner), attributes)
    edges, origin = _edges(listed, owner, notes, directed)
    edge_features, edge_names = _features(tables, "edge", len(listed.lines), attributes)
    if not node_names and degree != "none":
        degrees = np.bincount(edges[0], minlength=len(owner))
        node_features, node_names = degrees[:, None].astype(np.float32), ("degree",)
        if degree == "one-hot":
            present, column = np.unique(degrees, return_inverse=True)
            node_features = one_hot(column, len(present))
            node_names = tuple(f"degree {value}" for value in present)
        notes.append(f"no node labels: the node feature is the degree ({degree})")
    got = (len(sizes), len(owner), edges.shape[1] // 2)
    if name in TU_SETS and got != (expected := TU_SETS[name]):
        raise DataError(
            f"{label} is not the published {name}: got {got[0]} graphs, {got[1]} nodes and "
            f"{got[2]} edges, expected {expected[0]}, {expected[1]} and {expected[2]}; get it "
            "again, or give its path to read it as your own"
        )
    of_edge = owner[edges[0]]
    graphs = GraphSet(
        name=own_name,
        sizes=sizes,
        edge_counts=np.bincount(of_edge, minlength=len(sizes)),
        edges=edges - (np.cumsum(sizes) - sizes)[of_edge],
        node_features=node_features,
        edge_features=edge_features[origin],
        targets=targets,
        columns=columns,
        node_names=node_names,
        edge_names=edge_names,
        ids=tuple(f"{number:.0f}" for number in graph_ids),
    ).check()
    splits = _gin_folds(graphs) if folds == "gin" else {}
    return replace(graphs, splits=splits, notes=tuple(notes))


def _tables(source: Path | bytes, label: str, name: str | None) -> tuple[str, Tables]:
    """NAME and the numbers of `NAME_*.txt`, at any depth of a folder or zip down to `NAME/raw/`."""
    if isinstance(source, Path) and source.is_dir():
        files = (path for depth in ("*", "*/*", "*/*/*") for path in sorted(source.glob(depth)))
        relative = {path.relative_to(source).as_posix(): path for path in files if path.is_file()}
        members = {key: read_file(path) for key, path in relative.items() if _WANTED.search(key)}
    else:
        members = read_zip(source, _WANTED.search, name=label)
    paths = {PurePosixPath(member): content for member, content in members.items()}
    names = {path.name[:-6]: path.parent for path in paths if path.name.endswith("_A.txt")}
    if name is None and len(names) == 1:
        (name,) = names
    if name not in names:
        raise DataError(
            f"{label} holds {', '.join(sorted(names)) or 'none'}, expected "
            f"{name or 'one dataset'}: the files are NAME_A.txt, NAME_graph_indicator.txt and "
            "NAME_graph_labels.txt, in it or in NAME/raw/"
        )
    parts = {path: path.stem.removeprefix(f"{name}_") for path in paths}
    tables = {
        part: _parse_numbers(path.name, paths[path])
        for path, part in parts.items()
        if path.parent == names[name] and part != path.stem
    }
    return name, tables


def _parse_numbers(file: str, content: bytes) -> NumberTable:
    """Parse lines of numbers, separated by commas or else by spaces."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = content[: error.start].count(b"\n") + 1
        raise DataError(f"{file}, line {at}: not UTF-8 text; save it as plain text") from error
    rows = {number: line for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    first = next(iter(rows.values()), "0")
    delimiter = "," if "," in first else None
    columns = len(first.split(delimiter))

    def parse(lines: list[str]) -> NDArray[np.float64]:
        return np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)

    try:
        values = parse(list(rows.values())) if rows else np.zeros((0, 1))
    except ValueError as error:
        for number, line in rows.items():  # one at a time, to name the line at fault
            with suppress(ValueError):
                if parse([line]).size == columns:
                    continue
            raise DataError(
                f"{file}, line {number}: got {line.strip()[:60]!r}, expected {columns} number"
                f"{'s' * (columns > 1)}{' with commas between' * (delimiter is not None)}"
            ) from error
        raise
    return NumberTable(file, values, list(rows))


def _edges(table: NumberTable, owner: Ints, notes: list[str], directed: bool) -> tuple[Ints, Ints]:
    """Edges `[2, E]` in order, nodes counted through all graphs, and the row each was listed in."""
    nodes = len(owner)
    if table.lines and table.values.shape[1] != 2:
        raise DataError(f"{table.at(0)}: got {table.values.shape[1]} columns, expected 2: i, j")
    listed = table.whole().reshape(-1, 2).astype(np.int64) - 1
    inside = np.all((listed >= 0) & (listed < nodes), axis=1)
    ends = np.where(inside[:, None], listed, 0)
    for bad, why in (
        (~inside, f"names no node: expected 1 to {nodes}, counted from 1 through all graphs"),
        (owner[ends[:, 0]] != owner[ends[:, 1]], "joins two graphs"),
    ):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            i, j = listed[row] + 1
            raise DataError(f"{table.at(row)}: edge {i}, {j} {why}")
    keys, origin = np.unique(listed @ (nodes, 1), return_index=True)
    backwards = listed[origin] @ (1, nodes)
    one_way = ~np.isin(backwards, keys)
    if repeated := len(listed) - len(keys):
        notes.append(f"{repeated} edge(s) of {table.file} are repeated; the first was kept")
    if one_way.any() and not directed:
        notes.append(
            f"{one_way.sum()} edge(s) of {table.file} are listed in one direction only; the other "
            "was added (directed=True keeps them as they are)"
        )
        keys, by_key = np.unique([*keys, *backwards[one_way]], return_index=True)
        origin = np.concatenate([origin, origin[one_way]])[by_key]
    return np.stack(np.divmod(keys, nodes)), origin


def _features(tables: Tables, what: str, rows: int, attributes: bool) -> Columns:
    """One-hot labels, then attributes if asked for; `[rows, 0]` if there are none."""
    blocks: list[Floats] = [np.zeros((rows, 0), dtype=np.float32)]
    names: list[str] = []
    labels, values = (tables.get(f"{what}_{kind}") for kind in ("labels", "attributes"))
    for table in (labels, values):
        if table is not None and len(table.lines) != rows:
            raise DataError(
                f"{table.file} has {len(table.lines)} rows, expected {rows}: one per {what}"
            )
    for number, column in enumerate(labels.whole().T if labels and rows else (), start=1):
        # One column for every whole number from the smallest label to the largest, as PyG does.
        low, high = int(column.min()), int(column.max())
        if high - low >= MOST_LABELS:
            raise DataError(
                f"{what}_labels.txt has labels from {low} to {high}, the limit for one-hot columns "
                f"is {MOST_LABELS}: number the labels without gaps, or give them as attributes"
            )
        single = labels is None or labels.values.shape[1] == 1
        prefix = "label" if single else f"label {number}"
        blocks.append(one_hot(column.astype(np.int64) - low, high - low + 1))
        names += [f"{prefix} {value}" for value in range(low, high + 1)]
    if values is not None and attributes:
        numbers = values.only(np.isfinite(values.values), "a finite number")
        blocks.append(numbers.astype(np.float32))
        names += [f"attribute {k + 1}" for k in range(numbers.shape[1])]
    return np.concatenate(blocks, axis=1), tuple(names)


def _targets(tables: Tables, graphs: int) -> tuple[NDArray[np.float64], tuple[Target, ...]]:
    """Classes from 0 of `graph_labels`, or else the real values of `graph_attributes`."""
    table = tables.get("graph_labels", tables.get("graph_attributes"))
    if table is None:
        return np.zeros((graphs, 0)), ()
    if len(table.lines) != graphs:
        raise DataError(
            f"{table.file} has {len(table.lines)} rows, expected {graphs}: one per graph of the "
            "indicator file"
        )
    if "graph_labels" not in tables:
        count = table.values.shape[1]
        return table.values, tuple(Target(f"value {k + 1}") for k in range(count))
    values, columns = table.whole(allow_missing=True), []
    for k, column in enumerate(values.T, start=1):
        present = ~np.isnan(column)
        classes, column[present] = np.unique(column[present], return_inverse=True)
        kind: Literal["binary", "multiclass"] = "binary" if len(classes) <= 2 else "multiclass"
        name = "class" if values.shape[1] == 1 else f"class {k}"
        columns.append(Target(name, kind=kind, classes=tuple(f"{c:.0f}" for c in classes)))
    return values, tuple(columns)


def _gin_folds(graphs: GraphSet) -> dict[str, Ints]:
    """The folds of the GIN code."""
    if not graphs.columns or not graphs.columns[0].classes or np.isnan(graphs.targets).any():
        raise DataError(f"folds='gin' needs one class for every graph, which {graphs.name} has not")
    is_mutag = graphs.name == "MUTAG" and len(graphs) == 188
    order = MUTAG_GIN_ORDER if is_mutag else np.arange(len(graphs))
    in_gin_order = stratified_folds(graphs.targets[order, 0])
    return {name: order[indices] for name, indices in in_gin_order.items()}
