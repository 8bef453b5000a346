"""experiment: the paper's questions, asked of our code, into a folder of records."""

from __future__ import annotations

import signal
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError
from . import show
from .options import DataFolder, OptionList, parsed_options

if TYPE_CHECKING:
    from ..experiments.cell import Cell
    from ..experiments.running import Outcome


class Device(StrEnum):
    """What cells run on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Question(StrEnum):
    """What is asked."""

    q1 = "q1"
    q2 = "q2"
    q3 = "q3"
    q4 = "q4"
    power = "power"
    all = "all"


class Budget(StrEnum):
    """How much work a cell is."""

    smoke = "smoke"
    short = "short"
    full = "full"


def register(app: typer.Typer) -> None:
    app.command()(experiment)


def experiment(
    question: Annotated[
        Question,
        typer.Argument(help="q1 reduction, q2 QM9, q3 TU, q4 filters, power: trained, or all."),
    ],
    budget: Annotated[
        Budget, typer.Option(help="smoke: does it work; short: minutes; full: the tables.")
    ] = Budget.short,
    only: Annotated[
        list[str] | None, typer.Option(help="Cells whose name has this part, as single/r2.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Only these seeds, as 0,1,2.")] = "",
    optional: Annotated[bool, typer.Option(help="Optional cells too.")] = False,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Stop after so long; the same command goes on. [0: none]")
    ] = 0.0,
    cell_minutes: Annotated[
        float, typer.Option(min=0.0, help="At most so long for each cell this time. [0: none]")
    ] = 0.0,
    jobs: Annotated[
        int,
        typer.Option(min=0, max=64, help="Cells at a time. [0: several on a GPU, else one]"),
    ] = 0,
    device: Annotated[Device, typer.Option(help="Where cells run.")] = Device.auto,
    results: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    work: Annotated[Path, typer.Option(help="Folder of checkpoints.")] = Path("build/experiments"),
    data: DataFolder = None,
    option: OptionList = None,
    list_cells: Annotated[bool, typer.Option("--list", help="List the cells and stop.")] = False,
) -> None:
    """Run a question's cells; what is already in the results is skipped, what is partial goes on.

    Every cell leaves a JSON record with its settings, seed, data, hardware, commit and time.
    """
    from ..experiments.packing import jobs_for
    from ..experiments.questions import cells_of, choose
    from ..experiments.running import Settings, failures, run_cells

    chosen = choose(
        cells_of(question.value, budget.value), only or (), _numbers(seeds), optional or list_cells
    )
    if list_cells:
        _list(chosen, results)
        return
    _refuse_absent(device.value, data)
    many = jobs or jobs_for(question.value, device.value)
    settings = Settings(
        results, work, minutes, cell_minutes, device.value, data, parsed_options(option), many
    )
    together = f", {many} at a time" if many > 1 else ""
    show.say(f"{len(chosen)} cells{together}, records in {results}; Ctrl-C keeps everything")
    # A scheduler's stop is a Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with CellDisplay() as display:
        try:
            outcomes = run_cells(chosen, settings, display.tell, display.ended)
        except KeyboardInterrupt:
            outcomes = None
        finally:
            signal.signal(signal.SIGTERM, before)
    if outcomes is None:
        show.say("\nstopped, and everything is kept; the same command goes on")
        raise typer.Exit(130)
    if unstarted := len(chosen) - len(outcomes):
        show.say(f"{unstarted} cells were not begun: the time is over; the same command goes on")
    elif any(outcome.state == "partial" for outcome in outcomes):
        show.say("what is partial goes on with the same command")
    if left_out := sum(outcome.state == "left out" for outcome in outcomes):
        show.say(f"{left_out} of {len(chosen)} cells were left out, for the reasons above")
    if failed := len(failures(outcomes)):
        show.say(f"{failed} of {len(chosen)} cells failed, for the reasons above")
    if failed or left_out == len(chosen):
        raise typer.Exit(1)


def _refuse_absent(device: str, data: str | None) -> None:
    """A device or a folder that is asked for by name and is not there."""
    from ..experiments.machines import device_called

    if device == Device.cuda and device_called("auto").type != "cuda":
        raise DataError("--device cuda: no GPU is seen here; leave it out or say --device cpu")
    if data is not None and not Path(data).is_dir():
        raise DataError(f"--data {data}: there is no such folder")


def _numbers(text: str) -> list[int]:

    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise DataError(f"--seeds is a list of numbers as 0,1,2; got {text!r}") from None


def _list(cells: list[Cell], results: Path) -> None:
    from ..experiments.record import Record

    rows = []
    for cell in cells:
        path = cell.path(results)
        try:
            found = Record.read(path) if path.exists() else None
            state = f"{found.done} of {found.planned} {found.unit}" if found else "-"
        except (DataError, OSError):
            found, state = None, "damaged record"
        if found and found.path(results) != path:
            state = f"record of {found.question} {found.cell}"
        elif found and not cell.asks_no_more_than(found):
            state += ", other settings"
        if cell.optional:
            state += " (optional)"
        rows.append((state, str(cell.seed), cell.question, cell.name))
    show.table(("done", "seed", "question", "cell"), rows, narrow=3)


LINES_EVERY = 15.0
"""Seconds between two lines about a cell where there is no terminal to redraw."""


class CellDisplay:
    """Bars for the cells at work on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.table import Column

        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.bars = Progress(  # on a narrow terminal the words are cut, not the numbers
            MofNCompleteColumn(),
            BarColumn(bar_width=10),
            TextColumn("{task.description}  {task.fields[said]}", markup=False, table_column=rest),
            expand=True,
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.rows: dict[str, Any] = {}
        self.said: dict[str, float] = {}

    def __enter__(self) -> CellDisplay:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def tell(self, cell: Cell, sentence: str, done: int, planned: int) -> None:
        now = monotonic()
        if (
            not self.console.is_terminal
            and now - self.said.setdefault(cell.label, now) > LINES_EVERY
        ):
            self.said[cell.label] = now
            self.console.print(f"  {cell.label}: {done}/{planned} {sentence}", soft_wrap=True)
        if cell.label not in self.rows:
            self.rows[cell.label] = self.bars.add_task(cell.label, said="")
        self.bars.update(self.rows[cell.label], completed=done, total=planned, said=sentence)

    def ended(self, outcome: Outcome) -> None:
        if outcome.label in self.rows:
            self.bars.remove_task(self.rows.pop(outcome.label))
        self.console.print(str(outcome), soft_wrap=True)
