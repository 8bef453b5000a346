"""The page writer: results pages from templates, and generated parts of hand-written pages.

`docs/results.md` and `docs/results-appendix.md` are rendered from the Jinja templates of these
names. Other pages have generated parts between `<!-- paper:NAME -->` and `<!-- /paper:NAME -->`,
which are the blocks of the template `parts.md`. Templates declare tables by the names of `Entries`.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from g2n2.atomic_files import replace_file
from g2n2.errors import DataError

from ..bench.run import read_results
from . import facts, performance
from .entries import Entries
from .figures import Drawing, drawings, roofline
from .tables import Results, cited

RENDERED = ("docs/results.md", "docs/results-appendix.md")
MARKED = ("README.md", "docs/beyond-3wl.md", "docs/findings.md", "docs/performance.md")
MARKS = re.compile(r"<!-- paper:(?P<name>[\w-]+) -->\n.*?<!-- /paper:(?P=name) -->", re.DOTALL)
ANY_MARK = re.compile(r"<!-- /?paper:([\w-]+) -->")


class Pages:
    """All pages and figures made from a results folder.

    `results` is the folder of the records, with the benchmarks in `bench`; `root` has README.md and
    docs.
    """

    def __init__(self, results: Path, root: Path) -> None:
        self.root = root
        self.results = Results(results)
        self.rows = read_results(results / "bench")
        if not self.results.records:
            raise DataError(f"there is no record in {results}; name another folder by --results")
        self.templates = Environment(
            loader=PackageLoader(__package__.rpartition(".")[0], "report/templates"),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        entries = Entries(self.results)
        self.templates.globals |= {
            "bench": partial(performance.group_tables, self.rows),
            "machines": partial(performance.machine_table, self.rows),
            "figure": partial(performance.figure, self.rows),
            "ratios": partial(performance.ratios, self.rows),
            "missed_floors": partial(performance.missed_floors, self.rows),
            "older_groups": partial(performance.older_groups, self.rows),
            "kernels": partial(performance.kernel_table, results / "bench-kernels"),
            "cited": lambda name: cited(name).citation,
            **{name: getattr(entries, name) for name in dir(entries) if not name.startswith("_")},
            **facts.all_facts(self.results),
        }

    def part(self, name: str, page: str) -> str:
        template = self.templates.get_template("parts.md")
        block = template.blocks.get(name.replace("-", "_"))
        if block is None:
            names = ", ".join(sorted(template.blocks)).replace("_", "-")
            raise DataError(f"{page} asks for paper:{name}; there are {names}")
        return "".join(block(template.new_context())).strip()

    def fill(self, text: str, page: str) -> str:
        """A page with its generated parts replaced."""
        if lonely := ANY_MARK.search(MARKS.sub("", text)):
            raise DataError(f"{page}: the mark paper:{lonely[1]} has no partner")

        def replaced(match: re.Match[str]) -> str:
            name = match["name"]
            return f"<!-- paper:{name} -->\n{self.part(name, page)}\n<!-- /paper:{name} -->"

        return MARKS.sub(replaced, text)

    def texts(self) -> dict[Path, str]:
        """The text every page should have."""
        pages = {}
        for page in RENDERED:
            pages[self.root / page] = self.templates.get_template(Path(page).name).render()
        for page in MARKED:
            path = self.root / page
            if path.is_file():
                pages[path] = self.fill(path.read_text(encoding="utf-8"), page)
        return pages

    def figures(self) -> dict[Path, Drawing]:
        images = self.root / "docs" / "images"
        figures = {images / "results" / f"{n}.png": d for n, d in drawings(self.results).items()}
        return figures | {images / "roofline.png": roofline(self.rows)}

    def stale(self, write: bool = False) -> list[Path]:
        """Pages and figures that are not what they should be; written anew if asked."""
        stale = []
        for path, text in self.texts().items():
            if not path.is_file() or path.read_text("utf-8") != text:
                stale.append(path)
                if write:
                    replace_file(path, text.encode())
        for path, drawing in self.figures().items():
            if not drawing.is_current(path):
                stale.append(path)
                if write:
                    drawing.save(path)
        return sorted(stale)
