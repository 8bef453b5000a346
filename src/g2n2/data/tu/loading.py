"""TU datasets: graph classification sets in the raw layout of the TUDataset collection.

Two slips in the paper's settings table (appendix, TUD): it gives PTC 22 node features, the data
make 21 columns (labels 1 to 21, of which 19 occur); and MUTAG 6 edge features, which are the 4 edge
labels plus the matrices I and A. For IMDB it gives one node feature: that is `degree="value"`.

There are two sets called PTC. `PTC` is the one of the GIN paper (25.6 nodes on average), `PTC_MR`
the one of TUDataset and most PyG papers (14.3 nodes, hydrogens removed).
"""

import hashlib
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from ...atomic_files import sole_builder
from ...errors import DataError
from ..assembly import frozen
from ..files import (
    cache_folder,
    check_sha256,
    download,
    find_file,
    find_folder,
    missing_file,
    read_bytes,
    store_in_cache,
)
from ..graph_set import GraphSet
from .folds import Folds, with_folds
from .graphs import Degree, graph_set_of
from .text import read_raw_files

TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class TUCounts:
    """What a set must hold, whoever packed it: graphs, nodes and undirected edges in all."""

    graphs: int
    nodes: int
    edges: int


TU_SETS = {
    "MUTAG": TUCounts(188, 3_371, 3_721),
    "PTC": TUCounts(344, 8_792, 8_931),
    "PTC_MR": TUCounts(344, 4_915, 5_054),
    "PROTEINS": TUCounts(1_113, 43_471, 81_044),
    "NCI1": TUCounts(4_110, 122_747, 132_753),
    "IMDB-BINARY": TUCounts(1_000, 19_773, 96_531),
    "IMDB-MULTI": TUCounts(1_500, 19_502, 98_903),
}
_NOT_OFFICIAL = {
    "PTC": "It is not in the TUDataset collection; its text form is data/PTC/PTC.txt of "
    "https://github.com/muhanzhang/pytorch_DGCNN. PTC_MR can be downloaded."
}


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
        folds: `stored` makes splits `fold-1` to `fold-10` of the index files that come with the
            set, where they do; `gin` makes those of the GIN code; `none` makes none.
        attributes: Append node and edge attributes to the features.
        degree: Feature of a set without node labels or attributes: one-hot over the degrees that
            occur, as in GIN, the degree itself, or none.
        directed: Keep edges listed in one direction as they are.

    Raises:
        DataError: If it cannot be had, or its files do not fit together.
    """
    for option, value, choices in (("folds", folds, Folds), ("degree", degree, Degree)):
        if value not in get_args(choices):
            expected = ", ".join(get_args(choices))
            raise DataError(f"{option} of a TU dataset: got {value!r}, expected one of {expected}")
    name = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or (name not in TU_SETS and Path(name).exists())
    options = {"attributes": attributes, "degree": degree, "directed": directed}
    if is_path:
        return _read(Path(name_or_path), None, folds, options)
    if not _NAME.fullmatch(name):
        raise DataError(f"there is no file or folder {name!r}, and no TU dataset has such a name")
    path = _find(name, data)
    if path is not None:
        return _read(path, name, folds, options)
    return _download(name, data, folds, options)


def _find(name: str, data: str | Path | None) -> Path | None:
    """Find the zip or the folder; a folder counts only if it holds a dataset."""
    archive = find_file(f"{name}.zip", data, "tu")
    if archive is not None:
        return archive
    folder = find_folder(name, data, "tu")
    places = ("", "raw") if folder is not None else ()
    return folder if any(list(Path(folder or "", p).glob("*_A.txt")) for p in places) else None


def _read(path: Path, name: str | None, folds: Folds, options: dict[str, Any]) -> GraphSet:
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}")
    sha256 = None
    content: Path | bytes = path
    if path.is_file():
        content = read_bytes(path)
        note = path.with_name(f"{path.name}.sha256")
        if note.is_file():
            check_sha256(content, note.read_text().partition(" ")[0], str(path))
        sha256 = hashlib.sha256(content).hexdigest()
    graphs = _built(content, str(path), name, folds, options)
    return replace(graphs, source=frozen({"path": str(path), "sha256": sha256, **graphs.source}))


def _download(
    name: str, data: str | Path | None, folds: Folds, options: dict[str, Any]
) -> GraphSet:
    """Fetch the official zip, unless another process has done so meanwhile."""
    if name in _NOT_OFFICIAL:
        raise missing_file(name, f"{name}.zip", data, "tu", _NOT_OFFICIAL[name])
    with ExitStack() as alone:
        with suppress(DataError):  # a cache that cannot be written is said when there is a file
            alone.enter_context(sole_builder(cache_folder() / "tu" / f"{name}.zip"))
        path = _find(name, data)
        if path is None:
            return _fetch(name, data, folds, options)
    return _read(path, name, folds, options)


def _fetch(name: str, data: str | Path | None, folds: Folds, options: dict[str, Any]) -> GraphSet:
    """The official zip; it enters the cache, with its sum, only after it was read whole."""
    url = TU_URL.format(name=name)
    try:
        content = download(url)
    except OSError as error:
        close = get_close_matches(name.upper(), TU_SETS, n=2)
        guess = f" Did you mean {' or '.join(close)}?" if close and name not in close else ""
        reason = f"It could not be downloaded from {url} ({error}).{guess}"
        raise missing_file(name, f"{name}.zip", data, "tu", reason) from error
    graphs = _built(content, url, name, folds, options)
    sha256 = hashlib.sha256(content).hexdigest()
    store_in_cache(f"{name}.zip.sha256", f"{sha256}  {name}.zip\n".encode(), "tu")
    path = store_in_cache(f"{name}.zip", content, "tu")
    source = {"path": str(path), "url": url, "sha256": sha256, **graphs.source}
    return replace(graphs, source=frozen(source))


def _built(
    content: Path | bytes, label: str, name: str | None, folds: Folds, options: dict[str, Any]
) -> GraphSet:
    raw = read_raw_files(content, label, name)
    graphs = graph_set_of(raw, **options)
    if name in TU_SETS:
        expected = TU_SETS[name]
        got = TUCounts(len(graphs), int(graphs.sizes.sum()), int(graphs.edge_counts.sum()) // 2)
        if got != expected:
            raise DataError(
                f"{label} is not the published {name}: got {got.graphs} graphs, {got.nodes} nodes "
                f"and {got.edges} edges, expected {expected.graphs}, {expected.nodes} and "
                f"{expected.edges}; get it again, or give its path to read it as your own"
            )
    return replace(with_folds(graphs, raw, folds), source=frozen({**options, "folds": folds}))
