"""The check that stands before every speed: it passes what is right and can fail."""

from dataclasses import replace

import pytest
import torch

from g2n2.bench import equality
from g2n2.bench.cases import CASES, Case
from g2n2.bench.equality import Check, as_large, check, gradient_errors, ways
from g2n2.bench.networks import Setting
from g2n2.nn import GrammarGNN
from g2n2.ops.mixing import plain

CPU = torch.device("cpu")
SMALL = Case("x", "y", batch=4, width=8, layers=2, precision="32", batches=1)


@pytest.mark.parametrize("preset", ["paper", "modern"])
@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_the_fast_path_passes(preset, precision):
    found = check(replace(SMALL, preset=preset, precision=precision), CPU)
    assert found.passed
    assert found.outputs > 0, "the reference was compared with itself"


KEPT, AGAIN = True, False
LARGE = replace(SMALL, nodes=4000, batch=1)


@pytest.fixture
def kept(monkeypatch):
    """Of each update, whether its hidden layer was kept for the backward pass."""
    found = []
    real = plain._Hidden.chunks, plain._Hidden.join

    def chunks(hidden):
        found.append(AGAIN)
        return real[0](hidden)

    def join(hidden):
        found.append(KEPT)
        real[1](hidden)

    monkeypatch.setattr(plain._Hidden, "chunks", chunks)
    monkeypatch.setattr(plain._Hidden, "join", join)
    return found


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SMALL, {KEPT, AGAIN}),  # chunks are walked through either way
        (LARGE, {AGAIN}),
        (replace(SMALL, kind="infer"), {AGAIN}),
    ],
)
def test_small_graphs_go_the_way_of_the_case(case, expected, kept):
    before = plain.KEPT_BYTES
    assert check(case, CPU).passed
    assert set(kept) == expected
    assert before == plain.KEPT_BYTES


def test_a_case_that_goes_both_ways_is_checked_on_both(monkeypatch):
    # 64 units of 4 bytes for each of n² pairs: molecules of up to 20 atoms are kept
    case = replace(SMALL, batch=1, batches=40)
    monkeypatch.setattr(plain, "KEPT_BYTES", 20**2 * 64 * 4)
    assert ways(case, CPU) == [False, True]
    real = plain.mix

    def wrong(*args, **kwargs):
        return (1.0 if plain.KEPT_BYTES else 1.5) * real(*args, **kwargs)

    assert check(case, CPU).passed
    monkeypatch.setattr(plain, "mix", wrong)
    assert not check(case, CPU).passed


def test_the_limit_is_put_back_after_a_failure():
    before = plain.KEPT_BYTES
    with pytest.raises(ZeroDivisionError), as_large(True, CPU):
        _ = 1 / plain.KEPT_BYTES
    assert before == plain.KEPT_BYTES


def test_on_a_gpu_only_the_largest_graphs_write_no_hidden_layer():
    pytest.importorskip("triton", reason="the kernels need triton")
    cuda = torch.device("cuda")
    large = {c.name for c in CASES if "cuda" in c.devices and ways(c, cuda) == [True]}
    assert large == {"nodes-4000", "large-4000"}  # 16·10⁶ pairs of 8S numbers, above 4 GiB
    from g2n2.ops.mixing import streamed

    with as_large(True, cuda):
        assert streamed.HIDDEN_BYTES == 0
    assert streamed.HIDDEN_BYTES == 4 * 1024**3


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_a_wrong_output_fails(precision, monkeypatch):
    real = plain.mix
    monkeypatch.setattr(plain, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    found = check(replace(SMALL, precision=precision), CPU)
    assert not found.passed
    assert found.outputs > found.outputs_allowed


def test_a_wrong_gradient_alone_fails(monkeypatch):
    class Off(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dx):
            return 1.1 * dx

    real = plain.mix
    monkeypatch.setattr(plain, "mix", lambda *a, **k: Off.apply(real(*a, **k)))
    found = check(SMALL, CPU)
    assert found.outputs <= found.outputs_allowed
    assert found.gradients > found.gradients_allowed
    assert not found.passed


def test_nan_is_near_nothing():
    assert Check(0.0, 0.0, "w", 0.1, 0.1).passed
    assert not Check(float("nan"), 0.0, "w", 0.1, 0.1).passed
    assert not Check(0.0, float("nan"), "w", 0.1, 0.1).passed


def test_a_gradient_on_one_side_only_is_wrong():
    one, zero = torch.ones(2), torch.zeros(2)
    assert gradient_errors([None, one], [one, one]) == [1.0, 0.0]
    assert gradient_errors([one, one], [None, one]) == [1.0, 0.0]
    assert gradient_errors([None, one], [zero, one]) == [0.0, 0.0]
    assert gradient_errors([2 * one, one], [one, one]) == pytest.approx([1.0, 0.0])


def test_a_step_gives_away_its_gradients(monkeypatch):
    """The weights after one step of Adam with a huge ε, against autograd's gradients."""

    class Eager:
        def __init__(self, model, optimiser, average, store, task, batch, clip, dtype):
            self.model, self.optimiser, self.store, self.task = model, optimiser, store, task

        def step(self, indices, rate, number):
            batch = self.store.batch(torch.from_numpy(indices), self.store.widest(indices))
            total, known = self.task.loss(self.model(batch), batch.targets)
            (total / known).backward()
            self.optimiser.step()

    monkeypatch.setattr(equality, "GraphedStep", Eager)
    setting = Setting.of(SMALL, CPU)
    model = setting.network()
    assert isinstance(model, GrammarGNN)
    got = equality._graphed_gradients(setting, model)
    model(setting.batch(setting.batches[0])).mean().backward()
    assert max(gradient_errors(got, [p.grad.double() for p in model.parameters()])) < 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize("preset", ["paper", "modern"])
@pytest.mark.parametrize("precision", ["bf16", "tf32", "32"])
def test_graphed_steps_pass_on_a_gpu(preset, precision):
    case = Case("x", "y", batch=8, preset=preset, precision=precision, batches=1)
    assert check(case, torch.device("cuda")).passed
    assert check(replace(case, kind="infer"), torch.device("cuda")).passed


@pytest.mark.gpu
@pytest.mark.parametrize(("nodes", "expected"), [(48, "streamed"), (4000, "triton")])
def test_the_kernels_of_the_case_are_checked_on_a_gpu(nodes, expected, monkeypatch):
    from g2n2.ops.mixing import streamed, triton

    ran = set()

    def seen(module):
        real = module.mix

        def mix(*args, **kwargs):
            ran.add(module.__name__.rpartition(".")[2])
            return real(*args, **kwargs)

        monkeypatch.setattr(module, "mix", mix)

    seen(streamed)
    seen(triton)
    case = Case("x", "y", batch=1, nodes=nodes, width=32, batches=1, graphed=False)
    assert check(case, torch.device("cuda")).passed
    assert ran == {expected}
