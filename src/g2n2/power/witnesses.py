"""Pairs of graphs that show one test stronger than another.

A witness for a rule: two graphs that a grammar tells apart with the rule and not without it. A
witness against a WL test: two graphs that a grammar (its words, its WL test, or a network) tells
apart and the test merges, or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from typing import Any

import numpy as np

from ..errors import G2N2Error
from ..grammars.grammar import Grammar, Rule
from ..grammars.layered_grammar import LayeredGrammar
from ..graphs import Adjacency, is_simple, parse_graph6, to_graph6
from ..graphs.families import rook_graph, shrikhande_graph
from ..graphs.names import graph_name, graph_text, pair_text
from ..language.operations import Operation, registered_operations
from ..language.sorts import Sort
from .colours import alike
from .grammar_test import GrammarColours, Inputs, Mixing, grammar_test
from .random_probes import probe_graphs
from .separation import Separation, separate
from .suites import atlas
from .wl_tests import WLTest

SMALL_PAIRS = (
    ("A?", "A_"),  # two nodes without and with an edge
    ("Cr", "Cs"),  # the 4-cycle with a chord less, and the star: same number of edges
    ("Dl?", "D?{"),  # C4 + K1 and K1,4: cospectral
    ("EhEG", "EJaG"),  # C6 and two triangles: 1-WL merges them
    ("FhEG?", "Fk_G_"),  # as many walks of every length, told apart by 1-WL
)
"""Pairs that show a rule to be needed in every fragment where all graphs of 7 nodes show it."""

LARGER_PAIRS = (
    ("K?dbCaiTUWEW", "K?YSbAiTUWEW"),  # CFI over K4−e: told apart by 3-WL, by few words
    ("O~`HW}GPHDaNaGPCcPWaN", "OlfJHsHBGK_\\oHWKeBK_\\"),  # rook 4×4, Shrikhande: 3-WL merges them
)
"""Pairs of more than 7 nodes, tried where no smaller one will do."""

_BREC_398 = "_????????????????????~?BBoDC[CaRAGdO`CkBCB_IGq?QIg?PFO?EFA?@Q{}??]O_??"
MARKED_PAIRS = ((_BREC_398.format("h??HWo??YR???lH?"), _BREC_398.format("e??HXG??YS_??lE?")),)
"""A pair of BREC (398) that 3-FWL tells apart and no sentence with one mark over L3."""

MARKED_LAYERS = 12
"""Layers of words looked at on large pairs where there are marks."""

TWO_SIZES = ("@", "A?")
"""One node and two: all that a grammar tells apart which only counts nodes."""

DIRECTED_PAIRS = (
    (((2, 1), (3, 1)), ((2, 1), (3, 0))),  # the same out-degrees, other in-degrees
    (((1, 2), (1, 3)), ((1, 2), (0, 3))),  # the other way round
    (((0, 1), (1, 2)), ((0, 1), (2, 1))),
)
"""Arcs of digraphs on four nodes, tried first where A need not be symmetric."""


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """Two graphs a grammar tells apart and a weaker one does not, and the sentence that does it."""

    first: Adjacency
    second: Adjacency
    separation: Separation

    def to_json(self) -> dict[str, Any]:
        separation, pair = self.separation, (self.first, self.second)
        return {
            "graphs": [to_graph6(g) if is_simple(g) else graph_text(g) for g in pair],
            "names": [graph_text(g) for g in pair],
            "sentence": str(separation.sentence),
            "values": [str(value) for value in separation.values or ()],
            "depth": separation.depth,
            "readout": separation.readout,
        }

    def __repr__(self) -> str:
        return f"Witness({self})"

    def __str__(self) -> str:
        values = zip(self.separation.values or (), (self.first, self.second), strict=True)
        shown = " and ".join(f"{value} on {graph_text(graph)}" for value, graph in values)
        return f"{self.separation.sentence} is {shown}"


@cache
def pair_of_rings() -> tuple[Adjacency, Adjacency]:
    """RRSS and RSRS: rook 4×4 and Shrikhande graphs, each joined to a centre, centres on a cycle.

    A mark sees only one of the four at a time; one mark that comes back out sees their order.
    """
    parts = {"R": rook_graph(4), "S": shrikhande_graph()}

    def ring(order: str) -> Adjacency:
        nodes = [len(parts[letter]) + 1 for letter in order]
        centres = np.cumsum(nodes) - 1
        matrix = np.zeros((sum(nodes), sum(nodes)))
        for letter, centre in zip(order, centres.tolist(), strict=True):
            start = centre - len(parts[letter])
            matrix[start:centre, start:centre] = parts[letter]
            matrix[start:centre, centre] = matrix[centre, start:centre] = 1.0
        matrix[centres, np.roll(centres, 1)] = matrix[np.roll(centres, 1), centres] = 1.0
        return matrix

    return ring("RRSS"), ring("RSRS")


def needed(grammar: Grammar, rule: Rule, directed: bool = False) -> Witness | None:
    """A pair that needs a rule: the grammar separates it, and no longer without the rule."""
    rest = tuple(r for r in grammar.all_rules if r != rule)
    without = Grammar.of(rest, grammar.name, grammar.supports, default_readout=False)
    silent = bool(without.unproductive()) or not without.sentence_rules
    pairs = (_directed_pairs() if directed else []) + known_pairs().listed()
    if grammar.marked:
        pairs += _of_pairs("larger pairs", LARGER_PAIRS).listed()
    return _first(grammar, None if silent else without, pairs, directed)


def between(stronger: Grammar, weaker: Grammar, directed: bool = False) -> Witness | None:
    """Two graphs that only the first grammar tells apart, if such a pair is known or small.

    Pairs tried: a few well-known ones, all of one size and at most 7 nodes, one pair of two sizes,
    and `LARGER_PAIRS`; with `directed` also `DIRECTED_PAIRS` and all digraphs of four nodes.
    """
    merging = weaker if weaker.sentence_rules else None

    def pairs() -> Iterator[tuple[Adjacency, Adjacency]]:
        yield from known_pairs().listed()
        yield from _small_pairs(stronger, merging, all_graphs(7))
        yield from _of_pairs("", (TWO_SIZES, *LARGER_PAIRS)).listed()
        if stronger.scope == weaker.scope == 1:  # two marks would fill the memory with 136 nodes
            yield pair_of_rings()
        if directed:
            yield from _directed_pairs()
            yield from _small_pairs(stronger, merging, digraphs())

    return _first(stronger, merging, pairs(), directed)


def _first(
    stronger: Grammar,
    weaker: Grammar | None,
    pairs: Iterable[tuple[Adjacency, Adjacency]],
    directed: bool = False,
) -> Witness | None:
    if stronger.sentence_rules:
        LayeredGrammar.of(stronger)  # what has no exact value is refused before any pair
    for g, h in pairs:
        if weaker is not None:
            without = separate(weaker, g, h, directed=directed, max_size=0)
            if without.verdict != "same":
                continue
        layers = MARKED_LAYERS if stronger.marked else None
        separation = separate(stronger, g, h, directed=directed, layers=layers)
        if separation.different:
            return Witness(g, h, separation)
    return None


def _small_pairs(
    stronger: Grammar, weaker: Grammar | None, pool: Pool
) -> Iterator[tuple[Adjacency, Adjacency]]:
    """Pairs the weaker grammar seems to merge and the stronger one splits, smallest first."""
    coarse = [0] * len(pool.graphs)
    if weaker is not None:
        coarse = probe_graphs(weaker, pool.graphs).graph_colours.tolist()
    if pool.merged(coarse):
        fine = probe_graphs(stronger, pool.graphs).graph_colours.tolist()
        for i, j in pool.split(coarse, fine):
            yield pool.graphs[i], pool.graphs[j]


def _directed_pairs() -> list[tuple[Adjacency, Adjacency]]:
    return [(_digraph(first), _digraph(second)) for first, second in DIRECTED_PAIRS]


def _digraph(arcs: tuple[tuple[int, int], ...]) -> Adjacency:
    matrix = np.zeros((4, 4))
    for i, j in arcs:
        matrix[i, j] = 1.0
    return matrix


Classes = Sequence[int]
Pair = tuple[int, int]

MAX_CONFIRMED_PAIRS = 40
"""Candidate pairs that are confirmed at most: random probes may merge what exact words split."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Graphs, and which pairs of them are looked at, the best known first."""

    text: str  # what the graphs are, in words
    graphs: tuple[Adjacency, ...]  # the graphs
    pairs: tuple[Pair, ...] | None = None  # the pairs; all of one size where None

    def listed(self) -> list[tuple[Adjacency, Adjacency]]:
        """The graphs of the pairs."""
        return [(self.graphs[i], self.graphs[j]) for i, j in self.pairs or ()]

    def wl(self, test: WLTest) -> Classes:
        return _wl_classes(self, test)

    def merged(self, classes: Classes) -> bool:
        """Whether some pair is one class."""
        if self.pairs is not None:
            return not all(_separated(pair, classes) for pair in self.pairs)
        return len(set(self._kinds(classes))) < len(self.graphs)

    def _kinds(self, classes: Classes) -> list[tuple[int, int]]:
        """Graphs of one kind have one size and one class."""
        return [(len(graph), int(c)) for graph, c in zip(self.graphs, classes, strict=True)]

    def split(self, coarse: Classes, fine: Classes) -> list[Pair]:
        """Pairs that are one class of the first and two of the second."""
        pairs = alike(self._kinds(coarse)) if self.pairs is None else self.pairs
        found = [p for p in pairs if _separated(p, fine) and not _separated(p, coarse)]

        def by_fame(pair: Pair) -> tuple[int, int]:
            """Small pairs that have names go first."""
            nameless = sum(graph_name(self.graphs[index]) is None for index in pair)
            return len(self.graphs[pair[0]]), nameless

        return sorted(found, key=by_fame) if self.pairs is None else found


