"""GrammarGNN: the network of any grammar; G2N2 is the one of r-G_L3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..compiler.inputs import InputPlan
from ..compiler.lowering import Constants, lower
from ..compiler.plan import NetworkPlan
from ..compiler.planning import plan_network, undefined_supports
from ..compiler.presets import Preset
from ..compiler.readout_plan import Task
from ..data.batch import GraphBatch
from ..errors import DataError, ShapeError
from ..grammars.catalogue import find_grammar
from ..grammars.grammar import Grammar
from ..language.sorts import Sort
from .initialisation import initialise
from .layer import GrammarLayer, Memories, linear
from .memory import refuse_over_budget
from .readout import Readout


class GrammarGNN(nn.Module):
    """The network of a grammar (section 3.3 of the paper, for any grammar).

    Args:
        grammar: A grammar, its name, or its rules.
        node_features: Columns of the node features.
        edge_features: Channels of the edge features besides A.
        width: Channels of every memory, or a number for each variable.
        layers: How many layers.
        out: Outputs for each graph, node or edge.
        task: What an output belongs to: `graph`, `node` or `edge`.
        readout: `sum`, `mean` or `max`, for all parts or by part; the preset's where None.
        preset: `modern`, `paper`, `official` or `ppgn`.
        decision: Hidden widths of the decision layers; the preset's where None.
        context: Append the pooled vector to every node or edge.
        directed: Give Aᵀ as an input too, which directed graphs need.
        supports: A module (adjacency `[B, N, N]`, mask) -> `[B, N, N, k]` that gives the values
            of supports without a definition.
        typical_size: Mean number of nodes of the graphs to come; scales sums in `modern`.
        memory_budget: Bytes one forward and backward pass may take, all of the device's where None.

    Input is a `GraphBatch` or a PyG `Data` or `Batch`. Output is `[B, out]` for graphs; for nodes
    and edges `[B, N, out]` and `[B, N, N, out]` from a GraphBatch, and one row per node or per
    column of `edge_index` from PyG.
    """

    def __init__(
        self,
        grammar: str | Grammar = "r-G_L3",
        node_features: int = 0,
        edge_features: int = 0,
        width: int | Mapping[str, int] = 64,
        layers: int = 3,
        out: int = 1,
        task: Task = "graph",
        readout: str | Mapping[str, str] | None = None,
        preset: str | Preset = "modern",
        decision: tuple[int, ...] | None = None,
        context: bool = False,
        directed: bool = False,
        supports: nn.Module | None = None,
        typical_size: float = 16.0,
        memory_budget: int | None = None,
    ) -> None:
        super().__init__()
        chosen = find_grammar(grammar) if isinstance(grammar, str) else grammar
        self.plan = plan_network(
            chosen,
            node_features=node_features,
            edge_features=edge_features,
            width=width,
            layers=layers,
            out=out,
            task=task,
            preset=preset,
            readout=readout,
            decision=decision,
            context=context,
            directed=directed,
            supports=supports is not None,
        )
        self.typical_size = typical_size
        self.memory_budget = memory_budget
        self.supports = supports
        self._build(self.plan)
        initialise(self)

    def _build(self, plan: NetworkPlan) -> None:
        self.defined = {name: lower(term) for name, term in plan.grammar.supports}
        self.undefined = undefined_supports(plan.grammar)
        self.embeddings = nn.ModuleDict(
            {sort.letter: linear(part) for sort, part in plan.embeddings}
        )
        widths: dict[Sort, int] = {
            **plan.inputs.widths,
            **{sort: part.width_out for sort, part in plan.embeddings},
        }
        layers = []
        for layer in plan.layers:
            layers.append(GrammarLayer(layer, plan.preset, widths))
            widths = widths | layer.widths()
        self.layers = nn.ModuleList(layers)
        self.readout = Readout(plan.readout, plan.preset, self.typical_size)

    def forward(self, data: Any) -> Tensor:
        """Outputs for a GraphBatch, or for a PyG `Data` or `Batch`."""
        if isinstance(data, GraphBatch):
            return self.network(*self.checked(data))
        if not hasattr(data, "edge_index"):
            raise DataError(
                f"a network takes a GraphBatch or a PyG Data or Batch, got {type(data).__name__}; "
                "GraphBatch.of([...]) makes one of networkx graphs or matrices"
            )
        batch = GraphBatch.from_pyg(data)
        return _as_pyg(self.network(*self.checked(batch)), data, batch, self.plan.readout.task)

    def checked(self, batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four tensors of a batch that fits this network.

        Raises:
            ShapeError: Another number of features, or too large for the memory budget.
            DataError: Directed graphs the words of this network cannot read.
        """
        inputs = self.plan.inputs
        for what, got, expected in (
            ("node", batch.nodes.shape[-1], inputs.node_features),
            ("edge", batch.edges.shape[-1], inputs.edge_features),
        ):
            if got != expected:
                raise ShapeError(
                    f"the batch has {got} {what} features, the network was made for {expected}: "
                    f"give {what}_features={got} when making it, or other data"
                )
        if batch.directed and not inputs.directed_safe:
            raise DataError(
                f"some graph is directed (A is not symmetric), and no word of "
                f"{self.plan.grammar.name or 'this grammar'} reads Aᵀ: make the network with "
                "directed=True, or symmetrise the graphs"
            )
        refuse_over_budget(self, batch)
        return batch.adjacency, batch.nodes, batch.edges, batch.mask

    def network(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Tensors in, tensors out: what is compiled and exported."""
        memories, constants = self.final(adjacency, nodes, edges, mask)
        output: Tensor = self.readout(memories, mask, constants)
        return output

    def final(
        self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor
    ) -> tuple[Memories, Constants]:
        """The memories after the last layer, and the constants rules may name."""
        constants = self.constants(adjacency, mask)
        memories = first_memories(self.plan.inputs, nodes, edges, constants)
        for letter, embed in self.embeddings.items():
            memories[letter] = embed(memories[letter])
        for number, layer in enumerate(self.layers):
            if number and self.plan.preset.between:
                memories = {letter: value.relu() for letter, value in memories.items()}
            memories = layer(memories, constants)
        return memories, constants

    def constants(self, adjacency: Tensor, mask: Tensor) -> Constants:
        """What a rule may name, zero at the padding."""
        ones = mask.to(adjacency.dtype).unsqueeze(-1)
        pairs = ones.unsqueeze(2) * ones.unsqueeze(1)
        identity = torch.diag_embed(ones[..., 0]).unsqueeze(-1)
        named = {
            "1": ones,
            "11ᵀ": pairs,
            "I": identity,
            "J": pairs - identity,
            "A": adjacency.unsqueeze(-1) * pairs,
            "1/√n": ones.sum((1, 2)).rsqrt(),
        }
        if self.supports is not None:
            values = self.supports(adjacency, mask)
            if values.shape[-1] != len(self.undefined):
                raise ShapeError(
                    f"supports gave {values.shape[-1]} matrices, the grammar names "
                    f"{', '.join(self.undefined)}"
                )
            named |= {name: values[..., [k]] for k, name in enumerate(self.undefined)}
        return named | {name: value((), named) for name, value in self.defined.items()}

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def extra_repr(self) -> str:
        plan = self.plan
        return f"{plan.grammar.name or 'grammar'}, preset={plan.preset.name}"


class G2N2(GrammarGNN):
    """The network of r-G_L3: G²N² of the paper, as strong as 3-WL given enough layers."""

    def __init__(self, node_features: int = 0, edge_features: int = 0, **options: Any) -> None:
        super().__init__("r-G_L3", node_features, edge_features, **options)


def first_memories(plan: InputPlan, nodes: Tensor, edges: Tensor, constants: Constants) -> Memories:
    """C⁰, H⁰ and the rest, as the input plan says."""
    ones, pairs = constants["1"], constants["11ᵀ"]
    memories: Memories = {}
    given = {
        "I": lambda: constants["I"],
        "A": lambda: constants["A"],
        "Aᵀ": lambda: constants["A"].transpose(1, 2),
        "E": lambda: edges * pairs,
        "X": lambda: nodes * ones,
        "diag(X)": lambda: constants["I"] * nodes.unsqueeze(2),
        "1": lambda: ones,
    }
    if plan.matrix:
        memories["M"] = torch.cat([given[part]() for part in plan.matrix], dim=-1)
    if plan.column:
        memories["V"] = torch.cat([given[part]() for part in plan.column], dim=-1)
    if plan.scalar:
        memories["S"] = torch.ones_like(ones[:, 0])
    return memories


def _as_pyg(value: Tensor, data: Any, batch: GraphBatch, task: str) -> Tensor:
    """Outputs in PyG's layout: one row per node, or per column of `edge_index`."""
    if task == "graph":
        return value
    if task == "node":
        return value[batch.mask]
    ends = data.edge_index
    owner = getattr(data, "batch", None)
    graph = torch.zeros_like(ends[0]) if owner is None else owner[ends[0]]
    sizes = batch.sizes
    start = (torch.cumsum(sizes, 0) - sizes)[graph]
    return value[graph, ends[0] - start, ends[1] - start]
