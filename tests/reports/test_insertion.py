"""Marked parts of pages: filled, found stale, refused where they are broken."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.errors import DataError
from g2n2.reports.insertion import insert, stale_pages, write_pages
from g2n2.reports.report import QUESTIONS, sections
from g2n2.reports.standings import read_results
from made_up_records import write

PAGE = "before\n<!-- results:q1 -->\nold\n<!-- /results:q1 -->\nafter\n"


def test_only_what_stands_between_markers_changes():
    made = insert(PAGE, {"q1": r"new \1 |x|"}, "page.md")
    assert made == PAGE.replace("old", r"new \1 |x|")
    assert insert(made, {"q1": r"new \1 |x|"}, "page.md") == made


def test_an_empty_pair_on_successive_lines_is_filled():
    page = "<!-- results:q1 -->\n<!-- /results:q1 -->"
    assert insert(page, {"q1": "x"}, "p") == "<!-- results:q1 -->\nx\n<!-- /results:q1 -->"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- results:q9 -->\n<!-- /results:q9 -->", r"results:q9; there are q1"),
        ("<!-- results:q1 -->", "results:q1 has no partner"),
        ("<!-- results:q1 -->\n<!-- /results:q2 -->", "has no partner"),
        ("by hand", "page.md has no marker; write .* NAME one of q1"),
    ],
)
def test_broken_markers_are_named(page, message):
    with pytest.raises(DataError, match=message):
        insert(page, {"q1": "x"}, "page.md")


@pytest.fixture
def root(tmp_path):
    """A folder with two pages, and records beside them."""
    metrics = {"test MAE r2 (bohr²)": 1.25, "parameters": 1000.0}
    write(tmp_path / "results", "q1", "train/r-G_L3", metrics)
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "docs/results.md"):
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    return tmp_path


def test_the_page_of_results_shows_every_question_and_its_protocol():
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    for name in (*QUESTIONS, *(f"{question}-protocol" for question in QUESTIONS)):
        assert page.count(f"<!-- results:{name} -->") == 1, name


def filled(root, results="results"):
    found = read_results(root / results)
    return write_pages(root, found, sections(found))


def stale(root):
    found = read_results(root / "results")
    return stale_pages(root, found, sections(found))


def pages(root):
    return [(root / name).read_bytes() for name in ("README.md", "docs/results.md")]


def test_nothing_to_check_is_an_error(root):
    filled(root)
    assert stale(root) == []
    (root / "docs" / "results.md").unlink()
    with pytest.raises(DataError, match=r"results\.md is not there; name the folder .* --root"):
        stale(root)


def test_a_page_without_markers_is_an_error(root):
    (root / "README.md").write_text("by hand", encoding="utf-8")
    with pytest.raises(DataError, match=r"README\.md has no marker"):
        stale(root)


def test_a_missing_figure_is_stale(root):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    filled(root)
    figure = root / "docs" / "images" / "results" / "q1.png"
    figure.unlink()
    assert stale(root) == [figure]
    filled(root)
    assert stale(root) == []
    whole = figure.read_bytes()
    figure.write_bytes(whole[: len(whole) // 2])
    assert stale(root) == [figure]


def test_a_figure_of_other_numbers_is_stale(root):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    filled(root)
    figure = root / "docs" / "images" / "results" / "q1.png"
    before = figure.read_bytes()
    metrics = {"test MAE r2 (bohr²)": 1.26, "parameters": 1000.0}
    write(root / "results", "q1", "train/r-G_L3", metrics)
    filled(root)
    assert stale(root) == []
    figure.write_bytes(before)
    assert stale(root) == [figure]


def test_no_results_empty_no_page(root):
    filled(root)
    before = pages(root)
    with pytest.raises(DataError, match=r"no result in .*nowhere: the pages keep the numbers"):
        filled(root, "nowhere")
    assert pages(root) == before


def test_a_root_that_is_not_there_is_not_made(root):
    found = read_results(root / "results")
    with pytest.raises(DataError, match="is not there"):
        write_pages(root / "nowhere", found, sections(found))
    assert not (root / "nowhere").exists()


def test_a_page_in_another_encoding_is_named(root):
    (root / "README.md").write_bytes(PAGE.encode("utf-16"))
    with pytest.raises(DataError, match=r"README\.md is not UTF-8"):
        filled(root)


def test_a_page_that_is_read_only_is_named_and_no_other_is_written(root, monkeypatch):
    locked = root / "docs" / "results.md"
    monkeypatch.setattr(os, "access", lambda path, _: path != locked)
    before = pages(root)
    with pytest.raises(DataError, match=r"results\.md is read-only"):
        filled(root)
    assert pages(root) == before


def test_pages_are_written_whole_or_not_at_all(root, monkeypatch):
    def full(file, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("g2n2.atomic_files.put", full)
    before = pages(root)
    with pytest.raises(DataError, match=r"cannot write .*README\.md: No space left"):
        filled(root)
    assert pages(root) == before


def test_the_command_fails_where_nothing_is_checked(root):
    words = ["report", "--check", "--results", str(root / "results")]
    done = CliRunner().invoke(app, [*words, "--root", str(root / "nowhere")])
    assert isinstance(done.exception, DataError)
    done = CliRunner().invoke(app, [*words, "--root", str(root)])
    assert done.exit_code == 1
