"""All random choices of a mixing run, drawn before any graph is seen, and how to follow them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..grammars.rules import Rule
from ..language.sorts import Sort
from .layered_grammar import LayeredGrammar
from .modular import PRIMES
from .word_memory import BATCH_ENTRIES, Application, Batch, Draws, WordMemory, choices

_READOUTS = 3  # random sentences per rule and layer
_BATCHES = 12  # arrays of a batch's size that are alive at once, measured


@dataclass(frozen=True, eq=False)
class Schedule:
    """All random choices of a run, made before any graph is seen.

    Attributes:
        grammar: Whose rules they are for.
        layers: Per layer the rules to apply and the combinations to apply them to.
        readouts: Per layer from 0 on, the sentences to compare.
        counts: How many words of each sort there are in the end.
        width: The number of combinations per rule and layer.
    """

    grammar: LayeredGrammar
    layers: tuple[tuple[Application, ...], ...]
    readouts: tuple[tuple[Application, ...], ...]
    counts: dict[Sort, int]
    width: int

    @classmethod
    def draw(cls, grammar: LayeredGrammar, layers: int, width: int, prime: int) -> "Schedule":
        """Draw the combinations of every layer.

        Raises:
            DataError: If `layers` or `width` makes no sense.
        """
        if layers < 0 or width < 1:
            raise DataError(
                f"mixing with {layers} layers and width {width}: expected 0 or more layers and a "
                "width of 1 or more"
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
        return sum(count * int(nodes**sort.boundary) for sort, count in self.counts.items())

    def needed(self, sizes: Sequence[int]) -> int:
        """Bytes a run takes on graphs of these sizes, all held at the same time."""
        matrices = [size**2 for size in sizes]
        batch = max(BATCH_ENTRIES, *matrices)
        return 8 * (sum(map(self.entries, sizes)) + 2 * sum(matrices) + _BATCHES * batch)


def _draw_all(
    draws: Draws, rules: Sequence[Rule], counts: dict[Sort, int], width: int
) -> tuple[Application, ...]:
    """Combinations for each rule, no more of them than there are ways to apply it."""
    return tuple(
        draws.random(min(width, choices(rule, counts)), rule, counts)
        for rule in rules
        if choices(rule, counts)
    )


def grow(schedule: Schedule, memory: WordMemory) -> Iterator[list[Batch]]:
    """Follow a schedule layer by layer, adding words to the memory.

    Yields:
        For each layer from 0 on, the values of the scheduled sentences; the memory then holds the
        words up to that layer.
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


def check_memory(schedule: Schedule, sizes: Sequence[int], limit: int) -> None:
    """Refuse before allocating what would not fit.

    Args:
        schedule: What is to be run.
        sizes: Nodes of the graphs that are held at the same time.
        limit: Bytes.

    Raises:
        DataError: Saying what it would take, and how many layers fit.
    """
    needed = schedule.needed(sizes)
    if needed <= limit:
        return
    shown = " and ".join(f"{size:,}" for size in sizes)
    raise DataError(
        f"engine 'mixing' with {len(schedule.layers)} layers of width {schedule.width} keeps "
        f"{sum(schedule.counts.values())} words on {shown} nodes and takes "
        f"{needed / 2**30:,.1f} GiB, the limit is {limit / 2**30:,.1f} GiB: "
        f"{_advice(schedule, sizes, limit)}, or raise memory_limit"
    )


def _advice(schedule: Schedule, sizes: Sequence[int], limit: int) -> str:
    """How many layers would fit."""
    for width in (schedule.width, 1):
        for layers in reversed(range(len(schedule.layers))):
            if Schedule.draw(schedule.grammar, layers, width, PRIMES[0]).needed(sizes) <= limit:
                return f"{layers} layers of width {width} would fit"
    return "not even the constants fit"
