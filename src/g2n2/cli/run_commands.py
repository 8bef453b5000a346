"""evaluate, predict, datasets: score a trained run, predict with it, list the known data sets."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..atomic_files import check_output, refuse_overwriting
from ..described import aligned, counted, shown_number
from ..errors import DataError
from . import show
from .options import AsJson, Id, OptionList, Smiles, parsed_options

if TYPE_CHECKING:
    from ..data.catalogue import Dataset
    from ..training.evaluate import Outcome, Row
    from ..training.run import Run as TrainedRun

Run = Annotated[
    Path, typer.Argument(help="A run folder written by g2n2 train; or qm9, which comes with g2n2.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
_NOT_CSV = (
    *(".xlsx", ".xlsm", ".xls", ".ods", ".tsv", ".json", ".jsonl", ".parquet"),
    *(".gz", ".zip", ".sdf", ".smi"),
)
"""Endings of other formats: a program would not read CSV from a file so called."""
Interval = Annotated[float, typer.Option(help="Level of the intervals; 0 for no intervals.")]


def evaluate(
    run: Run,
    file: Annotated[str | None, typer.Argument(help="Graphs with targets; else see --on.")] = None,
    on: Annotated[
        str | None, typer.Option(help="test, validation, train, or a file. [test]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write each prediction and its target.")] = None,
    smiles: Smiles = None,
    id_column: Id = None,
    option: OptionList = None,
    device: Device = "auto",
    interval: Interval = 0.9,
    json: AsJson = False,
) -> None:
    """Scores of a run on its test graphs, or on a file with targets."""
    from ..training.calibration import check_interval
    from ..training.config import names_dataset
    from ..training.display import plain_console, reliability_sentences, score_table
    from ..training.run import Run as TrainedRun
    from ..training.task import for_json

    if file is not None and on is not None:
        raise DataError(f"{file} and --on {on} are two things to score: leave one out")
    on = file or on or "test"
    check_interval(interval)
    trained = TrainedRun(run, device)
    _say_notes(trained, interval)
    if out is not None:
        check_out(out, on, trained.config.dataset)
    options = _options(smiles, id_column, option)
    if on in ("train", "validation", "test"):
        outcome = trained.evaluate(on, interval=interval)
    else:
        if not os.path.exists(on) and not names_dataset(on):
            what = "" if file else "test, validation, train, or "
            raise DataError(f"{'' if file else '--on '}{on}: expected {what}a file that is there")
        outcome = trained.predict(on, options, targets=True, interval=interval)
        for sentence in outcome.graphs.notes:
            if " skipped: " not in sentence:  # said below
                typer.echo(f"note: {sentence}", err=True)
        for number, reason in list(unread := outcome.graphs.source.get("unread", {}).items())[:1]:
            what = f"{counted(len(unread), 'record')} cannot be read, and no score counts them"
            typer.echo(f"note: {what}; the first, record {number + 1}: {reason}", err=True)
        if unseen := int(outcome.unseen.sum()):
            what = f"{counted(unseen, outcome.graphs.level)} with an element never seen in training"
            typer.echo(f"note: scores count {what}, for which predict gives no value", err=True)
    if out is not None:
        outcome.to_csv(out, truth=True)
    if json:
        show.as_json(
            {
                "run": str(run),
                "data": outcome.graphs.name,
                "on": on,
                "scores": for_json(outcome.scores),
                "reliability": for_json(outcome.reliability),
            }
        )
        return
    what = outcome.graphs.level
    show.title(f"{run} on {on}: {counted(len(outcome), what)}")
    plain_console().print(score_table(trained.task, outcome.scores))
    for sentence in reliability_sentences(trained.task, outcome.reliability, what):
        show.say(sentence)
    if out is not None:
        show.say(f"\npredictions and targets: {out}")


def predict(
    run: Run,
    file: Annotated[str | None, typer.Argument(help="Graphs in a format g2n2 train reads.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="CSV to write. [predictions.csv, if FILE is given]")
    ] = None,
    smiles: Annotated[
        list[str] | None,
        typer.Option(help="Column of FILE with the SMILES; without FILE, a SMILES such as CCO."),
    ] = None,
    id_column: Id = None,
    option: OptionList = None,
    device: Device = "auto",
    interval: Interval = 0.9,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue predictions that were interrupted.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="local, or ray: actors of a Ray cluster (extra scale).")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(help="The cluster: auto or HOST:PORT. [RAY_ADDRESS, or one made here]"),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Actors of the cluster.")] = 2,
) -> None:
    """Predictions with intervals for new graphs, as CSV.

    Rows are collected in OUT.partial; after an interruption --resume continues.
    """
    from ..atomic_files import is_stream
    from ..training.calibration import check_interval
    from ..training.display import Advance
    from ..training.run import Run as TrainedRun

    check_interval(interval)
    trained = TrainedRun(run, device)
    _say_notes(trained, interval)
    if file is None:
        if out is not None:
            check_out(out, trained.config.dataset)
        predict_molecules(trained, smiles or [], id_column, option, out, interval)
        return
    if smiles is not None and len(smiles) > 1:
        raise DataError(f"--smiles names the column of {file} with the molecules: give one name")
    out = out or Path("predictions.csv")
    check_out(out, file, trained.config.dataset)
    with Advance("records") as advance:
        try:
            written = trained.predict_to(
                file,
                out,
                _options(smiles[0] if smiles else None, id_column, option),
                interval,
                resume=resume,
                engine=engine,
                ray_address=ray_address,
                workers=workers,
                progress=advance,
            )
        except KeyboardInterrupt:
            written = None
    if written is None:
        done = f"after {counted(advance.done, 'record')}, kept; go on with --resume"
        show.say(f"stopped {done if advance.done else 'before the first prediction'}")
        raise typer.Exit(130)
    to_stderr = is_stream(out)  # such as /dev/stdout, which holds the table
    typer.echo(f"{counted(written.rows, 'prediction')} written to {out}", err=to_stderr)
    if written.first_unread:
        several = f"{written.unread:,} records have no prediction (see the column note); the first:"
        typer.echo(
            f"{several if written.unread > 1 else '1 record has no prediction:'} "
            f"{', '.join(written.first_unread)}",
            err=to_stderr,
        )
    if written.repeated:
        typer.echo(
            f"the id {written.repeated!r} stands in several rows of {file}, as it does in {out}: "
            "tell them apart by their order, which is the same",
            err=to_stderr,
        )
    if written.noted:
        what = f"{written.noted:,} predictions have a note: there the graph"
        typer.echo(
            f"{what if written.noted > 1 else '1 prediction has a note: its graph'} or the value "
            "is unlike the training graphs (see the column note)",
            err=to_stderr,
        )
    for sentence in written.notes:
        typer.echo(f"note: {sentence}", err=True)


def predict_molecules(
    trained: TrainedRun,
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
        write_rows(out, rows, outcome.columns(), outcome.digits)
    for row in rows:
        if len(smiles) > 1:
            show.say(row["id"])
        lines = [] if row["note"].startswith(NOT_PREDICTED) else _lines(outcome, row)
        for line in aligned(lines):
            show.say(line)
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
            if math.isnan(cell) or math.isnan(least):
                continue  # too few validation graphs for an interval, or too far outside
            ends = [_shown(end, cell - least) for end in (value, least, cell)]
            between = f"{percent(outcome.interval)}: {ends[1]} to {ends[2]}"
            lines[-1] = (lines[-1][0], ends[0], between)
        elif name not in ("id", "note"):
            value = cell
            lines.append((name, _shown(cell, digits=outcome.digits - 3), ""))
    return lines


def _shown(value: Any, width: float = 0.0, digits: int = 6) -> str:
    """A cell; a number beside an interval of some width with three digits of the width."""
    if not isinstance(value, float):
        return str(value)
    if not width > 0:
        return shown_number(f"{value:.{digits}g}")
    decimals = 2 - math.floor(math.log10(width))
    if -15 < decimals < 10:
        return shown_number(f"{value:.{max(0, decimals)}f}")
    size = math.floor(math.log10(abs(value))) if value else 0
    return shown_number(f"{value:.{max(2, size + decimals)}e}")


def datasets(
    name: Annotated[str | None, typer.Argument(help="All about one data set.")] = None,
    json: AsJson = False,
) -> None:
    """The data sets known by name, and where each comes from."""
    from ..data.catalogue import DATASETS, find_dataset

    chosen = DATASETS if name is None else (find_dataset(name),)
    if json:
        show.as_json([_described(row) for row in chosen])
    elif name is not None:
        described = _described(chosen[0])
        width = max(map(len, described))
        for what, value in described.items():
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            if isinstance(value, list):
                shown = ", ".join(value) or "none"
            show.say(f"{what.ljust(width)}  {shown}")
        show.say(f"\ntrain: g2n2 train {chosen[0].name}")
    else:
        rows = [(d.name, f"{d.graphs:,}", d.task, d.about) for d in DATASETS]
        show.table(("name", "graphs", "task", "what it is"), rows, narrow=3)
        show.say("\nwhere one comes from, how to get it, its options: g2n2 datasets NAME")
        show.say("your own: a CSV with SMILES, SDF, XYZ, edge lists, npz, graph6, a TU folder")


def _described(row: Dataset) -> dict[str, Any]:
    from ..data.catalogue import dataset_options

    return {
        "name": row.name,
        "task": row.task,
        "graphs": row.graphs,
        "about": row.about,
        "origin": row.origin,
        "how to get it": row.how,
        "options": dataset_options(row),
    }


def _say_notes(trained: TrainedRun, interval: float) -> None:
    """What there is to say about a run, beside the output, which may be JSON."""
    lacking = trained.calibration.lacking(interval) if trained.calibration else []
    for sentence in filter(None, (trained.note, *lacking)):
        typer.echo(f"note: {sentence}", err=True)


def check_out(out: Path, *sources: str) -> None:
    """Refuse, before the work, an output that cannot be written or that would overwrite inputs."""
    check_output(out)
    if out.name.lower().endswith(_NOT_CSV):
        raise DataError(
            f"{out} is to be CSV, which Excel and pandas open: give --out the ending .csv"
        )
    refuse_overwriting(out, *sources)


def _options(smiles: str | None, id_column: str | None, pairs: list[str] | None) -> dict[str, Any]:
    named = {"smiles": smiles, "id": id_column}
    return {k: v for k, v in named.items() if v is not None} | parsed_options(pairs)
