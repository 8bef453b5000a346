"""CUDA graphs: work on fixed tensors, recorded once for each key and then launched at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch


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
