"""Automorphism orbits of a graph, and whether two graphs are isomorphic.

An orbit is a set of vertices that relabellings carry into each other. Each vertex is individualised
and its colours refined; vertices whose refined colours differ are in different orbits. Between two
whose colours agree an automorphism is searched, by individualising further vertices of both until
all colours are single; what is found is checked, and joins all the vertices it moves. Colours are
hashes: a collision can cost a search, never a wrong orbit. A search that takes too long leaves its
two vertices apart. That is finer than the orbits, and still right for whoever sums over one vertex
of each. An isomorphism between two graphs is searched alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .conversion import Adjacency

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

MOST_REFINEMENTS = 200
"""Of one search, before two vertices are left apart; of all of them, 20 times the vertices."""
MOST_VERTICES = 500
"""Of two graphs that are compared."""


def orbits(pairs: npt.NDArray[np.generic]) -> Ints:
    """`[n]` the least vertex of each vertex's orbit.

    Args:
        pairs: `[n, n]` or `[n, n, E]`, what is known of each ordered pair: weights and features of
            edges, and on the diagonal those of vertices. Values are equal or they are not.
    """
    (kinds,) = _kinds(np.asarray(pairs)[None])
    n = len(kinds)
    start = _refined(kinds, np.zeros(n, dtype=np.uint64))
    representative = np.arange(n)
    search, tried = _Search(kinds, kinds, 20 * n), dict[bytes, list[tuple[int, Hashes]]]()
    for vertex in range(n):
        if representative[vertex] != vertex:
            continue
        colours = _individualised(kinds, start, vertex)
        alike = tried.setdefault(colours[vertex].tobytes() + np.sort(colours).tobytes(), [])
        for other, before in alike:
            image = _swap(kinds, other, vertex)
            image = search.between(before, colours) if image is None else image
            if image is not None:
                _join(representative, image)
                break
        else:
            alike.append((vertex, colours))
    return representative


def are_isomorphic(first: Adjacency, second: Adjacency) -> bool | None:
    """Whether some order of the vertices makes two matrices equal; None where it is not decided."""
    if first.shape != second.shape:
        return False
    if np.array_equal(first, second):
        return True
    if len(first) > MOST_VERTICES:
        return None
    left, right = _kinds(np.stack([first, second]))
    start = np.zeros(len(first), dtype=np.uint64)
    search = _Search(left, right, MOST_REFINEMENTS)
    image = search.between(_refined(left, start), _refined(right, start))
    return None if image is None and search.left <= 0 else image is not None


def _kinds(pairs: npt.NDArray[np.generic]) -> Hashes:
    """`[g, n, n]` a hash of each ordered pair of g graphs, seen from both its ends."""
    g, n = pairs.shape[:2]
    values = pairs.reshape(g, n, n, -1)
    both = np.concatenate([values, values.swapaxes(1, 2)], axis=3).reshape(g * n * n, -1)
    if n == 0:
        return np.zeros((g, 0, 0), dtype=np.uint64)
    numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(g, n, n)
    return mixed(2 * numbers.astype(np.uint64) + np.eye(n, dtype=np.uint64))


def _individualised(kinds: Hashes, colours: Hashes, vertex: int) -> Hashes:
    """`[n]` refined colours with a colour of its own for one vertex."""
    colours = mixed(colours)  # so that no two vertices that were singled out share a colour
    colours[vertex] += np.uint64(1)
    return _refined(kinds, colours)


def _refined(kinds: Hashes, colours: Hashes) -> Hashes:
    """`[n]` colours split by the pairs their vertices are in, until nothing splits."""
    count = len(np.unique(colours))
    while True:
        split = mixed(colours + mixed(kinds @ mixed(colours)))
        refined = len(np.unique(split))
        if refined <= count:
            return colours
        colours, count = split, refined


def mixed(values: Hashes) -> Hashes:
    """Each number as another that looks random (splitmix64): every bit of it changes every bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    random: Hashes = (values ^ (values >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)
    return random


def _swap(kinds: Hashes, a: int, b: int) -> Ints | None:
    """The exchange of two vertices, where it is an automorphism: of leaves at one vertex, say."""
    image = np.arange(len(kinds))
    image[[a, b]] = b, a
    rows = kinds[[b, a]][:, image]
    return image if np.array_equal(rows, kinds[[a, b]]) else None


def _join(representative: Ints, image: Ints) -> None:
    """Unite the orbits of each vertex and its image."""
    for vertex, moved in enumerate(image.tolist()):
        a, b = sorted((representative[vertex], representative[moved]))
        representative[representative == b] = a


class _Search:
    """Looks for isomorphisms of two graphs, for a bounded time; `left` refinements are left."""

    def __init__(self, first: Hashes, second: Hashes, left: int) -> None:
        self.first, self.second, self.left, self.stop = first, second, left, 0

    def between(self, left: Hashes, right: Hashes) -> Ints | None:
        """`[n]` the image of each vertex under one that carries colours `left` to `right`."""
        self.stop = max(0, self.left - MOST_REFINEMENTS)
        return self._extended(left, right)

    def _extended(self, left: Hashes, right: Hashes) -> Ints | None:
        order, images = np.argsort(left), np.argsort(right)
        values, sizes = np.unique(left, return_counts=True)
        if not np.array_equal(left[order], right[images]):
            return None
        if len(values) == len(left):
            image = np.empty(len(left), dtype=np.int64)
            image[order] = images
            return image if np.array_equal(self.second[np.ix_(image, image)], self.first) else None
        cell = values[sizes == sizes[sizes > 1].min()][0]
        self.left -= 1
        source = _individualised(self.first, left, int(np.flatnonzero(left == cell)[0]))
        for target in np.flatnonzero(right == cell).tolist():
            if self.left <= self.stop:
                return None
            self.left -= 1
            automorphism = self._extended(source, _individualised(self.second, right, target))
            if automorphism is not None:
                return automorphism
        return None
