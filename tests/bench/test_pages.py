"""Results kept as JSON, and the tables and the figure made of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from g2n2.bench.cases import CASES, GROUPS
from g2n2.bench.pages import MARKED, write_page
from g2n2.bench.results import Result, probe, read_results, write_results
from g2n2.bench.tables import TITLES, headers, number, rows
from g2n2.errors import DataError

MACHINE = {
    "device": "NVIDIA H200",
    "cpu": "a CPU",
    "threads": 2,
    "torch": "2.13.0",
    "triton": "3.7.1",
    "bandwidth_gb_per_second": 4100.0,
    "peak_tflops": {"bf16": 790.0},
}


def result(name, **changes):
    case = next(case for case in CASES if case.name == name)
    figures = {
        "graphs_per_second": 51_234.5,
        "tflops": 47.1,
        "share_of_peak": 0.0596,
        "spread": 0.01,
        "flops_per_byte": 298.0,
        "peak_bytes": 3 * 1024**3,
    }
    peers = {"reference": {"ratio": 9.876}, "block-diagonal": {"skipped": "needs about 130 GiB"}}
    made = Result(case.name, case.group, "measured", case.settings(), figures, {}, peers)
    return replace(made, **{"made_with": MACHINE, **changes})


def test_results_come_back_as_they_were_written(tmp_path):
    first = result("train-32-bf16")
    (path,) = write_results(tmp_path, [first])
    assert path.name == "training.nvidia-h200.json"
    (again,) = read_results(tmp_path)
    assert again.figures == first.figures
    assert again.floor == first.floor
    assert again.met


def test_a_case_measured_again_replaces_its_result_and_no_other(tmp_path):
    write_results(tmp_path, [result("train-32-bf16"), result("train-128-bf16")])
    slower = result("train-32-bf16", figures={"graphs_per_second": 10.0})
    write_results(tmp_path, [slower])
    write_results(tmp_path, [result("train-32-bf16", made_with=MACHINE | {"device": "cpu"})])
    found = {(r.case, r.device): r for r in read_results(tmp_path, "training")}
    assert len(found) == 3
    assert found["train-32-bf16", "nvidia-h200"].figures == {"graphs_per_second": 10.0}
    assert found["train-32-bf16", "nvidia-h200"].met is False
    assert found["train-128-bf16", "nvidia-h200"].met is False, "51,235 is below 100,000"


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "training.cpu.json").write_text('[{"case": 1}]')
    with pytest.raises(DataError, match="delete it and measure again"):
        read_results(tmp_path)


def test_a_place_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match="cannot write"):
            probe(folder)
        with pytest.raises(DataError, match="cannot write"):
            write_results(folder, [result("train-32-bf16")])
    probe(tmp_path / "new" / "folder")
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_every_group_has_a_title():
    assert set(TITLES) == set(GROUPS)


def test_a_row_says_what_was_measured():
    cells = dict(
        zip(headers("training"), rows([result("train-32-bf16")], "training")[0], strict=True)
    )
    assert cells == {
        "case": "train-32-bf16",
        "graphs/s": "51,200",
        "spread": "1.0 %",
        "TFLOP/s": "47.1",
        "of peak": "6.0 %",
        "GiB": "3",
        "× reference": "9.88",
        "× PPGN": "–",
        "× block-diagonal": "needs about 130 GiB",
        "floor": "≥ 50,000 graphs/s",
        "met": "yes",
    }


def test_a_row_without_figures_says_why():
    broken = result("width-16", status="differs", figures={}, peers={}, reason="off by 1")
    (row,) = rows([broken], "width")
    assert row == ("16", "differs from the reference: off by 1", "–", "–", "–", "–")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123456, "0.0123"), (1.5, "1.5"), (98.76, "98.8"), (123456.0, "123,000"), (0.0, "0")],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_the_marked_places_of_a_page_are_filled_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- bench:training -->\nold\n<!-- /bench -->\nbetween\n"
        "<!-- bench:product -->\n<!-- /bench -->\n<!-- bench:machines -->\n<!-- /bench -->\nafter\n"
    )
    write_results(tmp_path, [result("train-32-bf16")])
    assert write_page(page, tmp_path) == ["training", "product", "machines"]
    text = page.read_text()
    assert "old" not in text
    assert "| train-32-bf16 | 51,200 |" in text
    assert "*Not measured yet: `g2n2 bench --case product`.*" in text
    assert "| NVIDIA H200 | 790 | – | – | 4,100 | torch 2.13.0, triton 3.7.1 |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    write_page(page, tmp_path)
    assert page.read_text() == text


def test_a_page_with_an_unknown_table_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench:speed -->\n<!-- /bench -->\n")
    with pytest.raises(DataError, match="asks for the table 'speed'"):
        write_page(page, tmp_path)


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words\n")
    write_results(tmp_path, [result("train-32-bf16")])
    with pytest.raises(DataError, match="no place for a table"):
        write_page(page, tmp_path)


def test_a_folder_without_results_leaves_a_page_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench:training -->\nold\n<!-- /bench -->\n")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="holds no results"):
            write_page(page, folder)
    assert "old" in page.read_text()


def test_a_page_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench:training -->\n<!-- /bench -->\n")
    write_results(tmp_path, [result("train-32-bf16")])

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DataError, match=r"cannot write .*page\.md.*No space left"):
        write_page(page, tmp_path)


def test_the_performance_page_has_a_table_for_every_group():
    text = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    marked = {match[1] for match in MARKED.finditer(text)}
    assert marked == {case.group for case in CASES} | {"machines"}


def test_the_roofline_is_drawn_of_measured_cases_only(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from g2n2.bench.roofline import draw_roofline

    path = tmp_path / "roofline.png"
    assert not draw_roofline(path, [result("train-32-bf16", figures={})])
    assert not path.exists()
    assert draw_roofline(path, [result("train-32-bf16"), result("batch-1")])
    assert path.read_bytes().startswith(b"\x89PNG")


def test_our_own_page_is_that_of_our_own_results(tmp_path):
    root = Path(__file__).parents[2]
    page = tmp_path / "performance.md"
    page.write_text(
        (root / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8"
    )
    write_page(page, root / "results" / "bench")
    assert page.read_text(encoding="utf-8") == (root / "docs" / "performance.md").read_text("utf-8")
