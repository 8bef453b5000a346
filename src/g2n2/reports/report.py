"""The report: every table and figure from a results folder, as Markdown, pictures and one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..atomic_files import make_folder
from ..demonstration.blocks import Block, Heading, Picture, Table, Text, markdown, page
from ..errors import DataError
from ..experiments.record import Record
from . import power, q1, q2, q3, q4
from .figures.drawing import Drawing, can_draw, save, shows
from .numbers import LEGEND
from .protocols import protocol
from .section import Section, aims_table, behind
from .standings import Results

TITLE = "The paper's questions, answered by this code"
QUESTIONS: Mapping[str, Callable[[Results], Section]] = {
    "q1": q1.section,
    "q2": q2.section,
    "q3": q3.section,
    "q4": q4.section,
    "power": power.section,
}


def sections(results: Results) -> list[Section]:
    """All questions in their order.

    Raises:
        DataError: Records lack what a table reads, as only those changed by hand do.
    """
    made = []
    for question, make in QUESTIONS.items():
        with _reading(f"some record in {results.folder / question} lacks what its table reads"):
            made.append(make(results))
    return made


@contextmanager
def _reading(wrong: str) -> Iterator[None]:
    """What a record changed by hand leads to, said as such."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{wrong} ({type(error).__name__}: {error}); was one changed by hand? Move it elsewhere"
        ) from error


def parts(made: Sequence[Section], results: Results, images: str) -> dict[str, str]:
    """Markdown for the markers of a page.

    Args:
        made: The sections.
        results: What they were made from.
        images: Where the figures lie, seen from the page.
    """
    found = {"summary": _fragment([_aims(made)]), "behind": _fragment(_behind(made, results))}
    for section in made:
        blocks = [*_with_picture(section, f"{images}/"), *section.blocks]
        found[section.name] = _fragment(blocks)
        found[f"{section.name}-protocol"] = _fragment(protocol(section.name))
        for name, blocks_of in section.fragments.items():
            found[name] = _fragment(blocks_of)
    return found


def write(made: Sequence[Section], results: Results, folder: Path) -> list[Path]:
    """Write `report.md`, `report.html` and the figures into a folder.

    Args:
        made: The sections.
        results: What they were made from.
        folder: Made where it is not there.

    Raises:
        DataError: The folder cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is no folder; choose another --out")
    try:
        make_folder(folder)
        drawn = draw(made, folder)
        text, html = folder / "report.md", folder / "report.html"
        text.write_text(markdown(TITLE, list(_blocks(made, results, drawn))), encoding="utf-8")
        html.write_text(_wide(page(TITLE, list(_blocks(made, results, drawn)))), encoding="utf-8")
    except OSError as fault:
        raise DataError(f"cannot write to {folder}: {fault.strerror or fault}") from None
    pictures = [folder / f"{name}.{end}" for name in drawn for end in ("png", "svg")]
    return [html, text, *pictures]


def draw(made: Sequence[Section], folder: Path, svg: bool = True) -> dict[str, str]:
    """Write all figures; name to SVG for a page.

    Raises:
        DataError: Records lack what a figure shows.
    """
    if not drawings(made):
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for drawing in drawings(made):
        with _reading(_LACKS.format(drawing.name)):
            drawn[drawing.name] = save(drawing, folder, svg)
    return drawn


def other_figures(made: Sequence[Section], folder: Path) -> list[Path]:
    """Figures in a folder that are not there or do not show what they should.

    Raises:
        DataError: Records lack what a figure shows.
    """
    other = []
    for drawing in drawings(made):
        path = folder / f"{drawing.name}.png"
        with _reading(_LACKS.format(drawing.name)):
            if not shows(path, drawing):
                other.append(path)
    return other


_LACKS = "some record of {} lacks what its figure shows"


def drawings(made: Sequence[Section]) -> list[Drawing]:
    """The figures there are; none without matplotlib."""
    if not can_draw():
        return []
    return [section.drawing for section in made if section.drawing is not None]


def _wide(html: str) -> str:
    """A page with room for tables of many columns, whose numbers never break."""
    rules = "body { max-width: 76rem; } td { white-space: nowrap; }"
    first = "td:first-child { white-space: normal; min-width: 11rem; } p { max-width: 60rem; }"
    return html.replace("</style>", f"{rules} {first}</style>", 1)


def _blocks(made: Sequence[Section], results: Results, drawn: Mapping[str, str]) -> Iterator[Block]:
    if results.empty:
        smoke = " `--smoke` shows what the `smoke` budget gave." if results.left_aside else ""
        yield Text(
            f"**There is no result in `{results.folder.name}` yet.** The tables below hold "
            f"published columns only; `g2n2 experiment all` fills the rest.{smoke}"
        )
    yield Text(
        "Generated by `g2n2 report` from the records of experiments; columns marked cited are "
        "published ones, kept in one file with their source. " + LEGEND
    )
    yield Heading("Aims")
    yield _aims(made)
    for section in made:
        yield Heading(section.title)
        yield from protocol(section.name)
        if section.drawing and section.drawing.name in drawn:
            yield from _with_picture(section, "", drawn[section.drawing.name])
        yield from section.blocks
    yield Heading("What stands behind the numbers")
    yield from _behind(made, results)


def _with_picture(section: Section, prefix: str, svg: str = "") -> Iterator[Block]:
    if section.drawing is not None:
        drawing = section.drawing
        yield Picture(f"{prefix}{drawing.name}.png", drawing.alt, svg)


def _aims(made: Sequence[Section]) -> Table:
    return aims_table((section.name, aim) for section in made for aim in section.aims)


def _behind(made: Sequence[Section], results: Results) -> Iterator[Block]:
    if results.left_aside:
        yield Text(
            f"{results.left_aside} records of the `smoke` budget are left aside: they check the "
            "harness and answer nothing."
        )
    standings = [one for section in made for one in results.of(section.name).values()]
    if not standings:
        yield Text("**No record yet.**")
        return
    yield behind(standings)
    if results.outdone:
        yield Text(
            f"{results.outdone} records of smaller budgets, stopped runs, earlier settings or "
            "seeds no longer asked for stand aside: their cells have better ones."
        )
    others = [
        (section.name, one)
        for section in made
        for cell, one in results.of(section.name).items()
        if cell not in section.shown
    ]
    if others:
        yield Text("Records that no table above shows:")
        yield Table(
            ("cell", "metrics"),
            tuple(
                (f"{name} {one.cell}", "; ".join(f"{k} {v}" for k, v in _metrics(one.records[0])))
                for name, one in others
            ),
        )


def _metrics(record: Record) -> Iterator[tuple[str, str]]:
    for name, value in record.metrics.items():
        yield name, "–" if value is None else f"{value:.4g}"


def _fragment(blocks: Sequence[Block] | Iterator[Block]) -> str:
    """Blocks as Markdown without a title."""
    return markdown("", list(blocks)).partition("\n\n")[2]
