"""What grammars tell apart: WL tests, exact separation by words, suites of hard graphs.

The package is also a function: `from g2n2 import power` measures grammars on a suite, and
`g2n2.power.refinement` stays the module. Importing any part of the package makes `g2n2.power` this
module, so a function of the same name could not stand beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..grammars.coercion import GrammarLike
    from .suites import Suite
    from .table import PowerTable


class CallablePackage(ModuleType):
    """The package `g2n2.power`, which can be called."""

    def __call__(
        self,
        grammars: GrammarLike | Sequence[GrammarLike],
        suite: str | Path | Suite | Sequence[str | Path | Suite] = "csl",
        *,
        readout: str | None = None,
        layers: int | None = None,
        with_f: bool = False,
        pairs: bool = False,
        data: str | Path | None = None,
    ) -> PowerTable:
        """How many pairs of a suite each grammar tells apart, exactly, by number of layers.

        >>> from g2n2 import power
        >>> table = power(["r-G_L1", "r-G_L3"], suite="csl")
        >>> [(row.grammar, row.separated, row.pairs) for row in table]
        [('r-G_L1', 0, 45), ('r-G_L3', 45, 45)]

        Args:
            grammars: One grammar or several, each as `g2n2.separate` takes it, or a WL test:
                `1-WL`, `3-WL`, `2-FWL` ….
            suite: `atlas`, `graph8c`, `sr25`, `csl`, `exp`, `brec`, `cfi`, a graph6 file or a
                `Suite`; one or several.
            readout: None for each grammar's own, `network` for 1ᵀV, Tr(M) and 1ᵀM1, or rules.
            layers: How deep to go; None goes on as long as the last layer gained a pair.
            with_f: Allow sums and pointwise functions.
            pairs: A graph6 file holds consecutive pairs, and not one family.
            data: Folder in which the files of suites are sought first.

        Returns:
            A table of `PowerRow`; printed, it is the table of `g2n2 power`.

        Raises:
            GrammarError: There is no such grammar, or it cannot be evaluated exactly.
            DataError: There is no such suite, or its file is missing or damaged.
        """
        from ..api import measure_power  # the one upward import: the front door stands here

        return measure_power(grammars, suite, readout, layers, with_f, pairs, data)


sys.modules[__name__].__class__ = CallablePackage
