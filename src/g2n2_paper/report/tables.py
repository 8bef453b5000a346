"""Tables as templates declare them: rows, columns, and where entries come from.

Either the rows or the columns of a table are sources, functions that give the entry for a key. The
others are keys: strings, or tuples of strings, that fill the braces in the names of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from g2n2.data.qm9 import QM9_TARGETS

from ..runs import mae_key
from .numbers import EMPTY, Results, TableEntry, Value, cited, entry, minus

Key = str | tuple[str, ...]
Source = Callable[..., object]
Best = Callable[[Iterable[float]], float]
TARGETS = {target.name: target for target in QM9_TARGETS}
BEST: dict[str, Best] = {"lowest": min, "highest": max}


def table(
    head: str,
    rows: Mapping[str, Key | Source] | Sequence[tuple[str, Key | Source]],
    columns: Mapping[str, Key | Source],
    best: str = "",
    foot: Mapping[str, Source] | None = None,
) -> str:
    """A table in Markdown.

    Args:
        head: Header of the first column.
        rows: Label to source or key; pairs where labels repeat.
        columns: Header to key or source.
        best: What is bold: `lowest` or `highest`, `in row`, `in column` or `in pairs` (of columns).
            Entries without a number, and published ones marked plain, do not compete.
        foot: Label to a function of the columns that are metrics: last rows.
    """
    letters: dict[str, str] = {}

    def entry_of(item: object) -> TableEntry:
        """Remarks on published numbers are lettered in the order they appear."""
        if not isinstance(item, TableEntry):
            return TableEntry(str(item))
        if not item.note:
            return item
        letter = letters.setdefault(item.note, f"({chr(ord('a') + len(letters))})")
        return replace(item, text=f"{item.text} {letter}")

    pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
    lines = [[entry_of(_apply(row, c)) for c in columns.values()] for _, row in pairs]
    texts = [[item.text for item in line] for line in lines]
    pick, where = BEST.get(best.partition(" ")[0]), best.rpartition(" ")[2]
    if pick and where == "column":
        by_column = [bold(column, pick) for column in zip(*lines, strict=True)]
        texts = [list(line) for line in zip(*by_column, strict=True)]
    elif pick:
        size = 2 if where == "pairs" else len(columns)
        groups = range(0, len(columns), size)
        texts = [[t for i in groups for t in bold(x[i : i + size], pick)] for x in lines]
    framed = [[label, *line] for (label, _), line in zip(pairs, texts, strict=True)]
    for label, what in (foot or {}).items():
        cells = [what(c) if isinstance(c, Metric) else "" for c in columns.values()]
        framed.append([label, *map(str, cells)])
    return markdown([head, *columns], framed)


def _apply(row: Key | Source, column: Key | Source) -> object:
    source, key = (row, column) if callable(row) else (column, row)
    assert callable(source), "either rows or columns are sources"
    assert not callable(key), "either rows or columns are keys"
    return source(*((key,) if isinstance(key, str) else key))


def bold(row: Sequence[TableEntry], best: Best) -> list[str]:
    """Texts of some entries; the best number, and those that print the same, in bold."""
    values = [item.value for item in row if item.value is not None]
    top = best(values) if len(values) > 1 else None
    printed = {item.printed for item in row if item.value is not None and item.value == top}
    return [
        f"**{item.text}**" if item.value is not None and item.printed in printed else item.text
        for item in row
    ]


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, columns after the first to the right."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(column[0]) + 2, *map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    rule = [":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]
    head, *body = (f"| {' | '.join(line)} |" for line in padded)
    return "\n".join([head, f"|{'|'.join(rule)}|", *body])


@dataclass(frozen=True)
class Metric:
    """A source: a metric of a cell, over its seeds."""

    results: Results
    question: str
    cell: str
    metric: str | Callable[[str], str]  # a function of the first part of the key, or a pattern
    decimals: int | None = None  # three significant digits if None
    deviation: str = ""  # the metric that is the deviation, over folds
    work: bool = False  # with seeds × work in brackets

    def value(self, *key: str) -> Value | None:
        metric = self.metric.format(*key) if isinstance(self.metric, str) else self.metric(key[0])
        return self.results.value(self.question, self.cell.format(*key), metric, self.deviation)

    def __call__(self, *key: str) -> TableEntry:
        value, cell = self.value(*key), self.cell.format(*key)
        if value is None and self.results.first(self.question, cell):
            return TableEntry("")  # a network that has no such number
        shown = entry(value, self.decimals)
        if not self.work:
            return shown
        work = self.results.work(self.question, cell, unit=False)
        return replace(shown, text=f"{shown.text} ({work})")


def mae_of(target: str) -> str:
    """The metric of a target of QM9."""
    return mae_key(target, TARGETS[target].unit)


class Sources:
    """Sources that several questions use, by the names that templates call them."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @staticmethod
    def merged(*parts: Mapping[str, object]) -> dict[str, object]:
        """Rows or columns of several kinds, in their order."""
        return {name: item for part in parts for name, item in part.items()}

    def ours(
        self,
        question: str,
        cell: str,
        metric: str,
        decimals: int | None = None,
        deviation: str = "",
    ) -> Metric:
        """A metric of our cells; `deviation` is the metric of its deviation over folds."""
        return Metric(self.results, question, cell, metric, decimals, deviation)

    def mae(self, cell: str, work: bool = False) -> Metric:
        """The test error of a cell of Q2 on the target that the key begins with."""
        return Metric(self.results, "q2", cell, mae_of, work=work)

    def size(self, question: str, cell: str) -> Source:
        """Parameters of the network of a cell."""
        return lambda *key: self.results.entry(question, cell.format(*key), "parameters", 0).printed

    def work(self, question: str, cell: str) -> Source:
        return lambda *key: self.results.work(question, cell.format(*key))

    def sizes(self, *key: str) -> Source:
        """A last row of a table: parameters of the networks of its columns, for this key."""
        return lambda metric: self.size(metric.question, metric.cell)(*key)

    def works(self, metric: Metric) -> str:
        """A last row of a table: seeds and work of its columns."""
        return self.results.work(metric.question, metric.cell)

    def machine(self, question: str, cell: str) -> Source:
        def device(*key: str) -> str:
            record = self.results.first(question, cell.format(*key))
            return record.provenance["device"] if record else EMPTY

        return device

    @staticmethod
    def text(pattern: str) -> Source:
        return pattern.format

    def published(self, name: str, row: str, column: str, plain: bool = False) -> Source:
        """A published number; plain ones have no note and are not compared.

        It is empty where the row is, and in columns that the published table does not have.
        """

        def number(*key: str) -> TableEntry | str:
            of_row = row.format(*key)
            cell = cited(name).rows[of_row].get(column.format(*key)) if of_row else None
            return cell.text if cell and plain else cell or ""

        return number

    def published_rows(
        self, name: str, tail: str = ", cited", only: Sequence[str] = (), plain: Sequence[str] = ()
    ) -> dict[str, Source]:
        """The rows of a published table, by column; all rows or some."""
        rows = only or cited(name).rows
        return {row + tail: self.published(name, row, "{}", row in plain) for row in rows}

    def published_columns(self, name: str) -> dict[str, Source]:
        """The columns of a published table, by row."""
        return {f"{c}, cited": self.published(name, "{}", c) for c in cited(name).columns}

    def change(self, before: str, after: str) -> Source:
        """By how many percent the error of one cell of Q2 is larger than that of another."""

        def percent(target: str) -> str:
            old, new = (self.mae(cell).value(target) for cell in (before, after))
            if old is None or new is None:
                return EMPTY
            return minus(f"{100.0 * (new.mean / old.mean - 1.0):+.1f} %")

        return percent

    def targets(self, *names: str, unit: bool = True) -> dict[str, str]:
        """Symbols and units of some targets of QM9, or all, as in the paper."""
        chosen = [TARGETS[name] for name in names or TARGETS]
        return {f"{t.symbol} ({t.unit})" if unit else t.symbol: t.name for t in chosen}
