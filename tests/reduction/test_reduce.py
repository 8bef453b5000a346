"""THEORY.md's table of reductions, the parameters, what stays, and what must not be proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import get_args

import numpy as np
import pytest

from g2n2.errors import G2N2Warning
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar, Level, Rule
from g2n2.graphs import parse_graph6
from g2n2.language.evaluation import evaluate
from g2n2.language.operations import Operation
from g2n2.language.parsing import parse
from g2n2.language.patterns import Assumption
from g2n2.reduction.certificates import certificate
from g2n2.reduction.checker import CheckResult, check
from g2n2.reduction.invariants import Claim, Form
from g2n2.reduction.lemmas import Lemma
from g2n2.reduction.reduce import Reduction, Simulation, include, reduce
from g2n2.reduction.simulation import first_failure, prove
from g2n2.testing import registered
from reduction.hand_written import hand_written

FORMS = get_args(Form)

G_L1, G_L3 = Fragment("L1").exhaustive(), Fragment("L3").exhaustive()
R_G_L1, R_G_L3 = find_grammar("r-G_L1"), find_grammar("r-G_L3")


@cache
def reduced(fragment: str, **options: object) -> Reduction:
    return reduce(Fragment(fragment).exhaustive(), **options)  # type: ignore[arg-type]


def only_link(reduction: Reduction) -> Simulation:
    (link,) = reduction.links
    assert isinstance(link, Simulation)
    return link


def accepted(reduction: Reduction) -> bool:
    return check(certificate(reduction.original, reduction.reduced, reduction.links)).valid


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of THEORY.md's table; `obligations` are the proof's own, without the converse's."""

    fragment: str
    rules: int
    smallest: str
    readout: str
    form: Form
    obligations: int
    lemma: bool


# THEORY.md's prototype calls the form of {·, Tr} and {·, ⊙, Tr} `shape`. These fragments have no
# columns, so its outer-product alternative never comes up; here that is the form `plain`, and the
# number of obligations is the same. {·, ᵀ, 1, ⊙} had no answer there: the prototype's library lacked
# M → V·Vᵀ. {·, ᵀ, Tr} is THEORY.md's "to finish": the transpose lemma with the plain shape.
TABLE = [
    Row("L1", 15, "V → diag(V)V | AV | 1", "1ᵀV_c", "action", 20, lemma=False),
    Row("L3", 19, "V → MV | 1; M → M⊙M | MM | diag(V) | A", "1ᵀV_c", "shape", 32, lemma=True),
    Row("L3 Tr", 21, "V → MV | 1; M → M⊙M | MM | diag(V) | A", "1ᵀV_c", "shape", 35, lemma=True),
    Row("· Tr", 5, "M → MM | A; S → Tr(M)", "Tr(M)", "plain", 5, lemma=False),
    Row("· ᵀ 1", 13, "V → AV | 1; S → VᵀV", "V_cᵀV_c", "action", 17, lemma=False),
    Row(
        "· ᵀ 1 Tr",
        15,
        "V → MV | 1; M → MM | A; S → VᵀV | Tr(M)",
        "V_cᵀV_c | Tr(M)",
        "shape",
        24,
        lemma=True,
    ),
    Row(
        "· ᵀ 1 diag Tr",
        17,
        "V → MV | 1; M → MM | diag(V) | A; S → Tr(M)",
        "Tr(M)",
        "shape",
        27,
        lemma=True,
    ),
    Row("· ⊙ Tr", 7, "M → M⊙M | MM | A; S → Tr(M)", "Tr(M)", "plain", 7, lemma=False),
    Row(
        "· ᵀ 1 ⊙",
        17,
        "V → V⊙V | MV | 1; M → M⊙M | MM | VVᵀ | A",
        "1ᵀV_c",
        "plain",
        21,
        lemma=True,
    ),
    Row("· ᵀ Tr", 6, "M → MM | A; S → Tr(M)", "Tr(M)", "plain", 8, lemma=True),
]


