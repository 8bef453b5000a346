"""The networks G²N² is compared with, through the same data, training and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from ..compiler.readout_plan import Task
from ..data.batch import GraphBatch
from ..errors import LoweringError
from .model import GrammarGNN
from .supports import SpectralSupports


@dataclass(frozen=True)
class Baseline:
    """A network to compare with.

    Attributes:
        about: One line on it.
        reads_edges: Whether it reads edge features; the others take them and do not look.
        build: Makes it of the options of `baseline`.
    """

    about: str
    reads_edges: bool
    build: Callable[..., nn.Module]


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
    **options: Any,
) -> nn.Module:
    """A network of `BASELINES`, with the inputs and outputs of a `GrammarGNN`.

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
        **options: `supports` (how many) and the options of `SpectralSupports` for GNNML3, `order`
            for ChebNet, `norm` for GIN, `decision` for all, and those of `GrammarGNN`, as `preset`,
            where the network is one.

    Raises:
        LoweringError: There is no such baseline; the message lists them.
        G2N2Error: It needs PyG, which is not installed.
    """
    found = {key.lower(): entry for key, entry in BASELINES.items()}.get(name.lower())
    if found is None:
        raise LoweringError(f"no baseline is called {name!r}; known: {', '.join(BASELINES)}")
    return found.build(
        node_features=node_features,
        edge_features=edge_features,
        width=width,
        layers=layers,
        out=out,
        task=task,
        readout=readout,
        pooling=pooling,
        **options,
    )


class WithoutEdgeFeatures(GrammarGNN):
    """The network of a grammar that has no matrices to hold edge features: it leaves them out."""

    def __init__(self, grammar: str, *, edge_features: int = 0, **options: Any) -> None:
        super().__init__(grammar, **options)

    def checked(self, batch: GraphBatch) -> tuple[Tensor, ...]:
        return super().checked(replace(batch, edges=batch.edges[..., :0]))


def _grammar(name: str, preset: str) -> Callable[..., nn.Module]:
    def build(**options: Any) -> nn.Module:
        return GrammarGNN(name, **{"preset": preset, **options})

    return build


def _gnnml1(**options: Any) -> nn.Module:
    return WithoutEdgeFeatures("GNNML1", **{"preset": "paper", **options})


def _gnnml3(
    supports: int = 5,
    bandwidth: float = 5.0,
    receptive_field: int = 1,
    learned: bool = True,
    **options: Any,
) -> nn.Module:
    designed = SpectralSupports(supports, bandwidth, receptive_field, learned)
    return WithoutEdgeFeatures(
        f"GNNML3-{supports}", **{"preset": "paper", **options}, supports=designed
    )


def _convolution(name: str) -> Callable[..., nn.Module]:
    def build(**options: Any) -> nn.Module:
        from .convolutions import ConvolutionGNN

        if "preset" in options:
            raise LoweringError(f"{name} has layers of its own and no preset; leave the preset out")
        return ConvolutionGNN(name, **options)

    return build


BASELINES: dict[str, Baseline] = {
    "GCN": Baseline("Kipf and Welling 2017, PyG's GCNConv", False, _convolution("GCN")),
    "GIN": Baseline(
        "Xu et al. 2019, PyG's DenseGINConv, learned ε, batch norm", False, _convolution("GIN")
    ),
    "ChebNet": Baseline("Defferrard et al. 2016, PyG's ChebConv", False, _convolution("ChebNet")),
    "GNNML1": Baseline("Balcilar et al. 2021, 1-WL, from its grammar", False, _gnnml1),
    "GNNML3": Baseline("Balcilar et al. 2021, spectral supports", False, _gnnml3),
    "2-IGN": Baseline("Maron et al. 2019, the corrected grammar", True, _grammar("2-IGN", "paper")),
    "PPGN": Baseline("Maron et al. 2019, 3-WL with MLPs", True, _grammar("PPGN", "ppgn")),
    "G2N2": Baseline("r-G_L3, 3-WL, the preset modern", True, _grammar("r-G_L3", "modern")),
}
