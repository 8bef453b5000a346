"""The lines of an edge list as the edges of each graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from ...graphs.text import NEGATIVE_NODE, are_numbers, negative_node
from ..graph_set import Ints
from .tables import Table


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Edges by graph, and which line each comes from.

    Attributes:
        ends: Graph to its edges `[2, E]`.
        rows: Graph to the row of the edge table of each edge, `[E]`.
        nodes: Graph to the row of the node table of each node, `[n]`; 0 to n - 1 without one.
        notes: What was noticed.
    """

    ends: dict[str, Ints]
    rows: dict[str, Ints]
    nodes: dict[str, Ints]
    notes: list[str]


def gather_edges(
    table: Table,
    keys: Sequence[str],
    order: Sequence[str],
    node_rows: dict[str, dict[str, int]] | None,
    directed: bool,
) -> EdgeRows:
    """Group the lines by graph and give every node its number there.

    Args:
        table: The edge list.
        keys: Its columns for graph, source and target.
        order: Every graph, in the order wanted.
        node_rows: Graph to node name to row of the nodes file, where there is one.
        directed: Enter an edge as it is written only.

    Raises:
        DataError: If a node is unknown, or one edge is given two different values.
    """
    lines: dict[str, list[int]] = {graph: [] for graph in order}
    for row, graph in enumerate(table.columns[keys[0]]):
        lines[graph].append(row)
    sources, targets = table.columns[keys[1]], table.columns[keys[2]]
    values = list(zip(*(table.columns[c] for c in table.columns if c not in keys), strict=True))
    found = EdgeRows({}, {}, {}, [])
    gaps: list[str] = []
    repeated = one_way = 0
    for graph in order:
        names = [name for row in lines[graph] for name in (sources[row], targets[row])]
        place = _places(names, graph, node_rows, gaps)
        entries: dict[tuple[int, int], int] = {}
        written = set()
        for row in lines[graph]:
            try:
                u, v = place[sources[row]], place[targets[row]]
            except KeyError as error:
                raise DataError(
                    f"{table.name}, {table.places[row]}: node {error.args[0]} of graph {graph} is "
                    "not in the nodes file; add it there"
                ) from error
            repeated += (u, v) in written
            written.add((u, v))
            for edge in ((u, v),) if directed else ((u, v), (v, u)):
                before = entries.setdefault(edge, row)
                if values and values[before] != values[row]:
                    raise DataError(
                        f"{table.name}, {table.places[row]}: the edge {sources[row]} "
                        f"{targets[row]} of graph {graph} has other values than on "
                        f"{table.places[before]}; remove one line"
                        + ("" if directed else ", or read with directed=True")
                    )
        one_way += sum((v, u) not in written for u, v in written)
        found.ends[graph] = np.array(list(entries), dtype=np.int64).reshape(-1, 2).T
        found.rows[graph] = np.array(list(entries.values()), dtype=np.int64)
        rows = range(len(place)) if node_rows is None else node_rows.get(graph, place).values()
        found.nodes[graph] = np.array(list(rows), dtype=np.int64)
    if repeated:
        found.notes.append(f"{repeated} edges are written twice and entered once.")
    if one_way and not directed:
        found.notes.append(f"{one_way} edges are written one way and entered both ways.")
    if gaps:
        found.notes.append(
            f"Node numbers have gaps in {len(gaps)} graphs ({gaps[0]}); a number that no edge "
            "names makes no node: list lone nodes in the nodes file."
        )
    return found


def _places(
    names: Sequence[str],
    graph: str,
    node_rows: dict[str, dict[str, int]] | None,
    gaps: list[str],
) -> dict[str, int]:
    """Node name to its number: the nodes file's order, else by number, else by first mention."""
    if node_rows is not None:
        return {name: number for number, name in enumerate(node_rows.get(graph, {}))}
    distinct = list(dict.fromkeys(names))
    if (negative := negative_node(distinct)) is not None:
        raise DataError(f"graph {graph}: {NEGATIVE_NODE.format(negative)}")
    if are_numbers(distinct):
        distinct.sort(key=int)
        span = range(int(distinct[0]), int(distinct[-1]))
        present = {int(name) for name in distinct}
        missing = next((number for number in span if number not in present), None)
        if missing is not None:
            gaps.append(f"graph {graph} has no node {missing}")
    return {name: number for number, name in enumerate(distinct)}
