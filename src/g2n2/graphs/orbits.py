"""Automorphism orbits of a graph: vertices that some relabelling carries into each other.

Each vertex is individualised and its colours refined; vertices whose refined colours differ are in
different orbits. Between two whose colours agree an automorphism is searched, by individualising
further vertices of both until all colours are single; what is found is checked, and joins all the
vertices it moves. Colours are hashes: a collision can cost a search, never a wrong orbit. A search
that takes too long leaves its two vertices apart. That is finer than the orbits, and still right
for whoever sums over one vertex of each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

MOST_REFINEMENTS = 200
"""Of one search, before two vertices are left apart; of all of them, 20 times the vertices."""


def orbits(pairs: npt.NDArray[np.generic]) -> Ints:
    """`[n]` the least vertex of each vertex's orbit.

    Args:
        pairs: `[n, n]` or `[n, n, E]`, what is known of each ordered pair: weights and features of
            edges, and on the diagonal those of vertices. Values are equal or they are not.
    """
    kinds = _kinds(np.asarray(pairs))
    n = len(kinds)
    start = _refined(kinds, np.zeros(n, dtype=np.uint64))
    representative = np.arange(n)
    search, tried = _Search(kinds, 20 * n), dict[bytes, list[tuple[int, Hashes]]]()
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


def _kinds(pairs: npt.NDArray[np.generic]) -> Hashes:
    """`[n, n]` a hash of each ordered pair, seen from both its ends."""
    n = len(pairs)
    values = pairs.reshape(n, n, -1)
    both = np.concatenate([values, values.swapaxes(0, 1)], axis=2).reshape(n * n, -1)
    if n == 0:
        return np.zeros((0, 0), dtype=np.uint64)
    numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(n, n)
    return _mixed(2 * numbers.astype(np.uint64) + np.eye(n, dtype=np.uint64))


def _individualised(kinds: Hashes, colours: Hashes, vertex: int) -> Hashes:
    """`[n]` refined colours with a colour of its own for one vertex."""
    colours = _mixed(colours)  # so that no two vertices that were singled out share a colour
    colours[vertex] += np.uint64(1)
    return _refined(kinds, colours)


def _refined(kinds: Hashes, colours: Hashes) -> Hashes:
    """`[n]` colours split by the pairs their vertices are in, until nothing splits."""
    count = len(np.unique(colours))
    while True:
        split = _mixed(colours + _mixed(kinds @ _mixed(colours)))
        refined = len(np.unique(split))
        if refined <= count:
            return colours
        colours, count = split, refined


def _mixed(values: Hashes) -> Hashes:
    """Each number as another that looks random (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = (values ^ (values >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)
    return mixed


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
    """Looks for automorphisms, for a bounded time; `left` refinements are left."""

    def __init__(self, kinds: Hashes, left: int) -> None:
        self.kinds, self.left, self.stop = kinds, left, 0

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
            moved = self.kinds[np.ix_(image, image)]
            return image if np.array_equal(moved, self.kinds) else None
        cell = values[sizes == sizes[sizes > 1].min()][0]
        source = self._individualised(left, int(np.flatnonzero(left == cell)[0]))
        for target in np.flatnonzero(right == cell).tolist():
            if self.left <= self.stop:
                return None
            found = self._extended(source, self._individualised(right, target))
            if found is not None:
                return found
        return None

    def _individualised(self, colours: Hashes, vertex: int) -> Hashes:
        self.left -= 1
        return _individualised(self.kinds, colours, vertex)
