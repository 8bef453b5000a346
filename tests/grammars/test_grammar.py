"""Rules and grammars: notation, set operations, read-outs and checks."""

from __future__ import annotations

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import catalogue, find_grammar
from g2n2.grammars.grammar import Grammar, Rule
from g2n2.language.parsing import parse, parse_body
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import A, Hole

R_G_L3 = find_grammar("r-G_L3")


def test_a_rule_knows_its_variables() -> None:
    rule = Rule.parse("V → diag(V)V")
    assert rule == Rule(V, parse_body("diag(V_c)V_c"))
    assert rule.holes == (V, V)
    assert str(rule) == "V_c → diag(V_c)V_c"
    assert Rule.parse("M -> A") == Rule.parse("M ::= A") == Rule(M, A)


def test_a_grammar_prints_in_the_papers_notation() -> None:
    assert str(R_G_L3).splitlines() == [
        "V_c → MV_c | 1",
        "M → (M⊙M) | MM | diag(V_c) | A",
        "S → 1ᵀV_c",
    ]
    assert R_G_L3.lines("ascii") == [
        "V_c -> M V_c | 1",
        "M -> (M * M) | M M | diag(V_c) | A",
        "S -> 1^T V_c",
    ]


MARKED = ["r-G_L1Σ", "r-G_L3Σ", "r-G_L1ΣΣ", "r-G_L3ΣΣ", "L3Σ (full)", "L1Σ", "L3 + Σ", "L1ΣΣ"]


@pytest.mark.parametrize("name", [*catalogue(), *MARKED])
def test_every_grammar_reads_back_from_text_and_ascii(name: str) -> None:
    grammar = find_grammar(name)
    assert Grammar.parse(str(grammar)) == grammar
    assert Grammar.parse("\n".join(grammar.lines("ascii"))) == grammar
    assert all(line.isascii() for line in grammar.lines("ascii"))
    assert [Rule.parse(str(rule)) for rule in grammar.all_rules] == list(grammar.all_rules)
    assert Grammar.parse("; ".join(grammar.lines())) == grammar


@pytest.mark.parametrize("name", catalogue())
def test_latex_and_html_are_well_formed(name: str) -> None:
    grammar = catalogue()[name]
    latex = grammar.to_latex()
    assert latex.startswith("\\begin{align*}\n")
    assert latex.endswith("\n\\end{align*}")
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left(") == latex.count(r"\right)")
    assert latex.count("&") == len(grammar.lines())
    assert latex.isascii()
    html = grammar._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == len(grammar.lines())
    assert html.startswith("<table>")
    assert html.endswith("</table>")


def test_latex_of_the_reduced_grammar() -> None:
    assert R_G_L3.to_latex().splitlines()[1:3] == [
        r"  V_{c} &\to M V_{c} \mid \mathbf 1 \\",
        r"  M &\to (M \odot M) \mid M M \mid \mathrm{diag}\left(V_{c}\right) \mid A \\",
    ]


def test_alternatives_may_go_on_the_next_line_and_comments_are_skipped() -> None:
    text = """
        V → AV   # message passing
          | V⊙V
          | 1
    """
    assert Grammar.parse(text) == find_grammar("GNNML1")


def test_order_and_repetition_of_rules_do_not_matter() -> None:
    assert Grammar.parse("V → 1 | AV | AV") == Grammar.parse("V → AV | 1")
    assert hash(Grammar.parse("V → 1 | AV")) == hash(Grammar.parse("V → AV | 1"))
    assert R_G_L3.named("x") == R_G_L3


def test_set_operations_on_rules() -> None:
    assert find_grammar("r-G_L3 ∪ {Mᵀ}") == R_G_L3 | "M → Mᵀ"
    assert find_grammar("r-G_L3 ∖ {M⊙M}") == R_G_L3 - "M → (M⊙M)"
    assert R_G_L3 - Rule.parse("M → MM") == find_grammar("r-G_L3 ∖ {MM}")
    assert (R_G_L3 | "M → Mᵀ") - "M → Mᵀ" == R_G_L3
    assert R_G_L3 | R_G_L3 == R_G_L3
    assert Grammar.parse(f"{R_G_L3}; M → Mᵀ | I; V → V⊙V") == R_G_L3 | "M → Mᵀ | I; V → V⊙V"
    assert "M → MM" in R_G_L3
    assert "M → Mᵀ" not in R_G_L3
    assert Rule.parse("S → 1ᵀV") in R_G_L3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("V → AV | 1", "{V_c → AV_c | 1}"),
        ("V → AV | 1; S → VᵀV", "{V_c → AV_c | 1; S → V_cᵀV_c}"),
        ("V → AV | 1; S → ∅", "{V_c → AV_c | 1; S → ∅}"),
        ("V → CV | 1; C = A + I", "{V_c → CV_c | 1; C = A + I}"),
        ("V → MV | 1; M → M⊙M | MM | diag(V) | A", "{V_c → MV_c | 1; M → (M⊙M) | MM | …}"),
    ],
)
def test_a_grammar_without_a_name_is_called_by_its_rules(text: str, name: str) -> None:
    assert Grammar.parse(text).in_short == name


