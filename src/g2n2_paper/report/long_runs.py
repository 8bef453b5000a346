"""Q2's long runs: what their columns are called, and the best of them by validation error."""

from __future__ import annotations

from statistics import fmean

from ..q2 import given
from ..record import CellRecord
from .tables import Results, Value, mae_of

AIMS = {"u0": 0.00022, "homo": 0.00092, "mu": 0.015, "alpha": 0.05, "r2": 0.1}
"""Errors of targets alone, in hartree and atomic units; 6 meV for U₀ and 25 meV for ε_homo."""
NETWORK_LABELS = {"G2N2": "", "G2N2+D": "moments"}
"""In the order of their columns; those of others are their names, which follow."""
WIDTH = 64
"""Where a name says none."""


def label(cell: str) -> str:
    """`wide, tuned, width 128, 150 epochs` of a cell or of a pattern of cells."""
    _, _, _, network, _, *rest = cell.split("/")
    words = [NETWORK_LABELS.get(network, network), "wide" if "wider" in rest else ""]
    words.append("tuned" if "tuned" in rest else "")
    if width := given(rest, "width"):
        words.append(f"width {width}")
    return ", ".join(filter(None, [*words, f"{given(rest, 'epochs')} epochs"]))


def patterns(results: Results, *recipes: str) -> dict[str, str]:
    """Label to pattern, with braces for the target, of the recorded runs with such recipes."""
    found = {
        "/".join((kind, "{}", track, network, recipe, *rest))
        for kind, _, track, network, recipe, *rest in _cells(results)
        if recipe in recipes and given(rest, "epochs")
    }
    return {label(pattern): pattern for pattern in sorted(found, key=_place)}


def _cells(results: Results) -> list[list[str]]:
    """The names of recorded runs of one target, in their parts."""
    names = (cell for question, cell in results.by_cell if question == "q2")
    return [name.split("/") for name in names if name.startswith("single/")]


def _place(pattern: str) -> tuple[bool, int, str, int, int, bool, bool]:
    """By network, epochs, width and distances."""
    _, _, _, network, _, *rest = pattern.split("/")
    known = [*NETWORK_LABELS]
    number = known.index(network) if network in known else len(known)
    sizes = given(rest, "epochs") or 0, given(rest, "width") or WIDTH
    return network not in known, number, network, *sizes, "wider" in rest, "tuned" in rest


def chosen(results: Results, target: str) -> tuple[str, Value] | None:
    """The run of the present defaults with the lowest validation error, and its test error.

    Both are means over the seeds that were run.
    """
    cells = [pattern.format(target) for pattern in patterns(results, "defaults").values()]
    errors = {
        cell: fmean(map(_best_validation, records))
        for cell in cells
        if (records := results.of("q2", cell))
    }
    if not errors:
        return None
    best = min(errors, key=errors.__getitem__)
    return label(best), results.need("q2", best, mae_of(target))


def _best_validation(record: CellRecord) -> float:
    return float(min(record.detail["validation"]))
