"""Records of a cell, put together."""

import pytest

from g2n2.errors import DataError
from g2n2.reports.standings import read_results
from made_up_records import write


def test_mean_and_deviation_over_seeds(tmp_path):
    for seed, value in enumerate((1.0, 2.0, 6.0)):
        write(tmp_path, "q2", "a/b", {"error (D)": value}, seed=seed)
    standing = read_results(tmp_path).of("q2")["a/b"]
    found = standing.mean("error (D)")
    assert (found.value, found.seeds, found.partial) == (3.0, 3, False)
    assert found.spread == pytest.approx(7**0.5)  # sample deviation: (4 + 1 + 9) / 2
    assert standing.mean("error") is None  # a number is asked for with its unit
    assert standing.work == "3 × 300 epochs"


def test_one_seed_has_no_deviation_and_none_is_no_number(tmp_path):
    write(tmp_path, "q1", "a", {"error": 1.0, "other": None})
    standing = read_results(tmp_path).of("q1")["a"]
    assert standing.mean("error").spread is None
    assert standing.mean("other") is None


def test_partial_runs_say_how_far_they_came(tmp_path):
    write(tmp_path, "q1", "a", {"error": 1.0}, seed=0, done=43)
    write(tmp_path, "q1", "a", {"error": 1.0}, seed=1, done=299)
    standing = read_results(tmp_path).of("q1")["a"]
    assert standing.work == "2 × 43–299 of 300 epochs, partial"
    assert standing.mean("error").partial


def test_the_largest_budget_counts_and_smoke_never_does(tmp_path):
    write(tmp_path, "q1", "a", {"error": 5.0}, budget="short", seed=0)
    write(tmp_path, "q1", "a", {"error": 1.0}, budget="full", seed=1)
    write(tmp_path, "q1", "a", {"error": 9.0}, budget="smoke", seed=2)
    write(tmp_path, "q1", "b", {"error": 9.0}, budget="smoke")
    results = read_results(tmp_path)
    assert results.of("q1")["a"].values("error") == [1.0]
    assert list(results.of("q1")) == ["a"]
    assert results.left_aside == 2
    assert set(read_results(tmp_path, harness=True).of("q1")) == {"a", "b"}


def test_nothing_there_is_empty_and_rubbish_is_named(tmp_path):
    assert read_results(tmp_path / "absent").empty
    (tmp_path / "q3").mkdir()
    (tmp_path / "q3" / "x.s0.full.json").write_text("{}")
    with pytest.raises(DataError, match=r"x\.s0\.full\.json is no result"):
        read_results(tmp_path)


def test_a_smaller_budget_is_partial_too_and_says_so(tmp_path):
    write(tmp_path, "q1", "a", {"error": 1.0}, budget="short", done=12, planned=12)
    standing = read_results(tmp_path).of("q1")["a"]
    assert standing.work == "1 × 12 epochs, short budget"
    assert standing.mean("error").partial


def test_cells_remember_what_was_found(tmp_path):
    write(tmp_path, "q1", "a", {})
    write(tmp_path, "q1", "b", {})
    cells = read_results(tmp_path).of("q1")
    assert cells.get("a") is not None
    assert cells.get("c") is None
    assert cells.seen == {"a"}


def test_runs_that_were_stopped_stand_beside_no_run_that_ended(tmp_path):
    """Three epochs of eight say nothing about eight."""
    write(tmp_path, "q1", "train/G_L3", {"x": 1.0}, seed=0, budget="short", done=8, planned=8)
    write(tmp_path, "q1", "train/G_L3", {"x": 9.0}, seed=1, budget="short", done=3, planned=8)
    write(tmp_path, "q1", "train/G_L3", {"x": 5.0}, seed=0, budget="full", done=9, planned=200)
    standing = read_results(tmp_path).of("q1")["train/G_L3"]
    assert (standing.budget, standing.values("x")) == ("short", [1.0])
    write(tmp_path, "q1", "train/G_L3", {"x": 5.0}, seed=0, budget="full", done=100, planned=200)
    standing = read_results(tmp_path).of("q1")["train/G_L3"]
    assert (standing.budget, standing.values("x"), standing.partial) == ("full", [5.0], True)
    write(tmp_path, "q1", "train/i-G_L3", {"x": 9.0}, seed=1, budget="short", done=3, planned=8)
    alone = read_results(tmp_path).of("q1")["train/i-G_L3"]
    assert (alone.stopped, alone.values("x")) == (True, [9.0])


