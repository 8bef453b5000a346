"""g2n2.bench: clocks, the equality check that can fail, and the table of speeds."""

from types import SimpleNamespace

import pytest
import torch

from g2n2 import bench
from g2n2.bench import (
    Effort,
    EqualityCheck,
    Workload,
    compare,
    drawn_molecules,
    gradient_errors,
    graphed_gradients,
    measure,
    qm9_sizes,
    speeds,
    times_slower,
)
from g2n2.ops import packed_mlp

CPU = torch.device("cpu")


def work(preset: str = "paper", precision: str = "32", device: torch.device = CPU) -> Workload:
    shape = {"width": 8, "layers": 2, "precision": precision}
    return Workload.of(drawn_molecules(4), 4, device, preset, **shape)


@pytest.mark.parametrize("preset", ["paper", "modern"])
@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_the_fast_path_equals_the_reference(preset, precision):
    found = compare(work(preset, precision))
    assert found.holds
    assert found.outputs > 0, "the reference was compared with itself"


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_a_wrong_output_is_seen(precision, monkeypatch):
    real = packed_mlp.mix
    monkeypatch.setattr(packed_mlp, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    found = compare(work(precision=precision))
    assert not found.holds
    assert found.outputs > found.outputs_allowed


def test_a_wrong_gradient_alone_is_seen(monkeypatch):
    class Off(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dx):
            return 1.1 * dx

    real = packed_mlp.mix
    monkeypatch.setattr(packed_mlp, "mix", lambda *a, **k: Off.apply(real(*a, **k)))
    found = compare(work())
    assert found.outputs <= found.outputs_allowed
    assert found.gradients > found.gradients_allowed
    assert not found.holds


@pytest.mark.parametrize(("precision", "networks"), [("bf16", bench.NETWORKS), ("32", 1)])
@pytest.mark.parametrize("always", [True, False])
def test_an_error_of_one_network_alone_is_chance(precision, networks, always, monkeypatch):
    """And one of every network is a fault: here 0.12, where the reference has 0.03."""
    seen = []

    def errors(work, seed, training, graphed):
        seen.append(seed)
        ours = 0.12 if always or not seed else 0.04
        return torch.tensor([[0.01, 0.02, ours, 0.03], [0.01, 0.02, 0.01, 0.03]]).double()

    monkeypatch.setattr(bench, "_errors", errors)
    found = compare(work(precision=precision))
    assert seen == list(range(networks))
    assert found.holds == (precision == "bf16" and not always)
    assert found.worst == [name for name, _ in work().network().named_parameters()][1]
    chance = ((0.12**2 + 7 * 0.04**2) / 8) ** 0.5
    alone = always or networks == 1
    assert found.gradients == pytest.approx(0.12 if alone else chance)
    assert found.gradients_allowed == pytest.approx(0.06)


def test_nan_and_missing_gradients_are_wrong():
    assert EqualityCheck(0.0, 0.0, "w", 0.1, 0.1).holds
    assert not EqualityCheck(float("nan"), 0.0, "w", 0.1, 0.1).holds
    assert not EqualityCheck(0.0, float("nan"), "w", 0.1, 0.1).holds
    one, zero = torch.ones(2), torch.zeros(2)
    assert gradient_errors([None, one], [one, one]) == [1.0, 0.0]
    assert gradient_errors([one, one], [None, one]) == [1.0, 0.0]
    assert gradient_errors([None, one], [zero, one]) == [0.0, 0.0]
    assert gradient_errors([2 * one, one], [one, one]) == pytest.approx([1.0, 0.0])


def test_a_step_gives_away_its_gradients(monkeypatch):
    """The weights after one step of Adam with a huge ε, against autograd's gradients."""

    class Eager:
        def __init__(self, learner):
            self.learner = learner

        def step(self, indices, rate, number):
            batch = self.learner.store.packed(indices)
            total, known = self.learner.task.loss(self.learner.model(batch), batch.targets)
            (total / known).backward()
            self.learner.optimiser.step()

    monkeypatch.setattr(bench, "GraphedStep", Eager)
    given = work()
    model = given.network()
    found = graphed_gradients(given, model)
    model(given.batch(given.batches[0])).mean().backward()
    assert max(gradient_errors(found, [p.grad.double() for p in model.parameters()])) < 1e-5


def test_drawn_molecules_have_the_sizes_of_qm9():
    sizes = qm9_sizes(20_000)
    assert sizes.mean() == pytest.approx(18.0, abs=0.1)
    assert (sizes.min() >= 3, sizes.max()) == (True, 29)
    graphs = drawn_molecules(50).check()
    assert graphs.node_features.shape[1] == 11
    assert (graphs.edge_counts == 2 * (graphs.sizes - 1)).all(), "trees, both directions"


def test_speeds_are_told_after_equality(monkeypatch):
    found = list(speeds(CPU, quick=True))
    assert [speed.case.partition(",")[0] for speed in found] == ["training", "inference"]
    assert all(speed.graphs_per_second > 0 and speed.times_reference > 0 for speed in found)
    real = packed_mlp.mix
    monkeypatch.setattr(packed_mlp, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    assert [speed.graphs_per_second for speed in speeds(CPU, quick=True)] == [None, None]


@pytest.mark.gpu
@pytest.mark.parametrize("preset", ["paper", "modern"])
@pytest.mark.parametrize("precision", ["bf16", "tf32", "32"])
def test_graphed_steps_and_passes_equal_the_reference_on_a_gpu(preset, precision):
    for training in (True, False):
        assert compare(work(preset, precision, torch.device("cuda")), training).holds


class Clock:
    """A clock that only its own sleeping moves: what a machine does beside it changes nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


def test_the_median_and_the_spread_are_of_the_repeats(clock):
    lasting = iter([0.01, 0.02, 0.02, 0.05, 0.03])
    taken = measure(lambda: clock.sleep(next(lasting)), CPU, Effort(repeats=5, seconds=0.0))
    assert (taken.least, taken.seconds, taken.most) == pytest.approx((0.01, 0.02, 0.05))
    assert taken.spread == pytest.approx(2.0)


def test_short_passes_are_taken_many_times(clock):
    calls = []

    def action():
        calls.append(1)
        clock.sleep(0.001)

    taken = measure(action, CPU, Effort(repeats=3, seconds=0.01))
    assert len(calls) == 1 + 3 * 10
    assert taken.repeats == 3
    assert taken.seconds == pytest.approx(0.001)


def test_a_long_measurement_ends_in_time(clock):
    effort = Effort(repeats=1000, seconds=0.0, most=0.2)
    assert measure(lambda: clock.sleep(0.06), CPU, effort).repeats == 1 + 4


def test_ratios_are_of_passes_taken_in_turns(clock):
    """The machine becomes slower with every round; the ratio does not change."""
    slow, calls = [1.0], []

    def sleep(seconds, name):
        calls.append(name)
        clock.sleep(seconds * slow[0])
        if calls.count("ours") == calls.count("theirs"):
            slow[0] += 1.0

    ours, theirs = lambda: sleep(0.008, "ours"), lambda: sleep(0.011, "theirs")
    assert times_slower(ours, theirs, CPU, rounds=3) == pytest.approx(11 / 8)
    assert calls == ["theirs", "ours", *["ours", "theirs"] * 3]
    assert times_slower(theirs, ours, CPU, rounds=3) == pytest.approx(8 / 11)


def test_the_quicker_one_is_taken_more_often_in_a_round(clock):
    calls = []

    def sleep(seconds, name):
        calls.append(name)
        clock.sleep(seconds)

    ours, theirs = lambda: sleep(0.01, "ours"), lambda: sleep(0.03, "theirs")
    assert times_slower(ours, theirs, CPU, rounds=2) == pytest.approx(3.0)
    assert calls[2:] == ["ours", "ours", "ours", "theirs"] * 2
