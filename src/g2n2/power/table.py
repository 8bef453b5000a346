"""The power table: grammars × suites, measured exactly and set beside 1-WL and 2-FWL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import networkx as nx

from ..described import aligned, counted
from ..figures import check_plot, save_figure
from ..grammars.grammar import Grammar
from ..graphs.names import graph_text
from ..notebook_html import table as html_table
from .colours import alike, group_by_size, numbered
from .random_probes import LAYERS, probe_graphs
from .suites import SameSizePairs, Suite
from .wl_tests import TWO_FWL, WLTest, same_power, upper_bound

MOST_LISTED = 1000
"""Merged pairs a row lists; a weak grammar merges millions in a large suite."""

DEEPEST = 24
"""Layers after which `power_row` stops even if it still gains."""


@dataclass(frozen=True)
class MergedPair:
    """Two graphs of a suite that are not told apart."""

    pair: int | None  # which pair of the suite it is; None where all pairs of equal size are meant
    graphs: tuple[int, int]  # their places in the suite
    names: tuple[str, str]  # their names or graph6
    category: str = ""  # the suite's category, or nothing


@dataclass(frozen=True)
class PowerRow:
    """What one grammar tells apart in one suite.

    Attributes:
        grammar: Its name.
        readout: The read-out it was given.
        suite: The suite's name.
        pairs: How many pairs there are.
        by_layer: How many are told apart with 0, 1, 2 … layers.
        by_category: Pairs told apart and pairs in all, where the suite has categories.
        equals_1wl: Whether exactly the pairs 1-WL separates are told apart.
        equals_2fwl: The same for 2-FWL (that is, 3-WL).
        exact: Whether more layers provably add nothing, because 2-FWL merges what is left.
        seconds: Wall time, without loading the suite or the WL tests.
        against: For 1-WL and 3-WL, how many pairs only this grammar tells apart, and only the test.
        merged: The pairs that stay together, `MOST_LISTED` at most.
    """

    grammar: str
    readout: str
    suite: str
    pairs: int
    by_layer: tuple[int, ...]
    by_category: dict[str, tuple[int, int]]
    equals_1wl: bool
    equals_2fwl: bool
    exact: bool
    seconds: float
    against: dict[str, tuple[int, int]] = field(default_factory=dict)
    merged: tuple[MergedPair, ...] = ()

    @property
    def separated(self) -> int:
        return self.by_layer[-1]

    @property
    def depth(self) -> int:
        """The first layer at which nothing more is gained, as far as was looked."""
        return self.by_layer.index(self.separated)

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content | {
            "separated": self.separated,
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "merged_total": self.pairs - self.separated,
        }


def power_row(
    grammar: Grammar,
    suite: Suite,
    readout: str | None = None,
    layers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> PowerRow:
    """Measure one grammar on one suite, layer by layer.

    Without `layers` it goes on as long as the last layer gained a pair. `progress` is called with
    the number of graphs done since the last call.
    """
    bounding = wl_classes(suite, 2)
    start = perf_counter()
    if layers is None and readout is None and (test := same_power(grammar)) is not None:
        history = [list(classes) for classes in refinement_history(suite, test)]
        shown = f"{grammar.readout_text}, by {test.name}"
        seconds = perf_counter() - start
        return _row(grammar.name or grammar.in_short, shown, suite, history, True, seconds)
    if readout is None and not grammar.sentence_rules:  # a valid grammar: it tells nothing apart
        shown, history = "none", [[0] * len(suite.graphs)] * 2
    else:
        probed = probe_graphs(grammar, suite.graphs, layers or LAYERS, readout, progress=progress)
        shown, history = probed.readout, [classes.tolist() for classes in probed.graph_history]
    while (
        layers is None
        and len(history) <= DEEPEST
        and suite.merged(history[-1]) < suite.merged(history[-2])
    ):
        history += _deeper(grammar, suite, readout, history, bounding)
    seconds = perf_counter() - start
    bound = upper_bound(grammar)
    if bound is not None and bound.marks:
        bounding = refinement_history(suite, bound)[-1]
    exact = bound is not None and _only(suite, history[-1], bounding) == (0, 0)
    return _row(grammar.name or grammar.in_short, shown, suite, history, exact, seconds)


def wl_row(test: WLTest, suite: Suite) -> PowerRow:
    """Measure a WL test on one suite, round by round."""
    start = perf_counter()
    history = refinement_history(suite, test)
    return _row(test.name, "colours", suite, history, True, perf_counter() - start)


def _row(
    name: str,
    readout: str,
    suite: Suite,
    history: Sequence[Sequence[int]],
    exact: bool,
    seconds: float,
) -> PowerRow:
    classes = history[-1]
    tests = {"1-WL": wl_classes(suite, 1), "3-WL": wl_classes(suite, 2)}
    against = {test: _only(suite, classes, other) for test, other in tests.items()}
    return PowerRow(
        grammar=name,
        readout=readout,
        suite=suite.name,
        pairs=len(suite.pairs),
        by_layer=tuple(len(suite.pairs) - suite.merged(classes) for classes in history),
        by_category=_by_category(suite, classes),
        equals_1wl=against["1-WL"] == (0, 0),
        equals_2fwl=against["3-WL"] == (0, 0),
        exact=exact,
        seconds=seconds,
        against=against,
        merged=tuple(islice(_merged(suite, classes), MOST_LISTED)),
    )


def _only(suite: Suite, left: Sequence[int], right: Sequence[int]) -> tuple[int, int]:
    """How many pairs only the first tells apart, and only the second."""
    joint = suite.merged(list(zip(left, right, strict=True)))
    return suite.merged(right) - joint, suite.merged(left) - joint


def _merged(suite: Suite, classes: Sequence[int]) -> Iterator[MergedPair]:
    """The pairs an invariant leaves together."""

    def named(i: int, j: int) -> tuple[str, str]:
        return graph_text(suite.graphs[i]), graph_text(suite.graphs[j])

    if isinstance(suite.pairs, SameSizePairs):
        for group in suite.pairs.groups:
            for first, second in alike(classes[i] for i in group):
                pair = group[first], group[second]
                yield MergedPair(None, pair, named(*pair))
        return
    for number, (i, j) in enumerate(suite.pairs):
        if classes[i] == classes[j]:
            category = suite.categories[number] if suite.categories else ""
            yield MergedPair(number, (i, j), named(i, j), category)


def _deeper(
    grammar: Grammar,
    suite: Suite,
    readout: str | None,
    history: list[list[int]],
    bound: Sequence[int],
) -> list[list[int]]:
    """Four more layers on the graphs whose class 2-FWL still splits (or on all, beyond 3-WL)."""
    bounded = upper_bound(grammar) == TWO_FWL
    mates: dict[int, set[int]] = {}
    for i, last in enumerate(history[-1]):
        mates.setdefault(last, set()).add(bound[i] if bounded else i)
    left = [i for i, last in enumerate(history[-1]) if len(mates[last]) > 1]
    first = len(history)
    deeper = probe_graphs(
        grammar, [suite.graphs[i] for i in left], layers=first + 3, readout=readout
    )
    more = []
    for classes in deeper.graph_history[first:]:
        split = dict(zip(left, classes.tolist(), strict=True))
        joint = [(last, split.get(i, -1)) for i, last in enumerate(history[-1])]
        more.append(numbered(joint).tolist())
    return more


def wl_classes(suite: Suite, k: int) -> tuple[int, ...]:
    """One class per graph: by 1-WL for k = 1, by k-FWL above it, node labels left out."""
    return refinement_history(suite, WLTest("", k))[-1]


def refinement_history(suite: Suite, test: WLTest) -> tuple[tuple[int, ...], ...]:
    """The classes of all graphs by a test after each round, node labels left out."""
    return _refined(suite, replace(test, name=""))


@lru_cache(maxsize=32)
def _refined(suite: Suite, test: WLTest) -> tuple[tuple[int, ...], ...]:
    groups = group_by_size(suite.graphs)
    if not isinstance(suite.pairs, SameSizePairs):
        links = nx.Graph(list(suite.pairs))  # pairs that share no graph need no common colours
        links.add_nodes_from(range(len(suite.graphs)))
        groups = [sorted(group) for group in nx.connected_components(links)]
    refined = []
    for group in groups:
        graphs = [suite.graphs[i] for i in group]
        history = test.refine(graphs).graph_history
        refined.append((group, [colours.tolist() for colours in history]))
    rounds = max((len(history) for _, history in refined), default=1)
    return tuple(_of_round(number, refined, len(suite.graphs)) for number in range(rounds))


def _of_round(
    number: int, refined: Sequence[tuple[Sequence[int], list[list[int]]]], count: int
) -> tuple[int, ...]:
    """The classes of all graphs after one round; a group that is stable stays as it is."""
    colours: dict[int, int] = {}
    offset = 0
    for group, history in refined:
        classes = history[min(number, len(history) - 1)]
        colours |= {i: colour + offset for i, colour in zip(group, classes, strict=True)}
        offset += max(classes) + 1
    return tuple(colours.get(i, -1 - i) for i in range(count))


def _by_category(suite: Suite, classes: Sequence[int]) -> dict[str, tuple[int, int]]:
    total = Counter(suite.categories)
    separated = Counter(
        name
        for name, (i, j) in zip(suite.categories, suite.pairs, strict=False)
        if classes[i] != classes[j]
    )
    return {name: (separated[name], count) for name, count in total.items()}


HEADERS = (
    "grammar", "read-out", "suite", "pairs", "told apart", "beside 1-WL", "beside 3-WL",
    "layers", "s",
)  # fmt: skip
LEGEND = (
    "told apart: pairs on which some sentence differs; beside 1-WL, 3-WL: pairs more or fewer than "
    "that test tells apart; layers: after which nothing was gained; s: seconds"
)
"""What the columns say."""


def cells(row: PowerRow) -> tuple[str, ...]:
    """One row of the printed table."""
    return (
        row.grammar,
        row.readout.replace("|", ","),
        row.suite,
        str(row.pairs),
        str(row.separated) + ("" if row.exact else f" (to {len(row.by_layer) - 1} layers)"),
        _beside(row, "1-WL"),
        _beside(row, "3-WL"),
        str(row.depth),
        f"{row.seconds:.1f}",
    )


def _beside(row: PowerRow, test: str) -> str:
    more, fewer = row.against[test]
    shown = [f"{more:,} more"] * bool(more) + [f"{fewer:,} fewer"] * bool(fewer)
    return ", ".join(shown) or "the same"


class PowerTable(tuple[PowerRow, ...]):
    """Rows of a power table, one for each grammar and suite, suite by suite."""

    @property
    def rows(self) -> tuple[PowerRow, ...]:
        return tuple(self)

    def __str__(self) -> str:
        return "\n".join(aligned([HEADERS, *map(cells, self)]))

    def __repr__(self) -> str:
        return f"PowerTable({counted(len(self), 'row')})"

    def _repr_html_(self) -> str:
        return html_table(map(cells, self), HEADERS)

    def to_markdown(self) -> str:
        lines = ["| " + " | ".join(HEADERS) + " |", "|" + "---|" * len(HEADERS)]
        lines += ["| " + " | ".join(cells(row)).replace("∖", r"\\") + " |" for row in self]
        return "\n".join(lines)

    def to_json(self) -> list[dict[str, Any]]:
        """What `g2n2 power --json` prints."""
        return [row.to_json() for row in self]


def draw_plot(rows: Sequence[PowerRow], path: Path) -> None:
    """Pairs told apart against layers, one line per grammar and suite."""
    check_plot(path)
    from matplotlib.figure import Figure

    suites = list(dict.fromkeys(row.suite for row in rows))
    figure = Figure(figsize=(6 * len(suites), 4.2), layout="tight")
    for axis, suite in zip(figure.subplots(1, len(suites), squeeze=False)[0], suites, strict=True):
        shown = [row for row in rows if row.suite == suite]
        for row in shown:
            label = f"{row.grammar}, read-out {row.readout}"
            axis.plot(range(len(row.by_layer)), row.by_layer, marker="o", markersize=4, label=label)
        axis.axhline(shown[0].pairs, color="0.8", linewidth=1)
        axis.set(title=f"{suite}: {shown[0].pairs} pairs", xlabel="layers", ylabel="told apart")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=8, frameon=False)
    save_figure(figure, path)
