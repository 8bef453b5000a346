"""Generated parts of hand-written pages, kept between markers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import DataError
from .report import draw, parts
from .section import Section
from .standings import Results

PAGES = ("README.md", "docs/results.md", "docs/findings.md")
"""Pages that may hold generated parts, from the root of the repository."""

IMAGES = "docs/images/results"
"""Where the figures of those pages lie."""

_MARKED = re.compile(
    r"(?P<open><!-- results:(?P<name>[\w-]+) -->).*?(?P<close><!-- /results:(?P=name) -->)",
    re.DOTALL,
)


def insert(text: str, parts: Mapping[str, str], page: str) -> str:
    """A page with what stands between its markers replaced.

    Args:
        text: The page.
        parts: Name of a marker pair to Markdown.
        page: Its name, for messages.

    Raises:
        DataError: A marker has no partner, or a name nobody generates.
    """

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in parts:
            raise DataError(
                f"{page} has the markers results:{name}; there are {', '.join(sorted(parts))}"
            )
        return f"{match['open']}\n{parts[name].strip()}\n{match['close']}"

    alone = re.search(r"<!-- /?results:([\w-]+) -->", _MARKED.sub("", text))
    if alone is not None:
        raise DataError(
            f"{page}: the marker results:{alone[1]} has no partner; write "
            f"<!-- results:{alone[1]} --> … <!-- /results:{alone[1]} -->"
        )
    return _MARKED.sub(replaced, text)


def stale_pages(root: Path, results: Results, made: Sequence[Section]) -> dict[Path, str]:
    """Pages under `root` whose generated parts are not what they should be, with their new text."""
    stale = {}
    for name in PAGES:
        path = root / name
        if not path.is_file():
            continue
        images = os.path.relpath(root / IMAGES, path.parent).replace(os.sep, "/")
        text = path.read_text(encoding="utf-8")
        fresh = insert(text, parts(made, results, images), name)
        if fresh != text:
            stale[path] = fresh
    return stale


def write_pages(root: Path, results: Results, made: Sequence[Section]) -> list[Path]:
    """Fill the marked parts of all pages and draw the figures they show; what was written."""
    stale = stale_pages(root, results, made)
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
    folder = root / IMAGES
    drawn = [folder / f"{name}.png" for name in draw(made, folder, svg=False)]
    return [*stale, *drawn]
