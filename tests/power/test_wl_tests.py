"""WL tests by name."""

from __future__ import annotations

import pytest

from g2n2.data.suites import load_suite
from g2n2.errors import GrammarError
from g2n2.power.refinement import refine
from g2n2.power.table import refinement_history, wl_classes, wl_row
from g2n2.power.wl_tests import TWO_FWL, WLTest


@pytest.mark.parametrize(
    ("text", "name", "folklore"),
    [
        ("1-WL", "1-WL", 1),
        ("2-WL", "2-WL", 1),
        ("3-WL", "3-WL", 2),
        ("4-wl", "4-WL", 3),
        ("1fwl", "1-FWL", 1),
        (" 2-FWL ", "2-FWL", 2),
        ("3 FWL", "3-FWL", 3),
    ],
)
def test_spellings(text: str, name: str, folklore: int) -> None:
    assert WLTest.find(text) == WLTest(name, folklore)


@pytest.mark.parametrize("text", ["r-G_L3", "WL", "1-WLs", "x1-WL", "", "wl-1"])
def test_other_texts_name_none(text: str) -> None:
    assert WLTest.find(text) is None


@pytest.mark.parametrize("text", ["0-WL", "5-WL", "4-FWL", "99-WL"])
def test_tests_that_cannot_be_run_are_refused(text: str) -> None:
    with pytest.raises(GrammarError, match="cannot be run; known: 1-WL to 4-WL, 1-FWL to 3-FWL"):
        WLTest.find(text)


@pytest.mark.parametrize(("k", "name"), [(2, "2-WL"), (3, "3-WL")])
def test_the_folklore_test_tells_apart_what_the_oblivious_one_does(k: int, name: str) -> None:
    """The equality the class rests on, on all graphs of 5 nodes and the CFI pairs."""
    test = WLTest.find(name)
    assert test is not None
    five = [graph for graph in load_suite("atlas").graphs if len(graph) == 5]
    for graphs in (five, load_suite("cfi").graphs[:4]):
        oblivious = refine(graphs, k, "wl").graph_colours
        folklore = test.refine(graphs).graph_colours
        pairs = [(i, j) for i in range(len(graphs)) for j in range(i)]
        assert all((oblivious[i] == oblivious[j]) == (folklore[i] == folklore[j]) for i, j in pairs)


def test_rows_of_a_power_table() -> None:
    suite = load_suite("cfi")
    rows = [wl_row(WLTest(name, k), suite) for name, k in (("1-WL", 1), ("3-WL", 2), ("4-WL", 3))]
    assert [row.separated for row in rows] == [0, 3, 4]  # treewidths 2, 2, 2 and 3
    assert [row.equals_2fwl for row in rows] == [False, True, False]
    assert all(row.exact and row.readout == "colours" for row in rows)
    assert [pair.category for pair in rows[1].merged] == ["K4"]
    assert rows[1].merged[0].names == ("rook 4×4", "Shrikhande graph")
    assert rows[2].against == {"1-WL": (4, 0), "3-WL": (1, 0)}


def test_history_ends_in_the_classes_and_only_splits() -> None:
    suite = load_suite("csl")
    history = refinement_history(suite, TWO_FWL)
    assert history[-1] == wl_classes(suite, 2)
    merged = [suite.merged(classes) for classes in history]
    assert merged == sorted(merged, reverse=True)
    assert merged[0] > merged[-1] == 0