def test_a_full_run_that_is_half_done_stands_before_an_ended_short_one(tmp_path):
    """Units of two budgets are not the same work: runs of 10 epochs, and of 50."""
    write(tmp_path, "q3", "PTC/GIN", {"x": 1.0}, budget="short", done=20, planned=20)
    write(tmp_path, "q3", "PTC/GIN", {"x": 2.0}, budget="full", done=9, planned=20)
    assert read_results(tmp_path).of("q3")["PTC/GIN"].values("x") == [1.0]
    write(tmp_path, "q3", "PTC/GIN", {"x": 2.0}, budget="full", done=10, planned=20)
    assert read_results(tmp_path).of("q3")["PTC/GIN"].values("x") == [2.0]


def test_seeds_of_other_lengths_do_not_share_a_number(tmp_path):
    write(tmp_path, "q1", "train/G_L3", {"x": 1.0}, seed=0, done=12, planned=12)
    write(tmp_path, "q1", "train/G_L3", {"x": 5.0}, seed=1, done=40, planned=40)
    assert read_results(tmp_path).of("q1")["train/G_L3"].values("x") == [5.0]


def test_a_record_of_other_settings_than_its_cell_has_now_says_so(tmp_path):
    cell = "joint/width32/distance/G2N2/modern"
    write(tmp_path, "q2", cell, {"error": 1.0}, config={"rate": 0.7})
    write(tmp_path, "q2", "sums/extent", {"error": 1.0}, config={"extent": True, "rate": 0.7})
    cells = read_results(tmp_path).of("q2")
    assert cells[cell].work == "1 × 300 epochs, earlier settings"
    assert cells[cell].mean("error").partial
    assert not cells["sums/extent"].outdated  # a fit has no rate


def test_missing_seeds_make_a_number_partial(tmp_path):
    write(tmp_path, "q1", "train/r-G_L3", {"error": 1.0}, done=12, planned=12, seed=1)
    standing = read_results(tmp_path).of("q1")["train/r-G_L3"]
    assert standing.work == "1 of 3 × 12 epochs"
    assert standing.mean("error").partial
    for seed in (0, 2):
        write(tmp_path, "q1", "train/r-G_L3", {"error": 1.0}, done=12, planned=12, seed=seed)
    standing = read_results(tmp_path).of("q1")["train/r-G_L3"]
    assert standing.work == "3 × 12 epochs"
    assert not standing.partial


def test_seeds_of_other_settings_are_never_averaged_with_those_of_now(tmp_path):
    write(tmp_path, "q2", "collapse/u0", {"x": 1.0}, seed=0)
    write(tmp_path, "q2", "collapse/u0", {"x": 9.0}, seed=1, config={"rate": 0.7})
    standing = read_results(tmp_path).of("q2")["collapse/u0"]
    assert standing.values("x") == [1.0]
    assert not standing.outdated


def test_a_seed_the_budget_does_not_ask_for_stands_among_no_others(tmp_path):
    cell = "train/r-G_L3"
    for seed in range(3):
        write(tmp_path, "q1", cell, {"x": 1.0}, seed=seed)
    write(tmp_path, "q1", cell, {"x": 9.0}, seed=7, config={"rate": 0.7})
    results = read_results(tmp_path)
    assert results.of("q1")[cell].values("x") == [1.0] * 3
    assert not results.of("q1")[cell].partial
    assert results.outdone == 1


def test_a_seed_no_longer_asked_for_is_marked_where_there_is_no_other(tmp_path):
    write(tmp_path, "q1", "train/r-G_L3", {"x": 9.0}, seed=7)
    write(tmp_path, "q1", "gone", {"x": 9.0}, seed=7)
    cells = read_results(tmp_path).of("q1")
    assert cells["train/r-G_L3"].outdated
    assert not cells["gone"].outdated  # the question has no such cell by now


def test_records_that_stand_aside_are_counted(tmp_path):
    write(tmp_path, "q1", "a", {"x": 1.0}, seed=0)
    write(tmp_path, "q1", "a", {"x": 1.0}, seed=1, done=3)
    write(tmp_path, "q1", "a", {"x": 1.0}, seed=0, budget="short")
    write(tmp_path, "q1", "a", {"x": 1.0}, seed=0, budget="smoke")
    results = read_results(tmp_path)
    assert (results.outdone, results.left_aside) == (2, 1)
