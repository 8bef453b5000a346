"""Whole steps as CUDA graphs: their parts on a CPU, the replayed steps on a GPU."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from g2n2.data.capacities import Capacity, Room
from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN
from g2n2.training.cuda_graphs import GraphedOutputs, GraphedStep
from g2n2.training.optimiser import Average, Learner
from g2n2.training.task import Task
from kernel_checks import DEVICE
from small_sets import small_set

BATCH = 8
STEPS = [np.arange(8), np.array([9, 10, 11]), np.arange(20, 28), np.array([30])]


def network(device="cpu", grammar="r-G_L3", preset="modern", task="graph", **options):
    torch.manual_seed(0)
    shape = {"width": 8, "layers": 2, **options}
    return GrammarGNN(grammar, 2, preset=preset, task=task, decision=(8,), **shape).to(device)


def optimiser_of(model):
    device = next(model.parameters()).device
    rate = torch.tensor(0.0, device=device)
    on_gpu = device.type == "cuda"
    return torch.optim.Adam(model.parameters(), lr=rate, capturable=on_gpu, foreach=on_gpu)


def graphed(model, optimiser, dtype=None, clip=1.0, decay=0.9):
    device = next(model.parameters()).device
    graphs = small_set(model.plan.readout.task)
    average = Average(model, decay)
    store, task, half = GraphStore(graphs, device), Task.of(graphs), dtype is not None
    learner = Learner(model, optimiser, average, store, task, BATCH, clip, half)
    return GraphedStep(learner), average


def told(step, indices, rate, number):
    """The capacity of a batch that is told to a step."""
    return step._tell(indices, rate, 1.0 - step.learner.average.keep(number))


def plain_steps(model, rates, clip=1.0, decay=0.9, steps=STEPS):
    """The same steps one operation after the other."""
    device = next(model.parameters()).device
    graphs = small_set(model.plan.readout.task)
    store, task = GraphStore(graphs, device), Task.of(graphs)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    average = Average(model, decay)
    losses = []
    for number, (indices, rate) in enumerate(zip(steps, rates, strict=True), start=1):
        optimiser.zero_grad()
        batch = store.batch(indices)
        loss, known = task.loss(model(batch), batch.targets)
        (loss / known).backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
        average.update(number)
        losses.append(float(loss.detach()))
    return losses, average


def assert_weights_agree(model, other, rtol=1e-4, atol=1e-5):
    for (name, weight), twin in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(
            weight, twin, rtol=rtol, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


def joined(tensors):
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


RATES = [0.01, 0.02, 0.005, 0.01]


@pytest.mark.parametrize(
    ("grammar", "preset", "task", "options"),
    [
        ("r-G_L3", "modern", "graph", {}),
        ("r-G_L3", "official", "node", {}),
        ("r-G_L3", "modern", "edge", {}),
        ("r-G_L1", "modern", "graph", {}),  # names A in every layer
        ("GNNML1", "paper", "node", {}),
        ("r-G_L3Σ", "modern", "graph", {"width": 4, "marks": "orbits"}),
        ("r-G_L3Σ", "modern", "graph", {"width": 4, "layers": 1, "marks": "heavy", "trunk": 1}),
        ("r-G_L1Σ", "paper", "graph", {"marks": 99}),  # as many as drawn are all
        ("r-G_L1ΣΣ", "paper", "graph", {"width": 4, "marks": 99}),
        ("r-G_L1ΣΣ", "modern", "graph", {"width": 4, "layers": 1, "marks": "heavy", "trunk": 1}),
    ],
)
def test_what_is_recorded_is_the_step_taken_plainly(grammar, preset, task, options, poisoned):
    """The recorded function itself, called on a CPU; short batches are filled up."""
    model = network(grammar=grammar, preset=preset, task=task, **options)
    twin = copy.deepcopy(model)
    twin.backend = "reference"
    step, average = graphed(model, optimiser_of(model))
    seen = []
    for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1):
        step._forget()
        step._whole(told(step, indices, rate, number))
        seen.append(float(step.loss))
    losses, expected = plain_steps(twin, RATES)
    assert_weights_agree(model, twin, atol=1e-4)  # Adam's steps of 0.01 magnify a last digit
    for mine, theirs in zip(average.shadow, expected.shadow, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    assert seen == pytest.approx(losses, rel=1e-4), "graphs that fill up do not count"


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("modern", {}),
        pytest.param("paper", {}, marks=pytest.mark.slow),
        pytest.param(
            "modern", {"grammar": "r-G_L3Σ", "marks": "heavy", "trunk": 1}, marks=pytest.mark.slow
        ),
    ],
)
def test_rows_beyond_a_batch_count_for_nothing(preset, options, by_kernels, launches, poisoned):
    """The step by kernels with room for more, every buffer poisoned before use."""
    model = network(DEVICE, preset=preset, width=4, layers=1, **options)
    twin = copy.deepcopy(model)
    twin.backend = "reference"
    step, _ = graphed(model, optimiser_of(model))
    room = told(step, STEPS[1], RATES[1], 1)
    marked = room.marked and Room(*(rows + 70 for rows in room.marked[:3]))
    step._whole(Capacity(room.pairs + 70, room.nodes + 9, marked))
    losses, _ = plain_steps(twin, RATES[1:2], steps=STEPS[1:2])
    assert float(step.loss) == pytest.approx(losses[0], rel=1e-4)
    assert_weights_agree(model, twin, atol=1e-4)
    assert any(name.startswith("rule_kernels.") for name in launches)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_flat_steps_are_the_steps_taken_plainly(dtype):
    """As on a GPU: weights are joined after the first backward pass, nothing learned before."""
    pytest.importorskip("triton", reason="the kernels need triton")
    model = network(DEVICE)
    twin = copy.deepcopy(model)
    step, average = graphed(model, optimiser_of(model), dtype)
    other, expected = graphed(twin, optimiser_of(twin), dtype)
    for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1):
        for taken in (step, other):
            taken._forget()
            shape = told(taken, indices, rate, number)
        if step.flat is None:
            step._backward(shape)
            step.flat = step._flatten()
            step._forget()
            assert_weights_agree(model, twin, rtol=0.0, atol=0.0)
        step._whole(shape)
        other._whole(shape)
        assert float(step.norm) == pytest.approx(float(other.norm), rel=0.02 if dtype else 1e-3)
        if number == 1:  # later, Adam turns what rounding makes of a gradient near 0 into a step
            assert_weights_agree(model, twin)
            for mine, theirs in zip(average.shadow, expected.shadow, strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
        apart, whole = joined(model.parameters()), joined(twin.parameters())
        assert float((apart - whole).norm() / whole.norm()) < (0.02 if dtype else 1e-4)
    unused = [w for w in step.weights if not bool(step.learner.optimiser.state[w]["step"])]
    assert len(unused) < len(step.weights), "most weights took part"


def test_more_graphs_than_a_step_takes_are_refused():
    model = network()
    step, _ = graphed(model, optimiser_of(model))
    with pytest.raises(AssertionError, match="1 to 8 graphs, got 9"):
        told(step, np.arange(9), 0.1, 1)


def test_a_bad_batch_shows_in_the_loss_or_the_norm():
    model = network()
    step, _ = graphed(model, optimiser_of(model), clip=0.0)
    step.inputs.tables["targets"][STEPS[2]] = 1e38  # finite, and so is no sum or gradient of it
    step._whole(told(step, STEPS[2], 0.01, 1))
    assert not bool(torch.isfinite(step.loss) & torch.isfinite(step.norm))


def test_half_precision_steps_are_near_those_in_full():
    model = network()
    twin = copy.deepcopy(model)
    step, _ = graphed(model, optimiser_of(model), dtype=torch.bfloat16)
    step._whole(told(step, STEPS[0], 0.01, 1))
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in step.weights if p.grad is not None)
    assert any(not torch.equal(p, q) for p, q in zip(step.weights, twin.parameters(), strict=True))
    step_32, _ = graphed(twin, optimiser_of(twin))
    step_32._whole(told(step_32, STEPS[0], 0.01, 1))
    assert float(step.loss) == pytest.approx(float(step_32.loss), rel=0.05)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("grammar", "preset", "task", "dtype", "options"),
    [
        ("r-G_L3", "modern", "graph", None, {}),
        ("r-G_L3", "modern", "graph", torch.bfloat16, {}),
        ("r-G_L3", "official", "node", None, {}),
        ("2-IGN", "modern", "edge", None, {}),
        ("PPGN", "ppgn", "graph", None, {}),
        ("GNNML1", "paper", "graph", None, {}),
        ("GNNML1", "paper", "graph", torch.bfloat16, {}),
        ("r-G_L3Σ", "modern", "graph", None, {"marks": "orbits"}),
        ("r-G_L3Σ", "modern", "graph", torch.bfloat16, {"marks": "heavy", "trunk": 1}),
        ("r-G_L1Σ", "paper", "graph", None, {"marks": 99}),
        # In half precision rounding alone ends up 0.18 of the way apart, on a CPU too.
        ("r-G_L1ΣΣ", "modern", "graph", None, {"marks": "heavy"}),
    ],
)
def test_replayed_steps_are_the_steps_taken_plainly(grammar, preset, task, dtype, options):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = network("cuda", grammar, preset, task, **options)
    twin, start = copy.deepcopy(model), copy.deepcopy(model)
    step, average = graphed(model, optimiser_of(model), dtype)
    seen = [
        float(step.step(indices, rate, number)[0])
        for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1)
    ]
    losses, expected = plain_steps(twin, RATES)
    # Where rounding turns the sign of a small gradient, Adam goes the other way: in half precision
    # all weights together end up 0.06 of the way apart on a CPU. Without the last step it is 0.21.
    way = (joined(twin.parameters()) - joined(start.parameters())).norm()
    near = 0.02 if dtype is None else 0.12
    assert (joined(model.parameters()) - joined(twin.parameters())).norm() < near * way
    assert (joined(average.shadow) - joined(expected.shadow)).norm() < near * way
    assert seen == pytest.approx(losses, rel=1e-3 if dtype is None else 0.05)


@pytest.mark.gpu
def test_work_on_a_stream_of_its_own_changes_no_weight():
    """Six replayed steps of two sizes, with gradients of weights aside, in float32."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    sizes = small_set().sizes
    large, small = np.flatnonzero(sizes == 8)[:BATCH], np.flatnonzero(sizes <= 6)[:BATCH]
    steps, rates = [large, small, large, small, small, large], [0.01, 0.02, 0.005, 0.01, 0.02, 0.01]
    model = network("cuda")
    twin = copy.deepcopy(model)
    step, average = graphed(model, optimiser_of(model))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        seen = [
            float(step.step(indices, rate, number)[0])
            for number, (indices, rate) in enumerate(zip(steps, rates, strict=True), start=1)
        ]
        losses, expected = plain_steps(twin, rates, steps=steps)
    finally:
        torch.set_float32_matmul_precision(before)
    assert step.side is not None
    assert len(step.recorder.graphs) >= 1
    assert seen == pytest.approx(losses, rel=1e-4)
    assert_weights_agree(model, twin, rtol=1e-3, atol=2e-4)
    for mine, theirs in zip(average.shadow, expected.shadow, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=2e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"grammar": "r-G_L3Σ", "marks": 2}])
