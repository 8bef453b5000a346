"""Graphs that one grammar tells apart and another does not: why a rule is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

import numpy as np

from ..grammars.grammar import Grammar, Rule
from ..graphs import Adjacency, is_simple, parse_graph6, to_graph6
from ..graphs.names import graph_name, graph_text, pair_text
from .random_probes import probe_graphs
from .separation import Separation, separate
from .suites import atlas

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
    (
        "O~`HW}GPHDaNaGPCcPWaN",
        "OlfJHsHBGK_\\oHWKeBK_\\",
    ),  # rook 4×4 and Shrikhande: 3-WL merges them
)
"""Pairs of more than 7 nodes, tried where no smaller one will do."""

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
        separation = self.separation
        return {
            "graphs": [_graph6(self.first), _graph6(self.second)],
            "names": [graph_text(self.first), graph_text(self.second)],
            "sentence": str(separation.sentence),
            "values": [str(value) for value in separation.values or ()],
            "depth": separation.depth,
            "readout": separation.readout,
        }

    def __repr__(self) -> str:
        return f"Witness({self})"

    def __str__(self) -> str:
        values = " against ".join(map(str, self.separation.values or ()))
        return f"{self.separation.sentence} is {values} on {pair_text(self.first, self.second)}"


def needed(grammar: Grammar, rule: Rule, directed: bool = False) -> Witness | None:
    """A pair that needs a rule: the grammar separates it, and no longer without the rule."""
    rest = tuple(r for r in grammar.all_rules if r != rule)
    without = Grammar.of(rest, grammar.name, grammar.supports, default_readout=False)
    silent = bool(without.unproductive()) or not without.sentence_rules
    return _first(grammar, None if silent else without, _small(directed), directed)


def between(stronger: Grammar, weaker: Grammar) -> Witness | None:
    """Two graphs that only the first grammar tells apart, if such a pair is known or small.

    Pairs tried: a few well-known ones, all of one size and at most 7 nodes, one pair of two sizes,
    and `LARGER_PAIRS`.
    """
    heard = weaker if weaker.sentence_rules else None
    later = [TWO_SIZES, *LARGER_PAIRS]
    last = ((parse_graph6(first), parse_graph6(second)) for first, second in later)
    return (
        _first(stronger, heard, _small(False), False)
        or _first(stronger, heard, _atlas_pairs(stronger, heard), False)
        or _first(stronger, heard, last, False)
    )


def _first(
    stronger: Grammar,
    weaker: Grammar | None,
    pairs: Iterable[tuple[Adjacency, Adjacency]],
    directed: bool,
) -> Witness | None:
    for g, h in pairs:
        separation = separate(stronger, g, h, directed=directed)
        if not separation.different:
            continue
        if weaker is None or separate(weaker, g, h, directed=directed).verdict == "same":
            return Witness(g, h, separation)
    return None


def _small(directed: bool) -> Iterator[tuple[Adjacency, Adjacency]]:
    if directed:
        for first, second in DIRECTED_PAIRS:
            yield _digraph(first), _digraph(second)
    for left, right in SMALL_PAIRS:
        yield parse_graph6(left), parse_graph6(right)


def _digraph(arcs: tuple[tuple[int, int], ...]) -> Adjacency:
    matrix = np.zeros((4, 4))
    for i, j in arcs:
        matrix[i, j] = 1.0
    return matrix


def _atlas_pairs(
    stronger: Grammar, weaker: Grammar | None
) -> Iterator[tuple[Adjacency, Adjacency]]:
    """Pairs the weaker grammar seems to merge and the stronger one splits, smallest first."""
    graphs = atlas().graphs
    fine = probe_graphs(stronger, graphs).graph_colours
    coarse = (
        [0] * len(graphs) if weaker is None else probe_graphs(weaker, graphs).graph_colours.tolist()
    )
    groups: dict[tuple[int, int], list[int]] = {}
    for i, graph in enumerate(graphs):
        groups.setdefault((len(graph), coarse[i]), []).append(i)
    for _, same_size in groupby(sorted(groups.items()), key=lambda group: group[0][0]):
        split = [
            (graphs[i], graphs[j])
            for _, members in same_size
            for i, j in combinations(members, 2)
            if fine[i] != fine[j]
        ]
        # A pair whose graphs have names, which a reader knows, goes first.
        yield from sorted(split, key=lambda pair: sum(graph_name(g) is None for g in pair))


def _graph6(matrix: Adjacency) -> str:
    return to_graph6(matrix) if is_simple(matrix) else graph_text(matrix)
