"""CUDA graphs: work on fixed tensors, recorded once for each key and then launched at once.

`Replay` is a network whose forward passes are such graphs, for many batches of similar size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..data.pyg_fields import pyg_data
from ..errors import DataError
from ..ops.packing import Packing
from ..ops.precision import float32_products
from .half_precision_weights import Copies, OnInputs
from .model import GrammarGNN
from .packed import OUTPUT_ROWS, unpacked
from .packed_layer import PackedGraphs

STEP = 8
"""Rows are rounded up to this many capacities for each doubling."""


class Recorder:
    """Records work as CUDA graphs, which share one pool of memory.

    A recording takes about as long as a few dozen passes, so keys should be few. What one graph
    leaves in its tensors is valid until the next one runs.
    """

    def __init__(self) -> None:
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def run(self, key: Hashable, work: Callable[[], object], prepare: Callable[[], object]) -> None:
        """Replay the work of a key; the first time, prepare twice and record it.

        Args:
            key: What the work depends on besides the values of tensors.
            work: Launches kernels and waits for none.
            prepare: Does what the work does and changes nothing that lasts: kernels are compiled
                and buffers found before recording.
        """
        if key not in self.graphs:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(2):
                    prepare()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                work()
            self.pool = self.pool or graph.pool()
            self.graphs[key] = graph
        self.graphs[key].replay()


class Replay:
    """Outputs of a network on a GPU, with each capacity of batch recorded once and then replayed.

    A forward pass is some fifty kernels that are launched one by one; a replay launches them all
    at once. A batch is packed into rows (`ops.packing`) and fits a recording with as many graphs
    and room for its rows. Weights may change between calls.

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
            return batch.as_pyg(self._outputs(batch), data, self.model.plan.readout.task)

    def _outputs(self, batch: GraphBatch) -> Tensor:
        if self._places() != self.weights:
            self._forget()  # weights were moved, and a graph knows them by their places
        self.model.eval()
        graphs = self.model.packed.pack(*self.model.checked(batch))
        # Blocks of other sizes are other work, and so are other numbers of marked copies.
        if not graphs.packing.padded or self.model.plan.marks is not None:
            with torch.autocast("cuda", self.dtype, enabled=self.dtype is not None):
                return self.model.network(*self.model.checked(batch))
        key, work = self._recorded(graphs)
        tf32 = self.dtype is not None or torch.get_float32_matmul_precision() != "highest"
        with float32_products(tf32):
            self.recorder.run(key, work.forward, work.forward)
        letter, packing = OUTPUT_ROWS[self.model.plan.readout.task], graphs.packing
        rows = {"S": packing.graphs, "V": packing.nodes, "M": packing.pairs}[letter]
        return unpacked(work.outputs[:rows].clone(), letter, packing, batch.mask)

    def _recorded(self, graphs: PackedGraphs) -> tuple[Hashable, _Pass]:
        """The recording a batch fits, with the batch copied into it."""
        packing = graphs.packing
        nodes, pairs = _capacity(packing.nodes), _capacity(packing.pairs + 1)
        key = (packing.graphs, nodes, pairs, _capacity(packing.most))
        if key not in self.passes:
            self.passes[key] = _Pass(self, graphs, *key)
        self.passes[key].fill(graphs)
        return key, self.passes[key]

    def _forget(self) -> None:
        self.passes: dict[Hashable, _Pass] = {}
        self.recorder = Recorder()
        self.weights = self._places()
        with torch.inference_mode(False):
            self.copies = Copies(self.model, self.dtype)

    def _places(self) -> list[int]:
        return [weight.data_ptr() for weight in self.model.parameters()]


class _Pass:
    """A forward pass over fixed tensors."""

    def __init__(
        self, replay: Replay, graphs: PackedGraphs, count: int, nodes: int, pairs: int, most: int
    ) -> None:
        self.replay, self.shape = replay, (most, nodes, pairs)
        rows = {"M": pairs, "V": nodes, "R": nodes, "S": count}
        self.sizes = torch.ones(count, dtype=torch.int64, device=replay.device)
        self.first = {
            letter: values.new_zeros(rows[letter], values.shape[1])
            for letter, values in graphs.first.items()
        }
        self.adjacency: Tensor | None = None
        if replay.model.names_adjacency and graphs.adjacency is not None:
            self.adjacency = graphs.adjacency.new_zeros(pairs, 1)
        self.network = OnInputs(replay.model)

    def fill(self, graphs: PackedGraphs) -> None:
        """Take over a batch; rows of one before it that stay are finite, and of no graph."""
        self.sizes.copy_(graphs.packing.sizes)
        for letter, values in graphs.first.items():
            self.first[letter][: len(values)].copy_(values)
        if self.adjacency is not None and graphs.adjacency is not None:
            self.adjacency[: len(graphs.adjacency)].copy_(graphs.adjacency)

    def forward(self) -> None:
        copies, dtype = self.replay.copies, self.replay.dtype
        copies.refresh()  # weights may have changed
        packing = Packing.within(self.sizes, *self.shape)
        with torch.autocast("cuda", dtype, enabled=dtype is not None):
            self.outputs: Tensor = torch.func.functional_call(
                self.network, copies.named(), (packing, self.first, self.adjacency, None)
            )


def _capacity(rows: int) -> int:
    grain = max(1, (1 << (rows.bit_length() - 1)) // STEP)
    return -(-rows // grain) * grain
