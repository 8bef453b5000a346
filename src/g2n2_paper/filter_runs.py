"""One run of Q4: learn the training image, keep the weights that are best on the validation image.

A step has one graph and a squared loss, so this loop does not use `g2n2.training`'s.

A network need not be linear, so its spectral response is a regression: in each narrow band of
eigenvalues of D − A, the slope of the output's components over those of the input. Only the scored
nodes count, so the eigenvectors are those of their own grid; each image is taken less its mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from g2n2.data.benchmarks.filtering import FILTERS
from g2n2.data.graph_set import GraphSet
from g2n2.data.store import GraphStore
from g2n2.errors import TrainingError
from g2n2.ops.precision import float32_products
from g2n2.spectral.response import spectrum
from g2n2.training.config import RECIPES
from g2n2.training.optimiser import cosine_rate, set_rate

from .q4 import FilterNetwork, FilterPlan

if TYPE_CHECKING:
    from g2n2.data.batch import GraphBatch

Array = NDArray[np.float64]
CPU = torch.device("cpu")
PARTS = ("train", "validation", "test")
BANDS = 40
CLIP = 1.0
"""Largest norm of the gradient."""


def r_squared(values: Array, truth: Array) -> float:
    """1 − Σ(values − truth)² / Σ(truth − mean)²."""
    return 1.0 - float(((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


@dataclass(frozen=True, eq=False)
class Images:
    """The images and one filter to learn.

    Attributes:
        graphs: As `load_filtering` gives them.
        filter: One of `FILTERS`.
        device: Where batches live.
    """

    graphs: GraphSet
    filter: str
    device: torch.device = CPU

    def place(self, part: str) -> int:
        return int(self.graphs.splits[part][0])

    @cached_property
    def adjacency(self) -> Array:
        """`[n, n]` of the grid, the same for all images."""
        return self.graphs.adjacency(0)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """`[n]` true where a node is scored."""
        known: NDArray[np.bool_] = np.isfinite(self.target("train"))
        return known

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

    def known(self, part: str) -> tuple[Tensor, Tensor]:
        """`[m]` numbers of the scored nodes, and `[m]` what they should give, on the device."""
        nodes = np.flatnonzero(self.mask)
        truth = torch.from_numpy(self.target(part)[nodes]).float()
        return torch.from_numpy(nodes).to(self.device), truth.to(self.device)

    def _of(self, part: str, values: Array) -> Array:
        start, end = self.graphs.node_offsets[self.place(part) :][:2]
        return values[start:end]


@dataclass
class Fit:
    """State of a run.

    Attributes:
        step: Steps done.
        best_step: The step with the best validation R².
        scores: R² of each image at that step.
        values: The test image at that step, `[n]`.
        curve: Validation R² at each evaluation.
        died: A gradient or an output was not finite; what was best before counts.
    """

    step: int = 0
    best_step: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    died: bool = False


def one_run(images: Images, network: FilterNetwork, plan: FilterPlan, seed: int) -> dict[str, Any]:
    """Train one network; the run as it is kept."""
    from .filter_networks import make_network

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
        "learned": band_response(images, "test", np.array(run.values))["learned"],
    }


def fit(model: nn.Module, images: Images, rate: float, plan: FilterPlan) -> Fit:
    """Train until `plan` ends the run, or a gradient is not finite.

    Raises:
        TrainingError: The outputs of the untrained network are not finite.
    """
    recipe = replace(RECIPES["paper"], rate=rate)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, rate)
    inputs = cast(Any, model).checked(images.batches["train"])
    nodes, truth = images.known("train")
    run = Fit()
    _evaluate(model, images, run)
    if run.died:
        raise TrainingError("the outputs of the network are not finite before it is trained")
    while run.step < plan.steps and run.step - run.best_step < plan.patience:
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
            if run.died:
                break
    return run


def _evaluate(model: nn.Module, images: Images, run: Fit) -> None:
    """Score the validation image, and all images if it is better than ever."""
    score = images.score("validation", outputs(model, images, "validation"))
    if not math.isfinite(score):
        run.died = True
        return
    if not run.scores or score > run.scores["validation"]:
        values = outputs(model, images, "test")
        run.best_step = run.step
        run.values = [float(value) for value in values]
        train = images.score("train", outputs(model, images, "train"))
        run.scores = {"train": train, "validation": score, "test": images.score("test", values)}
    run.curve.append(round(score, 6))


@torch.no_grad()
def outputs(model: nn.Module, images: Images, part: str) -> Array:
    """The output of a network for an image, `[n]`."""
    model.eval()
    values: Array = model(images.batches[part])[0, :, 0].double().cpu().numpy()
    return values


def band_response(images: Images, part: str, values: Array) -> dict[str, list[float]]:
    """Slopes of `values` `[n]` and of the truth over the input, for each band that is not empty.

    Returns:
        `eigenvalues` (middles of bands), `learned` and `truth`.
    """
    inner = images.mask
    frequencies = spectrum(images.adjacency[np.ix_(inner, inner)], "combinatorial")
    edges = np.linspace(0.0, float(frequencies.eigenvalues[-1]), BANDS + 1)
    band = np.clip(np.digitize(frequencies.eigenvalues, edges) - 1, 0, BANDS - 1)

    def components(image: Array) -> Array:
        values: Array = frequencies.vectors.T @ (image[inner] - image[inner].mean())
        return values

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
