"""What a variable's memory holds in a grammar's WL test, and how a round renews it.

A memory gives every entry a vector; rules read random linear functionals of it, drawn once for all
graphs. Before the first round the vector is the terminals' values. After it, it is

* `any`: the unit vector of the entry's colour;
* `zero`: the same, and the zero vector where all the entry ever read was zero, as f(0) = 0;
* `homogeneous`: the unit vector of the ray the entry's input lies on, times its length along the
  ray, as f(t·x) = t·f(x) for t > 0. Rays are compared up to a factor of the field, which is right
  where all numbers are at least 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..grammars.network_rules import Mixing
from ..language.modular import Residues, combined, reduced
from .colours import Colours, joint_ranks
from .exact_constants import inverses

DRAWS = 4
"""Random points per prime."""

PerStack: TypeAlias = list[list[Residues]]
"""Per stack of graphs and per prime, `[DRAWS, graphs, rows, columns]`."""

Columns: TypeAlias = list[NDArray[np.int64]]


class Memory(Protocol):
    """The vectors of one variable on all stacks."""

    colours: list[Colours]  # per stack `[graphs, rows, columns]`, equal where the vectors are
    # how many different vectors there are, multiples of one another counted once where functions
    # are homogeneous
    count: int
    zero: list[NDArray[np.bool_]]  # per stack, where the vector is zero

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        """Independent random linear functionals of the vectors, `DRAWS` for each prime."""
        ...


class ValueMemory:
    """Values of terminals: per stack and prime, `[channels, graphs, rows, columns]`."""

    def __init__(self, channels: PerStack) -> None:
        self.channels = channels
        self.colours, self.count = joint_ranks(
            [[column for field in stack for column in field] for stack in channels]
        )
        self.zero = _all_zero(channels)

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        width = len(self.channels[0][0])
        tables = [_random(rng, prime, width) for prime in primes]
        return [
            [
                combined(table, field, prime)
                for field, table, prime in zip(stack, tables, primes, strict=True)
            ]
            for stack in self.channels
        ]


class ColourMemory:
    """Unit vectors by colour; the zero vector where `zero` says so."""

    def __init__(
        self, colours: list[Colours], count: int, zero: list[NDArray[np.bool_]] | None = None
    ) -> None:
        self.colours, self.count = colours, count
        self.zero = zero or [np.zeros(part.shape, dtype=np.bool_) for part in colours]

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        tables = [_random(rng, prime, self.count) for prime in primes]
        for part, zero in zip(self.colours, self.zero, strict=True):
            if zero.any():
                number = part[zero][0]
                for table in tables:
                    table[:, number] = 0
        return [[table[:, part] for table in tables] for part in self.colours]


class RayMemory:
    """Unit vectors by the number of their ray, times a length that every draw measures itself."""

    def __init__(
        self, rays: list[Colours], count: int, lengths: PerStack, primes: Sequence[int]
    ) -> None:
        self.rays, self.count, self.lengths = rays, count, lengths
        self.colours, _ = joint_ranks([_packed(stack, primes) for stack in lengths])
        self.zero = _all_zero(lengths)

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        tables = [_random(rng, prime, self.count) for prime in primes]
        return [
            [
                reduced(table[:, part] * length, prime)
                for table, length, prime in zip(tables, lengths, primes, strict=True)
            ]
            for part, lengths in zip(self.rays, self.lengths, strict=True)
        ]


class LiftedMemory:
    """A memory of graphs as that of their marked copies, one after the other."""

    def __init__(self, memory: Memory, copies: Sequence[int]) -> None:
        self.memory, self.copies = memory, copies
        self.colours, self.zero = (
            [np.repeat(part, count, axis=0) for part, count in zip(parts, copies, strict=True)]
            for parts in (memory.colours, memory.zero)
        )
        self.count = memory.count

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        return [
            [np.repeat(field, count, axis=1) for field in stack]
            for stack, count in zip(self.memory.sample(primes, rng), self.copies, strict=True)
        ]


class JoinedMemory:
    """The vectors of two memories, one behind the other."""

    def __init__(self, first: Memory, second: Memory) -> None:
        self.parts = first, second
        both = zip(first.colours, second.colours, strict=True)
        self.colours, self.count = joint_ranks([[x, y] for x, y in both])
        self.zero = [x & y for x, y in zip(first.zero, second.zero, strict=True)]

    def sample(self, primes: Sequence[int], rng: np.random.Generator) -> PerStack:
        first, second = (part.sample(primes, rng) for part in self.parts)
        return added(first, second, primes)


def renewed(
    old: Memory | None,
    sums: PerStack | None,
    mixing: Mixing,
    primes: Sequence[int],
    rng: np.random.Generator,
) -> Memory | None:
    """The memory after a round, from the one before it and the sums of its rules."""
    if old is None and sums is None:
        return None
    if mixing == "homogeneous":
        return _rays(old, sums, primes, rng)
    memory = ranked(old, sums, primes)
    if mixing == "zero":
        parts = [*([old.zero] if old is not None else []), *([_all_zero(sums)] if sums else [])]
        memory.zero = [np.logical_and.reduce(zeros) for zeros in zip(*parts, strict=True)]
    return memory


def ranked(old: Memory | None, sums: PerStack | None, primes: Sequence[int]) -> ColourMemory:
    """Colours that are equal where the old ones and all sums are."""
    parts: list[list[Columns]] = []
    if old is not None:
        parts.append([[part] for part in old.colours])
    if sums is not None:
        parts.append([_packed(stack, primes) for stack in sums])
    return ColourMemory(*joint_ranks([[*chain(*columns)] for columns in zip(*parts, strict=True)]))


def _rays(
    old: Memory | None, sums: PerStack | None, primes: Sequence[int], rng: np.random.Generator
) -> RayMemory:
    parts = [] if old is None else [old.sample(primes, rng)]
    parts += [] if sums is None else [sums]
    lengths = parts[0] if len(parts) == 1 else added(parts[0], parts[1], primes)
    keys = []
    for stack in lengths:
        directions = []
        for field, prime in zip(stack, primes, strict=True):
            first = np.argmax(field != 0, axis=0)
            unit = inverses(np.take_along_axis(field, first[None], axis=0), prime)
            directions.append(reduced(field * unit, prime))
        keys.append(_packed(directions, primes))
    rays, count = joint_ranks(keys)
    return RayMemory(rays, count, lengths, primes)


def added(first: PerStack, second: PerStack, primes: Sequence[int]) -> PerStack:
    """The sums of two arrays per stack and prime."""
    return [
        [reduced(a + b, prime) for a, b, prime in zip(x, y, primes, strict=True)]
        for x, y in zip(first, second, strict=True)
    ]


def _all_zero(values: PerStack) -> list[NDArray[np.bool_]]:
    return [np.logical_and.reduce([(x == 0).all(axis=0) for x in stack]) for stack in values]


def _random(rng: np.random.Generator, prime: int, size: int) -> Residues:
    return rng.integers(0, prime, size=(DRAWS, size)).astype(np.float64)


def _packed(fields: Sequence[Residues], primes: Sequence[int]) -> Columns:
    """Two residues below 2 ** 26 in each integer."""
    columns = []
    for field, prime in zip(fields, primes, strict=True):
        numbers = field.astype(np.int64)
        columns += [numbers[i] * prime + numbers[i + 1] for i in range(0, DRAWS, 2)]
    return columns
