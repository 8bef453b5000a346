"""Q1: every grammar gets the same, and exact power is what colour refinement says."""

from dataclasses import replace

import pytest

from g2n2.experiments import q1
from g2n2.experiments.cell import Slice
from g2n2.experiments.exact_cells import exact_cell
from g2n2.grammars.catalogue import find_grammar

R_G_L3 = {"V_c → MV_c", "V_c → 1", "M → (M⊙M)", "M → MM", "M → diag(V_c)", "M → A"}
RULES = {
    "r-G_L3": R_G_L3,
    "r-G_L3+transpose": R_G_L3 | {"M → Mᵀ"},
    "r-G_L3-hadamard": R_G_L3 - {"M → (M⊙M)"},
    "r-G_L3-product": R_G_L3 - {"M → MM"},
    "r-G_L3-diagonal": R_G_L3 - {"M → diag(V_c)"},
    "r-G_L3-vector": R_G_L3 - {"V_c → MV_c"},
    "four-rule": {"M → (M⊙M)", "M → MM", "M → I", "M → A"},
}
GRAMMARS = {*RULES, "G_L3", "i-G_L3"}


@pytest.mark.parametrize("name", RULES)
def test_the_grammars_have_the_rules_the_question_names(name):
    assert {str(rule) for rule in find_grammar(q1.GRAMMARS[name]).rules} == RULES[name]


@pytest.mark.parametrize("budget", ["short", "full"])
def test_every_grammar_gets_three_seeds_of_the_same_run(budget):
    asked = q1.BUDGETS[budget]
    runs = {name: q1.config(name, 1, asked) for name in q1.GRAMMARS}
    # The paper's read-out for all; only that of G_L3 would have rules of S besides.
    assert {name for name, run in runs.items() if run.readout} == {"G_L3"}
    assert {replace(r, grammar="any", readout=None) for r in map(_hashable, runs.values())} == {
        replace(_hashable(runs["r-G_L3"]), grammar="any")
    }
    run = runs["r-G_L3"]
    assert (run.target, run.options["track"], run.width) == (("r2",), "distance", 32)
    names = [(cell.name, cell.seed) for cell in q1.cells(budget) if cell.name.startswith("train/")]
    assert sorted(names) == sorted(
        (f"train/{name}", seed) for name in GRAMMARS for seed in range(3)
    )
    assert len({seed for _, seed in names[: len(GRAMMARS)]}) == 1  # one seed of each comes first


def _hashable(run):
    return replace(run, options=tuple(sorted(run.options.items())))


def test_both_readouts_of_every_grammar_are_measured_on_brec():
    exact = [cell for cell in q1.cells("short") if cell.name.startswith("exact/")]
    assert len(exact) == 18
    assert all(cell.needs == ("brec",) for cell in exact)


@pytest.mark.parametrize(
    ("grammar", "separated"),
    [("r-G_L1", 0), ("r-G_L3", 45)],  # circular skip links are regular: 1-WL 0 of 45, 3-WL all
)
def test_exact_power_on_circular_skip_links(tmp_path, grammar, separated):
    record = exact_cell("q1", "exact/x/own", "smoke", grammar, "csl", None).run(Slice(tmp_path))
    assert (record.done, record.planned, record.unit) == (45, 45, "pairs")
    assert record.metrics["pairs separated"] == separated
    assert record.metrics["pairs"] == 45
    assert record.metrics["proved"] == (separated == 45)
    assert len(record.data["csl"]) == 64
    assert record.provenance["device"] == "cpu"
    assert not record.partial
