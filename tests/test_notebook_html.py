"""What a notebook shows: well-formed, escaped, and with the facts in it."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import g2n2
from g2n2.notebook_html import draw, facts, graph_svg, table, typeset

EVIL = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """Refuses tags that are not closed in order; keeps the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_a_derivation_has_both_grammars_its_steps_and_its_verdict():
    found = g2n2.derive("L3")
    read = Reader(found._repr_html_())
    assert read.tags.count("details") == len(found.steps) + len(found.verdict.statements)
    struck = sum(len(step.removed) for step in found.steps)
    assert read.tags.count("s") == struck + len(found.steps)
    for text in ("r-GL3", "v0⊙v1 = diag(v0)v1", "equals 3-WL", "no proof that it can go"):
        assert text in read.text
    assert "<pre>" not in found._repr_html_()


@pytest.mark.parametrize(
    ("text", "index"), [("r-G_L3Σ", "L3Σ"), ("G_{·, Tr}", "{·, Tr}"), ("MV_c", "c")]
)
def test_an_index_is_below_the_line(text, index):
    assert f"<sub>{index}</sub>" in typeset(text)


@pytest.mark.parametrize(
    ("shown", "texts"),
    [
        (lambda: g2n2.find_grammar("r-G_L3"), ["Vc → MVc | 1", "r-GL3"]),
        (lambda: g2n2.check(g2n2.derive("L1")), ["valid", "yes", "24", "equal power"]),
        (lambda: g2n2.check({}), ["valid", "no", "failure"]),
        (lambda: g2n2.compile("r-G_L3", width=8, layers=2).plan, ["M⊙M", "parameters", "total"]),
        (lambda: g2n2.power(["1-WL", "r-G_L3"], "csl"), ["beside 3-WL", "45 fewer"]),
        (
            lambda: g2n2.separate("r-G_L3", "C6", "2C3"),
            ["different", "1ᵀ(A²⊙A)1", "has the values 0 and 12"],
        ),
        (lambda: draw("C6", "EJaG"), ["C6", "2·C3"]),
        (lambda: g2n2.read_graphs(["C~", "Bw"]), ["GraphSet", "graphs"]),
    ],
    ids=["grammar", "valid", "invalid", "plan", "power", "separation", "drawing", "graphs"],
)
def test_a_value_shows_its_facts(shown, texts):
    read = Reader(shown()._repr_html_())
    assert "table" in read.tags
    for text in texts:
        assert text in read.text


def test_text_of_a_user_is_never_markup():
    grammar = g2n2.find_grammar("r-G_L1").named(EVIL)
    derived = replace(g2n2.derive("L1"), exhaustive=grammar)
    graphs = replace(g2n2.read_graphs(["C~"]), name=EVIL)
    failed = replace(g2n2.check({}), failure=EVIL)
    shown = [value._repr_html_() for value in (grammar, derived, graphs, failed)]
    shown += [table([[EVIL]], [EVIL], EVIL), facts(EVIL, {EVIL: EVIL}), typeset(EVIL)]
    for html in shown:
        read = Reader(html)
        assert "script" not in read.tags
        assert EVIL in read.text


def test_a_drawing_has_every_edge_once_and_every_node():
    for name, nodes, edges in (("Petersen", 10, 15), ("2·C3", 6, 6), ("K1", 1, 0), ("2·K1", 2, 0)):
        drawn = graph_svg(g2n2.adjacency(f"name:{name}"))
        assert (drawn.count("h0"), drawn.count("L")) == (nodes, edges)
    assert "svg" not in graph_svg(g2n2.adjacency("name:C50"))
