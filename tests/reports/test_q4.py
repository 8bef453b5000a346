"""Q4's table, ceilings and aims."""

import pytest

from g2n2.reports.q4 import best_places, section
from g2n2.reports.standings import read_results
from made_up_records import write


def runs(folder, name, network, layers, score, best_steps=(0, 40, 50), **changes):
    metrics = {
        "test R² (median of runs)": score,
        "test R² (worst run)": score - 0.1,
        "test R² (best run)": score + 0.00001,
    }
    response = {"eigenvalues": [0.0, 1.0], "learned": [1.0, 0.0], "truth": [1.0, 0.1]}
    content = {"done": 10, "planned": 10, "unit": "runs"} | changes
    cell = f"{name}/{network}/layers-{layers}"
    detail = {"response": response, "runs": [{"best_step": step} for step in best_steps]}
    write(folder, "q4", cell, metrics, detail=detail, **content)


def made(folder):
    return section(read_results(folder))


def rows(folder):
    networks, ceilings = (block for block in made(folder).blocks if hasattr(block, "rows"))
    return {row[:2]: row[2:] for row in networks.rows}, {row[0]: row[1:] for row in ceilings.rows}


def test_empty_shows_what_is_published(tmp_path):
    networks, ceilings = rows(tmp_path)
    assert networks["PPGN, cited", ""] == ("0.9991", "0.9925", "0.1041", "", "", "10")
    assert networks["G²N²", "6"] == ("–", "–", "–", "– / – / –", "–", "–")
    assert set(ceilings.values()) == {("–",) * 3}
    assert made(tmp_path).drawing is None


def test_a_row_has_median_range_and_runs(tmp_path):
    runs(tmp_path, "band", "PPGN", 3, 0.5, done=4, config={"steps": 1000, "rate": 0.02})
    networks, _ = rows(tmp_path)
    assert networks["PPGN", "3"] == (
        "–",
        "–",
        "0.5000 (0.4000–0.5000) ◐",
        "– / – / 40",
        "–",
        "– / – / 4 of 10, partial, earlier settings; at most 1,000 steps at rate 0.02",
    )
    assert networks["ChebNet, cited", ""][2] == "**0.8217**"
    assert made(tmp_path).drawing is not None


def test_runs_alike_for_all_filters_are_said_once(tmp_path):
    for name in ("low", "high", "band"):
        runs(tmp_path, name, "PPGN", 3, 0.5, config={"steps": 1000, "rate": 3e-6})
    said = "10, earlier settings; at most 1,000 steps at rate 3e-06"
    assert rows(tmp_path)[0]["PPGN", "3"][-1] == said


def test_runs_that_died_are_counted(tmp_path):
    runs(tmp_path, "band", "PPGN", 3, 0.5)
    (path,) = (tmp_path / "q4").glob("*.json")
    path.write_text(path.read_text().replace('"best_step": 40', '"best_step": 40, "died": true'))
    networks, _ = rows(tmp_path)
    assert networks["PPGN", "3"][-1].endswith("; 1 died")


def test_ceilings_are_read_by_filter(tmp_path):
    key = "band: true filter with the border repeated, test R²"
    write(tmp_path, "q4", "ceilings", {key: 0.973}, done=1, planned=1, unit="fits")
    _, ceilings = rows(tmp_path)
    assert ceilings["the true filter, border pixels repeated"] == ("–", "–", "0.9730")


def test_ceilings_of_a_smaller_budget_are_marked(tmp_path):
    key = "band: true filter with the border repeated, test R²"
    write(tmp_path, "q4", "ceilings", {key: 0.973}, budget="short", done=1, planned=1, unit="fits")
    _, ceilings = rows(tmp_path)
    assert ceilings["the true filter, border pixels repeated"][2] == "0.9730 ◐"


def test_a_best_step_that_is_the_last_is_marked(tmp_path):
    ends = (1000, 900, 1000)
    runs(tmp_path, "low", "PPGN", 3, 0.5, ends, config={"steps": 1000})
    networks, _ = rows(tmp_path)
    assert networks["PPGN", "3"][3] == "1,000+ / – / –"


@pytest.mark.parametrize(
    ("scores", "verdicts"),
    [
        ({"band": 0.93, "low": 0.9996, "high": 0.999}, ("met", "**missed**")),
        ({"band": 0.96, "low": 0.9996, "high": 0.999}, ("met", "met")),
        ({"band": 0.96, "low": 0.9, "high": 0.999}, ("**missed**", "**missed**")),
        ({"band": 0.96}, ("open: not all run yet", "open: not all run yet")),
    ],
)
def test_band_pass_counts_only_where_the_others_are_kept(tmp_path, scores, verdicts):
    for name, score in scores.items():
        runs(tmp_path, name, "G2N2-chebyshev", 6, score)
    runs(tmp_path, "band", "ChebNet", 3, 0.99)  # not ours to be proud of
    runs(tmp_path, "band", "G2N2-solved", 5, 0.99)  # neither random nor by Chebyshev
    aims = made(tmp_path).aims
    assert tuple(aim.verdict for aim in aims if "Chebyshev start" in aim.text) == verdicts
    assert {aim.verdict for aim in aims if "random weights" in aim.text} == {"not run yet"}


def test_a_network_is_drawn_at_the_depth_that_is_best_at_band_pass(tmp_path):
    for layers, band, low in ((3, 0.4, 0.99), (5, 0.6, 0.5), (6, 0.2, 1.0)):
        runs(tmp_path, "band", "G2N2", layers, band)
        runs(tmp_path, "low", "G2N2", layers, low)
    runs(tmp_path, "low", "GCN", 3, 0.9)
    known = read_results(tmp_path).of("q4")
    assert best_places(known) == {"G²N²": ("G2N2", 5), "GCN": ("GCN", 3)}


@pytest.mark.parametrize(
    ("band", "verdicts"),
    [
        (0.5, {"**missed**"}),  # whatever the rest of the runs at low-pass would be
        (0.97, {"met, by partial runs"}),
    ],
)
def test_partial_runs_matter_where_band_pass_reaches_the_bar(tmp_path, band, verdicts):
    runs(tmp_path, "band", "G2N2", 3, band)
    runs(tmp_path, "high", "G2N2", 3, 0.9999)
    runs(tmp_path, "low", "G2N2", 3, 0.9999, done=4, planned=10)
    aims = [aim for aim in made(tmp_path).aims if "random weights" in aim.text]
    assert {aim.verdict for aim in aims} == verdicts
