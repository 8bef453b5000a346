"""Runs that go on with the steps another run has recorded."""

import copy

import numpy as np
import pytest
import torch

from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN
from g2n2.ops.precision import float32_products
from g2n2.training.cuda_graphs import GraphedStep
from g2n2.training.optimiser import Average, Learner
from g2n2.training.task import Task
from kernel_checks import DEVICE
from small_sets import small_set

BATCH, DECAY = 8, 0.9
GRAPHS = small_set()
STEPS = [np.arange(8), np.array([9, 10, 11]), np.arange(20, 28)]
OTHERS = [np.arange(12, 20), np.array([30, 2]), np.arange(8)]
RATES = [0.01, 0.02, 0.005]


class Run:
    """A network, its optimiser and average, and the graphs on a device."""

    def __init__(self, seed, device="cpu", graphs=GRAPHS, decay=DECAY, **options):
        torch.manual_seed(seed)
        settings = {"width": 8, "layers": 2, "preset": "modern", "decision": (8,), **options}
        self.model = GrammarGNN("r-G_L3", 2, **settings).to(device)
        on_gpu = torch.device(device).type == "cuda"
        self.optimiser = torch.optim.Adam(
            self.model.parameters(),
            lr=torch.tensor(0.0, device=device),
            capturable=on_gpu,
            foreach=on_gpu,
        )
        self.average = Average(self.model, decay)
        self.store = GraphStore(graphs, device)

    def learner(self, dtype=None):
        parts = self.model, self.optimiser, self.average, self.store
        return Learner(*parts, Task.of(GRAPHS), BATCH, 1.0, dtype is not None)

    def steps(self, dtype=None):
        return GraphedStep(self.learner(dtype))


def taken(step, batches, flat, start=1):
    """The recorded function itself, on a CPU."""
    losses = []
    for number, (indices, rate) in enumerate(zip(batches, RATES, strict=True), start=start):
        step._forget()
        shape = step._tell(indices, rate, 1.0 - step.learner.average.keep(number))
        step.recorder.graphs[shape] = "recorded"
        if flat and step.flat is None:
            step._backward(shape)
            step.flat = step._flatten()
            step._forget()
        step._whole(shape)
        losses.append(float(step.loss))
    return losses


def assert_same(run, other, **near):
    near = near or {"rtol": 0.0, "atol": 0.0}
    for mine, theirs in zip(run.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, **near)
    for mine, theirs in zip(run.average.shadow, other.average.shadow, strict=True):
        torch.testing.assert_close(mine, theirs, **near)
    for mine, theirs in zip(
        run.optimiser.state.values(), other.optimiser.state.values(), strict=True
    ):
        for name in ("exp_avg", "exp_avg_sq", "step"):
            torch.testing.assert_close(mine[name], theirs[name], check_device=False, **near)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize("flat", [False, True], ids=["plain", "flat"])
def test_the_next_run_learns_as_if_it_had_recorded_its_own_steps(flat, dtype):
    if flat:
        pytest.importorskip("triton", reason="the kernels need triton")
    device = DEVICE if flat else "cpu"
    first, second, alone = Run(0, device), Run(1, device), Run(1, device)
    step = first.steps(dtype)
    taken(step, STEPS, flat)
    assert step.serves(second.learner(dtype))
    step.take_over(second.learner(dtype))
    losses = taken(step, OTHERS, flat)
    assert losses == taken(alone.steps(dtype), OTHERS, flat)
    assert_same(second, alone)


def test_a_run_taken_up_again_brings_what_its_optimiser_knows():
    first, second, alone = Run(0), Run(1), Run(1)
    taken(alone.steps(), STEPS, flat=False)
    second.model.load_state_dict(alone.model.state_dict())
    second.optimiser.load_state_dict(copy.deepcopy(alone.optimiser.state_dict()))
    second.average.restore(alone.average.shadow)
    step = first.steps()
    taken(step, STEPS, flat=False)
    step.take_over(second.learner())
    assert_same(second, alone)
    taken(step, OTHERS, flat=False, start=4)
    taken(alone.steps(), OTHERS, flat=False, start=4)
    assert_same(second, alone)


def test_targets_of_the_next_run_are_its_own():
    first, second = Run(0), Run(0)
    second.store.targets = second.store.targets + 1.0
    step = first.steps()
    taken(step, STEPS, flat=False)
    step.take_over(second.learner())
    torch.testing.assert_close(step.inputs.tables["targets"][:-1], second.store.targets)
    assert step.inputs.store is second.store


def test_what_is_recorded_later_is_a_training_step():
    first, second = Run(0), Run(0)
    step = first.steps()
    taken(step, STEPS, flat=False)
    first.model.eval()
    step.take_over(second.learner())
    assert step.network.model.training


def test_steps_recorded_in_tf32_do_not_serve_a_run_in_full_precision():
    with float32_products(tf32=True):
        step = Run(0).steps()
        taken(step, STEPS, flat=False)
        assert step.serves(Run(1).learner())
    with float32_products(tf32=False):
        assert not step.serves(Run(1).learner())


def dropped(run):
    run.model.readout.dropout = 0.5
    return run


@pytest.mark.parametrize(
    "other",
    [
        lambda: dropped(Run(1)),
        lambda: Run(1, decay=0.5),
        lambda: Run(1, layers=3),
        lambda: Run(1, typical_size=3.0),
        lambda: Run(1, graphs=GRAPHS.select(np.arange(len(GRAPHS)))),
    ],
    ids=["dropout", "average", "layers", "size", "graphs"],
)
def test_steps_of_other_settings_or_graphs_do_not_serve(other):
    step = Run(0).steps()
    assert not step.serves(Run(1).learner()), "nothing is recorded yet"
    taken(step, STEPS, flat=False)
    assert step.serves(Run(1).learner())
    assert not step.serves(other().learner())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_replayed_steps_serve_the_next_run(dtype):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    first, second, alone = Run(0, "cuda"), Run(1, "cuda"), Run(1, "cuda")
    step, own = first.steps(dtype), alone.steps(dtype)
    for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1):
        step.step(indices, rate, number)
    shapes = set(step.recorder.graphs)
    step.take_over(second.learner())
    for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1):
        mine, theirs = step.step(indices, rate, number)[0], own.step(indices, rate, number)[0]
        assert float(mine) == pytest.approx(float(theirs), rel=1e-5)
    assert set(step.recorder.graphs) == shapes, "nothing was recorded again"
    assert_same(second, alone, rtol=1e-5, atol=1e-6)
