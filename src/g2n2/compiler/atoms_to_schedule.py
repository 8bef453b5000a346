"""What each memory must hold after each layer, found from the last layer back.

A memory never holds more than what is needed later: a combination of atoms that is only carried on
takes one channel, however many atoms it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from ..grammars.rules import Rule
from ..language.sorts import SORTS, Sort
from .atoms import Application, Atom, Channel, Combination, Pointwise


@dataclass(frozen=True)
class Basis:
    """The combinations in the channels of one memory."""

    channels: tuple[Combination, ...]

    def __len__(self) -> int:
        return len(self.channels)

    @cached_property
    def _places(self) -> dict[Combination, int]:
        return {_direction(c)[0]: place for place, c in enumerate(self.channels)}

    def coordinates(self, combination: Combination) -> dict[int, Fraction]:
        """Weights of the channels that sum to a combination this memory was made to hold."""
        if not combination:
            return {}
        direction, length = _direction(combination)
        if direction in self._places:
            place = self._places[direction]
            return {place: length / _direction(self.channels[place])[1]}
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
        found = dict.fromkeys(
            atom
            for channel in self.after[sort].channels
            for atom, _ in channel
            if atom.layer == self.number and isinstance(atom.made, Pointwise)
        )
        return list(found)


def stages(final: Iterable[Combination], depth: int, inputs: dict[Sort, int]) -> tuple[Stage, ...]:
    """The layers after which the memories hold what is read out."""
    after = _bases(final)
    found: list[Stage] = []
    for number in range(depth, 0, -1):
        needs, made = _needs(after, number)
        before = _bases(needs) if number > 1 else _given(needs, inputs)
        found.append(Stage(number, before, after, made))
        after = before
    return tuple(reversed(found))


def _needs(
    after: dict[Sort, Basis], number: int
) -> tuple[list[Combination], dict[Rule, tuple[Atom, ...]]]:
    """What a layer reads, and the atoms it makes by rules."""
    needs: list[Combination] = []
    made: dict[Rule, dict[Atom, None]] = {}
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
                made.setdefault(atom.made.rule, {})[atom] = None
                needs.extend(atom.made.operands)
            elif isinstance(atom.made, Pointwise):
                waiting.append(atom.made.argument)
    return needs, {rule: tuple(atoms) for rule, atoms in made.items()}


def _bases(needs: Iterable[Combination]) -> dict[Sort, Basis]:
    """For each sort the combinations needed, or their atoms where those are fewer."""
    wanted: dict[Sort, dict[Combination, None]] = {sort: {} for sort in SORTS}
    for combination in needs:
        if combination:
            wanted[combination[0][0].sort][_direction(combination)[0]] = None
    return {sort: _smaller(list(found)) for sort, found in wanted.items()}


def _smaller(found: Sequence[Combination]) -> Basis:
    atoms = dict.fromkeys(atom for combination in found for atom, _ in combination)
    singles = tuple(((atom, Fraction(1)),) for atom in atoms)
    return Basis(singles if len(singles) < len(found) else tuple(found))


def _given(needs: Iterable[Combination], inputs: dict[Sort, int]) -> dict[Sort, Basis]:
    """The first memories, channel by channel; one that is not needed is an empty combination."""
    channels: dict[Sort, list[Combination]] = {s: [()] * inputs.get(s, 0) for s in SORTS}
    for combination in needs:
        for atom, _ in combination:
            assert isinstance(atom.made, Channel)
            channels[atom.sort][atom.made.index] = ((atom, Fraction(1)),)
    return {sort: Basis(tuple(found)) for sort, found in channels.items()}


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
