"""The four-step procedure: the right rules, shared subwords once, the fewest layers."""

import networkx as nx
import numpy as np
import pytest

from g2n2.compiler.trace import trace, trace_json
from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import enumerate_words
from g2n2.language.evaluation import evaluate
from g2n2.language.sorts import M, S, V
from g2n2.language.terms import fill

R_G_L3 = find_grammar("r-G_L3")


def test_triangles_step_by_step():
    found = trace(R_G_L3, "1ᵀ(A²⊙A)1")
    assert [
        (str(s.rule), [str(x) for x in s.inputs], str(s.output), s.layer) for s in found.steps
    ] == [
        ("M → MM", ["A", "A"], "A²", 1),
        ("M → (M⊙M)", ["A²", "A"], "A²⊙A", 2),
        ("V_c → MV_c", ["A²⊙A", "1"], "(A²⊙A)1", 3),
        ("S → 1ᵀV_c", ["(A²⊙A)1"], "1ᵀ(A²⊙A)1", None),
    ]
    assert found.depth == 3
    assert {s.letter: [str(x) for x in words] for s, words in found.start.items()} == {
        "M": ["A", "I"],
        "V": ["1"],
    }
    last = found.steps[-1].memories
    assert [str(x) for x in last[M]] == ["A", "I", "A²", "A²⊙A"]
    assert [str(x) for x in last[V]] == ["1", "(A²⊙A)1"]
    assert [str(x) for x in last[S]] == ["1ᵀ(A²⊙A)1"]


def test_values_on_a_graph():
    graph = nx.petersen_graph()
    graph.add_edge(0, 2)
    found = trace(R_G_L3, "1ᵀ(A²⊙A)1", graph)
    square, closed, _, count = (step.value for step in found.steps)
    matrix = nx.to_numpy_array(graph)
    assert np.array_equal(square, matrix @ matrix)
    assert np.array_equal(closed, (matrix @ matrix) * matrix)
    assert count.item() == 2 * sum(nx.triangles(graph).values())


# Depths by hand: a product of 2ᵏ matrices takes k layers, and one more for the vector at the end
# unless the vector is one of the factors.
DEPTHS = [
    ("r-G_L3", "A", 0),
    ("r-G_L3", "1", 0),
    ("r-G_L3", "diag(1)", 0),
    ("r-G_L3", "A²", 1),
    ("r-G_L3", "A⁴", 2),
    ("r-G_L3", "A⁵", 3),
    ("r-G_L3", "A³1", 2),
    ("r-G_L3", "A⁴1", 3),
    ("r-G_L3", "1ᵀA1", 1),
    ("r-G_L3", "1ᵀdiag(A1)A1", 3),
    ("G_L3", "1ᵀA1", 1),
    ("G_L1", "A1", 1),
    ("GNNML1", "A⁴1", 4),
    ("PPGN", "diag(1)A", 1),
    ("GCN", "1ᵀC³1", 3),
    ("r-G_L3 ∖ {diag(V_c)}", "A²⊙A", 2),
    ("L3Σ", "1ᵀA1", 1),
    ("r-G_L3Σ", "Σv. 1ᵀ(A²⊙A)1", 3),
    ("L3Σ", "Σv. 1ᵀ(A²⊙A)1", 4),
    ("L3Σ", "Σv. (vᵀA1)(vᵀA1)", 3),
]


@pytest.mark.parametrize(("grammar", "word", "depth"), DEPTHS)
def test_depth(grammar, word, depth):
    assert trace(find_grammar(grammar), word).depth == depth


def test_a_subword_that_occurs_twice_is_computed_once():
    found = trace(R_G_L3, "(A²⊙A)(A²⊙A)")
    assert [str(step.output) for step in found.steps] == ["A²", "A²⊙A", "(A²⊙A)²"]
    assert [str(step.output) for step in trace(R_G_L3, "A⁸").steps] == ["A²", "A⁴", "A⁸"]


