"""Where the vertices of a small graph are drawn: distances on paper as distances in the graph."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .conversion import Adjacency

Points = list[tuple[float, float]]

_SWEEPS = 150


def stress_layout(vertices: int, edges: Iterable[tuple[int, int]]) -> Points:
    """Points within [-1, 1] squared, by stress majorisation from a circle; always the same.

    Vertices of other components are kept a little further away than any in one's own.
    """
    graph = nx.empty_graph(vertices)
    graph.add_edges_from(edge for edge in edges if edge[0] != edge[1])
    start = _circle(graph)
    if vertices < 3:
        return _framed(start)
    distances = np.full((vertices, vertices), np.nan)
    for v, lengths in nx.all_pairs_shortest_path_length(graph):
        for u, length in lengths.items():
            distances[v, u] = length
    distances[np.isnan(distances)] = np.nanmax(distances) + 1.0
    np.fill_diagonal(distances, 1.0)
    return _framed(_majorised(distances, start))


def graph_layout(matrix: Adjacency) -> tuple[tuple[float, float], ...]:
    """Points in a square of side 1, the components side by side."""
    graph = nx.from_numpy_array((matrix + matrix.T) != 0)
    parts = sorted(map(sorted, nx.connected_components(graph)), key=lambda part: -len(part))
    columns = max(1, int(np.ceil(np.sqrt(len(parts)))))
    rows = int(np.ceil(len(parts) / columns))
    side = max(columns, rows)
    points = np.zeros((len(matrix), 2))
    for number, part in enumerate(parts):
        place = {v: i for i, v in enumerate(part)}
        edges = [(place[u], place[v]) for u, v in graph.subgraph(part).edges]
        corner = np.array([(side - columns) / 2, (side - rows) / 2]) + divmod(number, columns)[::-1]
        points[part] = (corner + 0.5 + 0.42 * np.array(stress_layout(len(part), edges))) / side
    return tuple((round(float(x), 4), round(float(y), 4)) for x, y in points)


def _circle(graph: nx.Graph) -> NDArray[np.float64]:
    """A circle in depth-first order, so that neighbours start close to each other."""
    order = list(nx.dfs_preorder_nodes(graph, 0)) if len(graph) else []
    order += [v for v in graph if v not in set(order)]
    angles = np.empty(len(order))
    angles[order] = 2 * np.pi * np.arange(len(order)) / max(1, len(order))
    return np.stack([-np.cos(angles), -np.sin(angles)], axis=1) * len(order) / 6


def _majorised(distances: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """SMACOF with weights 1/d²."""
    weights = distances**-2.0
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    points = start
    for _ in range(_SWEEPS):
        between = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        np.fill_diagonal(between, 1.0)
        pull = -weights * distances / np.maximum(between, 1e-9)
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        points = inverse @ pull @ points
    return points


def _framed(points: NDArray[np.float64]) -> Points:
    if not len(points):
        return []
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    size = float(np.abs(points - middle).max()) or 1.0
    return [(float(x), float(y)) for x, y in (points - middle) / size]
