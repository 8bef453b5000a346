"""Pages: tables recomputed from raw JSON, marks, staleness, facts that say what records say."""

import json
import re
import shutil
from pathlib import Path
from statistics import fmean, stdev

import pytest
from typer.testing import CliRunner

from g2n2.errors import DataError
from g2n2_paper.cli import app
from g2n2_paper.record import CellRecord
from g2n2_paper.report import facts, tu
from g2n2_paper.report.pages import Pages
from g2n2_paper.report.tables import Results, Sources, TableEntry, bold, cited, table, written

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def results() -> Results:
    return Results(ROOT / "results")


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages(ROOT / "results", ROOT)


def raw(question: str, name: str) -> dict:
    return json.loads((ROOT / "results" / question / f"{name}.json").read_text("utf-8"))


def rows_of(page: str) -> dict[str, list[list[str]]]:
    """First cell of every table row of a page to the other cells; bold is taken off."""
    found: dict[str, list[list[str]]] = {}
    for line in (ROOT / page).read_text("utf-8").splitlines():
        if line.startswith("|"):
            first, *cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
            found.setdefault(first, []).append(cells)
    return found


def test_the_committed_pages_and_figures_are_current(pages):
    assert pages.stale() == []


def test_entries_are_recomputed_from_the_records():
    """Without any code of the package: raw JSON on one side, the committed pages on the other."""
    page = rows_of("docs/results-appendix.md")
    seeds = [raw("q1", f"train-r-G_L3.s{s}")["metrics"]["test MAE r2 (bohr²)"] for s in range(3)]
    (row,) = page["r-G_L3"]
    assert row[1] == f"{fmean(seeds):.2f} ± {stdev(seeds):.2f}"
    joint = raw("q2", "joint-width32-distance-G2N2-modern.s0")["metrics"]
    assert f"{joint['test MAE cv (cal/(mol K))']:.4f}" in page["C_v (cal/(mol K))"][1]
    curves = raw("q3", "MUTAG-G2N2.s0")["detail"]["test curves"]
    best = max(range(30), key=lambda e: round(fmean(curve[e] for curve in curves), 3))
    mean = fmean(curve[best] for curve in curves)
    assert page["G²N², GIN's protocol"][0][0].startswith(f"{mean:.1f} ± ")
    runs = sorted(
        r["scores"]["test"] for r in raw("q4", "band-ChebNet-layers-3.s0")["detail"]["runs"]
    )
    median = (runs[4] + runs[5]) / 2
    chebnet = next(cells for cells in page["ChebNet"] if cells[0] == "3")
    assert chebnet[3] == f"{median:.4f} ({runs[0]:.4f}–{runs[-1]:.4f})"
    pairs = raw("power", "brec-G2N2-8.s0")["detail"]["pairs"]
    separated = [p for p in pairs if p["released"] == "separated"]
    assert page["G²N², 8 layers, ours"][0][-1] == str(len(separated))
    assert page["G²N², 8 layers, ours"][0][3] == str(sum(p["category"] == "CFI" for p in separated))


def test_paired_differences_have_the_error_of_overlapping_folds(results):
    ours, other = (raw("q3", f"NCI1-{m}.s0")["detail"]["nested"] for m in ("G2N2", "PPGN"))
    each = [a - b for a, b in zip(ours, other, strict=True)]
    mean, error = tu.differences(results)["NCI1", "PPGN"]
    assert mean == pytest.approx(sum(each) / 10)
    assert error == pytest.approx(stdev(each) * (1 / 10 + 1 / 9) ** 0.5)


