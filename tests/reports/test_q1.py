"""Q1's table, and what it says of the paper's claims."""

import pytest

from g2n2.experiments.q1 import GRAMMARS
from g2n2.reports.q1 import section
from g2n2.reports.standings import read_results
from made_up_records import write


def fill(folder, errors, **changes):
    for name, error in errors.items():
        for seed in range(3):
            metrics = {"test MAE r2 (bohr²)": error + 0.01 * seed, "parameters": 1000.0}
            write(folder, "q1", f"train/{name}", metrics, seed=seed, **changes)


def made(folder):
    return section(read_results(folder))


def test_empty_says_so_and_draws_nothing(tmp_path):
    found = made(tmp_path)
    assert "No result of ours yet" in found.blocks[0].text
    assert found.drawing is None
    assert [aim.verdict for aim in found.aims] == ["not run yet"] * 2


def test_rows_show_mean_deviation_work_and_exact_power(tmp_path):
    fill(tmp_path, {"r-G_L3": 1.0})
    exact = {"pairs separated": 270, "pairs separated, 3 layers": 209, "pairs": 400}
    write(tmp_path, "q1", "exact/r-G_L3/network", exact, unit="pairs", done=400, planned=400)
    table = made(tmp_path).blocks[0]
    row = next(row for row in table.rows if row[0] == "r-G_L3")
    assert row == ("r-G_L3", "1,000", "1.01 ± 0.01", "3 × 300 epochs", "–", "209 / 270 of 400")
    assert len(table.rows) == 9


def test_the_claims_hold_or_not(tmp_path):
    errors = dict.fromkeys(GRAMMARS, 2.0) | {"r-G_L3": 1.0, "G_L3": 0.995}
    fill(tmp_path, errors)
    relevant, ablated = made(tmp_path).aims
    assert (relevant.verdict, ablated.verdict) == ("met", "met")
    fill(tmp_path, {"r-G_L3-diagonal": 1.01})  # deviations of 0.01 each
    ablated = made(tmp_path).aims[1]
    assert ablated.found.endswith("; within the deviations for r-G_L3 ∖ {diag(V_c)}")
    assert ablated.verdict == "open: too few seeds"
    fill(tmp_path, {"r-G_L3-diagonal": 0.5, "G_L3": 0.5}, done=10)
    relevant, ablated = made(tmp_path).aims
    assert relevant.verdict == "**not reproduced**, by partial runs"
    assert ablated.found == "not for r-G_L3 ∖ {diag(V_c)}"


def test_one_ablation_missing_leaves_the_claim_open(tmp_path):
    fill(tmp_path, {"r-G_L3": 1.0, "r-G_L3-diagonal": 2.0})
    assert made(tmp_path).aims[1].verdict == "not run yet"


def powers(folder, proved=1, **changes):
    exact = {"pairs separated": 213, "pairs separated, 3 layers": 209, "pairs": 400}
    content = {"unit": "pairs", "done": 400, "planned": 400} | changes
    write(folder, "q1", "exact/r-G_L3/network", exact | {"proved": proved}, **content)
    (table,) = (block for block in made(folder).blocks if hasattr(block, "rows"))
    return next(row[-1] for row in table.rows if row[0] == "r-G_L3")


def test_what_is_not_proved_is_a_bound(tmp_path):
    assert powers(tmp_path) == "209 / 213 of 400"
    detail = {"by_layer": [0, 0, 189, 209, 212, 213, 213]}
    assert powers(tmp_path, proved=0, detail=detail) == "209 / 213 up to 6 layers, of 400"
    assert powers(tmp_path, proved=0) == "209 / 213 up to some layers, of 400"


def test_exact_power_of_earlier_settings_is_marked(tmp_path):
    assert powers(tmp_path, config={"grammar": "G_L1"}) == "209 / 213 of 400 ◐"


def test_the_figure_says_what_is_not_proved(tmp_path):
    pyplot = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib")
    fill(tmp_path, {"r-G_L3": 1.0})
    powers(tmp_path, proved=0)
    drawing, figure = made(tmp_path).drawing, pyplot.Figure()
    drawing.draw(figure)
    assert "not proved" in drawing.alt
    assert "≥ 213" in [text.get_text() for text in figure.axes[1].texts]
