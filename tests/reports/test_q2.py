"""Q2's tables against the published columns."""

import pytest

from g2n2.reports.q2 import section
from g2n2.reports.standings import read_results
from made_up_records import write

UNITS = dict.fromkeys(("homo", "lumo", "gap", "zpve", "u0", "u", "h", "g"), "hartree") | {
    "mu": "D",
    "alpha": "bohr³",
    "r2": "bohr²",
    "cv": "cal/(mol K)",
}
ORDER = ["mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u", "h", "g", "cv"]
JOINT = "0.102 0.196 0.0021 0.00211 0.00287 1.19 0.000151 0.0502 0.0503 0.0503 0.0504 0.0707"


def metric(target):
    return f"test MAE {target} ({UNITS[target]})"


def made(folder):
    return section(read_results(folder))


def tables(folder):
    return [block for block in made(folder).blocks if hasattr(block, "rows")]


def row(table, start):
    return next(row for row in table.rows if row[0].startswith(start))


def test_empty_shows_all_published_columns_and_says_what_is_missing(tmp_path):
    found = made(tmp_path)
    assert "No result of ours yet" in found.blocks[0].text
    single, variants, joint, *_ = tables(tmp_path)
    assert row(single, "R²") == (
        "R² (a₀²)", "34.1", "22.9", "17.0", "19.3", "20.5", "18.64", "3.78", "**0.342**", "–", "–",
    )  # fmt: skip
    assert row(joint, "μ")[:3] == ("μ (D)", "0.231", "**0.102**")
    assert variants.headers[1:4] == ("G²N²", "PPGN", "PPGN, equal time")
    assert [line[0] for line in variants.rows] == ["R² (a₀²)", "U₀ (hartree)", "parameters"]
    assert row(variants, "R²")[2:4] == ("–", "–"), "what nobody asks for has no place"
    assert {aim.verdict for aim in found.aims} == {"not run yet"}


def test_ours_stands_beside_them_bold_where_best_and_marked_where_partial(tmp_path):
    write(tmp_path, "q2", "single/r2/distance/G2N2/modern", {metric("r2"): 0.25}, done=43)
    write(tmp_path, "q2", "single/mu/distance/G2N2/modern", {metric("mu"): 0.08})
    single = tables(tmp_path)[0]
    assert row(single, "R²")[-2:] == ("**0.250 ◐**", "1 × 43 of 300 epochs, partial")
    assert row(single, "μ")[-3:] == ("**0.0703**", "0.0800", "1 × 300 epochs")
    alone = made(tmp_path).aims[0]
    assert alone.found == "below on 1 of 2 run; above on μ; one seed each"
    assert alone.verdict == "**missed**, by partial runs"


def joint(folder, share):
    bars = [float(text) for text in JOINT.split()]
    metrics = {metric(t): share * bar for t, bar in zip(ORDER, bars, strict=True)}
    write(folder, "q2", "joint/width32/distance/G2N2/modern", metrics)


def test_jointly_zpve_is_held_against_what_was_likely_meant(tmp_path):
    joint(tmp_path, 0.9)
    assert made(tmp_path).aims[2].verdict == "met"
    joint(tmp_path, 1.1)
    assert made(tmp_path).aims[2].verdict == "**missed**"


@pytest.mark.parametrize("share", [0.9995, 1.0005])
def test_what_differs_behind_the_printed_digits_is_equal(tmp_path, share):
    joint(tmp_path, share)
    aim = made(tmp_path).aims[2]
    assert aim.found.startswith("below on 0 of 12 run; equal to the printed digits on μ, α,")
    assert "above" not in aim.found
    assert aim.verdict == "**missed**"


def test_an_optional_run_has_its_column_and_its_line(tmp_path):
    metrics = {metric("mu"): 0.3, "parameters": 267_137}
    write(tmp_path, "q2", "single/mu/distance/PPGN/paper", metrics)
    variants = tables(tmp_path)[1]
    place = variants.headers.index("PPGN, paper recipe")
    assert row(variants, "μ")[place] == "0.300 (1 × 300)"
    assert row(variants, "parameters")[place] == "267,137"


def test_what_was_given_up_is_shown(tmp_path):
    joint(tmp_path, 1.0)
    assert not any("Given up" in b.text for b in made(tmp_path).blocks if hasattr(b, "text"))
    (tmp_path / "withdrawn").mkdir()
    (tmp_path / "q2").rename(tmp_path / "withdrawn/q2-rate")
    assert any("Given up" in b.text for b in made(tmp_path).blocks if hasattr(b, "text"))
    (table,) = (t for t in tables(tmp_path) if t.headers == ("target", "G²N²"))
    assert row(table, "R²") == ("R² (a₀²)", "1.19")


def test_some_targets_below_and_the_others_not_run_leaves_the_aim_open(tmp_path):
    write(tmp_path, "q2", "single/r2/distance/G2N2/modern", {metric("r2"): 0.25})
    assert made(tmp_path).aims[0].verdict == "open: not all run yet"


