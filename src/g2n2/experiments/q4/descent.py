"""Steps on the training image; on a GPU the whole step is recorded once and replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from ...nn.model import GrammarGNN
from ...training.optimiser import init_optimiser_state, set_rate
from .images import Images

CLIP = 1.0
"""Largest norm of the gradient."""


class Descent:
    """Adam on the squared error of the scored nodes.

    Args:
        model: On the images' device.
        images: Of one filter.
        rate: The learning rate to begin with.
    """

    def __init__(self, model: nn.Module, images: Images, rate: float) -> None:
        self.model = model
        # Other networks ask the host for the edges of their graph, which no recording can.
        self.records = images.device.type == "cuda" and isinstance(model, GrammarGNN)
        self.learned = [weight for weight in model.parameters() if weight.requires_grad]
        first = torch.tensor(rate, device=images.device) if self.records else rate
        self.optimiser = torch.optim.Adam(
            self.learned, first, capturable=self.records, fused=self.records
        )
        self.given = cast(GrammarGNN, model).checked(images.batches["train"])
        self.network = cast(Callable[..., Tensor], model.network)
        self.nodes, self.truth = images.known("train")
        self.graph: torch.cuda.CUDAGraph | None = None
        self.norm = torch.zeros((), device=images.device)

    def step(self, rate: float) -> Tensor:
        """Take one step; returns the norm of its gradient, on the device."""
        set_rate(self.optimiser, rate)
        self.model.train()
        if not self.records:
            self._backward()
            self._move()
        else:
            if self.graph is None:
                self._record()
            assert self.graph is not None
            self.graph.replay()
        return self.norm

    def _backward(self) -> None:
        self.optimiser.zero_grad()
        output = self.network(*self.given)[0, self.nodes, 0]
        (output - self.truth).square().mean().backward()  # type: ignore[no-untyped-call]

    def _move(self) -> None:
        self.norm = nn.utils.clip_grad_norm_(self.learned, CLIP)
        self.optimiser.step()

    def _record(self) -> None:
        """Nothing is learned while recording."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled and buffers found before
                self._backward()
            init_optimiser_state(self.optimiser, self.learned)
            self.optimiser.zero_grad()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._backward()
            self._move()
