"""What a grammar's WL test gives: colours of graphs by round, and of entries after the last."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..described import Described, some
from ..errors import GrammarError
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule
from ..language.sorts import M, R, Sort, V
from .colour_hashing import Colours


@dataclass(frozen=True, eq=False, repr=False)
class GrammarColours(Described):
    """Colours of several graphs under the WL test of a grammar, comparable between them.

    Attributes:
        grammar: The grammar.
        readout: The rules of S that were applied.
        graph_history: After each round from 0 to the last, one colour per graph.
        memories: Per variable the colours of its entries after the last round, one read-only array
            per graph: `[n, n]` for M, `[n]` for V_c and V_r, `[]` for S. Variables whose memory is
            empty are absent.
        stable: Whether a further round is known to change nothing.
        exact: Whether graphs of equal colour are the same for every network of that depth, and
            those of different colours different for some, but for chances below 2 ** -80.
        bound: Whether this is an upper bound only: graphs of equal colour are merged, others may
            be.
        note: Why it is not exact, or nothing.
    """

    grammar: Grammar
    readout: tuple[Rule, ...]
    graph_history: tuple[Colours, ...]
    memories: Mapping[Sort, tuple[Colours, ...]]
    stable: bool
    exact: bool = True
    bound: bool = False
    note: str = ""

    def facts(self) -> dict[str, str]:
        """What came out, for `repr` and notebooks."""
        return {
            "grammar": some([self.grammar.name]),
            "graphs": f"{len(self.graph_colours):,}",
            "colours": f"{class_count(self.graph_colours):,}",
            "rounds": str(self.rounds),
            "stable": "yes" if self.stable else "no",
            "exact": "yes" if self.exact else "no",
        }

    @property
    def rounds(self) -> int:
        """How many rounds were run; until no colour split any more unless a number was asked."""
        return len(self.graph_history) - 1

    @property
    def graph_colours(self) -> Colours:
        """One colour per graph: equal for the graphs the test cannot tell apart."""
        return self.graph_history[-1]

    @property
    def rounds_needed(self) -> int:
        """The first round after which the graphs are told apart as in the last."""
        last = class_count(self.graph_colours)
        return next(i for i, now in enumerate(self.graph_history) if class_count(now) == last)

    def separated(self, first: int = 0, second: int = 1) -> bool:
        """Say whether the test tells two of the graphs apart."""
        return bool(self.graph_colours[first] != self.graph_colours[second])

    def separated_at(self, first: int = 0, second: int = 1) -> int | None:
        """Return the round from which two graphs differ; None if they never do."""
        for number, colours in enumerate(self.graph_history):
            if colours[first] != colours[second]:
                return number
        return None

    def merged_pairs(self) -> list[tuple[int, int]]:
        """List the pairs of graphs that are not told apart."""
        classes: dict[int, list[int]] = defaultdict(list)
        for index, colour in enumerate(self.graph_colours.tolist()):
            classes[colour].append(index)
        return [pair for members in classes.values() for pair in combinations(members, 2)]

    def node_colours(self) -> tuple[Colours, ...]:
        """Return one colour per node and graph, `[n]`: of V_c, else V_r, else the pair (i, i).

        Raises:
            GrammarError: If the grammar has none of these memories, or the test was decided by
                words.
        """
        for sort in (V, R):
            if sort in self.memories:
                return self.memories[sort]
        if M in self.memories:
            return tuple(array.diagonal() for array in self.memories[M])
        raise GrammarError("the test gives no colours to nodes: the grammar has neither V nor M")

    def pair_colours(self) -> tuple[Colours, ...]:
        """Return one colour per pair of nodes and graph, `[n, n]`.

        Raises:
            GrammarError: If the grammar has no M, or the test was decided by words.
        """
        if M not in self.memories:
            raise GrammarError("the test gives no colours to pairs: the grammar has no M")
        return self.memories[M]


def class_count(colours: Colours) -> int:
    """How many different colours there are."""
    return len(np.unique(colours))