def test_aims_that_are_missed_are_said_so(results):
    found = facts.all_facts(results)
    assert found["q1"]["comparable"] is False
    assert found["q2"]["alone"] == ["R²"] == found["q2"]["joint"]
    assert (found["q2"]["alone_extent"], found["q2"]["wide_extent"]) == ([], [])
    assert found["q2"]["joint_extent"] == ["ε_homo"], "equal to the printed digits is not below"
    assert found["q3"]["reached"] == []
    assert found["q4"]["random"]["above_90"] is False
    assert found["q4"]["chebyshev"]["above_95"] is True
    text = (ROOT / "docs" / "results.md").read_text("utf-8")
    aims = text[text.index("## Aims") :]
    assert aims.count("**missed**") == 7
    assert aims.count("**not reproduced**") == 2
    ratio = raw("q2", "speed-single-distance.s0")["metrics"]["PPGN / G2N2"]
    assert ratio < 1, "with distances in tf32 an epoch of PPGN is the shorter one"
    assert f"| PPGN / G²N²: one target with distances {ratio:.2f}; the same in bf16 1." in aims
    assert "| **not reproduced** in 1 of 4 |" in aims


def test_readme_has_six_lines_of_results():
    text = (ROOT / "README.md").read_text("utf-8")
    part = text[text.index("<!-- paper:readme -->") : text.index("<!-- /paper:readme -->")]
    assert len([line for line in part.splitlines() if line.startswith("|")]) == 2 + 6


def test_every_published_number_of_the_tables_is_in_cited_toml():
    assert cited("qm9-single").rows["r2"]["G²N²"].text == "0.342"
    zpve = cited("qm9-joint").rows["zpve"]["G²N²"]
    assert (zpve.text, zpve.number) == ("0.0000151", 0.000151)
    assert cited("tu").best("NCI1", ("WL kernel", "GNTK", "G²N²")) == ("GSNs", 83.5)
    assert cited("tu").rank(76.8, "IMDB-BINARY") == 3
    assert cited("tu").rows["WEGL"]["MUTAG"].value is None


@pytest.fixture
def copy(tmp_path) -> Path:
    """A root with pages, figures and records to change."""
    shutil.copytree(ROOT / "results", tmp_path / "results")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("reference"))
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    return tmp_path


def report(root: Path, *words: str):
    where = ["--results", str(root / "results"), "--root", str(root)]
    return CliRunner().invoke(app, ["report", *where, *words])


def test_a_changed_record_makes_pages_and_figures_stale(copy):
    path = copy / "results" / "power" / "brec-G2N2-8.s0.json"
    content = json.loads(path.read_text("utf-8"))
    content["metrics"]["trained separated"] = 123
    path.write_text(json.dumps(content))
    written = report(copy)
    assert written.exit_code == 0
    names = {line.rpartition("/")[2] for line in written.output.splitlines()}
    pages = {"README.md", "results.md", "results-appendix.md", "beyond-3wl.md"}
    assert names == {*pages, "power.png"}
    assert "| 123" in re.sub(r" +", " ", (copy / "docs" / "results.md").read_text("utf-8"))
    page = copy / "docs" / "performance.md"  # a table edited by hand: it alone is stale then
    page.write_text(re.sub(r"(?<=\| )\d+,\d00(?= )", "81,900", page.read_text("utf-8"), count=1))
    found = report(copy, "--check")
    assert found.exit_code == 1
    assert found.output == f"stale: {page}; run g2n2-paper report\n"


def test_headlines_of_speed_follow_the_records(copy):
    path = copy / "results" / "bench" / "training.nvidia-h200.json"
    rows = {row["case"]: row for row in json.loads(path.read_text("utf-8"))}
    fast, tf32 = rows["train-512-bf16-modern"], rows["train-128-tf32-modern"]
    fast["figures"]["graphs_per_second"] = 254321.0
    tf32["figures"]["graphs_per_second"] = 70000.0
    tf32["made_with"]["kernels"] = "others"
    path.write_text(json.dumps(list(rows.values())))
    pages = Pages(copy / "results", copy)
    told = pages.part("bench-headlines", "performance.md")
    assert "254,000 in batches of 512" in told
    missed = told.partition("Missed: ")[2]
    assert "`train-128-tf32-modern` (≥ 75,000 graphs/s, 70,000 graphs/s)" in missed
    assert "train-512" not in missed
    assert "`training` (NVIDIA H200)" in pages.part("bench-older", "performance.md")
    path.unlink()
    told = Pages(copy / "results", copy).part("bench-headlines", "performance.md")
    assert "– in batches of 512" in told, "what was not measured is a dash"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- paper:q1 -->\nhalf a mark", "the mark paper:q1 has no partner"),
        ("<!-- paper:nothing -->\n<!-- /paper:nothing -->", "asks for paper:nothing; there are"),
    ],
)
def test_bad_marks_are_told(pages, text, said):
    with pytest.raises(DataError, match=said):
        pages.fill(text, "page.md")


