"""WL tests by name, so that `3-WL` can stand where a grammar can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import GrammarError
from ..graphs import GraphLike
from .refinement import Refinement, refine

DEEPEST_FOLKLORE = 3
"""The largest k of a k-FWL that `refine` runs."""

_SAME_POWER = {1: "r-G_L1", 2: "r-G_L3"}


@dataclass(frozen=True)
class WLTest:
    """A Weisfeiler-Leman test.

    Attributes:
        name: As it was asked for, `3-WL` or `2-FWL`.
        folklore: The k of the folklore test that tells the same graphs apart: (k + 1)-WL and k-FWL
            do (Grohe and Otto 2015), and 2-WL and 1-WL are both 1.
    """

    name: str
    folklore: int

    @classmethod
    def find(cls, text: str) -> WLTest | None:
        """The test a text names; None where it names none.

        Raises:
            GrammarError: It names one that cannot be run.
        """
        m = re.fullmatch(r"\s*(\d+)\s*[-_‐‑–]?\s*(f?)wl\s*", text, re.IGNORECASE)
        if m is None:
            return None
        k, folk = int(m[1]), bool(m[2])
        name = f"{k}-{'FWL' if folk else 'WL'}"
        level = k if folk else max(k - 1, 1)
        if k < 1 or level > DEEPEST_FOLKLORE:
            raise GrammarError(
                f"{name} cannot be run; known: 1-WL to {DEEPEST_FOLKLORE + 1}-WL, "
                f"1-FWL to {DEEPEST_FOLKLORE}-FWL"
            )
        return cls(name, level)

    @property
    def grammar(self) -> str | None:
        """The name of a grammar of the same power, where the catalogue has one."""
        return _SAME_POWER.get(self.folklore)

    def refine(self, graphs: Sequence[GraphLike]) -> Refinement:
        """The test on several graphs, by the folklore algorithm, which needs the shorter tuples."""
        return refine(graphs, self.folklore, "wl" if self.folklore == 1 else "fwl")

    def refusal(self) -> GrammarError:
        """What is said where rules are needed."""
        if self.grammar is None:
            more = "no grammar over · ᵀ 1 diag ⊙ Tr has its power, which 3-WL bounds"
        else:
            more = f"{self.grammar} is a grammar of that power"
        return GrammarError(f"{self.name} has no rules; {more}")


ONE_WL = WLTest("1-WL", 1)
THREE_WL = WLTest("3-WL", 2)
