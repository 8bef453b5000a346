"""`g2n2-paper`: run the paper's experiments, write the pages, measure the benchmark tables."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from g2n2.cli import report_errors, show
from g2n2.cli.options import Device as DeviceName
from g2n2.errors import DataError

from .record import QUESTIONS

if TYPE_CHECKING:
    from .runner import Cell

app = typer.Typer(
    help="The paper's experiments, reports and benchmark tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
PURPOSES = {
    "q1": "Q1: is the reduction relevant and optimal?",
    "q2": "Q2: regression on QM9.",
    "q3": "Q3: classification on TU.",
    "q4": "Q4: spectral filters.",
    "power": "Power, trained: BREC, sets of classes, counting.",
    "molecules": "Users' molecules: g2n2's defaults beside what a user would pick instead.",
}
ResultsFolder = Annotated[Path, typer.Option(help="Folder of the records.")]
Cache = Annotated[str | None, typer.Option(help="Cache file of QM9, if not the user's own.")]
Device = Annotated[DeviceName, typer.Option(help="Where to compute.")]


def _question(question: str) -> Callable[..., None]:
    def command(
        only: Annotated[
            list[str] | None, typer.Option(help="Cells whose name has this part, as single/r2.")
        ] = None,
        seed: Annotated[list[int] | None, typer.Option(help="Only this seed.")] = None,
        jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes at a time.")] = 1,
        device: Device = "auto",
        results: ResultsFolder = Path("results"),
        work: Annotated[Path, typer.Option(help="Folder of checkpoints.")] = Path(
            "build/experiments"
        ),
        data: Annotated[str | None, typer.Option(help="Folder of data files.")] = None,
        cache: Cache = None,
        smoke: Annotated[
            bool, typer.Option("--smoke", help="Tiny settings, to see that everything runs.")
        ] = False,
        finished: Annotated[
            bool,
            typer.Option("--finished", help="Compute nothing: record the parts that are finished."),
        ] = False,
        list_cells: Annotated[bool, typer.Option("--list", help="List the cells.")] = False,
    ) -> None:
        from .runner import Job, cells_of, choose, run_cells

        cells = choose(cells_of(question, smoke), only or (), seed or ())
        if list_cells:
            rows = [(_state(cell, results), str(cell.seed), cell.name) for cell in cells]
            show.table(("record", "seed", "cell"), rows, narrow=2)
            return
        if smoke and results == Path("results"):
            raise DataError("--smoke writes records of tiny runs: name another folder by --results")
        job = Job(work, results, device, data, cache, smoke, finished=finished)
        if device == "cuda":
            _require_cuda()
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler's stop
        try:
            outcomes = run_cells(cells, job, jobs, lambda outcome: show.say(str(outcome)))
        except KeyboardInterrupt:
            show.say("\nstopped; the same command continues")
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
        raise typer.Exit(any(outcome.state == "failed" for outcome in outcomes))

    command.__doc__ = f"{PURPOSES[question]} Runs the cells that have no record."
    return command


def _state(cell: Cell, results: Path) -> str:
    """`done`, `363 of 400`, or a dash for a cell without a record."""
    record = cell.record(results)
    if record is None or cell.is_whole(record):
        return "done" if record else "–"
    return f"{record.done} of {cell.parts}"


for _name in QUESTIONS:
    app.command(_name)(_question(_name))


@app.command("molecule-graphs")
def molecule_graphs(
    out: Annotated[Path, typer.Argument(help="Folder for the files.")],
    data: Annotated[str | None, typer.Option(help="Folder of data files.")] = None,
) -> None:
    """Write the graphs of the molecule sets as files, for `molecules --data` without RDKit."""
    from .molecule_sets import SETS, write_graphs

    for molecules in SETS:
        show.say(str(write_graphs(molecules, out, data)))


def _require_cuda() -> None:
    import torch

    if not torch.cuda.is_available():
        raise DataError("--device cuda: there is no GPU here; leave --device out")


@app.command()
def report(
    results: ResultsFolder = Path("results"),
    root: Annotated[Path, typer.Option(help="Folder with README.md and docs.")] = Path(),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a page is stale.")
    ] = False,
) -> None:
    """Write the results pages, the generated parts of other pages and the figures."""
    from .report.pages import Pages

    stale = Pages(results, root).stale(write=not check)
    for path in stale:
        show.say(f"stale: {path}; run g2n2-paper report" if check else str(path))
    raise typer.Exit(1 if check and stale else 0)


@app.command()
def bench(
    case: Annotated[
        list[str] | None, typer.Option(help="A case or a group of --list; repeat for several.")
    ] = None,
    device: Device = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no further case after so long.")
    ] = None,
    cache: Cache = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results/bench"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes that only show the steps; keeps nothing.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the cases.")] = False,
) -> None:
    """Measure the tables of docs/performance.md: equality first, then speed beside peers.

    Exit code 1 means that a fast path differs from the reference, or failed.
    """
    import torch

    from g2n2.data.files import cache_folder

    from .bench.cases import CASES, cases_for
    from .bench.run import Bench, keep_result
    from .report.performance import floor_text, group_table

    if listed:
        rows = [
            (c.group, c.name, " ".join(c.devices), floor_text(vars(c.floor) if c.floor else None))
            for c in CASES
        ]
        show.table(("group", "case", "runs on", "floor"), rows, narrow=2)
        return
    if device == "cuda":
        _require_cuda()
    gpu = device != "cpu" and torch.cuda.is_available()
    if threads is not None:
        torch.set_num_threads(threads)
    qm9 = Path(cache) if cache else cache_folder() / "qm9.cache"
    if cache and not qm9.is_file():
        raise DataError(f"--cache {cache}: there is no such file")
    on = torch.device("cuda" if gpu else "cpu")
    measuring = Bench(on, qm9 if qm9.is_file() else None, quick)
    results, started = [], time.monotonic()
    for chosen in cases_for("cuda" if gpu else "cpu", case or []):
        if seconds is not None and time.monotonic() - started > seconds:
            show.say(f"{seconds:g} s are over: {chosen.name} and later cases were not begun")
            break
        typer.echo(chosen.name, err=True)
        results.append(measuring.run(chosen))
        if not quick:
            keep_result(out, results[-1])
    for group in dict.fromkeys(row["group"] for row in results):
        headers, lines = group_table([row for row in results if row["group"] == group], group)
        show.title(group)
        show.table(tuple(headers), [tuple(line) for line in lines], narrow=1)
    if not quick and results:
        show.say(f"\nkept in {out}; into docs/performance.md: g2n2-paper report")
    raise typer.Exit(1 if any(r["status"] in ("differs", "failed") for r in results) else 0)


@app.command()
def ship(
    run: Annotated[Path, typer.Argument(help="A finished run on QM9 with --features smiles.")],
    cache: Annotated[Path, typer.Option(help="Cache file of QM9.")] = Path("build/qm9.cache"),
    out: Annotated[Path, typer.Option(help="Where the network goes.")] = Path(
        "src/g2n2/pretrained_networks/qm9"
    ),
) -> None:
    """Make a run on QM9 the network that comes with g2n2."""
    from .ship import ship as write

    write(run, cache, out)
    size = sum(path.stat().st_size for path in out.iterdir())
    show.say(f"{size / 1e6:.1f} MB in {out}; see {out / 'card.md'}")


def main() -> None:
    """Run the command line; exit code 2 always means bad input."""
    report_errors(app)
