"""Suites of hard graphs by name, and EXP, CSL and SR25 as sets to train on.

SR25, EXP and BREC are read from files, never from a pickle.
"""

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, guess
from ..graphs import adjacency, graph6_lines, parse_graph6, read_graph6_file
from ..graphs.families import CSL_SKIPS
from ..power.suites import GENERATED, SameSizePairs, Suite, consecutive_pairs, graph6_suite
from .archives import read_npz
from .files import DataFile, check_sha256, store_in_cache
from .graph_set import GraphSet, Target, one_hot, plain_graphs, split_matrices
from .splits import stratified_folds

_FOLDER = "expressivity"
SR25 = DataFile(
    *("sr25", "sr251256.g6", _FOLDER),
    "f55f86eb48cd61c3315c62341cc3a8c59289c58504edb3ab859d7ef2068b9aa4",
    "https://users.cecs.anu.edu.au/~bdm/data/sr251256.g6",
)
EXP = DataFile(
    *("exp", "exp_graphsat.npz", _FOLDER),
    "5dff28451dce0aff368ce27cbb6015bf1efe26abd60db621d4cade481e435f50",
    hint="The official GRAPHSAT.pkl is a pickle, which can run any code when opened, and is "
    "refused.",
)
BREC_PAIRS_FILE = DataFile("brec", "brec_v3_pairs.g6.gz", _FOLDER)
BREC_OFFICIAL_FILE = DataFile("brec", "brec_v3.npy", _FOLDER)
BREC_ARCHIVE = DataFile(
    *("brec", f"{BREC_PAIRS_FILE.name} or {BREC_OFFICIAL_FILE.name}", _FOLDER),
    "3a2c8e7ba068f774b1115422d1bc04749432dde9f19631e6625cba142659530f",
    "https://raw.githubusercontent.com/GraphPKU/BREC/"
    "d09e8c349a8bbc0882d2932f7b37b2726f576ce9/BREC_data_all.zip",
)
# Of the 800 base graphs, one graph6 line each: the same for either file, whatever relabelings or
# compression it was written with.
BREC_GRAPHS_SHA256 = "a85c524d43fdf14182bad02b47d56fa1bf83b145b26908c71d4b248ac9efc242"
BREC_PAIRS = 400
_CSL_COPIES = 15
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
    graphs = read_graph6_file(SR25.read(data)[0])
    return Suite("sr25", graphs, SameSizePairs.of(graphs))


def _read_exp(data: str | Path | None) -> Suite:
    """The 1200 graphs of EXP with their node labels; graphs 2i and 2i + 1 are a pair."""
    path, content = EXP.read(data)
    arrays = read_npz(content, name=str(path))
    ends = np.cumsum(arrays["num_nodes"].astype(np.int64))[:-1]
    labels = tuple(np.split(arrays["x"].astype(np.int64), ends))
    matrices = (arrays[key] for key in ("num_nodes", "num_directed_edges", "edge_index"))
    graphs = tuple(map(adjacency, split_matrices(*matrices)))
    return Suite("exp", graphs, consecutive_pairs(len(graphs)), node_labels=labels)


def _read_brec(data: str | Path | None) -> Suite:
    """The 800 base graphs of BREC v3; graphs 2i and 2i + 1 are pair i.

    They come from `brec_v3_pairs.g6.gz` or else from the official `brec_v3.npy`, found or
    downloaded; of the download only the base graphs are cached, not the 51,200 relabelings.
    """
    source: Path | str = BREC_ARCHIVE.url
    if path := BREC_PAIRS_FILE.find(data):
        source, lines = path, [line for _, line in graph6_lines(path)]
    elif path := BREC_OFFICIAL_FILE.find(data):
        source, lines = path, _brec_base_graphs(path, str(path))
    else:
        archive = BREC_ARCHIVE.download(data)
        check_sha256(archive, BREC_ARCHIVE.sha256, BREC_ARCHIVE.url)
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            array = io.BytesIO(members.read(BREC_OFFICIAL_FILE.name))
        lines = _brec_base_graphs(array, BREC_ARCHIVE.url)
    text = "".join(f"{line}\n" for line in lines).encode()
    check_sha256(text, BREC_GRAPHS_SHA256, f"the list of base graphs in {source}")
    if source == BREC_ARCHIVE.url:
        store_in_cache(BREC_PAIRS_FILE.name, gzip.compress(text, mtime=0), _FOLDER)
    graphs = tuple(parse_graph6(line, f"{source}, graph {n}") for n, line in enumerate(lines))
    categories = tuple(name for name, count in BREC_CATEGORIES for _ in range(count))
    return Suite("brec", graphs, consecutive_pairs(len(graphs)), categories)


