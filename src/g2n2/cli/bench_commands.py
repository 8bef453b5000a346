"""bench: equality first, then speed beside named peers."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import DataError
from . import show
from .options import OptionList, parsed_options

if TYPE_CHECKING:
    from ..bench.results import Result


class Where(StrEnum):
    """The device to measure on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


def register(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    case: Annotated[
        list[str] | None, typer.Option(help="A case or a group of --list; repeat for several.")
    ] = None,
    device: Annotated[Where, typer.Option(help="Where to measure.")] = Where.auto,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no further case after so long.")
    ] = None,
    option: OptionList = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results/bench"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see the steps; writes nothing.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(help="Measure nothing: write the kept results into this page's tables."),
    ] = None,
) -> None:
    """Measure speed and memory, after checking that the fast path gives the reference's numbers.

    `--option cache=PATH` names the cache file of QM9, for its own molecules and for `qm9-epoch`.
    Exit code 1 means that some fast path differs from the reference, and its speed is not shown, or
    that it failed.
    """
    if listed:
        _list()
        return
    if page is not None:
        _write_page(page, out)
        return
    results = _measure(case or [], device, threads, seconds, option, out, quick)
    _show(results)
    if not results:
        show.say("nothing was measured")
    elif quick:
        show.say("\n--quick: these figures say nothing, and none was kept.")
    else:
        show.say(f"\nkept in {out}; into the page: g2n2 bench --page docs/performance.md")
    raise typer.Exit(1 if any(r.status in ("differs", "failed") for r in results) else 0)


def _measure(
    wanted: list[str],
    device: Where,
    threads: int | None,
    seconds: float | None,
    option: list[str] | None,
    out: Path,
    quick: bool,
) -> list[Result]:
    """Run the cases, each result kept as soon as it is there."""
    import torch

    from ..bench.cases import cases_for
    from ..bench.epochs import find_cache
    from ..bench.results import probe, write_results
    from ..bench.running import Bench

    here: Where = device
    if device is Where.auto:
        here = Where.cuda if torch.cuda.is_available() else Where.cpu
    if here is Where.cuda and not torch.cuda.is_available():
        raise DataError("device cuda was asked for, but there is none here; leave --device out")
    cases = cases_for("cuda" if here is Where.cuda else "cpu", wanted)
    if threads is not None:
        torch.set_num_threads(threads)
    bench = Bench(torch.device(here.value), find_cache(parsed_options(option)), quick)
    if not quick:
        probe(out)
    results: list[Result] = []
    started = time.monotonic()
    for place, case in enumerate(cases, 1):
        if seconds is not None and time.monotonic() - started > seconds:
            show.say(f"{seconds:g} s are over: {len(cases) - place + 1} cases were not begun")
            break
        typer.echo(f"{place}/{len(cases)} {case.name}", err=True)
        results.append(bench.run(case))
        if not quick:
            write_results(out, results[-1:])
    return results


def _show(results: list[Result]) -> None:
    from ..bench.tables import TITLES, headers, rows

    for group in dict.fromkeys(result.group for result in results):
        show.title(TITLES[group])
        show.table(headers(group), rows(results, group), narrow=1)


def _list() -> None:
    from ..bench.cases import CASES
    from ..bench.tables import floor_text

    lines = [
        (c.group, c.name, " ".join(c.devices), floor_text(c.floor) if c.floor else "–")
        for c in CASES
    ]
    show.table(("group", "case", "runs on", "floor"), lines, narrow=2)


def _write_page(page: Path, folder: Path) -> None:
    from ..bench.pages import write_page
    from ..bench.results import read_results
    from ..bench.roofline import draw_roofline

    groups = write_page(page, folder)
    figure = page.parent / "images" / "roofline.png"
    drawn = draw_roofline(figure, read_results(folder))
    show.say(f"{page}: {len(groups)} tables from {folder}" + (f"; {figure}" if drawn else ""))
