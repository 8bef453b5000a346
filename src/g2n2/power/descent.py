"""From a difference between random combinations to one word that differs.

The difference is a linear functional of the element chosen for each variable (with the others held
fixed), and a combination it does not vanish on has a member it does not vanish on. Taking that
member, then the combinations it was made from, and so on down to the constants leaves a word of the
grammar whose values still differ modulo the prime, hence differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..grammars.rules import Rule
from ..language.sorts import Sort
from ..language.terms import Term, fill, operation_count
from .closure import Difference
from .modular import Residues, combined, reduced
from .rule_values import pairing
from .word_memory import Application, Batch, WordMemory


@dataclass(frozen=True, eq=False)
class Word:
    """A word, its values on all graphs (a batch of one), its depth and its number of operations."""

    term: Term
    values: Batch
    depth: int
    size: int


@dataclass(frozen=True, eq=False)
class Functional:
    """`x -> <dual, x> + offset`; the offset is not zero only where a body holds a sum."""

    dual: Batch
    offset: int


def descend(difference: Difference) -> Word:
    """Find one sentence (at node or pair level one word) that differs at the two places."""
    memory = difference.memory
    dual = [
        np.zeros((1, *stack.shape(difference.sentence.rule.body.sort))) for stack in memory.stacks
    ]
    for (stack, graph, row, column), sign in zip(difference.places, (1, -1), strict=True):
        entry = dual[stack][0, graph, row, column]
        dual[stack][0, graph, row, column] = (entry + sign) % memory.prime
    search = _Search(memory)
    return search.application(difference.sentence, Functional(dual, 0), difference.layer)


class _Search:
    """Keeps the words it has settled on, to use them again: shared parts make short sentences."""

    def __init__(self, memory: WordMemory) -> None:
        self.memory = memory
        self.found: dict[Sort, list[Word]] = {sort: [] for sort in memory.origins}
        for sort, origins in memory.origins.items():
            for index, origin in enumerate(origins):
                if not origin.application.coefficients:
                    values = [part[[index]] for part in memory.values(sort)]
                    body = origin.application.rule.body
                    self._keep(sort, Word(body, values, 0, operation_count(body)))

    def application(self, application: Application, goal: Functional, depth: int) -> Word:
        """Replace combinations by words of at most `depth` layers, one variable after the other.

        The goal is not zero on the combinations given, nor on the word returned.
        """
        rule, coefficients = application.rule, application.coefficients
        arguments: list[Batch] = [
            [combined(rows, part[: rows.shape[1]], self.memory.prime) for part in self._all(sort)]
            for sort, rows in zip(rule.holes, coefficients, strict=True)
        ]
        words: list[Word] = []
        for at, sort in enumerate(rule.holes):
            pulled = self._pulled(rule, arguments, goal, at)
            words.append(self._chosen(sort, coefficients[at].shape[1], pulled, depth))
            arguments[at] = words[at].values
        term = fill(rule.body, [word.term for word in words])
        deepest = max((word.depth for word in words), default=0)
        size = operation_count(rule.body) + sum(word.size for word in words)
        return Word(term, self._values(rule, arguments), deepest, size)

    def _chosen(self, sort: Sort, known: int, goal: Functional, depth: int) -> Word:
        """A word in the span of the first `known` elements on which the goal is not zero."""
        for word in self.found[sort]:
            if word.depth <= depth and self._apply(goal, word.values)[0]:
                return word
        scores = self._apply(goal, [part[:known] for part in self._all(sort)])
        application, layer = self.memory.origins[sort][int(np.flatnonzero(scores)[0])]
        inner = self.application(application, goal, layer - 1)
        word = replace(inner, depth=inner.depth + 1)
        self._keep(sort, word)
        return word

    def _all(self, sort: Sort) -> Batch:
        return self.memory.values(sort)

    def _pulled(
        self, rule: Rule, arguments: Sequence[Batch], goal: Functional, at: int
    ) -> Functional:
        """The goal as a functional of variable number `at`, the other arguments held fixed."""
        dual = [
            stack.pull_back(rule.body, [batch[s] for batch in arguments], goal.dual[s], at)
            for s, stack in enumerate(self.memory.stacks)
        ]
        total = self._apply(goal, self._values(rule, arguments))[0]
        own = self._apply(Functional(dual, 0), arguments[at])[0]
        return Functional(dual, int(total - own) % self.memory.prime)

    def _values(self, rule: Rule, arguments: Sequence[Batch]) -> Batch:
        return [
            stack.values(rule.body, [batch[s] for batch in arguments])
            for s, stack in enumerate(self.memory.stacks)
        ]

    def _apply(self, goal: Functional, batch: Batch) -> Residues:
        prime = self.memory.prime
        total: Residues = np.full(len(batch[0]), float(goal.offset))
        for dual, values in zip(goal.dual, batch, strict=True):
            total = total + pairing(dual, values, prime)
        return reduced(total, prime)

    def _keep(self, sort: Sort, word: Word) -> None:
        """Smallest words first: they are tried first."""
        self.found[sort].append(word)
        self.found[sort].sort(key=lambda each: each.size)
