"""The mean absolute error against the loss of a regression."""

import pytest
import torch

from g2n2.data.graph_set import Target
from g2n2.training.task import Task
from kernel_checks import DEVICE

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import absolute_error

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("count", [1, 5, 1500])
def test_loss_and_its_gradient(count, poisoned):
    torch.manual_seed(4)
    outputs = torch.randn(count, 2, device=DEVICE, requires_grad=True)
    targets = torch.randn(count, 2, device=DEVICE)
    targets[0, 1], targets[-1, 0], targets[count // 2] = NAN, INF, outputs[count // 2].detach()
    task = Task((Target("a"), Target("b")), "regression")
    total, known = task.loss(outputs, targets)
    wanted = torch.autograd.grad(3.0 * total / known.clamp(min=1), outputs)[0]
    mean, found = absolute_error.mean_absolute_error(outputs, targets)
    torch.testing.assert_close(found, total)
    torch.testing.assert_close(mean, total / known.clamp(min=1))
    torch.testing.assert_close(torch.autograd.grad(3.0 * mean, outputs)[0], wanted)


def test_no_target_is_known(poisoned):
    outputs = torch.ones(3, 1, device=DEVICE, requires_grad=True)
    mean, total = absolute_error.mean_absolute_error(
        outputs, torch.full((3, 1), NAN, device=DEVICE)
    )
    mean.backward()
    assert mean.item() == total.item() == 0.0
    assert not outputs.grad.any()
