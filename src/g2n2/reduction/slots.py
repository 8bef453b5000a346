"""Patterns for the checker: the index slots of a term, joined as its operations say.

This is the checker's own construction, independent of language/patterns.py on purpose.
"""

from __future__ import annotations

from collections import Counter

from ..language.sorts import V
from ..language.terms import Apply, Leaf, Number, Term


class Refused(Exception):
    """The certificate does not hold; the message says where and why."""


def require(condition: bool, failure: str) -> None:
    """Refuse the certificate unless the condition holds."""
    if not condition:
        raise Refused(failure)


class SlotGraph:
    """A labelled graph whose vertices are classes of index slots."""

    def __init__(self, assume: str) -> None:
        self.assume = assume
        self.parent: list[int] = []
        self.edges: list[tuple[str, tuple[int, ...]]] = []
        self.boundary: tuple[int, ...] = ()
        self.hidden: set[int] = set()

    def find(self, slot: int) -> int:
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def join(self, a: int, b: int) -> None:
        a, b = sorted((self.find(a), self.find(b)))
        self.parent[b] = a

    def slots(self, count: int) -> tuple[int, ...]:
        start = len(self.parent)
        self.parent += range(start, start + count)
        return tuple(range(start, start + count))

    def build(self, term: Term) -> tuple[int, ...]:
        """Add a term; return its boundary slots."""
        match term:
            case Number(value=value) if value == 1:
                return ()
            case Leaf(name="1"):
                return self.slots(1)
            case Leaf(name="I"):
                return self.slots(1) * 2
            case Leaf(name=name, sort=sort) if name != "J":
                ends = self.slots(sort.axes.count("n"))
                self.edges.append((name, ends))
                return ends
            case Apply(op="matmul", args=(a, b)):
                left, right = self.build(a), self.build(b)
                if a.sort.axes[1] == "1":
                    return left + right
                self.join(left[-1], right[0])
                return left[:-1] + right[1:]
            case Apply(op="hadamard", args=(a, b)):
                left, right = self.build(a), self.build(b)
                for p, q in zip(left, right, strict=True):
                    self.join(p, q)
                return left
            case Apply(op="scale", args=(a, b)):
                return self.build(a) + self.build(b)
            case Apply(op="transpose", args=(a,)):
                return self.build(a)[::-1]
            case Apply(op="diag", args=(a,)):
                inner = self.build(a)
                return inner * 2 if a.sort == V else inner
            case Apply(op="trace", args=(a,)):
                inner = self.build(a)
                if inner:
                    self.join(inner[0], inner[1])
                return ()
        raise Refused(f"{term} is a sum or applies a function: no pattern")

    def vertices(self) -> dict[int, int]:
        """Vertices by first appearance."""
        roots = [i for i in range(len(self.parent)) if self.find(i) == i and i not in self.hidden]
        return {root: number for number, root in enumerate(roots)}

    def matches(self, other: SlotGraph, bijection: list[int]) -> bool:
        """Whether the bijection carries this graph onto the other, boundary to boundary."""
        mine, theirs = self.vertices(), other.vertices()
        if any(type(v) is not int for v in bijection):
            return False
        if len(mine) != len(theirs) or sorted(bijection) != list(range(len(mine))):
            return False
        here = [bijection[mine[self.find(b)]] for b in self.boundary]
        there = [theirs[other.find(b)] for b in other.boundary]
        ours = self.labelled({root: bijection[v] for root, v in mine.items()})
        return here == there and ours == other.labelled(theirs)

    def labelled(self, place: dict[int, int]) -> Counter[tuple[str, tuple[int, ...]]]:
        edges = Counter[tuple[str, tuple[int, ...]]]()
        for label, ends in self.edges:
            spots = tuple(place[self.find(slot)] for slot in ends)
            if label == "A" and self.assume != "none":
                spots = tuple(sorted(spots))
            edges[label, spots] += 1
        if self.assume == "simple":
            require(all(e[0] != "A" or e[1][0] != e[1][1] for e in edges), "a loop of A is zero")
            edges = Counter({e: 1 if e[0] == "A" else n for e, n in edges.items()})
        return edges
