"""Which small graphs a grammar, its WL test or a network tells apart, against a WL test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any, Protocol

from ..errors import G2N2Error
from ..grammars.grammar import Grammar
from ..graphs import Adjacency, parse_graph6, to_graph6
from ..graphs.names import graph_name, graph_text, pair_text
from ..language.operations import Operation, registered_operations
from ..language.sorts import Sort
from .grammar_test import GrammarColours, Inputs, Mixing, grammar_test
from .random_probes import probe_graphs
from .refinement import WLTest
from .separation import separate
from .suites import atlas
from .witnesses import LARGER_PAIRS, SMALL_PAIRS, TWO_SIZES

Classes = Sequence[int]
Pair = tuple[int, int]

MAX_CONFIRMED_PAIRS = 40
"""Candidate pairs that are confirmed at most: random mixing may merge what exact words split."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Graphs, and which pairs of them are looked at, the best known first."""

    text: str  # what the graphs are, in words
    graphs: tuple[Adjacency, ...]  # the graphs
    pairs: tuple[Pair, ...] | None = None  # the pairs; all of one size where None

    def wl(self, folklore: int) -> Classes:
        return _wl_classes(self, folklore)

    def split(self, coarse: Classes, fine: Classes) -> Iterator[Pair]:
        """Pairs that are one class of the first and two of the second."""
        if self.pairs is not None:
            yield from (p for p in self.pairs if _apart(p, fine) and not _apart(p, coarse))
            return
        groups: dict[tuple[int, int], list[int]] = {}
        for index, graph in enumerate(self.graphs):
            groups.setdefault((len(graph), int(coarse[index])), []).append(index)
        pairs = [
            pair
            for members in groups.values()
            for pair in combinations(members, 2)
            if _apart(pair, fine)
        ]
        yield from sorted(pairs, key=self._sort_key)

    def _sort_key(self, pair: Pair) -> tuple[int, int]:
        """Small pairs that have names go first."""
        nameless = sum(graph_name(self.graphs[index]) is None for index in pair)
        return len(self.graphs[pair[0]]), nameless


def _apart(pair: Pair, classes: Classes) -> bool:
    return bool(classes[pair[0]] != classes[pair[1]])


@cache
def _wl_classes(pool: Pool, folklore: int) -> Classes:
    classes: list[int] = WLTest("", folklore).refine(pool.graphs).graph_colours.tolist()
    return classes


@cache
def known_pairs() -> Pool:
    """The pairs every reader of WL knows."""
    return _of_pairs("well-known pairs", SMALL_PAIRS)


@cache
def last_pairs() -> Pool:
    """A pair of two sizes, and larger ones."""
    return _of_pairs("larger pairs", (*LARGER_PAIRS, TWO_SIZES))


def _of_pairs(text: str, pairs: Sequence[tuple[str, str]]) -> Pool:
    graphs = tuple(parse_graph6(line) for pair in pairs for line in pair)
    return Pool(text, graphs, tuple((i, i + 1) for i in range(0, len(graphs), 2)))


@cache
def all_graphs(nodes: int) -> Pool:
    """All graphs of at most so many nodes, up to 7."""
    graphs = tuple(graph for graph in atlas().graphs if len(graph) <= nodes)
    return Pool(f"all {len(graphs):,} graphs of at most {nodes} nodes", graphs)


class Probe(Protocol):
    """Something that tells graphs apart."""

    def classes(self, pool: Pool) -> Classes | None:
        """One class per graph; None where it cannot be decided."""

    def confirmed(self, first: Adjacency, second: Adjacency, apart: bool) -> str | None:
        """Why two graphs are told apart, or are not; None if the exact check disagrees."""


@dataclass(frozen=True)
class WordProbe:
    """The words of a grammar, exactly."""

    grammar: Grammar

    def classes(self, pool: Pool) -> Classes | None:
        try:
            return _word_classes(self.grammar, pool, registered_operations())
        except G2N2Error:
            return None

    def confirmed(self, first: Adjacency, second: Adjacency, apart: bool) -> str | None:
        separation = separate(self.grammar, first, second)
        if not apart:
            return "" if separation.verdict == "same" else None
        if not separation.different:
            return None
        return f"{separation.sentence} is {' against '.join(map(str, separation.values or ()))}"


@cache
def _word_classes(grammar: Grammar, pool: Pool, operations: tuple[Operation, ...]) -> Classes:
    classes: list[int] = probe_graphs(grammar, pool.graphs).graph_colours.tolist()
    return classes


@dataclass(frozen=True, eq=False)
class ColourProbe:
    """The WL test of a grammar, to the end or for some rounds."""

    grammar: Grammar  # the grammar
    # the words of the test in the limit, to show a sentence with; none for a network
    words: Grammar | None = None
    functions: Mixing | Mapping[Sort, Mixing] = "any"  # what stands on each memory
    rounds: int | None = None  # how many rounds; until nothing changes where None
    # what stands there after the last round, where that differs
    last_functions: Mapping[Sort, Mixing] | None = None
    inputs: Inputs = "values"  # how the first round reads the terminals

    @cached_property
    def _known(self) -> dict[Pool, GrammarColours]:
        return {}

    def colours(self, pool: Pool) -> GrammarColours:
        """What the test gives."""
        if pool not in self._known:
            self._known[pool] = grammar_test(
                self.grammar,
                pool.graphs,
                rounds=self.rounds,
                functions=self.functions,
                last_functions=self.last_functions,
                inputs=self.inputs,
            )
        return self._known[pool]

    def classes(self, pool: Pool) -> Classes | None:
        try:
            classes: list[int] = self.colours(pool).graph_colours.tolist()
        except G2N2Error:
            return None
        return classes

    def confirmed(self, first: Adjacency, second: Adjacency, apart: bool) -> str | None:
        if not apart or self.words is None:
            return ""
        try:
            return WordProbe(self.words).confirmed(first, second, apart) or ""
        except G2N2Error:
            return ""


@dataclass(frozen=True, eq=False)
class BoundProbe:
    """A grammar that cannot be evaluated, bounded from above by a test: only merges are certain."""

    bound: ColourProbe

    def classes(self, pool: Pool) -> Classes | None:
        return self.bound.classes(pool)

    def confirmed(self, first: Adjacency, second: Adjacency, apart: bool) -> str | None:
        return None if apart else self.bound.confirmed(first, second, apart)


def witness(
    probe: Probe, pool: Pool, other: Classes, name: str, *, more: bool
) -> tuple[str, dict[str, Any]] | None:
    """A pair that a probe tells apart and the other merges; with `more` False the other way round.

    `other` are the classes of the other, `name` what it is called. Gives a sentence, and JSON.
    """
    classes = probe.classes(pool)
    if classes is None:
        return None
    coarse, fine = (other, classes) if more else (classes, other)
    for tried, (i, j) in enumerate(pool.split(coarse, fine)):
        if tried >= MAX_CONFIRMED_PAIRS:
            break
        first, second = pool.graphs[i], pool.graphs[j]
        why = probe.confirmed(first, second, apart=more)
        if why is None:
            continue
        verbs = ("tells apart", "merges") if more else ("merges", "tells apart")
        text = f"{verbs[0]} {pair_text(first, second)}, which {name} {verbs[1]}"
        content = {
            "graphs": [to_graph6(first), to_graph6(second)],
            "names": [graph_text(first), graph_text(second)],
            "merged_by": name if more else "it",
            "told_apart_by": "it" if more else name,
            "why": why,
        }
        return (f"{text}: {why}" if why else text), content
    return None
