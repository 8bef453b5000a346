"""How fast networks train and predict on this machine, measured after an equality check.

The fast path is first compared with the `reference` backend in float64: outputs, and the gradients
of every weight. A case whose numbers differ gets no speed. The graphs have the sizes of QM9's
molecules; the work of a network depends on nothing else about them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .data.batch import GraphBatch
from .data.batching import epoch_batches
from .data.graph_set import GraphSet, Ints, Target
from .data.store import GraphStore
from .nn.model import GrammarGNN
from .ops.precision import float32_products
from .training.config import RECIPES
from .training.cuda_graphs import GraphedOutputs, GraphedStep
from .training.optimiser import Average, Learner, make_optimiser
from .training.precompute import InputRows
from .training.task import Task

Precision = Literal["bf16", "tf32", "32"]
Forward = Callable[[Any], Tensor]
Pass = Callable[[], None]
Gradients = tuple[Tensor, Sequence[Tensor | None]]
"""Outputs of a network, and the gradients of their mean by weight."""

QM9_SIZES = {
    3: 2, 4: 4, 5: 5, 6: 12, 7: 20, 8: 65, 9: 172, 10: 483, 11: 1053, 12: 2189, 13: 4027,
    14: 6758, 15: 10216, 16: 13824, 17: 16969, 18: 17442, 19: 18146, 20: 12403, 21: 13166,
    22: 4428, 23: 6362, 24: 712, 25: 1923, 26: 59, 27: 356, 29: 35,
}  # fmt: skip
"""Number of atoms to number of molecules of QM9."""
NODE_FEATURES, EDGE_FEATURES = 11, 4
DISTANCE = {"paper": ("raw",), "modern": ("raw", "square", "rbf16")}
"""Edge channels made of positions, as in the recipe of that name."""
RATE = 1e-4
TOLERANCE: dict[Precision, float] = {"32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}
"""Largest relative error of outputs and gradients."""
AS_GOOD = 2.0
"""If the reference in the same precision is worse than that, this many times its error."""
NETWORKS = 8
"""Networks whose mean square errors are compared where those of one alone are too large. In low
precision most of an error comes from ReLUs near zero that rounding turns on or off, for all equal
pairs at once: for one network that is a matter of chance, for the fast path and the reference."""
SMALL = 0.02
"""A gradient smaller than this share of the largest one is measured against the largest: it is what
is left of large terms that cancel, and so is its error."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one pass: median, quickest and slowest repeat, number of repeats."""

    seconds: float
    least: float
    most: float
    repeats: int

    @property
    def spread(self) -> float:
        """From quickest to slowest, relative to the median."""
        return (self.most - self.least) / self.seconds


@dataclass(frozen=True)
class Effort:
    """How often to repeat, for how long at least each time, and for how long at most in all."""

    repeats: int = 5
    seconds: float = 0.15
    most: float = 6.0


QUICK = Effort(repeats=2, seconds=0.0, most=0.5)


def measure(action: Callable[[], object], device: torch.device, effort: Effort) -> Timing:
    """Time an action that has run before, so that nothing is compiled now."""
    first = seconds_of(action, device, 1)
    passes = max(1, round(effort.seconds / max(first, 1e-9)))
    times = [first] if passes == 1 else []
    start = time.perf_counter()
    while len(times) < effort.repeats and time.perf_counter() - start < effort.most:
        times.append(seconds_of(action, device, passes))
    return Timing(median(times), min(times), max(times), len(times))


def times_slower(ours: Pass, theirs: Pass, device: torch.device, rounds: int) -> float:
    """How many times longer a pass of theirs takes: the median of rounds of both, in turns.

    A machine that others use may be slow for seconds; within a round it is slow for both.
    """
    guess = seconds_of(theirs, device, 1) / seconds_of(ours, device, 1)
    many, few = max(1, round(guess)), max(1, round(1 / guess))
    ratios = []
    for _ in range(rounds):
        our_time = seconds_of(ours, device, many)
        ratios.append(seconds_of(theirs, device, few) / our_time)
    return median(ratios)


def seconds_of(action: Callable[[], object], device: torch.device, passes: int) -> float:
    """Mean seconds of some passes, until the device has finished."""
    synchronise(device)
    start = time.perf_counter()
    for _ in range(passes):
        action()
    synchronise(device)
    return (time.perf_counter() - start) / passes


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def qm9_sizes(count: int, seed: int = 0) -> Ints:
    """Sizes `[count]` with QM9's distribution."""
    sizes, counts = np.array(list(QM9_SIZES)), np.array(list(QM9_SIZES.values()))
    chosen = np.random.default_rng(seed).choice(sizes, size=count, p=counts / counts.sum())
    return chosen.astype(np.int64)


