"""What takes a step: optimiser, learning rate, average of the weights, all on flat tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.graph_set import Ints
from ..data.store import GraphStore
from .config import Recipe, RunConfig
from .setup import batch_for
from .task import Task

THRESHOLD = 1e-4
"""Least relative change of the validation metric that counts as an improvement."""
MOMENTS = ("exp_avg", "exp_avg_sq")


def cosine_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Linear warm-up, then half a cosine down to zero; a function of the step, not a state."""
    warm = max(1, round(recipe.warmup * steps))
    if step < warm:
        return recipe.rate * (step + 1) / warm
    share = (step - warm) / max(1, steps - warm)
    return recipe.rate * 0.5 * (1.0 + math.cos(math.pi * min(share, 1.0)))


def plateau_rate(recipe: Recipe, history: Sequence[float], higher_is_better: bool) -> float:
    """The rate after these validation results: lowered each time more than `patience` stall."""
    rate, stalled = recipe.rate, 0
    best = -math.inf if higher_is_better else math.inf
    for value in history:
        margin = THRESHOLD * abs(best) if math.isfinite(best) else 0.0
        improved = value > best + margin if higher_is_better else value < best - margin
        best, stalled = (value, 0) if improved else (best, stalled + 1)
        if stalled > recipe.patience:
            rate, stalled = rate * recipe.factor, 0
    return rate


