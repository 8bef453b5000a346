"""The power table: grammars × suites, measured exactly and set beside 1-WL and 2-FWL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from ..errors import DataError
from ..grammars.grammar import Grammar
from .refinement import refine
from .separation import bounded_by_2fwl
from .suites import SameSizePairs, Suite
from .words.mixing import LAYERS, mix

DEEPEST = 24
"""Layers after which `power_row` stops even if it still gains."""


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

    @property
    def separated(self) -> int:
        return self.by_layer[-1]

    @property
    def depth(self) -> int:
        """The first layer at which nothing more is gained, as far as was looked."""
        return self.by_layer.index(self.separated)

    def to_json(self) -> dict[str, Any]:
        return {
            "grammar": self.grammar,
            "readout": self.readout,
            "suite": self.suite,
            "pairs": self.pairs,
            "separated": self.separated,
            "by_layer": list(self.by_layer),
            "depth": self.depth,
            "by_category": {name: list(counts) for name, counts in self.by_category.items()},
            "equals_1wl": self.equals_1wl,
            "equals_2fwl": self.equals_2fwl,
            "exact": self.exact,
            "seconds": round(self.seconds, 3),
        }


def power_row(
    grammar: Grammar,
    suite: Suite,
    readout: str | None = None,
    layers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> PowerRow:
    """Measure one grammar on one suite, layer by layer.

    Args:
        grammar: Any grammar without pointwise functions.
        suite: Graphs and pairs of them.
        readout: As for `separate`.
        layers: How deep to go; None goes on as long as the last layer gained a pair.
        progress: Called with the number of graphs done since the last call.
    """
    one, two = wl_classes(suite, 1), wl_classes(suite, 2)
    start = perf_counter()
    if readout is None and not grammar.sentence_rules:  # a valid grammar: it tells nothing apart
        shown, history = "none", [[0] * len(suite.graphs)] * 2
    else:
        mixing = mix(grammar, suite.graphs, layers or LAYERS, readout, progress=progress)
        shown, history = mixing.readout, [classes.tolist() for classes in mixing.history]
    while layers is None and len(history) <= DEEPEST and _gained(suite, history):
        history += _deeper(grammar, suite, readout, history, two)
    seconds = perf_counter() - start
    classes = history[-1]
    equals_2fwl = same_verdicts(suite, classes, two)
    return PowerRow(
        grammar=grammar.name or "given",
        readout=shown,
        suite=suite.name,
        pairs=len(suite.pairs),
        by_layer=tuple(len(suite.pairs) - suite.merged(classes) for classes in history),
        by_category=_by_category(suite, classes),
        equals_1wl=same_verdicts(suite, classes, one),
        equals_2fwl=equals_2fwl,
        exact=equals_2fwl and bounded_by_2fwl(grammar.operations),
        seconds=seconds,
    )


def _gained(suite: Suite, history: list[list[int]]) -> bool:
    return suite.merged(history[-1]) < suite.merged(history[-2])


def _deeper(
    grammar: Grammar,
    suite: Suite,
    readout: str | None,
    history: list[list[int]],
    bound: Sequence[int],
) -> list[list[int]]:
    """Four more layers on the graphs whose class 2-FWL still splits (or on all, beyond 3-WL)."""
    bounded = bounded_by_2fwl(grammar.operations)
    mates: dict[int, set[int]] = {}
    for i, own in enumerate(history[-1]):
        mates.setdefault(own, set()).add(bound[i] if bounded else i)
    left = [i for i, own in enumerate(history[-1]) if len(mates[own]) > 1]
    first = len(history)
    found = mix(grammar, [suite.graphs[i] for i in left], layers=first + 3, readout=readout)
    more = []
    for classes in found.history[first:]:
        of = dict(zip(left, classes.tolist(), strict=True))
        joint = [(own, of.get(i, -1)) for i, own in enumerate(history[-1])]
        number = {pair: n for n, pair in enumerate(dict.fromkeys(joint))}
        more.append([number[pair] for pair in joint])
    return more


@lru_cache(maxsize=32)
def wl_classes(suite: Suite, k: int) -> tuple[int, ...]:
    """One class per graph: by 1-WL for k = 1, by 2-FWL for k = 2, node labels left out."""
    colours: dict[int, int] = {}
    by_size: dict[int, list[int]] = {}
    for index, graph in enumerate(suite.graphs):
        by_size.setdefault(len(graph), []).append(index)
    groups = by_size.values()
    if not isinstance(suite.pairs, SameSizePairs):
        groups = _linked(suite.pairs, len(suite.graphs)).values()  # pairs need no common colours
    for group in groups:
        found = refine([suite.graphs[i] for i in group], k=k, variant="wl" if k == 1 else "fwl")
        offset = len(colours) and max(colours.values()) + 1
        for i, colour in zip(group, found.graph_colours.tolist(), strict=True):
            colours[i] = colour + offset
    return tuple(colours.get(i, -1 - i) for i in range(len(suite.graphs)))


def _linked(pairs: Iterable[tuple[int, int]], count: int) -> dict[int, list[int]]:
    """Graphs joined by a chain of pairs."""
    root = list(range(count))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for a, b in pairs:
        root[find(a)] = find(b)
    groups: dict[int, list[int]] = {}
    for i in range(count):
        groups.setdefault(find(i), []).append(i)
    return groups


def same_verdicts(suite: Suite, left: Sequence[Hashable], right: Sequence[Hashable]) -> bool:
    """Whether two invariants tell exactly the same pairs apart."""
    if isinstance(suite.pairs, SameSizePairs):
        joint = suite.merged(list(zip(left, right, strict=True)))
        return suite.merged(left) == joint == suite.merged(right)
    return all((left[i] == left[j]) == (right[i] == right[j]) for i, j in suite.pairs)


def _by_category(suite: Suite, classes: Sequence[int]) -> dict[str, tuple[int, int]]:
    total = Counter(suite.categories)
    apart = Counter(
        name
        for name, (i, j) in zip(suite.categories, suite.pairs, strict=False)
        if classes[i] != classes[j]
    )
    return {name: (apart[name], count) for name, count in total.items()}


def to_markdown(rows: Sequence[PowerRow]) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(HEADERS) + " |", "|" + "---|" * len(HEADERS)]
    lines += ["| " + " | ".join(cells(row)).replace("∖", r"\\") + " |" for row in rows]
    return "\n".join(lines)


HEADERS = ("grammar", "read-out", "suite", "pairs", "separated", "1-WL", "2-FWL", "layers", "s")


def cells(row: PowerRow) -> tuple[str, ...]:
    """One row of the printed table."""
    return (
        row.grammar,
        row.readout.replace("|", ","),
        row.suite,
        str(row.pairs),
        str(row.separated) + ("" if row.exact else f" (to {len(row.by_layer) - 1} layers)"),
        "=" if row.equals_1wl else "≠",
        "=" if row.equals_2fwl else "≠",
        str(row.depth),
        f"{row.seconds:.1f}",
    )


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be drawn, before anything is measured.

    Raises:
        DataError: matplotlib is not installed, or the file's ending or folder will not do.
    """
    if find_spec("matplotlib") is None:
        raise DataError("plotting needs matplotlib: pip install 'g2n2[plot]'")
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise DataError(f"cannot draw {path}: end the name in .svg, .png or .pdf")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}")


def plot(rows: Sequence[PowerRow], path: Path) -> None:
    """Pairs told apart against layers, one line per grammar and suite.

    Raises:
        DataError: As `check_plot`, or the file cannot be written.
    """
    check_plot(path)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    suites = list(dict.fromkeys(row.suite for row in rows))
    figure, axes = plt.subplots(1, len(suites), figsize=(6 * len(suites), 4.2), squeeze=False)
    for axis, suite in zip(axes[0], suites, strict=True):
        shown = [row for row in rows if row.suite == suite]
        for row in shown:
            label = f"{row.grammar}, read-out {row.readout}"
            axis.plot(range(len(row.by_layer)), row.by_layer, marker="o", markersize=4, label=label)
        axis.axhline(shown[0].pairs, color="0.8", linewidth=1)
        axis.set(title=f"{suite}: {shown[0].pairs} pairs", xlabel="layers", ylabel="told apart")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as fault:
        raise DataError(f"cannot write {path}: {fault}") from None
    finally:
        plt.close(figure)
