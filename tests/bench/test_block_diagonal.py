"""The baseline computes what the reference computes; it is only slower."""

import pytest
import torch

from g2n2.bench import block_diagonal
from g2n2.bench.block_diagonal import Blocks
from g2n2.bench.cases import Case
from g2n2.bench.networks import Setting

CPU = torch.device("cpu")


def test_blocks_are_the_matrices_of_the_graphs():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    blocks = Blocks.of(mask)
    pairs = torch.arange(1.0, 14.0)[:, None]
    whole = blocks.matrix(pairs)[0]
    expected = torch.block_diag(
        torch.arange(1.0, 5.0).view(2, 2), torch.arange(5.0, 14.0).view(3, 3)
    )
    assert torch.equal(whole, expected)
    assert torch.equal(blocks.pairs(whole[None]), pairs)


@pytest.mark.parametrize("layers", [1, 3])
def test_outputs_and_gradients_are_those_of_the_reference(layers):
    setting = Setting.of(Case("x", "y", batch=5, width=6, layers=layers, batches=1), CPU)
    model = setting.network().double()
    model.backend = "reference"
    batch = setting.batch(setting.batches[0]).to(torch.float64)
    gradients = []
    for forward in (model, lambda given: block_diagonal.network(model, given)):
        model.zero_grad()
        outputs = forward(batch)
        (outputs * torch.arange(1.0, 6.0)[:, None]).sum().backward()
        gradients.append([outputs.detach(), *(p.grad.clone() for p in model.parameters())])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)