def test_a_missing_record_is_told_with_its_command(copy):
    (copy / "results" / "q1" / "train-G_L3.s0.json").unlink()
    (copy / "results" / "q1" / "train-G_L3.s1.json").unlink()
    (copy / "results" / "q1" / "train-G_L3.s2.json").unlink()
    with pytest.raises(DataError, match="q1 train/G_L3 has no record: g2n2-paper q1 --only"):
        Pages(copy / "results", copy)


@pytest.mark.parametrize(("marked", "lower"), [(0.1, "with"), (0.4, "without")])
def test_the_winner_among_networks_with_and_without_marks_is_the_records(copy, marked, lower):
    def record(cell: str, seed: int, **metrics: float) -> None:
        content = {key: {} for key in ("config", "data", "provenance", "detail")}
        sizes = {"done": 2, "unit": "epochs", "seconds": 1.0, "metrics": metrics}
        CellRecord(question="power", cell=cell, seed=seed, **{**content, **sizes}).write(
            copy / "results"
        )

    for name, error in (("G2N2-3", 0.2), ("G2N2Σ-2+1", marked)):
        for seed in range(3):
            metrics = {"test MAE penalised_logP": error + seed / 100, "parameters": 9.0}
            record(f"zinc/{name}", seed, **metrics)
    for name, errors in (("G2N2-3", (0.2, 0.2)), ("G2N2Σ-3", (marked, 0.3))):
        pair = {
            f"normalised test MAE {n}": e for n, e in zip(("K4", "7_cycle"), errors, strict=True)
        }
        record(f"counting/beyond/{name}", 0, **pair)
    pages = Pages(copy / "results", copy)
    zinc = pages.part("marks-zinc", "beyond-3wl.md")
    assert zinc.endswith(f"The network {lower} the mark has the lower mean error.")
    best = "**0.110 ± 0.010**" if marked < 0.2 else "**0.210 ± 0.010**"
    assert best in zinc
    counts = pages.part("marks-counting", "beyond-3wl.md")
    assert counts.endswith("on 1 of 8 counts: K4." if marked < 0.2 else "on 0 of 8 counts.")


def test_exp_with_a_mark_is_said_as_its_records_have_it(copy):
    """Epochs and folds stand below the table."""

    def record(folds: int) -> None:
        parts: dict = {key: {} for key in ("data", "provenance", "detail")}
        parts |= {"config": {"epochs": 120}, "metrics": {"test accuracy (%)": 99.5}}
        sizes = {"done": folds, "unit": "folds", "seconds": 1.0}
        cell = CellRecord(question="power", cell="exp/G2N2Σ-4+1", seed=0, **parts, **sizes)
        cell.write(copy / "results")

    def part() -> str:
        text = Pages(copy / "results", copy).part("marks-classes", "beyond-3wl.md")
        return re.sub(" +", " ", text)

    (copy / "results" / "power" / "exp-G2N2Σ-4+1.s0.json").unlink(missing_ok=True)
    assert "EXP is trained" not in part()
    record(8)
    assert part().endswith("weights for 120 epochs; 2 of its ten folds have not been run.")
    record(10)
    assert part().endswith("weights for 120 epochs, on all ten folds.")
    assert "| EXP | r-G_L3Σ, 4 + 1 layers | 99.5 | 1 × 10 folds |" in part()


def test_the_grammar_of_ppgn_in_other_blocks_is_told_once_its_pairs_are_judged(copy):
    path = copy / "results" / "power" / "brec-PPGN-alike.s0.json"

    def told(**metrics: float) -> dict | None:
        content = json.loads(path.read_text("utf-8"))
        content["metrics"] |= metrics
        content["done"] = 330
        path.write_text(json.dumps(content))
        return facts.all_facts(Results(copy / "results"))["power"]["alike"]

    judged = {"trained separated": 265, "separated beyond the bound": 1}
    assert told(**judged) == {"brec": "264", "missing": "70"}
    assert told(**{"judged within the bound": 269}) is None
    path.unlink()
    assert facts.all_facts(Results(copy / "results"))["power"]["alike"] is None


