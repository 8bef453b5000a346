"""The report as a whole: what it says of records no table shows."""

from g2n2.reports.report import sections
from g2n2.reports.report import write as write_report
from g2n2.reports.standings import read_results
from made_up_records import write


def text(folder, **options):
    results = read_results(folder / "results", **options)
    write_report(sections(results), results, folder / "out")
    return (folder / "out" / "report.md").read_text("utf-8")


def test_the_page_tells_how_every_question_was_asked(tmp_path):
    said = text(tmp_path).split("**Protocol.** ")[1:]
    begins = ("QM9, target R²", "130,831 molecules", "Six sets", "Three 30 × 30 grids", "G²N² with")
    assert [one.startswith(begin) for one, begin in zip(said, begins, strict=True)] == [True] * 5
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "<strong>Protocol.</strong> QM9, target R²" in page


def test_records_that_stand_aside_are_said(tmp_path):
    write(tmp_path / "results", "q1", "train/G_L3", {"x": 1.0})
    assert "stand aside" not in text(tmp_path)
    write(tmp_path / "results", "q1", "train/G_L3", {"x": 1.0}, budget="short")
    write(tmp_path / "results", "q1", "train/G_L3", {"x": 1.0}, seed=1, done=3)
    assert "2 records of smaller budgets, stopped runs, earlier settings" in text(tmp_path)


def test_where_there_are_only_records_of_the_harness_check_their_option_is_named(tmp_path):
    write(tmp_path / "results", "q1", "train/G_L3", {"x": 1.0}, budget="smoke")
    assert "`--smoke` shows" in text(tmp_path)
    assert "no result in" not in text(tmp_path, harness=True)
