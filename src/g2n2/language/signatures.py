"""Signatures: what a multilinear operation computes, in einsum style over its axes.

`"ab,bc->ac"` is the matrix product. A letter is an axis of size 1 or n, the same size wherever it
stands; the digit 1 is an axis of size 1. A letter the output lacks is summed over, a letter only
the output has is broadcast (its axis has size n), a letter twice in the output makes a diagonal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from string import ascii_lowercase
from typing import NamedTuple

from ..errors import GrammarError
from .sorts import Sort

MAX_LETTERS = 16
MAX_OPERANDS = 8
_AXES = re.compile(r"[A-Za-z1]*")


class ContractionStep(NamedTuple):
    """One or two values joined into a new one, put after all there are; `letters` are its axes."""

    values: tuple[int, ...]
    letters: str


@dataclass(frozen=True)
class Contraction:
    """A signature on given sorts: every letter is an axis of size n, axes of size 1 are gone."""

    inputs: tuple[str, ...]
    output: str

    @cached_property
    def summed(self) -> str:
        """The letters summed over."""
        return "".join(x for x in dict.fromkeys("".join(self.inputs)) if x not in self.output)

    @cached_property
    def fresh(self) -> str:
        """The letters only the output has: its value is the same all along them."""
        held = "".join(self.inputs)
        return "".join(x for x in dict.fromkeys(self.output) if x not in held)

    @cached_property
    def steps(self) -> tuple[ContractionStep, ...]:
        """Sums and products of two that compute it, letters summed as soon as they can be.

        A value is first read along its different letters. The last step leaves the letters of the
        output, each once, in any order, but for the fresh ones; there are no steps to permute axes.
        """
        letters = ["".join(dict.fromkeys(axes)) for axes in self.inputs]
        waiting = set(range(len(letters)))
        steps: list[ContractionStep] = []

        def left_of(used: Sequence[int]) -> str:
            """What remains of some values: letters that others, or the output, still need."""
            others = self.output + "".join(letters[i] for i in waiting - set(used))
            union = dict.fromkeys("".join(letters[i] for i in used))
            return "".join(x for x in union if x in others)

        def take(used: tuple[int, ...]) -> None:
            letters.append(left_of(used))
            waiting.difference_update(used)
            waiting.add(len(letters) - 1)
            steps.append(ContractionStep(used, letters[-1]))

        for i in sorted(waiting):
            if len(left_of((i,))) < len(letters[i]):
                take((i,))
        while len(waiting) > 1:
            pairs = combinations(sorted(waiting), 2)
            take(min(pairs, key=lambda p: (len({*letters[p[0]], *letters[p[1]]}), len(left_of(p)))))
        return tuple(steps)

    @cached_property
    def work(self) -> tuple[tuple[int, bool], ...]:
        """For each step the number of letters it runs over, and whether it multiplies and sums."""
        letters = ["".join(dict.fromkeys(axes)) for axes in self.inputs]
        steps = []
        for used, result in self.steps:
            union = {x for i in used for x in letters[i]}
            steps.append((len(union), len(used) == 2 and len(result) < len(union)))
            letters.append(result)
        return tuple(steps)

    @property
    def peak(self) -> int:
        """The most axes a value has on the way; a sum of products is never written out."""
        sizes = [len(axes) for axes in (*self.inputs, self.output)]
        sizes += [
            len(step.letters) if summed else count
            for step, (count, summed) in zip(self.steps, self.work, strict=True)
        ]
        return max(sizes)

    def adjoint(self, operand: int) -> Contraction:
        """From the other operands and a functional of the result to one of the operand."""
        others = self.inputs[:operand] + self.inputs[operand + 1 :]
        return Contraction((*others, self.output), self.inputs[operand])

    @property
    def reads_columns(self) -> bool:
        """Whether it uses the transpose of an operand; see `turned`."""
        return turned(self.inputs, self.output)


@dataclass(frozen=True)
class Signature:
    """The axes of each operand and of the result, letters named in order of appearance."""

    inputs: tuple[str, ...]
    output: str

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a signature such as `ab,bc->ac`, or `->a1` for a constant."""
        return _parsed(text)

    def __str__(self) -> str:
        return f"{','.join(self.inputs)}->{self.output}"

    def sizes(self, sorts: Sequence[Sort]) -> dict[str, str] | None:
        """The size of each letter on operands of these sorts; None where they do not fit."""
        if len(sorts) != len(self.inputs):
            return None
        sizes = {"1": "1"}
        for axes, sort in zip(self.inputs, sorts, strict=True):
            if len(axes) != len(sort.axes):
                return None
            for letter, size in zip(axes, sort.axes, strict=True):
                if sizes.setdefault(letter, size) != size:
                    return None
        return sizes

    def result(self, sorts: tuple[Sort, ...]) -> Sort | None:
        """The sort of the result, or None where the operands do not fit."""
        return _result(self, sorts)

    def contraction(self, sorts: tuple[Sort, ...]) -> Contraction:
        """What is computed on operands of these sorts, which must fit."""
        return _contraction(self, sorts)

    @property
    def orders(self) -> frozenset[int]:
        """How many axes its operands and its result have."""
        return frozenset(map(len, (*self.inputs, self.output)))

    @property
    def turns(self) -> bool:
        """Whether it uses the transpose of an operand, whatever the sorts; see `turned`."""
        return turned([axes.replace("1", "") for axes in self.inputs], self.output.replace("1", ""))

    @property
    def treewidth_two(self) -> bool:
        """Whether joining patterns of treewidth at most 2 by it gives such patterns again.

        It does where its letters, all axes of an operand (and of the result) adjacent, form a graph
        of treewidth at most 2: patterns are then glued along cliques.
        """
        adjacent: dict[str, set[str]] = {}
        for axes in (*self.inputs, self.output):
            for letter in set(axes) - {"1"}:
                adjacent.setdefault(letter, set()).update(set(axes) - {"1", letter})
        while adjacent:
            letter = min(adjacent, key=lambda x: len(adjacent[x]))
            around = adjacent.pop(letter)
            if len(around) > 2:
                return False
            for other in around:
                adjacent[other] = (adjacent[other] | around) - {other, letter}
        return True


