"""One run of Q4: learn the training image, keep the weights that are best on the validation image.

A step has one graph and a squared loss, so this loop does not use `g2n2.training`'s. A linear
read-out can be solved by ridge regression: as a start of the weights, or at every step. The latter
is variable projection: the layers alone learn, and the loss of a step is what the best linear map
of their outputs leaves. The derivative of that loss by the map is zero there, so its gradient is
that of the same loss with the map held fixed, and no solve is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from g2n2.compiler.presets import MODERN_BEFORE, find_preset
from g2n2.data.batch import GraphBatch
from g2n2.errors import TrainingError
from g2n2.nn.baselines import baseline
from g2n2.nn.model import GrammarGNN
from g2n2.nn.supports import SpectralSupports
from g2n2.ops.precision import float32_products
from g2n2.training.config import RECIPES
from g2n2.training.optimiser import cosine_rate, set_rate

from .chebyshev_start import write_chebyshev_start, write_linear_readout
from .filter_images import PARTS, Array, Images, band_response

SHRINK = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge strengths of a read-out; the validation image chooses one."""
LEAST = 1e-6
"""A column with a smaller deviation, in units of the largest or of 1, is a constant."""
CLIP = 1.0
"""Largest norm of the gradient."""


@dataclass(frozen=True)
class FilterNetwork:
    """One row of the table, as in `q4.toml`."""

    name: str
    layers: int = 3
    baseline: str | None = None  # a network of `g2n2.nn.baselines`; None for r-G_L3
    preset: str = MODERN_BEFORE  # of r-G_L3
    width: int = 32  # channels of H, and of C if `matrix_width` is 0
    matrix_width: int = 0  # channels of C
    hidden: int = 32  # width of the first of two decision layers
    # parameter of the start with Chebyshev polynomials; None for a random start
    corner: float | None = None
    hold: float = 1.0  # second parameter of that start
    solved: bool = False  # start the read-out at the least-squares fit to the training image
    # ridge strength of a read-out that is solved at every step; None for one that is trained
    projected: float | None = None
    contrast: float = 1.0  # what grey values are multiplied by, beside the column of ones
    rate: float = 5e-3  # highest learning rate of Adam
    tf32: bool = True  # whether a GPU multiplies in tf32. Powers of a Laplacian need more digits
    options: Mapping[str, Any] = field(default_factory=dict)  # of the baseline, or of the preset
    longer: int = 1  # factor on steps and patience, for cheap networks that learn slowly


@dataclass(frozen=True)
class FilterPlan:
    """What every network gets."""

    runs: int = 10  # seeds 0, 1, …; the median is reported
    steps: int = 400
    patience: int = 150  # a run ends after so many steps without a better validation R²
    every: int = 10  # steps between two evaluations of the validation image

    def of(self, network: FilterNetwork) -> FilterPlan:
        """More steps for some; a read-out solved at every step sees the schedule to its end."""
        steps, patience = (network.longer * n for n in (self.steps, self.patience))
        if network.projected is not None:
            patience = steps
        return replace(self, steps=steps, patience=patience)


class OneGraph(nn.Module):
    """Spectral supports of a graph that never changes: its eigenvectors are found once."""

    def __init__(self, supports: SpectralSupports, batch: GraphBatch) -> None:
        super().__init__()
        self.mix = supports.mix
        with torch.no_grad():
            designed = supports.designed(batch.adjacency, batch.mask)
            if self.mix is None:
                # Matrix by matrix, as products want them: no step has to move 36 MB for that.
                designed = designed.movedim(-1, 0).contiguous().movedim(0, -1)
            self.register_buffer("designed", designed, persistent=False)

    def forward(self, adjacency: Tensor, mask: Tensor) -> Tensor:
        """`[1, N, N, k]`, whatever graph is asked about."""
        designed: Tensor = self.get_buffer("designed")
        return designed if self.mix is None else self.mix(designed)


