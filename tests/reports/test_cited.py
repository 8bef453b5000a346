"""Published numbers are as printed, and compare as they should."""

import os
import re
from pathlib import Path

import pytest

from g2n2.reports.cited import cited

AIMS = {  # the paper's G²N² columns, typed a second time
    "qm9-single": "0.0703 0.127 0.00172 0.00153 0.00253 0.342 0.0000951 0.0169 0.0162 0.0176 0.0214 0.0429",
    "qm9-joint": "0.102 0.196 0.0021 0.00211 0.00287 1.19 0.0000151 0.0502 0.0503 0.0503 0.0504 0.0707",
}


@pytest.mark.parametrize("name", AIMS)
def test_the_columns_of_the_paper(name):
    table = cited(name)
    assert [cells["G²N²"].text for cells in table.rows.values()] == AIMS[name].split()


def test_a_misprint_keeps_its_digits_and_is_held_against_what_is_likely():
    number = cited("qm9-joint").at("zpve", "G²N²")
    assert (number.text, number.value, number.bar) == ("0.0000151", 1.51e-5, 1.51e-4)
    assert "likely" in number.note
    assert cited("qm9-joint").at("mu", "G²N²").bar == 0.102


def test_eleven_rows_of_tu_with_deviations_and_gaps():
    table = cited("tu")
    assert len(table.rows) == 11
    assert table.at("IGN", "MUTAG").spread == 13.0
    assert table.at("WEGL", "MUTAG").value is None


def test_the_best_other_gnn_of_each_set():
    without = ("WL kernel", "GNTK", "G²N²")
    best = [cited("tu").best(column, without)[1] for column in cited("tu").columns]
    assert best == [92.2, 68.2, 77.4, 83.5, 77.8, 54.3]
    assert cited("qm9-time").best("PPGN") == ("single", 129.0)  # lower is better there


def test_the_totals_of_brec_are_the_sums_of_their_parts():
    for row in cited("brec").rows.values():
        *parts, total = (cell.value for cell in row.values())
        assert sum(parts) == total if None not in parts else total <= 400


@pytest.mark.parametrize("name", ["qm9-single", "tu", "filters", "brec", "exp", "merged"])
def test_every_table_names_its_source(name):
    assert "20" in cited(name).source
    assert "Table" in cited(name).citation


def test_what_was_not_read_in_the_publication_itself_says_so():
    assert "not read again" in cited("brec").citation
    assert "not read again" in cited("exp").citation
    assert cited("tu").citation.endswith("ranks from Table 2")


PRINTED = {
    "qm9-single": ("EXPQM9GMN.txt", 1, 12),
    "qm9-joint": ("EXPQM12.tex", 0, 12),
    "filters": ("filteringGMN.txt", 1, 4),
    "tu": ("TUD.txt", 1, 11),
}
"""Each table to its block in the paper's source, the first column of numbers and how many rows."""


@pytest.mark.parametrize("name", PRINTED)
def test_every_number_is_that_of_the_paper_s_source(name):
    source = Path(os.environ.get("G2N2_DATA", "nowhere")).parent / "paper" / "g2n2.tex"
    if not source.is_file():
        pytest.skip("the paper's source is not here")
    block, first, rows = PRINTED[name]
    text = source.read_text(encoding="utf-8")
    lines = text.partition("{data/" + block + "}")[2].partition("\\end{file")[0].split("\n")[2:]
    printed = [
        [re.sub(r"\\textbf|[{}]", "", cell).replace("$\\pm$", " ± ").strip() for cell in cells]
        for cells in (line.split(",")[first:] for line in lines[:rows])
    ]
    assert [[cell.text for cell in row.values()] for row in cited(name).rows.values()] == printed
