"""The networks G²N² is compared with, through the same data, training and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from ..compiler.presets import Preset
from ..compiler.readout_plan import Task
from ..errors import LoweringError, guess
from .convolutions import ConvolutionGNN
from .model import AnyBatch, GrammarGNN
from .supports import SpectralSupports

Options = Mapping[str, Any]

OF_GRAMMARS = frozenset(
    {"preset", "functions", "pair_bias", "pair_norm", "directed"}
    | {"typical_size", "memory_budget", "backend"}
)
OF_SUPPORTS = frozenset({"supports", "bandwidth", "receptive_field", "learned"})
SPECIAL = OF_GRAMMARS | OF_SUPPORTS | {"order", "norm"}
"""Options that not every network has."""


@dataclass(frozen=True)
class Baseline:
    """A network to compare with."""

    about: str  # one line on it
    reads_edges: bool  # whether it reads edge features; the others take them and do not look
    build: Callable[[Options], nn.Module]  # makes it of the options of `baseline` that were given
    takes: Collection[str]  # those of `SPECIAL` that it has


def find_baseline(name: str) -> Baseline:
    """The baseline of that name, in any case.

    Raises:
        LoweringError: There is none; the message lists them.
    """
    by_name = {key.lower(): entry for key, entry in BASELINES.items()}
    if name.lower() not in by_name:
        known = f"{', '.join(BASELINES)}{guess(name, BASELINES)}"
        raise LoweringError(f"no baseline is called {name!r}; known: {known}")
    return by_name[name.lower()]


def baseline(
    name: str,
    node_features: int = 0,
    edge_features: int = 0,
    width: int = 64,
    layers: int = 3,
    out: int = 1,
    task: Task = "graph",
    readout: str | Mapping[str, str] | None = None,
    pooling: str | Mapping[str, str] | None = None,
    *,
    decision: tuple[int, ...] | None = None,
    context: bool = False,
    preset: str | Preset | None = None,
    functions: str | None = None,
    pair_bias: bool | None = None,
    pair_norm: str | None = None,
    directed: bool | None = None,
    typical_size: float | None = None,
    memory_budget: int | None = None,
    backend: str | None = None,
    supports: int | None = None,
    bandwidth: float | None = None,
    receptive_field: int | None = None,
    learned: bool | None = None,
    order: int | None = None,
    norm: bool | None = None,
) -> nn.Module:
    """A network of `BASELINES`, with the inputs and outputs of a `GrammarGNN`.

    >>> baseline("GNNML1", node_features=3, width=8).plan.grammar.name
    'GNNML1'

    Args:
        name: A key of `BASELINES`, in any case.
        node_features: Columns of the node features.
        edge_features: Channels of the edge features; `reads_edges` says whether they are read.
        width: Channels of every memory.
        layers: How many layers.
        out: Outputs for each graph, node or edge.
        task: `graph`, `node` or `edge`.
        readout: As for `GrammarGNN`; a network without a grammar is pooled.
        pooling: `sum`, `mean` or `max`; the network's own where None.
        decision: Hidden widths of the decision layers; the network's own where None.
        context: Append the pooled vector to every node or edge.
        supports: Of GNNML3: how many; 5 where None.
        bandwidth: Of GNNML3, as in `SpectralSupports`.
        receptive_field: Of GNNML3, as in `SpectralSupports`.
        learned: Of GNNML3, as in `SpectralSupports`.
        order: Of ChebNet: polynomials in each layer; 5 where None.
        norm: Of GIN: whether it has batch normalisation; it has where None.

    The options from `preset` to `backend` are those of `GrammarGNN`, for a network that is a
    grammar; its own where None.

    Raises:
        LoweringError: There is no such baseline, or it does not take an option; the message lists
            what there is.
        G2N2Error: It needs PyG, which is not installed.
    """
    options = dict(locals())  # before any other name is bound here
    chosen = find_baseline(options.pop("name"))
    for option in [name for name in options if name in SPECIAL]:
        if options[option] is None:
            del options[option]
        elif option not in chosen.takes:
            has = "layers of its own and no" if option == "preset" else "no option"
            raise LoweringError(f"{name} has {has} {option}; leave the {option} out")
    return chosen.build(options)


class WithoutEdgeFeatures(GrammarGNN):
    """The network of a grammar that has no matrices to hold edge features: it leaves them out."""

    def fitted(self, batch: AnyBatch) -> AnyBatch:
        return super().fitted(replace(batch, edges=batch.edges[..., :0]))


def _grammar(name: str, preset: str, options: Options) -> nn.Module:
    return GrammarGNN(name, **{"preset": preset, **options})


def _gnnml1(options: Options) -> nn.Module:
    return WithoutEdgeFeatures("GNNML1", **{"preset": "paper", **options, "edge_features": 0})


def _gnnml3(options: Options) -> nn.Module:
    of_supports = {k: v for k, v in options.items() if k in OF_SUPPORTS}
    rest = {k: v for k, v in options.items() if k not in OF_SUPPORTS}
    count = of_supports.pop("supports", 5)
    designed = SpectralSupports(count, **of_supports)
    return WithoutEdgeFeatures(
        f"GNNML3-{count}", **{"preset": "paper", **rest, "edge_features": 0}, supports=designed
    )


def _convolution(name: str, options: Options) -> nn.Module:
    return ConvolutionGNN(name, **options)


BASELINES: dict[str, Baseline] = {
    "GCN": Baseline(
        "Kipf and Welling 2017, PyG's GCNConv", False, partial(_convolution, "GCN"), ()
    ),
    "GIN": Baseline(
        "Xu et al. 2019, PyG's DenseGINConv, learned ε, batch norm",
        False,
        partial(_convolution, "GIN"),
        ("norm",),
    ),
    "ChebNet": Baseline(
        "Defferrard et al. 2016, PyG's ChebConv",
        False,
        partial(_convolution, "ChebNet"),
        ("order",),
    ),
    "GNNML1": Baseline("Balcilar et al. 2021, 1-WL, from its grammar", False, _gnnml1, OF_GRAMMARS),
    "GNNML3": Baseline(
        "Balcilar et al. 2021, spectral supports", False, _gnnml3, OF_GRAMMARS | OF_SUPPORTS
    ),
    **{
        name: Baseline(about, True, partial(_grammar, grammar, preset), OF_GRAMMARS)
        for name, about, grammar, preset in (
            ("2-IGN", "Maron et al. 2019, the corrected grammar", "2-IGN", "paper"),
            ("PPGN", "Maron et al. 2019, 3-WL with MLPs", "PPGN", "ppgn"),
            ("G2N2", "r-G_L3, 3-WL, the preset modern", "r-G_L3", "modern"),
        )
    },
}
