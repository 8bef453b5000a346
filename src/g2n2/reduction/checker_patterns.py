"""Patterns for the checker: the index slots of a term, joined as its operations say.

This is the checker's own construction, independent of language/patterns.py on purpose: its own
table of the built-in signatures, and its own reading of a signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..language.terms import Apply, Leaf, MarkSum, Number, Term

SIGNATURES: Mapping[str, str] = {
    "matmul": "ab,bc->ac",
    "hadamard": "ab,ab->ab",
    "scale": "11,ab->ab",
    "transpose": "ab->ba",
    "diag": "a1->aa",
    "trace": "aa->11",
}
WITHOUT_PATTERN = ("add", "f_S", "f_V", "f_M", "mark_S", "mark_V", "mark_M")


class Refused(Exception):
    """The certificate does not hold; the message says where and why."""


def require(condition: bool, failure: str) -> None:
    """Refuse the certificate unless the condition holds."""
    if not condition:
        raise Refused(failure)


class SlotGraph:
    """A labelled graph whose vertices are classes of index slots."""

    def __init__(self, assume: str, declared: Mapping[str, str] | None = None) -> None:
        self.assume = assume
        self.signatures = {**(declared or {}), **SIGNATURES}
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
            case Apply(op=op, args=args) if op in self.signatures:
                operands = [(arg.sort.axes, self.build(arg)) for arg in args]
                return self.joined(self.signatures[op], operands, term)
            case MarkSum(mark=mark, body=body):
                return self.summed(mark, body)
            case Apply(op=op) if op not in WITHOUT_PATTERN:
                raise Refused(f"the operation {op} is not declared")
        raise Refused(f"{term} is a sum or applies a function: no pattern")

    def summed(self, mark: str, body: Term) -> tuple[int, ...]:
        """The sum over a mark: one vertex for all its occurrences, without its label."""
        start = len(self.edges)
        boundary = self.build(body)
        marked = [ends[0] for label, ends in self.edges[start:] if label == mark]
        self.edges[start:] = [edge for edge in self.edges[start:] if edge[0] != mark]
        first = marked[0] if marked else self.slots(1)[0]
        for slot in marked:
            self.join(first, slot)
        return boundary

    def joined(
        self, signature: str, operands: list[tuple[tuple[str, ...], tuple[int, ...]]], term: Term
    ) -> tuple[int, ...]:
        """Join the slots of all axes with one letter; return those of the result.

        `operands` has for each operand its axes, and the slots of those of size n.
        """
        left, _, right = signature.partition("->")
        written = left.split(",") if left else []
        require(len(written) == len(operands), f"{term}: {signature} has other operands")
        held: dict[str, int | None] = {"1": None}
        for letters, (axes, slots) in zip(written, operands, strict=True):
            require(len(letters) == len(axes), f"{term}: {signature} has other axes")
            free = iter(slots)
            for letter, size in zip(letters, axes, strict=True):
                slot = next(free) if size == "n" else None
                first = held.setdefault(letter, slot)
                require((first is None) == (slot is None), f"{term}: sizes differ in {signature}")
                if first is not None and slot is not None:
                    self.join(first, slot)
        for letter in right:
            if letter not in held:
                held[letter] = self.slots(1)[0]
        ends = [held[letter] for letter in right]
        sizes = tuple("1" if end is None else "n" for end in ends)
        require(sizes == term.sort.axes, f"{term}: {signature} gives another sort")
        return tuple(end for end in ends if end is not None)

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

    def labelled(self, vertex_of: dict[int, int]) -> Counter[tuple[str, tuple[int, ...]]]:
        edges = Counter[tuple[str, tuple[int, ...]]]()
        for label, ends in self.edges:
            spots = tuple(vertex_of[self.find(slot)] for slot in ends)
            if label == "A" and self.assume != "none":
                spots = tuple(sorted(spots))
            edges[label, spots] += 1
        if self.assume == "simple":
            require(all(e[0] != "A" or e[1][0] != e[1][1] for e in edges), "a loop of A is zero")
            edges = Counter({e: 1 if e[0] == "A" else n for e, n in edges.items()})
        return edges