def turned(inputs: Sequence[str], output: str) -> bool:
    """Whether some operand is read against its direction, from the first axis of the result on.

    Then columns made with it are made with the operand's transpose: the X of Xᵀ, the Y of XYᵀ.
    """
    distance: dict[str, int] = {}
    for root in (*output, *"".join(inputs)):
        frontier = [] if root in distance else [root]
        distance.setdefault(root, max(distance.values(), default=0) + 1)
        while frontier:
            letter = frontier.pop(0)
            for axes in inputs:
                if letter in axes:
                    reached = [x for x in axes if x not in distance]
                    distance.update(dict.fromkeys(reached, distance[letter] + 1))
                    frontier += reached
    return any(len(axes) == 2 and distance[axes[1]] < distance[axes[0]] for axes in inputs)


@lru_cache(maxsize=1000)
def _parsed(text: str) -> Signature:
    if not isinstance(text, str):
        raise GrammarError(f"a signature is text such as 'ab,bc->ac', got {text!r}")
    bare = re.sub(r"\s", "", text).replace("→", "->")
    left, arrow, output = bare.partition("->")
    example = "write the axes of each operand, an arrow and those of the result: 'ab,bc->ac'"
    if not arrow or "->" in output:
        raise GrammarError(f"the signature {text!r} needs one arrow; {example}")
    inputs = left.split(",") if left else []
    if len(inputs) > MAX_OPERANDS:
        raise GrammarError(
            f"the signature {text!r} has {len(inputs)} operands; the limit is {MAX_OPERANDS}"
        )
    names: dict[str, str] = {"1": "1"}
    for axes in (*inputs, output):
        if not _AXES.fullmatch(axes):
            odd = next(x for x in axes if not _AXES.fullmatch(x))
            raise GrammarError(
                f"{odd!r} is no axis in the signature {text!r}: an axis is a letter or 1; {example}"
            )
        if len(axes) < 2:
            raise GrammarError(
                f"{axes!r} has {len(axes)} axes in the signature {text!r}; a column is a1, a row "
                "1a, a scalar 11"
            )
        for letter in axes:
            if letter not in names:
                if len(names) > MAX_LETTERS:
                    raise GrammarError(
                        f"the signature {text!r} has more than {MAX_LETTERS} letters"
                    )
                names[letter] = ascii_lowercase[len(names) - 1]
    renamed = ["".join(names[x] for x in axes) for axes in (*inputs, output)]
    return Signature(tuple(renamed[:-1]), renamed[-1])


@lru_cache(maxsize=10_000)
def _result(signature: Signature, sorts: tuple[Sort, ...]) -> Sort | None:
    sizes = signature.sizes(sorts)
    return None if sizes is None else Sort(tuple(sizes.get(x, "n") for x in signature.output))


@lru_cache(maxsize=10_000)
def _contraction(signature: Signature, sorts: tuple[Sort, ...]) -> Contraction:
    sizes = signature.sizes(sorts)
    assert sizes is not None, f"{signature} is not defined on {sorts}"
    kept = [
        "".join(x for x in axes if sizes.get(x, "n") == "n")
        for axes in (*signature.inputs, signature.output)
    ]
    return Contraction(tuple(kept[:-1]), kept[-1])
