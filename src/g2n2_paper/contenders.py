"""Networks whose power is measured after training, and the exact bounds on it.

exact separated    pairs that words of the grammar tell apart with as many layers, linear mixing and
                   the network's read-out; functions between layers may add to it
exact bound        pairs that 1-WL, 3-WL or a test with marks tells apart, which no weights exceed
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn.baselines import BASELINES
from g2n2.power.random_probes import probe_graphs
from g2n2.power.suites import SameSizePairs, Suite
from g2n2.power.table import refinement_history, wl_classes
from g2n2.power.wl_tests import WLTest
from g2n2.training.config import RunConfig

SEPARATED, BOUND, PAIRS = "exact separated", "exact bound", "pairs"


@dataclass(frozen=True)
class Contender:
    """A network, and what is known of its power before training."""

    name: str
    network: str  # a key of `nn.baselines.BASELINES`, or the name of a grammar
    layers: int
    # whose words the layers compute, without the functions between them; None for words that depend
    # on the spectrum, which exact arithmetic cannot evaluate
    grammar: str | None
    # what no weights exceed: k of a k-FWL test (1 for 1-WL, 2 for 3-WL), or the name of a test
    bound: Literal[1, 2] | str
    width: int = 16  # channels of every memory
    options: Mapping[str, Any] = field(default_factory=dict)  # of the network
    preset: str = ""  # in place of the network's own

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON; options and preset only if there are any."""
        rare = ("options", "preset")
        return {name: value for name, value in asdict(self).items() if name not in rare or value}

    def config(self, dataset: str, **settings: Any) -> RunConfig:
        """A training run of the network, twice as wide."""
        network: dict[str, Any] = {"baseline": self.network}
        if self.network not in BASELINES:
            network = {"grammar": self.network}
        if self in MARKED.values():
            network |= {**self.options, "marks": str(self.options["marks"])}
        network |= {"width": 2 * self.width, "layers": self.layers, "preset": self.preset or None}
        network |= {"recipe": MODERN_BEFORE, "precision": "tf32"}
        return RunConfig(dataset, **{**network, **settings})


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("G2N2-8", "G2N2", 8, "r-G_L3", 2, preset=MODERN_BEFORE),
        Contender("G2N2-5", "G2N2", 5, "r-G_L3", 2, preset=MODERN_BEFORE),
        Contender("G2N2-3", "G2N2", 3, "r-G_L3", 2, preset=MODERN_BEFORE),
        Contender("PPGN", "PPGN", 8, "PPGN", 2),
        Contender("GNNML3", "GNNML3", 5, None, 2),
        # GIN's sums and MLPs are the words of GNNML1: both are 1-WL. Batch normalisation would only
        # amplify rounding errors where all nodes are alike.
        Contender("GIN", "GIN", 5, "GNNML1", 1, options={"norm": False}),
    )
}
PPGN_ALIKE = Contender("PPGN-alike", "PPGN", 8, "PPGN", 2, preset=MODERN_BEFORE)
"""The grammar of PPGN in the blocks of G²N², which separates the effect of grammar and blocks."""
MARKED = {
    contender.name: contender
    for contender in (
        # On BREC, Σ2-FWL needs up to four rounds, ΣΣ1-WL nine.
        Contender("G2N2Σ-5", "r-G_L3Σ", 5, None, "Σ2-FWL", options={"marks": "orbits"}),
        Contender("G2N2Σ-3", "r-G_L3Σ", 3, None, "Σ2-FWL", options={"marks": "orbits"}),
        # Two layers before the mark and one inside it, on four copies in training: a twentieth of
        # the price of three layers on every copy of a graph of EXP.
        Contender("G2N2Σ-2+1", "r-G_L3Σ", 1, None, "Σ2-FWL", options={"marks": 4, "trunk": 2}),
        Contender("L1ΣΣ-9", "r-G_L1ΣΣ", 9, None, "ΣΣ1-WL", options={"marks": "orbits"}),
    )
}
"""Networks with marks, beyond 3-WL. Their words are not counted layer by layer: the functions
between layers save some."""


@dataclass(frozen=True)
class ExactPower:
    """Exact power of a contender on a suite."""

    # pairs separated by words (None without a grammar), within the bound, and all
    metrics: dict[str, float | None]
    beyond: set[int]  # indices of the pairs beyond that bound, if the suite lists its pairs
    # pairs separated in each category, or within the bound if there is no grammar
    categories: dict[str, int]


def exact_power(contender: Contender, suite: Suite) -> ExactPower:
    within, words = _within(contender, suite), word_classes(contender, suite)
    pairs = [] if isinstance(suite.pairs, SameSizePairs) else list(suite.pairs)
    decisive, total = words or within, len(suite.pairs)
    categories = Counter(dict.fromkeys(suite.categories, 0))
    for name, (i, j) in zip(suite.categories, pairs, strict=False):
        categories[name] += decisive[i] != decisive[j]
    separated = None if words is None else total - suite.merged(words)
    return ExactPower(
        metrics={SEPARATED: separated, BOUND: total - suite.merged(within), PAIRS: total},
        beyond={index for index, (i, j) in enumerate(pairs) if within[i] == within[j]},
        categories=dict(categories),
    )


def _within(contender: Contender, suite: Suite) -> tuple[int, ...]:
    """A class for each graph, equal if no weights tell two graphs apart."""
    if isinstance(contender.bound, int):
        return wl_classes(suite, contender.bound)
    test = WLTest.find(contender.bound)
    assert test is not None, contender.bound
    return refinement_history(suite, test)[-1]


def word_classes(contender: Contender, suite: Suite) -> list[int] | None:
    """A class for each graph, equal if the words merge two graphs; None without a grammar."""
    if contender.grammar is None:
        return None
    grammar = find_grammar(contender.grammar)
    probes = probe_graphs(grammar, suite.graphs, contender.layers, "network")
    classes: list[int] = probes.graph_colours.tolist()
    return classes


def suite_checksum(suite: Suite) -> str:
    """sha256 over the graphs, in their order."""
    digest = hashlib.sha256()
    for graph in suite.graphs:
        digest.update(str(graph.shape).encode())
        digest.update(graph.astype("int8").tobytes())
    return digest.hexdigest()
