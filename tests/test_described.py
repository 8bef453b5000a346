"""Containers at a prompt and in a notebook: short, true, and safe as HTML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import g2n2
from g2n2.data.batch import GraphBatch
from g2n2.data.graph_set import GraphSet
from g2n2.data.reading import read_graphs
from g2n2.data.suites import load_suite
from g2n2.described import signed
from g2n2.power.grammar_test import grammar_test
from g2n2.power.refinement import refine
from g2n2.spectral.response import response, spectrum
from g2n2.training.evaluate import Outcome
from g2n2.training.session import Result
from g2n2.training.setup import prepare
from small_runs import small_config, small_graphs


def result() -> Result:
    parts = prepare(small_config(), small_graphs())
    history = [{"loss": 1.0}] * 500
    return Result(Path("run"), parts, {"all": {"mae": 0.5}}, {}, {}, history, 3, (4, 5))


def many() -> GraphSet:
    return read_graphs(["C~", "Bw"] * 5000)


MADE: dict[str, Callable[[], Any]] = {
    "GraphSet": many,
    "GraphBatch": lambda: GraphBatch.of(["C~", "Bw"] * 500),
    "Suite": lambda: load_suite("atlas"),
    "SameSizePairs": lambda: load_suite("atlas").pairs,
    "Refinement": lambda: refine(["C~", "Bw"] * 20, 2),
    "GrammarColours": lambda: grammar_test(g2n2.find_grammar("r-G_L1"), ["C~", "Bw"] * 20),
    "Outcome": lambda: Outcome(many(), result().parts.task, np.arange(5000), np.ones((5000, 2))),
    "Result": result,
    "Parts": lambda: result().parts,
    "Spectrum": lambda: spectrum(nx.path_graph(300)),
    "SpectralResponse": lambda: response("A²", nx.path_graph(300)),
    "PowerTable": lambda: g2n2.power("GNNML1", "csl"),
}


def test_a_derivation_is_one_short_line() -> None:
    made = g2n2.derive("L3")
    assert repr(made) == "Derivation(G_L3 → r-G_L3: 6 rules and 1 read-out rule)"
    assert repr(made.reduction).startswith("Reduction(")
    assert len(repr(made.reduction)) < 100


@pytest.mark.parametrize("name", MADE)
def test_a_container_is_one_short_line_and_a_small_table(name: str) -> None:
    made = MADE[name]()
    assert repr(made).startswith(f"{name}(")
    assert len(repr(made)) < 400
    assert "\n" not in repr(made)
    html = made._repr_html_()
    assert html.startswith("<table>")
    assert html.endswith("</table>")
    assert len(html) < 4000


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.4, 2, "+0.40"),
        (-0.57, 3, "-0.570"),
        (0.099, 2, "+0.099"),
        (207.0, 3, "+207"),
        (1, 1, "+1"),
    ],
)
def test_contributions_keep_their_zeros(value, digits, text):
    assert signed(value, digits) == text