def _brec_base_graphs(file: Path | io.BytesIO, label: str) -> list[str]:
    """The base graphs of `brec_v3.npy`: the first two of the 64 entries of each pair."""
    tests = BREC_PAIRS * BREC_COPIES
    try:  # a file is mapped, not read whole
        mode: Any = "r" if isinstance(file, Path) else None
        entries = np.load(file, mmap_mode=mode, allow_pickle=False)
        if entries.dtype.kind not in "SU" or entries.shape not in ((tests,), (2 * tests,)):
            raise ValueError(f"an array {list(entries.shape)} of {entries.dtype}")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{label} cannot be read as {2 * tests} graph6 strings without pickle ({error}): it is "
            "truncated or was saved with objects; get the official file again"
        ) from error
    chosen = entries[:tests].reshape(BREC_PAIRS, BREC_COPIES)[:, :2].ravel()
    return [e.decode("latin-1") if isinstance(e, bytes) else str(e) for e in chosen]


_READ = {"sr25": _read_sr25, "exp": _read_exp, "brec": _read_brec}
SUITE_NAMES = ("atlas", "graph8c", "sr25", "csl", "exp", "brec", "cfi")


def load_suite(name: str, data: str | Path | None = None) -> Suite:
    """Generate or read the suite of that name; its file is sought in `data` first."""
    if name in GENERATED:
        return GENERATED[name]()
    if name in _READ:
        return _READ[name](data)
    raise DataError(
        f"no suite {name!r}: expected one of {', '.join(SUITE_NAMES)}, or a path to a graph6 file"
        f"{guess(name, SUITE_NAMES)}"
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


def load_exp(data: str | Path | None = None) -> GraphSet:
    """Load EXP (Abboud et al. 2021): 600 pairs, one of each satisfiable, equal under 1-WL.

    Node labels (literal or clause) are one-hot features; the first graph of a pair is class 1.
    """
    suite = load_suite("exp", data)
    assert suite.node_labels is not None
    classes = np.tile([1.0, 0.0], len(suite.graphs) // 2)[:, None]
    return plain_graphs(
        "exp",
        suite.graphs,
        node_features=one_hot(np.concatenate(suite.node_labels), 2),
        node_names=("label 0", "label 1"),
        targets=classes,
        columns=(Target("satisfiable", kind="binary", classes=("0", "1")),),
        ids=tuple(f"pair {i // 2} graph {i % 2}" for i in range(len(suite.graphs))),
        source={"suite": "exp"},
    )


def load_csl(*, seed: int = 0) -> GraphSet:
    """Make CSL (Murphy et al. 2019): ten circular skip links, 15 relabelled copies of each.

    Splits `fold-1` to `fold-5` have equal class balance, as in the usual protocol (3:1:1), and do
    not depend on the seed of the relabelings.
    """
    random = np.random.default_rng(seed)
    graphs = []
    for matrix in load_suite("csl").graphs:
        for _ in range(_CSL_COPIES):
            order = random.permutation(len(matrix))
            graphs.append(adjacency(matrix[np.ix_(order, order)]))
    classes = np.repeat(np.arange(float(len(CSL_SKIPS))), _CSL_COPIES)
    names = tuple(f"skip {skip}" for skip in CSL_SKIPS)
    return plain_graphs(
        "csl",
        graphs,
        targets=classes[:, None],
        columns=(Target("skip", kind="multiclass", classes=names),),
        ids=tuple(f"{name} copy {copy}" for name in names for copy in range(_CSL_COPIES)),
        splits=stratified_folds(classes, folds=5),
        source={"generator": "load_csl", "seed": seed},
    )


def load_sr25(data: str | Path | None = None) -> GraphSet:
    """Load the 15 strongly regular graphs SR(25, 12, 5, 6), each a class of its own."""
    graphs = load_suite("sr25", data).graphs
    names = tuple(str(i) for i in range(len(graphs)))
    return plain_graphs(
        "sr25",
        graphs,
        targets=np.arange(float(len(graphs)))[:, None],
        columns=(Target("graph", kind="multiclass", classes=names),),
        ids=names,
        notes=("one graph per class: what is measured is whether training can tell them apart",),
        source={"suite": "sr25"},
    )
