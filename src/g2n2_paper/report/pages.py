"""The page writer: results pages from templates, and generated parts of hand-written pages.

`docs/results.md` and `docs/results-appendix.md` are rendered from the Jinja templates of these
names. Other pages have generated parts between `<!-- paper:NAME -->` and `<!-- /paper:NAME -->`;
NAME is a table, or a template `NAME.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound

from g2n2.atomic_files import replace_file
from g2n2.errors import DataError

from ..bench import tables as bench
from ..bench.cases import GROUPS
from . import facts, tables_filters, tables_power, tables_qm9, tables_tu
from .cited import cited
from .drawing import Drawing, is_current, save
from .figures import drawings
from .frame import Results, provenance_table
from .numbers import markdown

RENDERED = ("docs/results.md", "docs/results-appendix.md")
MARKED = ("README.md", "docs/findings.md", "docs/performance.md")
MARKS = re.compile(r"<!-- paper:(?P<name>[\w-]+) -->\n.*?<!-- /paper:(?P=name) -->", re.DOTALL)
ANY_MARK = re.compile(r"<!-- /?paper:([\w-]+) -->")


class Pages:
    """All pages and figures made from a results folder.

    Args:
        results: Folder of the records, with the benchmarks in `bench`.
        root: Folder with README.md and docs.

    Raises:
        DataError: A file is not a record, or there is none.
    """

    def __init__(self, results: Path, root: Path) -> None:
        self.root = root
        self.results = Results.read(results)
        self.rows = bench.read_results(results / "bench")
        if not self.results.records:
            raise DataError(f"there is no record in {results}; name another folder by --results")
        self.tables = self._tables()
        self.templates = Environment(
            loader=PackageLoader(__package__.rpartition(".")[0], "report/templates"),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.templates.globals |= {
            "table": self.table,
            "cited": lambda name: cited(name).citation,
            **facts.all_facts(self.results),
        }

    def _tables(self) -> dict[str, Callable[[], str]]:
        qm9, tu, filters, power = tables_qm9, tables_tu, tables_filters, tables_power
        frames = {
            "q1": qm9.q1,
            "q1-short": qm9.q1_short,
            "q2-short": qm9.q2_short,
            "q2-single": qm9.q2_single,
            "q2-variants": qm9.q2_variants,
            "q2-joint-32": partial(qm9.q2_joint, width=32),
            "q2-joint-64": partial(qm9.q2_joint, width=64),
            "q2-extent": qm9.q2_extent,
            "q2-bonds": qm9.q2_bonds,
            "q2-sums": qm9.q2_sums,
            "q2-sums-cited": qm9.q2_sums_cited,
            "q2-speed": qm9.q2_speed,
            "q2-precision": qm9.q2_precision,
            "q2-tracks": partial(qm9.q2_compared, change_of="track"),
            "q2-recipes": partial(qm9.q2_compared, change_of="recipe"),
            "q3-short": tu.q3_short,
            "q3-all": tu.q3_all,
            "q3-statistics": tu.q3_statistics,
            "q3-g2n2": tu.q3_g2n2,
            "q3-paired": tu.q3_paired,
            "q3-variants": tu.q3_variants,
            "q3-input": partial(tu.q3_variants, sets=tu.IMDB),
            "q3-ranks": lambda _: tu.q3_ranks(),
            "q4": filters.q4,
            "q4-short": partial(filters.q4, chosen=filters.SHORT),
            "q4-ceilings": filters.q4_ceilings,
            "q4-ppgn": filters.q4_ppgn,
            "brec": power.brec,
            "brec-exact": power.brec_exact,
            "brec-short": power.brec_short,
            "classes": power.classes,
            "counting": power.counting,
            "records": provenance_table,
        }
        texts: dict[str, Callable[[], str]] = {
            name: partial(lambda frame: markdown(frame(self.results)), frame)
            for name, frame in frames.items()
        }
        for group in GROUPS:
            texts[f"bench-{group}"] = partial(bench.group_tables, self.rows, group)
        texts["bench-machines"] = lambda: markdown(bench.machine_table(self.rows))
        return texts

    def table(self, name: str) -> str:
        return self.tables[name]()

    def part(self, name: str, page: str) -> str:
        """A generated part of a page: a table or a rendered template.

        Raises:
            DataError: There is no table or template of that name.
        """
        if name in self.tables:
            return self.table(name)
        try:
            return self.templates.get_template(f"{name}.md").render().strip()
        except TemplateNotFound:
            known = ", ".join(sorted(self.tables))
            raise DataError(f"{page} asks for paper:{name}; there are {known}") from None

    def fill(self, text: str, page: str) -> str:
        """A page with its generated parts replaced.

        Raises:
            DataError: A mark has no partner, or asks for something unknown.
        """
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
        return figures | {images / "roofline.png": bench.roofline(self.rows)}

    def stale(self) -> list[Path]:
        """Pages and figures that are not what they should be."""
        texts = [p for p, t in self.texts().items() if not p.is_file() or p.read_text("utf-8") != t]
        return texts + [p for p, drawing in self.figures().items() if not is_current(drawing, p)]

    def write(self) -> Iterable[Path]:
        """Write all pages and figures that are stale."""
        stale = set(self.stale())
        for path, text in self.texts().items():
            if path in stale:
                replace_file(path, text.encode())
        for path, drawing in self.figures().items():
            if path in stale:
                save(drawing, path)
        return sorted(stale)
