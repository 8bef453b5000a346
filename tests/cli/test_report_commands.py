"""g2n2 report: from a results folder to tables, pictures, a page and filled documents."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from g2n2.cli import report_commands
from g2n2.errors import DataError
from made_up_records import write

PAGE = "# Results\n\n<!-- results:q1 -->\n<!-- /results:q1 -->\n\nby hand\n"


def call(*words):
    app = typer.Typer()
    report_commands.register(app)
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def some(tmp_path):
    """A results folder with one number in it, and a page that shows it."""
    metrics = {"test MAE r2 (bohr²)": 1.25, "parameters": 333457.0}
    write(tmp_path / "results", "q1", "train/r-G_L3", metrics, done=43)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results.md").write_text(PAGE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def tables_only(monkeypatch):
    """As where matplotlib is not installed."""
    monkeypatch.setattr("g2n2.reports.report.can_draw", lambda: False)


def places(folder):
    return "--results", folder / "results", "--out", folder / "out", "--root", folder


def test_nothing_measured_yet_is_said_and_is_no_error(tmp_path):
    done = call(*places(tmp_path))
    assert done.exit_code == 0, done.output
    assert "no result in" in done.output
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert text.count("No result of ours yet") == 5
    assert "0.0703" in text  # published columns are there all the same


def test_tables_figures_and_a_page_that_stands_alone(some):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    done = call(*places(some))
    assert done.exit_code == 0, done.output
    out = some / "out"
    assert (out / "q1.png").stat().st_size > 5000
    assert (out / "q1.svg").read_text("utf-8").startswith("<?xml")
    assert "| 333,457 | 1.25 ◐ | 1 of 3 × 43 of 300 epochs, partial |" in (
        out / "report.md"
    ).read_text("utf-8")
    html = (out / "report.html").read_text("utf-8")
    assert "<svg viewBox" in html
    assert "src=" not in html
    assert "http" not in html.split("<body>")[1].replace("http://www.w3.org", "")


def test_pages_are_filled_found_fresh_and_found_stale_again(some):
    page = some / "docs" / "results.md"
    assert call(*places(some), "--check").exit_code == 1
    assert page.read_text("utf-8") == PAGE
    assert not (some / "out").exists()
    assert call(*places(some), "--write-docs").exit_code == 0
    filled = page.read_text("utf-8")
    assert "1.25 ◐" in filled
    assert filled.endswith("<!-- /results:q1 -->\n\nby hand\n")
    assert "](images/results/q1.png)" in filled
    assert (some / "docs" / "images" / "results" / "q1.png").is_file()
    assert call(*places(some), "--check").exit_code == 0
    write(some / "results", "q1", "train/r-G_L3", {"test MAE r2 (bohr²)": 1.5})
    stale = call(*places(some), "--check")
    assert stale.exit_code == 1
    assert "stale: docs/results.md" in stale.output.replace("\\", "/")


def test_records_of_the_harness_check_are_left_aside_unless_asked_for(some, tables_only):
    write(some / "results", "q2", "collapse/u0", {"parameters": 7.0}, budget="smoke")
    call(*places(some))
    text = (some / "out" / "report.md").read_text("utf-8")
    assert "1 records of the `smoke` budget are left aside" in text
    assert "collapse/u0" not in text
    call(*places(some), "--smoke")
    assert "| collapse/u0 |" in (some / "out" / "report.md").read_text("utf-8")


def test_a_cell_no_table_knows_is_listed_all_the_same(some, tables_only):
    write(some / "results", "q1", "odd/one", {"something": 0.5})
    call(*places(some))
    assert not (some / "out" / "q1.png").exists()
    assert "| q1 odd/one | something 0.5 |" in (some / "out" / "report.md").read_text("utf-8")


def test_pages_are_neither_checked_nor_written_without_matplotlib(some, monkeypatch):
    pytest.importorskip("matplotlib", reason="the pages are written once with it")
    call(*places(some), "--write-docs")
    before = (some / "docs" / "results.md").read_text("utf-8")
    assert "![" in before
    for place in ("report", "insertion"):
        monkeypatch.setattr(f"g2n2.reports.{place}.can_draw", lambda: False)
    for option in ("--check", "--write-docs"):
        done = call(*places(some), option)
        assert isinstance(done.exception, DataError)
        assert "matplotlib" in str(done.exception)
    assert (some / "docs" / "results.md").read_text("utf-8") == before


def test_what_cannot_be_drawn_is_said_before_a_page_is_written(some):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    response = {"eigenvalues": [0.0, 1.0], "truth": [1.0, 0.0], "learned": [1.0]}
    runs = {"runs": [], "response": response}
    score = {"test R² (median of runs)": 0.5}
    write(some / "results", "q4", "band/PPGN/layers-3", score, detail=runs, config={"steps": 4})
    before = (some / "docs" / "results.md").read_text("utf-8")
    for option in ((), ("--write-docs",)):
        done = call(*places(some), *option)
        assert isinstance(done.exception, DataError), option
        assert "some record of q4 lacks what its figure shows" in str(done.exception)
    assert (some / "docs" / "results.md").read_text("utf-8") == before


def test_a_folder_of_records_that_cannot_be_read_is_said_to_be(some):
    call(*places(some), "--write-docs")
    before = (some / "docs" / "results.md").read_text("utf-8")
    (some / "results" / "q2").write_text("no folder")
    done = call(*places(some), "--write-docs")
    assert isinstance(done.exception, DataError)
    assert "cannot read the records in" in str(done.exception)
    assert (some / "docs" / "results.md").read_text("utf-8") == before


def test_pages_are_compared_with_results_only(some):
    done = call("--results", some / "typo", "--root", some, "--check")
    assert isinstance(done.exception, DataError)
    assert "no result in" in str(done.exception)


def test_contrary_options_are_refused(some):
    done = call(*places(some), "--check", "--write-docs")
    assert isinstance(done.exception, DataError)


def test_our_own_pages_are_those_of_our_own_records():
    root = Path(__file__).parents[2]
    done = call("--results", str(root / "results"), "--root", str(root), "--check")
    assert done.exit_code == 0, done.output


def test_records_of_the_smoke_budget_are_named_where_there_is_nothing_else(tmp_path, tables_only):
    write(tmp_path / "results", "q1", "train/r-G_L3", {}, budget="smoke")
    assert "--smoke shows 1 of the smoke budget" in call(*places(tmp_path)).output


def test_smoke_numbers_are_kept_out_of_the_pages(some, tables_only):
    before = (some / "docs" / "results.md").read_text("utf-8")
    done = call(*places(some), "--smoke", "--write-docs")
    assert isinstance(done.exception, DataError)
    assert (some / "docs" / "results.md").read_text("utf-8") == before


def test_a_record_changed_by_hand_is_looked_for_in_its_folder(some, tables_only):
    write(some / "results", "q4", "band/PPGN/layers-3", {"median": 1.0}, config={"steps": None})
    done = call(*places(some))
    assert isinstance(done.exception, DataError)
    assert str(some / "results" / "q4") in str(done.exception)