def test_runs_of_a_later_session_have_their_places(copy):
    """Aims and tables of the defaults on QM9 and of Errica's splits appear with their records."""
    for pattern in ("q2/*-defaults-*.json", "q3/errica-*.json"):
        for path in (copy / "results").glob(pattern):
            path.unlink()
    before = Pages(copy / "results", copy).texts()[copy / "docs" / "results.md"]
    line = next(line for line in before.splitlines() if "Errica's splits at least" in line)
    assert line.endswith("|  | open: not run yet |")
    line = next(line for line in before.splitlines() if "library's present defaults" in line)
    assert line.endswith("|  | open: not run yet |")

    def record(question: str, cell: str, unit: str, **metrics: float) -> None:
        write_record(copy, question, cell, metrics, unit=unit)

    for name, value in (("mu", 0.012), ("r2", 0.2)):
        key = f"test MAE {name} ({'D' if name == 'mu' else 'bohr²'})"
        record("q2", f"single/{name}/distance/G2N2+D/defaults/epochs-20", "epochs", **{key: value})
    accuracy, deviation = "test accuracy, mean of folds (%)", "deviation over folds (%)"
    for name, value in (("NCI1", 80.1), ("PROTEINS", 75.0)):
        metrics = {accuracy: value, deviation: 1.0}
        record("q3", f"errica/{name}/G2N2", "folds", **metrics)
    texts = Pages(copy / "results", copy).texts()
    page, appendix = (texts[copy / "docs" / name] for name in ("results.md", "results-appendix.md"))
    assert "| μ 0.0120, R² 0.200 | **missed** |" in page
    assert "| NCI1 80.1, PROTEINS 75.0 | **missed** |" in page
    assert "0.0120 (1 × 10)" in appendix
    assert "80.1 ± 1.0" in appendix


def write_record(
    root: Path,
    question: str,
    cell: str,
    metrics: dict[str, float],
    seed: int = 0,
    validation: tuple[float, ...] = (1.0,),
    unit: str = "epochs",
) -> None:
    parts = {key: {} for key in ("config", "data", "provenance")}
    sizes = {"done": 10, "unit": unit, "seconds": 1.0, "metrics": metrics}
    detail = {"detail": {"validation": list(validation)}}
    CellRecord(question=question, cell=cell, seed=seed, **parts, **sizes, **detail).write(
        root / "results"
    )


def test_of_several_runs_of_the_defaults_validation_chooses(copy):
    """Not the test error; of three seeds mean and deviation; other networks do not compete."""
    for path in (copy / "results").glob("q2/*-defaults-*.json"):
        path.unlink()
    key, runs = "test MAE u0 (hartree)", "single/u0/distance/{}/epochs-{}"

    def record(name: str, epochs: int, error: float, validation: float, seed: int = 0) -> None:
        metrics = {key: error, "parameters": 7.0, "seconds per epoch (training)": 2.5}
        curve = (9.0, validation, 5.0)
        write_record(copy, "q2", runs.format(name, epochs), metrics, seed, curve)

    def pages() -> tuple[str, str]:
        texts = Pages(copy / "results", copy).texts()
        return texts[copy / "docs" / "results.md"], texts[copy / "docs" / "results-appendix.md"]

    record("SchNet/published", 30, 0.1, 0.1)
    page, appendix = pages()
    assert "SchNet, 30 epochs" in appendix
    assert "of G²N² with the lowest" not in appendix
    assert "have not been run here" in page
    record("G2N2/defaults", 100, 0.0001, 0.3)
    for seed, error in enumerate((0.2, 0.3, 0.4)):
        record("G2N2/defaults/wider", 100, error, 0.2, seed)
    page, appendix = pages()
    assert "| U₀ 0.300 ± 0.100 | **missed** |" in page
    assert "aims): U₀ wide, 100 epochs (3 seeds)." in appendix
    record("G2N2/defaults/wider/width-128", 200, 0.0003, 0.29)
    record("G2N2/defaults/wider/tuned/width-128", 200, 0.0002, 0.19)
    page, appendix = pages()
    assert "| U₀ 0.000200 | open: not all run |" in page
    assert "aims): U₀ wide, tuned, width 128, 200 epochs." in appendix
    head = next(line for line in appendix.splitlines() if "SchNet, 30 epochs" in line)
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "target", "100 epochs", "wide, 100 epochs", "wide, width 128, 200 epochs",
        "wide, tuned, width 128, 200 epochs", "SchNet, 30 epochs",
    ]  # fmt: skip
    assert "0.300 ± 0.100 (3 × 10)" in appendix
    assert "For longer:" not in appendix
    record("G2N2/paper", 100, 0.5, 0.5)
    _, appendix = pages()
    assert "For longer: U₀ 0.500 after 100 epochs (the paper has 0.0169)." in appendix
    assert "G²N², paper recipe, 100 epochs" in appendix


