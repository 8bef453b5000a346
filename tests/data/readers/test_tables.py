"""CSV files as programs write them: separators, empty columns at the end, missing values."""

from __future__ import annotations

from pathlib import Path

import pytest

from g2n2.data.readers.tables import is_missing, is_number, number_of, read_table
from g2n2.data.reading import read_graphs


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        # as many commas in the header as semicolons, or more
        ("id;smiles;y (25 C, 1 M, pH 7)\na;C;1\nb;CC;2\n", ["id", "smiles", "y (25 C, 1 M, pH 7)"]),
        ("smiles\tlog P, exp, 25 C\nC\t1\nCC\t2\n", ["smiles", "log P, exp, 25 C"]),
        ("smiles;y\nC;1,5\nCC;2,5\n", ["smiles", "y"]),
        ('a,"b; c; d; e"\n1,2\n', ["a", "b; c; d; e"]),
        ("smiles|y\nC|1\n", ["smiles", "y"]),
        ("smiles,|x|\nC,1\n", ["smiles", "|x|"]),
        ("smiles\nC\n", ["smiles"]),
        ("sep=;\nsmiles;y\nC;1\n", ["smiles", "y"]),
        ("\n\nsmiles,y\nC,1\n", ["smiles", "y"]),
        ("smiles,y,,\nC,1,,\nCC,2,,\n", ["smiles", "y"]),
        ("smiles,y\nC,1,\nCC,2,\n", ["smiles", "y"]),
        ("smiles,y,\nC,1,\nCC,2\n", ["smiles", "y"]),
    ],
)
def test_columns_are_found(tmp_path: Path, text: str, columns: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    table = read_table(path)
    assert list(table.columns) == columns
    assert len(table) == text.rstrip().count("\n") - text[: text.index(columns[0])].count("\n")


@pytest.mark.parametrize("cell", ["", "NaN", "n/a", "None", "#N/A", "#DIV/0!", "<NA>", "-"])
def test_what_says_that_there_is_no_value(cell: str) -> None:
    assert is_missing(cell)


@pytest.mark.parametrize("cell", ["0", "x", "+", "#1", "[Na]", "inf"])
def test_what_is_a_value(cell: str) -> None:
    assert not is_missing(cell)


@pytest.mark.parametrize(
    ("cell", "number"),
    [("2", 2), ("-.5", -0.5), ("\N{MINUS SIGN}2.5", -2.5), ("1e\N{MINUS SIGN}3", 0.001)],
)
def test_numbers(cell: str, number: float) -> None:
    assert is_number(cell)
    assert number_of(cell) == number


@pytest.mark.parametrize("cell", ["1_5", "1_000", "2020_1", "12%", "1,5", "-", "nan", ""])
def test_codes_and_numbers_with_other_signs_are_no_numbers(cell: str) -> None:
    assert not is_number(cell)


def test_a_decimal_comma_after_a_minus_sign(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("smiles;y\nC;\N{MINUS SIGN}0,5\nCC;1,5\n")
    assert read_table(path).columns["y"] == ("\N{MINUS SIGN}0.5", "1.5")


def test_an_id_that_reads_as_missing_is_named(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    path = tmp_path / "a.csv"
    path.write_text("id,smiles,y\nNA,C,1.5\nK,CC,2.5\n")
    assert any("as 'NA' stands for an empty cell" in note for note in read_graphs(path).notes)
