"""Suites of hard graphs by name; SR25, EXP and BREC are read from files, never from a pickle."""

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import adjacency, graph6_lines, parse_graph6
from ..power.suites import GENERATED, SameSizePairs, Suite, consecutive_pairs, graph6_suite
from .archives import read_npz
from .files import check_sha256, download, find_checked, find_file, read_checked, store_in_cache

_FOLDER = "expressivity"

SR25_FILE = "sr251256.g6"
SR25_SHA256 = "f55f86eb48cd61c3315c62341cc3a8c59289c58504edb3ab859d7ef2068b9aa4"
SR25_URL = "https://users.cecs.anu.edu.au/~bdm/data/sr251256.g6"

EXP_FILE = "exp_graphsat.npz"
EXP_SHA256 = "5dff28451dce0aff368ce27cbb6015bf1efe26abd60db621d4cade481e435f50"
EXP_PICKLE = "GRAPHSAT.pkl"

BREC_PAIRS_FILE = "brec_v3_pairs.g6.gz"
BREC_OFFICIAL_FILE = "brec_v3.npy"
# Of the 800 base graphs, one graph6 line each: the same for either file, whatever relabelings or
# compression it was written with.
BREC_GRAPHS_SHA256 = "a85c524d43fdf14182bad02b47d56fa1bf83b145b26908c71d4b248ac9efc242"
BREC_URL = (
    "https://raw.githubusercontent.com/GraphPKU/BREC/"
    "d09e8c349a8bbc0882d2932f7b37b2726f576ce9/BREC_data_all.zip"
)
BREC_ARCHIVE_SHA256 = "3a2c8e7ba068f774b1115422d1bc04749432dde9f19631e6625cba142659530f"
BREC_PAIRS = 400
BREC_COPIES = 64  # entries of brec_v3.npy per pair: 32 relabelings of either graph, interleaved
BREC_CATEGORIES = (
    ("Basic", 60),
    ("Regular", 100),
    ("Extension", 100),
    ("CFI", 100),
    ("4-Vertex_Condition", 20),
    ("Distance_Regular", 20),
)


def _read_sr25(data: str | Path | None) -> Suite:
    """The 15 strongly regular graphs SR(25, 12, 5, 6)."""
    path = find_file(SR25_FILE, data, _FOLDER)
    if path is None:
        content = download(SR25_URL, "sr25", SR25_FILE, data, _FOLDER)
        check_sha256(content, SR25_SHA256, SR25_URL)
        path = store_in_cache(SR25_FILE, content, _FOLDER)
    lines = read_checked(path, SR25_SHA256).decode("ascii").split()
    graphs = tuple(parse_graph6(line, f"{path}:{n}") for n, line in enumerate(lines, start=1))
    return Suite("sr25", graphs, SameSizePairs.of(graphs))


def _read_exp(data: str | Path | None) -> Suite:
    """The 1200 graphs of EXP with their node labels; graphs 2i and 2i + 1 are a pair."""
    official = find_file(EXP_PICKLE, data, _FOLDER)
    subject = f"{official} was found, but it" if official else f"The official {EXP_PICKLE}"
    reason = f"{subject} is a pickle, which can run any code when opened, and is refused."
    path, content = find_checked("exp", EXP_FILE, EXP_SHA256, data, _FOLDER, reason)
    arrays = read_npz(content, name=str(path))
    sizes, edge_counts = (
        arrays[key].astype(np.int64) for key in ("num_nodes", "num_directed_edges")
    )
    edges = np.split(arrays["edge_index"], np.cumsum(edge_counts)[:-1], axis=1)
    graphs = []
    for size, (u, v) in zip(sizes, edges, strict=True):
        matrix = np.zeros((size, size))
        matrix[u, v] = 1
        graphs.append(adjacency(matrix))
    labels = tuple(np.split(arrays["x"].astype(np.int64), np.cumsum(sizes)[:-1]))
    return Suite("exp", tuple(graphs), consecutive_pairs(len(graphs)), node_labels=labels)