def test_claims_of_speed_are_those_of_the_timed_records(copy):
    folder = copy / "results" / "q2"

    def verdict() -> str:
        page = Pages(copy / "results", copy).texts()[copy / "docs" / "results.md"]
        line = next(line for line in page.splitlines() if "learns faster than PPGN" in line)
        return line.rstrip("| ").rpartition("| ")[2]

    path = folder / "speed-single-distance.s0.json"
    content = json.loads(path.read_text("utf-8"))
    content["metrics"]["PPGN / G2N2"] = 1.02
    path.write_text(json.dumps(content))
    assert verdict() == "reproduced"
    path.unlink()
    assert verdict() == "open: not all run"


def test_grammars_at_equal_parameters_and_time_are_compared_once_they_are_run(copy):
    for path in (copy / "results").glob("q1/equal-*.json"):
        path.unlink()

    def record(cell: str, seed: int, error: float) -> None:
        metrics = {"test MAE r2 (bohr²)": error, "parameters": 7.0}
        write_record(copy, "q1", cell, metrics, seed)

    def pages() -> tuple[str, str]:
        texts = Pages(copy / "results", copy).texts()
        return texts[copy / "docs" / "results.md"], texts[copy / "docs" / "results-appendix.md"]

    page, appendix = pages()
    assert "At about equal parameters the two have not been run.\nAt equal time the two" in page
    assert page.count("present defaults |  | open: not run yet |") == 2
    assert "At equal parameters and at equal time" not in appendix
    record("equal-parameters/r-G_L3", 0, 0.5)
    page, appendix = pages()
    assert page.count("present defaults |  | open: not run yet |") == 2
    assert "at about equal parameters none of 0 other grammars run;" in appendix
    record("equal-parameters/G_L3", 0, 0.4)
    page, _ = pages()
    assert "0.500 and 0.400: one seed cannot tell them apart." in page
    assert "| open: one seed |" in page
    for seed in (1, 2):
        record("equal-parameters/r-G_L3", seed, 0.5 + seed / 100)
        record("equal-parameters/G_L3", seed, 0.4 + seed / 100)
    for seed in range(3):
        record("equal-time/G_L3", seed, 0.6)
        record("equal-time/four-rule", seed, 0.51)
    page, appendix = pages()
    assert "| 0.510 ± 0.010 and 0.410 ± 0.010 | **not reproduced** |" in page
    assert "| 0.510 ± 0.010 and 0.600 ± 0.000 | reproduced |" in page
    assert "At equal time, with the library's present defaults, the two errors are" in page
    assert "at about equal parameters G_L3 of 1 other grammars run;" in appendix
    assert "at equal time none of 2 other grammars run." in appendix
    part = appendix[appendix.index("**At equal parameters and at equal time**") :]
    row = next(line for line in part.splitlines() if line.startswith("| r-G_L3 "))
    assert row.count("0.510 ± 0.010") == 2, "it is the measure of both"


