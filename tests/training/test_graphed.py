"""Whole steps as CUDA graphs: their parts on a CPU, the replayed steps on a GPU."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from g2n2.data.dense_store import DenseStore
from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN
from g2n2.training.averaging import Average
from g2n2.training.graphed import GraphedStep, _Copies, _prepare, bucket
from g2n2.training.tasks import Task
from small_sets import small_set

BATCH = 8
STEPS = [np.arange(8), np.array([9, 10, 11]), np.arange(20, 28), np.array([30])]


def network(device="cpu"):
    torch.manual_seed(0)
    return GrammarGNN("r-G_L3", 2, width=8, layers=2, decision=(8,)).to(device)


def optimiser_of(model):
    device = next(model.parameters()).device
    rate = torch.tensor(0.0, device=device)
    on_gpu = device.type == "cuda"
    return torch.optim.Adam(model.parameters(), lr=rate, capturable=on_gpu, foreach=on_gpu)


def graphed(model, optimiser, dtype=None, clip=1.0, decay=0.9):
    device = next(model.parameters()).device
    graphs = small_set()
    store = DenseStore(GraphStore(graphs, device))
    average = Average(model, decay)
    return GraphedStep(
        model, optimiser, average, store, Task.of(graphs), BATCH, clip, dtype
    ), average


def plain_steps(model, rates, clip=1.0, decay=0.9):
    """The same steps one operation after the other."""
    device = next(model.parameters()).device
    graphs = small_set()
    store, task = GraphStore(graphs, device), Task.of(graphs)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    average = Average(model, decay)
    losses = []
    for number, (indices, rate) in enumerate(zip(STEPS, rates, strict=True), start=1):
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


RATES = [0.01, 0.02, 0.005, 0.01]


def test_what_is_recorded_is_the_step_taken_plainly():
    """The recorded function itself, called on a CPU; short batches are filled up."""
    model = network()
    twin = copy.deepcopy(model)
    step, average = graphed(model, optimiser_of(model))
    seen = []
    for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1):
        step._forget()
        step._fill(indices, rate, number)
        step._whole(step.store.widest(indices))
        seen.append(float(step.loss))
    losses, expected = plain_steps(twin, RATES)
    assert_weights_agree(model, twin)
    for mine, theirs in zip(average.shadow, expected.shadow, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    assert seen == pytest.approx(losses, rel=1e-4), "graphs that fill up do not count"


def test_graphs_that_fill_up_count_for_nothing():
    model = network()
    step, _ = graphed(model, optimiser_of(model))
    step._fill(np.array([4, 7]), 0.0, 1)
    assert step.indices.tolist() == [4, 7] * 4
    assert step.counts.tolist() == [True] * 2 + [False] * 6
    width = step.store.widest(np.array([4, 7]))
    loss, known = step._loss(width)
    assert int(known) == 2
    step.indices[2:] = 7
    other, _ = step._loss(width)
    torch.testing.assert_close(loss, other)


def test_more_graphs_than_a_step_takes_are_refused():
    model = network()
    step, _ = graphed(model, optimiser_of(model))
    with pytest.raises(AssertionError, match="1 to 8 graphs, got 9"):
        step._fill(np.arange(9), 0.1, 1)


def test_a_bad_batch_shows_in_the_loss_or_the_norm():
    model = network()
    step, _ = graphed(model, optimiser_of(model), clip=0.0)
    step.store.targets = step.store.targets.clone()
    step.store.targets[STEPS[2]] = 1e38  # finite, and so is no sum or gradient of it
    step._fill(STEPS[2], 0.01, 1)
    step._whole(step.store.widest(STEPS[2]))
    assert not bool(torch.isfinite(step.loss) & torch.isfinite(step.norm))


@pytest.mark.parametrize(
    ("nodes", "width"), [(1, 1), (29, 29), (32, 32), (33, 36), (64, 64), (65, 72), (620, 640)]
)
def test_widths_are_exact_while_small_and_few_beyond(nodes, width):
    assert bucket(nodes, 1000) == width
    assert bucket(nodes, nodes) == nodes, "never wider than the largest graph"


# --- half-precision copies ---


def test_copies_follow_the_weights_and_hand_back_gradients():
    model = network()
    copies = _Copies(model, torch.bfloat16)
    layers = {n: p for n, p in model.named_parameters() if n.startswith("layers.")}
    assert set(copies.named) == {f"model.{name}" for name in layers}
    names = list(copies.named)
    for name in names[1:]:
        copies.named[name].grad = torch.full_like(copies.named[name], 0.5)
    copies.give_gradients()
    for place, weight in enumerate(layers.values()):
        if place == 0:
            assert weight.grad is None, "what was not used gets no gradient"
            continue
        assert weight.grad.dtype == torch.float32
        assert bool((weight.grad == 0.5).all())
    with torch.no_grad():
        for weight in layers.values():
            weight.add_(1.0)
    copies.refresh()
    for copied, weight in zip(copies.named.values(), layers.values(), strict=True):
        assert copied.dtype == torch.bfloat16
        assert bool((copied == weight.to(torch.bfloat16)).all())


def test_without_a_dtype_nothing_is_copied():
    copies = _Copies(network(), None)
    assert copies.named == {}
    copies.give_gradients()
    copies.refresh()


def test_half_precision_steps_are_near_those_in_full():
    model = network()
    twin = copy.deepcopy(model)
    step, _ = graphed(model, optimiser_of(model), dtype=torch.bfloat16)
    step._fill(STEPS[0], 0.01, 1)
    step._whole(step.store.widest(STEPS[0]))
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in step.weights if p.grad is not None)
    assert any(not torch.equal(p, q) for p, q in zip(step.weights, twin.parameters(), strict=True))
    step_32, _ = graphed(twin, optimiser_of(twin))
    step_32._fill(STEPS[0], 0.01, 1)
    step_32._whole(step_32.store.widest(STEPS[0]))
    assert float(step.loss) == pytest.approx(float(step_32.loss), rel=0.05)


# --- the optimiser's buffers ---


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_preparing_makes_buffers_and_changes_nothing(kind):
    model = network()
    kept = [p.detach().clone() for p in model.parameters()]
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {"weight_decay": 0.1}
    optimiser = kind(model.parameters(), lr=0.5, **options)
    _prepare(optimiser, list(model.parameters()))
    assert optimiser.state
    for weight, before in zip(model.parameters(), kept, strict=True):
        assert torch.equal(weight, before)
        assert weight.grad is None
        assert all(not bool(b.any()) for b in optimiser.state[weight].values() if b is not None)


def test_preparing_leaves_the_buffers_of_a_run_alone():
    model = network()
    optimiser = torch.optim.Adam(model.parameters())
    model(GraphStore(small_set()).batch(np.arange(4))).sum().backward()
    optimiser.step()
    weight = next(p for p in model.parameters() if p.grad is not None)
    before = optimiser.state[weight]["exp_avg"].clone()
    _prepare(optimiser, list(model.parameters()))
    assert torch.equal(optimiser.state[weight]["exp_avg"], before)


def test_blending_on_the_device_is_the_update():
    model = network()
    ours, theirs = Average(model, 0.9), Average(model, 0.9)
    for number in (1, 2, 50, 1000):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight))
        ours.blend(torch.tensor(1.0 - ours.keep(number)))
        theirs.update(number)
        for mine, expected in zip(ours.shadow, theirs.shadow, strict=True):
            torch.testing.assert_close(mine, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_replayed_steps_are_the_steps_taken_plainly(dtype):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = network("cuda")
    twin = copy.deepcopy(model)
    step, average = graphed(model, optimiser_of(model), dtype)
    seen = [
        float(step.step(indices, rate, number)[0])
        for number, (indices, rate) in enumerate(zip(STEPS, RATES, strict=True), start=1)
    ]
    losses, expected = plain_steps(twin, RATES)
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype is None else {"rtol": 0.2, "atol": 0.05}
    assert_weights_agree(model, twin, **near)
    for mine, theirs in zip(average.shadow, expected.shadow, strict=True):
        torch.testing.assert_close(mine, theirs, **near)
    assert seen == pytest.approx(losses, rel=1e-3 if dtype is None else 0.05)
