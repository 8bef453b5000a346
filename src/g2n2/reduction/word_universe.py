"""All ways to build a target pattern from parts: the sub-patterns, and which operation joins which.

A word equal to the target is built from sub-words, and every sub-word's pattern sits inside the
target: it uses no label more often, and a vertex it has closed already has all its edges. So the
candidates are finite and few, and one table of them serves every set of rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from ..language.operations import OPERATIONS, Operation
from ..language.patterns import (
    EMPTY,
    Assumption,
    Pattern,
    canonical,
    collapsed,
    glue,
    leaf_pattern,
)
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, Number, Term, leaves, operators

Signature = tuple[tuple[str, int], ...]
Assignment = tuple[int, ...]

_DIGIT = 8
"""Bits per label when label counts are packed into one integer; the top bit catches a borrow."""


def universe_for(
    target: Pattern, templates: Iterable[Term], seeds: Iterable[Leaf], assume: Assumption
) -> Universe:
    """The universe of a target for words made of these templates and leaves."""
    terms = list(templates)
    used = frozenset[str]().union(*map(operators, terms))
    operations = tuple(op for op in OPERATIONS.values() if op.name in used and not op.shape_of)
    constants = frozenset(leaf for t in terms for leaf in leaves(t)) | frozenset(seeds)
    return _universe(canonical(target), operations, constants, assume)


@lru_cache(maxsize=2000)
def _universe(
    target: Pattern,
    operations: tuple[Operation, ...],
    constants: frozenset[Leaf],
    assume: Assumption,
) -> Universe:
    return Universe(target, operations, constants, assume)


class Universe:
    """The sub-patterns of a target reachable by given operations from given leaves."""

    def __init__(
        self,
        target: Pattern,
        operations: tuple[Operation, ...],
        constants: frozenset[Leaf],
        assume: Assumption,
    ) -> None:
        self.assume = assume
        limits = Counter(edge.label for edge in target.edges)  # how often each may be used
        if assume == "simple" and limits["A"]:  # where A⊙A = A, twice as often
            limits["A"] *= 2
        self._digit = {label: 1 << (_DIGIT * i) for i, label in enumerate(sorted(limits))}
        self._carries = sum(digit << (_DIGIT - 1) for digit in self._digit.values())
        self._limit = self._carries + sum(n * self._digit[label] for label, n in limits.items())
        internal, everywhere = _signatures(target, assume)
        self._internal = Counter(internal)
        self._allowed = [Counter(signature) for signature in everywhere]
        self._placeable: dict[Signature, bool] = {}
        self.items: list[tuple[Sort, Pattern]] = []
        self.index: dict[tuple[Sort, Pattern], int] = {}
        self._uses: list[int] = []
        self._of_sort: dict[Sort, list[int]] = {}
        self.unary: dict[str, dict[int, int]] = {}
        self.right_of: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self.many: dict[str, list[tuple[Assignment, int]]] = {}
        self._ops = [op for op in operations if op.multilinear]
        for leaf in sorted(constants, key=lambda leaf: leaf.name):
            self._add(leaf.sort, leaf_pattern(leaf.name, leaf.sort, assume))
        for op in self._ops:
            if op.arity == 0:
                self._apply(op, ())
        self._close()

    def find(self, sort: Sort, pattern: Pattern) -> int | None:
        """The index of a pattern, if it can be part of the target at all."""
        if self.assume == "simple":
            pattern = collapsed(pattern)
        return self.index.get((sort, canonical(pattern)))

    def instances(self, template: Term) -> Iterator[tuple[Assignment, int]]:
        """Every way to fill a template's holes with parts: indices of the parts and the result."""
        match template:
            case Hole(sort=sort):
                for i, (item_sort, _) in enumerate(self.items):
                    if item_sort == sort:
                        yield (i,), i
            case Leaf(name=name, sort=sort):
                item = self.find(sort, leaf_pattern(name, sort, self.assume))
                if item is not None:
                    yield (), item
            case Number(sort=sort):
                item = self.find(sort, EMPTY)
                if item is not None:
                    yield (), item
            case Apply(op=op, args=(a,)):
                table = self.unary.get(op, {})
                for holes, i in self.instances(a):
                    if i in table:
                        yield holes, table[i]
            case Apply(op=op, args=(a, b)):
                rights: dict[int, list[Assignment]] = {}
                for holes, j in self.instances(b):
                    rights.setdefault(j, []).append(holes)
                partners = self.right_of.get(op, {})
                for left, i in self.instances(a):
                    for j, k in partners.get(i, ()):
                        for right in rights.get(j, ()):
                            yield left + right, k
            case Apply(op=op, args=args):
                ways: list[dict[int, list[Assignment]]] = []
                for arg in args:
                    ways.append({})
                    for holes, i in self.instances(arg):
                        ways[-1].setdefault(i, []).append(holes)
                for items, k in self.many.get(op, ()):
                    fillings = [way.get(i, []) for way, i in zip(ways, items, strict=True)]
                    for chosen in product(*fillings):
                        yield tuple(h for holes in chosen for h in holes), k

    def _close(self) -> None:
        done = 0
        while done < len(self.items):
            for op in self._ops:
                if op.arity == 1:
                    self._apply_unary(op, done)
                elif op.arity == 2:
                    self._apply_binary(op, done)
                elif op.arity:
                    self._apply_many(op, done)
            done += 1

    def _apply_unary(self, op: Operation, i: int) -> None:
        sort, pattern = self.items[i]
        result = op.typed(sort)
        item = None if result is None else self._add(result, _glued(op, (pattern,), (sort,)))
        if item is not None:
            self.unary.setdefault(op.name, {})[i] = item

    def _apply_many(self, op: Operation, new: int) -> None:
        """Join the newest item with any earlier ones and itself, in every order.

        Its first place is gone through; before it stand earlier items only, so none comes twice.
        """
        earlier = {sort: [i for i in items if i < new] for sort, items in self._of_sort.items()}
        new_sort = self.items[new][0]
        for sorts in product(self._of_sort, repeat=op.arity):
            if new_sort not in sorts or op.typed(*sorts) is None:
                continue
            for first in (position for position, sort in enumerate(sorts) if sort == new_sort):
                ways: list[tuple[Assignment, int]] = [((), 0)]
                for position, sort in enumerate(sorts):
                    options = [new] if position == first else earlier[sort]
                    if position > first and sort == new_sort:
                        options = [*options, new]
                    ways = [
                        ((*items, i), uses + self._uses[i])
                        for items, uses in ways
                        for i in options
                        if self._within(uses + self._uses[i])
                    ]
                for items, _ in ways:
                    self._apply(op, items)

    def _apply(self, op: Operation, items: Assignment) -> None:
        sorts = tuple(self.items[i][0] for i in items)
        result = op.typed(*sorts)
        assert result is not None
        item = self._add(result, _glued(op, tuple(self.items[i][1] for i in items), sorts))
        if item is not None:
            self.many.setdefault(op.name, []).append((items, item))

    def _apply_binary(self, op: Operation, new: int) -> None:
        """Join the newest item with every earlier one and itself, on either side."""
        sort = self.items[new][0]
        for other_sort, others in list(self._of_sort.items()):
            before, after = op.typed(other_sort, sort), op.typed(sort, other_sort)
            if before is None and after is None:
                continue
            for other in others[: bisect_right(others, new)]:
                if not self._within(self._uses[new] + self._uses[other]):
                    continue
                if before is not None:
                    self._join(op, other, new, before)
                if after is not None and other != new:
                    self._join(op, new, other, after)

    def _join(self, op: Operation, i: int, j: int, sort: Sort) -> None:
        (sort_i, p), (sort_j, q) = self.items[i], self.items[j]
        item = self._add(sort, _glued(op, (p, q), (sort_i, sort_j)))
        if item is not None:
            self.right_of.setdefault(op.name, {}).setdefault(i, []).append((j, item))

    def _within(self, uses: int) -> bool:
        """Whether no label is used too often: no digit of the difference borrows."""
        return (self._limit - uses) & self._carries == self._carries

    def _add(self, sort: Sort, pattern: Pattern) -> int | None:
        if self.assume == "simple":
            if pattern.vanishes:
                return None
            pattern = collapsed(pattern)
        key = (sort, canonical(pattern))
        index = self.index.get(key)
        if index is not None:
            return index
        uses = self._count(key[1])
        if uses is None or not self._within(uses) or not self._fits(key[1]):
            return None
        self.index[key] = len(self.items)
        self._of_sort.setdefault(sort, []).append(len(self.items))
        self.items.append(key)
        self._uses.append(uses)
        return self.index[key]

    def _count(self, pattern: Pattern) -> int | None:
        """How often each label is used, one digit a label; None for a label the target lacks."""
        if len(pattern.edges) >= 1 << (_DIGIT - 1):
            return None
        uses = 0
        for edge in pattern.edges:
            if edge.label not in self._digit:
                return None
            uses += self._digit[edge.label]
        return uses

    def _fits(self, pattern: Pattern) -> bool:
        internal, everywhere = _signatures(pattern, self.assume)
        closed = all(internal.count(sig) <= self._internal[sig] for sig in internal)
        return closed and all(map(self._has_place, everywhere))

    def _has_place(self, signature: Signature) -> bool:
        """Whether some vertex of the target has all that sits at this vertex."""
        if signature not in self._placeable:
            here = Counter(signature)
            self._placeable[signature] = any(not (here - allowed) for allowed in self._allowed)
        return self._placeable[signature]


@lru_cache(maxsize=100_000)
def _signatures(
    pattern: Pattern, assume: Assumption
) -> tuple[tuple[Signature, ...], tuple[Signature, ...]]:
    """What sits at each closed vertex, and at each vertex at all: labels with their positions."""
    at: list[list[tuple[str, int]]] = [[] for _ in range(pattern.vertices)]
    for edge in pattern.edges:
        for position, v in enumerate(edge.ends):
            at[v].append((edge.label, 0 if edge.symmetric else position))
    squeeze = assume == "simple"
    shown = [tuple(sorted(set(x) if squeeze else x)) for x in at]
    internal = [shown[v] for v in range(pattern.vertices) if v not in pattern.boundary]
    return tuple(internal), tuple(shown)


@lru_cache(maxsize=300_000)
def _glued(operation: Operation, patterns: tuple[Pattern, ...], sorts: tuple[Sort, ...]) -> Pattern:
    return canonical(glue(operation, patterns, sorts))