def drawn_molecules(count: int, seed: int = 0) -> GraphSet:
    """Random trees of QM9's sizes, with positions and as many features as QM9 has."""
    sizes, draw = qm9_sizes(count, seed), np.random.default_rng([seed, 1])
    atoms = int(sizes.sum())
    within = np.arange(atoms) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    child = within[within > 0]  # every atom but the first is bonded to one before it
    parent = (draw.random(len(child)) * child).astype(np.int64)
    there, back = np.stack([child, parent], axis=1), np.stack([parent, child], axis=1)
    order = draw.integers(0, 3, len(child)).repeat(2)
    return GraphSet(
        name="molecules of QM9's sizes",
        sizes=sizes,
        edge_counts=2 * (sizes - 1),
        edges=np.stack([there.ravel(), back.ravel()]),
        node_features=np.eye(NODE_FEATURES, dtype=np.float32)[draw.integers(0, 5, atoms)],
        edge_features=np.eye(EDGE_FEATURES, dtype=np.float32)[order],
        targets=draw.normal(size=(count, 1)),
        columns=(Target("value"),),
        positions=draw.normal(scale=2.0, size=(atoms, 3)).astype(np.float32),
    )


@dataclass(frozen=True, eq=False)
class Workload:
    """Graphs on a device, in batches, and the shape of the networks they are given to."""

    graphs: GraphSet
    store: GraphStore
    batches: list[Ints]
    preset: str = "modern"
    width: int = 64
    layers: int = 3
    precision: Precision = "32"
    grammar: str = "r-G_L3"
    options: Mapping[str, Any] = field(default_factory=dict)  # further ones of our network

    @classmethod
    def of(
        cls,
        graphs: GraphSet,
        batch: int,
        device: torch.device,
        preset: str,
        bonds: bool = False,
        **shape: Any,
    ) -> Workload:
        """With `bonds`, distances are left out."""
        store = GraphStore(graphs, device, () if bonds else DISTANCE[preset])
        batches = epoch_batches(graphs.sizes, batch, 0, 0)  # random, as in training
        return cls(graphs, store, batches, preset, **shape)

    @property
    def device(self) -> torch.device:
        return self.store.device

    @property
    def task(self) -> Task:
        return Task.of(self.graphs)

    def network(
        self, grammar: str | None = None, preset: str | None = None, seed: int = 0
    ) -> GrammarGNN:
        """A network for these graphs, always with the same weights."""
        torch.manual_seed(seed)
        options = self.options if preset is None else {}
        model = GrammarGNN(
            grammar or self.grammar,
            self.graphs.node_features.shape[1],
            self.store.edge_width,
            width=self.width,
            layers=self.layers,
            preset=preset or self.preset,
            typical_size=float(self.graphs.sizes.mean()),
            **options,
        )
        return model.to(self.device)

    def batch(self, indices: Ints) -> GraphBatch:
        return self.store.batch(indices)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half is not None)

    @property
    def half(self) -> torch.dtype | None:
        return torch.bfloat16 if self.precision == "bf16" else None


def forward_of(model: GrammarGNN) -> Forward:
    """A network as training calls it, without an estimate of memory."""
    return lambda batch: model.network(batch.adjacency, batch.nodes, batch.edges, batch.mask)


def graphed_step(work: Workload, model: GrammarGNN) -> Pass:
    """A pass of training steps as CUDA graphs, as `g2n2 train` takes them."""
    recipe = RECIPES["modern"]
    optimiser = make_optimiser(model, recipe, work.device)
    average, size = Average(model, recipe.ema), max(map(len, work.batches))
    half = work.half is not None
    step = GraphedStep(
        Learner(model, optimiser, average, work.store, work.task, size, recipe.clip, half)
    )
    number = 0

    def one_pass() -> None:
        nonlocal number
        for indices in work.batches:
            number += 1
            step.step(indices, RATE, number)

    return one_pass


def inference_pass(work: Workload, forward: Forward, rows: bool = False) -> Pass:
    """A pass over batches that are made before it; with `rows`, packed ones."""
    make = work.store.packed if rows else work.batch
    batches = [make(indices) for indices in work.batches]

    @torch.no_grad()
    def one_pass() -> None:
        for batch in batches:
            forward(batch)

    return one_pass


