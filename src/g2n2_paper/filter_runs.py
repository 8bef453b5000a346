"""One run of Q4: learn the training image, keep the weights that are best on the validation image.

A step has one graph and a squared loss, so this loop does not use `g2n2.training`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from g2n2.compiler.presets import MODERN_BEFORE, find_preset
from g2n2.data.batch import GraphBatch
from g2n2.data.benchmarks.filtering import FILTERS
from g2n2.data.graph_set import GraphSet
from g2n2.data.store import GraphStore
from g2n2.errors import TrainingError
from g2n2.nn.baselines import baseline
from g2n2.nn.model import GrammarGNN
from g2n2.nn.supports import SpectralSupports
from g2n2.ops.precision import float32_products
from g2n2.spectral.response import spectrum
from g2n2.training.config import RECIPES
from g2n2.training.optimiser import cosine_rate, set_rate

from .chebyshev_start import write_chebyshev_start, write_linear_readout

Array = NDArray[np.float64]
CPU = torch.device("cpu")
PARTS = ("train", "validation", "test")
BANDS = 40
CLIP = 1.0
"""Largest norm of the gradient."""
SHRINK = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge strengths of the read-out's start; the validation image chooses one."""


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
        steps, patience = (network.longer * n for n in (self.steps, self.patience))
        return replace(self, steps=steps, patience=patience)


@dataclass(frozen=True, eq=False)
class Images:
    """The graphs of `load_filtering` and one of its filters to learn, on a device."""

    graphs: GraphSet
    filter: str
    device: torch.device = CPU

    @cached_property
    def adjacency(self) -> Array:
        """`[n, n]` of the grid, the same for all images."""
        return self.graphs.adjacency(0)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """`[n]` true where a node is scored."""
        return np.asarray(np.isfinite(self.target("train")))

    def input(self, part: str) -> Array:
        """`[n]` grey values."""
        return self._of(part, self.graphs.node_features[:, 0].astype(np.float64))

    def target(self, part: str) -> Array:
        """`[n]` filtered, NaN outside the mask."""
        return self._of(part, self.graphs.targets[:, FILTERS.index(self.filter)])

    def score(self, part: str, values: Array) -> float:
        """R² of values `[n]` on the mask."""
        return r_squared(values[self.mask], self.target(part)[self.mask])

    @cached_property
    def batches(self) -> dict[str, GraphBatch]:
        """Each image as a batch of its own."""
        store = GraphStore(self.graphs, self.device)
        return {part: store.batch(self.graphs.splits[part]) for part in PARTS}

    def _of(self, part: str, values: Array) -> Array:
        graph = int(self.graphs.splits[part][0])
        start, end = self.graphs.node_offsets[graph : graph + 2]
        return values[start:end]


