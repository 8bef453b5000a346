"""What a network costs before it is allocated: parameters, FLOPs, activation memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ..language.operations import OPERATIONS
from ..language.printing import to_text
from ..language.signatures import Contraction
from ..language.sorts import Sort
from ..language.terms import Apply, MarkSum, Term, holes
from .plan import Linear, MemoryUpdate, NetworkPlan, RuleStep
from .readout_plan import PARTS

VECTOR_WORK = frozenset({"diag(V_c)V_c", "M⊙I"})
"""Bodies that are computed on the n entries of a vector, however they are written."""
COPIES_BYTES = 2**30
"""What the marked copies that are computed together may take; on a GPU an eighth of its memory."""


@dataclass(frozen=True)
class Cost:
    """Cost of one part of a network for one batch."""

    parameters: int = 0  # numbers learned
    # multiplications and additions of the forward pass, two for each fused pair. Biases,
    # activations and masks are left out.
    flops: int = 0
    activations: int = 0  # numbers kept for the backward pass

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.activations + other.activations,
        )


@dataclass(frozen=True)
class NetworkCost:
    """Costs of a plan for `batch` graphs of `nodes` nodes, part by part."""

    plan: NetworkPlan
    batch: int
    nodes: int

    @cached_property
    def parts(self) -> dict[str, Cost]:
        """Inputs, each layer, read-out and decision; those before the marks first."""
        parts = {} if self.trunk is None else dict(self.trunk.parts)
        parts["inputs" if self.trunk is None else "marked copies"] = self.inputs()
        parts |= {**self._layers("layer"), "read-out": self.readout()}
        if self.plan.marks and not self.plan.scoped:
            parts["marks"] = self.marks()
        return parts | {"decision": self.decision()}

    def _layers(self, name: str) -> dict[str, Cost]:
        return {
            f"{name} {number + 1}": sum(map(self.update, layer.updates), self.norms(number))
            for number, layer in enumerate(self.plan.layers)
        }

    @property
    def graphs(self) -> int:
        """Graphs the layers compute on: with marks the copies, unless those meet."""
        marks = self.plan.marks
        pooled = marks is not None and not self.plan.scoped
        return self.batch * self.copies ** len(marks.names) if marks and pooled else self.batch

    @property
    def copies(self) -> int:
        """Copies of a graph for each mark: in training, where they are drawn; else at most."""
        marks = self.plan.marks
        drawn = marks.chosen if marks is not None else None
        return min(self.nodes, drawn) if isinstance(drawn, int) else self.nodes

    @cached_property
    def trunk(self) -> NetworkCost | None:
        """The layers before the marks, as those of a network without a read-out; None without."""
        plan, marks = self.plan, self.plan.marks
        if marks is None or not marks.trunk:
            return None
        inputs, embeddings = plan.inputs.unmarked, marks.embeddings
        before = replace(plan, inputs=inputs, embeddings=embeddings, layers=marks.trunk, marks=None)
        return _TrunkCost(before, self.batch, self.nodes)

    @property
    def total(self) -> Cost:
        return sum(self.parts.values(), Cost())

    @property
    def weights(self) -> int:
        """Numbers learned."""
        return self.total.parameters

    @property
    def training_flops(self) -> int:
        """Forward and backward: the backward pass does each product twice."""
        return 3 * self.total.flops

    def activation_bytes(self, bytes_each: int = 4) -> int:
        return self.total.activations * bytes_each

    def inputs(self) -> Cost:
        """The first memories, the supports the grammar defines, and the embeddings."""
        total = sum((self.memory(s, w) for s, w in self.plan.first_widths.items()), Cost())
        for _, term in self.plan.grammar.supports:
            total += Cost(flops=self.graphs * rule_flops(term, self.nodes))
        for sort, linear in self.plan.embeddings:
            total += self.linear(sort, linear)
        return total

    def memory(self, sort: Sort, width: int) -> Cost:
        """A memory that is given and not computed."""
        return Cost(activations=self._entries(sort) * width)

    def update(self, update: MemoryUpdate) -> Cost:
        """Cost of one memory's update in one layer."""
        steps = (self.selectors(step) + self.rule(step) for step in update.steps)
        return sum(steps, self.mixer(update))

    def selectors(self, step: RuleStep) -> Cost:
        """The maps that bring a rule's operands; what they give is kept where the rule needs it."""
        total = Cost()
        for selector in step.selectors:
            for linear in selector.maps:
                total += self.linear(selector.sort, linear, kept=len(selector.maps) > 1)
        return total

    def rule(self, step: RuleStep) -> Cost:
        """All occurrences of a rule in one layer; what is summed over a mark, on every copy."""
        body, scope = step.rule.body, step.rule.head.scope
        each = step.copies * self.graphs * int(self.copies**scope)
        if not isinstance(body, MarkSum):
            return Cost(0, each * rule_flops(body, self.nodes), each * kept(body, self.nodes))
        work = rule_flops(body.body, self.nodes) + entries(body.sort, self.nodes)
        each *= self.copies
        return Cost(0, each * work, each * kept(body.body, self.nodes))

    def mixer(self, update: MemoryUpdate) -> Cost:
        """The concatenation and the MLP, or the released code's bilinear map."""
        first = update.mixer[0]
        entries = self._entries(update.sort)
        total = Cost(activations=entries * first.width_in)
        if update.kind == "bilinear":
            total += Cost(flops=2 * entries * self.nodes * first.width_in)
        for linear in update.mixer:
            total += self.linear(update.sort, linear)
            if linear is not update.mixer[-1] and self.plan.preset.activation != "relu":
                total += Cost(activations=entries * linear.width_out)  # its input is kept too
        return total

    def norms(self, layer: int) -> Cost:
        """The normalisations in front of a layer, where the preset has them."""
        norms = self.plan.layers[layer].norms
        kept = sum(self._entries(sort) * width for sort, width in norms)
        return Cost(sum(width for _, width in norms), 4 * kept, kept)

    def readout(self) -> Cost:
        """Pooling, the rules of S and the vector the decision reads."""
        steps = self.plan.readout.steps
        return sum((self.selectors(step) + self.rule(step) for step in steps), self.pooling())

    def pooling(self) -> Cost:
        """One addition for each number pooled, and the vector the decision reads."""
        plan = self.plan.readout
        widths = self.plan.widths_before(len(self.plan.layers))
        pooled = [part for part, _ in plan.pools] if plan.pooled_width else []
        pooled += ["off-diagonal"] if "row sums C" in plan.local else []
        parts = (PARTS[part] for part in pooled)
        numbers = sum(widths[part.memory] * self._entries(part.entries) for part in parts)
        return Cost(flops=numbers, activations=self._entries(plan.sort) * plan.maps[0].width_in)

    def marks(self) -> Cost:
        """The MLPs in front of the sums over marks, and the sums."""
        assert self.plan.marks is not None, "asked where there are marks"
        total, copies = Cost(), self.graphs
        for mixer in self.plan.marks.mixers:
            total += sum((_rows(copies, linear) for linear in mixer), Cost())
            copies //= self.copies
        return total

    def decision(self) -> Cost:
        """The decision layers."""
        plan = self.plan.readout
        rows = self.batch * entries(plan.sort, self.nodes)
        return sum((_rows(rows, linear) for linear in plan.maps), Cost())

    def linear(self, sort: Sort, linear: Linear, kept: bool = True) -> Cost:
        return _rows(self._entries(sort), linear, kept)

    def _entries(self, sort: Sort) -> int:
        return self.graphs * int(self.copies**sort.scope) * entries(sort, self.nodes)


