"""Trained power beside exact power."""

import pytest

from g2n2.reports.power import section
from g2n2.reports.standings import read_results
from made_up_records import write

CATEGORIES = {"Basic": 60, "Regular": 50, "Extension": 100, "CFI": 48}
NONE = {"4-Vertex_Condition": 1, "Distance_Regular": 3}


def brec(folder, name, apart, beyond=0, pairs=400, within=None, **changes):
    metrics = {
        "trained separated": apart,
        "trained separated, clear of noise": apart - 5,
        "separated beyond the bound": beyond,
        "judged within the bound": within,
        "exact separated": 222,
        "exact bound": 270,
        "pairs": pairs,
        **{f"trained separated, {key}": n for key, n in (CATEGORIES | NONE).items()},
    }
    content = {"done": pairs, "planned": pairs, "unit": "pairs"} | changes
    write(folder, "power", f"brec/{name}", metrics, **content)


def made(folder):
    return section(read_results(folder))


def tables(folder):
    return [
        {row[0]: row[1:] for row in block.rows}
        for block in made(folder).blocks
        if hasattr(block, "rows")
    ]


def test_categories_are_joined_as_in_the_published_table(tmp_path):
    brec(tmp_path, "G2N2-8", 261)
    published, beside, *_ = tables(tmp_path)
    assert published["G²N², 8 layers, ours"] == ("**60**", "54", "**100**", "**48**", "261")
    assert published["PPGN, cited"][-1] == "233"
    assert published["3-WL, the test, cited"][0] == "60"  # no network, so never bold
    assert beside["G²N², 8 layers"][-3:] == ("222", "270", "1 × 400 pairs")


def test_pairs_that_no_weights_tell_apart_may_be_missing(tmp_path):
    brec(tmp_path, "G2N2-8", 261, within=270, done=320, planned=400)
    brec(tmp_path, "G2N2-5", 200, within=269, done=269, planned=400)
    published, *_ = tables(tmp_path)
    assert published["G²N², 8 layers, ours"][-1] == "261 ◐"
    assert published["G²N², 8 layers, ours"][0] == "**60 ◐**"
    assert set(published["G²N², 5 layers, ours"]) == {"–"}


def test_a_sample_or_half_of_the_pairs_is_not_set_beside_the_published_totals(tmp_path):
    brec(tmp_path, "G2N2-8", 30, pairs=48)
    brec(tmp_path, "G2N2-5", 100, done=200, planned=400)
    published, beside, *_ = tables(tmp_path)
    assert set(published["G²N², 8 layers, ours"] + published["G²N², 5 layers, ours"]) == {"–"}
    assert beside["G²N², 8 layers"][0] == "30 ◐", "the full budget asks for more pairs"
    assert beside["G²N², 8 layers"][-2] == "270 of 48 ◐"
    assert beside["G²N², 5 layers"][0] == "100 ◐"
    assert beside["G²N², 5 layers"][-3] == "222"  # nothing trained, nothing partial
    brec(tmp_path, "G2N2-3", 216, budget="short")
    published, *_ = tables(tmp_path)
    assert set(published["G²N², 3 layers, ours"]) == {"–"}, "other epochs, other number"


def test_a_whole_run_that_suffices_stands_for_the_aim(tmp_path):
    brec(tmp_path, "G2N2-8", 268, done=350, planned=400)
    brec(tmp_path, "G2N2-5", 265)
    (aim,) = made(tmp_path).aims
    assert (aim.verdict, aim.found) == ("met", "G²N², 5 layers: 265")


@pytest.mark.parametrize(
    ("apart", "beyond", "done", "verdict"),
    [
        (258, 0, 400, "met"),
        (260, 3, 400, "**missed**"),
        (258, 0, 390, "met, by partial runs"),
        (100, 0, 200, "open: not all run yet"),
    ],
)
def test_the_aim_counts_nothing_beyond_the_bound(tmp_path, apart, beyond, done, verdict):
    brec(tmp_path, "G2N2-8", apart, beyond, done=done, planned=400)
    brec(tmp_path, "PPGN", 400)  # another network's number is no aim of ours
    assert made(tmp_path).aims[0].verdict == verdict


def test_accuracies_exact_pairs_and_counts(tmp_path):
    metrics = {
        "test accuracy (%)": 99.5,
        "deviation over folds (%)": 0.25,
        "exact separated": None,
        "exact bound": 600,
        "pairs": 600,
    }
    write(tmp_path, "power", "exp/GNNML3", metrics, done=4, planned=10, unit="folds")
    counts = {"normalised test MAE 6_cycle": 0.0071}
    write(tmp_path, "power", "counting/6_cycle/G2N2-5", counts)
    merged = {"merged by random weights": 312, "exact separated": 61_788_174, "pairs": 61_788_486}
    write(tmp_path, "power", "graph8c/GIN", merged)
    _, _, sets, counting = tables(tmp_path)
    assert sets["GNNML3, 5 layers"][2:4] == ("99.5 ± 0.2 ◐", "at most 600 of 600 ◐")
    assert sets["GIN, 5 layers"][6:8] == ("312", "312")
    assert counting["6-cycle, alone"][1] == "0.00710"


def test_one_fold_has_no_deviation(tmp_path):
    metrics = {"test accuracy (%)": 6.7, "deviation over folds (%)": 0.0}
    write(tmp_path, "power", "sr25/GIN", metrics, done=1, planned=1, unit="folds")
    write(tmp_path, "power", "csl/GIN", metrics, done=5, planned=5, unit="folds")
    _, _, sets, _ = tables(tmp_path)
    assert (sets["GIN, 5 layers"][4], sets["GIN, 5 layers"][0]) == ("6.7", "6.7 ± 0.0")


def test_exact_numbers_of_a_smaller_budget_are_marked(tmp_path):
    short = {"budget": "short", "done": 1, "planned": 1}
    merged = {"exact separated": 90, "pairs": 100}
    write(tmp_path, "power", "graph8c/GIN", merged, **short)
    counted = {"pairs merged": 20, "pairs merged, other triangle": 7}
    write(tmp_path, "power", "counting/exact/GIN", counted, **short)
    brec(tmp_path, "G2N2-8", 261, budget="short")
    _, beside, sets, counting = tables(tmp_path)
    assert sets["GIN, 5 layers"][7] == "10 ◐"
    assert counting["triangle, exact: pairs it differs in"][-1] == "7 of 20 ◐"
    assert beside["G²N², 8 layers"][-3] == "222 ◐"


def test_the_figure_explains_no_hatching_that_it_does_not_show(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="figures need matplotlib")

    def explained():
        figure = pyplot.Figure()
        made(tmp_path).drawing.draw(figure)
        return [text.get_text() for text in figure.legends[0].get_texts()]

    brec(tmp_path, "G2N2-8", 268)
    assert "trained, released test" in explained()
    assert "the same, partial" not in explained()
    brec(tmp_path, "G2N2-5", 265, done=350, planned=400)
    assert "the same, partial" in explained()
