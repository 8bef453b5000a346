"""Work that may go to a stream of its own, and work that may not."""

import pytest
import torch

from g2n2.ops.side_stream import (
    Branch,
    grads_reach_leaves_directly,
    on_side_stream,
    side_stream,
)


def test_gradients_of_leaves_and_of_stacks_of_leaves_may_wait():
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    assert grads_reach_leaves_directly(a, None, b)
    assert grads_reach_leaves_directly(torch.cat([a, b]))
    assert grads_reach_leaves_directly(torch.cat([a, torch.ones(1, 3)])), (
        "a constant has no gradient"
    )


def test_gradients_somebody_works_on_may_not():
    a = torch.randn(2, 3, requires_grad=True)
    for used in (
        2 * a,
        a.to(torch.bfloat16),
        torch.cat([a, 2 * a]),
        a.T,
        torch.cat([a, a.clone()]),
    ):
        assert not grads_reach_leaves_directly(used)
        assert not grads_reach_leaves_directly(a, used)


def test_without_a_stream_everything_is_done_at_once():
    with side_stream(None), on_side_stream(True, torch.ones(1)):
        assert float(torch.ones(2).sum()) == 2.0


def test_a_context_left_by_an_error_can_be_entered_again():
    with pytest.raises(RuntimeError, match="inside"), side_stream(None):
        raise RuntimeError("inside")
    with side_stream(None):
        pass


@pytest.mark.gpu
@pytest.mark.parametrize("allowed", [True, False])
def test_work_goes_aside_and_is_waited_for_on_a_gpu(allowed):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    stream, x = torch.cuda.Stream(), torch.ones(4096, 4096, device="cuda")
    with side_stream(stream):
        with on_side_stream(allowed, x):
            assert (torch.cuda.current_stream() == stream) == allowed
            product = x
            for _ in range(20):
                product = (product @ x) / 4096
        assert torch.cuda.current_stream() != stream
    assert bool((product == 1.0).all())


def test_a_branch_of_no_recording_is_done_in_order():
    branch, done = Branch(), []
    with branch:
        done.append(1)
    done.append(2)
    branch.join()
    assert done == [1, 2]


@pytest.mark.gpu
def test_branches_of_a_recording_are_joined_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    x = torch.ones(2048, 2048, device="cuda")
    x @ x  # buffers are found before recording
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        before, branch, unused = 2.0 * x, Branch(), Branch()
        unused.join()
        with branch:
            product = before
            for _ in range(20):
                product = (product @ x) / 2048
        beside = before + 1.0
        branch.join()
        both = product + beside
    x.fill_(1.0)
    graph.replay()
    assert bool((both == 5.0).all())
