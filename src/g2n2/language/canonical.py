"""A canonical vertex order for small labelled multigraphs.

Connected components are ordered apart, then sorted. Within one: colour refinement, then
individualisation; where a colour class has several vertices, each is tried in turn and the least
encoding kept. Two short cuts keep it polynomial on what terms produce: on a tree colour classes are
orbits, so one choice serves; elsewhere a sibling whose first leaf encodes the same as the best one
is its image under an automorphism, and so is all of its orbit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Edges = Sequence[tuple[str, bool, tuple[int, ...]]]
Encoding = tuple[object, ...]


def canonical_order(vertices: int, edges: Edges, boundary: tuple[int, ...]) -> tuple[int, ...]:
    """Where each vertex goes in the canonical numbering."""
    component = _components(vertices, edges)
    members: dict[int, list[int]] = {}
    for v, root in enumerate(component):
        members.setdefault(root, []).append(v)
    number = {v: i for group in members.values() for i, v in enumerate(group)}
    edges_of: dict[int, list[tuple[str, bool, tuple[int, ...]]]] = {root: [] for root in members}
    for label, symmetric, ends in edges:
        if ends:
            moved = tuple(number[v] for v in ends)
            edges_of[component[ends[0]]].append((label, symmetric, moved))
    ordered = []
    for root, group in members.items():
        marks = [(place, number[v]) for place, v in enumerate(boundary) if component[v] == root]
        encoding, order = _CanonicalSearch(len(group), edges_of[root], marks).result()
        ordered.append(((len(group), encoding), group, order))
    places = [0] * vertices
    offset = 0
    for _, group, order in sorted(ordered, key=lambda entry: entry[0]):
        for v, place in zip(group, order, strict=True):
            places[v] = offset + place
        offset += len(group)
    return tuple(places)


class _CanonicalSearch:
    """The canonical order of one connected component; `marks` are (place, vertex) pairs."""

    def __init__(self, vertices: int, edges: Edges, marks: list[tuple[int, int]]) -> None:
        self.vertices, self.edges, self.marks = vertices, edges, marks
        self.incident: list[list[tuple[str, int, tuple[int, ...]]]] = [[] for _ in range(vertices)]
        for label, symmetric, ends in edges:
            for position, v in enumerate(ends):
                others = ends[:position] + ends[position + 1 :]
                self.incident[v].append((label, 0 if symmetric else position, others))
        pairs = {frozenset(ends) for _, _, ends in edges if len(set(ends)) == 2}
        wide = any(len(set(ends)) > 2 for _, _, ends in edges)
        self.tree = len(pairs) == vertices - 1 and not wide
        self.automorphisms: list[list[int]] = []

    def result(self) -> tuple[Encoding, list[int]]:
        marked = [[place for place, u in self.marks if u == v] for v in range(self.vertices)]
        return self.best(self.refine(_ranked(marked)))

    def refine(self, colours: list[int]) -> list[int]:
        """Split colour classes by what their vertices are incident to, until nothing changes."""
        count = len(set(colours))
        while count < self.vertices:
            signatures = [
                (
                    colours[v],
                    sorted((lab, pos, [colours[o] for o in oth]) for lab, pos, oth in incident),
                )
                for v, incident in enumerate(self.incident)
            ]
            colours = _ranked(signatures)
            split = len(set(colours))
            if split == count:
                break
            count = split
        return colours

    def best(self, colours: list[int]) -> tuple[Encoding, list[int]]:
        """The least encoding below this colouring, and its order."""
        cell = self._cell(colours)
        if cell is None:
            return self.encode(colours), colours
        seen = len(self.automorphisms)
        best = self.best(self.individualise(colours, cell[0]))
        if self.tree:
            return best
        orbits = list(range(self.vertices))
        tried = [cell[0]]
        for v in cell[1:]:
            # Whatever was found below this colouring fixes all that was individualised above it.
            for image in self.automorphisms[seen:]:
                _unite(orbits, enumerate(image))
            seen = len(self.automorphisms)
            if any(_root(orbits, v) == _root(orbits, t) or self._twins(v, t) for t in tried):
                continue
            tried.append(v)
            child = self.individualise(colours, v)
            leaf = self.first_leaf(child)
            if self.encode(leaf) == best[0]:
                at = {colour: u for u, colour in enumerate(leaf)}
                self.automorphisms.append([at[colour] for colour in best[1]])
            else:
                best = min(best, self.best(child))
        return best

    def first_leaf(self, colours: list[int]) -> list[int]:
        while (cell := self._cell(colours)) is not None:
            colours = self.individualise(colours, cell[0])
        return colours

    def individualise(self, colours: list[int], vertex: int) -> list[int]:
        return self.refine(_ranked([(c, v != vertex) for v, c in enumerate(colours)]))

    def encode(self, colours: list[int]) -> Encoding:
        moved = []
        for label, symmetric, ends in self.edges:
            places = [colours[v] for v in ends]
            moved.append((label, symmetric, tuple(sorted(places) if symmetric else places)))
        return (tuple((place, colours[v]) for place, v in self.marks), tuple(sorted(moved)))

    def _cell(self, colours: list[int]) -> list[int] | None:
        """The first colour class with more than one vertex."""
        members: dict[int, list[int]] = {}
        for v, colour in enumerate(colours):
            members.setdefault(colour, []).append(v)
        return next((members[c] for c in sorted(members) if len(members[c]) > 1), None)

    def _twins(self, a: int, b: int) -> bool:
        """Whether swapping two vertices of one colour is an automorphism."""
        swap = {a: b, b: a}

        def seen(v: int, through: dict[int, int]) -> list[tuple[str, int, list[int]]]:
            return sorted(
                (lab, pos, [through.get(o, o) for o in oth]) for lab, pos, oth in self.incident[v]
            )

        return seen(a, swap) == seen(b, {})


def _components(vertices: int, edges: Edges) -> list[int]:
    """A representative of each vertex's connected component."""
    roots = list(range(vertices))
    for _, _, ends in edges:
        _unite(roots, ((ends[0], v) for v in ends[1:]))
    return [_root(roots, v) for v in range(vertices)]


def _root(roots: list[int], v: int) -> int:
    while roots[v] != v:
        roots[v] = roots[roots[v]]
        v = roots[v]
    return v


def _unite(roots: list[int], pairs: Iterable[tuple[int, int]]) -> None:
    for a, b in pairs:
        roots[_root(roots, a)] = _root(roots, b)


def _ranked(keys: Sequence[object]) -> list[int]:
    """Ranks of the keys, counted so that a class of size k takes k places."""
    ordered = sorted(range(len(keys)), key=lambda i: keys[i])  # type: ignore[arg-type, return-value]
    ranks = [0] * len(keys)
    for place, i in enumerate(ordered):
        same = place and keys[i] == keys[ordered[place - 1]]
        ranks[i] = ranks[ordered[place - 1]] if same else place
    return ranks
