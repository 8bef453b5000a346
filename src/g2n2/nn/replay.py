"""Replay: a network whose forward passes are CUDA graphs, for many batches of few shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch
from ..errors import DataError
from ..ops.precision import float32_products
from .copies import Copies
from .model import GrammarGNN

Tensors = tuple[Tensor, Tensor, Tensor, Tensor]


class Replay:
    """Outputs of a network on a GPU, with each shape of batch recorded once and then replayed.

    A forward pass is some fifty kernels that are launched one by one; a replay launches them all
    at once. Recording takes about as long as a few dozen passes, and each shape keeps a batch on
    the device. Weights may change between calls as long as they do so in place.

    Products that stay in float32 beside half precision are taken in tf32.

    Args:
        model: The network, on the device; used in evaluation mode.
        dtype: Half precision its layers compute in, or None for that of its weights.

    Raises:
        DataError: The network is not on a GPU.
    """

    def __init__(self, model: GrammarGNN, dtype: torch.dtype | None = None) -> None:
        self.model, self.dtype = model, dtype
        self.network = _OnTensors(model)
        self.copies = Copies(model, None if model.by_reference else dtype)
        device = next(model.parameters()).device
        if device.type != "cuda":
            raise DataError(
                f"a CUDA graph needs a GPU, and the network is on {device.type}: call the "
                "network itself, or move it"
            )
        self.recorded: dict[tuple[int, ...], _Recorded] = {}
        self.pool: Any = None

    @torch.no_grad()
    def __call__(self, batch: GraphBatch) -> Tensor:
        """Outputs for a batch, as the network itself gives them."""
        tensors = self.model.checked(batch)
        shape = tuple(batch.mask.shape)
        if shape not in self.recorded:
            self.recorded[shape] = self._record(tensors)
        return self.recorded[shape].replay(tensors)

    def _record(self, tensors: Tensors) -> _Recorded:
        self.model.eval()
        tf32 = self.dtype is not None or torch.get_float32_matmul_precision() != "highest"
        with float32_products(tf32):
            return self._recorded(tensors)

    def _recorded(self, tensors: Tensors) -> _Recorded:
        given = tuple(tensor.clone() for tensor in tensors)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled and buffers found before recording
                self._forward(given)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            outputs = self._forward(given)
        self.pool = self.pool or graph.pool()
        return _Recorded(graph, given, outputs)

    def _forward(self, tensors: tuple[Tensor, ...]) -> Tensor:
        self.copies.refresh()  # weights may have changed
        with torch.autocast("cuda", self.dtype, enabled=self.dtype is not None):
            made: Tensor = torch.func.functional_call(self.network, self.copies.named(), tensors)
            return made


class _OnTensors(nn.Module):
    """A network as a function of the tensors of a batch."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        return self.model.network(adjacency, nodes, edges, mask)


@dataclass(frozen=True, eq=False)
class _Recorded:
    """A pass over one shape of batch: what it reads, and where it leaves its outputs."""

    graph: torch.cuda.CUDAGraph
    given: tuple[Tensor, ...]
    outputs: Tensor

    def replay(self, tensors: Tensors) -> Tensor:
        for place, tensor in zip(self.given, tensors, strict=True):
            place.copy_(tensor)
        self.graph.replay()
        return self.outputs.clone()  # graphs share their memory: the next one may write here
