"""The words an engine has made: their values, and the rule and combinations each came from.

An element of the memory is a constant, or a rule applied to linear combinations of elements of
earlier layers. Both engines grow it layer by layer; they differ in how many elements they add.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from itertools import product as tuples
from math import prod
from typing import NamedTuple

import numpy as np

from ..errors import GrammarError
from ..grammars.layered_grammar import LayeredGrammar
from ..grammars.rules import Rule
from ..graphs import Adjacency
from ..language.modular import Residues, combined, contracted, product, reduced, residue_matrix
from ..language.operations import OPERATIONS
from ..language.signatures import Contraction
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, MarkSum, Number, Term, holes

Marks = tuple[str, ...]
"""The names of the marks in scope, the outermost first."""


class Stack:
    """Some graphs of equal size, and what the leaves of a grammar are worth on them.

    Inside a mark every graph stands there n times, once with each node marked: the values of V′ are
    those of V on `count · n` graphs, the marks of one graph next to each other.
    """

    def __init__(
        self,
        graphs: Sequence[Adjacency],
        supports: Sequence[tuple[str, Term]],
        prime: int,
        marks: Marks = (),
        matrices: Mapping[str, Residues] | None = None,
    ) -> None:
        """`matrices` are the values of named leaves, A among them, where they are known already."""
        self.prime, self.count, self.nodes = prime, len(graphs), len(graphs[0])
        self.marks = marks
        if matrices is None:
            adjacency = [residue_matrix(graph, prime, "A") for graph in graphs]
            matrices = {"A": np.stack(adjacency)[None]}
        self.matrices: dict[str, Residues] = dict(matrices)
        for name, definition in supports:
            self.matrices[name] = self.values(definition, ())

    def shape(self, sort: Sort) -> tuple[int, ...]:
        """The shape `[g, rows, columns]` of one word of a variable on all graphs, marked or not."""
        return self.count * self.nodes**sort.scope, *self._axes(sort)

    def _axes(self, sort: Sort) -> tuple[int, ...]:
        return tuple(self.nodes if axis == "n" else 1 for axis in sort.axes)

    def values(self, body: Term, arguments: Sequence[Residues], marks: Marks = ()) -> Residues:
        """Evaluate a body inside marks; its variables, left to right, have the given values."""
        value = self._value(body, iter(arguments), marks)
        words = max((len(argument) for argument in arguments), default=1)
        return np.broadcast_to(value, (words, *self.shape(body.sort.within(len(marks)))))

    def applied(self, rule: Rule, arguments: Sequence[Residues]) -> Residues:
        """What a rule makes of the values of its variables."""
        return self.values(rule.body, arguments, self.marks[: rule.head.scope])

    def _value(self, term: Term, arguments: Iterator[Residues], marks: Marks = ()) -> Residues:
        """The value of a part inside the given marks, which may be fewer than its own leaves."""
        match term:
            case Hole(scope=scope):
                return self._lifted(next(arguments), len(marks) - scope)
            case Leaf(name=name) if name in marks:
                return self._mark(marks, name)
            case Leaf(name=name):
                return self._lifted(self._leaf(name), len(marks))
            case MarkSum(mark=mark, body=body):
                return self._unmarked(self._value(body, arguments, (*marks, mark)))
            case Number(value=value):
                number = value.numerator * pow(value.denominator, -1, self.prime) % self.prime
                return np.full((1, 1, 1, 1), float(number))
            case Apply(op="add", args=(a, b)):
                # In this order: the variables are consumed left to right.
                x, y = self._value(a, arguments, marks), self._value(b, arguments, marks)
                return reduced(x + y, self.prime)
            case Apply(op=op, args=args) if OPERATIONS[op].multilinear:
                values = [self._value(arg, arguments, marks) for arg in args]
                sorts = tuple(arg.sort for arg in args)
                contraction = OPERATIONS[op].contraction(sorts)
                return self._contracted(contraction, values, sorts, term.sort)
        symbol = OPERATIONS[term.op].symbol if isinstance(term, Apply) else str(term)
        raise GrammarError(f"{term} has no exact value: {symbol} is not multilinear")

    def _contracted(
        self,
        contraction: Contraction,
        values: Sequence[Residues],
        sorts: Sequence[Sort],
        result: Sort,
    ) -> Residues:
        """Apply a contraction, whose values have no axes of size 1, to values that have them."""
        operands = [
            x.reshape(*x.shape[:2], *(self.nodes,) * sort.boundary)
            for x, sort in zip(values, sorts, strict=True)
        ]
        value = contracted(contraction, operands, self.nodes, self.prime)
        return value.reshape(*value.shape[:2], *self._axes(result))

    def _lifted(self, value: Residues, marks: int) -> Residues:
        """A value on every graph as one on every graph marked so many times more."""
        if marks <= 0 or value.shape[1] == 1:
            return value
        return np.repeat(value, self.nodes**marks, axis=1)

    def _unmarked(self, value: Residues) -> Residues:
        """The sum over the innermost mark."""
        if value.shape[1] == 1:  # the same on every graph, whatever is marked
            return reduced(value * self.nodes, self.prime)
        by_mark = value.reshape(len(value), -1, self.nodes, *value.shape[2:])
        return reduced(by_mark.sum(axis=2), self.prime)

    def _mark(self, marks: Marks, name: str) -> Residues:
        """The column of the innermost mark of that name."""
        at = len(marks) - 1 - marks[::-1].index(name)
        columns = np.repeat(np.eye(self.nodes), self.nodes ** (len(marks) - 1 - at), axis=0)
        return np.tile(columns, (self.count * self.nodes**at, 1))[None, :, :, None]

    def _leaf(self, name: str) -> Residues:
        if name == "1":
            return np.ones((1, 1, self.nodes, 1))
        if name in self.matrices:
            return self.matrices[name]
        diagonal = np.eye(self.nodes)[None, None]  # made anew: cheap beside any product
        return diagonal if name == "I" else 1.0 - diagonal

    def pull_back(
        self, body: Term, arguments: Sequence[Residues], dual: Residues, target: int, marks: Marks
    ) -> Residues:
        """Turn a functional of the body's value into one of its variable number `target`.

        `arguments` are the values `[1, g, rows, columns]` of its variables, left to right. A
        functional is the array its argument is multiplied with entry by entry. `marks` are those
        in scope.
        """
        match body:
            case Hole(scope=scope):
                for _ in range(len(marks) - scope):
                    dual = self._unmarked(dual)
                return dual
            case MarkSum(mark=mark, body=inside):
                lifted = np.repeat(dual, self.nodes, axis=1)
                return self.pull_back(inside, arguments, lifted, target, (*marks, mark))
            case Apply(op=op, args=args):
                counts = [len(holes(arg)) for arg in args]
                starts = [sum(counts[:i]) for i in range(len(args))]
                at = max(i for i, start in enumerate(starts) if start <= target and counts[i])
                inner = [arguments[i : i + k] for i, k in zip(starts, counts, strict=True)]
                if op != "add":
                    values = [
                        self._value(arg, iter(given), marks)
                        for i, (arg, given) in enumerate(zip(args, inner, strict=True))
                        if i != at
                    ]
                    sorts = [arg.sort for i, arg in enumerate(args) if i != at]
                    contraction = OPERATIONS[op].contraction(tuple(arg.sort for arg in args))
                    dual = self._contracted(
                        contraction.adjoint(at),
                        [*values, dual],
                        [*sorts, body.sort],
                        args[at].sort,
                    )
                return self.pull_back(args[at], inner[at], dual, target - starts[at], marks)
        raise AssertionError(f"no variable in {body!r}")


def pairing(dual: Residues, values: Residues, prime: int) -> Residues:
    """Apply a functional `[1, g, r, c]` to words `[K, g, r, c]`: one number per word, `[K]`."""
    return product(values.reshape(len(values), dual.size), dual.reshape(-1, 1), prime)[:, 0]


Batch = list[Residues]
"""Words of one sort, `[K, g, rows, columns]` per stack of graphs."""


BATCH_ENTRIES = 2**22
"""Numbers in a batch: large enough to keep BLAS busy, small enough not to matter in memory."""


@dataclass(frozen=True, eq=False)
class RuleApplication:
    """A rule applied to combinations of elements."""

    rule: Rule  # the rule
    # for each variable of it q combinations `[q, K]` of the first K elements
    coefficients: tuple[Residues, ...]

    @property
    def count(self) -> int:
        """How many words it makes; a constant is one."""
        return len(self.coefficients[0]) if self.coefficients else 1

    def run(self, part: slice) -> RuleApplication:
        """A run of the q applications."""
        return RuleApplication(self.rule, tuple(rows[part] for rows in self.coefficients))

    def only(self, index: int) -> RuleApplication:
        """One of the q applications."""
        return self.run(slice(index, index + 1))


class Origin(NamedTuple):
    """How an element was made, and at which layer; a constant at layer 0."""

    application: RuleApplication
    layer: int


class WordMemory:
    """Elements of every sort on some stacks of graphs; starts with the constants.

    `capacity` is how many elements of each sort to expect, where that is known.
    """

    def __init__(
        self,
        grammar: LayeredGrammar,
        stacks: Sequence[Stack],
        capacity: Mapping[Sort, int] | None = None,
    ) -> None:
        self.grammar, self.stacks = grammar, stacks
        self.prime = stacks[0].prime
        expected = capacity or {}
        # A body may hold a matrix on the way, even where no word is one: diag(V)V.
        order = grammar.largest_order
        entries = max(stack.count * stack.nodes ** (order + grammar.scope) for stack in stacks)
        self.batch_size = max(1, BATCH_ENTRIES // entries)
        self.origins: dict[Sort, list[Origin]] = {sort: [] for sort in grammar.sorts}
        self._buffers: dict[Sort, Batch] = {
            sort: [np.empty((expected.get(sort, 0), *stack.shape(sort))) for stack in stacks]
            for sort in grammar.sorts
        }
        for rule in grammar.constants:
            constant = RuleApplication(rule, ())
            self.add(constant, self.apply([constant])[0], [0], 0)

    def counts(self) -> dict[Sort, int]:
        """How many elements each sort has."""
        return {sort: len(origins) for sort, origins in self.origins.items()}

    def values(self, sort: Sort) -> Batch:
        """The elements of a sort."""
        return [buffer[: len(self.origins[sort])] for buffer in self._buffers[sort]]

    def parts(self, application: RuleApplication) -> Iterator[RuleApplication]:
        """Cut an application into runs of at most `batch_size` words."""
        for start in range(0, application.count, self.batch_size):
            yield application.run(slice(start, start + self.batch_size))

    def apply(self, applications: Sequence[RuleApplication]) -> list[Batch]:
        """The values of rules applied to combinations of elements, `[q, g, …]` per stack.

        All applications must combine the same first K elements of a sort.
        """
        per_stack = [
            self._apply_on(index, stack, applications) for index, stack in enumerate(self.stacks)
        ]
        return [list(batch) for batch in zip(*per_stack, strict=True)]

    def _apply_on(self, index: int, stack: Stack, applications: Sequence[RuleApplication]) -> Batch:
        rows: dict[Sort, list[Residues]] = defaultdict(list)
        for application in applications:
            for sort, part in zip(application.rule.holes, application.coefficients, strict=True):
                rows[sort].append(part)
        # One product per sort: the elements, which are many, are read once for all rules.
        arguments = {}
        for sort, parts in rows.items():
            elements = self._buffers[sort][index][: parts[0].shape[1]]
            values = combined(np.concatenate(parts), elements, self.prime)
            arguments[sort] = iter(np.split(values, [*accumulate(map(len, parts))][:-1]))
        return [
            stack.applied(a.rule, [next(arguments[sort]) for sort in a.rule.holes])
            for a in applications
        ]

    def add(
        self, application: RuleApplication, batch: Batch, chosen: list[int], layer: int
    ) -> None:
        """Keep the chosen ones of a batch that `apply` made."""
        sort = application.rule.head
        start = len(self.origins[sort])
        self.origins[sort] += [Origin(application.only(index), layer) for index in chosen]
        for index, new in enumerate(batch):
            buffer = self._buffers[sort][index]
            if len(buffer) < start + len(chosen):
                grown = np.empty((2 * (start + len(chosen)), *buffer.shape[1:]))
                grown[:start] = buffer[:start]
                self._buffers[sort][index] = buffer = grown
            buffer[start : start + len(chosen)] = new[chosen]

    def rows(self, batch: Batch) -> Residues:
        """A batch as rows over all graphs: `[q, entries]`.

        Where sums are about, a column of ones is added: then an affine relation between words is a
        linear one between rows.
        """
        parts = [part.reshape(len(part), prod(part.shape[1:])) for part in batch]
        if self.grammar.affine:
            parts.append(np.ones((len(batch[0]), 1)))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class Draws:
    """A source of random combinations; if `affine`, their coefficients sum to one."""

    prime: int
    rng: np.random.Generator
    affine: bool

    def random(self, count: int, rule: Rule, counts: dict[Sort, int]) -> RuleApplication:
        """Draw `count` combinations for each variable of a rule."""
        return RuleApplication(rule, tuple(self._rows(count, counts[sort]) for sort in rule.holes))

    def _rows(self, count: int, elements: int) -> Residues:
        rows = self.rng.integers(0, self.prime, size=(count, elements)).astype(np.float64)
        if self.affine:
            others = reduced(rows[:, 1:].sum(axis=1), self.prime)
            rows[:, 0] = reduced(self.prime + 1 - others, self.prime)
        return rows


def choices(rule: Rule, counts: dict[Sort, int]) -> int:
    """How many ways there are to fill a rule's variables with single elements."""
    return prod(counts[sort] for sort in rule.holes)


