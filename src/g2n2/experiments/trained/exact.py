"""Exact power beside trained power: what a contender's words, and any weights, can tell apart.

exact separated    pairs the grammar's words tell apart with as many layers, linear mixing and
                   the network's read-out; the functions between layers may add to it
exact bound        pairs 1-WL or 3-WL tells apart: no weights tell more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...grammars.catalogue import find_grammar
from ...power.random_probes import probe_graphs
from ...power.suites import SameSizePairs, Suite
from ...power.table import wl_classes
from ..kept import keep, read_kept
from .contenders import Contender

SEPARATED = "exact separated"
BOUND = "exact bound"
PAIRS = "pairs"


@dataclass(frozen=True)
class Exact:
    """What is known of a contender on a suite.

    Attributes:
        pairs: In the suite.
        separated: By the words of its grammar; None where it has none.
        bound: By the test that bounds it.
        beyond: Indices of the pairs beyond that bound, where the suite lists its pairs.
        categories: Of each category the pairs separated, or those within the bound where the
            contender has no grammar.
    """

    pairs: int
    separated: int | None
    bound: int
    beyond: tuple[int, ...] = ()
    categories: dict[str, int] | None = None

    def metrics(self) -> dict[str, float | None]:
        return {SEPARATED: self.separated, BOUND: self.bound, PAIRS: self.pairs}


def exact_power(contender: Contender, suite: Suite, kept: Path) -> Exact:
    """Measure it, or read what an earlier slice has measured.

    Args:
        contender: The network.
        suite: Graphs and pairs of them.
        kept: A file of this cell.
    """
    if before := read_kept(kept, lambda said: _understood(said, len(suite.pairs))):
        return before
    within = wl_classes(suite, contender.bound)
    words = word_classes(contender, suite)
    listed = not isinstance(suite.pairs, SameSizePairs)
    found = Exact(
        pairs=len(suite.pairs),
        separated=None if words is None else len(suite.pairs) - suite.merged(words),
        bound=len(suite.pairs) - suite.merged(within),
        beyond=_merged(suite, within) if listed else (),
        categories=_by_category(suite, within if words is None else words),
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    keep(kept, asdict(found))
    return found


def _understood(said: Mapping[str, Any], pairs: int) -> Exact:
    """As it was kept.

    Raises:
        ValueError: It is something else, or of another suite.
    """
    found = Exact(**{**said, "beyond": tuple(said["beyond"])})
    counts = [found.bound, found.separated or 0, *found.beyond, *(found.categories or {}).values()]
    if found.pairs != pairs or not all(type(one) is int and 0 <= one <= pairs for one in counts):
        raise ValueError
    return found


def word_classes(contender: Contender, suite: Suite) -> list[int] | None:
    """A number for each graph, equal where the words tell two alike; None without a grammar."""
    if contender.grammar is None:
        return None
    grammar = find_grammar(contender.grammar)
    found: list[int] = probe_graphs(
        grammar, suite.graphs, contender.layers, "network"
    ).graph_colours.tolist()
    return found


def some_pairs(suite: Suite, chosen: Sequence[int]) -> Suite:
    """The suite of some of its pairs."""
    graphs = [suite.graphs[i] for index in chosen for i in suite.pairs[index]]
    return Suite(
        suite.name,
        tuple(graphs),
        tuple((2 * place, 2 * place + 1) for place in range(len(chosen))),
        tuple(suite.categories[index] for index in chosen) if suite.categories else (),
    )


def _merged(suite: Suite, classes: Sequence[int]) -> tuple[int, ...]:
    return tuple(at for at, (i, j) in enumerate(suite.pairs) if classes[i] == classes[j])


def _by_category(suite: Suite, classes: Sequence[int]) -> dict[str, int] | None:
    if not suite.categories:
        return None
    apart = Counter(dict.fromkeys(suite.categories, 0))
    for name, (i, j) in zip(suite.categories, suite.pairs, strict=True):
        apart[name] += classes[i] != classes[j]
    return dict(apart)
