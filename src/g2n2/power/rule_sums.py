"""Rules as sums over entries of their operands, and those sums at random points.

The value of a body at an entry is `sum over operand features (a, b, …) of m[a, b, …] · x_a · y_b ·
…`, where `m[a, b, …]` is the sum of the constants' products over all index choices that meet these
features. Evaluated at random points of a field, the multilinear form identifies `m`
(`grammar_test`).

A function inside a body, as in relu(AV_c), is taken as free: what stands in it is coloured by
itself, and the colours are the operand. A function of constants has the value of
`exact_constants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..grammars.rules import Rule
from ..graphs import Adjacency
from ..language.evaluation import evaluate
from ..language.modular import PRIMES, Residues, reduced
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, MarkSum, Term, holes, substitute
from .colour_memories import DRAWS, Memory, PerStack, added, ranked
from .exact_constants import (
    functions_in,
    inverses,
    odd_primes,
    primes_with_roots,
    residues,
    square_root,
)
from .word_memory import Marks, Stack


def constant_functions(terms: Iterable[Term]) -> list[Apply]:
    """The parts of terms that apply a function to constants alone."""
    return [part for part in functions_in(terms) if not holes(part)]


def applies_free_function(terms: Iterable[Term]) -> bool:
    """Whether a function other than the opaque `f` stands over a variable."""
    return any(part.function != "f" and holes(part) for part in functions_in(terms))


def has_constant_part(term: Term) -> bool:
    """Whether a summand of a body has no operand, so that no random number stands at it."""
    match term:
        case Hole():
            return False
        case MarkSum(body=body):
            return has_constant_part(body)
        case Apply(function=function) if function:
            return not holes(term)
        case Apply(op="add", args=args):
            return any(map(has_constant_part, args))
        case Apply(args=args):
            return all(map(has_constant_part, args))
    return True


class Constants:
    """Values of constant terms on stacks `[graphs, n, n]` of graphs, modulo each of two primes.

    The primes depend on `terms`, the constant terms that apply a function. `supports` defines
    matrices a grammar names besides A, `given` has per stack the values of those it leaves
    undefined, and `marks` are the names of the grammar's marks.
    """

    def __init__(
        self,
        graphs: Sequence[Adjacency],
        supports: Mapping[str, Term],
        given: Sequence[Mapping[str, NDArray[np.float64]]],
        terms: Iterable[Term],
        marks: Marks,
        rng: np.random.Generator,
    ) -> None:
        self.graphs, self.given, self.supports = graphs, given, supports
        self.rng = rng
        self.random_values: dict[tuple[str, float, int], float] = {}
        written = [substitute(term, dict(supports)) for term in (*terms, *supports.values())]
        self.primes = self._primes(written)
        self.stacks: list[list[Stack]] = []  # per stack of graphs, one for each prime
        for number, stack in enumerate(graphs):
            matrices = {"A": stack, **given[number]}
            self.stacks.append(
                [
                    Stack(
                        list(stack),
                        (),
                        prime,
                        marks,
                        {name: residues(values, prime)[None] for name, values in matrices.items()},
                    )
                    for prime in self.primes
                ]
            )
        for name, definition in supports.items():
            for number, by_prime in enumerate(self.stacks):
                for field, stack_of_prime in enumerate(by_prime):
                    stack_of_prime.matrices[name] = self.value(definition, number, field)

    def value(self, term: Term, number: int, field: int, marks: Marks = ()) -> Residues:
        """A term without grammar variables on a stack, inside marks."""
        plain = self.without_functions(term, number, field)
        return self.stacks[number][field].values(plain, (), marks)

    def channels(self, terms: Sequence[Term], marks: Marks) -> PerStack:
        """Several such terms on all stacks, modulo each prime."""
        return [
            [
                np.concatenate([self.value(term, number, field, marks) for term in terms])
                for field in range(len(self.primes))
            ]
            for number in range(len(self.stacks))
        ]

    def without_functions(self, term: Term, number: int, field: int) -> Term:
        """The term with every function of constants as a leaf, whose value the stack then has."""
        if isinstance(term, MarkSum):
            return MarkSum(term.mark, self.without_functions(term.body, number, field))
        if not isinstance(term, Apply):
            return term
        if term.function:
            matrices = self.stacks[number][field].matrices
            if str(term) not in matrices:
                matrices[str(term)] = self._function(term, number, field)
            return Leaf(str(term), term.sort)
        args = tuple(self.without_functions(arg, number, field) for arg in term.args)
        return Apply(term.op, args, term.sort)

    def _function(self, term: Apply, number: int, field: int) -> Residues:
        prime = self.primes[field]
        if term.function == "inv":
            return inverses(self.value(term.args[0], number, field), prime)
        argument = self._floats(term.args[0], number)
        distinct, where = np.unique(argument, return_inverse=True)
        table = [self._number(term.function, float(value), prime) for value in distinct]
        return np.array(table)[where.reshape(argument.shape)][None]

    def _number(self, function: str, value: float, prime: int) -> float:
        if function == "sqrt":
            return square_root(value, prime)
        if function in ("relu", "abs"):
            kept = max(value, 0.0) if function == "relu" else abs(value)
            return float(residues(np.array(kept), prime))
        key = function, round(value, 9), prime
        if key not in self.random_values:
            self.random_values[key] = float(self.rng.integers(0, prime))
        return self.random_values[key]

    def _floats(self, term: Term, number: int) -> NDArray[np.float64]:
        """A constant term in float64, `[graphs, rows, columns]`."""
        written = substitute(term, dict(self.supports))
        return np.stack(
            [
                evaluate(written, matrix, {k: v[index] for k, v in self.given[number].items()})
                for index, matrix in enumerate(self.graphs[number])
            ]
        )

    def _primes(self, terms: Sequence[Term]) -> tuple[int, int]:
        roots = [part.args[0] for part in constant_functions(terms) if part.function == "sqrt"]
        needed = {
            q
            for argument in roots
            for number in range(len(self.graphs))
            for value in np.unique(self._floats(argument, number))
            for q in odd_primes(float(value))
        }
        return PRIMES[:2] if not needed else primes_with_roots(frozenset(needed))


class RuleSums:
    """The sums of rules on all stacks at random points."""

    def __init__(self, constants: Constants, rng: np.random.Generator, marks: Marks = ()) -> None:
        self.constants, self.rng, self.marks = constants, rng, marks
        self.primes = constants.primes

    def joined(self, rules: Sequence[Rule], memories: Mapping[Sort, Memory]) -> PerStack | None:
        """The sum of the forms of several rules of one sort; None without a rule.

        Rules whose memories hold nothing yet are left out. Every form has random numbers of its
        own, so that their sum identifies each; a part without operands gets one of its own too.
        """
        total: PerStack | None = None
        for rule in rules:
            if not memories.keys() >= set(rule.holes):
                continue
            part = self._values(rule.body, memories, self.marks[: rule.head.scope])
            if has_constant_part(rule.body):
                weights = [self.rng.integers(1, p, size=(DRAWS, 1, 1, 1)) for p in self.primes]
                part = [
                    [
                        reduced(value * weight, prime)
                        for value, weight, prime in zip(values, weights, self.primes, strict=True)
                    ]
                    for values in part
                ]
            total = part if total is None else added(total, part, self.primes)
        return total

    def _values(self, body: Term, memories: Mapping[Sort, Memory], marks: Marks) -> PerStack:
        """The sums of one body inside marks, every operand at a random point of its own."""
        operands: list[PerStack] = []

        def opaque(term: Term, marks: Marks) -> Term:
            """The term with a variable for every function of variables, its colours the operand."""
            if isinstance(term, Hole):
                operands.append(memories[term.variable].sample(self.primes, self.rng))
            elif isinstance(term, MarkSum):
                return MarkSum(term.mark, opaque(term.body, (*marks, term.mark)))
            elif isinstance(term, Apply) and term.function and holes(term):
                inner = self._values(term.args[0], memories, marks)
                memory = ranked(None, inner, self.primes)
                operands.append(memory.sample(self.primes, self.rng))
                return Hole(term.sort.within(len(marks)))
            elif isinstance(term, Apply) and not term.function:
                args = tuple(opaque(arg, marks) for arg in term.args)
                return Apply(term.op, args, term.sort)
            return term

        term = opaque(body, marks)
        sums: PerStack = []
        for number, by_prime in enumerate(self.constants.stacks):
            sums.append([])
            for field, stack in enumerate(by_prime):
                plain = self.constants.without_functions(term, number, field)
                arguments = [sample[number][field] for sample in operands]
                value = stack.values(plain, arguments, marks)
                sums[-1].append(np.broadcast_to(value, (DRAWS, *value.shape[1:])))
        return sums
