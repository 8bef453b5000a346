"""What a set holds, said before training: one plain sentence for each thing worth knowing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .batching import epoch_batches, padding_waste, sorted_together
from .duplicates import find_duplicates
from .graph_set import GraphSet, Ints
from .summary_sentences import sentences

BytesOf = Callable[[int, int, int, int], float]


@dataclass(frozen=True)
class Summary:
    """What was counted, and the sentences that say it.

    Attributes:
        name: The set.
        graphs: How many.
        parts: Part of the split to its number of graphs.
        sizes: Least, mean and most nodes of a graph.
        edges: Mean number of edges of a graph; an edge listed both ways counts once.
        missing: Target to how many of its values are missing.
        batch_bytes: Memory estimated for the largest batch.
        padding_waste: Share of padded entries among all B·N² with graphs of similar size together.
        self_loops: Edges from a node to itself.
        one_way: Edges without an edge back.
        parallel: Edges listed again.
        isolated: Nodes without an edge to another node.
        repeated: Graphs that occurred before in the set.
        shared: Part to how many of its graphs are in the training part too.
        same_by: What makes two graphs the same.
        sentences: The summary in words.
    """

    name: str
    graphs: int
    parts: dict[str, int]
    sizes: tuple[int, float, int]
    edges: float
    missing: dict[str, int]
    batch_bytes: float
    padding_waste: float
    self_loops: int
    one_way: int
    parallel: int
    isolated: int
    repeated: int
    shared: dict[str, int]
    same_by: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def activation_bytes(batch: int, nodes: int, width: int, layers: int) -> float:
    """Bytes kept for the backward pass: about 8 float32 blocks `[B, N, N, width]` a layer."""
    return 4.0 * batch * nodes**2 * 8 * width * layers


def summarise(
    graphs: GraphSet,
    parts: Mapping[str, Ints],
    batch_size: int,
    width: int,
    layers: int,
    bytes_of: BytesOf = activation_bytes,
) -> Summary:
    """Count everything a user should know before training.

    Args:
        graphs: The set.
        parts: Its split; may be empty.
        batch_size: Graphs in a batch.
        width: Channels of a layer.
        layers: How many layers.
        bytes_of: Memory of a batch from batch size, nodes, width and layers.
    """
    largest = int(graphs.sizes.max())
    loops, one_way, parallel, isolated = _edge_counts(graphs)
    duplicates = find_duplicates(graphs, parts)
    trained = parts.get("train", np.arange(len(graphs)))
    sizes = graphs.sizes[trained]
    missing = {
        column.name: int(np.isnan(values).sum())
        for column, values in zip(graphs.columns, graphs.targets.T, strict=True)
    }
    first_epoch = epoch_batches(sizes, batch_size, 0, 0, sorted_together(sizes, batch_size))
    counts = Summary(
        name=graphs.name,
        graphs=len(graphs),
        parts={part: len(members) for part, members in parts.items()},
        sizes=(int(graphs.sizes.min()), float(graphs.sizes.mean()), largest),
        edges=float((graphs.edge_counts.sum() - parallel + one_way + loops) / 2 / len(graphs)),
        missing=missing,
        batch_bytes=bytes_of(min(batch_size, len(trained)), largest, width, layers),
        padding_waste=padding_waste(sizes, first_epoch),
        self_loops=loops,
        one_way=one_way,
        parallel=parallel,
        isolated=isolated,
        repeated=duplicates.repeated,
        shared=duplicates.shared,
        same_by=duplicates.by,
        sentences=(),
    )
    return replace(counts, sentences=tuple(sentences(counts, graphs, batch_size)))


def _edge_counts(graphs: GraphSet) -> tuple[int, int, int, int]:
    """Self-loops, edges without an edge back, edges listed again, nodes without another node."""
    n = int(graphs.sizes.max())
    owner = np.repeat(np.arange(len(graphs), dtype=np.int64), graphs.edge_counts)
    source, target = graphs.edges
    listed = np.unique((owner * n + source) * n + target)
    first, second = listed // n % n, listed % n
    back = (listed // n**2 * n + second) * n + first
    loops = int((first == second).sum())
    one_way = int((~np.isin(back, listed)).sum())
    joined = np.zeros(int(graphs.sizes.sum()), dtype=bool)
    proper = source != target
    for ends in (source, target):
        joined[(graphs.node_offsets[owner] + ends)[proper]] = True
    return loops, one_way, len(owner) - len(listed), int((~joined).sum())
