"""Learning rates, the optimiser, and the average of the weights."""

import copy
import random

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau

from g2n2.training.checkpoint import load_checkpoint, save_checkpoint
from g2n2.training.config import Recipe
from g2n2.training.optimiser import (
    Average,
    FlatOptimizerStep,
    Learner,
    cosine_rate,
    flattened,
    init_optimiser_state,
    make_optimiser,
    plateau_rate,
)
from kernel_checks import DEVICE


def test_the_average_warms_up_over_its_first_steps():
    """Weights 0 at the start and 1 after every step: (1 + t) / (10 + t) of the old value stays."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    average = Average(model, decay=0.999)
    with torch.no_grad():
        model.weight.fill_(1.0)
    expected = {1: 1 - 2 / 11, 2: 1 - (2 / 11) * (3 / 12), 3: 1 - (2 / 11) * (3 / 12) * (4 / 13)}
    for step, value in expected.items():
        average.update(step)
        with average.applied():
            assert model.weight.item() == pytest.approx(value, abs=1e-6), step
    assert average.keep(8980) < 0.999 == average.keep(8990), "the decay holds once it is smaller"


def test_weights_come_back_after_an_error():
    model = nn.Linear(2, 2)
    average = Average(model, decay=0.5)
    with torch.no_grad():
        model.weight.add_(1.0)
    kept = model.weight.clone()
    try:
        with average.applied():
            raise RuntimeError
    except RuntimeError:
        pass
    assert torch.equal(model.weight, kept)


def test_without_decay_the_weights_are_the_average():
    model = nn.Linear(2, 2)
    average = Average(model, decay=0.0)
    kept = model.weight.clone()
    average.update(1)
    with average.applied():
        assert torch.equal(model.weight, kept)
    assert average.shadow == []


def test_running_statistics_are_averaged_with_the_weights_they_belong_to():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    average = Average(model, 0.5)
    expected = model[1].running_mean.clone()
    for step in range(1, 4):
        model(10.0 * torch.randn(8, 2))
        average.update(step)
        expected += (1.0 - average.keep(step)) * (model[1].running_mean - expected)
    raw = model[1].running_mean.clone()
    with average.applied():
        assert torch.allclose(model[1].running_mean, expected)
    assert torch.equal(model[1].running_mean, raw)
    assert not torch.allclose(raw, expected)


def test_matrices_decay_and_biases_do_not():
    """A step of AdamW without a gradient: W − rate · decay · W."""
    model = nn.Linear(2, 2)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    recipe = Recipe("r", optimiser="adamw", rate=0.1, decay=0.5)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    make_optimiser(model, recipe, torch.device("cpu")).step()
    torch.testing.assert_close(model.weight, before["weight"] * (1 - 0.1 * 0.5))
    assert torch.equal(model.bias, before["bias"])


def optimiser(rate):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


@pytest.mark.parametrize("higher", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_plateau_is_torch_s(higher, seed):
    recipe = Recipe("r", rate=1e-3, factor=0.9, patience=4)
    theirs = optimiser(recipe.rate)
    mode = "max" if higher else "min"
    scheduler = ReduceLROnPlateau(theirs, mode, factor=0.9, patience=4, threshold=1e-4, eps=0)
    draw = random.Random(seed)
    history = []
    for epoch in range(60):
        history.append(draw.uniform(0.5, 1.0) / (1 + epoch // 20))
        scheduler.step(history[-1])
        assert plateau_rate(recipe, history, higher) == pytest.approx(
            theirs.param_groups[0]["lr"], rel=1e-12
        )
    assert theirs.param_groups[0]["lr"] < recipe.rate


def test_cosine_after_the_warm_up_is_torch_s():
    recipe = Recipe("r", rate=0.02, schedule="cosine", warmup=0.1)
    theirs = optimiser(recipe.rate)
    scheduler = CosineAnnealingLR(theirs, T_max=90)
    for step in range(10, 101):
        assert cosine_rate(recipe, step, 100) == pytest.approx(
            theirs.param_groups[0]["lr"], abs=1e-12
        )
        theirs.step()
        scheduler.step()


def test_warm_up_rises_in_equal_steps_to_the_full_rate():
    recipe = Recipe("r", rate=0.02, schedule="cosine", warmup=0.1)
    assert [cosine_rate(recipe, step, 100) for step in (0, 4, 9)] == pytest.approx(
        [0.002, 0.010, 0.020]
    )
    assert cosine_rate(recipe, 100, 100) == pytest.approx(0.0)
    assert cosine_rate(recipe, 500, 100) == pytest.approx(0.0)


pytest.importorskip("triton", reason="the kernels need triton")

NEAR = {"rtol": 1e-5, "atol": 5e-6}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 13), nn.Linear(13, 5), nn.Linear(5, 1)).to(DEVICE)


OPTIONS = {"lr": torch.tensor(0.01, device=DEVICE), "capturable": DEVICE.type == "cuda"}


def adam(model):
    return torch.optim.Adam(model.parameters(), **copy.deepcopy(OPTIONS), eps=1e-7)


def adamw(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others}]
    return torch.optim.AdamW(groups, weight_decay=0.0, **copy.deepcopy(OPTIONS), betas=(0.8, 0.95))


class Side:
    """A network, its optimiser and its average, stepped with given gradients."""

    def __init__(self, model, make, decay, clip):
        self.model, self.clip = model, clip
        self.weights = list(model.parameters())
        self.optimiser, self.average = make(model), Average(model, decay)
        self.share, self.norm = torch.zeros((), device=DEVICE), torch.zeros((), device=DEVICE)
        self.copies, self.flat = [], None

    def flatten(self, halves=2, dtype=torch.float32):
        init_optimiser_state(self.optimiser, self.weights)
        self.copies = [w.detach().to(dtype).requires_grad_() for w in self.weights[:halves]]
        parts = self.weights[:halves], self.weights[halves:], self.copies
        learner = Learner(self.model, self.optimiser, self.average, None, None, 1, self.clip)
        self.flat = FlatOptimizerStep(*parts, learner, self.share, self.norm)

    def step(self, gradients, rate, number):
        self.optimiser.param_groups[0]["lr"].fill_(rate)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient.clone()
        if self.flat is None:
            norm = nn.utils.clip_grad_norm_(self.weights, self.clip or float("inf"))
            for group in self.optimiser.param_groups:
                group["lr"] = self.optimiser.param_groups[0]["lr"]
            self.optimiser.step()
            self.average.update(number)
            return norm
        for c, gradient in zip(self.copies, gradients, strict=False):
            c.grad = gradient.to(c.dtype)
        self.share.fill_(1.0 - self.average.keep(number))
        self.flat.step()
        return self.norm


def drawn(model):
    return [torch.randn_like(p) for p in model.parameters()]


def assert_same(mine, theirs):
    for weight, twin in zip(mine.weights, theirs.weights, strict=True):
        torch.testing.assert_close(weight, twin, **NEAR)
    for shadow, twin in zip(mine.average.shadow, theirs.average.shadow, strict=True):
        torch.testing.assert_close(shadow, twin, **NEAR)


def sides(make, decay=0.9, clip=1.0):
    model = network()
    return Side(model, make, decay, clip), Side(copy.deepcopy(model), make, decay, clip)


@pytest.mark.parametrize("make", [adam, adamw])
@pytest.mark.parametrize(("decay", "clip"), [(0.9, 1.0), (0.0, 1.0), (0.9, 0.0)])
def test_flat_steps_are_the_optimisers_steps(make, decay, clip):
    mine, theirs = sides(make, decay, clip)
    mine.flatten()
    for number in range(1, 6):
        gradients, rate = drawn(mine.model), 0.01 / number
        norms = [float(side.step(gradients, rate, number)) for side in (mine, theirs)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-5)
        assert_same(mine, theirs)
        for c, weight in zip(mine.copies, mine.weights, strict=False):
            assert torch.equal(c, weight), "what the network reads next"


@pytest.mark.parametrize("halves", [0, 6])
def test_all_weights_of_one_precision(halves):
    mine, theirs = sides(adamw)
    mine.flatten(halves)
    for number in range(1, 4):
        gradients = drawn(mine.model)
        mine.step(gradients, 0.01, number)
        theirs.step(gradients, 0.01, number)
    assert_same(mine, theirs)


def test_copies_in_half_precision():
    mine, theirs = sides(adamw)
    mine.flatten(dtype=torch.bfloat16)
    for number in range(1, 4):
        gradients = [g.to(torch.bfloat16).float() for g in drawn(mine.model)]
        mine.step(gradients, 0.01, number)
        theirs.step(gradients, 0.01, number)
        for c, weight in zip(mine.copies, mine.weights, strict=False):
            assert c.dtype == torch.bfloat16
            assert weight.dtype == torch.float32
            torch.testing.assert_close(c.float(), weight, rtol=2**-7, atol=1e-6)
    assert_same(mine, theirs)


def test_flat_steps_go_on_from_those_taken_before():
    mine, theirs = sides(adamw)
    for number in range(1, 7):
        gradients = drawn(mine.model)
        if number == 4:
            mine.flatten()
        mine.step(gradients, 0.01, number)
        theirs.step(gradients, 0.01, number)
    assert_same(mine, theirs)


def test_the_weights_stay_the_models_own():
    mine, _ = sides(adam)
    before = [(id(p), p.detach().clone()) for p in mine.model.parameters()]
    mine.flatten()
    for (identity, value), weight in zip(before, mine.model.parameters(), strict=True):
        assert id(weight) == identity
        assert torch.equal(weight, value), "flattening changes no weight"
        assert weight.is_leaf
        assert weight.requires_grad
    x = torch.randn(3, 7, device=DEVICE)
    earlier = mine.model(x).detach()
    mine.step(drawn(mine.model), 0.1, 1)
    assert not torch.allclose(mine.model(x), earlier), "the model computes with the new weights"
    mine.optimiser.zero_grad()
    mine.model(x).sum().backward()
    assert all(p.grad is not None for p in mine.model.parameters())


def test_a_checkpoint_brings_back_optimiser_and_average(tmp_path):
    """Written after flat steps, read into a run of its own, with both kinds of steps after that."""
    mine, theirs = sides(adamw)
    mine.flatten()
    for number in range(1, 4):
        gradients = drawn(mine.model)
        mine.step(gradients, 0.01, number)
        theirs.step(gradients, 0.01, number)
    content = {
        "model": mine.model.state_dict(),
        "optimiser": mine.optimiser.state_dict(),
        "average": mine.average.shadow,
    }
    save_checkpoint(tmp_path, content)
    for flat in (False, True):
        found, troubles = load_checkpoint(tmp_path)
        assert not troubles
        again = Side(network(), adamw, 0.9, 1.0)
        again.model.load_state_dict(found["model"])
        again.optimiser.load_state_dict(found["optimiser"])
        again.average.restore(found["average"])
        for group in again.optimiser.param_groups:
            group["lr"] = group["lr"].to(DEVICE)
        steps = {int(state["step"].reshape(())) for state in again.optimiser.state.values()}
        assert steps == {3}
        if flat:
            again.flatten()
        expected = copy.deepcopy(theirs)
        for number in (4, 5):
            torch.manual_seed(number)
            gradients = drawn(again.model)
            again.step(gradients, 0.02, number)
            expected.step(gradients, 0.02, number)
        assert_same(again, expected)


def test_a_file_of_a_flattened_network_holds_its_weights(tmp_path):
    from g2n2.nn import GrammarGNN

    torch.manual_seed(0)
    model = GrammarGNN("r-G_L3", width=4, layers=1, decision=(3,)).to(DEVICE)
    side = Side(model, adam, 0.9, 1.0)
    side.flatten()
    side.step(drawn(model), 0.01, 1)
    model.save(tmp_path / "network.safetensors")
    again = GrammarGNN.load(tmp_path / "network.safetensors", DEVICE)
    for weight, twin in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(weight, twin)


def test_tensors_one_after_the_other():
    a, b = torch.arange(6.0).view(2, 3), torch.tensor(7.0)
    flat, parts = flattened([a, b])
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert [part.shape for part in parts] == [a.shape, b.shape]
    flat.add_(1.0)
    assert parts[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    nothing, parts = flattened([], a)
    assert nothing.shape == (0,)
    assert parts == []
    with pytest.raises(AssertionError, match="has a gradient"):
        flattened([a, None])


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_preparing_makes_buffers_and_changes_nothing(kind):
    model = network()
    kept = [p.detach().clone() for p in model.parameters()]
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {"weight_decay": 0.1}
    optimiser = kind(model.parameters(), lr=0.5, **options)
    init_optimiser_state(optimiser, list(model.parameters()))
    assert optimiser.state
    for weight, before in zip(model.parameters(), kept, strict=True):
        assert torch.equal(weight, before)
        assert weight.grad is None
        assert all(not bool(b.any()) for b in optimiser.state[weight].values() if b is not None)


def test_preparing_leaves_the_buffers_of_a_run_alone():
    model = network()
    optimiser = adam(model)
    model(torch.ones(2, 7, device=DEVICE)).sum().backward()
    optimiser.step()
    weight = next(model.parameters())
    before = optimiser.state[weight]["exp_avg"].clone()
    assert bool(before.any())
    init_optimiser_state(optimiser, list(model.parameters()))
    assert torch.equal(optimiser.state[weight]["exp_avg"], before)