def _separated(pair: Pair, classes: Classes) -> bool:
    return bool(classes[pair[0]] != classes[pair[1]])


@cache
def _wl_classes(pool: Pool, test: WLTest) -> Classes:
    classes: list[int] = test.refine(pool.graphs).graph_colours.tolist()
    return classes


@cache
def known_pairs() -> Pool:
    """The pairs every reader of WL knows."""
    return _of_pairs("well-known pairs", SMALL_PAIRS)


@cache
def last_pairs() -> Pool:
    """A pair of two sizes, and larger ones."""
    return _of_pairs("larger pairs", (*LARGER_PAIRS, TWO_SIZES))


@cache
def marked_pairs() -> Pool:
    """Pairs that need more than one mark, or one that comes back out."""
    pool = _of_pairs("pairs for marks", MARKED_PAIRS)
    return Pool(pool.text, (*pool.graphs, *pair_of_rings()), ((0, 1), (2, 3)))


def _of_pairs(text: str, pairs: Sequence[tuple[str, str]]) -> Pool:
    graphs = tuple(parse_graph6(line) for pair in pairs for line in pair)
    return Pool(text, graphs, tuple((i, i + 1) for i in range(0, len(graphs), 2)))


@cache
def all_graphs(nodes: int) -> Pool:
    """All graphs of at most so many nodes, up to 7."""
    graphs = tuple(graph for graph in atlas().graphs if len(graph) <= nodes)
    return Pool(f"all {len(graphs):,} graphs of at most {nodes} nodes", graphs)


