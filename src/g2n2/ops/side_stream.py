"""A side stream for the gradients of weights during a backward pass.

Only the optimiser needs these gradients. In a small batch, where each kernel waits for the one
before, they are computed beside the gradients of inputs. `side_stream` waits for its stream before
anyone reads a gradient of a weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_stream: torch.cuda.Stream | None = None
_busy = False
_branches: dict[torch.device, torch.cuda.Stream] = {}
"""The stream of each device that branches run on."""


class Branch:
    """A second branch of a CUDA graph that is being recorded; elsewhere its work is done in order.

    What is run with it open may run at the same time as what follows, until it is joined.
    """

    def __init__(self) -> None:
        self.stream: torch.cuda.Stream | None = None
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            device = torch.device("cuda", torch.cuda.current_device())
            if device not in _branches:
                _branches[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
                # A branch has gradients of weights; autograd waits for them, and warns.
                warn = getattr(
                    torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", None
                )
                if warn is not None:
                    warn(False)
            self.stream = _branches[device]
            self._opened = torch.cuda.stream(self.stream)
        self._used = False

    def __enter__(self) -> None:
        if self.stream is not None:
            self._used = True
            self.stream.wait_stream(torch.cuda.current_stream())
            self._opened.__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self._opened.__exit__(*error)

    def join(self) -> None:
        """Let the current stream wait for it."""
        if self.stream is not None and self._used:
            torch.cuda.current_stream().wait_stream(self.stream)


@contextmanager
def side_stream(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """While open, `on_side_stream` uses this stream; at the end the current one waits for it.

    Only where each weight is used once, and its gradient not before this context is left.
    """
    global _stream, _busy
    assert _stream is None, "one at a time"
    _stream, _busy = stream, False
    try:
        yield
    finally:
        _stream = None
        if stream is not None and _busy:  # a graph being recorded knows no stream without work
            torch.cuda.current_stream().wait_stream(stream)


def grads_reach_leaves_directly(*weights: Tensor | None) -> bool:
    """Whether the gradients of weights go to leaves with no work done on them before that."""
    nodes = [weight.grad_fn for weight in weights if weight is not None]
    ends = [end for node in nodes if node is not None for end, _ in node.next_functions]
    return all(node is None or node.name() == "CatBackward0" for node in nodes) and all(
        end is None or end.name() == "torch::autograd::AccumulateGrad" for end in ends
    )


@contextmanager
def on_side_stream(allowed: bool, *read: Tensor) -> Iterator[None]:
    """Run the body on the side stream if one is open and `allowed`; the body reads these tensors.

    `grads_reach_leaves_directly` of the weights whose gradients are made says whether it may be.
    """
    if _stream is None or not allowed:
        yield
        return
    global _busy
    _busy = True
    _stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_stream):
        yield
    for tensor in read:
        tensor.record_stream(_stream)
