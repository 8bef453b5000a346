"""What a contender's words can count: counts that differ although nothing tells the graphs apart.

Metrics of a cell `counting/exact/CONTENDER`, on all connected graphs of eight nodes:

    pairs merged                  by the grammar's words, as many layers deep, with the network's
                                  read-out
    pairs merged, other COUNT     of these; 0 means that the count is a function of the words there
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from math import comb

import numpy as np

from ...data.benchmarks.counting import SUBSTRUCTURES
from ..cell import Cell, Slice
from ..exact_cells import suite_checksum
from ..machines import machine
from ..record import Record
from .contenders import Contender
from .counting_cells import COUNTS
from .exact import word_classes
from .graph8c_cells import graph8c

MERGED = "pairs merged"


def counting_exact_cell(contender: Contender, budget: str, limit: int) -> Cell:
    """What a contender can count at its depth.

    Args:
        contender: A network with a grammar.
        budget: Whose settings it has.
        limit: Only the first graphs of graph8c; 0 for all.
    """
    name = f"counting/exact/{contender.name}"

    def run(given: Slice) -> Record:
        begun = time.monotonic()
        suite = graph8c(limit)
        classes = word_classes(contender, suite)
        assert classes is not None, "a contender without a grammar has no such cell"
        stack = np.stack(suite.graphs).astype(np.float64)
        counts = {count: SUBSTRUCTURES[count](stack).tolist() for count in COUNTS}
        return Record(
            question="power",
            cell=name,
            seed=0,
            budget=budget,
            done=1,
            planned=1,
            unit="measurements",
            metrics={
                MERGED: merged(classes),
                **{other_key(count): differing(classes, counts[count]) for count in COUNTS},
            },
            config={"contender": contender.as_dict(), "graphs": len(suite.graphs)},
            data={"graph8c": suite_checksum(suite)},
            provenance=machine("cpu"),
            seconds=round(time.monotonic() - begun, 3),
        )

    settings = {"contender": contender.as_dict()}
    return Cell("power", name, 0, budget, run, settings=settings)


def merged(values: Sequence[object]) -> int:
    """Pairs of equal values."""
    return sum(comb(times, 2) for times in Counter(values).values())


def differing(classes: Sequence[int], values: Sequence[float]) -> int:
    """Pairs of one class but of other values."""
    return merged(classes) - merged(list(zip(classes, values, strict=True)))


def other_key(count: str) -> str:
    """`pairs merged, other 6_cycle`."""
    return f"{MERGED}, other {count}"
