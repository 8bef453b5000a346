"""What is put into the page: typeset, lit together, and escaped."""

from html import escape
from html.parser import HTMLParser

import pytest

from g2n2.placement import Statement
from g2n2.verdict import Verdict
from g2n2.workbench import views
from g2n2.workbench.chain import derive_chain
from g2n2.workbench.files import FileReport
from g2n2.workbench.languages import read_language
from g2n2.workbench.network import plan
from g2n2.workbench.pairs import Drawn, PairAnswer, PairReport, counted_pattern

SCRIPT = "<script>alert('x')</script>\"'"


class Tags(HTMLParser):
    """The elements of some HTML, and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.attributes = [], "", []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def chain():
    return derive_chain(read_language("L3").grammar, lambda share, text: None)


def test_math_is_typeset_as_in_the_paper():
    assert views.math("V_c → diag(V_c)") == (
        '<i>V</i><sub>c</sub> <span class="sign">→</span> diag(<i>V</i><sub>c</sub>)'
    )
    assert views.math("1ᵀA²1") == "<b>1</b><sup>⊤</sup><i>A</i><sup>2</sup><b>1</b>"
    assert views.math("m0s1") == "<i>m</i><sub>0</sub><i>s</i><sub>1</sub>"
    assert views.name("r-G_L3") == "r-<i>G</i><sub>L3</sub>"


def test_rules_are_struck_out_step_by_step(chain):
    for step in (0, 1, 7, 13):
        html = views.exhaustive(chain, step)
        assert html.count("rule gone") == max(0, step - 1)
        assert html.count("rule current") == min(step, 1)
        assert html.count("data-rule=") == 19


def test_a_grammar_that_keeps_all_its_rules_is_shown_once():
    chain = derive_chain(read_language("PPGN").grammar, lambda share, text: None)
    assert "MM" in views.exhaustive(chain, 0)
    assert views.reduced(chain) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("given", "the given grammar"),
        ("r-given", "the reduced grammar"),
        ("r-given, and given", "the reduced grammar, and the given grammar"),
        ("it simulates r-given", "it simulates the reduced grammar"),
        ("equal, given enough layers", "equal, given enough layers"),
    ],
)
def test_a_grammar_without_a_name_is_called_what_it_is(text, shown):
    assert views.name(text) == shown


def test_a_rule_has_its_obligations_its_box_and_its_share(chain):
    made = plan(chain.reduced, 29, 64, 3)
    drawing, shares = views.lit_drawing(made), views.network(made, 29)
    for rule in ("M → MM", "M → (M⊙M)", "V_c → MV_c"):
        key = f'data-rule="{escape(rule)}"'
        assert drawing.count(key) == 3, "the rule's box and its two selectors"
        assert shares.count(key) == 4, "the same, and its share"
        owed = sum(case.rule == rule for case in chain.cases)
        assert views.obligations(chain).count(key) == owed > 0


def test_both_patterns_of_a_step_are_drawn(chain):
    for step, removal in enumerate(chain.removals, start=1):
        html = views.proof(chain, step, 0)
        vertices = removal.cases[0].left.vertices
        assert html.count('class="vertex') == 2 * vertices
        assert html.count('class="mate') == vertices
        said = "Both sides are the number" if vertices == 0 else "the same labelled graph of"
        assert said in Tags(html).text


def test_every_text_is_escaped():
    statement = Statement(SCRIPT, "equals", "1-WL", (SCRIPT,))
    graphs = (Drawn(SCRIPT, SCRIPT), Drawn(SCRIPT, SCRIPT))
    outcome = PairAnswer(SCRIPT, None, SCRIPT)
    pattern = counted_pattern(read_language("V → AV | 1").grammar.rules[1].body.T @ _one())
    made = [
        views.math(SCRIPT),
        views.name(SCRIPT),
        views.message(SCRIPT),
        views.power(Verdict((statement,), (SCRIPT,)), None, 3),
        views.pair(PairReport(graphs, (outcome,), SCRIPT, SCRIPT, (SCRIPT, SCRIPT)), 0),
        views.pair(PairReport(graphs, (outcome,), SCRIPT, SCRIPT, (), False, pattern), 0),
        views.file_report(FileReport(SCRIPT, "network", True, SCRIPT, SCRIPT, SCRIPT)),
    ]
    for html in made:
        page = Tags(html)
        assert "script" not in page.tags
        assert not any(name.startswith("on") for name, _ in page.attributes)
        assert "alert" in page.text


def _one():
    from g2n2.language.terms import ONE

    return ONE


@pytest.mark.parametrize(
    ("one", "three", "span"),
    [
        ("strictly above", "equals", (3, 3)),
        ("equals", "strictly below", (1, 1)),
        ("not bounded by", "at most", (2, 3)),
        ("strictly above", "strictly below", (2, 2)),
        ("strictly below", "strictly below", (0, 0)),
        ("at most", "at most", (0, 1)),
        ("open against", "open against", None),
        ("incomparable with", "strictly below", None),
    ],
)
def test_the_scale_claims_no_more_than_the_relations(one, three, span):
    against = {t: Statement("", r, t, ()) for t, r in (("1-WL", one), ("3-WL", three))}
    assert views.ladder_place(against) == span