def test_dropout_and_marks_are_drawn_anew_and_again_with_the_same_seed(options):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    steps, seen = [STEPS[0]] * 4, []
    for _ in range(2):
        model = network("cuda", **options)
        model.readout.dropout = 0.0 if options else 0.5
        step, _ = graphed(model, optimiser_of(model))
        torch.cuda.manual_seed(3)
        seen.append([float(step.step(i, 0.0, n)[0]) for n, i in enumerate(steps, start=1)])
    assert len(set(seen[0])) == 4, "nothing is learned at rate 0: only the numbers drawn differ"
    assert seen[0] == pytest.approx(seen[1], rel=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize(
    ("task", "options"),
    [("graph", {}), ("node", {}), ("edge", {}), ("graph", {"grammar": "r-G_L3Σ", "trunk": 1})],
)
def test_replayed_outputs_are_those_of_the_network(task, options, dtype):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = network("cuda", task=task, **options)
    store = GraphStore(small_set(task), "cuda")
    step, _ = graphed(model, optimiser_of(model), dtype)
    replayed = GraphedOutputs(model, step.inputs, np.arange(30))
    for indices in (np.arange(30), np.array([3, 25, 4])):
        found = torch.cat([values for _, values in replayed(indices)])
        with torch.no_grad(), torch.autocast("cuda", dtype, enabled=dtype is not None):
            plain = torch.cat([model(store.packed(np.array([graph]))) for graph in indices])
        near = {"rtol": 1e-3, "atol": 1e-4} if dtype is None else {"rtol": 0.05, "atol": 0.05}
        torch.testing.assert_close(found, plain, **near)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    again = torch.cat([values for _, values in replayed(indices)])
    assert not torch.allclose(again, found), "weights may change between calls"
