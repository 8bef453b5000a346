"""What `separate` checks before it starts: symmetry, places, engine and memory."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..errors import DataError
from ..graphs import Adjacency
from .closure import Place
from .layered_grammar import LayeredGrammar, Level

Engine = Literal["auto", "closure", "mixing"]
ENGINES: tuple[Engine, ...] = ("auto", "closure", "mixing")
Pair = tuple[int, int]

CLOSURE_ENTRIES = 2 * 35**2
"""Up to so many numbers per word, `auto` closes a basis: two graphs of 35 nodes with M."""

_LEAST_BASIS = 32  # words; a closure that cannot hold so many is not begun


def choose_engine(engine: Engine, grammar: LayeredGrammar, graphs: Sequence[Adjacency]) -> str:
    if engine != "auto":
        return engine
    return "closure" if _word_entries(grammar, graphs) <= CLOSURE_ENTRIES else "mixing"


def _word_entries(grammar: LayeredGrammar, graphs: Sequence[Adjacency]) -> int:
    """Numbers in one word of the largest sort, on all graphs."""
    largest = max((sort.boundary for sort in grammar.sorts), default=0)
    return sum(len(graph) ** largest for graph in graphs)


def check_closure_memory(grammar: LayeredGrammar, graphs: Sequence[Adjacency], limit: int) -> None:
    entries = _word_entries(grammar, graphs)
    if 16 * entries * _LEAST_BASIS > limit:
        shown = " and ".join(f"{len(graph):,}" for graph in graphs)
        raise DataError(
            f"engine 'closure' on {shown} nodes keeps words of {16 * entries / 2**30:,.2f} GiB "
            f"each, {_LEAST_BASIS} of them or far more, "
            f"{16 * entries * _LEAST_BASIS / 2**30:,.1f} GiB at least; the limit is "
            f"{limit / 2**30:,.1f} GiB: use engine='mixing', whose memory grows with its layers "
            "only"
        )


def check_symmetric(graphs: Sequence[Adjacency]) -> None:
    for number, graph in enumerate(graphs, start=1):
        odd = np.argwhere(graph != graph.T)
        if len(odd):
            i, j = (int(index) for index in odd[0])
            raise DataError(
                f"graph {number} is directed: A[{i}, {j}] = {graph[i, j]:g} and A[{j}, {i}] = "
                f"{graph[j, i]:g}; pass directed=True to compare digraphs (and give the grammar Aᵀ)"
            )


def compared_places(
    level: Level,
    at: tuple[int, int] | tuple[Pair, Pair] | None,
    graphs: tuple[Adjacency, Adjacency],
) -> tuple[Place, Place]:
    if level == "graph":
        if at is not None:
            raise DataError("`at` names nodes or pairs; pass level='node' or level='pair' with it")
        return Place(0), Place(1)
    example = "(i, j)" if level == "node" else "((i, k), (j, l))"
    if at is None or len(at) != 2:
        raise DataError(f"level {level!r} compares one {level} of each graph: pass at={example}")
    first, second = (_place(level, number, at[number], graphs[number]) for number in (0, 1))
    return first, second


def _place(level: Level, number: int, entry: int | Pair, graph: Adjacency) -> Place:
    wanted = (entry,) if isinstance(entry, int | np.integer) else tuple(entry)
    if len(wanted) != (1 if level == "node" else 2):
        raise DataError(f"{entry!r} is no {level} of graph {number + 1}")
    if not all(0 <= node < len(graph) for node in wanted):
        raise DataError(
            f"{entry!r} is not in graph {number + 1}: its nodes are 0 to {len(graph) - 1}"
        )
    return Place(number, *wanted)
