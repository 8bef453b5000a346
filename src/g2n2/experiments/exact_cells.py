"""Cells that need no training: how many pairs of a suite a grammar tells apart, exactly.

Metrics of such a record:

    pairs separated             of `pairs`, with as many layers as still gain
    pairs separated, 3 layers   the same for networks as deep as those trained
    pairs                       in the suite
    layers needed               after which nothing more is gained
    proved                      1 where more layers provably add nothing, else 0

Its detail is the row of the power table: pairs by layer and by category.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from ..grammars.catalogue import find_grammar
from .cell import Cell, Slice
from .machines import machine
from .record import Record

if TYPE_CHECKING:
    from ..power.suites import Suite

LAYERS = 3
GENERATED = ("atlas", "graph8c", "csl", "cfi")


def exact_cell(
    question: str, name: str, budget: str, grammar: str, suite: str, readout: str | None
) -> Cell:
    """A cell of the power table.

    Args:
        question: It belongs to.
        name: Of the cell.
        budget: Whose settings it has.
        grammar: A grammar's name or rules.
        suite: Name of a suite.
        readout: As for `power_row`; the grammar's own where None.
    """

    def run(given: Slice) -> Record:
        return exact_record(question, name, budget, grammar, suite, readout, given)

    needs = () if suite in GENERATED else (suite,)
    settings = {"grammar": grammar, "suite": suite}
    return Cell(question, name, 0, budget, run, needs, settings=settings)


def exact_record(
    question: str,
    name: str,
    budget: str,
    grammar: str,
    suite: str,
    readout: str | None,
    given: Slice,
) -> Record:
    """Measure one row of the power table; a few minutes at most, so never in slices."""
    from ..data.suites import load_suite
    from ..power.table import power_row

    begun = time.monotonic()
    loaded = load_suite(suite, given.data)
    pairs = len(loaded.pairs)
    given.tell(f"{grammar} on {suite}", 0, pairs)
    row = power_row(find_grammar(grammar), loaded, readout)
    at_depth = row.by_layer[min(LAYERS, len(row.by_layer) - 1)]
    return Record(
        question=question,
        cell=name,
        seed=0,
        budget=budget,
        done=pairs,
        planned=pairs,
        unit="pairs",
        metrics={
            "pairs separated": row.separated,
            f"pairs separated, {LAYERS} layers": at_depth,
            "pairs": pairs,
            "layers needed": row.depth,
            "proved": int(row.exact),
        },
        config={"grammar": grammar, "suite": suite, "readout": row.readout},
        data={suite: suite_checksum(loaded)},
        provenance=machine("cpu"),
        seconds=round(time.monotonic() - begun, 3),
        detail=row.to_json(),
    )


def suite_checksum(suite: Suite) -> str:
    """sha256 over the graphs, in their order."""
    digest = hashlib.sha256()
    for graph in suite.graphs:
        digest.update(str(graph.shape).encode())
        digest.update(graph.astype("int8").tobytes())
    return digest.hexdigest()
