"""Exact counts of small subgraphs, not necessarily induced, from powers of the adjacency matrix.

Each function takes a stack `[B, n, n]` of simple undirected graphs and returns counts `[B]`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Stack = NDArray[np.float64]
Counts = NDArray[np.float64]


def triangles(A: Stack) -> Counts:
    """Cycles of three nodes."""
    return _sum(_triangles_at(A)) / 3


def tailed_triangles(A: Stack) -> Counts:
    """Triangles with an edge to a fourth node."""
    return _sum(_triangles_at(A) * (_degrees(A) - 2))


def three_stars(A: Stack) -> Counts:
    """Nodes with three of their neighbours."""
    d = _degrees(A)
    return _sum(d * (d - 1) * (d - 2)) / 6


def four_cycles(A: Stack) -> Counts:
    """Cycles of four nodes."""
    return _sum(_four_cycles_at(A)) / 4


def chordal_cycles(A: Stack) -> Counts:
    """Cycles of four nodes with one chord: two triangles on a common edge."""
    return _sum(_sum(A * _pairs(A @ A))) / 2


def five_cycles(A: Stack) -> Counts:
    """Cycles of five nodes: closed walks of five steps, less those that stay on a triangle."""
    closed_walks = _trace(A @ A @ A @ A @ A)
    # 30 walks stay on each triangle, 10 on each triangle with a tail.
    return (closed_walks - 30 * triangles(A) - 10 * tailed_triangles(A)) / 10


def six_cycles(A: Stack) -> Counts:
    """Cycles of six nodes (Harary and Manvel 1971).

    Closed walks of six steps, less those that run over a smaller subgraph: each such subgraph is
    counted and taken off as often as a closed walk of six steps covers exactly it.
    """
    d, diamonds = _degrees(A), chordal_cycles(A)
    cube = A @ A @ A
    joined = _sum(_sum(A * (d[..., None] - 1) * (d[..., None, :] - 1))) / 2
    covered = (
        2 * _sum(d) / 2  # an edge
        + 12 * _sum(_pairs(d))  # a path of two edges
        + 6 * (joined - 3 * triangles(A))  # a path of three edges
        + 12 * three_stars(A)
        + 24 * triangles(A)
        + 48 * four_cycles(A)
        + 12 * (_sum(_four_cycles_at(A) * (d - 2)) - 2 * diamonds)  # a 4-cycle with a tail
        + 36 * diamonds
        + 24 * (_sum(_pairs(_triangles_at(A))) - 2 * diamonds)  # two triangles at one node
    )
    return (_trace(cube @ cube) - covered) / 12


SUBSTRUCTURES: dict[str, Callable[[Stack], Counts]] = {
    "triangle": triangles,
    "tailed_triangle": tailed_triangles,
    "3_star": three_stars,
    "4_cycle": four_cycles,
    "5_cycle": five_cycles,
    "6_cycle": six_cycles,
    "chordal_cycle": chordal_cycles,
}


def _degrees(A: Stack) -> Counts:
    return _sum(A)


def _triangles_at(A: Stack) -> Counts:
    """`[B, n]` triangles through each node."""
    return _sum(A * (A @ A)) / 2


def _four_cycles_at(A: Stack) -> Counts:
    """`[B, n]` 4-cycles through each node: pairs of two-step ways to the node opposite."""
    return _sum(_pairs(A @ A) * (1 - np.eye(A.shape[-1])))


def _pairs(x: Stack) -> Stack:
    return x * (x - 1) / 2


def _trace(A: Stack) -> Counts:
    return _sum(np.diagonal(A, axis1=-2, axis2=-1))


def _sum(x: Stack) -> Counts:
    """Sum over the last axis."""
    total: Counts = x.sum(-1)
    return total
