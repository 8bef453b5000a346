"""What a network can hold in a channel: linear combinations of atoms.

Selectors and the last map of an MLP are linear, so sums and numbers cost nothing. What costs is an
atom: an input channel, one application of a rule, or a pointwise function inside an MLP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ..grammars.rules import Rule
from ..language.sorts import S, Sort


@dataclass(frozen=True)
class Channel:
    """A channel of the first memories."""

    index: int


@dataclass(frozen=True)
class Constant:
    """The number one, where the scalar memory does not start with it: a bias."""


@dataclass(frozen=True)
class Application:
    """One occurrence of a rule in a layer."""

    rule: Rule
    operands: tuple[Combination, ...]


@dataclass(frozen=True)
class Pointwise:
    """Functions, the innermost first, of each entry: hidden units of a layer's MLP."""

    functions: tuple[str, ...]
    argument: Combination


@dataclass(frozen=True, eq=False)
class Atom:
    """A value that takes work, made in `layer` (0: given); two atoms never stand for the same."""

    number: int
    sort: Sort
    layer: int
    made: Channel | Constant | Application | Pointwise
    needs: frozenset[int]

    def __repr__(self) -> str:
        return f"Atom {self.number}"


Combination = tuple[tuple[Atom, Fraction], ...]
"""Σ coefficient × atom, atoms of one sort in the order of their numbers, no coefficient zero."""


class AtomTable:
    """Makes each atom once."""

    def __init__(self) -> None:
        self._known: dict[object, Atom] = {}

    def channel(self, sort: Sort, index: int) -> Combination:
        return self._single(sort, 0, Channel(index), ())

    def constant(self) -> Combination:
        return self._single(S, 1, Constant(), ())

    def application(self, rule: Rule, operands: tuple[Combination, ...]) -> Combination:
        layer = 1 + max(layer_of(operand) for operand in operands)
        return self._single(rule.head, layer, Application(rule, operands), operands)

    def pointwise(
        self, sort: Sort, functions: tuple[str, ...], argument: Combination
    ) -> Combination:
        """A function may read what rules give in its own layer, but no function of that layer."""
        layer = max(
            [1, *(a.layer + isinstance(a.made, (Pointwise, Constant)) for a, _ in argument)]
        )
        return self._single(sort, layer, Pointwise(functions, argument), (argument,))

    def _single(
        self,
        sort: Sort,
        layer: int,
        made: Channel | Constant | Application | Pointwise,
        below: tuple[Combination, ...],
    ) -> Combination:
        key = sort, made
        if key not in self._known:
            number = len(self._known)
            needs = frozenset((number,)).union(*(a.needs for c in below for a, _ in c))
            self._known[key] = Atom(number, sort, layer, made, needs)
        return ((self._known[key], Fraction(1)),)


def combined(parts: Iterable[tuple[Fraction, Combination]]) -> Combination:
    """`Σ number × combination`."""
    total: dict[Atom, Fraction] = {}
    for number, combination in parts:
        for atom, coefficient in combination:
            total[atom] = total.get(atom, Fraction(0)) + number * coefficient
    kept = ((atom, x) for atom, x in total.items() if x)
    return tuple(sorted(kept, key=lambda item: item[0].number))


def layer_of(combination: Combination) -> int:
    """The layer after which all atoms of a combination are there."""
    return max((atom.layer for atom, _ in combination), default=0)


def work(combinations: Iterable[Combination]) -> tuple[int, int]:
    """Layers and atoms that combinations take: what a schedule keeps small, in this order."""
    given = tuple(combinations)
    needs: frozenset[int] = frozenset().union(*(a.needs for c in given for a, _ in c))
    return max(map(layer_of, given), default=0), len(needs)