class _TrunkCost(NetworkCost):
    """Costs of the layers before the marks: nothing is read out of them."""

    @cached_property
    def parts(self) -> dict[str, Cost]:
        return {"inputs": self.inputs(), **self._layers("trunk")}


def _rows(rows: int, linear: Linear, kept: bool = True) -> Cost:
    """A linear map of so many rows; what it gives is kept or not."""
    work = 2 * rows * linear.width_in * linear.width_out
    return Cost(linear.parameters, work, rows * linear.width_out if kept else 0)


def entries(sort: Sort, nodes: int) -> int:
    """Entries of a value of this sort."""
    return int(nodes**sort.boundary)


def rule_flops(body: Term, nodes: int) -> int:
    """Work of one occurrence of a rule for one graph, as its operations are written."""
    if isinstance(body, MarkSum):
        return nodes * (rule_flops(body.body, nodes) + entries(body.sort, nodes))
    if not isinstance(body, Apply):
        return 0
    if to_text(body, powers=False) in VECTOR_WORK:
        return nodes
    inner = sum(rule_flops(argument, nodes) for argument in body.args)
    if not OPERATIONS[body.op].multilinear:
        return inner + entries(body.sort, nodes)
    for letters, summed in _contraction(body).work:
        inner += int(nodes**letters) * (2 if summed and nodes > 1 else 1)
    return inner


def kept(body: Term, nodes: int) -> int:
    """Entries one occurrence keeps for the backward pass: both factors where both are learned.

    A product with a constant keeps nothing, nor do transpose, diag and sums. An operation of
    several operands keeps what it multiplies on the way.
    """
    if isinstance(body, MarkSum):
        return nodes * kept(body.body, nodes)
    if not isinstance(body, Apply):
        return 0
    if to_text(body, powers=False) == "diag(V_c)V_c":
        return 2 * nodes
    inner = sum(kept(argument, nodes) for argument in body.args)
    if body.function:
        return inner + sum(entries(argument.sort, nodes) for argument in body.args)
    if not OPERATIONS[body.op].multilinear:
        return inner
    contraction = _contraction(body)
    sizes = [nodes ** len(axes) for axes in contraction.inputs]
    learned = [bool(holes(argument)) for argument in body.args]
    for used, left in contraction.steps:
        if len(used) == 2 and all(learned[value] for value in used):
            inner += sum(sizes[value] for value in used)
        sizes.append(nodes ** len(left))
        learned.append(any(learned[value] for value in used))
    return inner


def _contraction(body: Apply) -> Contraction:
    return OPERATIONS[body.op].contraction(tuple(argument.sort for argument in body.args))
