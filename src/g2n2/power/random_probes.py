"""Random linear combinations of words: many or large graphs at once, up to a number of layers.

In each layer every rule is applied to `width` random combinations of all words so far, drawn once
for all graphs, so graphs that are equal to the grammar get equal numbers. A difference between two
read-outs is exact: some sentence of that depth differs. Equality is evidence only: the words are a
random sample of each layer, and there may be more layers. In exchange memory grows with layers
times width instead of with the square of the number of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..grammars.grammar import Grammar
from ..grammars.layered_grammar import LayeredGrammar
from ..grammars.rules import Rule
from ..graphs import Adjacency, GraphLike, adjacency
from ..language.modular import PRIMES
from ..language.sorts import Sort
from .closure import Place, SentenceDifference, close, find_difference
from .colours import ColourHistory, chunks_by_size
from .memory_limit import DEFAULT_MEMORY_LIMIT, check_memory
from .word_memory import (
    BATCH_ENTRIES,
    Batch,
    Draws,
    RuleApplication,
    Stack,
    WordMemory,
    choices,
    stacked,
)

Classes = NDArray[np.int64]

LAYERS = 8
WIDTH = 2
_CHUNK_ENTRIES = 2**22
_READOUTS = 3  # random sentences per rule and layer
_BATCHES = 12  # arrays of a batch's size that are alive at once, measured


@dataclass(frozen=True, eq=False)
class Schedule:
    """All random choices of a run, made before any graph is seen."""

    grammar: LayeredGrammar  # whose rules they are for
    # per layer the rules to apply and the combinations to apply them to
    layers: tuple[tuple[RuleApplication, ...], ...]
    # per layer from 0 on, the sentences to compare
    readouts: tuple[tuple[RuleApplication, ...], ...]
    counts: dict[Sort, int]  # how many words of each sort there are in the end
    width: int  # the number of combinations per rule and layer

    @classmethod
    def draw(cls, grammar: LayeredGrammar, layers: int, width: int, prime: int) -> Schedule:
        """Draw the combinations of every layer."""
        if layers < 0 or width < 1:
            raise DataError(
                f"random probes with {layers} layers and width {width}: expected 0 or more layers "
                "and a width of 1 or more"
            )
        draws = Draws(prime, np.random.default_rng(prime + width), grammar.affine)
        counts = dict.fromkeys(grammar.sorts, 0)
        for rule in grammar.constants:
            counts[rule.head] += 1
        steps, readouts = [], [_draw_all(draws, grammar.sentences, counts, _READOUTS)]
        for _ in range(layers):
            step = _draw_all(draws, grammar.rules, counts, width)
            for application in step:
                counts[application.rule.head] += application.count
            steps.append(step)
            readouts.append(_draw_all(draws, grammar.sentences, counts, _READOUTS))
        return cls(grammar, tuple(steps), tuple(readouts), counts, width)

    def entries(self, nodes: int) -> int:
        """How many numbers the words of one graph take."""
        orders = {sort: sort.boundary + sort.scope for sort in self.counts}
        return sum(count * int(nodes ** orders[sort]) for sort, count in self.counts.items())

    def needed(self, sizes: Sequence[int]) -> int:
        """Bytes a run takes on graphs of these sizes, all held at the same time."""
        matrices = [int(size ** (2 + self.grammar.scope)) for size in sizes]
        batch = max(BATCH_ENTRIES, *matrices)
        return 8 * (sum(map(self.entries, sizes)) + 2 * sum(matrices) + _BATCHES * batch)


def _draw_all(
    draws: Draws, rules: Sequence[Rule], counts: dict[Sort, int], width: int
) -> tuple[RuleApplication, ...]:
    """Combinations for each rule, no more of them than there are ways to apply it."""
    return tuple(
        draws.random(min(width, choices(rule, counts)), rule, counts)
        for rule in rules
        if choices(rule, counts)
    )


def grow(schedule: Schedule, memory: WordMemory) -> Iterator[list[Batch]]:
    """Follow a schedule: yield the scheduled sentences' values of each layer from 0 on.

    The memory then holds the words up to that layer.
    """
    for layer, readouts in enumerate(schedule.readouts):
        step = schedule.layers[layer] if layer < len(schedule.layers) else ()
        if sum(each.count for each in (*readouts, *step)) <= memory.batch_size:
            batches = memory.apply([*readouts, *step])  # all at once, which is faster
            yield batches[: len(readouts)]
            for application, batch in zip(step, batches[len(readouts) :], strict=True):
                memory.add(application, batch, list(range(application.count)), layer + 1)
            continue
        yield [memory.apply([application])[0] for application in readouts]
        for application in step:
            for part in memory.parts(application):
                memory.add(part, memory.apply([part])[0], list(range(part.count)), layer + 1)


def check_schedule(schedule: Schedule, sizes: Sequence[int], limit: int) -> None:
    """Refuse what would not fit before allocating it, for graphs of `sizes` held at one time."""
    needed = schedule.needed(sizes)
    if needed <= limit:
        return
    fits = "not even the constants fit"
    for width, layers in product((1, schedule.width), range(len(schedule.layers))):
        if Schedule.draw(schedule.grammar, layers, width, PRIMES[0]).needed(sizes) <= limit:
            fits = f"{layers} layers of width {width} would fit"
    shown = " and ".join(f"{size:,}" for size in sizes)
    check_memory(
        f"engine 'random_probes' with {len(schedule.layers)} layers of width {schedule.width} "
        f"keeps {sum(schedule.counts.values())} words on {shown} nodes and takes",
        needed,
        limit,
        f"{fits}, or raise memory_limit",
    )


@dataclass(frozen=True, eq=False)
class ProbedClasses(ColourHistory):
    """Classes of graphs by layer: graphs of one class have not been told apart up to it."""

    readout: str  # the read-out, in words
    primes: tuple[int, ...]  # the moduli used


def probe_graphs(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    layers: int = LAYERS,
    readout: str | None = None,
    width: int = WIDTH,
    primes: Sequence[int] = PRIMES[:2],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Callable[[int], None] | None = None,
) -> ProbedClasses:
    """Sort graphs into classes by random sentences of growing depth; options as for `separate`.

    The first prime is used on all graphs, each further one on those that still share a class.
    `progress` is called with the number of graphs done since the last call.
    """
    layered = LayeredGrammar.of(grammar, readout)
    matrices = [adjacency(graph) for graph in graphs]
    history = np.zeros((layers + 1, len(matrices)), dtype=np.int64)
    left = np.arange(len(matrices))
    for number, prime in enumerate(primes):
        schedule = Schedule.draw(layered, layers, width, prime)
        largest = max((len(matrices[index]) for index in left), default=1)
        check_schedule(schedule, [largest], memory_limit)
        report = progress if number == 0 else None
        features = _features(schedule, [matrices[index] for index in left], prime, report)
        history = _refined(history, left, features)
        classes, sizes = np.unique(history[-1], return_counts=True)
        left = np.flatnonzero(np.isin(history[-1], classes[sizes > 1]))
        if not left.size:
            primes = primes[: number + 1]
            break
    return ProbedClasses(tuple(history), layered.readout, tuple(primes))


def probe_pair(
    grammar: LayeredGrammar,
    graphs: Sequence[Adjacency],
    places: Sequence[Place],
    layers: int = LAYERS,
    width: int = WIDTH,
    prime: int = PRIMES[0],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> SentenceDifference | None:
    """Look for a difference between two places, layer by layer, keeping what it was made from."""
    schedule = Schedule.draw(replace(grammar, sentences=()), layers, width, prime)
    check_schedule(schedule, [len(graph) for graph in graphs], memory_limit)
    stacks, where = stacked(graphs, grammar, prime)
    targets = tuple((*where[place.graph], place.row, place.column) for place in places)
    memory = WordMemory(grammar, stacks, schedule.counts)
    draws = Draws(prime, np.random.default_rng(prime), grammar.affine)
    for layer, _ in enumerate(grow(schedule, memory)):
        difference = find_difference(memory, targets, layer, draws)
        if difference is not None:
            return difference
    return None


def _features(
    schedule: Schedule,
    graphs: Sequence[Adjacency],
    prime: int,
    progress: Callable[[int], None] | None,
) -> list[NDArray[np.float64]]:
    """Per layer the sentences' values of every graph; some graphs of one size at a time."""
    by_layer: list[list[NDArray[np.float64]]] = []
    order: list[int] = []
    grammar = schedule.grammar
    for chunk in chunks_by_size(graphs, schedule.entries, _CHUNK_ENTRIES):
        members = [graphs[index] for index in chunk]
        stack = Stack(members, grammar.supports, prime, grammar.marks)
        memory = WordMemory(grammar, [stack], schedule.counts)
        none = np.zeros((0, len(chunk)))  # [sentences, graphs], for a grammar without sentences
        by_layer.append(
            [
                np.concatenate([none, *(batch[0][..., 0, 0] for batch in batches)]).T
                for batches in grow(schedule, memory)
            ]
        )
        order += chunk
        if progress is not None:
            progress(len(chunk))
    back = np.argsort(np.array(order, dtype=np.int64))
    return [np.concatenate(parts)[back] for parts in zip(*by_layer, strict=True)]


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


def graph_classes(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    readout: str | None = None,
    layers: int = LAYERS,
    width: int = WIDTH,
) -> Classes:
    """Sort graphs into classes that no sentence tells apart, exactly: one class number per graph.

    Random probes split them first, which is exact where they split; what they leave together is
    compared by closure, each graph with one member of each class so far.
    """
    layered = LayeredGrammar.of(grammar, readout)
    matrices = [adjacency(graph) for graph in graphs]
    rough = probe_graphs(grammar, graphs, layers, readout, width).graph_colours

    def same(first: int, second: int) -> bool:
        pair, places = (matrices[first], matrices[second]), (Place(0), Place(1))
        return all(close(layered, pair, places, p).difference is None for p in PRIMES[:2])

    members: dict[int, list[int]] = {}  # of each rough class, the first graph of each exact class
    classes = np.empty(len(matrices), dtype=np.int64)
    number = 0
    for index in sorted(range(len(matrices)), key=lambda index: int(rough[index])):
        firsts = members.setdefault(int(rough[index]), [])
        like = next((first for first in firsts if same(first, index)), None)
        if like is None:
            firsts.append(index)
            classes[index], number = number, number + 1
        else:
            classes[index] = classes[like]
    return classes
