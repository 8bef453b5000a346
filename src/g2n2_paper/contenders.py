"""Networks whose power is measured after training, and the exact bounds on it.

exact separated    pairs that words of the grammar tell apart with as many layers, linear mixing and
                   the network's read-out; functions between layers may add to it
exact bound        pairs that 1-WL, 3-WL or a test with marks tells apart, which no weights exceed

BREC's protocol wants stacks `[B, n, n]` in, 16 numbers per graph out. What distinguishes two graphs
is, entry by entry, a small part of what a deep network computes: with PyTorch's default weights it
falls below rounding after five or six layers, even in float64. So each linear map is rescaled, on a
few copies of the pair and before any training, so that its inputs and outputs have mean 0 and
deviation 1 over nodes or entries: a choice of initial weights.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.grammars.catalogue import find_grammar
from g2n2.graphs import Adjacency
from g2n2.nn.baselines import BASELINES, baseline
from g2n2.nn.expressivity import FLOOR_ULPS
from g2n2.nn.model import GrammarGNN
from g2n2.power.random_probes import probe_graphs
from g2n2.power.suites import SameSizePairs, Suite
from g2n2.power.table import refinement_history, wl_classes
from g2n2.power.wl_tests import WLTest
from g2n2.training.config import RunConfig

SEPARATED, BOUND, PAIRS = "exact separated", "exact bound", "pairs"
DIMENSIONS = 16
"""Numbers per graph, as in BREC: half of its 32 relabelings."""
DECISION = (64,)


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
        # At about the same price, since only the layer inside has copies. Without marks, words of
        # three layers are the first to tell pairs of EXP apart: this one has two more.
        Contender("G2N2Σ-4+1", "r-G_L3Σ", 1, None, "Σ2-FWL", options={"marks": 4, "trunk": 4}),
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


class Embedding(nn.Module):
    """A network without node or edge features, on stacks of graphs of one size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, adjacency: Tensor) -> Tensor:
        """`[B, n, n]` to `[B, 16]`."""
        count, nodes, _ = adjacency.shape
        mask = torch.ones(count, nodes, dtype=torch.bool, device=adjacency.device)
        features = adjacency.new_zeros(count, nodes, 0)
        edges = adjacency.new_zeros(count, nodes, nodes, 0)
        output: Tensor = cast(Any, self.network).network(adjacency, features, edges, mask)
        return output


def plain_embedding(contender: Contender) -> Embedding:
    """The network as it comes, with random weights."""
    preset: dict[str, Any] = {"preset": contender.preset} if contender.preset else {}
    make = baseline if contender.network in BASELINES else GrammarGNN
    return Embedding(
        make(
            contender.network,
            width=contender.width,
            layers=contender.layers,
            out=DIMENSIONS,
            decision=DECISION,
            **{**preset, **contender.options},
        )
    )


def calibrated_embedding(
    contender: Contender, graphs: Sequence[Adjacency], device: torch.device
) -> Embedding:
    """The network in float64, pooled features standardised, calibrated on some graphs."""
    model = plain_embedding(contender)
    network = cast(Any, model.network)
    readout = network.readout
    width = readout.decision[0].in_features
    readout.decision = nn.Sequential(Standardise(width), *readout.decision)
    if readout.straight is not None:
        readout.straight = nn.Sequential(Standardise(width), readout.straight)
    model = model.to(device, torch.float64).train()
    stack = torch.tensor(np.stack(graphs), dtype=torch.float64, device=device)
    backend = getattr(network, "backend", None)
    if backend is not None:
        network.backend = "reference"  # other backends do not call every map
    calibrate(model, lambda: model(stack))
    if backend is not None:
        network.backend = backend
    return model


class Standardise(nn.Module):
    """Scale every column to mean 0 and deviation 1, by the last batch seen in training.

    The difference of two graphs may be 1e-12 of their pooled features, and the gradient of a cosine
    its square; scaled to its own size it can be learned. Hotelling's T² does not depend on such an
    affine map. A variation below 1,024 units in the last place is rounding and is not amplified.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def forward(self, value: Tensor) -> Tensor:
        if self.training:
            mean, deviation = value.mean(0), value.std(0, correction=0)
            info = torch.finfo(value.dtype)
            least = FLOOR_ULPS * info.eps * value.detach().abs().amax(0) + info.tiny**0.5
            deviation = torch.maximum(deviation, least)
            self.mean, self.deviation = mean.detach(), deviation.detach()
            return (value - mean) / deviation
        return (value - self.mean) / self.deviation


@torch.no_grad()
def calibrate(model: nn.Module, run: Callable[[], Any]) -> None:
    """Rescale all linear maps of a network, in the order in which `run()` calls them."""
    maps = [part for part in model.modules() if isinstance(part, nn.Linear)]
    hooks = [part.register_forward_pre_hook(_rescale) for part in maps]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()


def _rescale(part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    assert isinstance(part, nn.Linear)
    rows = inputs[0].flatten(0, -2)
    part.weight.div_(_sizes(rows)[0])
    values = rows @ part.weight.T
    sizes, vary = _sizes(values)
    part.weight.div_(sizes[:, None])
    if part.bias is not None:
        # a constant, such as 1 or the diagonal of I, must not be centred away.
        part.bias.copy_(torch.where(vary, -values.mean(0) / sizes, 0.0))


def _sizes(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Deviation of every column, or its size if it is constant; and whether it varies."""
    deviation = rows.std(0, correction=0)
    size = rows.square().mean(0).sqrt()
    vary = deviation > torch.finfo(rows.dtype).eps ** 0.5 * size
    sizes = torch.where(vary, deviation, size)
    return torch.where(sizes > 0, sizes, 1.0), vary