def make_network(network: FilterNetwork, images: Images, seed: int) -> nn.Module:
    """A network on the images' device, its weights a function of the seed."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = {"node_features": 1, "layers": network.layers, "task": "node"}
    options = dict(network.options)
    if network.baseline is not None:
        shape |= {"width": network.width, "decision": (network.hidden,)}
        model = baseline(network.baseline, **shape, **options).to(images.device)
        supports = getattr(model, "supports", None)
        if isinstance(supports, SpectralSupports):
            model.supports = OneGraph(supports, images.batches["train"])
        return model
    hidden = (network.hidden,) if network.projected is None else ()
    decision = tuple(options.pop("decision", hidden))
    model = GrammarGNN(
        "r-G_L3",
        **shape,
        width={"M": network.matrix_width or network.width, "V_c": network.width},
        preset=replace(find_preset(network.preset), **options),
        decision=decision,
        typical_size=float(len(images.mask)),
    )
    channels = list(range(model.plan.readout.local_width)) if network.solved else []
    if network.corner is not None:
        channels = write_chebyshev_start(model, network.corner, network.hold)
    model = model.to(images.device)
    if channels:
        solve_readout(model, images, channels)
    return model


@torch.no_grad()
def solve_readout(model: GrammarGNN, images: Images, channels: list[int]) -> None:
    """Start the decision layers at the best linear map of some of what they read.

    It is fitted on the training image, and the validation image says how far to shrink it.
    """
    features = {p: read_features(model, images.batches[p])[:, channels] for p in PARTS[:2]}
    inner = features["train"][images.nodes]
    fits = [ridge(inner, images.truth, shrink) for shrink in SHRINK]
    scores = [images.score("validation", numbers(fit.of(features["validation"]))) for fit in fits]
    best = fits[int(np.argmax(scores))]
    start = torch.zeros(model.plan.readout.local_width, device=images.device)
    start[channels] = best.weights.to(start)
    write_linear_readout(model.readout, start, float(best.offset))


def numbers(values: Tensor) -> Array:
    """On the host, in float64."""
    return np.asarray(values.detach().double().cpu())


@dataclass
class Fit:
    """State of a run."""

    step: int = 0  # steps done
    best_step: int = 0  # the step with the best validation R²
    scores: dict[str, float] = field(default_factory=dict)  # R² of each image at that step
    values: Array = field(default_factory=lambda: np.zeros(0))  # the test image at that step, `[n]`
    curve: list[float] = field(default_factory=list)  # validation R² at each evaluation
    died: bool = False  # a gradient or an output was not finite; what was best before counts


def one_run(images: Images, network: FilterNetwork, plan: FilterPlan, seed: int) -> dict[str, Any]:
    """Train one network; the run as it is kept."""
    with float32_products(network.tf32):
        model = make_network(network, images, seed)
        run = fit(model, images, network.rate, plan, network.projected)
    return {
        "seed": seed,
        "step": run.step,
        "best_step": run.best_step,
        "scores": run.scores,
        "curve": run.curve,
        "died": run.died,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "learned": band_response(images, "test", run.values)["learned"],
    }


def fit(
    model: nn.Module,
    images: Images,
    rate: float,
    plan: FilterPlan,
    projected: float | None = None,
) -> Fit:
    """Train until `plan` ends the run, or a gradient is not finite."""
    recipe = replace(RECIPES["paper"], rate=rate)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, rate)
    run, solved = Fit(), projected is not None
    _evaluate(model, images, run, solved)
    if run.died:
        raise TrainingError("the outputs of the network are not finite before it is trained")
    while run.step < plan.steps and run.step - run.best_step < plan.patience and not run.died:
        set_rate(optimiser, cosine_rate(recipe, run.step, plan.steps))
        model.train()
        optimiser.zero_grad()
        torch.autograd.backward(_loss(model, images, projected))
        norm = nn.utils.clip_grad_norm_(weights, CLIP)
        optimiser.step()
        run.step += 1
        if run.step % plan.every == 0 or run.step == plan.steps:
            run.died = not math.isfinite(float(norm))  # once it is not, no later one is
            if not run.died:
                _evaluate(model, images, run, solved)
    return run


def _loss(model: nn.Module, images: Images, projected: float | None) -> Tensor:
    """The squared error of the training image, or what the best linear read-out leaves of it."""
    batch = images.batches["train"]
    if projected is not None:
        features = read_features(cast(GrammarGNN, model), batch)[images.nodes]
        return ridge(features, images.truth, projected).loss
    output: Tensor = cast(Any, model).network(*cast(Any, model).checked(batch))[0, images.nodes, 0]
    return (output - images.truth.float()).square().mean()


def _evaluate(model: nn.Module, images: Images, run: Fit, solved: bool) -> None:
    """Score the validation image, and all images if it is better than ever."""
    candidates = [
        (images.score("validation", values("validation")), values)
        for values in (_solved(model, images) if solved else [partial(outputs, model, images)])
    ]
    score, values = max(candidates, key=lambda pair: pair[0])
    run.died = not math.isfinite(score)
    if run.died:
        return
    if not run.scores or score > run.scores["validation"]:
        run.best_step, run.values = run.step, values("test")
        run.scores = {part: images.score(part, values(part)) for part in PARTS}
    run.curve.append(round(score, 6))


@torch.no_grad()
def _solved(model: nn.Module, images: Images) -> list[Callable[[str], Array]]:
    """The values of every image under the read-out that each ridge strength gives."""
    model.eval()
    network = cast(GrammarGNN, model)
    features = {part: read_features(network, images.batches[part]) for part in PARTS}
    fits = [ridge(features["train"][images.nodes], images.truth, shrink) for shrink in SHRINK]

    def values(fit: Ridge, part: str) -> Array:
        return numbers(fit.of(features[part]))

    return [partial(values, fit) for fit in fits]


@torch.no_grad()
def outputs(model: nn.Module, images: Images, part: str) -> Array:
    """The output of a network for an image, `[n]`."""
    model.eval()
    values: Array = model(images.batches[part])[0, :, 0].double().cpu().numpy()
    return values


@dataclass(frozen=True)
class Ridge:
    """A linear map of columns, and what it leaves."""

    weights: Tensor  # `[P]`, no gradient
    offset: Tensor
    # mean squared error and penalty over the variance of the truth; it has the columns' gradient
    loss: Tensor

    def of(self, columns: Tensor) -> Tensor:
        """`[n]` the map of columns `[n, P]`."""
        return columns.to(self.weights) @ self.weights + self.offset


def ridge(columns: Tensor, truth: Tensor, shrink: float) -> Ridge:
    """The ridge regression of `truth` `[n]` on columns `[n, P]`, in float64.

    Weights are shrunk in units of each column's deviation, the offset is not.
    """
    target = truth.double()
    centred = target - target.mean()
    with torch.no_grad():
        deviation = columns.double().std(0, correction=0)
        useful = ~(deviation <= LEAST * deviation.max().clamp(min=1.0))  # NaN is kept
    chosen = columns.double()[:, useful]
    mean, unit = chosen.mean(0), chosen.std(0, correction=0)
    scaled = (chosen - mean) / unit
    with torch.no_grad():
        square = scaled.T @ scaled
        square.diagonal().add_(shrink * len(scaled))
        solved = torch.linalg.solve(square, scaled.T @ centred)
        weights = target.new_zeros(columns.shape[1])
        weights[useful] = solved / unit
        offset = target.mean() - mean @ weights[useful]
    left = (scaled @ solved - centred).square().mean() + shrink * solved.square().sum()
    return Ridge(weights, offset, left / centred.square().mean())


def read_features(model: GrammarGNN, batch: GraphBatch) -> Tensor:
    """`[n, P]` what the decision layers read of the nodes of one graph."""
    memories, constants = model.final(*model.checked(batch))
    return model.readout.features(memories, batch.mask, constants)[0]
