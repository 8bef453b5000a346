"""TU datasets: graph classification sets in the raw text layout of the TUDataset collection.

Two slips in the paper's settings table (appendix, TUD): it gives PTC 22 node features, the data
make 21 columns (labels 1 to 21, of which 19 occur); and MUTAG 6 edge features, which are the 4 edge
labels plus the matrices I and A. For IMDB it gives one node feature: that is `degree="value"`.

There are two sets called PTC. `PTC` is the one of the GIN paper (25.6 nodes on average), `PTC_MR`
the one of TUDataset and most PyG papers (14.3 nodes, hydrogens removed).

Two conventions for ten folds are in use and give different numbers. The index files of
pytorch_DGCNN hold test folds of floor(G / 10) graphs each, so up to nine graphs are never tested.
The GIN code (powerful-gnns) shuffles by class with seed 0, on the graphs in its own order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import sole_builder
from ..errors import DataError
from ..input_files import read_file
from .archives import read_zip
from .files import cache_folder, check_sha256, download, find_file, missing_file, store_in_cache
from .graph_set import Floats, GraphSet, Ints, Target, one_hot
from .splits import stratified_folds

Folds = Literal["stored", "gin", "none"]
Degree = Literal["one-hot", "value", "none"]
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
_NOT_OFFICIAL = {
    "PTC": "It is not in the TUDataset collection; its text form is data/PTC/PTC.txt of "
    "https://github.com/muhanzhang/pytorch_DGCNN. PTC_MR can be downloaded."
}
_LARGEST_WHOLE = 2.0**53  # a float holds every whole number up to here
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WANTED = re.compile(
    r"_(A|graph_indicator|(graph|node|edge)_(labels|attributes))\.txt$"
    r"|(^|/)10fold_idx/test_idx-\d{1,9}\.txt$"
)
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
    folds: Folds = "stored",
    attributes: bool = False,
    degree: Degree = "one-hot",
    directed: bool = False,
) -> GraphSet:
    """Read a TU dataset by name, or a user's own folder or zip in the same layout.

    A name is sought as `NAME.zip` or folder `NAME` in `data`, `$G2N2_DATA` and the user cache, then
    downloaded from the TUDataset site. Node and edge labels become one-hot columns from the
    smallest label to the largest; classes count from 0 and keep their names.

    Args:
        name_or_path: Name in the collection, or a path to a folder or zip with `NAME_A.txt`.
        data: Folder searched first.
        folds: `stored` makes the splits `fold-1` to `fold-10` from the index files of the set, if
            it has any; `gin` makes those of the GIN code; `none` makes none.
        attributes: Append node and edge attributes to the features.
        degree: Feature of a set without node labels or attributes: one-hot over the degrees that
            occur, as in GIN, the degree itself, or none.
        directed: Keep edges listed in one direction as they are.

    Raises:
        DataError: If it cannot be found or downloaded, or its files do not fit together.
    """
    for option, value, choices in (("folds", folds, Folds), ("degree", degree, Degree)):
        if value not in get_args(choices):
            expected = ", ".join(get_args(choices))
            raise DataError(f"{option} of a TU dataset: got {value!r}, expected one of {expected}")
    options = {"attributes": attributes, "degree": degree, "directed": directed, "folds": folds}
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or (name not in TU_SETS and Path(name).exists()):
        return _read(Path(name_or_path), None, options)
    if not _NAME.fullmatch(name):
        raise DataError(f"there is no file or folder {name!r}, and no TU dataset has such a name")
    if path := _find(name, data):
        return _read(path, name, options)
    if name in _NOT_OFFICIAL:
        raise missing_file(name, f"{name}.zip", data, "tu", _NOT_OFFICIAL[name])
    with ExitStack() as stack:
        with suppress(DataError):  # if the cache cannot be written, `store_in_cache` says so
            stack.enter_context(sole_builder(cache_folder() / "tu" / f"{name}.zip"))
        # Another process may have fetched it meanwhile.
        path = _find(name, data)
        return _read(path, name, options) if path else _fetch(name, data, options)


def _find(name: str, data: str | Path | None) -> Path | None:
    """The zip or the folder of a set; a folder counts only if it holds a dataset."""
    if archive := find_file(f"{name}.zip", data, "tu"):
        return archive
    folder = find_file(name, data, "tu", folder=True)
    return folder if folder and is_tu_folder(folder) else None


def is_tu_folder(folder: Path) -> bool:
    """Whether a folder has the files of a TU dataset, in it or in `raw`."""
    return any(folder.glob("*_A.txt")) or any(folder.glob("raw/*_A.txt"))


def _read(path: Path, name: str | None, options: dict[str, Any]) -> GraphSet:
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}")
    sha256 = None
    content: Path | bytes = path
    if path.is_file():
        content = read_file(path)
        stored = path.with_name(f"{path.name}.sha256")
        if stored.is_file():
            check_sha256(content, stored.read_text().partition(" ")[0], str(path))
        sha256 = hashlib.sha256(content).hexdigest()
    graphs = _build(content, str(path), name, **options)
    return replace(graphs, source={"path": str(path), "sha256": sha256, **options})


def _fetch(name: str, data: str | Path | None, options: dict[str, Any]) -> GraphSet:
    """Read the official zip; it enters the cache, with its checksum, after it was read whole."""
    url = TU_URL.format(name=name)
    close = get_close_matches(name.upper(), TU_SETS, n=2)
    hint = f" Did you mean {' or '.join(close)}?" if close and name not in close else ""
    content = download(url, name, f"{name}.zip", data, "tu", hint)
    graphs = _build(content, url, name, **options)
    sha256 = hashlib.sha256(content).hexdigest()
    store_in_cache(f"{name}.zip.sha256", f"{sha256}  {name}.zip\n".encode(), "tu")
    path = store_in_cache(f"{name}.zip", content, "tu")
    return replace(graphs, source={"path": str(path), "url": url, "sha256": sha256, **options})


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
    raw = _read_raw_files(content, label, name)
    graphs = _graph_set(raw, attributes, degree, directed)
    got = (len(graphs), int(graphs.sizes.sum()), int(graphs.edge_counts.sum()) // 2)
    if name in TU_SETS and got != (expected := TU_SETS[name]):
        raise DataError(
            f"{label} is not the published {name}: got {got[0]} graphs, {got[1]} nodes and "
            f"{got[2]} edges, expected {expected[0]}, {expected[1]} and {expected[2]}; get it "
            "again, or give its path to read it as your own"
        )
    return _with_folds(graphs, raw, folds)


@dataclass(frozen=True, eq=False)
class NumberTable:
    """One text file of numbers.

    Attributes:
        file: Its name, for messages.
        values: `[rows, columns]`, without blank lines.
        lines: `[rows]` line number of each row, from 1.
    """

    file: str
    values: NDArray[np.float64]
    lines: Ints

    def at(self, row: int) -> str:
        """File and line of a row: `MUTAG_A.txt, line 3`."""
        return f"{self.file}, line {self.lines[row]}"

    def integers(self, allow_missing: bool = False) -> NDArray[np.float64]:
        """The values, refused unless whole numbers, or NaN if values may be missing."""
        whole = (abs(self.values) <= _LARGEST_WHOLE) & (self.values == np.floor(self.values))
        return self._only(whole | (allow_missing & np.isnan(self.values)), "a whole number")

    def numbers(self) -> NDArray[np.float64]:
        """The values, refused unless finite."""
        return self._only(np.isfinite(self.values), "a finite number")

    def _only(self, good: NDArray[np.bool_], expected: str) -> NDArray[np.float64]:
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise DataError(f"{self.at(row)}: got {self.values[row, column]}, expected {expected}")
        return self.values


@dataclass(frozen=True, eq=False)
class RawFiles:
    """The text files of one dataset.

    Attributes:
        name: NAME of `NAME_A.txt`.
        tables: By part: `A`, `graph_indicator`, `node_labels`, ...
        folds: Test indices by fold number, from `10fold_idx/test_idx-K.txt`.
    """

    name: str
    tables: Mapping[str, NumberTable]
    folds: Mapping[int, NumberTable]

    def table(self, part: str) -> NumberTable:
        """The table of a part the layout requires."""
        if part not in self.tables:
            raise DataError(f"the dataset {self.name} has no file {self.name}_{part}.txt")
        return self.tables[part]


def _read_raw_files(source: Path | bytes, label: str, name: str | None) -> RawFiles:
    """Read `NAME_*.txt`, at any depth of a folder or zip down to `NAME/raw/`.

    Args:
        source: A folder, a zip file, or the content of one.
        label: What messages call it.
        name: NAME, needed if there is more than one dataset.
    """
    if isinstance(source, Path) and source.is_dir():
        files = (path for depth in ("*", "*/*", "*/*/*") for path in sorted(source.glob(depth)))
        relative = {path.relative_to(source).as_posix(): path for path in files if path.is_file()}
        members = {key: read_file(path) for key, path in relative.items() if _WANTED.search(key)}
    else:
        members = read_zip(source, lambda member: bool(_WANTED.search(member)), name=label)
    paths = {PurePosixPath(member): content for member, content in members.items()}
    folders = {
        path.name.removesuffix("_A.txt"): path.parent
        for path in paths
        if path.name.endswith("_A.txt")
    }
    if name is None and len(folders) == 1:
        (name,) = folders
    if name not in folders:
        names = ", ".join(sorted(folders)) or "none"
        raise DataError(
            f"{label} holds {names}, expected {name or 'one dataset'}: the files are NAME_A.txt, "
            "NAME_graph_indicator.txt and NAME_graph_labels.txt, in it or in NAME/raw/"
        )
    folder = folders[name]
    root = folder.parent if folder.name == "raw" else folder
    tables, folds = {}, {}
    for path, content in paths.items():
        if path.parent == folder and path.name.startswith(f"{name}_"):
            part = path.name.removeprefix(f"{name}_").removesuffix(".txt")
            tables[part] = _parse_numbers(path.name, content)
        if path.parent == root / "10fold_idx":
            folds[int(path.stem.rpartition("-")[2])] = _parse_numbers(path.name, content)
    return RawFiles(name, tables, dict(sorted(folds.items())))


def _parse_numbers(file: str, content: bytes) -> NumberTable:
    """Parse lines of numbers, separated by commas or else by spaces."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text ({error})") from error
    rows = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = np.array([number for number, _ in rows], dtype=np.int64)
    if not rows:
        return NumberTable(file, np.zeros((0, 1)), lines)
    delimiter = "," if "," in rows[0][1] else None
    columns = len(rows[0][1].split(delimiter))

    def parse(texts: list[str]) -> NDArray[np.float64]:
        values = np.loadtxt(texts, delimiter=delimiter, comments=None, ndmin=2)
        if values.size != len(texts) * columns:
            raise ValueError("another number of columns")
        return values

    try:
        return NumberTable(file, parse([line for _, line in rows]), lines)
    except ValueError as error:
        for number, line in rows:  # one at a time, to name the line at fault
            try:
                parse([line])
            except ValueError:
                raise DataError(
                    f"{file}, line {number}: got {line.strip()[:60]!r}, expected {columns} number"
                    f"{'s' * (columns > 1)}{' with commas between' * (delimiter is not None)}"
                ) from error
        raise


