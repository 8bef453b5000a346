"""Summary of a data set, printed before training: one sentence for each fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..described import bytes_text, counted, shown_number
from ..graphs.symmetry import Hashes, mixed
from .graph_set import GraphSet, Ints, Target
from .splits import smiles_of

_MOST_TARGETS = 12
_MOST_CLASSES = 8
_ROUNDS = 4
_KEYS: WeakKeyDictionary[GraphSet, list[Any]] = WeakKeyDictionary()  # of sets that are still there


def activation_bytes(batch: int, nodes: int, width: int, layers: int) -> float:
    """Bytes kept for the backward pass: about 8 float32 blocks `[B, N, N, width]` a layer."""
    return 4.0 * batch * nodes**2 * 8 * width * layers


def summarise(
    graphs: GraphSet,
    parts: Mapping[str, Ints],
    batch_size: int,
    bytes_of: Callable[[int, int], float],
) -> Iterator[str]:
    """Everything a user should know of a set, and of its split, before training, a sentence each.

    `bytes_of` tells the memory of a batch by its graphs and the nodes of the largest.
    """
    counts = [f"{len(members):,} {part}" for part, members in parts.items()]
    left = len(graphs) - sum(map(len, parts.values()))
    if parts and left > 0:
        counts.append(f"{left:,} in no part")
    split = f": {', '.join(counts)}" if counts else ""
    yield f"{graphs.name} holds {counted(len(graphs), 'graph')}{split}."
    loops, one_way, parallel, isolated = _edge_counts(graphs)
    edges = (graphs.edge_counts.sum() - parallel + one_way + loops) / 2 / len(graphs)
    average = f"{graphs.sizes.mean():.1f} nodes and {edges:.1f} edges on average"
    most = int(graphs.sizes.max())
    yield f"Graphs have {graphs.sizes.min()} to {most} nodes; {average}."
    weights = "all weights are 1"
    if graphs.weights is not None and len(graphs.weights):
        weights = f"weights go from {graphs.weights.min():g} to {graphs.weights.max():g}"
    yield (
        f"A node has {counted(graphs.node_features.shape[1], 'feature')} and an edge "
        f"{graphs.edge_features.shape[1] or 'none'}; edges are "
        f"{'directed' if graphs.directed else 'undirected'} and {weights}"
        f"{'; nodes have 3D positions' if graphs.positions is not None else ''}."
    )
    yield from _targets(graphs)
    train = parts.get("train", np.arange(len(graphs)))
    memory = bytes_text(bytes_of(min(batch_size, len(train)), most))
    yield f"A batch of {batch_size} takes about {memory} of memory at {most} nodes."
    yield _there(loops, "self-loop")
    if one_way:
        yield _there(one_way, "one-direction edge", more=", so the graphs are directed")
    else:
        yield "Every edge is listed in both directions."
    if parallel:
        yield _there(parallel, "repeated edge", more="; weights of one edge add up")
    share = f" ({isolated / graphs.sizes.sum():.1%} of all)" if isolated else ""
    yield _there(isolated, "node without an edge", "nodes without an edge", share)
    yield from _duplicates(graphs, parts)
    yield from graphs.notes


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


def _duplicates(graphs: GraphSet, parts: Mapping[str, Ints]) -> Iterator[str]:
    """Graphs that occur more than once, and those of other parts that are in `train` too."""
    same_by = f"as far as {_ROUNDS} rounds of 1-WL with all features tell"
    if smiles_of(graphs) is not None:
        same_by = "by canonical SMILES"
    _, keys = np.unique(np.array(graph_keys(graphs)), return_inverse=True)
    repeated = len(keys) - len(np.unique(keys))
    yield _there(repeated, "repeated graph", more=f", {same_by}")
    train = keys[parts["train"]] if "train" in parts else keys[:0]
    others = {part: keys[members] for part, members in parts.items() if part != "train"}
    shared = {part: int(np.isin(members, train).sum()) for part, members in others.items()}
    for part, count in shared.items():
        if count:
            yield (
                f"{count:,} of the {len(parts[part]):,} graphs in {part} are in train too, "
                f"{same_by}: the {part} figures will look better than they are."
            )
    if shared and not any(shared.values()):
        yield f"No graph of {' or '.join(shared)} is in train too, {same_by}."


def graph_keys(graphs: GraphSet) -> list[Any]:
    """What is equal for two graphs that count as one: canonical SMILES if known, else a hash."""
    if graphs not in _KEYS:
        smiles = smiles_of(graphs)
        _KEYS[graphs] = graph_hashes(graphs).tolist() if smiles is None else smiles
    return _KEYS[graphs]


def graph_hashes(graphs: GraphSet) -> Hashes:
    """`[G]` hashes that are equal for isomorphic graphs, features, weights and positions included.

    They come from colour refinement over both directions of the edges, so graphs that 1-WL cannot
    tell apart have equal hashes.
    """
    offset = np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    source, target = graphs.edges + offset
    colours = _row_hashes(graphs.node_features)
    edge_colours = _row_hashes(graphs.edge_features)
    if graphs.weights is not None:
        edge_colours = mixed(edge_colours + _row_hashes(graphs.weights[:, None]))
    if graphs.positions is not None:
        # Lengths do not change when the molecule is moved or turned; rounded, as files round.
        steps = graphs.positions[source] - graphs.positions[target]
        lengths = np.linalg.norm(steps, axis=1).round(3).astype(np.float32)
        edge_colours = mixed(edge_colours + _row_hashes(lengths[:, None]))
    for _ in range(_ROUNDS):
        messages = np.zeros((2, len(colours)), dtype=np.uint64)
        np.add.at(messages[0], target, mixed(colours[source] ^ edge_colours))
        np.add.at(messages[1], source, mixed(colours[target] ^ edge_colours))
        colours = mixed(mixed(mixed(colours) + messages[0]) + messages[1])
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    total = np.zeros(len(graphs), dtype=np.uint64)
    np.add.at(total, owner, mixed(colours))
    return mixed(total + graphs.sizes.astype(np.uint64))


def _row_hashes(values: NDArray[np.float32]) -> Hashes:
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        bits = (column + np.float32(0)).view(np.uint32)  # -0 and 0 are one number
        hashes = mixed(hashes + bits.astype(np.uint64) + np.uint64(1))
    return hashes


def _targets(graphs: GraphSet) -> Iterator[str]:
    if not graphs.columns:
        yield "There are no targets."
        return
    for target, values in list(zip(graphs.columns, graphs.targets.T, strict=True))[:_MOST_TARGETS]:
        yield _target(target, values[~np.isnan(values)], graphs.level)
    if (more := len(graphs.columns) - _MOST_TARGETS) > 0:
        yield f"{more} more targets are not listed here."
    missing = np.isnan(graphs.targets).sum(axis=0).tolist()
    absent = {c.name: count for c, count in zip(graphs.columns, missing, strict=True) if count}
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
        numbers = (values.mean(), values.std(), values.min(), values.max())
        mean, deviation, least, most = (shown_number(f"{number:.4g}") for number in numbers)
        return (
            f"{named} is a quantity: mean {mean}{unit}, standard deviation {deviation}{unit}, "
            f"from {least} to {most}."
        )
    counts = np.bincount(values.astype(np.int64), minlength=len(target.classes))
    names = target.classes or tuple(str(number) for number in range(len(counts)))
    balance = [
        f"{name} {count / max(len(values), 1):.1%} ({count:,})"
        for name, count in zip(names, counts, strict=True)
    ]
    more = f", {len(balance) - _MOST_CLASSES} more" if len(balance) > _MOST_CLASSES else ""
    how_many = "1 class" if len(names) == 1 else f"{len(names)} classes"
    return f"{named} has {how_many}: {', '.join(balance[:_MOST_CLASSES])}{more}."


def _there(count: int, singular: str, plural: str = "", more: str = "") -> str:
    """`There are 3 self-loops.`, with the number and the verb that fit."""
    if count == 1:
        return f"There is 1 {singular}{more}."
    return f"There are {f'{count:,}' if count else 'no'} {plural or f'{singular}s'}{more}."