@pytest.mark.parametrize("row", TABLE, ids=[row.fragment for row in TABLE])
def test_theorys_table(row: Row) -> None:
    reduction = reduced(row.fragment, alternatives=False)
    assert len(reduction.original.all_rules) == row.rules
    assert reduction.reduced == Grammar.parse(row.smallest)
    assert reduction.reduced.readout_text == row.readout
    proof = only_link(reduction).proof
    assert (proof.claim.form, len(proof.witnesses)) == (row.form, row.obligations)
    assert proof.transposed == row.lemma
    assert accepted(reduction)


def test_the_vector_hadamard_variant_of_l1_also_proves() -> None:
    variant = Grammar.parse("V → V⊙V | AV | 1")
    assert include(G_L1, variant, "symmetric", "graph") is not None


def test_the_papers_order_goes_by_way_of_i_g_l3() -> None:
    reduction = reduced("L3", order="paper", alternatives=False)
    first, second = reduction.links
    assert first.smaller == find_grammar("i-G_L3")
    assert (first.larger, second.smaller) == (G_L3, R_G_L3)
    assert reduction.reduced == R_G_L3
    assert accepted(reduction)


def test_the_papers_order_keeps_rows_and_transposes_in_l1_too() -> None:
    reduction = reduced("L1", order="paper")
    assert reduction.links[0].smaller == Grammar.parse(
        "V → MV | Rᵀ | 1; R → RM | Vᵀ; M → diag(V) | Mᵀ | A; S → 1ᵀV"
    )
    assert reduction.reduced == R_G_L1
    assert accepted(reduction)


def test_the_papers_order_is_the_direct_one_where_there_are_no_rows() -> None:
    assert reduced("· Tr", order="paper").links == reduced("· Tr").links


# --- assumptions, levels, alternatives -----------------------------------------------------------


def test_directed_graphs_need_the_transpose_of_a() -> None:
    three = reduced("L3", assume="none", level="graph", alternatives=False)
    assert three.reduced == R_G_L3 | "M → Aᵀ"
    assert only_link(three).proof.claim.assume == three.assume == "none"
    one = reduced("L1", assume="none", level="graph", alternatives=False)
    assert one.reduced == Grammar.parse("V → AV | AᵀV | diag(V)V | 1")
    assert include(G_L3, R_G_L3, "none", "graph") is None
    assert accepted(three)


