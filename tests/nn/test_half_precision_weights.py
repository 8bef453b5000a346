"""Half-precision copies of weights."""

import torch

from g2n2.nn import GrammarGNN
from g2n2.nn.half_precision_weights import Copies
from g2n2.nn.kernel_layer import stacked


def network():
    torch.manual_seed(0)
    return GrammarGNN("r-G_L3", 2, width=8, layers=2, decision=(8,))


def test_copies_follow_the_weights_and_hand_back_gradients():
    model = network()
    copies = Copies(model, torch.bfloat16)
    inner = {n: p for n, p in model.named_parameters() if n.startswith(("layers.", "embeddings."))}
    named = copies.named()
    assert set(named) == {f"model.{name}" for name in inner}
    for name, weight in inner.items():
        assert torch.equal(named[f"model.{name}"], weight.to(torch.bfloat16)), name
    for number, leaf in enumerate(copies.leaves[1:], start=1):
        leaf.grad = torch.full_like(leaf, float(number))
    copies.give_gradients()
    for number, group in enumerate(copies.groups):
        for weight in group.values():
            if number == 0:
                assert weight.grad is None, "what was not used gets no gradient"
                continue
            assert weight.grad.dtype == torch.float32
            assert weight.grad.shape == weight.shape
            assert bool((weight.grad == number).all())
    with torch.no_grad():
        for weight in inner.values():
            weight.add_(torch.randn_like(weight))
    copies.refresh()
    for name, copied in copies.named().items():
        assert copied.dtype == torch.bfloat16
        assert torch.equal(copied, inner[name.removeprefix("model.")].to(torch.bfloat16)), name


def test_weights_a_layer_stacks_are_parts_of_one_copy():
    model = network()
    copies = Copies(model, torch.bfloat16)
    named = copies.named()
    names = {id(weight): name for name, weight in model.named_parameters()}
    stacks = model.packed.stacked_weights()
    assert len(stacks) == 4, "two memories in each of two layers"
    for weights in stacks:
        parts = [named[f"model.{names[id(weight)]}"] for weight in weights]
        assert any(stacked(parts) is leaf for leaf in copies.leaves)
    weights, leaves = copies.used()
    assert weights == leaves == []
    for leaf in copies.leaves[:2]:
        leaf.grad = torch.zeros_like(leaf)
    weights, leaves = copies.used()
    assert sum(w.numel() for w in weights) == sum(x.numel() for x in leaves)
    assert torch.equal(
        torch.cat([w.detach().reshape(-1) for w in weights]).to(torch.bfloat16),
        torch.cat([leaf.detach().reshape(-1) for leaf in leaves]),
    ), "in the same order"


def test_without_a_dtype_nothing_is_copied():
    copies = Copies(network(), None)
    assert copies.named() == {}
    assert copies.used() == ([], [])
    copies.give_gradients()
    copies.refresh()