@cache
def digraphs() -> Pool:
    """All digraphs of four nodes without loops, one of each kind."""
    bits = (np.arange(4096)[:, None] >> np.arange(12)) & 1
    every = np.zeros((4096, 4, 4))
    every[:, ~np.eye(4, dtype=bool)] = bits
    orders = [np.array(order) for order in permutations(range(4))]
    codes = [
        every[:, order][:, :, order].reshape(4096, 16) @ 2.0 ** np.arange(16) for order in orders
    ]
    _, kinds = np.unique(np.min(codes, axis=0), return_index=True)
    return Pool(f"all {len(kinds)} digraphs of 4 nodes", tuple(every[np.sort(kinds)]))


@dataclass(frozen=True)
class WordProbe:
    """The words of a grammar, exactly."""

    grammar: Grammar

    def classes(self, pool: Pool) -> Classes | None:
        """One class per graph; None where it cannot be decided."""
        try:
            return _word_classes(self.grammar, pool, registered_operations())
        except G2N2Error:
            return None

    def confirmed(self, first: Adjacency, second: Adjacency, separated: bool) -> str | None:
        """Why two graphs are told apart, or are not; None if the exact check disagrees."""
        separation = separate(self.grammar, first, second)
        if not separated:
            return "" if separation.verdict == "same" else None
        if not separation.different:
            return None
        values = " and ".join(map(str, separation.values or ()))
        return f"{separation.sentence} has the values {values}"


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
    trunk: int = 0  # rounds before the marks
    leafless: bool = False  # whether it tells apart only graphs without vertices of one neighbour
    # whether the test bounds from above what cannot be evaluated itself
    only_merges: bool = False

    @cached_property
    def _by_pool(self) -> dict[Pool, GrammarColours]:
        return {}

    def colours(self, pool: Pool) -> GrammarColours:
        """What the test gives."""
        if pool not in self._by_pool:
            self._by_pool[pool] = grammar_test(
                self.grammar,
                pool.graphs,
                rounds=self.rounds,
                functions=self.functions,
                last_functions=self.last_functions,
                inputs=self.inputs,
                trunk=self.trunk,
            )
        return self._by_pool[pool]

    def classes(self, pool: Pool) -> Classes | None:
        try:
            classes: list[int] = self.colours(pool).graph_colours.tolist()
        except G2N2Error:
            return None
        return classes

    def confirmed(self, first: Adjacency, second: Adjacency, separated: bool) -> str | None:
        leaves = any((graph.sum(0) == 1).any() for graph in (first, second))
        if separated and (self.only_merges or (self.leafless and leaves)):
            return None
        if not separated or self.words is None:
            return ""
        try:
            return WordProbe(self.words).confirmed(first, second, separated) or ""
        except G2N2Error:
            return ""


Probe = WordProbe | ColourProbe


def witness(
    probe: Probe, pool: Pool, other: Classes, name: str, *, more: bool
) -> tuple[str, dict[str, Any]] | None:
    """A pair that a probe tells apart and the other merges; with `more` False the other way round.

    `other` are the classes of the other, `name` what it is called. Gives a sentence, and JSON.
    """
    if more and not pool.merged(other):
        return None  # as for 3-WL among small graphs
    classes = probe.classes(pool)
    if classes is None:
        return None
    coarse, fine = (other, classes) if more else (classes, other)
    for tried, (i, j) in enumerate(pool.split(coarse, fine)):
        if tried >= MAX_CONFIRMED_PAIRS:
            break
        first, second = pool.graphs[i], pool.graphs[j]
        why = probe.confirmed(first, second, separated=more)
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