def _graph_set(raw: RawFiles, attributes: bool, degree: Degree, directed: bool) -> GraphSet:
    """Number the graphs, nodes and edges, and make features and targets; notes what is unusual."""
    notes = [
        f"{blank} blank line(s) of {table.file} were skipped"
        for table in raw.tables.values()
        if len(table.lines) and (blank := int(table.lines[-1]) - len(table.lines))
    ]
    indicator = raw.table("graph_indicator")
    if not len(indicator.values):
        raise DataError(f"{indicator.file} is empty: expected the graph id of every node")
    graph_ids, owner = np.unique(indicator.integers()[:, 0], return_inverse=True)
    order = np.argsort(owner, kind="stable")
    if (order != np.arange(len(owner))).any():
        notes.append(f"the nodes of a graph are not together in {indicator.file}; they were sorted")
    targets, columns = _targets(raw, graph_ids, notes)
    node_features, node_names = _features(raw, "node", len(owner), attributes)
    listed = raw.table("A")
    edges, origin = _edges(listed, owner, order, notes, directed)
    edge_features, edge_names = _features(raw, "edge", len(listed.values), attributes)
    sizes = np.bincount(owner, minlength=len(graph_ids)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    owner, node_features = owner[order], node_features[order]
    if not node_names and degree != "none":
        degrees = np.bincount(edges[0], minlength=len(owner))
        node_features, node_names = degrees[:, None].astype(np.float32), ("degree",)
        if degree == "one-hot":
            present, column = np.unique(degrees, return_inverse=True)
            node_features = one_hot(column, len(present))
            node_names = tuple(f"degree {value}" for value in present)
        notes.append(f"no node labels: the node feature is the degree ({degree})")
    return GraphSet(
        name=raw.name,
        sizes=sizes,
        edge_counts=np.bincount(owner[edges[0]], minlength=len(sizes)).astype(np.int64),
        edges=edges - offsets[owner[edges[0]]],
        node_features=node_features,
        edge_features=edge_features[origin],
        targets=targets,
        columns=columns,
        node_names=node_names,
        edge_names=edge_names,
        ids=tuple(str(int(number)) for number in graph_ids),
        notes=tuple(notes),
    ).check()


def _edges(
    table: NumberTable, owner: Ints, order: Ints, notes: list[str], directed: bool
) -> tuple[Ints, Ints]:
    """Edges `[2, E]` between the sorted nodes, by graph, and the row each was listed in."""
    nodes = len(owner)
    if len(table.values) and table.values.shape[1] != 2:
        raise DataError(f"{table.at(0)}: got {table.values.shape[1]} columns, expected 2: i, j")
    listed = table.integers().reshape(-1, 2).astype(np.int64) - 1

    def refuse(bad: Any, why: str) -> None:
        for row in np.flatnonzero(bad)[:1].tolist():
            i, j = listed[row] + 1
            raise DataError(f"{table.at(row)}: edge {i}, {j} {why}")

    outside = ((listed < 0) | (listed >= nodes)).any(axis=1)
    refuse(outside, f"names no node: expected 1 to {nodes}, counted from 1 through all graphs")
    refuse(owner[listed[:, 0]] != owner[listed[:, 1]], "joins two graphs")
    rank = np.empty(nodes, dtype=np.int64)
    rank[order] = np.arange(nodes)
    start, end = rank[listed].T
    keys, origin = np.unique(start * nodes + end, return_index=True)
    if len(keys) < len(listed):
        repeated = len(listed) - len(keys)
        notes.append(f"{repeated} edge(s) of {table.file} are repeated; the first was kept")
    if loops := int((start[origin] == end[origin]).sum()):
        notes.append(f"{loops} self-loop(s) in {table.file} were kept")
    backwards = end[origin] * nodes + start[origin]
    one_way = ~np.isin(backwards, keys)
    if one_way.any() and not directed:
        notes.append(
            f"{int(one_way.sum())} edge(s) of {table.file} are listed in one direction only; the "
            "other was added (directed=True keeps them as they are)"
        )
        keys = np.concatenate([keys, backwards[one_way]])
        origin = np.concatenate([origin, origin[one_way]])
        by_key = np.argsort(keys)
        keys, origin = keys[by_key], origin[by_key]
    return np.stack(np.divmod(keys, nodes)), origin


def _features(raw: RawFiles, what: str, rows: int, attributes: bool) -> Columns:
    """One-hot labels, then attributes if asked for; `[rows, 0]` if there are none."""
    parts: list[Columns] = [(np.zeros((rows, 0), dtype=np.float32), ())]
    labels, values = (raw.tables.get(f"{what}_{kind}") for kind in ("labels", "attributes"))
    if labels is not None and len(labels.values):
        parts += [_label_columns(labels, column) for column in range(labels.values.shape[1])]
    if values is not None and attributes:
        names = tuple(f"attribute {k + 1}" for k in range(values.values.shape[1]))
        parts.append((values.numbers().astype(np.float32), names))
    for table in (labels, values):
        if table is not None and len(table.values) != rows:
            raise DataError(
                f"{table.file} has {len(table.values)} rows, expected {rows}: one per {what}"
            )
    blocks, names_of = zip(*parts, strict=True)
    return np.concatenate(blocks, axis=1), sum(names_of, ())


def _label_columns(table: NumberTable, column: int) -> Columns:
    """One column for every whole number from the smallest label to the largest, as PyG does."""
    labels = table.integers()[:, column].astype(np.int64)
    low, high = int(labels.min()), int(labels.max())
    if high - low >= MOST_LABELS:
        raise DataError(
            f"{table.file} has labels from {low} to {high}, the limit for one-hot columns is "
            f"{MOST_LABELS}: number the labels without gaps, or give them as attributes"
        )
    prefix = "label" if table.values.shape[1] == 1 else f"label {column + 1}"
    names = tuple(f"{prefix} {value}" for value in range(low, high + 1))
    return one_hot(labels - low, high - low + 1), names


def _targets(
    raw: RawFiles, graph_ids: NDArray[np.float64], notes: list[str]
) -> tuple[NDArray[np.float64], tuple[Target, ...]]:
    """Classes from 0 of `graph_labels`, or else the real values of `graph_attributes`."""
    table = raw.tables.get("graph_labels", raw.tables.get("graph_attributes"))
    if table is None:
        notes.append(f"{raw.name} has no graph labels and no graph attributes: no targets")
        return np.zeros((len(graph_ids), 0)), ()
    rows = _rows_of_graphs(table, graph_ids, notes)
    if "graph_labels" in raw.tables:
        values = table.integers(allow_missing=True)[rows]
        columns = []
        for k in range(values.shape[1]):
            present = ~np.isnan(values[:, k])
            classes, values[present, k] = np.unique(values[present, k], return_inverse=True)
            name = "class" if values.shape[1] == 1 else f"class {k + 1}"
            kind: Literal["binary", "multiclass"] = "binary" if len(classes) <= 2 else "multiclass"
            names = tuple(str(int(value)) for value in classes)
            columns.append(Target(name, kind=kind, classes=names))
    else:
        values = table.values[rows]
        columns = [Target(f"value {k + 1}") for k in range(values.shape[1])]
    if missing := int(np.isnan(values).sum()):
        notes.append(f"{missing} target(s) of {table.file} are missing (NaN)")
    return values, tuple(columns)


def _rows_of_graphs(table: NumberTable, graph_ids: NDArray[np.float64], notes: list[str]) -> Ints:
    """The row of each graph: by its id, or by its position if the ids have gaps."""
    rows, graphs = len(table.values), len(graph_ids)
    first, last = int(graph_ids[0]), int(graph_ids[-1])
    gaps = last - first + 1 - graphs
    if gaps and first >= 1 and rows == last:
        notes.append(f"{rows - graphs} graph(s) of {table.file} have no nodes and were left out")
        return graph_ids.astype(np.int64) - 1
    if rows != graphs:
        raise DataError(
            f"{table.file} has {rows} rows, expected {graphs}: one per graph of the indicator file"
        )
    if gaps:
        notes.append(f"{gaps} number(s) between graph ids {first} and {last} are not used")
    return np.arange(graphs)


def _with_folds(graphs: GraphSet, raw: RawFiles, folds: Folds) -> GraphSet:
    """The set with the folds asked for."""
    if folds == "none":
        return graphs
    if folds == "gin":
        if not graphs.columns or not graphs.columns[0].classes or np.isnan(graphs.targets).any():
            raise DataError(
                f"folds='gin' needs one class for every graph, and {graphs.name} has none: "
                "take folds='stored' or 'none'"
            )
        is_mutag = graphs.name == "MUTAG" and len(graphs) == 188
        order = MUTAG_GIN_ORDER if is_mutag else np.arange(len(graphs))
        in_gin_order = stratified_folds(graphs.targets[order, 0])
        splits = {name: order[indices] for name, indices in in_gin_order.items()}
        return replace(graphs, splits=splits)
    if not raw.folds:
        note = (
            "there are no index files 10fold_idx/test_idx-K.txt: no splits (folds='gin' makes ten)"
        )
        return replace(graphs, notes=(*graphs.notes, note))
    splits = {}
    first_seen: dict[int, str] = {}
    for number, table in raw.folds.items():
        splits[f"fold-{number}"] = table.integers()[:, 0].astype(np.int64)
        for row, index in enumerate(splits[f"fold-{number}"].tolist()):
            if not 0 <= index < len(graphs):
                raise DataError(
                    f"{table.at(row)}: got {index}, expected a graph from 0 to {len(graphs) - 1}"
                )
            if index in first_seen:
                raise DataError(
                    f"{table.at(row)}: graph {index} was tested before, in {first_seen[index]}"
                )
            first_seen[index] = table.at(row)
    notes = graphs.notes
    if untested := len(graphs) - len(first_seen):
        notes = (*notes, f"{untested} graph(s) are in no test fold, by the index files")
    return replace(graphs, splits=splits, notes=notes)