@pytest.mark.parametrize("name", ["r-G_L3", "G_L3", "i-G_L3", "2-IGN", "r-G_L1", "PPGN", "TriMul"])
def test_every_step_uses_what_is_stored_and_makes_what_it_says(name):
    grammar = find_grammar(name)
    graph = nx.to_numpy_array(nx.gnp_random_graph(5, 0.5, seed=1))
    for word in list(enumerate_words(grammar, max_size=6, limit=60)):
        found = trace(grammar, word.term, graph)
        held = {str(x).replace("diag(1)", "I") for words in found.start.values() for x in words}
        layers = dict.fromkeys(held, 0)
        for step in found.steps:
            names = [str(x) if str(x) != "diag(1)" else "I" for x in step.inputs]
            assert set(names) <= held
            made = evaluate(fill(step.rule.body, list(step.inputs)), graph)
            assert np.array_equal(made, step.value)
            assert str(step.output) not in held
            if step.layer is not None:
                assert step.layer == 1 + max(layers[name] for name in names)
                layers[str(step.output)] = step.layer
            held.add(str(step.output))
        if found.steps:
            assert np.array_equal(found.steps[-1].value, evaluate(word.term, graph))


def test_a_word_that_moves_into_a_mark_is_stored_in_both_memories():
    grammar = Grammar.parse("S → Σv. vᵀV′; V′ → V | diag(V′)V′; V → AV | 1")
    found = trace(grammar, "Σv. vᵀ(diag(A1)A1)", nx.path_graph(3))
    assert [
        (str(s.rule), [str(x) for x in s.inputs], str(s.output), s.layer) for s in found.steps
    ] == [
        ("V_c → AV_c", ["1"], "A1", 1),
        ("V_c′ → V_c", ["A1"], "A1", 2),
        ("V_c′ → diag(V_c′)V_c′", ["A1", "A1"], "diag(A1)A1", 3),
        ("S → Σv. vᵀV_c′", ["diag(A1)A1"], "Σv. vᵀ(diag(A1)A1)", None),
    ]
    assert found.steps[-1].value.item() == 1 + 4 + 1
    text = str(found)
    assert "2 inputs   A1 from V_c\n" in text
    assert "2 inputs   A1 from V_c′, A1 from V_c′\n" in text


def test_a_word_of_a_mark_has_no_one_value_on_a_graph():
    found = trace(find_grammar("L1Σ"), "Σv. vᵀAv", nx.complete_graph(3))
    assert [(str(s.output), s.value is None) for s in found.steps] == [
        ("Av", True),
        ("vᵀ", True),
        ("vᵀAv", True),
        ("Σv. vᵀAv", False),
    ]


def test_text_has_the_four_parts_and_the_layers():
    text = str(trace(R_G_L3, "1ᵀA1", nx.path_graph(3)))
    assert text.splitlines()[0] == "1ᵀA1 in r-G_L3: 1 layer"
    for part in ("1 rule     V_c → MV_c", "2 inputs   A from M, 1 from V_c", "3 compute  A1"):
        assert part in text
    assert "1 2 1" in text
    assert "4 store    M   A, I\n               V_c 1, A1\n" in text
    assert "\nread-out\n" in text
    assert "values from 0 to 4" not in text
    assert "30×1 values from 1 to 2" in str(trace(R_G_L3, "A1", nx.path_graph(30)))


def test_json():
    content = trace_json(trace(R_G_L3, "A1", nx.path_graph(2)))
    assert content["depth"] == 1
    assert content["start"] == {"M": ["A", "I"], "V": ["1"]}
    assert content["steps"][0]["value"] == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("grammar", "word", "said"),
    [("r-G_L3", "AᵀA", "no variable derives Aᵀ"), ("GNNML1", "A²", "M has no rule there")],
)
def test_what_is_no_word_is_refused(grammar, word, said):
    with pytest.raises(GrammarError, match=said):
        trace(find_grammar(grammar), word)
