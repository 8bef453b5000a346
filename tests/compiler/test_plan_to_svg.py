"""Figures as files: nothing is cut off, nothing overlaps, arrows arrive, everything is there once.

Widths of texts come from the metrics of DejaVu Sans, not from the estimate the drawing uses.
"""

import re
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import plan_network, unsupported
from g2n2.compiler.plan import numbered_selectors
from g2n2.compiler.plan_to_svg import architecture_svg, layer_svg, overview_svg, trace_svg
from g2n2.compiler.trace import trace
from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.reduction.reduce import reduce

SVG = "{http://www.w3.org/2000/svg}"
GRAMMARS = [name for name in UNMARKED if not name.endswith("-3")]
PRESETS = ("paper", "official", "ppgn", "modern")
CASES = [
    (grammar, preset)
    for grammar in GRAMMARS
    for preset in PRESETS
    if not unsupported(UNMARKED[grammar], preset)
] + [("L3Σ (full)", "paper"), ("L3Σ (full)", "modern")]


class Rectangle(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def overlaps(self, other, slack=0.5):
        return (
            self.left < other.right - slack
            and other.left < self.right - slack
            and self.top < other.bottom - slack
            and other.top < self.bottom - slack
        )

    def holds(self, other, slack=0.5):
        return (
            self.left <= other.left + slack
            and self.top <= other.top + slack
            and self.right >= other.right - slack
            and self.bottom >= other.bottom - slack
        )


@cache
def advance(letter, bold):
    font = FT2Font(font_manager.findfont("DejaVu Sans:bold" if bold else "DejaVu Sans"))
    font.set_size(1000, 72)
    return font.load_char(ord(letter)).linearHoriAdvance / 65536 / 1000


class Picture:
    """What a figure shows, read from its file."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        x, y, width, height = map(float, self.root.attrib["viewBox"].split())
        self.frame = Rectangle(x, y, x + width, y + height)
        self.texts = [self._text(item) for item in self.root.iter(f"{SVG}text")]
        self.tips = [
            tuple(map(float, item.attrib["points"].split()[0].split(",")))
            for item in self.root.iter(f"{SVG}polygon")
        ]
        self.lines = [
            [tuple(map(float, p.split())) for p in item.attrib["d"][2:].split(" L ")]
            for item in self.root.iter(f"{SVG}path")
        ]

    def named(self, kind):
        return [
            item.attrib["data-name"]
            for item in self.root.iter(f"{SVG}rect")
            if kind in item.attrib.get("class", "").split()
        ]

    @property
    def boxes(self):
        found = []
        for item in self.root.iter(f"{SVG}rect"):
            if "box" in item.attrib.get("class", "").split():
                x, y, w, h = (float(item.attrib[k]) for k in ("x", "y", "width", "height"))
                found.append(Rectangle(x, y, x + w, y + h, item.attrib["data-name"]))
        return found

    @staticmethod
    def _text(item):
        size, bold = float(item.attrib["font-size"]), "font-weight" in item.attrib
        pieces = [(item.text or "", size)]
        for span in item:
            pieces += [(span.text or "", float(span.attrib["font-size"])), (span.tail or "", size)]
        width = sum(s * advance(letter, bold) for text, s in pieces for letter in text)
        x, y = float(item.attrib["x"]), float(item.attrib["y"])
        left = x - {"start": 0, "middle": width / 2, "end": width}[item.attrib["text-anchor"]]
        whole = "".join(text for text, _ in pieces)
        return Rectangle(left, y - 0.76 * size, left + width, y + 0.2 * size, whole)


def check(picture):
    assert picture.texts
    for item in (*picture.texts, *picture.boxes):
        assert picture.frame.holds(item), f"{item.text} is cut off"
    for one, other in combinations(picture.texts, 2):
        assert not one.overlaps(other), f"{one.text} over {other.text}"
    for text in picture.texts:
        for box in picture.boxes:
            assert box.holds(text) or not box.overlaps(text), f"{text.text} crosses {box.text}"
        for line in picture.lines:
            for (x0, y0), (x1, y1) in pairwise(line):
                drawn = Rectangle(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
                assert not text.overlaps(drawn, slack=0), f"a line through {text.text}"
    for x, y in picture.tips:
        assert any(on_border(box, x, y) for box in picture.boxes), f"an arrow ends at {x}, {y}"


def on_border(box, x, y):
    level = box.top <= y <= box.bottom and min(abs(x - box.left), abs(x - box.right)) < 0.02
    upright = box.left <= x <= box.right and min(abs(y - box.top), abs(y - box.bottom)) < 0.02
    return level or upright


@pytest.mark.parametrize(("grammar", "preset"), CASES)
def test_layer_shows_every_rule_and_selector_once(grammar, preset):
    plan = plan_network(find_grammar(grammar), node_features=11, preset=preset, layers=4)
    for number in (1, 4):
        picture = Picture(layer_svg(plan, number))
        check(picture)
        layer = plan.layers[number - 1]
        rules = [str(step.rule) for update in layer.updates for step in update.steps]
        assert sorted(picture.named("rule")) == sorted(rules)
        count = len(numbered_selectors(layer))
        assert sorted(picture.named("selector"), key=lambda x: int(x[1:])) == [
            f"L{k}" for k in range(1, count + 1)
        ]
        assert len(picture.named("mixer")) == len(layer.updates)


def test_layer_of_g2n2_is_the_papers():
    """L1 and L2 feed M⊙M, L3 and L4 MM, L5 and L7 MV_c, L6 diag: the caption of the figure."""
    plan = plan_network(find_grammar("r-G_L3"))
    picture = Picture(layer_svg(plan))
    assert picture.named("memory") == ["C in", "H in", "C out", "H out"]
    middle = {box.text: (box.top + box.bottom) / 2 for box in picture.boxes if box.text[0] == "L"}
    fed = {
        rule.text: {name for name, y in middle.items() if rule.top < y < rule.bottom}
        for rule in picture.boxes
        if "→" in rule.text
    }
    assert fed == {
        "M → (M⊙M)": {"L1", "L2"},
        "M → MM": {"L3", "L4"},
        "M → diag(V_c)": {"L6"},
        "V_c → MV_c": {"L5", "L7"},
    }
    shown = [text.text for text in picture.texts]
    assert shown.count("b = 64") == 4
    assert "256→512→64" in shown
    assert "128→256→64" in shown


@pytest.mark.parametrize(
    ("rule", "label"),
    [("(M⊙M)", "M⊙M"), ("(M⊙M)MM", "(M⊙M)MM"), ("((M⊙M)M)", "(M⊙M)M"), ("M(M⊙M)", "M(M⊙M)")],
)
def test_brackets_around_a_whole_rule_are_left_out_and_others_stay(rule, label):
    svg = layer_svg(plan_network(Grammar.parse(f"M → {rule} | A"), layers=1))
    assert f">{label}</text>" in svg


def test_a_layer_that_is_not_there():
    plan = plan_network(find_grammar("r-G_L3"), layers=2)
    with pytest.raises(LoweringError, match="layers 1 to 2, got 3"):
        layer_svg(plan, 3)


FEW = [case for case in CASES if case[0] in ("r-G_L3", "G_L3", "GNNML1", "PPGN", "L3Σ (full)")]


@pytest.mark.parametrize("task", ["graph", "node", "edge"])
@pytest.mark.parametrize(("grammar", "preset"), FEW)
def test_architecture(grammar, preset, task):
    edges = 4 if "M →" in str(find_grammar(grammar)) else 0
    plan = plan_network(
        find_grammar(grammar),
        node_features=11,
        edge_features=edges,
        preset=preset,
        task=task,
        context=True,
        layers={"graph": 3, "node": 1, "edge": 6}[task],
    )
    picture = Picture(architecture_svg(plan))
    check(picture)
    layers = {
        "graph": ["layer 1", "layer 2", "layer 3"],
        "node": ["layer 1"],
        "edge": ["layer 1", "layer 2", "layers 3–5", "layer 6"],
    }
    assert picture.named("layer") == layers[task]
    readout = plan.readout
    shown = len(readout.local) + len(readout.pools) + len(readout.steps)
    assert len(picture.named("readout")) == shown


@pytest.mark.parametrize(
    ("grammar", "sums"), [("r-G_L3Σ", ["Σv"]), ("r-G_L1ΣΣ", ["Σv", "Σu"]), ("L3Σ (full)", [])]
)
def test_architecture_shows_the_sums_over_marks_before_the_decision(grammar, sums):
    trunk = 2 if sums else 0
    picture = Picture(architecture_svg(plan_network(find_grammar(grammar), trunk=trunk)))
    check(picture)
    assert picture.named("sum") == sums
    assert any("after 2 shared layers" in text.text for text in picture.texts) is bool(sums)


@pytest.mark.parametrize("fragment", ["L1", "L3"])
def test_overview(fragment):
    larger = Fragment.parse(fragment).exhaustive()
    picture = Picture(overview_svg(larger, reduce(larger).reduced, Fragment.parse(fragment)))
    check(picture)
    assert picture.named("stage") == ["operations", f"G_{fragment}", f"r-G_{fragment}", "layer"]
    rules = {
        "L1": ["V_c → AV_c", "V_c → diag(V_c)V_c"],
        "L3": ["M → (M⊙M)", "M → MM", "M → diag(V_c)", "V_c → MV_c"],
    }
    assert sorted(picture.named("rule")) == rules[fragment]
    removed = {"L1": "14 rules removed by proof", "L3": "13 rules removed by proof"}
    assert removed[fragment] in [text.text for text in picture.texts]


@pytest.mark.parametrize(
    ("grammar", "removed", "rules"),
    [
        ("TriMul", "1 rule removed by proof", ["M → MMᵀ"]),
        ("r-G_L3 ∪ {Mᵀ}", "1 rule", ["M → (M⊙M)", "M → MM", "M → diag(V_c)", "V_c → MV_c"]),
        ("V → AV | diag(V)AV | 1", "1 rule removed by proof", ["V_c → diag(V_c)AV_c"]),
        ("M → f(M) | MM | A", "0 rules removed by proof", ["M → MM", "M → f(M)"]),
        ("MPNN-3", "0 rules", ["V_c → C_1V_c", "V_c → C_2V_c", "V_c → C_3V_c"]),
    ],
)
def test_overview_of_any_grammar(grammar, removed, rules):
    larger = find_grammar(grammar)
    picture = Picture(overview_svg(larger, reduce(larger).reduced))
    check(picture)
    assert sorted(picture.named("rule")) == rules
    assert any(text.text.startswith(removed) for text in picture.texts)
    assert "the rules given" in [text.text for text in picture.texts]


@pytest.mark.parametrize(
    ("grammar", "word"),
    [
        ("r-G_L3", "1ᵀ(A²⊙A)1"),
        ("G_L3", "1ᵀ(diag(A1)A⊙A²)A1"),
        ("r-G_L3", "((A⊙A³)(A²⊙A)⊙A)diag(A²1)A⁴1"),
        ("PPGN", "A"),
        ("GCN", "1ᵀC³1"),
        ("r-G_L3Σ", "Σv. 1ᵀ(A²⊙A)1"),
    ],
)
def test_trace(grammar, word):
    found = trace(find_grammar(grammar), word)
    picture = Picture(trace_svg(found))
    check(picture)
    assert picture.named("rule") == [str(step.rule) for step in found.steps]
    assert len(picture.named("input")) == sum(len(step.inputs) for step in found.steps)


def test_markup_in_names_is_escaped():
    plan = plan_network(find_grammar("GNNML1").named('<b> & "c"'))
    picture = Picture(layer_svg(plan))
    assert any('<b> & "c"' in text.text for text in picture.texts)


def test_the_checks_see_faults():
    svg = layer_svg(plan_network(find_grammar("r-G_L3")))
    wide = svg.replace(">MM</text>", ">MMMMMMMMMMMMMMMM</text>")
    with pytest.raises(AssertionError, match="MMMM"):
        check(Picture(wide))
    cut = re.sub(r'viewBox="(\S+) (\S+) (\S+)', r'viewBox="\1 \2 400', svg)
    with pytest.raises(AssertionError, match="cut off"):
        check(Picture(cut))
    missed = re.sub(r'class="tip" points="([\d.]+)', r'class="tip" points="3.5', svg)
    with pytest.raises(AssertionError, match="an arrow ends"):
        check(Picture(missed))


def test_a_fragment_keeps_its_braces():
    drawn = layer_svg(plan_network(reduce(Fragment("· Tr").exhaustive()).reduced, layers=2))
    title = next(text for text in ElementTree.fromstring(drawn).iter(f"{SVG}text"))
    assert "".join(title.itertext()).startswith("r-G{·, Tr}, layer 2 of 2")