@pytest.mark.parametrize(
    "assume", ["symmetric", "none", pytest.param("simple", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("level", ["graph", "node", "pair"])
@pytest.mark.parametrize("fragment", ["L1", "L3"])
def test_levels(fragment: str, level: Level, assume: Assumption) -> None:
    """The action form says nothing of pairs, so at pair level L1 keeps its matrices."""
    reduction = reduced(fragment, assume=assume, level=level, alternatives=False)
    expected = {"L1": R_G_L1, "L3": R_G_L3}[fragment]
    if (fragment, level) == ("L1", "pair"):
        expected = Grammar.parse("V → MV | 1; M → MM | diag(V) | A")
    if assume == "none":
        expected = expected | ("V → AᵀV" if expected == R_G_L1 else "M → Aᵀ")
    assert reduction.reduced == expected
    claim = only_link(reduction).proof.claim
    assert (claim.level, claim.assume) == (reduction.level, reduction.assume) == (level, assume)
    assert accepted(reduction)


@pytest.mark.parametrize("assume", ["symmetric", "simple"])
def test_the_four_rule_grammar_is_an_alternative_and_not_substituted(assume: Assumption) -> None:
    reduction = reduced("L3", assume=assume)
    assert reduction.reduced == R_G_L3
    (alternative,) = reduction.alternatives
    assert alternative.assume == "simple"
    assert ("0/1" in alternative.note) == (assume == "symmetric")
    assert "1ᵀ(M1)" in alternative.note
    written = Grammar.parse("M → M⊙M | MM | diag(1) | A; S → 1ᵀ(M1)")
    assert alternative.grammar == written
    assert check(certificate(G_L3, alternative.grammar, alternative.links)).valid
    assert include(G_L3, written, "symmetric", "graph", FORMS) is None


@pytest.mark.parametrize("level", ["node", "pair"])
def test_a_grammar_without_columns_is_no_alternative_where_nodes_are_compared(level: Level) -> None:
    """It has no output at a node: the middle of a path looks like its ends."""
    assert reduced("L3", assume="simple", level=level).alternatives == ()
    four = Grammar.parse("M → M⊙M | MM | diag(1) | A; S → 1ᵀ(M1)")
    assert include(G_L3, four, "simple", level, FORMS) is None


def test_alternatives_can_be_left_out() -> None:
    assert reduced("L3", alternatives=False).alternatives == ()


# --- sums, multiples and functions ---------------------------------------------------------------


def lemma_rules(reduction: Reduction) -> set[str]:
    return {str(r) for x in reduction.links if isinstance(x, Lemma) for r in x.removed}


# fragment; what the lemma removes: "all" sums and functions, or nothing; what it comes down to
FREE = [
    ("L3 × + f", R_G_L3),
    ("L3 Tr × + f_S f_V f_M", R_G_L3),
    ("L3 f_M", R_G_L3),
    ("L1 × + f_S f_V", R_G_L1),
    ("L1 f_S", R_G_L1),
    ("· ᵀ 1 + f_S", Grammar.parse("V → AV | 1; S → VᵀV")),
    ("· Tr + × f_S", Grammar.parse("M → MM | A; S → Tr(M)")),
    ("· ᵀ 1 ⊙ f_M f_V +", Grammar.parse("V → V⊙V | MV | 1; M → M⊙M | MM | VVᵀ | A")),
]


@pytest.mark.parametrize(("fragment", "expected"), FREE, ids=[f for f, _ in FREE])
def test_what_the_lemma_frees(fragment: str, expected: Grammar) -> None:
    reduction = reduced(fragment, alternatives=False)
    assert reduction.reduced == expected
    original = Fragment(fragment).exhaustive()
    nonlinear = {str(r) for r in original.all_rules if "f(" in str(r) or " + " in str(r)}
    assert lemma_rules(reduction) == nonlinear != set()
    verdict = check(certificate(original, reduction.reduced, reduction.links))
    assert verdict.valid
    (cited,) = verdict.cited
    assert cited.startswith("sums and pointwise functions are free: ")


def test_multiples_are_removed_by_checked_identities() -> None:
    reduction = reduced("L1 ×")
    assert reduction.reduced == R_G_L1
    assert lemma_rules(reduction) == set()
    assert {str(r) for r in reduction.removed} >= {"S → S×S", "V_c → S×V_c", "M → S×M"}


# fragment; the rules that must still be there
KEPT = [
    ("L1 f_M", {"M → f(M)"}),
    ("L1 f_M +", {"M → f(M)", "M → M + M", "V_c → V_c + V_c"}),
    ("· ᵀ 1 f_V", {"V_c → f(V_c)", "V_r → f(V_r)"}),
    ("· ᵀ 1 f_V + f_S", {"V_c → f(V_c)", "V_c → V_c + V_c", "S → f(S)"}),
    ("· ⊙ Tr f_M", {"M → f(M)"}),
    ("· ⊙ Tr f_M +", {"M → f(M)", "M → M + M"}),
]


@pytest.mark.parametrize(("fragment", "kept"), KEPT, ids=[f for f, _ in KEPT])
def test_functions_that_are_not_free_stay(fragment: str, kept: set[str]) -> None:
    reduction = reduced(fragment)
    assert kept <= {str(r) for r in reduction.reduced.all_rules}
    assert lemma_rules(reduction) == set()
    assert accepted(reduction)


def constant(x: np.ndarray) -> np.ndarray:
    return np.ones_like(x)


# A function on matrices or columns adds something: a sentence with it, and two matrices that no
# sentence without it tells apart.
WITNESSES: list[tuple[str, Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray]] = [
    ("Tr(f(A))", constant, np.zeros((1, 1)), np.zeros((2, 2))),
    (
        "1ᵀf(A+A²)1",
        np.square,
        np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0),
        np.kron(np.eye(2), 1 - np.eye(3)),
    ),
]


@pytest.mark.parametrize(("sentence", "f", "left", "right"), WITNESSES, ids=["1·1ᵀ", "C6"])
def test_why_functions_of_matrices_are_not_free(
    sentence: str, f: Callable[[np.ndarray], np.ndarray], left: np.ndarray, right: np.ndarray
) -> None:
    """Without 1, a constant makes 1·1ᵀ; without ⊙, a square makes it (THEORY.md: 48 against 72)."""
    values = [evaluate(parse(sentence), a, functions={"f": f}).item() for a in (left, right)]
    assert values in ([1, 2], [48, 72])


@pytest.mark.parametrize(
    "text",
    [
        "V → V⊙V | AV | A1 | f(V)",  # no 1: the constant term cannot be made
        "R → RA | 1ᵀ | f(R); V → V⊙V | 1; S → RV",  # powers of columns, none of rows
        "M → M⊙M | A | f(M); S → Tr(M)",
    ],
)
def test_functions_are_not_free_in_grammars_without_the_powers(text: str) -> None:
    grammar = Grammar.parse(text)
    assert {str(r) for r in reduce(grammar).reduced.all_rules} >= {
        str(r) for r in grammar.all_rules if "f(" in str(r)
    }


def test_sums_stay_while_the_read_out_applies_a_function() -> None:
    """A sum of degrees and second degrees, squared, tells two graphs apart; no summand does."""
    grammar = Grammar.parse("V → A1 | A²1 | V + V; S → 1ᵀf(V)")
    assert reduce(grammar).reduced == grammar
    graphs = [parse_graph6(text) for text in ("E]_O", "EQKo")]

    def values(sentence: str) -> list[float]:
        return [evaluate(parse(sentence), g, functions={"f": np.square}).item() for g in graphs]

    assert values("1ᵀf(A1 + A²1)") == [292, 288]
    degrees = [[sorted(evaluate(parse(v), g).ravel()) for g in graphs] for v in ("A1", "A²1")]
    assert all(first == second for first, second in degrees)


# grammar; what stays of it
PARTLY_FREE = [
    ("V → AV | V + V | 1 | M1; M → J", "V → AV | 1 | M1; M → J"),  # J is a constant, not a sum
    ("S → S + S | 1ᵀV; V → AV | 1", "V → AV | 1"),  # S feeds back no more, and becomes a read-out
    ("V → AV + V | V + V | 1", "V → AV + V | V + V | 1"),
    ("V → f(AV) | f(V) | V⊙V | V + V | 1", "V → f(AV) | f(V) | V⊙V | V + V | 1"),
]


@pytest.mark.parametrize(("text", "expected"), PARTLY_FREE)
def test_what_the_lemma_drops_of_grammars_written_by_hand(text: str, expected: str) -> None:
    reduction = reduce(Grammar.parse(text))
    assert reduction.reduced == Grammar.parse(expected)
    assert accepted(reduction)


# --- at worst the grammar itself -----------------------------------------------------------------


@pytest.mark.parametrize("fragment", ["⊙", "· ᵀ", "1", "1 diag +", "ᵀ f_M", "· 1 diag"])
def test_a_fragment_without_sentences_stays_as_it_is(fragment: str) -> None:
    grammar = Fragment(fragment).exhaustive()
    assert not grammar.sentence_rules
    reduction = reduce(grammar)
    assert reduction.reduced == grammar
    assert (reduction.links, reduction.removed) == ((), ())
    assert check(certificate(grammar, reduction.reduced, reduction.links)).checked == 0
    assert accepted(reduction)


@pytest.mark.parametrize("grammar", [R_G_L1, R_G_L3])
def test_a_reduced_grammar_is_its_own_reduction(grammar: Grammar) -> None:
    assert reduce(grammar, alternatives=False).reduced == grammar


@pytest.mark.parametrize("text", ["V → AV | 1; S → 1ᵀV | 1ᵀ1", "V → 1; S → 1ᵀ1"])
def test_isolated_summation_vertices_do_not_send_the_search_round_for_ever(text: str) -> None:
    """1ᵀ1 has a closed bare vertex; powers of it must not count as its parts."""
    assert len(reduce(Grammar.parse(text)).reduced.sentence_rules) == 1


POOR_ROWS = Grammar.parse("V → 1 | MV; R → 1ᵀ | RM; M → A | VR; S → 1ᵀV")
"""Its rows are not its transposed columns: M → V·Vᵀ, which the search tries, may be too strong."""


@pytest.mark.parametrize("assume", ["none", "symmetric", "simple"])
@pytest.mark.parametrize("level", ["graph", "node", "pair"])
def test_what_is_found_and_not_proved_is_not_found(level: Level, assume: Assumption) -> None:
    assert accepted(reduce(POOR_ROWS, assume, level))


def test_what_the_checker_refuses_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = CheckResult(False, 0, (), "link 1: no bijection")
    monkeypatch.setattr("g2n2.reduction.reduce.check", lambda content: refused)
    with pytest.warns(G2N2Warning, match="nothing is removed: the checker .* link 1: no bijection"):
        reduction = reduce(G_L1.named("never reduced before"))
    assert reduction.reduced == G_L1
    assert (reduction.links, reduction.alternatives) == ((), ())


def test_a_reduction_is_remembered_with_all_it_depends_on() -> None:
    assert reduce(G_L1) is reduce(G_L1)
    assert reduce(G_L1.named("mine")).reduced.name == "r-mine"
    turned = Grammar(G_L1.rules[::-1], G_L1.readout, G_L1.name)
    assert turned == G_L1
    assert reduce(turned).original.rules == turned.rules
    found = []
    for signature in ("aa->a1", "ab->a1"):
        with registered(Operation("dg", "dg", signature)):
            found.append(reduce(Grammar.parse("V → dg(M) | MV | 1; M → MM | A")))
    diagonals, row_sums = found
    assert diagonals.original == row_sums.original
    assert row_sums.removed != diagonals.removed


def test_grammars_written_by_hand() -> None:
    reductions = [reduce(grammar) for grammar in islice(hand_written(1), 80)]
    for reduction in reductions:
        assert accepted(reduction), reduction.original
        for other in reduction.alternatives:
            assert check(certificate(other.links[0].larger, other.grammar, other.links)).valid
    assert sum(bool(lemma_rules(r)) for r in reductions) > 1
    assert sum(isinstance(link, Simulation) for r in reductions for link in r.links) > 15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "assume"),
    [("graph", "none"), ("graph", "symmetric"), ("node", "simple"), ("pair", "symmetric")],
)
def test_more_grammars_written_by_hand(level: Level, assume: Assumption) -> None:
    for grammar in islice(hand_written(2), 60):
        assert accepted(reduce(grammar, assume, level)), grammar


