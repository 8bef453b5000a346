"""An attacker's certificates: false reductions, written as well as they can be, are refused.

Every forged certificate here has a digest that fits, and bijections that are isomorphisms wherever
there are any; what is wrong is the mathematics.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import networkx as nx
import pytest

from g2n2.grammars.grammar import LEVELS, Grammar, Rule
from g2n2.grammars.words import enumerate_words
from g2n2.language.evaluation import evaluate_mod
from g2n2.language.sorts import S
from g2n2.reduction.checker import check
from g2n2.reduction.invariants import Claim, Form
from g2n2.reduction.obligation_checker import parse_rule
from g2n2.reduction.simulation import prove
from reduction.forging import CERTIFICATES, Claimed, Json, forge, lemma_link, sealed, valid

FORMS = get_args(Form)


def sentences_agree(grammar: Grammar, one: nx.Graph, other: nx.Graph, size: int) -> bool:
    """Whether no sentence of a few operations tells two graphs apart."""
    terms = [word.term for word in enumerate_words(grammar, S, size)]
    return all((evaluate_mod(t, one) == evaluate_mod(t, other)).all() for t in terms)


# --- false reductions, from end to end -----------------------------------------------------------

STAR = nx.star_graph(4)  # K1,4
SQUARE = nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1))  # C4 + K1
PATH, CLAW = nx.path_graph(4), nx.star_graph(3)


class False_(NamedTuple):
    """A reduction that loses power, two graphs that show it, and the attacker's obligations."""

    larger: str
    smaller: str
    form: Form
    graphs: tuple[nx.Graph, nx.Graph]
    claimed: list[Claimed]
    lemma: bool
    fault: str


NORM = "1ᵀ(diag(M1)(M1))"


def twice(left: str, right: str) -> str:
    return f"(1ᵀ1)×((1ᵀ1)×(1ᵀ(diag({left}·1)({right}·1))))"


