"""The summary of a set in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .graph_set import GraphSet, Target

if TYPE_CHECKING:
    from .summary import Summary

_MOST_TARGETS = 12
_MOST_CLASSES = 8


def sentences(summary: Summary, graphs: GraphSet, batch_size: int) -> Iterator[str]:
    """Each thing counted in one sentence, then what the reader noted."""
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
    yield (
        f"A batch of {batch_size} takes about {_bytes(summary.batch_bytes)} of memory at "
        f"{most} nodes."
    )
    yield f"Padding wastes {summary.padding_waste:.1%} with graphs of similar size together."
    yield from _edges(summary, graphs)
    yield from _same(summary)
    yield from graphs.notes


def _features(graphs: GraphSet) -> str:
    nodes, edges = graphs.node_features.shape[1], graphs.edge_features.shape[1]
    weights = "all weights are 1"
    if graphs.weights is not None and len(graphs.weights):
        weights = f"weights go from {graphs.weights.min():g} to {graphs.weights.max():g}"
    direction = "directed" if graphs.directed else "undirected"
    places = "; nodes have 3D positions" if graphs.positions is not None else ""
    return (
        f"A node has {_count(nodes, 'feature')} and an edge {edges or 'none'}; edges are "
        f"{direction} and {weights}{places}."
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
    of = "" if level == "graph" else f" of each {level}"
    if target.kind == "regression":
        if not len(values):
            return f"Target {target.name}{of} has no value."
        return (
            f"Target {target.name}{of} is a quantity: mean {values.mean():.4g}{unit}, standard "
            f"deviation {values.std():.4g}{unit}, from {values.min():.4g} to {values.max():.4g}."
        )
    counts = np.bincount(values.astype(np.int64), minlength=len(target.classes))
    names = target.classes or tuple(str(number) for number in range(len(counts)))
    balance = [
        f"{name} {count / max(len(values), 1):.1%} ({count:,})"
        for name, count in zip(names, counts, strict=True)
    ]
    more = f", {len(balance) - _MOST_CLASSES} more" if len(balance) > _MOST_CLASSES else ""
    return (
        f"Target {target.name}{of} has {len(names)} classes: "
        f"{', '.join(balance[:_MOST_CLASSES])}{more}."
    )


def _edges(summary: Summary, graphs: GraphSet) -> Iterator[str]:
    yield _there(summary.self_loops, "self-loop")
    if summary.one_way:
        known = ", so the graphs are directed"
        yield _there(summary.one_way, "one-direction edge", "one-direction edges", known)
    else:
        yield "Every edge is listed in both directions."
    if summary.parallel:
        yield _there(
            summary.parallel, "repeated edge", "repeated edges", "; weights of one edge add up"
        )
    nodes = int(graphs.sizes.sum())
    share = f" ({summary.isolated / nodes:.1%} of all)" if summary.isolated else ""
    yield _there(summary.isolated, "node without an edge", "nodes without an edge", share)


def _same(summary: Summary) -> Iterator[str]:
    repeated = summary.repeated
    yield _there(repeated, "repeated graph", "repeated graphs", f", {summary.same_by}")
    for part, count in summary.shared.items():
        if count:
            yield (
                f"{count:,} of the {summary.parts[part]:,} graphs in {part} are in train too, "
                f"{summary.same_by}: the {part} figures will look better than they are."
            )
    if summary.shared and not any(summary.shared.values()):
        yield f"No graph of {' or '.join(summary.shared)} is in train too, {summary.same_by}."


def _there(count: int, one: str, many: str = "", more: str = "") -> str:
    """`There are 3 self-loops.`, with the number and the verb that fit."""
    several = many or f"{one}s"
    if not count:
        return f"There are no {several}{more}."
    return (
        f"There {'is' if count == 1 else 'are'} {count:,} {one if count == 1 else several}{more}."
    )


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"
