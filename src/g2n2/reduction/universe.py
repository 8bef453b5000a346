"""All ways to build a target pattern from parts: the sub-patterns, and which operation joins which.

A word equal to the target is built from sub-words, and every sub-word's pattern sits inside the
target: it uses no label more often, and a vertex it has closed already has all its edges. So the
candidates are finite and few, and one table of them serves every set of rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ..language.operations import OPERATIONS
from ..language.patterns import (
    EMPTY,
    Assumption,
    Pattern,
    canonical,
    collapsed,
    glue,
    leaf_pattern,
    wrap,
)
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, Number, Term, leaves, operators

Signature = tuple[tuple[str, int], ...]
Assignment = tuple[int, ...]


def universe_for(
    target: Pattern, templates: Iterable[Term], seeds: Iterable[Leaf], assume: Assumption
) -> Universe:
    """The universe of a target for words made of these templates and leaves."""
    terms = list(templates)
    used = frozenset[str]().union(*map(operators, terms))
    constants = frozenset(leaf for t in terms for leaf in leaves(t)) | frozenset(seeds)
    return _universe(canonical(target), used, constants, assume)


@lru_cache(maxsize=2000)
def _universe(
    target: Pattern, operations: frozenset[str], constants: frozenset[Leaf], assume: Assumption
) -> Universe:
    return Universe(target, operations, constants, assume)


class Universe:
    """The sub-patterns of a target reachable by given operations from given leaves."""

    def __init__(
        self,
        target: Pattern,
        operations: frozenset[str],
        constants: frozenset[Leaf],
        assume: Assumption,
    ) -> None:
        self.assume = assume
        self._limits = _label_counts(target, assume)
        internal, everywhere = _signatures(target, assume)
        self._internal = set(internal)
        self._allowed = [Counter(signature) for signature in everywhere]
        self.items: list[tuple[Sort, Pattern]] = []
        self.index: dict[tuple[Sort, Pattern], int] = {}
        self.unary: dict[str, dict[int, int]] = {}
        self.right_of: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self._ops = [op for op in OPERATIONS.values() if op.name in operations - {"one"}]
        for leaf in sorted(constants, key=lambda leaf: leaf.name):
            self._add(leaf.sort, leaf_pattern(leaf.name, leaf.sort, assume))
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
                found = self.find(sort, leaf_pattern(name, sort, self.assume))
                if found is not None:
                    yield (), found
            case Number(sort=sort):
                found = self.find(sort, EMPTY)
                if found is not None:
                    yield (), found
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

    def _close(self) -> None:
        done = 0
        while done < len(self.items):
            for op in self._ops:
                if op.arity == 1:
                    self._apply_unary(op.name, done)
                else:
                    for other in range(done + 1):
                        self._apply_binary(op.name, other, done)
                        if other != done:
                            self._apply_binary(op.name, done, other)
            done += 1

    def _apply_unary(self, op: str, i: int) -> None:
        sort, pattern = self.items[i]
        result = OPERATIONS[op].typed(sort)
        if result is None:
            return
        made = self._add(result, _wrapped(op, pattern, sort))
        if made is not None:
            self.unary.setdefault(op, {})[i] = made

    def _apply_binary(self, op: str, i: int, j: int) -> None:
        (sort_i, p), (sort_j, q) = self.items[i], self.items[j]
        result = OPERATIONS[op].typed(sort_i, sort_j)
        if result is None or not self._within(_counts(p), _counts(q)):
            return
        made = self._add(result, _glued(op, p, q, sort_i, sort_j))
        if made is not None:
            self.right_of.setdefault(op, {}).setdefault(i, []).append((j, made))

    def _within(self, p: Counter[str], q: Counter[str]) -> bool:
        return all(p[label] + q[label] <= self._limits.get(label, 0) for label in {*p, *q})

    def _add(self, sort: Sort, pattern: Pattern) -> int | None:
        if self.assume == "simple":
            if pattern.vanishes:
                return None
            pattern = collapsed(pattern)
        key = (sort, canonical(pattern))
        known = self.index.get(key)
        if known is not None:
            return known
        if not self._fits(key[1]):
            return None
        self.index[key] = len(self.items)
        self.items.append(key)
        return self.index[key]

    def _fits(self, pattern: Pattern) -> bool:
        counts = _counts(pattern)
        if any(n > self._limits.get(label, 0) for label, n in counts.items()):
            return False
        internal, everywhere = _signatures(pattern, self.assume)
        if any(signature not in self._internal for signature in internal):
            return False
        return all(
            any(not (Counter(signature) - allowed) for allowed in self._allowed)
            for signature in everywhere
        )


def _label_counts(target: Pattern, assume: Assumption) -> dict[str, int]:
    """How often each label may be used; where A⊙A = A, A may be used twice as often."""
    counts = dict(_counts(target))
    if assume == "simple" and "A" in counts:
        counts["A"] *= 2
    return counts


@lru_cache(maxsize=100_000)
def _counts(pattern: Pattern) -> Counter[str]:
    return Counter(edge.label for edge in pattern.edges)


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


@lru_cache(maxsize=200_000)
def _glued(op: str, p: Pattern, q: Pattern, sort_p: Sort, sort_q: Sort) -> Pattern:
    return canonical(glue(op, p, q, (sort_p, sort_q)))


@lru_cache(maxsize=100_000)
def _wrapped(op: str, p: Pattern, sort: Sort) -> Pattern:
    return canonical(wrap(op, p, sort))