FALSE: dict[str, False_] = {
    # The invariant gives M·x. No rule transposes, so nothing is owed for Mᵀ·x, and it must not be
    # used: here M = diag(d)A with d = A1, and Mᵀd = A(d⊙d) is no word.
    "the action of a transpose that is not owed": False_(
        "M → diag(A1)A; S → Tr(diag(A1⊙M1))",
        "V → diag(A1)(AV) | A1; S → Tr(diag(V))",
        "action",
        (STAR, SQUARE),
        [
            Claimed("diag(A1)Ax", "", "diag(A1)(Ax)"),
            Claimed("Tr(diag(A1⊙m0·1))", "Tr(diag(m0ᵀ(A1)))"),
        ],
        False,
        "Tr(diag(m0ᵀ(A1))) is no sentence",
    ),
    # Rows of the smaller grammar need not be transposed columns of it: 1ᵀA is, A1 is not.
    "the transpose lemma for rows": False_(
        f"M → 1(1ᵀA) | 1·1ᵀ | Mᵀ; S → {NORM}",
        f"V → 1; R → Vᵀ | 1ᵀA; M → VR; S → {NORM}",
        "plain",
        (PATH, CLAW),
        [
            Claimed("(v0r1)ᵀ", "", "r1ᵀv0ᵀ"),
            Claimed("1(1ᵀA)", "", "1(1ᵀA)"),
            Claimed("1·1ᵀ", "", "1·1ᵀ"),
            Claimed("(s0×m0)ᵀ", "s0", "m0ᵀ"),
            Claimed(
                "1ᵀ(diag((s0×m0)·1)((s1×m1)·1))", "s0, s1, 1ᵀ(diag(m0·1)(m1·1))"
            ),
        ],
        True,
        "r1ᵀv0ᵀ is no word",
    ),
    # In the broadcast form the columns of the larger grammar are v with v·1ᵀ a word. Those of the
    # smaller one need not be: 1·(A1)ᵀ is a word here and (A1)·1ᵀ is not.
    "the transpose lemma for columns": False_(
        f"M → 1(A1)ᵀ | Mᵀ; S → (1ᵀ1)×((1ᵀ1)×({NORM}))",
        f"V → 1 | A1; M → 1Vᵀ; S → {NORM} | Tr(M) | 1ᵀ1",
        "broadcast",
        (PATH, CLAW),
        [
            Claimed("(1v0ᵀ)ᵀ", "", "v0·1ᵀ"),
            Claimed("1(A1)ᵀ", "", "1(A1)ᵀ"),
            Claimed("(s0×m0)ᵀ", "s0", "m0ᵀ"),
            Claimed("(s0×(v0w0ᵀ))ᵀ", "s0", "w0·1ᵀ, v0·1ᵀ"),
            Claimed(
                twice("(s0×m0)", "(s1×m1)"),
                "s0, s1, 1ᵀ1, 1ᵀ1, 1ᵀ(diag(m0·1)(m1·1))",
            ),
            Claimed(
                twice("(s0×m0)", "(s1×(v1w1ᵀ))"),
                "s0, s1, 1ᵀ1, 1ᵀ(diag(m0·1)(v1·1ᵀ·1)), Tr(w1·1ᵀ)",
            ),
            Claimed(
                twice("(s0×(v0w0ᵀ))", "(s1×m1)"),
                "s0, s1, 1ᵀ1, 1ᵀ(diag(v0·1ᵀ·1)(m1·1)), Tr(w0·1ᵀ)",
            ),
            Claimed(
                twice("(s0×(v0w0ᵀ))", "(s1×(v1w1ᵀ))"),
                "s0, s1, 1ᵀ(diag(v0·1ᵀ·1)(v1·1ᵀ·1)), Tr(w0·1ᵀ), Tr(w1·1ᵀ)",
            ),
        ],
        True,
        "v0·1ᵀ is no word",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FALSE.values(), ids=FALSE)
def test_false_reductions_are_refused(case: False_) -> None:
    larger, smaller = Grammar.parse(case.larger), Grammar.parse(case.smaller)
    assert not sentences_agree(larger, *case.graphs, 20)  # so it is false …
    assert sentences_agree(smaller, *case.graphs, 14)
    forged = forge(larger, smaller, case.form, case.claimed, lemma=case.lemma)
    verdict = check(forged)
    assert not verdict.valid  # … and refused where it is false
    assert verdict.failure.endswith(case.fault)
    for form in FORMS:
        assert prove(Claim(larger, smaller, form)) is None


# --- a true certificate, its grammars edited consistently ----------------------------------------


def without(content: Json, rule: str) -> Json:
    """The certificate as if a rule of the smaller grammar had never been there."""
    *before, link = content["links"]
    to = [r for r in content["to"] if r != rule]
    proof, converse = link["proof"], link["converse"]
    kept = [o for o in proof["obligations"] if (o["kind"], o["rule"]) != ("transpose", rule)]
    back = [o for o in converse["obligations"] if o["kind"] == "transpose" or o["rule"] != rule]
    edited = {
        **link,
        "to": to,
        "proof": {**proof, "obligations": kept},
        "converse": {**converse, "obligations": back},
    }
    return sealed({**content, "to": to, "links": [*before, edited]})


@pytest.mark.parametrize("name", [*CERTIFICATES, "· ᵀ 1 Tr", "· ᵀ 1 ⊙"])
def test_no_rule_can_be_taken_out_of_a_reduced_grammar(name: str) -> None:
    content = valid(name)
    assert check(content).valid
    for rule in content["to"]:
        verdict = check(without(content, rule))
        assert not verdict.valid
        assert verdict.failure.endswith(("is no word", "is no sentence")), (rule, verdict.failure)


def test_r_g_l3_without_mm_does_not_simulate_g_l3() -> None:
    """Also when the witnesses that used MM are dropped, or replaced by words that are left."""
    content = without(valid("L3"), "M → MM")
    proof = content["links"][0]["proof"]
    uses = [o for o in proof["obligations"] if "m0m1" in "".join(o["words"])]
    assert uses
    fewer = [o for o in proof["obligations"] if o not in uses]
    proof["obligations"] = fewer
    assert not check(sealed(content)).valid
    for words in (["m0⊙m1"], ["m0"], ["m1", "m0"], [], ["m0m1ᵀ"]):
        proof["obligations"] = [*({**o, "words": words} for o in uses), *fewer]
        assert not check(sealed(content)).valid


@pytest.mark.parametrize("rule", ["S → Tr(M)", "V_c → AV_c", "M → AM", "S → 1ᵀ(A1)", "M → S×M"])
def test_no_rule_can_be_slipped_into_the_larger_grammar(rule: str) -> None:
    content = valid("L3")
    (link,) = content["links"]
    more = [rule, *content["from"]]
    verdict = check(sealed({**content, "from": more, "links": [{**link, "from": more}]}))
    assert "is missing" in verdict.failure


def test_links_must_join() -> None:
    content = valid("L3 in the paper's order")
    first, second = content["links"]
    for links in ([second, first], [first], [second], [first, second, second], []):
        assert not check(sealed({**content, "links": links})).valid
    swapped = {**content, "from": content["to"], "to": content["from"]}
    assert not check(sealed(swapped)).valid
    turned = {**first, "proof": first["converse"], "converse": first["proof"]}
    assert not check(sealed({**content, "links": [turned, second]})).valid


def test_a_grammar_is_swapped_for_another_true_one() -> None:
    """The certificate of L1 under the names of L3, and the other way round."""
    one, three = valid("L1"), valid("L3")
    for mine, other in ((one, three), (three, one)):
        for ends in (("from",), ("to",), ("from", "to")):
            taken = {end: other[end] for end in ends}
            link = {**mine["links"][0], **taken}
            assert not check(sealed({**mine, **taken, "links": [link]})).valid
            assert not check(sealed({**mine, **taken})).valid


def test_one_direction_is_not_called_both() -> None:
    content = valid("L1")
    (link,) = content["links"]
    one_way = {k: v for k, v in link.items() if k != "converse"}
    assert not check(sealed({**content, "links": [one_way]})).valid
    assert check(sealed({**content, "links": [{**one_way, "kind": "inclusion"}]})).valid
    assert not check(sealed({**content, "links": [{**link, "kind": "inclusion"}]})).valid


# --- the cited lemma -----------------------------------------------------------------------------

ROWS = ["V_r → 1ᵀ", "V_r → V_rA", "V_c → 1", "S → (V_r)(V_c)"]
COLUMNS = ["V_c → AV_c", "V_c → 1", "S → 1ᵀV_c"]
POWER = "V_c → (V_c⊙V_c)"
OUTER = ["M → (V_c)(V_r)", "V_r → V_cᵀ", "V_c → 1"]
MATRICES = ["M → MM", "M → (M⊙M)", "M → A", "S → Tr(M)"]

LEMMAS = [
    # kept, dropped, whether the lemma covers it
    ([POWER, *COLUMNS], ["V_c → f(V_c)", "V_c → V_c + V_c", "S → f(S)", "S → S + S"], True),
    (["V_c → diag(V_c)V_c", *COLUMNS], ["V_c → relu(V_c)"], True),
    (["V_c → MV_c", "M → diag(V_c)", *COLUMNS], ["V_c → f(V_c)"], True),
    (["M → diag(V_c)", *COLUMNS], ["V_c → f(V_c)"], False),
    (COLUMNS, ["V_c → f(V_c)"], False),
    (COLUMNS, ["V_c → V_c + V_c", "S → f(S)"], True),
    ([POWER, "V_c → AV_c", "V_c → A1", "S → 1ᵀV_c"], ["V_c → f(V_c)"], False),  # f = 1 counts nodes
    ([POWER, *ROWS], ["V_r → f(V_r)"], False),  # powers of columns, not of rows
    ([POWER, "V_r → V_cᵀ", "V_c → V_rᵀ", *ROWS], ["V_r → f(V_r)"], True),
    ([*MATRICES], ["M → f(M)"], False),  # f = 1 makes 1·1ᵀ
    ([*MATRICES, *OUTER], ["M → f(M)"], True),
    ([r for r in (*MATRICES, *OUTER) if "⊙" not in r], ["M → f(M)"], False),
    ([POWER, *COLUMNS], ["V_c → f(AV_c)"], False),
    ([POWER, *COLUMNS], ["V_c → A(V_c)"], False),
    ([POWER, *COLUMNS], ["V_c → f(V_c)", "V_c → AAV_c"], False),
    ([POWER, "V_c → f(AV_c)", *COLUMNS], ["V_c → f(V_c)"], False),  # a function stays: f(u + v)
    ([POWER, "V_c → V_c + V_c", *COLUMNS], ["V_c → f(V_c)"], False),
    (["V_c → AV_c", "V_c → 1", "S → 1ᵀf(V_c)"], ["V_c → V_c + V_c"], False),
    (["V_c → AV_c + V_c", "V_c → 1", "S → 1ᵀV_c"], ["V_c → V_c + V_c"], False),
    (["M → J", "V_c → M1", *COLUMNS], ["V_c → V_c + V_c"], True),  # J is a constant
    (COLUMNS, ["V_c → f(V_c)", POWER], False),
]


@pytest.mark.parametrize(("kept", "dropped", "covered"), LEMMAS)
def test_the_conditions_of_the_lemma(kept: list[str], dropped: list[str], covered: bool) -> None:
    verdict = check(lemma_link([*dropped, *kept], kept))
    assert verdict.valid == covered
    assert len(verdict.cited) == covered


def test_the_lemma_adds_nothing() -> None:
    rules = [POWER, *COLUMNS]
    for smaller in (rules, rules[::-1]):  # a grammar is a set of rules
        assert check(lemma_link(["V_c → f(V_c)", *rules], smaller)).valid
    for smaller in ([*rules, "M → A"], [*rules, POWER], ["V_c → V_c⊙V_c", *COLUMNS]):
        assert not check(lemma_link(["V_c → f(V_c)", *rules], smaller)).valid
    for fields in ({"lemma": "everything is free"}, {"status": "checked"}, {"kind": "simulation"}):
        assert not check(lemma_link(["V_c → f(V_c)", *rules], rules, **fields)).valid


# --- functions of columns, u0 --------------------------------------------------------------------


def test_functions_of_columns_are_words_only_where_they_are_free() -> None:
    larger = "V_c → diag(u0)V_c"
    for smaller, free in (
        ("V → V⊙V | AV | 1", True),
        ("V → AV | 1", False),
        ("V → V⊙V | A1", False),
    ):
        said = [Claimed("diag(u0)(s0×v0)", "s0", "u0⊙v0")]
        forged = forge(with_function(larger), Grammar.parse(smaller), "plain", said, level="node")
        verdict = check(forged)
        assert verdict.valid == free
        assert verdict.cited == (("functions of columns are free: u0",) if free else ())


def with_function(*texts: str) -> Grammar:
    """A grammar of rules in the certificate's own notation."""
    return Grammar.of([Rule(*parse_rule(text)) for text in texts], default_readout=False)


def test_a_function_of_columns_makes_no_matrix_and_is_no_rule_of_the_smaller_grammar() -> None:
    larger = with_function("V_c → u0", "S → 1ᵀV_c")
    smaller = Grammar.parse("V → V⊙V | 1; M → A")
    assert "is missing" in check(forge(larger, smaller, "plain", [Claimed("u0", "", "u0")])).failure
    for form, word in (("broadcast", "u0·1ᵀ"), ("diagonal", "diag(u0)")):
        forged = forge(larger, smaller, form, [Claimed("u0", "", word)])  # type: ignore[arg-type]
        assert check(forged).failure.endswith("is no word")
    assert not check(forge(smaller, smaller | larger, "exact", [])).valid
    assert check(forge(smaller, smaller, "exact", [])).valid


# --- levels and ill-typed rules ------------------------------------------------------------------


def test_forms_are_silent_at_some_levels() -> None:
    """M·x says nothing of M's entries, and a grammar without columns has no output at a node."""
    silent = {
        ("action", "pair"),
        *((form, level) for form in ("broadcast", "diagonal") for level in ("node", "pair")),
    }
    for form in FORMS:
        for level in LEVELS:
            verdict = check(forge("V → 1; M → A", "V → 1; M → A", form, [], level=level))
            assert ("says nothing" in verdict.failure) == ((form, level) in silent)


@pytest.mark.parametrize("rule", ["S → A", "M → 1", "V_c → 1ᵀ", "M → M", "V_c → V_c", "S → S"])
def test_ill_typed_and_empty_rules_are_refused(rule: str) -> None:
    content = {"format": "g2n2 certificate 1", "from": [rule], "to": [rule], "links": []}
    assert not check(sealed(content)).valid


def test_a_rule_may_not_stand_twice() -> None:
    (link,) = valid("L1")["links"]
    for end in ("from", "to"):
        for again in ("V_c → 1", "V_c → (1)"):
            twice_there = [*link[end], again]
            content = {**valid("L1"), end: twice_there}
            forged = sealed({**content, "links": [{**link, end: twice_there}]})
            assert "lists a rule twice" in check(forged).failure
