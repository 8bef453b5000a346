"""Excel files are read as the CSV file with the same cells."""

from __future__ import annotations

import csv
import datetime
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from g2n2 import read_graphs
from g2n2.cli.run_commands import check_out
from g2n2.data.readers.tables import open_table, read_table
from g2n2.data.reading import open_stream, read_chunk, reading_options
from g2n2.errors import DataError

ROWS = [
    ["id", "smiles", "logp", "active", "class"],
    [17, "CCO", -0.25, True, "a"],
    [18, "c1ccccc1", 1.6865, False, "b"],
    [19, "CC(=O)O", 3, True, None],
]


def workbook(path: Path, *sheets: tuple[str, Sequence[Sequence[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_are_those_of_the_csv_file(tmp_path: Path) -> None:
    table = read_table(workbook(tmp_path / "a.xlsx", ("Sheet1", ROWS)))
    text = tmp_path / "a.csv"
    with text.open("w", newline="") as file:
        csv.writer(file).writerows([["" if x is None else x for x in row] for row in ROWS])
    same = read_table(text)
    expected = dict(same.columns) | {"active": ("TRUE", "FALSE", "TRUE")}
    assert table.columns == expected
    assert list(table.places) == ["row 2", "row 3", "row 4"]


def test_molecules_and_targets(tmp_path: Path) -> None:
    graphs = read_graphs(workbook(tmp_path / "a.xlsx", ("Sheet1", ROWS)), target="logp")
    assert graphs.sizes.tolist() == [3, 6, 4]
    assert graphs.ids == ("17", "18", "19")
    assert np.allclose(graphs.targets[:, 0], [-0.25, 1.6865, 3])


def test_long_numbers_keep_their_digits(tmp_path: Path) -> None:
    rows = [["smiles", "y", "when"], ["C", 1.23456789012345e-7, datetime.date(2026, 3, 1)]]
    table = read_table(workbook(tmp_path / "a.xlsx", ("Sheet1", rows)))
    assert float(table.columns["y"][0]) == 1.23456789012345e-7
    assert table.columns["when"][0].startswith("2026-03-01")


def test_the_first_visible_sheet_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ("old", [["x"], [1]]), ("Data", ROWS), ("notes", [["z"]]))
    book = openpyxl.load_workbook(path)
    book["old"].sheet_state = "hidden"
    book.save(path)
    graphs = read_graphs(path, target="logp")
    assert len(graphs) == 3
    assert "Sheet 'Data' is read; 'old', 'notes' not." in graphs.notes


def test_empty_rows_are_passed_over_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    rows = [[], ["smiles", "y"], [], ["CC", 1], [None, None], ["CCC", 2, None, None]]
    table = read_table(workbook(tmp_path / "a.xlsx", ("s", rows)))
    assert table.columns == {"smiles": ("CC", "CCC"), "y": ("1", "2")}
    assert list(table.places) == ["row 4", "row 6"]


def test_a_formula_without_a_value_is_a_missing_value(tmp_path: Path) -> None:
    rows = [["smiles", "y"], ["C", "#N/A"], ["CC", "#DIV/0!"], ["CCC", 1.5]]
    graphs = read_graphs(workbook(tmp_path / "a.xlsx", ("s", rows)), target="y")
    assert np.isnan(graphs.targets[:, 0]).tolist() == [True, True, False]


def test_a_file_that_understates_its_size_is_read_whole(tmp_path: Path) -> None:
    whole, short = workbook(tmp_path / "a.xlsx", ("s", ROWS)), tmp_path / "b.xlsx"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(short, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename.endswith("sheet1.xml"):
                assert b'ref="A1:E4"' in content
                content = content.replace(b'ref="A1:E4"', b'ref="A1:B2"')
            new.writestr(info, content)
    assert read_table(short).columns == read_table(whole).columns


def test_edge_lists(tmp_path: Path) -> None:
    edges = [["graph", "source", "target"], ["a", 0, 1], ["a", 1, 2], ["a", 2, 0], ["b", 0, 1]]
    path = workbook(tmp_path / "edges.xlsx", ("s", edges))
    workbook(tmp_path / "graphs.xlsx", ("s", [["graph", "triangles"], ["a", 1], ["b", 0]]))
    graphs = read_graphs(path)
    assert graphs.sizes.tolist() == [3, 2]
    assert graphs.targets[:, 0].tolist() == [1, 0]


BAD: list[tuple[Sequence[Sequence[Any]], str]] = [
    ([], "a.xlsx is empty; expected a header"),
    ([["smiles", "y"]], "a.xlsx has a header and no row"),
    ([["smiles", "y"], ["C", 1, "extra"]], "row 2: got 3 cells, expected 2 as in the header"),
    ([["smiles", "smiles"], ["C", 1]], "two columns 'smiles'"),
    ([["smiles", None, "y"], ["C", 1, 2]], "column 2 has no name"),
]


@pytest.mark.parametrize(("rows", "message"), BAD)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, rows: Sequence[Sequence[Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_graphs(workbook(tmp_path / "a.xlsx", ("s", rows)))


def test_a_zip_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        open_table(tmp_path / "a.xlsx")


def test_a_workbook_that_expands_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/worksheets/sheet1.xml", b"0" * 2**27)
    with pytest.raises(DataError, match="would expand"):
        open_table(tmp_path / "a.xlsx")


def test_without_openpyxl_the_way_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "a.xlsx", ("s", ROWS))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'g2n2\[chem\]', or save it as CSV"):
        open_table(path)


def test_predictions_read_a_workbook_in_chunks_and_are_not_written_as_one(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ("s", ROWS))
    options = reading_options({"target": ()})
    stream = open_stream(path, options)
    chunks = [read_chunk(chunk, options) for chunk in stream.chunks(2)]
    assert stream.total == 3
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert [name for chunk in chunks for name in chunk.ids] == ["17", "18", "19"]
    with pytest.raises(DataError, match=r"give --out the ending \.csv"):
        check_out(tmp_path / "p.xlsx")
