"""Molecules on the command line: what a run predicts for SMILES, on the screen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..described import shown_number
from ..errors import DataError
from . import show
from .options import parsed_options

if TYPE_CHECKING:
    from ..training.evaluate import Outcome, Row
    from ..training.run import Run


def predict_molecules(
    trained: Run,
    smiles: list[str],
    id_column: str | None,
    option: list[str] | None,
    out: Path | None,
    interval: float,
) -> None:
    """What a run says of some SMILES: on the screen, and in a file where one is named."""
    from ..data.reading import SMILES
    from ..training.evaluate import NOT_PREDICTED, write_rows

    if not smiles:
        raise DataError(
            "say what to predict: g2n2 predict RUN FILE, or for one molecule --smiles CCO"
        )
    if id_column is not None:
        raise DataError("--id names a column of FILE, and there is none; leave it out")
    texts = [f"{SMILES}{text}" for text in smiles]
    outcome = trained.predict(texts, parsed_options(option), interval=interval)
    for sentence in outcome.graphs.notes:
        typer.echo(f"note: {sentence}", err=True)
    rows = [{**row, "id": smiles[int(row["id"])]} for row in outcome.rows()]
    if out is not None:
        write_rows(out, rows, outcome.columns())
    for row in rows:
        if len(smiles) > 1:
            show.say(row["id"])
        lines = [] if row["note"].startswith(NOT_PREDICTED) else _lines(outcome, row)
        widths = [max(len(line[place]) for line in lines) for place in (0, 1)] if lines else []
        for *cells, between in lines:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            show.say("  ".join([*padded, between]).rstrip())
        if row["note"]:
            show.say(f"note: {row['note']}")


def _lines(outcome: Outcome, row: Row) -> list[tuple[str, str, str]]:
    """Name, value and interval of each target."""
    from ..training.calibration import percent
    from ..training.task import with_unit

    low, high = (
        {with_unit(f"{column.name} {end}", column.unit) for column in outcome.task.columns}
        for end in ("low", "high")
    )
    lines: list[tuple[str, str, str]] = []
    value: Any = ""
    least: Any = ""
    for name, cell in row.items():
        if name in low:
            least = cell
        elif name in high:
            if not isinstance(cell, float) or not isinstance(least, float):
                continue  # too few validation graphs for an interval
            ends = [_shown(end, cell - least) for end in (value, least, cell)]
            between = f"{percent(outcome.interval)}: {ends[1]} to {ends[2]}"
            lines[-1] = (lines[-1][0], ends[0], between)
        elif name not in ("id", "note"):
            value = cell
            lines.append((name, _shown(cell), ""))
    return lines


def _shown(value: Any, width: float = 0.0) -> str:
    """A cell; a number beside an interval of some width with three digits of the width."""
    if not isinstance(value, float):
        return str(value)
    if not width > 0:
        return shown_number(f"{value:.6g}")
    return shown_number(f"{value:.{max(0, 2 - math.floor(math.log10(width)))}f}")