def test_networks_timed_one_after_the_other_stand_with_their_ratios(copy):
    before = Pages(copy / "results", copy).texts()[copy / "docs" / "results-appendix.md"]
    assert "epoch of 20,000" not in before
    seconds = {"seconds per epoch G2N2": 0.2, "seconds per epoch ViSNet": 5.0}
    write_record(copy, "q2", "speed/networks", seconds | {"ViSNet / G2N2": 25.0})
    path = copy / "results" / "q2" / "speed-networks.s0.json"
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content | {"provenance": {"device": "a GPU"}}))
    after = Pages(copy / "results", copy).texts()[copy / "docs" / "results-appendix.md"]
    table = after[after.index("Seconds per epoch of 20,000") :].splitlines()[2:6]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[2:] == [["G²N²", "0.20", "", "a GPU"], ["ViSNet", "5.00", "25.00", "a GPU"]]


def test_how_numbers_look():
    assert [written(v) for v in (0.00042345, 1.234, 171.2, -0.5, 0)] == [
        "0.000423", "1.23", "171", "−0.500", "0",
    ]  # fmt: skip
    assert written(1234.56, 1) == "1,234.6"
    entries = [
        TableEntry("1.20 ± 0.1", 1.201),
        TableEntry("1.20", 1.204),
        TableEntry("–"),
        TableEntry("3", 3.0),
    ]
    assert bold(entries, min) == ["**1.20 ± 0.1**", "**1.20**", "–", "3"]
    assert bold(entries[:1], min) == ["1.20 ± 0.1"], "one number is not the best of any"


def test_a_table_is_declared_by_rows_and_columns(results):
    """Keys in rows and sources in columns, or the reverse; a foot; what is bold; notes."""
    sizes = {"a": (3.0, 2.0), "b": (1.0, 2.0)}
    columns = {
        n: lambda row, i=i: TableEntry(f"{sizes[row][i]:g}", sizes[row][i])
        for i, n in enumerate("xy")
    }
    rows = {name: name for name in sizes}

    def cells(text: str) -> list[list[str]]:
        lines = [line.strip("|").split("|") for line in text.splitlines() if "|" in line]
        return [[cell.strip() for cell in line] for line in lines if ":-" not in line[0]]

    assert cells(table("h", rows, columns)) == [
        ["h", "x", "y"],
        ["a", "3", "2"],
        ["b", "1", "2"],
    ]
    by_row = cells(table("h", rows, columns, "lowest in row"))
    assert by_row[1:] == [["a", "3", "**2**"], ["b", "**1**", "2"]]
    by_column = cells(table("h", rows, columns, "highest in column"))
    assert by_column[1:] == [["a", "**3**", "**2**"], ["b", "1", "**2**"]]
    assert cells(table("h", columns, rows, "lowest in row"))[1] == ["x", "3", "**1**"]
    of_x = {
        "no": lambda _: TableEntry("–"),
        "x": lambda row: columns["x"](row) if row == "b" else "–",
    }
    assert cells(table("h", rows, of_x, run_only=True)) == [["h", "x"], ["b", "1"]]
    cell, sources = "single/{}/distance/G2N2/modern", Sources(results)
    by_target = table(
        "target",
        sources.targets("r2", "cv", unit=False),
        {"cited": sources.published("qm9-single", "{}", "DTNN"), "ours": sources.mae(cell)},
        "lowest in row",
        {"size": sources.sizes("r2")},
    )
    record = raw("q2", "single-r2-distance-G2N2-modern.s0")
    error = f"**{record['metrics']['test MAE r2 (bohr²)']:.3f}**"
    assert cells(by_target)[1:] == [
        ["R²", "17.0", error],
        ["C_v", "2.43 (a)", cells(by_target)[2][2]],
        ["size", "", f"{record['metrics']['parameters']:,}"],
    ]
    assert by_target.endswith("\n\n(a) repeats the cell of G above it: likely a slip.")


def test_every_record_is_in_the_table_of_records(results):
    page = (ROOT / "docs" / "results-appendix.md").read_text("utf-8")
    lines = [line.split("|") for line in page[page.index("## Records") :].splitlines()]
    cells = {(line[1].strip(), line[2].strip()) for line in lines if len(line) > 2}
    assert {(r.question, r.cell) for r in results.records} <= cells
