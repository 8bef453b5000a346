"""Rules as sums over entries of their operands, and those sums at random points.

A body is a linear combination of patterns in which each variable is an opaque label of its own. Its
value at an entry is `sum over operand features (a, b, …) of m[a, b, …] · x_a · y_b · …`, where
`m[a, b, …]` is the sum of the constants' products over all index choices that meet these features.
Evaluated at random points of a field, the multilinear form identifies `m` (`grammar_test`).

A function inside a body, as in relu(AV_c), is taken as free: what stands in it is coloured by
itself, and the colours are the operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, GrammarError
from ..grammars.rules import Rule
from ..language.modular import Residues, reduced
from ..language.pattern_values import evaluate, joint_size
from ..language.patterns import Pattern, normal_form
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, MarkSum, Term, holes, subterms
from .colour_memories import DRAWS, Memory, PerStack, added, ranked
from .exact_constants import Constants, lifted

LARGEST_ARRAY = 2**27
"""Numbers an intermediate array may hold, for one graph and all draws: 1 GiB."""

_CHUNK = 2**22


@dataclass(frozen=True)
class Body:
    """A rule body as patterns over labelled operands."""

    combination: tuple[tuple[Pattern, Fraction], ...]  # the patterns and their coefficients
    sort: Sort  # the sort of its value
    # label of each operand: the variable it is read from, or the body inside a function
    operands: tuple[tuple[str, Sort | Body], ...]
    # labels of parts without variables that apply a function
    constants: tuple[tuple[str, Term], ...]
    free: bool  # whether a function other than the opaque `f` stands over a variable
    marks: tuple[str, ...] = ()  # the marks in scope
    summed: int = 0  # how many of them, the innermost, its value is summed over

    @classmethod
    def of_rule(cls, rule: Rule, marks: Sequence[str]) -> Body:
        """Read a rule's body off its term; sums over marks stand at its top."""
        names, term = [*marks[: rule.head.scope]], rule.body
        while isinstance(term, MarkSum):
            names, term = [*names, term.mark], term.body
        if any(isinstance(part, MarkSum) for part in subterms(term)):
            raise GrammarError(
                f"{rule}: the WL test of a grammar reads sums over marks at the top of a rule only;"
                f" give the sum a rule of its own, such as S → Σv. 1ᵀV′"
            )
        body = cls.of(term)
        return replace(body, marks=tuple(names), summed=len(names) - rule.head.scope)

    @classmethod
    def of(cls, term: Term) -> Body:
        """Read a body off its term."""
        operands: list[tuple[str, Sort | Body]] = []
        constants: list[tuple[str, Term]] = []
        opaque = _labelled(term, operands, constants)
        free = any(isinstance(source, Body) and source.free for _, source in operands)
        free = free or _applies_named_function(term)
        return cls(
            tuple(normal_form(opaque, "none").items()),
            term.sort,
            tuple(operands),
            tuple(constants),
            free,
        )

    @property
    def variables(self) -> frozenset[Sort]:
        """The variables its operands are read from, those inside functions too."""
        return frozenset().union(
            *(s.variables if isinstance(s, Body) else {s} for _, s in self.operands)
        )

    @property
    def has_constant_part(self) -> bool:
        """Whether some pattern has no operand, so that no random number stands at it."""
        labels = {label for label, _ in self.operands}
        return any(
            labels.isdisjoint(edge.label for edge in pattern.edges)
            for pattern, _ in self.combination
        )

    def constant_terms(self) -> Iterator[Term]:
        """Its parts without variables that apply a function."""
        yield from (term for _, term in self.constants)
        for _, source in self.operands:
            if isinstance(source, Body):
                yield from source.constant_terms()


def _labelled(
    term: Term,
    operands: list[tuple[str, Sort | Body]],
    constants: list[tuple[str, Term]],
) -> Term:
    """The term with opaque leaves for its variables and for what functions apply to."""
    if isinstance(term, Hole):
        operands.append((f"operand {len(operands)}", term.variable))
        return Leaf(operands[-1][0], term.sort)
    if not isinstance(term, Apply):
        return term
    if term.function and holes(term):
        operands.append((f"operand {len(operands)}", Body.of(term.args[0])))
        return Leaf(operands[-1][0], term.sort)
    if term.function:
        constants.append((f"constant {len(constants)}", term))
        return Leaf(constants[-1][0], term.sort)
    return Apply(term.op, tuple(_labelled(a, operands, constants) for a in term.args), term.sort)