def r_squared(values: Array, truth: Array) -> float:
    """1 − Σ(values − truth)² / Σ(truth − mean)²."""
    return 1.0 - float(((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


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
    decision = tuple(options.pop("decision", (network.hidden,)))
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


def solve_readout(model: GrammarGNN, images: Images, channels: list[int]) -> None:
    """Start the decision layers at the best linear map of some of what they read.

    It is fitted on the training image, and the validation image says how far to shrink it.
    """
    features = {part: read_features(model, images, part)[:, channels] for part in PARTS[:2]}
    inner, fits = images.mask, []
    for shrink in SHRINK:
        weights, offset = ridge(features["train"][inner], images.target("train")[inner], shrink)
        score = images.score("validation", features["validation"] @ weights + offset)
        fits.append((score, weights, offset))
    _, weights, offset = max(fits, key=lambda fit: fit[0])
    start = torch.zeros(model.plan.readout.local_width, device=images.device)
    start[channels] = torch.from_numpy(weights).to(start)
    write_linear_readout(model.readout, start, offset)


@torch.no_grad()
def read_features(model: GrammarGNN, images: Images, part: str) -> Array:
    """`[n, P]` what the decision layers read."""
    batch = images.batches[part]
    memories, constants = model.final(*model.checked(batch))
    return np.asarray(model.readout.features(memories, batch.mask, constants)[0].double().cpu())


def ridge(columns: Array, truth: Array, shrink: float) -> tuple[Array, float]:
    """Weights `[P]` and offset of a linear map, shrunk in units of each column's deviation."""
    mean, deviation = columns.mean(0), columns.std(0)
    useful = deviation > 1e-6 * max(1.0, float(deviation.max()))
    unit = np.where(useful, deviation, np.inf)
    scaled = (columns - mean) / unit
    square = scaled.T @ scaled + shrink * len(scaled) * np.eye(scaled.shape[1])
    weights: Array = np.linalg.solve(square, scaled.T @ (truth - truth.mean())) / unit
    return weights, float(truth.mean() - mean @ weights)


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


def fit(model: nn.Module, images: Images, rate: float, plan: FilterPlan) -> Fit:
    """Train until `plan` ends the run, or a gradient is not finite."""
    recipe = replace(RECIPES["paper"], rate=rate)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, rate)
    inputs = cast(Any, model).checked(images.batches["train"])
    scored = np.flatnonzero(images.mask)
    truth = torch.from_numpy(images.target("train")[scored]).float().to(images.device)
    nodes = torch.from_numpy(scored).to(images.device)
    run = Fit()
    _evaluate(model, images, run)
    if run.died:
        raise TrainingError("the outputs of the network are not finite before it is trained")
    while run.step < plan.steps and run.step - run.best_step < plan.patience and not run.died:
        set_rate(optimiser, cosine_rate(recipe, run.step, plan.steps))
        model.train()
        optimiser.zero_grad()
        output = cast(Any, model).network(*inputs)[0, nodes, 0]
        (output - truth).square().mean().backward()
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
        run.best_step, run.values = run.step, outputs(model, images, "test")
        train, test = outputs(model, images, "train"), images.score("test", run.values)
        run.scores = {"train": images.score("train", train), "validation": score, "test": test}
    run.curve.append(round(score, 6))


@torch.no_grad()
def outputs(model: nn.Module, images: Images, part: str) -> Array:
    """The output of a network for an image, `[n]`."""
    model.eval()
    values: Array = model(images.batches[part])[0, :, 0].double().cpu().numpy()
    return values


def band_response(images: Images, part: str, values: Array) -> dict[str, list[float]]:
    """Slopes of `values` `[n]` and of the truth over the input, for each band that is not empty.

    A network need not be linear, so its spectral response is a regression: in each narrow band of
    eigenvalues of D − A, the slope of the output's components over those of the input. Only the
    scored nodes count, so the eigenvectors are those of their own grid; each image is taken less
    its mean.

    Returns:
        `eigenvalues` (middles of bands), `learned` and `truth`.
    """
    inner = images.mask
    frequencies = spectrum(images.adjacency[np.ix_(inner, inner)], "combinatorial")
    edges = np.linspace(0.0, float(frequencies.eigenvalues[-1]), BANDS + 1)
    band = np.clip(np.digitize(frequencies.eigenvalues, edges) - 1, 0, BANDS - 1)

    def components(image: Array) -> Array:
        return np.asarray(frequencies.vectors.T @ (image[inner] - image[inner].mean()))

    entering = components(images.input(part))
    power = np.bincount(band, entering**2, BANDS)
    filled = np.flatnonzero(power > 0)

    def slopes(image: Array) -> list[float]:
        passed = np.bincount(band, entering * components(image), BANDS)
        return [round(float(value), 6) for value in passed[filled] / power[filled]]

    middles = (edges[:-1] + edges[1:])[filled] / 2
    return {
        "eigenvalues": [round(float(value), 6) for value in middles],
        "learned": slopes(values),
        "truth": slopes(images.target(part)),
    }
