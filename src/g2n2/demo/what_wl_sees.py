"""What 1-WL sees of the graphs, what 3-WL sees, and sentences that count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..grammars.derivations import derive_word
from ..grammars.grammar import Grammar
from ..language.evaluation import evaluate
from ..language.parsing import parse
from ..power.refinement import refine
from .settings import DEGREE

if TYPE_CHECKING:
    from ..data.graph_set import GraphSet


@dataclass(frozen=True)
class CountingSentence:
    """A sentence of the grammar whose value is a count."""

    text: str
    tree: str  # how the grammar derives it
    formula: str  # its value, as a formula of the count
    graphs: int  # on how many of the graphs that is so, by exact evaluation


@dataclass(frozen=True)
class WlView:
    """How many colours each test gives to all graphs, and a sentence for each target."""

    one_wl: int  # 1-WL bounds GIN
    three_wl: int  # the derived grammar reaches 3-WL (2-FWL)
    seen_before: int  # test graphs that 3-WL cannot tell from a training graph, mostly copies
    sentences: tuple[CountingSentence, ...]


def compare_tests(graphs: GraphSet, grammar: Grammar) -> WlView:
    """Colour all graphs, and evaluate the sentences on each of them."""
    matrices = [graphs.adjacency(index) for index in range(len(graphs))]
    low = refine(matrices).graph_colours
    high = refine(matrices, k=2, variant="fwl").graph_colours
    trained = high[graphs.splits["train"]]
    # Closed walks of four steps that go round no cycle, of all nodes.
    walks = (2 * DEGREE**2 - DEGREE) * int(graphs.sizes[0])
    columns = [column.name for column in graphs.columns]
    sentences = []
    for text, target, factor, rest, formula in (
        ("1ᵀ(A²⊙A)1", "triangle", 6, 0, "6 × triangles"),
        ("1ᵀ(A²⊙A²)1", "4_cycle", 8, walks, f"8 × 4-cycles + {walks}"),
    ):
        term = parse(text)
        values = np.array([evaluate(term, matrix).item() for matrix in matrices])
        right = values == factor * graphs.targets[:, columns.index(target)] + rest
        tree = str(derive_word(grammar, term))
        sentences.append(CountingSentence(text, tree, formula, int(right.sum())))
    return WlView(
        len(np.unique(low)),
        len(np.unique(high)),
        int(np.isin(high[graphs.splits["test"]], trained).sum()),
        tuple(sentences),
    )