def single_elements(rule: Rule, counts: dict[Sort, int]) -> RuleApplication:
    """All ways to fill a rule's variables with single elements."""
    sizes = [counts[sort] for sort in rule.holes]
    ways = np.array(list(tuples(*map(range, sizes))), dtype=np.int64)
    picks = ways.reshape(prod(sizes), len(sizes))  # without variables one way that fills nothing
    return RuleApplication(rule, tuple(np.eye(size)[picks[:, at]] for at, size in enumerate(sizes)))


def stacked(
    graphs: Sequence[Adjacency], grammar: LayeredGrammar, prime: int
) -> tuple[list[Stack], list[tuple[int, int]]]:
    """Stacks of graphs of one size (large graphs alone), and each graph's stack and index there."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, graph in enumerate(graphs):
        large = 4 * len(graph) ** (2 + grammar.scope) > BATCH_ENTRIES
        groups[len(graph), index if large else -1].append(index)
    where: dict[int, tuple[int, int]] = {}
    for number, group in enumerate(groups.values()):
        where |= {index: (number, position) for position, index in enumerate(group)}
    stacks = [
        Stack([graphs[index] for index in group], grammar.supports, prime, grammar.marks)
        for group in groups.values()
    ]
    return stacks, [where[index] for index in range(len(graphs))]
