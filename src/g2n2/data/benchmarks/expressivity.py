"""Suites of hard graphs with features, classes, ids and folds: EXP, CSL, BREC, SR25, graph8c."""

from pathlib import Path

import numpy as np

from ...graphs import adjacency
from ...graphs.families import CSL_SKIPS
from ..graph_set import GraphSet, Target, one_hot, plain_graphs
from ..splits import stratified_folds
from ..suites import load_suite

CSL_COPIES = 15


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

    Splits `fold-1` to `fold-5` have equal class balance, as in the usual protocol (3:1:1).

    Args:
        seed: Of the relabelings; the folds are fixed.
    """
    random = np.random.default_rng(seed)
    graphs = []
    for matrix in load_suite("csl").graphs:
        for _ in range(CSL_COPIES):
            order = random.permutation(len(matrix))
            graphs.append(adjacency(matrix[np.ix_(order, order)]))
    classes = np.repeat(np.arange(float(len(CSL_SKIPS))), CSL_COPIES)
    names = tuple(f"skip {skip}" for skip in CSL_SKIPS)
    return plain_graphs(
        "csl",
        graphs,
        targets=classes[:, None],
        columns=(Target("skip", kind="multiclass", classes=names),),
        ids=tuple(f"{name} copy {copy}" for name in names for copy in range(CSL_COPIES)),
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


def load_brec(data: str | Path | None = None) -> GraphSet:
    """Load the 400 pairs of BREC v3; graphs 2i and 2i + 1 are pair i. There are no targets."""
    suite = load_suite("brec", data)
    return plain_graphs(
        "brec",
        suite.graphs,
        ids=tuple(f"{suite.categories[i // 2]} {i // 2} {'ab'[i % 2]}" for i in range(800)),
        notes=("no targets: pairs are compared, see g2n2.nn.expressivity",),
        source={"suite": "brec"},
    )


def load_graph8c() -> GraphSet:
    """Make all 11,117 connected graphs of 8 nodes. There are no targets."""
    return plain_graphs(
        "graph8c",
        load_suite("graph8c").graphs,
        notes=("no targets: what is measured is how many pairs a network tells apart",),
        source={"suite": "graph8c"},
    )
