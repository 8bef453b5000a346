"""The power table against THEORY's anchors and against counts made another way."""

import json
from itertools import combinations

import pytest

from benchmark_files import real_suite
from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.power.separation import separate
from g2n2.power.suites import SameSizePairs, Suite
from g2n2.power.table import (
    PowerTable,
    _only,
    check_plot,
    draw_plot,
    power_row,
    wl_classes,
)


def test_row_counts_what_separating_pair_by_pair_counts():
    atlas = [g for g in load_suite("atlas").graphs if len(g) == 5]
    suite = Suite("five", tuple(atlas), SameSizePairs.of(atlas))
    grammar = find_grammar("M → MM | A; S → Tr(M)")
    row = power_row(grammar, suite)
    apart = sum(separate(grammar, g, h).different for g, h in combinations(atlas, 2))
    assert row.separated == apart
    assert row.pairs == 34 * 33 // 2
    assert row.pairs - row.separated == 1  # one cospectral pair on five nodes: K1,4 and C4 + K1


@pytest.mark.parametrize(
    ("grammar", "merged", "is_1wl", "is_2fwl"),
    [("r-G_L3", 0, False, True), ("r-G_L1", 26, True, False), ("V → AV | 1", 48, False, False)],
)
def test_atlas_pairs_left(grammar, merged, is_1wl, is_2fwl):
    row = power_row(find_grammar(grammar), load_suite("atlas"))
    assert row.pairs - row.separated == merged
    assert (row.equals_1wl, row.equals_2fwl) == (is_1wl, is_2fwl)


def test_a_grammar_without_a_name_is_called_by_its_rules():
    row = power_row(Grammar.parse("V → AV | 1"), load_suite("csl"))
    assert row.grammar == "{V_c → AV_c | 1}"


def test_generated_suites():
    csl = power_row(find_grammar("r-G_L3"), load_suite("csl"))
    assert (csl.separated, csl.pairs, csl.equals_2fwl, csl.exact) == (45, 45, True, True)
    cfi = power_row(find_grammar("r-G_L3"), load_suite("cfi"))
    assert {name: apart for name, (apart, _) in cfi.by_category.items()} == {
        "C3": 1, "K4-e": 1, "K2,3": 1, "K4": 0,
    }  # fmt: skip
    for name, count in (("r-G_L3 ∖ {M⊙M}", 0), ("PPGN", 1)):
        assert power_row(find_grammar(name), load_suite("cfi")).separated == count


def test_the_exhaustive_grammar_has_the_power_of_the_reduced_one():
    suite = load_suite("cfi")
    exhaustive = power_row(Fragment.parse("L3").exhaustive(), suite)
    assert exhaustive.separated == power_row(find_grammar("r-G_L3"), suite).separated == 3


def test_strongly_regular_graphs_stay_merged():
    sr25 = power_row(find_grammar("r-G_L3"), real_suite("sr25"))
    assert (sr25.separated, sr25.pairs, sr25.exact) == (0, 105, True)


@pytest.mark.slow
def test_brec_is_2fwl_pair_for_pair_and_goes_as_deep_as_it_must():
    row = power_row(find_grammar("r-G_L3"), real_suite("brec"))
    assert row.equals_2fwl
    assert row.exact
    assert row.by_layer[1:10] == (0, 0, 191, 209, 212, 227, 257, 268, 270)
    assert row.depth == 9
    counts = {name: apart for name, (apart, _) in row.by_category.items()}
    assert counts == {
        "Basic": 60, "Regular": 50, "Extension": 100, "CFI": 60,
        "4-Vertex_Condition": 0, "Distance_Regular": 0,
    }  # fmt: skip


def test_verdicts_are_compared_pair_by_pair_with_equal_counts_of_other_pairs():
    graphs = tuple(load_suite("csl").graphs[:4])
    suite = Suite("four", graphs, SameSizePairs.of(graphs))
    assert _only(suite, [0, 0, 1, 2], [0, 1, 1, 2]) == (1, 1)
    assert _only(suite, [0, 0, 1, 2], [0, 0, 0, 1]) == (2, 0), "the second merges two pairs more"
    assert _only(suite, [0, 0, 1, 2], [5, 5, 3, 4]) == (0, 0)
    listed = Suite("pairs", graphs, ((0, 1), (2, 3)))
    assert _only(listed, [0, 0, 1, 2], [7, 7, 7, 8]) == (0, 0)
    assert _only(listed, [0, 0, 1, 2], [7, 8, 7, 7]) != (0, 0)


def test_wl_classes_compare_across_a_suite():
    suite = load_suite("cfi")
    two = wl_classes(suite, 2)
    assert [two[i] != two[j] for i, j in suite.pairs] == [True, True, True, False]


def test_printed_forms_hold_the_numbers():
    row = power_row(find_grammar("r-G_L3 ∖ {MM}"), load_suite("cfi"), layers=3)
    assert json.loads(json.dumps(row.to_json()))["separated"] == 0
    assert "| cfi | 4 | 0" in PowerTable([row]).to_markdown()
    assert "(to 3 layers)" in PowerTable([row]).to_markdown()


def test_the_plot_is_drawn_and_refused_before_anything_is_measured(tmp_path):
    row = power_row(find_grammar("r-G_L3"), load_suite("cfi"), layers=4)
    draw_plot([row], tmp_path / "power.svg")
    drawn = (tmp_path / "power.svg").read_text()
    assert "<svg" in drawn
    assert "layers" in drawn or "path" in drawn
    for bad in (tmp_path / "power.nope", tmp_path / "none" / "power.svg"):
        with pytest.raises(DataError, match="cannot"):
            check_plot(bad)


def test_a_grammar_without_sentences_tells_nothing_apart():
    row = power_row(Fragment.parse("1").exhaustive(), load_suite("cfi"))
    assert (row.separated, row.readout) == (0, "none")
    assert separate(Fragment.parse("1").exhaustive(), "A?", "A_").verdict == "same"
