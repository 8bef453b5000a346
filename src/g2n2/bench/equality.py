"""The same numbers first: outputs and gradients of the fast path against the reference.

The truth is the `reference` backend in float64, so that one table of tolerances serves all. Graphs
are few and small, and go the way those of the whole case go.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..data.batching import epoch_batches, sorted_together
from ..nn.model import GrammarGNN
from ..nn.replay import Replay
from ..ops.mixing import plain
from ..training.cuda_graphs import GraphedStep
from ..training.optimiser import Average
from . import work
from .cases import Case, Precision
from .molecules import sizes_of
from .networks import Setting, forward_of
from .precision import autocast, half

TOLERANCE: dict[Precision, float] = {"32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}
"""How far a value may lie from the truth, in parts of it."""
AS_GOOD = 2.0
"""Where the reference in the same precision is further away than that, so many times its error."""
SMALL = 0.02
"""A gradient below this part of the largest is measured against the largest: it is what remains of
large terms that cancel, and so is its error."""
GRAPHS, NODES = 8, 48
"""Sizes of the check: unequal graphs in one batch, small enough for float64."""


@dataclass(frozen=True)
class Check:
    """How far the fast path was from the truth, and how far it may be.

    Attributes:
        outputs: Error of the outputs, in parts of their norm.
        gradients: Error of the worst gradient, in parts of its norm.
        worst: The weight whose gradient that is.
        outputs_allowed: What `outputs` may be.
        gradients_allowed: What `gradients` may be.
    """

    outputs: float
    gradients: float
    worst: str
    outputs_allowed: float
    gradients_allowed: float

    @property
    def passed(self) -> bool:
        near = self.outputs <= self.outputs_allowed, self.gradients <= self.gradients_allowed
        return all(near)  # NaN is near nothing


def check(case: Case, device: torch.device) -> Check:
    """Compare the network of a case, in every way the case runs it, with the reference.

    Returns:
        Of the first way that fails, or else of the last.
    """
    found = []
    for large in ways(case, device):
        with as_large(large, device):
            found.append(_check(case, device))
    return next((one for one in found if not one.passed), found[-1])


def ways(case: Case, device: torch.device) -> list[bool]:
    """Whether batches of a case go the way of a hidden layer that is too large: some may."""
    if device.type == "cpu" and not case.training:
        return [True]  # nothing is kept for a backward pass
    sizes = sizes_of(case)
    batches = epoch_batches(sizes, case.batch, 0, 0, sorted_together(sizes, case.batch, few=0))
    most = getattr(*_threshold(device))
    return sorted({work.hidden_bytes(case, sizes[chosen]) > most for chosen in batches})


@contextmanager
def as_large(large: bool, device: torch.device) -> Iterator[None]:
    """Have small graphs go the way of large ones: no hidden layer is written or kept."""
    module, name = _threshold(device)
    before = getattr(module, name)
    setattr(module, name, 0 if large else before)
    try:
        yield
    finally:
        setattr(module, name, before)


def _threshold(device: torch.device) -> tuple[ModuleType, str]:
    """Where it stands how large a hidden layer may be."""
    if device.type == "cuda":
        from ..ops.mixing import streamed

        return streamed, "HIDDEN_BYTES"
    return plain, "KEPT_BYTES"


def _check(case: Case, device: torch.device) -> Check:
    few = replace(case, batch=min(case.batch, GRAPHS), nodes=min(case.nodes, NODES), batches=1)
    setting = Setting.of(few, device)
    model = setting.network()
    batch = setting.batch(setting.batches[0])
    truth = _reference(model, batch.to(torch.float64), case.precision, torch.float64)
    rounded = _reference(model, batch, case.precision, torch.float32)
    fast = _run(copy.deepcopy(model), batch, case.precision)
    if case.graphed and device.type == "cuda":
        fast = replace(fast, **_graphed(setting, model, batch))
    errors = gradient_errors(fast.gradients, truth.gradients)
    place = max(range(len(errors)), key=lambda i: (errors[i] != errors[i], errors[i]))
    least = TOLERANCE[case.precision]
    return Check(
        outputs=error(fast.outputs, truth.outputs),
        gradients=errors[place],
        worst=[name for name, _ in model.named_parameters()][place],
        outputs_allowed=max(least, AS_GOOD * error(rounded.outputs, truth.outputs)),
        gradients_allowed=max(
            least, AS_GOOD * max(gradient_errors(rounded.gradients, truth.gradients))
        ),
    )


def error(got: Tensor, truth: Tensor) -> float:
    """Norm of the difference, in parts of the truth's."""
    return float((got.double() - truth).norm() / truth.norm().clamp(min=1e-30))


def gradient_errors(got: Sequence[Tensor | None], truth: Sequence[Tensor | None]) -> list[float]:
    """Error of each gradient; one that is missing on one side only is wrong altogether."""
    largest = max(float(value.norm()) for value in truth if value is not None)
    errors = []
    for mine, right in zip(got, truth, strict=True):
        if right is None or mine is None:
            given = mine if right is None else right
            errors.append(0.0 if given is None or not given.any() else 1.0)
            continue
        apart = float((mine.double() - right).norm())
        errors.append(apart / max(float(right.norm()), SMALL * largest, 1e-30))
    return errors


@dataclass(frozen=True, eq=False)
class _Run:
    """Outputs, and the gradients of their mean by weight."""

    outputs: Tensor
    gradients: list[Tensor | None]


def _run(model: GrammarGNN, batch: GraphBatch, precision: Precision) -> _Run:
    with autocast(precision, batch.mask.device):
        outputs = forward_of(model)(batch)
    outputs.double().mean().backward()  # type: ignore[no-untyped-call]
    return _Run(outputs.detach(), [p.grad for p in model.parameters()])


def _reference(
    model: GrammarGNN, batch: GraphBatch, precision: Precision, dtype: torch.dtype
) -> _Run:
    twin = copy.deepcopy(model).to(dtype)
    twin.backend = "reference"
    return _run(twin, batch, "32" if dtype == torch.float64 else precision)


def _graphed(setting: Setting, model: GrammarGNN, batch: GraphBatch) -> dict[str, Any]:
    """What the case's CUDA graph gives in place of the plain pass: gradients or outputs."""
    if setting.case.training:
        return {"gradients": _graphed_gradients(setting, model)}
    network = Replay(model, half(setting.case.precision))
    network(batch)
    return {"outputs": network(batch)}


def _graphed_gradients(setting: Setting, model: GrammarGNN) -> list[Tensor | None]:
    """The gradients a graphed step takes, from what it does to the weights.

    With an ε far beyond any gradient Adam's first step is a plain one: the weights change by rate/ε
    times the gradient. Targets far below all outputs make the L1 loss the mean of the outputs.
    """
    far, gain = 1e9, 1e3  # the change is large beside the weights, so that no digit of it is lost
    setting.store.targets.fill_(-far)
    model = copy.deepcopy(model)
    before = [p.detach().clone() for p in model.parameters()]
    rate = torch.tensor(gain * far, device=setting.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, eps=far, capturable=True, fused=True)
    stepper = GraphedStep(
        model,
        optimiser,
        Average(model, 0.0),
        setting.store,
        setting.task,
        setting.case.batch,
        0.0,
        half(setting.case.precision),
    )
    stepper.step(setting.batches[0], gain * far, 1)
    return [(old - p.detach()) / gain for old, p in zip(before, model.parameters(), strict=True)]
