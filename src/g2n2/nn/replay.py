"""Replay: a network whose forward passes are CUDA graphs, for many batches of few shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..data.pyg_fields import pyg_data
from ..errors import DataError
from ..ops.precision import float32_products
from .half_precision_weights import Copies
from .model import GrammarGNN
from .on_tensors import OnTensors
from .pyg_layout import as_pyg

Tensors = tuple[Tensor, ...]
Key = tuple[Any, ...]


class Replay:
    """Outputs of a network on a GPU, with each shape of batch recorded once and then replayed.

    A forward pass is some fifty kernels that are launched one by one; a replay launches them all
    at once. Recording takes about as long as a few dozen passes, and each shape keeps a batch on
    the device. Weights may change between calls.

    Products that stay in float32 beside half precision are taken in tf32.

    Args:
        model: The network, on the device; used in evaluation mode.
        dtype: Half precision its layers compute in, or None for that of its weights.

    Raises:
        DataError: The network is not on a GPU, or has supports that are not words.
    """

    def __init__(self, model: GrammarGNN, dtype: torch.dtype | None = None) -> None:
        self.model, self.dtype = model, dtype
        self.device = next(model.parameters()).device
        if self.device.type != "cuda":
            raise DataError(
                f"a CUDA graph needs a GPU, and the network is on {self.device.type}: call the "
                "network itself, or move it"
            )
        if model.supports is not None:
            raise DataError(
                "supports from eigenvectors wait for the host, which a CUDA graph cannot: call "
                "the network itself"
            )
        self.network = OnTensors(model)
        self._forget()

    @torch.no_grad()
    def __call__(self, data: Any) -> Tensor:
        """Outputs for a GraphBatch, or a PyG `Data` or `Batch`, as the network itself gives them.

        Raises:
            ShapeError: As the network does.
            DataError: As the network does.
        """
        with torch.inference_mode(False), torch.cuda.device(self.device):
            if isinstance(data, GraphBatch):
                return self._outputs(data)
            batch = GraphBatch.from_pyg(pyg_data(data, None, None, None, None))
            return as_pyg(self._outputs(batch), data, batch, self.model.plan.readout.task)

    def _outputs(self, batch: GraphBatch) -> Tensor:
        tensors = batch.adjacency, batch.nodes, batch.edges, batch.mask
        key = (batch.directed, *((tensor.shape, tensor.dtype) for tensor in tensors))
        if self._places() != self.weights:
            self._forget()  # weights were moved, and a graph knows them by their places
        if key not in self.recorded:
            self.recorded[key] = self._record(self.model.checked(batch))
        return self.recorded[key].replay(tensors)

    def _forget(self) -> None:
        self.recorded: dict[Key, _Recorded] = {}
        self.weights = self._places()
        with torch.inference_mode(False):
            self.copies = Copies(self.model, None if self.model.by_reference else self.dtype)
        self.pool: Any = None

    def _places(self) -> list[int]:
        return [weight.data_ptr() for weight in self.model.parameters()]

    def _record(self, tensors: Tensors) -> _Recorded:
        self.model.eval()
        given = tuple(tensor.clone() for tensor in tensors)
        tf32 = self.dtype is not None or torch.get_float32_matmul_precision() != "highest"
        with float32_products(tf32):
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