def graphed_inference(work: Workload, model: GrammarGNN) -> Pass:
    """A pass of predictions as CUDA graphs, with the inputs of all graphs on the device."""
    every = np.arange(len(work.graphs))
    outputs = GraphedOutputs(model, InputRows(model, work.store, work.half), every)

    def one_pass() -> None:
        for indices in work.batches:
            for _ in outputs(indices):
                pass

    return one_pass


def eager_pass(
    work: Workload, model: GrammarGNN, forward: Forward, training: bool, rows: bool = False
) -> Pass:
    """A pass one operation after the other: forward, and in training backward and AdamW.

    With `rows`, batches are packed.
    """
    make = work.store.packed if rows else work.batch
    if not training:
        infer: Pass = work.autocast()(inference_pass(work, forward, rows))
        return infer
    optimiser = make_optimiser(model, RECIPES["modern"], work.device)
    for group in optimiser.param_groups:
        group["lr"] = torch.full_like(group["lr"], RATE) if torch.is_tensor(group["lr"]) else RATE

    def one_pass() -> None:
        for indices in work.batches:
            batch = make(indices)
            with work.autocast():
                outputs = forward(batch)
            assert batch.targets is not None, "the store always gives targets"
            total, count = work.task.loss(outputs, batch.targets)
            optimiser.zero_grad(set_to_none=True)
            (total / count).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    return one_pass


def fast_pass(work: Workload, model: GrammarGNN, training: bool, graphed: bool = True) -> Pass:
    """A pass the fastest way there is on this device."""
    if graphed and work.device.type == "cuda":
        return graphed_step(work, model) if training else graphed_inference(work, model)
    return eager_pass(work, model, model, training, rows=True)


@dataclass(frozen=True)
class EqualityCheck:
    """Relative errors of the fast path, and what they may be; `worst` names the worst gradient.

    Of several networks, they are roots of mean squares.
    """

    outputs: float
    gradients: float
    worst: str
    outputs_allowed: float
    gradients_allowed: float

    @property
    def holds(self) -> bool:
        near = self.outputs <= self.outputs_allowed, self.gradients <= self.gradients_allowed
        return all(near)  # NaN is near nothing

    def __str__(self) -> str:
        return (
            f"outputs are off by {self.outputs:.1e} (allowed {self.outputs_allowed:.1e}), the "
            f"gradient of {self.worst} by {self.gradients:.1e} (allowed "
            f"{self.gradients_allowed:.1e})"
        )


def compare(work: Workload, training: bool = True, graphed: bool = True) -> EqualityCheck:
    """Compare the fast path with the reference on the first batch of a workload.

    Args:
        work: Graphs, and the shape of the network.
        training: Whether a CUDA graph is of a training step, whose gradients are compared, or of a
            forward pass, whose outputs are.
        graphed: Whether a GPU uses CUDA graphs.
    """
    errors = [_errors(work, 0, training, graphed)]
    check = _checked(work, errors)
    if check.holds or work.precision == "32":
        return check
    errors += [_errors(work, seed, training, graphed) for seed in range(1, NETWORKS)]
    return _checked(work, errors)


def _errors(work: Workload, seed: int, training: bool, graphed: bool) -> Tensor:
    """`[2, 1 + W]` of the fast path and of the reference in the same precision: of the outputs,
    and of the gradient of each weight."""
    model, batch = work.network(seed=seed), work.batch(work.batches[0])
    truth = gradients(reference(model, torch.float64), batch.to(torch.float64))
    with work.autocast():
        rounded = gradients(reference(model, torch.float32), batch)
        outputs, by_weight = gradients(copy.deepcopy(model), batch)
    if graphed and work.device.type == "cuda":
        if training:
            by_weight = graphed_gradients(work, model)
        else:
            inputs = InputRows(model, work.store, work.half)
            replayed = GraphedOutputs(model, inputs, work.batches[0])
            for _ in range(2):  # the first time it is recorded
                outputs = torch.cat([values for _, values in replayed(work.batches[0])])
    both = (outputs, by_weight), rounded
    rows = [[relative_error(x[0], truth[0]), *gradient_errors(x[1], truth[1])] for x in both]
    return torch.tensor(rows, dtype=torch.float64)


