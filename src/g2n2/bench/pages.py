"""A page's tables, written anew: `<!-- bench:GROUP -->` … `<!-- /bench -->`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import DataError
from .cases import GROUPS
from .results import Result, read_results, writing
from .tables import headers, rows

MARKED = re.compile(r"<!-- bench:(\S+) -->\n.*?<!-- /bench -->", re.DOTALL)


def write_page(page: Path, folder: Path) -> list[str]:
    """Fill the marked places of a page; the groups it has.

    Raises:
        DataError: There is no such page, it has no marks or one that names no group, it cannot be
            written, or the folder holds no results.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {str(page)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"cannot read {str(page)!r}: it is not text in UTF-8") from None
    groups = [match[1] for match in MARKED.finditer(text)]
    if not groups:
        raise DataError(
            f"{page} has no place for a table; mark one with two lines, "
            "<!-- bench:training --> and <!-- /bench -->"
        )
    for group in groups:
        if group not in (*GROUPS, "machines"):
            raise DataError(f"{page} asks for the table {group!r}; known: {', '.join(GROUPS)}")
    results = read_results(folder)
    if not results:
        raise DataError(
            f"{folder} holds no results, and {page} was left as it is; name their folder with "
            f"--out, or measure first: g2n2 bench --out {folder}"
        )
    filled = MARKED.sub(lambda match: _filled(match[1], results), text)
    with writing(page):
        page.write_text(filled, encoding="utf-8")
    return groups


def _filled(group: str, results: Sequence[Result]) -> str:
    content = machines(results) if group == "machines" else tables(group, results)
    return f"<!-- bench:{group} -->\n{content}\n<!-- /bench -->"


def tables(group: str, results: Sequence[Result]) -> str:
    """A group's table for each machine it was measured on."""
    mine = [result for result in results if result.group == group]
    if not mine:
        return f"*Not measured yet: `g2n2 bench --case {group}`.*"
    parts = []
    for machine in dict.fromkeys(_machine(result) for result in mine):
        found = [result for result in mine if _machine(result) == machine]
        parts.append(f"{machine}:\n\n{markdown(headers(group), rows(found, group))}")
    return "\n\n".join(parts)


def machines(results: Sequence[Result]) -> str:
    """What the results were got with: the peaks every share of a peak is a share of."""
    lines: dict[str, tuple[str, ...]] = {}
    for result in results:
        made = result.made_with
        peaks = made.get("peak_tflops", {})
        old = lines.get(_machine(result), ())[1:4] or ("–",) * 3
        shown = [
            f"{peaks[name]:.3g}" if name in peaks else before
            for name, before in zip(("bf16", "tf32", "32"), old, strict=True)
        ]
        speed = f"{made['bandwidth_gb_per_second']:,.0f}"
        versions = f"torch {made['torch']}, triton {made['triton']}"
        lines[_machine(result)] = (_machine(result), *shown, speed, versions)
    names = ("machine", "bf16 TFLOP/s", "tf32 TFLOP/s", "fp32 TFLOP/s", "GB/s", "with")
    return markdown(names, list(lines.values())) if lines else "*Not measured yet: `g2n2 bench`.*"


def markdown(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    ruler = ["-", *("-:" for _ in names[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (names, ruler, *lines))


def _machine(result: Result) -> str:
    made = result.made_with
    if made["device"] == "cpu":
        return f"{made['cpu']}, {made['threads']} threads"
    return str(made["device"])