def _applies_named_function(term: Term) -> bool:
    if not isinstance(term, Apply):
        return False
    here = term.function not in ("", "f") and bool(holes(term))
    return here or any(map(_applies_named_function, term.args))


class RuleSums:
    """The sums of rules on all stacks at random points."""

    def __init__(
        self, constants: Constants, rng: np.random.Generator, marks: Sequence[str] = ()
    ) -> None:
        self.constants, self.rng, self.marks = constants, rng, marks
        self.primes = constants.primes
        self.shapes = [stack.shape[:2] for stack in constants.stacks]
        self.bodies: dict[Rule, Body] = {}

    def body(self, rule: Rule) -> Body:
        if rule not in self.bodies:
            self.bodies[rule] = Body.of_rule(rule, self.marks)
        return self.bodies[rule]

    def usable(self, rule: Rule, memories: Mapping[Sort, Memory]) -> bool:
        """Whether all memories a rule reads hold something."""
        return self.body(rule).variables <= memories.keys()

    def joined(self, rules: Sequence[Rule], memories: Mapping[Sort, Memory]) -> PerStack | None:
        """The sum of the forms of several rules of one sort; None without a rule.

        Every form has random numbers of its own, so that their sum identifies each; a part without
        operands gets one of its own too.
        """
        total: PerStack | None = None
        for rule in rules:
            if not self.usable(rule, memories):
                continue
            part = self.values(self.body(rule), memories)
            if not self.body(rule).has_constant_part:
                total = part if total is None else added(total, part, self.primes)
                continue
            weights = [self.rng.integers(1, p, size=DRAWS).astype(np.float64) for p in self.primes]
            scaled = [
                [
                    reduced(value * weight.reshape(-1, *[1] * (value.ndim - 1)), prime)
                    for value, weight, prime in zip(values, weights, self.primes, strict=True)
                ]
                for values in part
            ]
            total = scaled if total is None else added(total, scaled, self.primes)
        return total

    def values(self, body: Body, memories: Mapping[Sort, Memory]) -> PerStack:
        """The sums of one body, every operand at a random point of its own."""
        samples: dict[str, PerStack] = {}
        for label, source in body.operands:
            memory: Memory
            if isinstance(source, Body):  # a function: the colours of its argument are the operand
                nothing: list[list[NDArray[np.int64]]] = [[] for _ in self.shapes]
                inner = replace(source, marks=body.marks)
                memory = ranked(nothing, self.values(inner, memories), self.primes)
                scope = len(body.marks)
            else:
                memory, scope = memories[source], source.scope
            samples[label] = [
                [lifted(field, nodes, len(body.marks) - scope) for field in stack]
                for stack, (_, nodes) in zip(
                    memory.sample(self.primes, self.rng), self.shapes, strict=True
                )
            ]
        return [
            [self._on_stack(body, samples, stack, field) for field in range(len(self.primes))]
            for stack in range(len(self.shapes))
        ]

    def _on_stack(
        self, body: Body, samples: Mapping[str, PerStack], stack: int, field: int
    ) -> Residues:
        graphs, nodes = self.shapes[stack]
        graphs *= nodes ** len(body.marks)
        labels = self.constants.labels(stack, field, body.marks)
        for label, term in body.constants:
            labels[label] = self.constants.value(term, stack, field, body.marks)
        for label, sample in samples.items():
            labels[label] = sample[stack][field]
        entries = DRAWS * nodes ** joint_size(body.combination)
        if entries > LARGEST_ARRAY:
            raise DataError(
                f"a rule on a graph of {nodes} nodes would hold {entries:,} numbers at once, the "
                f"limit is {LARGEST_ARRAY:,}: pass smaller graphs"
            )
        step = max(1, _CHUNK // entries)
        parts = [
            evaluate(
                body.combination,
                body.sort.boundary,
                {name: value[:, start : start + step] for name, value in labels.items()},
                nodes,
                min(step, graphs - start),
                self.primes[field],
            )
            for start in range(0, graphs, step)
        ]
        value = np.concatenate(
            [np.broadcast_to(part, (DRAWS, *part.shape[1:])) for part in parts], axis=1
        )
        if not body.summed:
            return value
        by_mark = value.reshape(DRAWS, -1, nodes**body.summed, *value.shape[2:])
        return reduced(by_mark.sum(axis=2), self.primes[field])
