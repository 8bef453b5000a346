"""The networks G²N² is compared with, through the same data, training and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from ..compiler.presets import Preset
from ..compiler.readout_plan import Task
from ..errors import LoweringError
from .model import AnyBatch, GrammarGNN
from .supports import SpectralSupports

Options = Mapping[str, Any]

OF_GRAMMARS = (
    "preset",
    "functions",
    "pair_bias",
    "pair_norm",
    "directed",
    "typical_size",
    "memory_budget",
    "backend",
)
OF_SUPPORTS = ("supports", "bandwidth", "receptive_field", "learned")


@dataclass(frozen=True)
class Baseline:
    """A network to compare with.

    Attributes:
        about: One line on it.
        reads_edges: Whether it reads edge features; the others take them and do not look.
        build: Makes it of the options of `baseline` that were given.
        takes: Options that not every network has.
    """

    about: str
    reads_edges: bool
    build: Callable[[Options], nn.Module]
    takes: tuple[str, ...]


def find_baseline(name: str) -> Baseline:
    """The baseline of that name, in any case.

    Raises:
        LoweringError: There is none; the message lists them.
    """
    found = {key.lower(): entry for key, entry in BASELINES.items()}.get(name.lower())
    if found is None:
        raise LoweringError(f"no baseline is called {name!r}; known: {', '.join(BASELINES)}")
    return found


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
        preset: Of a network that is a grammar; its own where None.
        functions: Of a grammar: which memories have MLPs.
        pair_bias: Of a grammar: whether MLPs on M have biases.
        pair_norm: Of a grammar: how M is normalised.
        directed: Of a grammar: give Aᵀ as an input too.
        typical_size: Of a grammar: mean number of nodes of the graphs to come.
        memory_budget: Of a grammar: bytes one pass may take.
        backend: Of a grammar: what computes it.
        supports: Of GNNML3: how many; 5 where None.
        bandwidth: Of GNNML3, as in `SpectralSupports`.
        receptive_field: Of GNNML3, as in `SpectralSupports`.
        learned: Of GNNML3, as in `SpectralSupports`.
        order: Of ChebNet: polynomials in each layer; 5 where None.
        norm: Of GIN: whether it has batch normalisation; it has where None.

    Raises:
        LoweringError: There is no such baseline, or it does not take an option; the message lists
            what there is.
        G2N2Error: It needs PyG, which is not installed.
    """
    found = find_baseline(name)
    special: dict[str, Any] = {
        "preset": preset,
        "functions": functions,
        "pair_bias": pair_bias,
        "pair_norm": pair_norm,
        "directed": directed,
        "typical_size": typical_size,
        "memory_budget": memory_budget,
        "backend": backend,
        "supports": supports,
        "bandwidth": bandwidth,
        "receptive_field": receptive_field,
        "learned": learned,
        "order": order,
        "norm": norm,
    }
    given = {option: value for option, value in special.items() if value is not None}
    for option in given:
        if option not in found.takes:
            own = "layers of its own and no" if option == "preset" else "no option"
            raise LoweringError(f"{name} has {own} {option}; leave the {option} out")
    return found.build(
        {
            "node_features": node_features,
            "edge_features": edge_features,
            "width": width,
            "layers": layers,
            "out": out,
            "task": task,
            "readout": readout,
            "pooling": pooling,
            "decision": decision,
            "context": context,
            **given,
        }
    )


class WithoutEdgeFeatures(GrammarGNN):
    """The network of a grammar that has no matrices to hold edge features: it leaves them out."""

    def fitted(self, batch: AnyBatch) -> AnyBatch:
        return super().fitted(replace(batch, edges=batch.edges[..., :0]))


def _grammar(name: str, preset: str) -> Callable[[Options], nn.Module]:
    def build(options: Options) -> nn.Module:
        return GrammarGNN(name, **{"preset": preset, **options})

    return build


def _gnnml1(options: Options) -> nn.Module:
    return WithoutEdgeFeatures("GNNML1", **{"preset": "paper", **options, "edge_features": 0})


def _gnnml3(options: Options) -> nn.Module:
    count = options.get("supports", 5)
    of_supports = {k: v for k, v in options.items() if k in OF_SUPPORTS[1:]}
    rest = {k: v for k, v in options.items() if k not in OF_SUPPORTS}
    designed = SpectralSupports(count, **of_supports)
    return WithoutEdgeFeatures(
        f"GNNML3-{count}", **{"preset": "paper", **rest, "edge_features": 0}, supports=designed
    )


def _convolution(name: str) -> Callable[[Options], nn.Module]:
    def build(options: Options) -> nn.Module:
        from .convolutions import ConvolutionGNN

        return ConvolutionGNN(name, **options)

    return build


def _compared(
    about: str, reads_edges: bool, build: Callable[[Options], nn.Module], *more: str
) -> Baseline:
    """A network that is a grammar."""
    return Baseline(about, reads_edges, build, (*OF_GRAMMARS, *more))


BASELINES: dict[str, Baseline] = {
    "GCN": Baseline("Kipf and Welling 2017, PyG's GCNConv", False, _convolution("GCN"), ()),
    "GIN": Baseline(
        "Xu et al. 2019, PyG's DenseGINConv, learned ε, batch norm",
        False,
        _convolution("GIN"),
        ("norm",),
    ),
    "ChebNet": Baseline(
        "Defferrard et al. 2016, PyG's ChebConv", False, _convolution("ChebNet"), ("order",)
    ),
    "GNNML1": _compared("Balcilar et al. 2021, 1-WL, from its grammar", False, _gnnml1),
    "GNNML3": _compared("Balcilar et al. 2021, spectral supports", False, _gnnml3, *OF_SUPPORTS),
    "2-IGN": _compared(
        "Maron et al. 2019, the corrected grammar", True, _grammar("2-IGN", "paper")
    ),
    "PPGN": _compared("Maron et al. 2019, 3-WL with MLPs", True, _grammar("PPGN", "ppgn")),
    "G2N2": _compared("r-G_L3, 3-WL, the preset modern", True, _grammar("r-G_L3", "modern")),
}