def test_losing_a_variable_changes_the_read_out() -> None:
    """Without V there is no 1ᵀV; matrices are read out by trace and sum."""
    matrices = Grammar.parse("V → MV | 1; M → MM | A") - "V → MV | 1"
    assert matrices.readout_text == "Tr(M) | 1ᵀM1"


def test_a_grammar_without_sentences_gets_no_read_out_with_more_rules() -> None:
    silent = find_grammar("· 1")
    assert (silent | "M → I").readout_text == (silent - "M → MM").readout_text == "none"
    assert (silent | "S → VᵀV").readout_text == "V_cᵀV_c"


def test_set_operations_name_what_they_make() -> None:
    for name in ("r-G_L3 ∪ {Mᵀ}", "r-G_L3 ∖ {M⊙M}", "r-G_L3 ∖ {MM}"):
        sign, body = name.removeprefix("r-G_L3 ").rstrip("}").split(" {")
        made = R_G_L3 | f"M → {body}" if sign == "∪" else R_G_L3 - f"M → {body}"
        assert (made.name, made) == (name, find_grammar(name))
    assert (R_G_L3 | "M → MM").name == "r-G_L3"
    assert (Grammar.parse("V → AV | 1") | "V → V⊙V").name == ""


@pytest.mark.parametrize(
    ("text", "readout"),
    [
        ("V → AV | 1", "1ᵀV_c"),
        ("V → MV | 1; M → MM | A", "1ᵀV_c"),
        ("M → MM | A", "Tr(M) | 1ᵀM1"),
        ("V → AV | 1; S → VᵀV", "V_cᵀV_c"),
        ("M → MM | A; S → Tr(M)", "Tr(M)"),
        ("S → RV | SS; V → 1; R → Vᵀ", "(V_r)(V_c) | SS"),
    ],
)
def test_read_outs(text: str, readout: str) -> None:
    grammar = Grammar.parse(text)
    assert grammar.readout_text == readout
    assert {r.head for r in grammar.sentence_rules} == {S}


def test_a_read_out_is_a_rule_of_s_that_nothing_uses() -> None:
    assert R_G_L3.readout == (Rule.parse("S → 1ᵀV"),)
    assert all(rule.head != S for rule in R_G_L3.rules)
    full = find_grammar("G_L3")
    assert full.readout == ()  # its scalars feed back, as in V → VS
    assert len(full.rules) == 19
    assert Grammar.parse("V → MV | 1; M → (M⊙M) | MM | diag(V) | A; S → VᵀV") != R_G_L3


def test_unproductive_and_unreachable_variables() -> None:
    broken = Grammar.of([Rule.parse("V → Rᵀ"), Rule.parse("M → A")], default_readout=False)
    assert set(broken.unproductive()) == {V, R}
    lost = Grammar.parse("V → 1; M → A")
    assert lost.unproductive() == ()
    assert lost.unreachable() == (M,)
    assert R_G_L3.unreachable() == ()


def test_supports_are_defined_in_the_text() -> None:
    gcn = find_grammar("GCN")
    ((name, definition),) = gcn.supports
    assert name == "C"
    assert definition == parse("diag(inv(sqrt((A + I)1)))(A + I)diag(inv(sqrt((A + I)1)))")
    assert Grammar.parse("V → CV | 1; C = A") != Grammar.parse("V → CV | 1; C = A + I")


def test_operations_are_those_of_rules_and_read_out() -> None:
    assert Grammar.parse("V → AV | 1").operations == {"matmul", "one", "transpose"}
    assert find_grammar("four-rule").operations == {
        "matmul", "hadamard", "one", "diag", "trace", "transpose",
    }  # fmt: skip


def test_one_production_is_one() -> None:
    with pytest.raises(GrammarError, match="one production was expected, got 2"):
        Rule.parse("M → MM | A")


def test_variables_come_in_the_papers_order() -> None:
    assert find_grammar("G_L1").variables == (S, V, R, M)
    assert Hole(V).sort.variable == "V_c"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("M → MM | A; S → Tr(M)", "2 rules and 1 read-out rule"),
        ("M → MM | A", "2 rules and 2 read-out rules"),
        ("M → A; S → Tr(M)", "1 rule and 1 read-out rule"),
        ("M → A; S → ∅", "1 rule"),
        ("M → MM | A; S → Tr(M) | SS", "4 rules"),
    ],
)
def test_rules_are_counted_in_one_way(text: str, said: str) -> None:
    assert Grammar.parse(text).rule_count == said