def test_equal_time_and_seconds_per_epoch(tmp_path):
    name = "joint/width32/distance/PPGN/modern/equal-time"
    write(tmp_path, "q2", name, {metric("mu"): 0.3}, done=170, planned=170)
    speed = {"seconds per epoch G2N2": 4.0, "seconds per epoch PPGN": 6.0, "PPGN / G2N2": 1.5}
    write(tmp_path, "q2", "speed/single/distance", speed)
    _, _, joint, wide, *others = tables(tmp_path)
    (seconds,) = (table for table in others if table.headers[0] == "seconds per epoch")
    place = joint.headers.index("PPGN, equal time")
    assert row(joint, "μ")[place] == "0.300"
    assert row(joint, "seeds")[place] == "1 × 170 epochs"
    assert {line[-1] for line in wide.rows} == {"·", ""}, "at width 64 it is optional"
    assert row(wide, "μ")[-2] == "–", "and PPGN with the epochs of G²N² is not"
    assert row(seconds, "each target")[1:6] == ("129", "98", "6.00", "4.00", "1.50")


def test_what_the_extent_costs_other_targets_is_said_at_equal_work(tmp_path):
    name = "joint/width32/distance/G2N2/modern"
    write(tmp_path, "q2", name, {metric("mu"): 0.2, metric("alpha"): 0.4})
    write(tmp_path, "q2", f"{name}/extent", {metric("mu"): 0.21, metric("alpha"): 0.39})

    def cost():
        (found,) = (t for t in tables(tmp_path) if t.headers == ("target", "width 32", "width 64"))
        return row(found, "μ"), row(found, "α"), row(found, "R²")

    assert cost() == (("μ", "+5.0 %", "–"), ("α", "−2.5 %", "–"), ("R²", "–", "–"))
    write(tmp_path, "q2", name, {metric("mu"): 0.2}, done=100)
    assert cost()[0] == ("μ", "–", "–"), "other epochs are no comparison"


@pytest.mark.parametrize(
    ("epochs", "said"), [(40, ""), (48, "R² alone 48 epochs, by this one 40.")]
)
def test_an_equal_time_of_an_earlier_timing_is_said(tmp_path, epochs, said):
    """60 epochs of G²N² take as long as 40 of a network with epochs half as long again."""
    name = "single/r2/distance/PPGN/modern"
    write(tmp_path, "q2", name, {metric("r2"): 1.0}, done=60, planned=60)
    write(tmp_path, "q2", f"{name}/equal-time", {metric("r2"): 1.0}, done=epochs, planned=epochs)
    write(tmp_path, "q2", "speed/single/distance", {"PPGN / G2N2": 1.5})
    texts = [block.text for block in made(tmp_path).blocks if hasattr(block, "text")]
    (found,) = (text for text in texts if "only the ratio compares" in text)
    assert found.partition("earlier timing: ")[2] == said


def test_half_precision_is_compared_with_tf32(tmp_path):
    for seed, (half, full) in enumerate([(1.0, 0.9), (1.2, 1.1)]):
        for bits, value in (("bf16", half), ("tf32", full)):
            name = f"precision/r2/{bits}"
            write(tmp_path, "q2", name, {metric("r2"): value}, seed=seed, done=3, planned=3)
    *_, precision = tables(tmp_path)
    assert row(precision, "R²")[3] == "+10.0 % ◐", "1.1 against 1.0, by two of three seeds"
    assert row(precision, "U₀")[3] == "–"


def precision(folder, bits, seeds, **changes):
    for seed in range(seeds):
        write(folder, "q2", f"precision/r2/{bits}", {metric("r2"): 1.0}, seed=seed, **changes)


def test_half_precision_is_compared_with_the_same_work_only(tmp_path):
    precision(tmp_path, "bf16", 3)
    precision(tmp_path, "tf32", 3)
    assert row(tables(tmp_path)[-1], "R²")[3:] == ("+0.0 %", "3 × 300 epochs")
    precision(tmp_path, "bf16", 3, done=200)
    works = "bf16 3 × 200 of 300 epochs, partial; tf32 3 × 300 epochs"
    assert row(tables(tmp_path)[-1], "R²")[3:] == ("–", works)


def test_a_number_in_another_unit_is_not_shown(tmp_path):
    cell = "single/u0/distance/G2N2/modern"
    write(tmp_path, "q2", cell, {"test MAE u0 (meV)": 12.0})
    assert row(tables(tmp_path)[0], "U₀")[-2:] == ("–", "1 × 300 epochs")
    assert made(tmp_path).aims[0].verdict == "not run yet"


