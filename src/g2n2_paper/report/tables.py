"""Tables as templates declare them: rows, columns, and where entries come from.

Either the rows or the columns of a table are sources, functions that give the entry for a key. The
others are keys: strings, or tuples of strings, that fill the braces in the names of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from g2n2.data.qm9 import QM9_TARGETS

from ..runs import mae_key
from .cited import Cited, cited
from .numbers import EMPTY, Best, Notes, TableEntry, Value, bold, entry, markdown, minus
from .results import Results

Key = str | tuple[str, ...]
Source = Callable[..., object]
TARGETS = {target.name: target for target in QM9_TARGETS}
BEST: dict[str, Best] = {"lowest": min, "highest": max}


@dataclass(frozen=True)
class Metric:
    """A source: a metric of a cell, over its seeds."""

    results: Results
    question: str
    cell: str
    metric: str | Callable[[str], str]  # a function of the first part of the key, or a pattern
    decimals: int | None = None  # three significant digits if None
    work: bool = False  # with seeds × work in brackets
    deviation: str = ""  # the metric that is the deviation, over folds

    def value(self, *key: str) -> Value | None:
        cell = self.cell.format(*key)
        metric = self.metric.format(*key) if isinstance(self.metric, str) else self.metric(key[0])
        if self.deviation:
            return self.results.over_folds(self.question, cell, metric, self.deviation)
        return self.results.value(self.question, cell, metric)

    def __call__(self, *key: str) -> TableEntry:
        value = self.value(*key)
        if value is None and self.results.first(self.question, self.cell.format(*key)):
            return TableEntry("")  # a network that has no such number
        shown = entry(value, self.decimals)
        if not self.work:
            return shown
        work = self.results.work(self.question, self.cell.format(*key), unit=False)
        return TableEntry(f"{shown.text} ({work})", shown.value)


def mae_of(target: str) -> str:
    """The metric of a target of QM9."""
    return mae_key(target, TARGETS[target].unit)


class Tables:
    """The renderer and the sources that several questions use."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def table(
        self,
        head: str,
        rows: Mapping[str, Key | Source] | Sequence[tuple[str, Key | Source]],
        columns: Mapping[str, Key | Source],
        best: str = "",
        foot: Mapping[str, str] | None = None,
        foot_key: Key = (),
    ) -> str:
        """A table in Markdown.

        Args:
            head: Header of the first column.
            rows: Label to source or key; pairs where labels repeat.
            columns: Header to key or source.
            best: What is bold: `lowest` or `highest`, `in row`, `in column` or `in pairs` (of
                columns). Entries without a number, and published ones marked plain, do not compete.
            foot: Label of a last row to `size` or `work`, of the cells of the columns.
            foot_key: The key of these cells.
        """
        notes = Notes()
        labels, lines = [], []
        for label, row in rows.items() if isinstance(rows, Mapping) else rows:
            labels.append(label)
            lines.append([notes.entry(_apply(row, column)) for column in columns.values()])
        for label, what in (foot or {}).items():
            ask = getattr(self, what)
            cells = [c if isinstance(c, Metric) else None for c in columns.values()]
            feet = [_apply(ask(c.question, c.cell), foot_key) if c else "" for c in cells]
            labels.append(label)
            lines.append([TableEntry(str(text)) for text in feet])
        pick, where = BEST.get(best.partition(" ")[0]), best.rpartition(" ")[2]
        texts = [[item.text for item in line] for line in lines]
        if where == "column":
            by_column = [bold(column, pick) for column in zip(*lines, strict=True)]
            texts = [list(line) for line in zip(*by_column, strict=True)]
        elif pick:
            size = 2 if where == "pairs" else len(columns)
            groups = range(0, len(columns), size)
            texts = [[t for i in groups for t in bold(x[i : i + size], pick)] for x in lines]
        framed = [[label, *line] for label, line in zip(labels, texts, strict=True)]
        return markdown([head, *columns], framed)

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
        return Metric(self.results, question, cell, metric, decimals, deviation=deviation)

    def mae(self, cell: str, work: bool = False) -> Metric:
        """The test error of a cell of Q2 on the target that the key begins with."""
        return Metric(self.results, "q2", cell, mae_of, work=work)

    def size(self, question: str, cell: str) -> Source:
        return lambda *key: self.results.size(question, cell.format(*key))

    def work(self, question: str, cell: str) -> Source:
        return lambda *key: self.results.work(question, cell.format(*key))

    def seeds(self, question: str, cell: str) -> Source:
        return lambda *key: len(self.results.of(question, cell.format(*key)))

    def machine(self, question: str, cell: str) -> Source:
        def device(*key: str) -> str:
            record = self.results.first(question, cell.format(*key))
            return record.provenance["device"] if record else EMPTY

        return device

    def text(self, pattern: str) -> Source:
        return lambda *key: pattern.format(*key)

    def published(self, name: str, row: str, column: str, plain: bool = False) -> Source:
        """A published number; plain ones have no note and are not compared.

        It is empty where the row is, and in columns that the published table does not have.
        """

        def number(*key: str) -> Cited | str:
            table, of_row = cited(name), row.format(*key)
            cell = table.rows[of_row].get(column.format(*key)) if of_row else None
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


def _apply(row: Key | Source, column: Key | Source) -> object:
    source, key = (row, column) if callable(row) else (column, row)
    assert callable(source), "either rows or columns are sources"
    assert not callable(key), "either rows or columns are keys"
    return source(*((key,) if isinstance(key, str) else key))