def _read_brec(data: str | Path | None) -> Suite:
    """The 800 base graphs of BREC v3; graphs 2i and 2i + 1 are pair i.

    They come from `brec_v3_pairs.g6.gz` or else from the official `brec_v3.npy`, found or
    downloaded; of the download only the base graphs are cached, not the 51,200 relabelings.
    """
    pairs_file, official = (
        find_file(name, data, _FOLDER) for name in (BREC_PAIRS_FILE, BREC_OFFICIAL_FILE)
    )
    source: Path | str = pairs_file or official or BREC_URL
    if pairs_file:
        lines = [line for _, line in graph6_lines(pairs_file)]
    elif official:
        lines = list(_brec_base_graphs(_load_npy(official), str(official)))
    else:
        names = f"{BREC_PAIRS_FILE} or {BREC_OFFICIAL_FILE}"
        archive = download(BREC_URL, "brec", names, data, _FOLDER)
        check_sha256(archive, BREC_ARCHIVE_SHA256, BREC_URL)
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            array = np.load(io.BytesIO(members.read(BREC_OFFICIAL_FILE)), allow_pickle=False)
        lines = list(_brec_base_graphs(array, BREC_URL))
    text = "".join(f"{line}\n" for line in lines).encode()
    check_sha256(text, BREC_GRAPHS_SHA256, f"the list of base graphs in {source}")
    if source == BREC_URL:
        source = store_in_cache(BREC_PAIRS_FILE, gzip.compress(text, mtime=0), _FOLDER)
    graphs = tuple(parse_graph6(line, f"{source}, graph {n}") for n, line in enumerate(lines))
    categories = tuple(name for name, count in BREC_CATEGORIES for _ in range(count))
    return Suite("brec", graphs, consecutive_pairs(len(graphs)), categories)


def _load_npy(path: Path) -> NDArray[Any]:
    """Map an array file without reading it whole, and without pickle."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path} cannot be read as an array of graph6 strings without pickle ({error}): it is "
            "truncated or was saved with objects; get the official file again"
        ) from error
    return array


def _brec_base_graphs(entries: NDArray[Any], source: str) -> Iterator[str]:
    """Yield the base graphs of `brec_v3.npy`: the first two of the 64 entries of each pair."""
    tests = BREC_PAIRS * BREC_COPIES
    if entries.dtype.kind not in "SU" or entries.shape not in ((tests,), (2 * tests,)):
        raise DataError(
            f"{source} holds an array {list(entries.shape)} of {entries.dtype}, expected "
            f"{2 * tests} graph6 strings, {BREC_COPIES} per pair"
        )
    for entry in entries[:tests].reshape(BREC_PAIRS, BREC_COPIES)[:, :2].ravel():
        yield entry.decode("latin-1") if isinstance(entry, bytes) else str(entry)


_READ = {"sr25": _read_sr25, "exp": _read_exp, "brec": _read_brec}
SUITE_NAMES = ("atlas", "graph8c", "sr25", "csl", "exp", "brec", "cfi")


def load_suite(name: str, data: str | Path | None = None) -> Suite:
    """Generate or read the suite of that name.

    Args:
        name: One of `SUITE_NAMES`.
        data: Folder in which files are sought before `$G2N2_DATA`, the user cache and the official
            source; generated suites need none.
    """
    if name in GENERATED:
        return GENERATED[name]()
    if name in _READ:
        return _READ[name](data)
    close = get_close_matches(name, SUITE_NAMES, n=2, cutoff=0.4)
    guess = f" (did you mean {' or '.join(close)}?)" if close else ""
    raise DataError(
        f"no suite {name!r}{guess}: expected one of {', '.join(SUITE_NAMES)}, "
        "or a path to a graph6 file"
    )


def find_suite(
    name: str | Path | Suite, pairs: bool = False, data: str | Path | None = None
) -> Suite:
    """A suite, the suite of that name, or that of a graph6 file; `pairs` as for `graph6_suite`."""
    if isinstance(name, Suite):
        return name
    if str(name) not in SUITE_NAMES and os.path.exists(name):
        return graph6_suite(name, pairs)
    return load_suite(str(name), data)