@pytest.mark.parametrize(
    ("spreads", "verdict"),
    [
        ([0.9] * 20, "met"),
        ([0.9] * 19 + [0.05], "**missed**"),
        ([0.9] * 5, "open: not all run yet"),
    ],
)
def test_runs_that_die(tmp_path, spreads, verdict):
    key = "spread of predictions / spread of targets"
    for seed, spread in enumerate(spreads):
        write(tmp_path, "q2", "collapse/u0", {key: spread}, seed=seed, done=5, planned=5)
    assert made(tmp_path).aims[-1].verdict == verdict


def test_r2_less_its_extent_has_a_line_and_an_aim_of_its_own(tmp_path):
    for target in ORDER:
        write(tmp_path, "q2", f"single/{target}/distance/G2N2/modern", {metric(target): 1e-6})
    write(tmp_path, "q2", "single/r2/distance/G2N2/modern", {metric("r2"): 0.9})
    write(tmp_path, "q2", "single/r2/distance/G2N2/modern/extent", {metric("r2"): 0.1})
    single = tables(tmp_path)[0]
    names = [line[0] for line in single.rows]
    start = names.index("R² (a₀²)")
    others = ["R² (a₀²), 300 epochs", "R² (a₀²), less its extent"]
    assert names[start + 1 : start + 3] == others
    assert row(single, "R² (a₀²), less")[-2] == "**0.100**"
    assert [aim.verdict for aim in made(tmp_path).aims[:2]] == ["**missed**", "met"]
    assert made(tmp_path).aims[3].verdict == "not run yet"


def test_an_aim_goes_by_the_longer_run_once_it_has_come_farther(tmp_path):
    for target in ORDER:
        write(tmp_path, "q2", f"single/{target}/distance/G2N2/modern", {metric(target): 1e-6})
    shorter = {"done": 60, "planned": 60}
    write(tmp_path, "q2", "single/r2/distance/G2N2/modern", {metric("r2"): 0.9}, **shorter)
    longer = "single/r2/distance/G2N2/modern/long"
    write(tmp_path, "q2", longer, {metric("r2"): 0.3}, done=60)
    assert row(tables(tmp_path)[0], "R² (a₀²), 300")[-2] == "**0.300 ◐**"
    assert made(tmp_path).aims[0].verdict == "**missed**"
    write(tmp_path, "q2", longer, {metric("r2"): 0.3}, config={"width": 1})
    assert made(tmp_path).aims[0].verdict == "**missed**", "earlier settings decide nothing"
    write(tmp_path, "q2", longer, {metric("r2"): 0.3}, done=61)
    found = made(tmp_path).aims[0]
    assert found.verdict == "met, by partial runs"
    assert "R² with 61 of 300 epochs" in found.found
    write(tmp_path, "q2", longer, {metric("r2"): 0.3})
    found = made(tmp_path).aims[0]
    assert (found.verdict, found.found) == (
        "met",
        "below on 12 of 12 run; R² with 300 epochs; one seed each",
    )


def test_what_was_met_by_whole_runs_is_not_undone_by_less(tmp_path):
    for target in ORDER:
        shorter = {"done": 60, "planned": 60}
        name = f"single/{target}/distance/G2N2/modern"
        write(tmp_path, "q2", name, {metric(target): 1e-6}, **shorter)
    longer = "single/r2/distance/G2N2/modern/long"
    for less in (
        {"done": 61},  # stopped
        {"budget": "short"},
        {"config": {"width": 1}},  # earlier settings
    ):
        write(tmp_path, "q2", longer, {metric("r2"): 0.9}, **less)
        assert made(tmp_path).aims[0].verdict == "met", less
        for path in (tmp_path / "q2").glob("*long*"):
            path.unlink()
    write(tmp_path, "q2", longer, {})
    assert made(tmp_path).aims[0].verdict == "met", "no number is no number"
    write(tmp_path, "q2", longer, {metric("r2"): 0.9})
    assert made(tmp_path).aims[0].verdict == "**missed**", "a whole run counts, met or not"


def test_the_extent_has_columns_in_the_joint_table(tmp_path):
    bars = [float(text) for text in JOINT.split()]
    metrics = {metric(t): 0.5 * bar for t, bar in zip(ORDER, bars, strict=True)}
    write(tmp_path, "q2", "joint/width32/distance/G2N2/modern/extent", metrics)
    joint_table = tables(tmp_path)[2]
    place = joint_table.headers.index("G²N², less the extent")
    assert row(joint_table, "R²")[place] == "**0.595**"
    assert [aim.verdict for aim in made(tmp_path).aims[2:4]] == ["not run yet", "met"]


def test_what_the_sums_alone_give_has_a_table(tmp_path):
    write(tmp_path, "q2", "sums/extent", {metric("r2"): 2.5, "parameters": 21}, done=1, planned=1)
    table = next(t for t in tables(tmp_path) if t.headers[-1] == "with the extent")
    assert row(table, "R²")[1:] == ("–", "2.50")
    assert row(table, "numbers fitted")[1:] == ("–", "21")
