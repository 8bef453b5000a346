"""What a set holds, said before training: one plain sentence for each thing worth knowing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .batching import epoch_batches, padding_waste
from .graph_set import GraphSet, Ints, Target
from .splits import find_duplicates

BytesOf = Callable[[int, int, int, int], float]
_MOST_TARGETS = 12
_MOST_CLASSES = 8


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
        padding_waste: Share of padding among the B·N² pairs of random batches, if padded.
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
    train = parts.get("train", np.arange(len(graphs)))
    sizes = graphs.sizes[train]
    first_epoch = epoch_batches(sizes, batch_size, 0, 0)
    counts = Summary(
        name=graphs.name,
        graphs=len(graphs),
        parts={part: len(members) for part, members in parts.items()},
        sizes=(int(graphs.sizes.min()), float(graphs.sizes.mean()), largest),
        edges=float((graphs.edge_counts.sum() - parallel + one_way + loops) / 2 / len(graphs)),
        missing={
            column.name: int(np.isnan(values).sum())
            for column, values in zip(graphs.columns, graphs.targets.T, strict=True)
        },
        batch_bytes=bytes_of(min(batch_size, len(train)), largest, width, layers),
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
    return replace(counts, sentences=tuple(_sentences(counts, graphs, batch_size)))


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
    for ends in (source, target):
        joined[(graphs.node_offsets[owner] + ends)[source != target]] = True
    return loops, one_way, len(owner) - len(listed), int((~joined).sum())


def _sentences(summary: Summary, graphs: GraphSet, batch_size: int) -> Iterator[str]:
    """Each count in one sentence, then the reader's notes."""
    parts = [f"{count:,} {part}" for part, count in summary.parts.items()]
    left = summary.graphs - sum(summary.parts.values())
    if parts and left > 0:
        parts.append(f"{left:,} in no part")
    split = f": {', '.join(parts)}" if parts else ""
    yield f"{summary.name} holds {_count(summary.graphs, 'graph')}{split}."
    least, mean, most = summary.sizes
    average = f"{mean:.1f} nodes and {summary.edges:.1f} edges on average"
    yield f"Graphs have {least} to {most} nodes; {average}."
    yield _features(graphs)
    yield from _targets(summary, graphs)
    memory = _bytes(summary.batch_bytes)
    yield f"A batch of {batch_size} takes about {memory} of memory at {most} nodes."
    yield f"If batches are padded, {summary.padding_waste:.1%} of their pairs are padding."
    yield _there(summary.self_loops, "self-loop")
    if summary.one_way:
        yield _there(summary.one_way, "one-direction edge", more=", so the graphs are directed")
    else:
        yield "Every edge is listed in both directions."
    if summary.parallel:
        yield _there(summary.parallel, "repeated edge", more="; weights of one edge add up")
    share = f" ({summary.isolated / graphs.sizes.sum():.1%} of all)" if summary.isolated else ""
    yield _there(summary.isolated, "node without an edge", "nodes without an edge", share)
    same_by = summary.same_by
    yield _there(summary.repeated, "repeated graph", more=f", {same_by}")
    for part, count in summary.shared.items():
        if count:
            yield (
                f"{count:,} of the {summary.parts[part]:,} graphs in {part} are in train too, "
                f"{same_by}: the {part} figures will look better than they are."
            )
    if summary.shared and not any(summary.shared.values()):
        yield f"No graph of {' or '.join(summary.shared)} is in train too, {same_by}."
    yield from graphs.notes


def _features(graphs: GraphSet) -> str:
    nodes, edges = graphs.node_features.shape[1], graphs.edge_features.shape[1]
    weights = "all weights are 1"
    if graphs.weights is not None and len(graphs.weights):
        weights = f"weights go from {graphs.weights.min():g} to {graphs.weights.max():g}"
    direction = "directed" if graphs.directed else "undirected"
    positions = "; nodes have 3D positions" if graphs.positions is not None else ""
    return (
        f"A node has {_count(nodes, 'feature')} and an edge {edges or 'none'}; edges are "
        f"{direction} and {weights}{positions}."
    )


def _targets(summary: Summary, graphs: GraphSet) -> Iterator[str]:
    if not graphs.columns:
        yield "There are no targets."
        return
    shown = list(zip(graphs.columns, graphs.targets.T, strict=True))[:_MOST_TARGETS]
    for target, values in shown:
        yield _target(target, values[~np.isnan(values)], graphs.level)
    if len(graphs.columns) > len(shown):
        yield f"{len(graphs.columns) - len(shown)} more targets are not listed here."
    absent = {name: count for name, count in summary.missing.items() if count}
    if not absent:
        yield "No target value is missing."
        return
    named = ", ".join(
        f"{count:,} of {name}" for name, count in list(absent.items())[:_MOST_TARGETS]
    )
    total, most = sum(absent.values()), graphs.targets.size
    yield f"{total:,} of {most:,} target values are missing ({named}) and masked in the loss."


def _target(target: Target, values: NDArray[np.float64], level: str) -> str:
    unit = f" {target.unit}" if target.unit else ""
    named = f"Target {target.name}" + ("" if level == "graph" else f" of each {level}")
    if target.kind == "regression":
        if not len(values):
            return f"{named} has no value."
        return (
            f"{named} is a quantity: mean {values.mean():.4g}{unit}, standard "
            f"deviation {values.std():.4g}{unit}, from {values.min():.4g} to {values.max():.4g}."
        )
    counts = np.bincount(values.astype(np.int64), minlength=len(target.classes))
    names = target.classes or tuple(str(number) for number in range(len(counts)))
    balance = [
        f"{name} {count / max(len(values), 1):.1%} ({count:,})"
        for name, count in zip(names, counts, strict=True)
    ]
    more = f", {len(balance) - _MOST_CLASSES} more" if len(balance) > _MOST_CLASSES else ""
    return f"{named} has {len(names)} classes: {', '.join(balance[:_MOST_CLASSES])}{more}."


def _there(count: int, singular: str, plural: str = "", more: str = "") -> str:
    """`There are 3 self-loops.`, with the number and the verb that fit."""
    if count == 1:
        return f"There is 1 {singular}{more}."
    return f"There are {f'{count:,}' if count else 'no'} {plural or f'{singular}s'}{more}."


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"