def _checked(work: Workload, errors: Sequence[Tensor]) -> EqualityCheck:
    """What the errors of some networks say together."""
    ours, rounded = torch.stack(list(errors)).square().mean(0).sqrt().tolist()
    worst = max(range(1, len(ours)), key=lambda i: (ours[i] != ours[i], ours[i]))
    least = TOLERANCE[work.precision]
    return EqualityCheck(
        outputs=ours[0],
        gradients=ours[worst],
        worst=[name for name, _ in work.network().named_parameters()][worst - 1],
        outputs_allowed=max(least, AS_GOOD * rounded[0]),
        gradients_allowed=max(least, AS_GOOD * max(rounded[1:])),
    )


def reference(model: GrammarGNN, dtype: torch.dtype) -> GrammarGNN:
    """A copy of a network that computes by the reference backend."""
    twin = copy.deepcopy(model).to(dtype)
    twin.backend = "reference"
    return twin


def gradients(model: GrammarGNN, batch: GraphBatch) -> Gradients:
    outputs = forward_of(model)(batch)
    with torch.autocast(outputs.device.type, enabled=False):
        outputs.double().mean().backward()  # type: ignore[no-untyped-call]
    return outputs.detach(), [p.grad for p in model.parameters()]


def graphed_gradients(work: Workload, model: GrammarGNN) -> list[Tensor | None]:
    """The gradients a graphed step takes, read from what it does to the weights.

    With an ε far larger than any gradient, Adam's first step changes the weights by rate/ε times
    the gradient. Targets far below all outputs make the L1 loss the mean of the outputs.
    """
    far, gain = 1e9, 1e3  # the change is large beside the weights, so that no digit of it is lost
    work.store.targets.fill_(-far)
    model = copy.deepcopy(model)
    before = [p.detach().clone() for p in model.parameters()]
    rate = torch.tensor(gain * far, device=work.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, eps=far, capturable=True, fused=True)
    average, size = Average(model, 0.0), len(work.batches[0])
    half = work.half is not None
    step = GraphedStep(Learner(model, optimiser, average, work.store, work.task, size, 0.0, half))
    step.step(work.batches[0], gain * far, 1)
    return [(old - p.detach()) / gain for old, p in zip(before, model.parameters(), strict=True)]


def relative_error(value: Tensor, truth: Tensor) -> float:
    """Norm of the difference over that of the truth."""
    return float((value.double() - truth).norm() / truth.norm().clamp(min=1e-30))


def gradient_errors(ours: Sequence[Tensor | None], truth: Sequence[Tensor | None]) -> list[float]:
    """Relative error of each gradient; 1 if it is missing on one side only."""
    largest = max(float(value.norm()) for value in truth if value is not None)
    errors = []
    for mine, right in zip(ours, truth, strict=True):
        if right is None or mine is None:
            present = mine if right is None else right
            errors.append(0.0 if present is None or not present.any() else 1.0)
            continue
        difference = float((mine.double() - right).norm())
        errors.append(difference / max(float(right.norm()), SMALL * largest, 1e-30))
    return errors


@dataclass(frozen=True)
class BenchSpeed:
    """One line of `g2n2 bench`; no speed if the fast path differs from the reference."""

    case: str
    equality: EqualityCheck
    graphs_per_second: float | None = None
    times_reference: float | None = None


def speeds(device: torch.device, quick: bool = False) -> Iterator[BenchSpeed]:
    """Training and inference of the default network, three layers of width 64.

    With `quick`, tiny sizes that only show the steps.
    """
    gpu, effort = device.type == "cuda", QUICK if quick else Effort()
    precision: Precision = "bf16" if gpu else "32"
    shape: dict[str, Any] = {
        "width": 8 if quick else 64,
        "layers": 3,
        "precision": precision,
    }
    size = 4 if quick else (128 if gpu else 32)
    for training in (True, False):
        work = Workload.of(drawn_molecules(2 * size), size, device, "modern", **shape)
        few = Workload.of(drawn_molecules(min(size, 8)), 8, device, "modern", **shape)
        case = f"{'training' if training else 'inference'}, {precision}, batch {size}"
        with float32_products(precision != "32"):
            checked = compare(few, training)
            if not checked.holds:
                yield BenchSpeed(case, checked)
                continue
            ours = fast_pass(work, work.network(), training)
            slow = reference(work.network(), torch.float32)
            theirs = eager_pass(work, slow, forward_of(slow), training)
            ours(), theirs()
            seconds = measure(ours, device, effort).seconds
            ratio = times_slower(ours, theirs, device, effort.repeats)
        yield BenchSpeed(case, checked, len(work.graphs) / seconds, ratio)
