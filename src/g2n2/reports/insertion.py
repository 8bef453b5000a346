"""Generated parts of hand-written pages, kept between markers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..atomic_files import replace_file
from ..errors import DataError
from .figures.drawing import can_draw
from .report import draw, other_figures, parts
from .section import Section
from .standings import Results

MAIN = "docs/results.md"
"""The page without which there is nothing to fill or to check."""

PAGES = ("README.md", MAIN, "docs/findings.md")
"""Pages that hold generated parts, from the root of the repository."""

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
        DataError: There is no marker, one has no partner, or a name nobody generates.
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
    if _MARKED.search(text) is None:
        raise DataError(
            f"{page} has no marker; write <!-- results:NAME --> … <!-- /results:NAME --> where a "
            f"part belongs, NAME one of {', '.join(sorted(parts))}"
        )
    return _MARKED.sub(replaced, text)


def stale_pages(root: Path, results: Results, made: Sequence[Section]) -> list[Path]:
    """What is not as it should be under `root`: pages with other generated parts, other figures.

    Raises:
        DataError: There is no page to look at, one that cannot be read or has no markers, or
            figures cannot be drawn to compare them.
    """
    _refuse_no_figures()
    return [*_fresh_pages(root, results, made), *other_figures(made, root / IMAGES)]


def write_pages(root: Path, results: Results, made: Sequence[Section]) -> list[Path]:
    """Fill the marked parts of all pages and draw the figures they show; what was written.

    Raises:
        DataError: There is no result or no page, or something cannot be read or written.
    """
    if results.empty:
        raise DataError(
            f"no result in {results.folder}: the pages keep the numbers they have; name the "
            "folder with the records by --results"
        )
    _refuse_no_figures()
    fresh = _fresh_pages(root, results, made)
    for path in fresh:
        if not os.access(path, os.W_OK):
            raise DataError(f"{path} is read-only; no page was written")
    folder = root / IMAGES
    with TemporaryDirectory() as aside:
        # What cannot be drawn is found before a page is written.
        names = [f"{name}.png" for name in draw(made, Path(aside), svg=False)]
        for path, text in fresh.items():
            with _writing(path):
                replace_file(path, text.encode())
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                replace_file(folder / name, (Path(aside) / name).read_bytes())
    return [*fresh, *(folder / name for name in names)]


def _refuse_no_figures() -> None:
    if not can_draw():
        raise DataError("the pages show figures, which need matplotlib: pip install 'g2n2[plot]'")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What the disk refuses, said of the place that is written."""
    try:
        yield
    except OSError as fault:
        raise DataError(f"cannot write {path}: {fault.strerror or fault}") from None


def _fresh_pages(root: Path, results: Results, made: Sequence[Section]) -> dict[Path, str]:
    """Pages under `root` whose generated parts are not what they should be, with their new text."""
    if not (root / MAIN).is_file():
        raise DataError(
            f"{root / MAIN} is not there; name the folder with README.md and docs by --root"
        )
    fresh = {}
    for name in PAGES:
        path = root / name
        if not path.is_file():
            continue
        images = os.path.relpath(root / IMAGES, path.parent).replace(os.sep, "/")
        text = _read(path)
        filled = insert(text, parts(made, results, images), name)
        if filled != text:
            fresh[path] = filled
    return fresh


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise DataError(f"cannot read {path}: {fault.strerror or fault}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8; save it as UTF-8 text") from None
