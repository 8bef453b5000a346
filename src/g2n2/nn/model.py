"""GrammarGNN: the network of any grammar; G2N2 is the one of r-G_L3."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from ..compiler.costs import NetworkCost
from ..compiler.grammar_to_plan import plan_network, undefined_supports
from ..compiler.inputs import ScopedInputs
from ..compiler.lowering import Constants, columns_only, lower, on_either
from ..compiler.marks import Marks
from ..compiler.plan import NetworkPlan
from ..compiler.presets import Preset
from ..compiler.readout_plan import Task
from ..data.batch import LARGE, GraphBatch, PackedBatch
from ..data.pyg_fields import pyg_data, pyg_shape
from ..errors import DataError, LoweringError, ShapeError
from ..grammars.coercion import GrammarLike, as_network_grammar
from ..grammars.grammar import Grammar
from ..language.sorts import R, V, primes
from ..language.terms import DISTANCES, Leaf, subterms
from ..ops.precision import without_autocast
from .initialisation import initialise
from .input_memories import LazyConstants, graph_constants, input_memories, part_of
from .layer import ApplyRule, Memories, PlannedLayer, linear
from .marks import PaddedGraphs, SumsOverMarks
from .memory_budget import copies_at_once, refuse_over_budget, validate_batch
from .packed import PackedNetwork, unpacked
from .readout import Readout
from .scopes import SUMS, PaddedCopies, ScopedLayer
from .supports import GIVEN_WITH_BATCHES, SquaredDistances

if TYPE_CHECKING:
    from ..verdict import Verdict

PLAN_OPTIONS = [x for x in signature(plan_network).parameters if x not in ("grammar", "supports")]
BACKENDS = ("auto", "reference", "packed")
RENAMED = {"plain": "packed", "triton": "packed"}
"""What backends were called before."""

AnyBatch = TypeVar("AnyBatch", GraphBatch, PackedBatch)


class GrammarGNN(nn.Module):
    """The network of a grammar (section 3.3 of the paper, for any grammar).

    >>> import torch
    >>> from g2n2 import GrammarGNN, GraphBatch
    >>> model = GrammarGNN("r-G_L3", node_features=5, width=8, layers=2)
    >>> model(torch.randn(3, 5), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([1, 1])
    >>> GrammarGNN("V → AV | 1", width=8)(GraphBatch.of(["C~", "Bw"])).shape
    torch.Size([2, 1])

    Args:
        grammar: A grammar, or what `choose_grammar` reads: a name, rules, a file, a certificate or
            a fragment. A fragment stands for its reduced grammar, with a warning that says so; its
            exhaustive one is `Fragment(…).exhaustive()`, or its printed name `G_{·, Tr}`.
        node_features: Columns of the node features.
        edge_features: Channels of the edge features besides A.
        width: Channels of every memory, or a number for each variable.
        layers: How many layers.
        out: Outputs for each graph, node or edge.
        task: What an output belongs to: `graph`, `node` or `edge`.
        readout: `grammar` for the rules of S, `pooled` for pooled memories joined by the rules of S
            that pooling does not contain; the preset's where None. See `plan_network`.
        preset: `modern`, `paper`, `official` or `ppgn`.
        decision: Hidden widths of the decision layers; the preset's where None.
        context: Append what is read out of the whole graph to every node or edge.
        directed: Give Aᵀ as an input too, which directed graphs need.
        supports: A module (adjacency `[B, N, N]`, mask) -> `[B, N, N, k]` that gives the values
            of supports without a definition; D, the squared distances, needs none.
        typical_size: Mean number of nodes of the graphs to come; scales sums in `modern`.
        memory_budget: Bytes one forward and backward pass may take; what is free where None.
        backend: `reference` as the plan reads, `packed` on rows without padding, with kernels for
            small graphs on a GPU; `auto` is `packed`.
        pooling: `sum`, `mean` or `max`, for all parts or by part; the preset's where None.
        functions: `mlp` for an MLP on every memory; `free` only where it adds nothing to the words
            of the grammar, and linear maps elsewhere.
        pair_bias: Whether MLPs on M have biases; the preset's where None.
        pair_norm: How `modern` reads M: normalised for each `entry` or by one number for each
            `graph`, or as it is (`none`); the preset's where None.
        marks: For a grammar with marks (r-G_L3Σ), the vertices that are marked: `all`, `orbits`,
            `heavy`, or how many are drawn in training; see `g2n2.nn.marks`. Where columns or
            matrices are summed over marks (L3Σ (full)): `all` or a number.
        trunk: For a grammar with marks, layers before the marks, which all copies of a graph
            share; where words enter or leave marks before the end, there are none.

    What was asked for stays in `options`; `formula` is the text of the formula written into the
    weights, if one was.

    Input is a `GraphBatch`, a PyG `Data` or `Batch`, or PyG's tensors. Output is `[B, out]` for
    graphs; for nodes and edges `[B, N, out]` and `[B, N, N, out]` from a GraphBatch, and one row
    per node or per column of `edge_index` from PyG. Where the batch's A is sparse, edges have one
    row for each of its entries. A `PackedBatch` gives one row per graph, node or pair.

    Attributes:
        columns_only: Whether a sparse A will do: rules use it only in products with columns.
    """

    def __init__(
        self,
        grammar: GrammarLike = "r-G_L3",
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
        backend: str = "auto",
        pooling: str | Mapping[str, str] | None = None,
        functions: str = "mlp",
        pair_bias: bool | None = None,
        pair_norm: str | None = None,
        marks: Marks = "all",
        trunk: int = 0,
    ) -> None:
        given = dict(locals())  # before any other name is bound here
        super().__init__()
        self.options: dict[str, Any] = {name: given[name] for name in PLAN_OPTIONS}

        def planned(taken: Grammar) -> NetworkPlan:
            return plan_network(taken, **self.options, supports=given["supports"] is not None)

        chosen = as_network_grammar(grammar, lambda g: NetworkCost(planned(g), 1, 1).weights)
        self.plan = planned(chosen)
        self.formula = ""
        self.typical_size = typical_size
        if not isinstance(memory_budget, int | float | None):
            raise LoweringError(f"memory_budget is a number of bytes, got {memory_budget!r}")
        self.memory_budget = memory_budget
        self.estimates: dict[tuple[int | None, ...], int] = {}
        self.backend = known_backend(backend)
        if supports is None and DISTANCES.name in undefined_supports(self.plan.words):
            supports = SquaredDistances()
        if supports is not None and not isinstance(supports, nn.Module):
            raise LoweringError(f"supports is a torch.nn.Module or None, got {supports!r}")
        self.supports = supports
        self._build(self.plan)
        initialise(self)

    def _build(self, plan: NetworkPlan) -> None:
        self.undefined = undefined_supports(plan.words)
        updates = [update for layer in plan.layers for update in layer.updates]
        steps = [*(step for update in updates for step in update.steps), *plan.readout.steps]
        bodies = [step.rule.body for step in steps]
        named = {leaf.name for body in bodies for leaf in subterms(body) if isinstance(leaf, Leaf)}
        self.names_adjacency = bool(named - {"1", "I", "J"} or plan.marks)
        self.embeddings = nn.ModuleDict(
            {sort.letter: linear(part) for sort, part in plan.embeddings}
        )
        self.layers, self.trunk = (
            nn.ModuleList(
                (ScopedLayer if plan.scoped else PlannedLayer)(layer, plan.preset)
                for layer in layers
            )
            for layers in (plan.layers, plan.trunk)
        )
        first = plan.marks.embeddings if plan.marks else ()
        self.trunk_embeddings = nn.ModuleDict({sort.letter: linear(part) for sort, part in first})
        self.readout = Readout(plan.readout, plan.preset, self.typical_size)
        self.marks: SumsOverMarks | None = None
        if plan.marks and not plan.scoped:
            self.marks = SumsOverMarks(plan.marks, plan.preset, self.readout.unit)
        self.columns_only = self.supports is None and not plan.marks and columns_only(plan.words)
        self._lower()

    def _lower(self) -> None:
        """Make what is no module: functions of tensors from terms, and the packed executor."""
        supports, words = dict(self.plan.grammar.supports), dict(self.plan.inputs.terms)
        self.defined = {name: lower(term) for name, term in supports.items()}
        self.words = {name: lower(term) for name, term in words.items()}
        if self.columns_only:  # every rule and word takes a sparse A too
            for module in self.modules():
                if isinstance(module, ApplyRule):
                    module.compute = on_either(module.compute, module.rule.body, supports)
            for name, term in words.items():
                self.words[name] = on_either(self.words[name], term, supports)
        self.packed = PackedNetwork(self)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies, which make anew what is no module."""
        made = ("defined", "words", "packed")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._lower()

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Outputs for PyG's tensors, a PyG `Data` or `Batch`, or a GraphBatch.

        Args:
            x: `[nodes, F]` node features, `torch.empty(nodes, 0)` for none; or a `Data`, `Batch`
                or `GraphBatch`, which then stands alone.
            edge_index: `[2, E]`; an undirected edge stands there both ways, parallel ones add up.
            edge_attr: `[E, D]`, or `[E]` for one channel.
            batch: `[nodes]` the graph of each node, sorted; None for one graph.
            edge_weight: `[E]` entries of A, 1 where None.
        """
        if isinstance(x, PackedBatch):
            return self.packed.on_graphs(self.packed.of_batch(self.fitted(x)))
        if isinstance(x, GraphBatch):
            return self.network(*self.checked(x))
        data = pyg_data(x, edge_index, edge_attr, batch, edge_weight)
        graphs = self.batch_of(data)
        return graphs.as_pyg(self.network(*self.checked(graphs)), data, self.plan.readout.task)

    def batch_of(self, data: Any) -> GraphBatch:
        """The batch of PyG's data for this network, refused before it is made if too large."""
        count, nodes = pyg_shape(data)
        sparse = self.columns_only and nodes >= LARGE and data.edge_index is not None
        refuse_over_budget(self, count, nodes, data.edge_index.shape[-1] if sparse else None)
        squared = isinstance(self.supports, SquaredDistances)
        return GraphBatch.from_pyg(data, columns_only=self.columns_only, squared=squared)

    def fitted(self, batch: AnyBatch) -> AnyBatch:
        """The batch, if it fits this network.

        Raises:
            ShapeError: Another number of features, or too large for the memory budget.
            DataError: Directed graphs the words of this network cannot read, or numbers of another
                dtype or device.
        """
        inputs = self.plan.inputs
        validate_batch(self, batch, inputs.node_features, inputs.edge_features)
        if batch.directed and not inputs.directed_safe:
            reads = "make the network with directed=True"
            if not inputs.matrix:
                words = {V: "{0} → (Aᵀ){0}", R: "{0} → {0}(Aᵀ)"}
                variables = (x for x in self.plan.grammar.variables if x.plain in words)
                variable = next(variables, V)
                reads = "add " + words[variable.plain].format(variable.variable)
            raise DataError(
                f"some graph is directed (A is not symmetric), and no word of "
                f"{self.plan.grammar.name or 'this grammar'} reads Aᵀ: {reads}, "
                "or symmetrise the graphs"
            )
        if isinstance(batch, PackedBatch):
            packing = batch.packing
            refuse_over_budget(self, -(-packing.pairs // packing.most**2), packing.most)
            return batch
        sparse = batch.adjacency.is_sparse
        if sparse and not self.columns_only:
            raise DataError(
                f"the batch has a sparse A, and {self.plan.grammar.name or 'this grammar'} reads "
                "its entries: make it dense, dataclasses.replace(batch, "
                "adjacency=batch.adjacency.to_dense())"
            )
        count, nodes = batch.mask.shape
        refuse_over_budget(self, count, nodes, batch.adjacency._nnz() if sparse else None)
        return batch

    def checked(self, batch: GraphBatch) -> tuple[Tensor, ...]:
        """The four tensors of a batch that fits this network, or five where supports are known."""
        batch = self.fitted(batch)
        four = batch.adjacency, batch.nodes, batch.edges, batch.mask
        if batch.designed is None or not isinstance(self.supports, GIVEN_WITH_BATCHES):
            return four
        return *four, batch.designed

    def network(
        self,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None = None,
    ) -> Tensor:
        """Tensors in, tensors out: what is compiled and exported."""
        if self.packs:
            return self.packed(adjacency, nodes, edges, mask, designed)
        if self.marks is not None:
            return self._marked(self.marks, adjacency, nodes, edges, mask, designed)
        return self.read_out(*self.final(adjacency, nodes, edges, mask, designed), mask)

    def _marked(
        self,
        marks: SumsOverMarks,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None,
    ) -> Tensor:
        """Outputs of a network with marks."""
        constants = self.constants(adjacency, mask, designed)
        shared = input_memories(self.plan.inputs.unmarked, self.words, nodes, edges, constants)
        shared = self._through(self.trunk_embeddings, self.trunk, shared, constants, mask)
        graphs = PaddedGraphs(self._read_copies, adjacency, nodes, edges, mask, shared)
        compiled = torch.compiler.is_compiling()
        features = marks(graphs, None if compiled else copies_at_once(self, mask.shape[1]))
        with without_autocast(mask.device.type):
            return self.readout.decide(features)

    def _read_copies(
        self, adjacency: Tensor, columns: Tensor, mask: Tensor, shared: Memories
    ) -> Tensor:
        """`[C, P]` what is read out of marked copies, given the columns of their marks."""
        constants = self._constants_of_copies(adjacency, mask, columns)
        first = self._first_of_copies(columns, shared, constants)
        memories = self._through(self.embeddings, self.layers, first, constants, mask)
        with without_autocast(mask.device.type):
            return self.readout.features(memories, mask, constants)

    def _constants_of_copies(
        self, adjacency: Tensor, mask: Tensor, columns: Tensor
    ) -> LazyConstants:
        """What a rule may name on marked copies: the marks too."""
        assert self.plan.marks is not None, "whose copies they are"
        marks = dict(zip(self.plan.marks.names, torch.split(columns, 1, dim=-1), strict=True))
        return self.constants(adjacency, mask).beside(marks)

    def _first_of_copies(self, columns: Tensor, shared: Memories, constants: Constants) -> Memories:
        """What the memories of marked copies start with, given what the copies of a graph share."""
        none = columns.new_zeros(())
        seeds = input_memories(self.plan.inputs.marked, self.words, columns, none, constants)
        return {
            letter: torch.cat([x[letter] for x in (shared, seeds) if letter in x], dim=-1)
            for letter in dict.fromkeys((*shared, *seeds))
        }

    def _meeting(
        self,
        scoped: ScopedInputs,
        tensors: tuple[Tensor, Tensor, Tensor, Tensor],
        constants: LazyConstants,
        depth: int | None,
    ) -> Memories:
        """The memories of the graphs after some layers, where marked copies meet."""
        plan, (adjacency, nodes, edges, mask) = self.plan, tensors
        assert plan.marks is not None, "whose copies they are"
        whole = plan.inputs.unmarked
        first = input_memories(whole, self.words, nodes, edges, constants)
        inside = part_of(first, whole, scoped.inside)
        graphs = PaddedGraphs(self._read_copies, adjacency, nodes, edges, mask, inside)
        chosen = graphs.choose(plan.marks.chosen, self.training)
        marked = graphs.copies(chosen)
        named = self._constants_of_copies(marked.adjacency, marked.mask, marked.columns)
        copies = PaddedCopies(chosen, (constants, named))
        starts = (
            part_of(first, whole, scoped.outside),
            self._first_of_copies(marked.columns, marked.memories, named),
        )
        with without_autocast(mask.device.type):
            outer, inner = (
                memories | {x: embed(memories[x]) for x, embed in self.embeddings_of(scope).items()}
                for scope, memories in enumerate(starts)
            )
        held = outer, inner
        for layer in self.layers[:depth]:
            held = layer(held, copies)
        if depth is not None or not self.readout.sums:
            return held[0]
        with without_autocast(mask.device.type):
            outer, inner = ({x: m.to(self.readout.dtype) for x, m in each.items()} for each in held)
            sums = [sentence((outer, inner), copies) for sentence in self.readout.sums]
        return held[0] | {SUMS: torch.cat(sums, dim=1)}

    def embeddings_of(self, scope: int) -> dict[str, nn.Module]:
        """The embeddings of the memories outside a mark or inside, by plain letters."""
        tail = primes(scope)
        return {x[:1]: embed for x, embed in self.embeddings.items() if x[1:] == tail}

    def read_out(self, memories: Memories, constants: Constants, mask: Tensor) -> Tensor:
        """Outputs from the last memories, in the dtype of the weights whatever autocast says."""
        with without_autocast(mask.device.type):
            output: Tensor = self.readout(memories, mask, constants)
        return output

    def final(
        self,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None = None,
        *,
        depth: int | None = None,
    ) -> tuple[Memories, LazyConstants]:
        """The memories after `depth` layers, all where None, and the constants rules may name.

        Raises:
            LoweringError: The memories are those of marked copies, and no graph has some.
        """
        if self.marks is not None:
            raise LoweringError(
                f"{self.plan.grammar.name or 'this grammar'} has marks, so its memories are those "
                "of marked copies and not of graphs; ask for outputs, or take a grammar without"
            )
        constants = self.constants(adjacency, mask, designed)
        if self.packs:
            graphs = self.packed.pack(adjacency, nodes, edges, mask, designed)
            rows = self.packed.run(graphs, depth)
            letters = {x: "S" if x == SUMS else x for x in rows}
            return {
                x: unpacked(rows[x], letter, graphs.packing, mask) for x, letter in letters.items()
            }, constants
        if self.plan.scoped is not None:
            tensors = adjacency, nodes, edges, mask
            return self._meeting(self.plan.scoped, tensors, constants, depth), constants
        memories = input_memories(self.plan.inputs, self.words, nodes, edges, constants)
        layers = self.layers[:depth]
        return self._through(self.embeddings, layers, memories, constants, mask), constants

    def _through(
        self,
        embeddings: nn.ModuleDict,
        layers: nn.ModuleList,
        memories: Memories,
        constants: LazyConstants,
        mask: Tensor,
    ) -> Memories:
        """The memories after some layers, as the layers are written.

        Under autocast the layers run in its dtype. The embedding does not: distances need more
        digits than a half-precision input has.
        """
        with without_autocast(mask.device.type):
            for letter, embed in embeddings.items():
                memories[letter] = embed(memories[letter])
        for number, layer in enumerate(layers):
            if number and self.plan.preset.between:
                memories = {letter: value.relu() for letter, value in memories.items()}
            memories = layer(memories, constants)
        return memories

    @property
    def packs(self) -> bool:
        """Whether a batch is computed on packed rows, and not as the layers are written.

        `torch.compile` fuses plain operations itself.
        """
        return self.backend != "reference" and not torch.compiler.is_compiling()

    def constants(
        self, adjacency: Tensor, mask: Tensor, designed: Tensor | None = None
    ) -> LazyConstants:
        """What a rule may name, zero at the padding.

        Args:
            adjacency: `[B, N, N]`; where it is sparse, A is one sparse matrix for all graphs, and
                `ends` has the ends of every edge.
            mask: `[B, N]`.
            designed: Spectral supports, where they are known.
        """
        makers = graph_constants(adjacency, mask)
        if self.supports is not None:
            makers["supports"] = lambda c: self._given_supports(c, mask, designed)
        for k, name in enumerate(self.undefined):
            makers[name] = lambda c, k=k: c["supports"][k].unsqueeze(-1)  # type: ignore[misc]
        for name, value in self.defined.items():
            makers[name] = lambda c, v=value: v((), c)  # type: ignore[misc]
        return LazyConstants(makers)

    def _given_supports(self, named: Constants, mask: Tensor, designed: Tensor | None) -> Tensor:
        """`[k, B, N, N]` the supports without a definition, by the module that gives them."""
        assert self.supports is not None, "asked only where there is one"
        given = () if designed is None else (designed,)
        values: Tensor = self.supports(named["A"][..., 0], mask, *given)
        if values.shape[-1] != len(self.undefined):
            raise ShapeError(
                f"supports gave {values.shape[-1]} matrices, the grammar names "
                f"{', '.join(self.undefined)}"
            )
        # Each matrix in one piece, once: every product of every layer would copy it otherwise.
        return (values * named["11ᵀ"]).movedim(-1, 0).contiguous()

    def save(self, path: str | Path) -> None:
        """Write the network into one safetensors file; see `g2n2.nn.files`."""
        from .files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str | torch.device = "cpu") -> GrammarGNN:
        """The network a file holds; see `g2n2.nn.files`."""
        from .files import load

        return load(path, device)

    def power(self, depth: int | None = None) -> Verdict:
        """What this network tells apart at its depth, beside its words; see `g2n2.verdict`."""
        from ..verdict import network_verdict

        return network_verdict(self.plan, depth)

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def extra_repr(self) -> str:
        plan = self.plan
        return f"{plan.grammar.name or 'grammar'}, preset={plan.preset.name}"


class G2N2(GrammarGNN):
    """The network of r-G_L3: G²N² of the paper, as strong as 3-WL given enough layers.

    The arguments are those of `GrammarGNN`.

    >>> from g2n2 import G2N2
    >>> G2N2(node_features=5, width=8, layers=2).plan.grammar.name
    'r-G_L3'
    """

    def __init__(
        self,
        node_features: int = 0,
        edge_features: int = 0,
        width: int | Mapping[str, int] = 64,
        layers: int = 3,
        out: int = 1,
        task: Task = "graph",
        readout: str | Mapping[str, str] | None = None,
        preset: str | Preset = "modern",
        pooling: str | Mapping[str, str] | None = None,
        functions: str = "mlp",
        pair_bias: bool | None = None,
        pair_norm: str | None = None,
        decision: tuple[int, ...] | None = None,
        context: bool = False,
        directed: bool = False,
        supports: nn.Module | None = None,
        typical_size: float = 16.0,
        memory_budget: int | None = None,
        backend: str = "auto",
    ) -> None:
        options = dict(locals())  # before any other name is bound here
        del options["self"], options["__class__"]
        super().__init__("r-G_L3", **options)


def known_backend(backend: str) -> str:
    """The backend of a name, or of one it had before.

    Raises:
        LoweringError: There is none.
    """
    backend = RENAMED.get(backend, backend)
    if backend not in BACKENDS:
        raise LoweringError(f"no backend is called {backend!r}; known: {', '.join(BACKENDS)}")
    return backend
