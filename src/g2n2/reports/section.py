"""Section: the answer to one question, as blocks, with its figure and what became of its aims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from ..demonstration.blocks import Block, Table, Text
from ..experiments.questions import cells_of
from ..experiments.record import EARLIER
from .figures.drawing import Drawing
from .numbers import EMPTY
from .standings import FULL, Standing

CLAIM = "the paper's claim: "
"""How an aim begins that is not ours."""


@dataclass(frozen=True)
class Aim:
    """Something a question should show, and whether it does.

    Attributes:
        text: What was aimed at.
        found: What came out, in words.
        met: None where what was run cannot tell yet.
        partial: Less than the full protocol stands behind it.
        why_open: Where `met` is None though something was run.
    """

    text: str
    found: str
    met: bool | None
    partial: bool = False
    why_open: str = "not all run yet"

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "not run yet" if self.found == EMPTY else f"open: {self.why_open}"
        missed = "**not reproduced**" if self.text.startswith(CLAIM) else "**missed**"
        word = "met" if self.met else missed
        return f"{word}, by partial runs" if self.partial else word


@dataclass(frozen=True, eq=False)
class Section:
    """One question, answered as far as there are records.

    Attributes:
        name: Of the question, and of its markers in pages.
        title: Of the section.
        blocks: Tables and text.
        aims: What was hoped for.
        drawing: Its figure; None where there is nothing to draw.
        shown: The cells its tables show.
        fragments: Parts other pages show, by the name of their markers.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    aims: tuple[Aim, ...] = ()
    drawing: Drawing | None = None
    shown: frozenset[str] = frozenset()
    fragments: Mapping[str, tuple[Block, ...]] = field(default_factory=dict)


def aims_table(aims: Iterable[tuple[str, Aim]]) -> Table:
    """Aims of several questions, with their verdicts."""
    rows = tuple((f"{name}: {aim.text}", aim.found, aim.verdict) for name, aim in aims)
    return Table(("aim", "found", "verdict"), rows, words=True)


def nothing_yet(question: str) -> Text:
    """Said in the place of a table of ours for which there is no record."""
    return Text(
        f"**No result of ours yet:** nothing was run for this table. "
        f"`g2n2 experiment {question}` runs it; the columns below are cited."
    )


@cache
def optional_names(question: str) -> frozenset[str]:
    """Cells of the full budget that are run only where optional ones are asked for."""
    return frozenset(cell.name for cell in cells_of(question, FULL) if cell.optional)


def optional_cells(question: str, known: Mapping[str, Standing]) -> Text:
    """How many optional cells nobody has run; most have no place in a table."""
    names = optional_names(question)
    empty = len(names - set(known))
    return Text(
        f"Of {len(names)} optional cells {empty} are empty: `g2n2 experiment {question} --optional "
        "--list` names them."
    )


def behind(standings: Iterable[Standing]) -> Table:
    """What stands behind the numbers of some cells: seeds, work, time, machine."""
    rows = []
    for one in standings:
        slices = [s for r in one.records for s in (r.provenance, *r.provenance.get(EARLIER, ()))]
        devices = sorted({str(s.get("device", "?")) for s in slices})
        commits = sorted({_commit(str(s.get("commit") or "?")) for s in slices})
        rows.append(
            (
                one.cell,
                one.work,
                one.budget,
                duration(one.seconds / len(one.records)),
                ", ".join(devices),
                ", ".join(commits),
            )
        )
    return Table(
        ("cell", "seeds × work", "budget", "time a seed", "machine", "commit"), tuple(rows)
    )


def _commit(text: str) -> str:
    """Nine digits of a commit, and a plus where the tree had changes."""
    return text[:9] + ("+" if "with changes" in text else "")


def duration(seconds: float) -> str:
    """Wall time in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
