"""Step 2: what 1-WL sees of the graphs, what 3-WL sees, and the sentences that count."""

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
class Sentence:
    """A word of the grammar that counts.

    Attributes:
        text: The word.
        tree: How the grammar derives it.
        target: What it counts.
        worth: Its value, in words.
        right: On how many of the graphs that is so, by exact evaluation.
    """

    text: str
    tree: str
    target: str
    worth: str
    right: int


@dataclass(frozen=True)
class WlView:
    """How many colours a test gives to all graphs, and the sentences that see more.

    Attributes:
        one_wl: Colours of 1-WL, which bounds GIN.
        three_wl: Colours of 3-WL (2-FWL), which the derived grammar reaches.
        seen_before: Test graphs that 3-WL cannot tell from a training graph: copies, as a rule.
        sentences: One for each target.
    """

    one_wl: int
    three_wl: int
    seen_before: int
    sentences: tuple[Sentence, ...]


def compare_tests(graphs: GraphSet, grammar: Grammar) -> WlView:
    """Colour all graphs, and evaluate the sentences on each of them."""
    matrices = [graphs.adjacency(index) for index in range(len(graphs))]
    low = refine(matrices).graph_colours
    high = refine(matrices, k=2, variant="fwl").graph_colours
    known = set(high[graphs.splits["train"]].tolist())
    seen = sum(colour in known for colour in high[graphs.splits["test"]].tolist())
    walks = 2 * DEGREE**2 - DEGREE  # closed walks of four steps that go round no cycle, by node
    nodes = int(graphs.sizes[0])
    sentences = tuple(
        _sentence(graphs, grammar, *row)
        for row in (
            ("1ᵀ(A²⊙A)1", "triangle", 6, 0, "6 × triangles"),
            ("1ᵀ(A²⊙A²)1", "4_cycle", 8, walks * nodes, f"8 × 4-cycles + {walks * nodes}"),
        )
    )
    return WlView(len(set(low.tolist())), len(set(high.tolist())), seen, sentences)


def _sentence(
    graphs: GraphSet, grammar: Grammar, text: str, target: str, factor: int, rest: int, worth: str
) -> Sentence:
    term = parse(text)
    tree = str(derive_word(grammar, term))
    place = [column.name for column in graphs.columns].index(target)
    values = np.array([evaluate(term, graphs.adjacency(i)).item() for i in range(len(graphs))])
    right = int((values == factor * graphs.targets[:, place] + rest).sum())
    return Sentence(text, tree, target, worth, right)