# --- what must not be proved ---------------------------------------------------------------------


REJECTED = [
    (G_L3, R_G_L3 - "M → MM"),
    (G_L3, R_G_L3 - "M → (M⊙M)"),
    (G_L3, R_G_L3 - "M → diag(V_c)"),
    (G_L3, R_G_L3 - "V_c → MV_c"),
    (G_L1, Grammar.parse("V → AV | 1")),
    (G_L1, Grammar.parse("V → V⊙V | 1")),
    (G_L3, R_G_L1),
    (Fragment("L3 Tr").exhaustive(), R_G_L3 - "M → MM"),
    (Fragment("· ᵀ 1 Tr").exhaustive(), Grammar.parse("V → MV | 1; M → MM | A; S → Tr(M)")),
    (Fragment("· ᵀ 1 ⊙").exhaustive(), Grammar.parse("V → V⊙V | MV | 1; M → M⊙M | MM | A")),
]


@pytest.mark.parametrize(("larger", "smaller"), REJECTED, ids=lambda g: "; ".join(g.lines()))
@pytest.mark.parametrize("form", FORMS)
def test_rejected(larger: Grammar, smaller: Grammar, form: Form) -> None:
    assert prove(Claim(larger, smaller, form)) is None


def test_l3_needs_the_outer_product_alternative() -> None:
    assert include(G_L3, R_G_L3, "symmetric", "graph", ("plain",)) is None
    assert include(G_L3, R_G_L3, "symmetric", "graph", ("shape",)) is not None
    failure = first_failure(Claim(G_L3, R_G_L3, "plain"))
    assert failure is not None
    assert failure.rule == Rule.parse("M → (V_c)(V_r)")
