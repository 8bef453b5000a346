"""Small random graphs with targets a network can learn, for every level and kind."""

import numpy as np

from g2n2.data.graph_set import GraphSet, Target


def small_set(level="graph", kind="regression", graphs=60, columns=1, missing=0.0, seed=0):
    """Random graphs of 4 to 8 nodes; targets are counted on the adjacency matrices.

    Graph: number of edges. Node: degree. Edge: common neighbours of its ends. Classes cut those
    counts; a second column is the first turned round, so that columns can be told apart.
    """
    random = np.random.default_rng(seed)
    sizes, counts, edges, values = [], [], [], []
    for _ in range(graphs):
        n = int(random.integers(4, 9))
        upper = np.triu(random.random((n, n)) < random.uniform(0.3, 0.7), 1)
        matrix = (upper | upper.T).astype(int)
        matrix[0, 1] = matrix[1, 0] = 1
        ends = np.stack(np.nonzero(matrix))
        common = matrix @ matrix
        value = {
            "graph": np.array([matrix.sum() / 2]),
            "node": matrix.sum(1),
            "edge": common[ends[0], ends[1]],
        }[level]
        sizes.append(n)
        counts.append(ends.shape[1])
        edges.append(ends)
        values.append(value)
    counted = np.concatenate(values).astype(float)
    if kind == "binary":
        counted = (counted > np.median(counted)).astype(float)
    elif kind == "multiclass":
        counted = np.digitize(counted, np.quantile(counted, [0.33, 0.67])).astype(float)
    targets = np.stack(
        [counted if c % 2 == 0 else counted.max() - counted for c in range(columns)], 1
    )
    targets[random.random(targets.shape) < missing] = np.nan
    classes = {"regression": (), "binary": ("no", "yes"), "multiclass": ("few", "some", "many")}
    unit = "bonds" if kind == "regression" else ""
    total = sum(sizes)
    return GraphSet(
        name="small",
        sizes=np.array(sizes),
        edge_counts=np.array(counts),
        edges=np.concatenate(edges, axis=1),
        node_features=random.normal(size=(total, 2)).astype(np.float32),
        edge_features=np.zeros((sum(counts), 0), dtype=np.float32),
        targets=targets,
        columns=tuple(Target(f"t{c}", unit, kind, classes[kind]) for c in range(columns)),
        level=level,
        node_names=("a", "b"),
        ids=tuple(f"g{i}" for i in range(graphs)),
    )