def make_optimiser(model: nn.Module, recipe: Recipe, device: torch.device) -> torch.optim.Optimizer:
    """The recipe's optimiser; matrices decay, biases and gains do not.

    On a GPU its rate is a tensor and it can be recorded in a CUDA graph.
    """
    on_gpu = device.type == "cuda"
    rate = torch.tensor(recipe.rate, device=device) if on_gpu else recipe.rate
    options: dict[str, Any] = {"lr": rate, "capturable": on_gpu, "fused": True}
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    if recipe.optimiser == "adam":
        return torch.optim.Adam(learned, **options)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in learned if p.dim() > 1], "weight_decay": recipe.decay},
        {"params": [p for p in learned if p.dim() <= 1]},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.0, **options)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate; a tensor is filled in place, as CUDA graphs read it."""
    for group in optimiser.param_groups:
        if not isinstance(group["lr"], torch.Tensor):
            group["lr"] = rate
            continue
        device = group["params"][0].device
        if group["lr"].device != device:  # a checkpoint brings it back on the CPU
            group["lr"] = group["lr"].to(device)
        group["lr"].fill_(rate)


class Average:
    """Exponential moving average of a model's weights and of the statistics of its batch norms.

    With decay 0 it is the weights themselves.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        norms = [part for part in model.modules() if isinstance(part, nn.BatchNorm1d)]
        running = (values for norm in norms for values in (norm.running_mean, norm.running_var))
        statistics = [values for values in running if values is not None]
        self.weights: list[Tensor] = [*model.parameters(), *statistics]
        self.shadow = [p.detach().clone() for p in self.weights] if decay else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after a step."""
        if self.decay:
            torch._foreach_lerp_(self.shadow, self.weights, 1.0 - self.keep(step))

    def keep(self, step: int) -> float:
        """The share of the average kept at a step from 1; small at first, so the start fades."""
        return min(self.decay, (1.0 + step) / (10.0 + step))

    @torch.no_grad()
    def blend(self, share: Tensor) -> None:
        """`update` with the share of the new weights on the device, where a CUDA graph reads it."""
        if self.decay:
            difference = torch._foreach_sub(self.weights, self.shadow)
            torch._foreach_mul_(difference, share)
            torch._foreach_add_(self.shadow, difference)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the averaged weights in it."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, shadow in zip(self.weights, self.shadow, strict=False):  # none at decay 0
            current = weight.detach().clone()
            weight.copy_(shadow)
            shadow.copy_(current)

    @torch.no_grad()
    def restore(self, state: list[Tensor]) -> None:
        for shadow, saved in zip(self.shadow, state, strict=True):
            shadow.copy_(saved)


@dataclass(eq=False)
class Learner:
    """What an optimiser step works on."""

    model: nn.Module  # the network
    optimiser: torch.optim.Optimizer  # of its weights
    average: Average  # of its weights, updated after each step
    store: GraphStore  # the graphs, with scaled targets
    task: Task  # what is learned of them
    batch: int  # graphs in a step, at most
    clip: float = 0.0  # largest gradient norm; 0 for none
    half: bool = False  # whether products are in bfloat16

    @classmethod
    def of(cls, config: RunConfig, model: nn.Module, store: GraphStore, task: Task) -> Learner:
        """With the optimiser and the average that a config asks for."""
        recipe, half = config.effective_recipe(), config.precision == "bf16"
        optimiser = make_optimiser(model, recipe, store.device)
        average = Average(model, recipe.ema)
        return cls(model, optimiser, average, store, task, recipe.batch, recipe.clip, half)

    @property
    def weights(self) -> list[nn.Parameter]:
        return list(self.model.parameters())

    def gradients(self, indices: Ints, at_once: int, scale: float) -> Tensor:
        """Gradients of `scale` times the loss of some graphs, so many at once; returns the loss."""
        self.optimiser.zero_grad()
        losses = []
        for start in range(0, len(indices), at_once):
            batch = batch_for(self.model, self.store, indices[start : start + at_once])
            assert batch.targets is not None, "the store always gives targets"
            with torch.autocast(self.store.device.type, torch.bfloat16, enabled=self.half):
                outputs = self.model(batch)
            loss, _ = self.task.loss(outputs, batch.targets)
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def step(self, number: int) -> Tensor:
        """Clip the gradients and take step `number`, from 1; returns the norm they had."""
        norm = nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf)
        self.optimiser.step()
        self.average.update(number)
        return norm


class FlatOptimizerStep:
    """Steps of an Adam or AdamW whose state exists, in one kernel over flat tensors.

    Network, optimiser and average keep their tensors, which become views of the flat ones:
    checkpoints and steps without CUDA graphs are unchanged. The network reads `halves` through
    their half-precision `copies` and `others` as they are; parameter groups differ in weight decay
    only. `share` is that of the new weights in their average; `norm` receives the gradient's norm.
    """

    def __init__(
        self,
        halves: Sequence[Tensor],
        others: Sequence[Tensor],
        copies: Sequence[Tensor],
        learner: Learner,
        share: Tensor,
        norm: Tensor,
    ) -> None:
        from ..ops.adam import FlatState  # not at the top: Triton is not everywhere

        weights = [*halves, *others]
        device = weights[0].device
        optimiser, average = learner.optimiser, learner.average
        self.others, self.copies, self.clip = others, copies, learner.clip
        group = optimiser.param_groups[0]
        self.betas, self.eps = group["betas"], group["eps"]
        states = [optimiser.state[weight] for weight in weights]
        decay = {id(p): g["weight_decay"] for g in optimiser.param_groups for p in g["params"]}
        shadows = {id(w): i for i, w in enumerate(average.weights)}
        averaged = [shadows[id(weight)] for weight in weights] if average.decay else []
        moments = [flattened([state[name] for state in states]) for name in MOMENTS]
        steps, step_views = flattened([state["step"].to(device) for state in states])
        flat, weight_views = flattened([weight.data for weight in weights])
        shadow, shadow_views = flattened([average.shadow[i] for i in averaged], flat)
        copy, copy_views = flattened([c.data for c in copies], flat)
        for weight, view in zip(weights, weight_views, strict=True):
            weight.data = view
        for index, view in zip(averaged, shadow_views, strict=True):
            average.shadow[index] = view
        for c, view in zip(copies, copy_views, strict=True):
            c.data = view
        for number, state in enumerate(states):
            state["step"] = step_views[number]
            for name, (_, views) in zip(MOMENTS, moments, strict=True):
                state[name] = views[number]
        decays = torch.cat([torch.full((w.numel(),), float(decay[id(w)])) for w in weights])
        (first, _), (second, _) = moments
        self.state = FlatState(
            flat, first, second, shadow, copy, decays.to(device), group["lr"], steps, share, norm
        )

    @torch.no_grad()
    def step(self) -> None:
        """Take a step with the gradients of the weights and their copies."""
        from ..ops.adam import step

        self.state.steps.add_(1.0)
        half, _ = flattened([c.grad for c in self.copies], self.state.copy)
        full, _ = flattened([w.grad for w in self.others], self.state.weights)
        step(self.state, half, full, self.clip, self.betas, self.eps)


def flattened(
    tensors: Sequence[Tensor | None], like: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Tensors concatenated, and a view of each; an empty tensor like `like` if there are none."""
    given = [tensor for tensor in tensors if tensor is not None]
    assert len(given) == len(tensors), "every weight that takes part has a gradient"
    if not given:
        assert like is not None, "nothing to go by"
        return like.new_empty(0), []
    flat = torch.cat([tensor.reshape(-1) for tensor in given])
    pieces = flat.split_with_sizes([tensor.numel() for tensor in given])
    return flat, [piece.view(t.shape) for piece, t in zip(pieces, given, strict=True)]


@torch.no_grad()
def init_optimiser_state(optimiser: torch.optim.Optimizer, weights: list[nn.Parameter]) -> None:
    """Make the optimiser's buffers, if they do not exist, without changing a weight."""
    if optimiser.state:
        return
    values = [weight.clone() for weight in weights]
    gradients = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    for weight, value, gradient in zip(weights, values, gradients, strict=True):
        weight.copy_(value)
        weight.grad = gradient
        for buffer in optimiser.state[weight].values():
            if isinstance(buffer, Tensor):
                buffer.zero_()
