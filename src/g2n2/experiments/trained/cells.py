"""What each budget asks of the trained power."""

from __future__ import annotations

from dataclasses import dataclass

from ...power.trials.brec_training import Training
from ..cell import Cell
from .brec import Protocol
from .brec_cells import brec_cell
from .class_cells import SETS, class_cell
from .contenders import ALIKE, CONTENDERS
from .counting_cells import COUNTS, counting_cell
from .counting_exact import counting_exact_cell
from .graph8c_cells import graph8c_cell


@dataclass(frozen=True)
class Plan:
    """One budget.

    Attributes:
        contenders: Names in `CONTENDERS`, in the order they run; with all of them `ALIKE` too,
            where runs are trained as others are.
        brec_pairs: Of every category; 0 for all.
        brec_nodes: Of the largest graphs of them; 0 for all.
        brec_epochs: At most; BREC's own is 20.
        epochs: Of a fold of each set.
        folds: Of each set; 0 for all.
        networks: With random weights, on graph8c.
        graph8c: Graphs of it; 0 for all.
        counting_epochs: Of a counting run.
        counting_graphs: 0 for all.
        singly: Whether each count also has a network of its own, as an optional cell.
        threads: Of a CPU; as many as it has where 0.
    """

    contenders: tuple[str, ...]
    brec_pairs: int
    brec_nodes: int
    brec_epochs: int
    epochs: dict[str, int]
    folds: int
    networks: int
    graph8c: int
    counting_epochs: int
    counting_graphs: int = 0
    singly: bool = False
    threads: int = 0


EVERYONE = tuple(CONTENDERS)
PLANS = {
    "smoke": Plan(("G2N2-3",), 1, 16, 2, {"csl": 1}, 1, 1, 200, 1, 150, threads=1),
    "short": Plan(EVERYONE, 8, 0, 20, {"csl": 40, "exp": 20, "sr25": 20}, 2, 3, 0, 60),
    "full": Plan(
        EVERYONE, 0, 0, 20, {"csl": 60, "exp": 40, "sr25": 40}, 0, 10, 0, 200, singly=True
    ),
}


def cells(budget: str) -> list[Cell]:
    """BREC first, G²N² with 8 layers before the others; counts one by one at the end."""
    plan = PLANS[budget]
    chosen = [CONTENDERS[name] for name in plan.contenders]
    trained = [*chosen, *([ALIKE] if plan.contenders == EVERYONE else [])]
    training = Training(epochs=plan.brec_epochs)
    brec = [
        brec_cell(budget, Protocol(one, 0, training), plan.brec_pairs, plan.brec_nodes)
        for one in chosen
    ]
    classes = [
        class_cell(name, one, budget, epochs, min(plan.folds, SETS[name].folds), plan.threads)
        for name, epochs in plan.epochs.items()
        for one in trained
    ]
    graph8c = [graph8c_cell(one, budget, plan.networks, plan.graph8c) for one in chosen]
    counting = [
        counting_cell(one, budget, plan.counting_epochs, count, plan.counting_graphs, plan.threads)
        for count in ("", *(COUNTS if plan.singly else ()))
        for one in trained
    ]
    exact = [counting_exact_cell(one, budget, plan.graph8c) for one in trained if one.grammar]
    return brec + classes + graph8c + exact + counting
