"""What a network costs before it is allocated: parameters, FLOPs, activation memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..language.sorts import Sort
from ..language.terms import Apply, Term
from .plan import MemoryUpdate, NetworkPlan


@dataclass(frozen=True)
class Cost:
    """Cost of one part of a network for one batch.

    Attributes:
        parameters: Numbers learned.
        flops: Multiplications and additions of the forward pass, two for each fused pair.
        activations: Numbers kept for the backward pass.
    """

    parameters: int = 0
    flops: int = 0
    activations: int = 0

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
        """Inputs, each layer, read-out and decision."""
        plan = self.plan
        first = Cost(activations=sum(self._entries(s) * w for s, w in plan.inputs.widths.items()))
        for sort, linear in plan.embeddings:
            first += self._linear(sort, linear.width_in, linear.width_out, linear.parameters)
        parts = {"inputs": first}
        for number, layer in enumerate(plan.layers, start=1):
            total = Cost()
            for update in layer.updates:
                total += self.update(update)
            if plan.preset.normalised:
                total += self._norms(number - 1)
            parts[f"layer {number}"] = total
        final = Cost()
        for linear in plan.readout.maps:
            final += self._linear(
                plan.readout.sort, linear.width_in, linear.width_out, linear.parameters
            )
        parts["decision"] = final
        return parts

    @property
    def total(self) -> Cost:
        return sum(self.parts.values(), Cost())

    @property
    def training_flops(self) -> int:
        """Forward and backward: the backward pass does each product twice."""
        return 3 * self.total.flops

    def activation_bytes(self, bytes_each: int = 4) -> int:
        return self.total.activations * bytes_each

    def update(self, update: MemoryUpdate) -> Cost:
        """Cost of one memory's update in one layer."""
        if update.kind == "bilinear":
            channels = update.mixer[0].width_in // update.width_in
            products = 2 * self.batch * self.nodes**2 * channels * update.width_in
            mixing = self._linear(
                update.sort,
                update.mixer[0].width_in,
                update.width_out,
                update.mixer[0].parameters,
            )
            kept = self._entries(update.sort) * channels * update.width_in
            return Cost(0, products, kept) + mixing
        total = Cost()
        for step in update.steps:
            for selector in step.selectors:
                for linear in selector.maps:
                    total += self._linear(
                        selector.sort, linear.width_in, linear.width_out, linear.parameters
                    )
            work = step.copies * self.batch * rule_flops(step.rule.body, self.nodes)
            total += Cost(flops=work, activations=step.copies * self._entries(update.sort))
        joined = update.mixer[0].width_in
        total += Cost(activations=joined * self._entries(update.sort))
        for linear in update.mixer:
            total += self._linear(update.sort, linear.width_in, linear.width_out, linear.parameters)
        return total

    def _norms(self, layer: int) -> Cost:
        widths = dict(self.plan.inputs.widths)
        widths |= {sort: linear.width_out for sort, linear in self.plan.embeddings}
        for earlier in self.plan.layers[:layer]:
            widths |= earlier.widths()
        kept = sum(self._entries(sort) * width for sort, width in widths.items())
        return Cost(sum(widths.values()), 4 * kept, kept)

    def _linear(self, sort: Sort, width_in: int, width_out: int, parameters: int) -> Cost:
        entries = self._entries(sort)
        return Cost(parameters, 2 * entries * width_in * width_out, entries * width_out)

    def _entries(self, sort: Sort) -> int:
        return self.batch * entries(sort, self.nodes)


def entries(sort: Sort, nodes: int) -> int:
    """Entries of a value of this sort."""
    return int(nodes**sort.boundary)


def rule_flops(body: Term, nodes: int) -> int:
    """Work of one occurrence of a rule for one graph, as its operations are written."""
    if not isinstance(body, Apply):
        return 0
    inner = sum(rule_flops(argument, nodes) for argument in body.args)
    here = entries(body.sort, nodes)
    if body.op == "matmul":
        summed = nodes if body.args[0].sort.axes[1] == "n" else 1
        return inner + (2 * here * summed if summed > 1 else here)
    return inner + (0 if body.op in ("transpose", "diag") else here)
