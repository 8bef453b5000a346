"""Atoms -> schedule: what each memory holds after each layer, computed from the last layer back.

An atom is an input, or a rule applied to linear combinations of atoms. A memory holds only what a
later layer needs: a combination of atoms that is only passed on takes one channel, however many
atoms it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from ..grammars.rules import Rule
from ..language.sorts import SORTS, S, Sort


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
        self._atoms: dict[object, Atom] = {}

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
        origin: Channel | Constant | Application | Pointwise,
        below: tuple[Combination, ...],
    ) -> Combination:
        key = sort, origin
        if key not in self._atoms:
            number = len(self._atoms)
            needs = frozenset((number,)).union(*(a.needs for c in below for a, _ in c))
            self._atoms[key] = Atom(number, sort, layer, origin, needs)
        return ((self._atoms[key], Fraction(1)),)


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


@dataclass(frozen=True)
class Basis:
    """The combinations in the channels of one memory."""

    channels: tuple[Combination, ...]

    def __len__(self) -> int:
        return len(self.channels)

    @cached_property
    def _places(self) -> dict[Combination, int]:
        return {_direction(c)[0]: index for index, c in enumerate(self.channels)}

    def coordinates(self, combination: Combination) -> dict[int, Fraction]:
        """Weights of the channels that sum to a combination this memory was made to hold."""
        if not combination:
            return {}
        direction, length = _direction(combination)
        if direction in self._places:
            index = self._places[direction]
            return {index: length / _direction(self.channels[index])[1]}
        return {self._places[((atom, Fraction(1)),)]: x for atom, x in combination}


@dataclass(frozen=True)
class Stage:
    """One layer: what its memories hold before and after, and the rules it applies."""

    number: int
    before: dict[Sort, Basis]
    after: dict[Sort, Basis]
    applications: dict[Rule, tuple[Atom, ...]]

    def parted(self, combination: Combination) -> tuple[Combination, list[tuple[Atom, Fraction]]]:
        """What comes from the memory before, and what this layer makes."""
        earlier = tuple(item for item in combination if item[0].layer < self.number)
        return earlier, [item for item in combination if item[0].layer == self.number]

    def pointwise(self, sort: Sort) -> list[Atom]:
        """The functions this layer's MLP computes for a memory."""
        atoms = dict.fromkeys(
            atom
            for channel in self.after[sort].channels
            for atom, _ in channel
            if atom.layer == self.number and isinstance(atom.made, Pointwise)
        )
        return list(atoms)


def stages(final: Iterable[Combination], depth: int, inputs: dict[Sort, int]) -> tuple[Stage, ...]:
    """The layers after which the memories hold what is read out."""
    after = _bases(final)
    backwards: list[Stage] = []
    for number in range(depth, 0, -1):
        needs, applications = _needs(after, number)
        before = _bases(needs) if number > 1 else _given(needs, inputs)
        backwards.append(Stage(number, before, after, applications))
        after = before
    return tuple(reversed(backwards))


def _needs(
    after: dict[Sort, Basis], number: int
) -> tuple[list[Combination], dict[Rule, tuple[Atom, ...]]]:
    """What a layer reads, and the atoms it makes by rules."""
    needs: list[Combination] = []
    applications: dict[Rule, dict[Atom, None]] = {}
    waiting = [channel for basis in after.values() for channel in basis.channels]
    seen: set[Atom] = set()
    while waiting:
        combination = waiting.pop()
        earlier = tuple(item for item in combination if item[0].layer < number)
        needs.append(earlier)
        for atom, _ in combination:
            if atom.layer < number or atom in seen:
                continue
            seen.add(atom)
            if isinstance(atom.made, Application):
                applications.setdefault(atom.made.rule, {})[atom] = None
                needs.extend(atom.made.operands)
            elif isinstance(atom.made, Pointwise):
                waiting.append(atom.made.argument)
    return needs, {rule: tuple(atoms) for rule, atoms in applications.items()}


def _bases(needs: Iterable[Combination]) -> dict[Sort, Basis]:
    """For each sort the combinations needed, or their atoms where those are fewer."""
    wanted: dict[Sort, dict[Combination, None]] = {sort: {} for sort in SORTS}
    for combination in needs:
        if combination:
            wanted[combination[0][0].sort][_direction(combination)[0]] = None
    return {sort: _smaller(list(combinations)) for sort, combinations in wanted.items()}


def _smaller(combinations: Sequence[Combination]) -> Basis:
    atoms = dict.fromkeys(atom for combination in combinations for atom, _ in combination)
    singles = tuple(((atom, Fraction(1)),) for atom in atoms)
    return Basis(singles if len(singles) < len(combinations) else tuple(combinations))


def _given(needs: Iterable[Combination], inputs: dict[Sort, int]) -> dict[Sort, Basis]:
    """The first memories, channel by channel; one that is not needed is an empty combination."""
    channels: dict[Sort, list[Combination]] = {s: [()] * inputs.get(s, 0) for s in SORTS}
    for combination in needs:
        for atom, _ in combination:
            assert isinstance(atom.made, Channel)
            channels[atom.sort][atom.made.index] = ((atom, Fraction(1)),)
    return {sort: Basis(tuple(combinations)) for sort, combinations in channels.items()}


def _direction(combination: Combination) -> tuple[Combination, Fraction]:
    """A combination as a number times whole coefficients, the first above zero, of gcd one.

    Whole weights keep whole numbers exact in floating point, as 1/3 would not.
    """
    if not combination:
        return (), Fraction(1)
    size = Fraction(
        gcd(*(x.numerator for _, x in combination)), lcm(*(x.denominator for _, x in combination))
    )
    length = size if combination[0][1] > 0 else -size
    return tuple((atom, x / length) for atom, x in combination), length
