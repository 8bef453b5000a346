"""report: every table and figure from the records of experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError
from . import show


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    results: Annotated[Path, typer.Option(help="Folder with the records of experiments.")] = Path(
        "results"
    ),
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and the page.")] = Path(
        "build/report"
    ),
    write_docs: Annotated[
        bool, typer.Option("--write-docs", help="Also fill the marked parts of README and docs.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 where README or docs are stale.")
    ] = False,
    root: Annotated[Path, typer.Option(help="Folder with README.md and docs.")] = Path("."),
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Show records of the smoke budget too.")
    ] = False,
) -> None:
    """Write tables, figures and one page from results, which may be partial or absent."""
    from ..reports.figures.drawing import can_draw
    from ..reports.insertion import stale_pages, write_pages
    from ..reports.report import sections, write
    from ..reports.standings import read_results

    if check and write_docs:
        raise DataError("--check writes nothing; leave out --write-docs")
    if smoke and write_docs:
        raise DataError("--smoke shows a check of the harness, which no page should; see --out")
    found = read_results(results, harness=smoke)
    if check and found.empty:
        raise DataError(f"no result in {results} to compare the pages with; see --results")
    made = sections(found)
    if check:
        stale = stale_pages(root, found, made)
        for path in stale:
            show.say(f"stale: {path.relative_to(root)}; run g2n2 report --write-docs")
        raise typer.Exit(1 if stale else 0)
    if found.empty:
        aside = found.left_aside
        more = f"; --smoke shows {aside} of the smoke budget" if aside else ""
        show.say(f"no result in {results} yet: the tables hold published columns only{more}")
    if not can_draw():
        show.say("without figures, which need matplotlib: pip install 'g2n2[plot]'")
    pages = write_pages(root, found, made) if write_docs else []
    for path in (*write(made, found, out), *pages):
        show.say(str(path))
