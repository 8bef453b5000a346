"""One run of Q4: learn the training image, keep the weights that are best on the validation image.

A step has one graph and a squared loss, so this loop does not use `g2n2.training`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

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

CLIP = 1.0
"""Largest norm of the gradient."""
HIDDEN = 32
"""Width of the first of two decision layers."""
SHRINK = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge strengths of a solved read-out; the validation image chooses one."""
LEAST = 1e-6
"""A column with a smaller deviation, in units of the largest or of 1, is a constant."""


@dataclass(frozen=True)
class FilterNetwork:
    """One row of the table, as in `q4.toml`."""

    name: str
    layers: int = 3
    baseline: str | None = None  # a network of `g2n2.nn.baselines`; None for r-G_L3
    preset: str = MODERN_BEFORE  # of r-G_L3
    width: int = 32  # channels of H, and of C if `matrix_width` is 0
    matrix_width: int = 0  # channels of C
    # `solved`: the read-out is a least-squares fit to the training image, over random layers;
    # `chebyshev`: the same, over layers that compute Chebyshev polynomials
    start: Literal["random", "solved", "chebyshev"] = "random"
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
        """More steps for some."""
        steps, patience = (network.longer * n for n in (self.steps, self.patience))
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
    options = {"decision": (HIDDEN,), **network.options}
    if network.baseline is not None:
        made = baseline(network.baseline, **shape, width=network.width, **options)
        model: nn.Module = made.to(images.device)
        supports = getattr(model, "supports", None)
        if isinstance(supports, SpectralSupports):
            model.supports = OneGraph(supports, images.batches["train"])
        return model
    decision = tuple(options.pop("decision"))
    grammar = GrammarGNN(
        "r-G_L3",
        **shape,
        width={"M": network.matrix_width or network.width, "V_c": network.width},
        preset=replace(find_preset(network.preset), **options),
        decision=decision,
        typical_size=float(len(images.mask)),
    )
    channels = list(range(grammar.plan.readout.local_width))
    if network.start == "chebyshev":
        channels = write_chebyshev_start(grammar)
    grammar = grammar.to(images.device)
    if network.start != "random":
        solve_readout(grammar, images, channels)
    return grammar


@torch.no_grad()
def solve_readout(model: GrammarGNN, images: Images, channels: list[int]) -> None:
    """Start the decision layers at the best linear map of some of what they read.

    It is fitted on the training image, and the validation image says how far to shrink it.
    """
    train, validation = (
        readout_inputs(model, images.batches[part])[:, channels] for part in PARTS[:2]
    )
    truth = images.target("train")[images.mask]
    fits = [ridge(train[images.mask], truth, shrink) for shrink in SHRINK]
    scores = [images.score("validation", validation @ weights + c) for weights, c in fits]
    weights, constant = fits[int(np.argmax(scores))]
    start = torch.zeros(model.plan.readout.local_width, device=images.device)
    start[channels] = torch.from_numpy(weights).to(start)
    write_linear_readout(model.readout, start, constant)


@torch.no_grad()
def readout_inputs(model: GrammarGNN, batch: GraphBatch) -> Array:
    """`[n, P]` what the decision layers read of the nodes of one graph."""
    memories, constants = model.final(*model.checked(batch))
    return numbers(model.readout.features(memories, batch.mask, constants)[0])


def ridge(columns: Array, truth: Array, shrink: float) -> tuple[Array, float]:
    """Weights `[P]` and offset of the ridge regression of `truth` `[n]` on columns `[n, P]`.

    Weights are shrunk in units of each column's deviation, the offset is not.
    """
    mean, unit = columns.mean(0), columns.std(0)
    unit[unit <= LEAST * max(unit.max(), 1.0)] = np.inf
    scaled = (columns - mean) / unit
    square = scaled.T @ scaled + shrink * len(scaled) * np.eye(len(unit))
    weights = np.linalg.solve(square, scaled.T @ (truth - truth.mean())) / unit
    return weights, float(truth.mean() - mean @ weights)


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
        run = fit(model, images, network.rate, plan)
    state = {name: value for name, value in vars(run).items() if name != "values"}
    return {
        "seed": seed,
        **state,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "learned": band_response(images, "test", run.values)["learned"],
    }


def fit(model: nn.Module, images: Images, rate: float, plan: FilterPlan) -> Fit:
    """Train until `plan` ends the run, or a gradient is not finite."""
    recipe = replace(RECIPES["paper"], rate=rate)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, rate)
    network, batch = cast(Any, model), images.batches["train"]
    run = Fit()
    _evaluate(model, images, run)
    if run.died:
        raise TrainingError("the outputs of the network are not finite before it is trained")
    while run.step < plan.steps and run.step - run.best_step < plan.patience and not run.died:
        set_rate(optimiser, cosine_rate(recipe, run.step, plan.steps))
        model.train()
        optimiser.zero_grad()
        output = network.network(*network.checked(batch))[0, images.nodes, 0]
        torch.autograd.backward((output - images.truth).square().mean())
        norm = nn.utils.clip_grad_norm_(weights, CLIP)
        optimiser.step()
        run.step += 1
        if run.step % plan.every == 0 or run.step == plan.steps:
            run.died = not math.isfinite(float(norm))  # once it is not, no later one is
            if not run.died:
                _evaluate(model, images, run)
    return run


def _evaluate(model: nn.Module, images: Images, run: Fit) -> None:
    """Score the validation image, and all images if it is better than ever."""
    score = images.score("validation", outputs(model, images, "validation"))
    run.died = not math.isfinite(score)
    if run.died:
        return
    if not run.scores or score > run.scores["validation"]:
        values = {part: outputs(model, images, part) for part in PARTS}
        run.best_step, run.values = run.step, values["test"]
        run.scores = {part: images.score(part, values[part]) for part in PARTS}
    run.curve.append(round(score, 6))


@torch.no_grad()
def outputs(model: nn.Module, images: Images, part: str) -> Array:
    """The output of a network for an image, `[n]`."""
    model.eval()
    return numbers(model(images.batches[part])[0, :, 0])
