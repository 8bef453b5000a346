"""Randomised words with linear mixing: many or large graphs at once, up to a number of layers.

In each layer every rule is applied to `width` random combinations of all words so far; the
coefficients are drawn once and shared by all graphs, so equal graphs (in the grammar's eyes) get
equal numbers. A difference between two read-outs is exact: some sentence of that depth differs.
Equality is evidence only, twice over: the words made are a random sample of each layer, and there
may be more layers. In exchange nothing is ever reduced, and memory grows with layers times width
instead of with the square of the number of entries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..grammars.grammar import Grammar
from ..graphs import Adjacency, GraphLike, adjacency
from .closure import DEFAULT_MEMORY_LIMIT, Difference, Place, find_difference
from .layered_grammar import LayeredGrammar
from .modular import PRIMES
from .probe_schedule import Schedule, check_memory, grow
from .rule_values import Stack
from .word_memory import Batch, Draws, WordMemory, stacked

Classes = NDArray[np.int64]

LAYERS = 8
WIDTH = 2
_CHUNK_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class Mixing:
    """Classes of graphs by layer.

    Attributes:
        history: For each layer from 0 on, one class number per graph; graphs of one class have
            not been told apart by that many layers.
        readout: The read-out, in words.
        primes: The moduli used.
    """

    history: tuple[Classes, ...]
    readout: str
    primes: tuple[int, ...]

    def separated_at(self, first: int, second: int) -> int | None:
        """The first layer at which two graphs differ; None if none does."""
        for layer, classes in enumerate(self.history):
            if classes[first] != classes[second]:
                return layer
        return None

    def separated_by_layer(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """How many of the pairs are told apart at layers 0, 1, 2 …"""
        left, right = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
        return [int((classes[left] != classes[right]).sum()) for classes in self.history]


def mix(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    layers: int = LAYERS,
    readout: str | None = None,
    width: int = WIDTH,
    primes: Sequence[int] = PRIMES[:2],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Callable[[int], None] | None = None,
) -> Mixing:
    """Sort graphs into classes by random sentences of growing depth.

    Args:
        grammar: Any grammar without pointwise functions.
        graphs: Graphs of any sizes.
        layers: How deep to go.
        readout: As for `separate`.
        width: Random combinations per rule and layer.
        primes: The first is used on all graphs, each further one on those that still share a class.
        memory_limit: Bytes the words of one graph may take.
        progress: Called with the number of graphs done since the last call.

    Raises:
        DataError: If a graph is malformed or too large for the memory.
        GrammarError: If the grammar cannot be evaluated exactly.
    """
    layered = LayeredGrammar.of(grammar, readout)
    matrices = [adjacency(graph) for graph in graphs]
    history = np.zeros((layers + 1, len(matrices)), dtype=np.int64)
    left = np.arange(len(matrices))
    for number, prime in enumerate(primes):
        schedule = Schedule.draw(layered, layers, width, prime)
        check_memory(
            schedule, [max((len(matrices[index]) for index in left), default=1)], memory_limit
        )
        report = progress if number == 0 else None
        features = _features(schedule, [matrices[index] for index in left], prime, report)
        history = _refined(history, left, features)
        classes, sizes = np.unique(history[-1], return_counts=True)
        left = np.flatnonzero(np.isin(history[-1], classes[sizes > 1]))
        if not left.size:
            return Mixing(tuple(history), layered.readout, tuple(primes[: number + 1]))
    return Mixing(tuple(history), layered.readout, tuple(primes))


def mix_pair(
    grammar: LayeredGrammar,
    graphs: Sequence[Adjacency],
    places: Sequence[Place],
    layers: int = LAYERS,
    width: int = WIDTH,
    prime: int = PRIMES[0],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Difference | None:
    """Look for a difference between two places, layer by layer, keeping what it was made from."""
    schedule = Schedule.draw(replace(grammar, sentences=()), layers, width, prime)
    check_memory(schedule, [len(graph) for graph in graphs], memory_limit)
    stacks, where = stacked(graphs, grammar, prime)
    targets = tuple((*where[place.graph], place.row, place.column) for place in places)
    memory = WordMemory(grammar, stacks, schedule.counts)
    draws = Draws(prime, np.random.default_rng(prime), grammar.affine)
    for layer, _ in enumerate(grow(schedule, memory)):
        difference = find_difference(memory, targets, layer, draws)
        if difference is not None:
            return difference
    return None


def _joined(batches: Sequence[Batch], graphs: int) -> NDArray[np.float64]:
    """The sentences' values on the one stack there is, `[graphs, sentences]`."""
    return np.concatenate([np.zeros((0, graphs)), *(batch[0][..., 0, 0] for batch in batches)]).T


def _features(
    schedule: Schedule,
    graphs: Sequence[Adjacency],
    prime: int,
    progress: Callable[[int], None] | None,
) -> list[NDArray[np.float64]]:
    """Per layer the sentences' values of every graph; some graphs of one size at a time."""
    by_size: dict[int, list[int]] = {}
    for index, graph in enumerate(graphs):
        by_size.setdefault(len(graph), []).append(index)
    found: list[list[NDArray[np.float64]]] = []
    order: list[int] = []
    for nodes, group in by_size.items():
        step = max(1, _CHUNK_ENTRIES // max(1, schedule.entries(nodes)))
        for start in range(0, len(group), step):
            some = group[start : start + step]
            stack = Stack([graphs[index] for index in some], schedule.grammar.supports, prime)
            memory = WordMemory(schedule.grammar, [stack], schedule.counts)
            found.append([_joined(batches, len(some)) for batches in grow(schedule, memory)])
            order += some
            if progress is not None:
                progress(len(some))
    place = np.argsort(np.array(order, dtype=np.int64))
    return [np.concatenate(parts)[place] for parts in zip(*found, strict=True)]


def _refined(
    history: Classes, members: NDArray[np.int64], features: Sequence[NDArray[np.float64]]
) -> Classes:
    """Split the classes of every layer by what the members' sentences of that layer say.

    A class that has other graphs too stays whole: nothing new is known of those.
    """
    new = history.copy()
    others = np.setdiff1d(np.arange(history.shape[1]), members)
    for layer, values in enumerate(features):
        old = history[layer]
        whole = ~np.isin(old[members], old[others])
        keys = np.column_stack([old[members], values])[whole]
        numbers = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        new[layer, members[whole]] = old.max(initial=0) + 1 + numbers
    return new
