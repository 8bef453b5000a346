"""Classes of graphs, nodes and pairs that no word of a grammar tells apart.

Reductions may keep one level and lose another: r-G_L3 tells the same graphs apart as G_L3, but no
pairs of nodes in different components.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..grammars.grammar import Grammar
from ..graphs import Adjacency, GraphLike, adjacency
from ..language.sorts import Sort
from .closure import Place, close
from .layered_grammar import LayeredGrammar, Level
from .modular import PRIMES, Residues
from .probe_schedule import Schedule, grow
from .random_probes import LAYERS, WIDTH, mix
from .word_memory import WordMemory, stacked

Classes = NDArray[np.int64]


def graph_classes(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    readout: str | None = None,
    layers: int = LAYERS,
    width: int = WIDTH,
) -> Classes:
    """Sort graphs into classes that no sentence tells apart, exactly.

    Mixing splits them first, which is exact where it splits; what it leaves together is compared by
    closure, each graph with one member of each class found so far.

    Args:
        grammar: Any grammar without pointwise functions.
        graphs: Graphs of any sizes, few of them alike and large.
        readout: As for `separate`.
        layers: How deep the mixing goes.
        width: Random combinations per rule and layer of the mixing.

    Returns:
        One class number per graph.
    """
    layered = LayeredGrammar.of(grammar, readout)
    matrices = [adjacency(graph) for graph in graphs]
    rough = mix(grammar, graphs, layers, readout, width).history[-1]
    classes = np.empty(len(matrices), dtype=np.int64)
    order = sorted(range(len(matrices)), key=lambda index: int(rough[index]))
    number = 0
    for _, members in groupby(order, key=lambda index: int(rough[index])):
        first_members: list[tuple[int, int]] = []
        for index in members:
            known = [
                of for of, one in first_members if _same(layered, matrices[one], matrices[index])
            ]
            if known:
                classes[index] = known[0]
                continue
            classes[index] = number
            first_members.append((number, index))
            number += 1
    return classes


def node_classes(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    engine: str = "closure",
    layers: int = LAYERS,
    width: int = WIDTH,
) -> tuple[Classes, ...]:
    """Sort nodes into classes that no word of V tells apart.

    Args:
        grammar: A grammar with V and without pointwise functions.
        graphs: Graphs whose nodes are compared, within and between them.
        engine: `closure` for all words, or `mixing` for random words of up to `layers` layers,
            which may leave nodes together that deeper words tell apart.
        layers: How deep the mixing goes.
        width: Random combinations per rule and layer of the mixing.

    Returns:
        One array `[n]` of class numbers per graph, comparable between graphs.
    """
    return tuple(
        part[:, 0] for part in _entry_classes(grammar, graphs, "node", engine, layers, width)
    )


def pair_classes(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    engine: str = "closure",
    layers: int = LAYERS,
    width: int = WIDTH,
) -> tuple[Classes, ...]:
    """Sort pairs of nodes into classes that no word of M tells apart.

    Args and return value are those of `node_classes`, with arrays `[n, n]`.
    """
    return _entry_classes(grammar, graphs, "pair", engine, layers, width)


def _same(grammar: LayeredGrammar, first: Adjacency, second: Adjacency) -> bool:
    places = (Place(0), Place(1))
    return all(
        close(grammar, (first, second), places, prime).difference is None for prime in PRIMES[:2]
    )


def _entry_classes(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    level: Level,
    engine: str,
    layers: int,
    width: int,
) -> tuple[Classes, ...]:
    """Compare the entries of all words side by side, modulo two primes."""
    if engine not in ("closure", "mixing"):
        raise DataError(f"no engine {engine!r}: expected closure or mixing")
    layered = LayeredGrammar.of(grammar, level=level)
    sort = layered.sentences[0].head
    matrices = [adjacency(graph) for graph in graphs]
    columns: list[list[Residues]] = [[] for _ in matrices]
    for prime in PRIMES[:2]:
        if engine == "closure":
            closure = close(layered, matrices, prime=prime)
            memory, where = closure.memory, closure.graphs
        else:
            stacks, where = stacked(matrices, layered, prime)
            schedule = Schedule.draw(layered, layers, width, prime)
            memory = WordMemory(layered, stacks, schedule.counts)
            for _ in grow(schedule, memory):
                pass
        for index, values in enumerate(_values(memory, sort, where)):
            columns[index].append(values)
    tables = [np.concatenate(parts) for parts in columns]
    joint = np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)
    numbers = np.unique(joint, axis=1, return_inverse=True)[1].ravel()
    bounds = np.cumsum([table[0].size for table in tables])[:-1]
    return tuple(
        part.reshape(table.shape[1:])
        for part, table in zip(np.split(numbers, bounds), tables, strict=True)
    )


def _values(memory: WordMemory, sort: Sort, where: Sequence[tuple[int, int]]) -> list[Residues]:
    """All words on each graph, `[K, rows, columns]`."""
    batch = memory.values(sort)
    return [batch[stack][:, place] for stack, place in where]
