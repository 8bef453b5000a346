"""Grammars with marks: variables in scopes, their notation, exhaustive grammars and words."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar, Rule
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.grammars.words import enumerate_words, parse_word
from g2n2.language.evaluation import evaluate_mod
from g2n2.language.modular import PRIMES
from g2n2.language.sorts import S, V
from g2n2.power.word_memory import Stack

ASCII = """
    V' -> M'V' | 1 | v
    M' -> M'.*M' | M'M' | diag(V') | A
    S -> mark v. 1^T V'
"""


@pytest.mark.parametrize(
    ("fragment", "rules", "full_typing"),
    [
        ("· ᵀ 1 diag ⊙ Σ", 47, 51),
        ("· ᵀ 1 diag ⊙ Σ_S", 44, 48),
        ("L1Σ", 15 + 15 + 1 + 4 + 1, 17 + 17 + 1 + 4 + 1),
        ("L1ΣΣ", 3 * 15 + 2 + 8 + 2, 3 * 17 + 2 + 8 + 2),
        ("· Σ_V", 2 * 3 + 1 + 2 + 1, 10),  # MV, MM and A inside and out; v; two lifts; one sum
    ],
)
def test_the_exhaustive_grammar_of_a_fragment(fragment: str, rules: int, full_typing: int) -> None:
    parsed = Fragment(fragment)
    assert Fragment(str(parsed)) == parsed
    grammar = parsed.exhaustive()
    assert len(grammar.rules) == rules
    assert len(parsed.exhaustive("full").rules) == full_typing
    assert find_grammar(grammar.name) == grammar


def test_names_of_fragments_with_marks() -> None:
    assert Fragment("L3Σ") == Fragment("L3 + Σ_S") == Fragment("L3mark") == Fragment("L3 mark_S")
    assert Fragment("L3 Σ") != Fragment("L3Σ")
    assert Fragment("L1ΣΣ") == Fragment("L1 Σ_S Σ_S") != Fragment("L1Σ")
    assert find_grammar("r-gl1markmark").name == "r-G_L1ΣΣ"
    with pytest.raises(GrammarError, match="3 times"):
        Fragment("L1 Σ Σ Σ")


def test_the_notation_of_one_mark() -> None:
    grammar = Grammar.parse(ASCII)
    assert grammar == find_grammar("r-G_L3Σ")
    assert grammar.marks == ("v",)
    assert str(grammar) == (
        "V_c′ → M′V_c′ | 1 | v\nM′ → (M′⊙M′) | M′M′ | diag(V_c′) | A\nS → Σv. 1ᵀV_c′"
    )
    assert r"\sum_{v} \mathbf 1^{\mathsf T} V_{c}'" in grammar.to_latex()
    assert grammar.readout == (Rule.parse("S → Σv. 1ᵀV′"),)


def test_an_apostrophe_is_a_prime_only_where_there_are_marks() -> None:
    assert Rule.parse("M → M'") == Rule.parse("M → Mᵀ")
    assert Rule.parse("M' → M'M'") == Rule.parse("M′ → M′M′")
    assert Rule.parse("M' → (M'M')'") == Rule.parse("M′ → (M′M′)ᵀ")
    assert Rule.parse("S → mark v. v' V'") == Rule.parse("S → Σv. vᵀV′")
    assert Rule.parse("V'' → V'").head == V.within(2)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("V′ → AV′ | w | v", "uses the mark w, which is not in scope"),
        ("S → Σv. 1ᵀV′ | Σu. 1ᵀV′; V′ → 1", "one mark is called v and u"),
        ("V → V′ | 1; V′ → 1", "V_c′ in V_c → V′ stands outside its mark"),
        ("S → 1ᵀV′; V′ → 1", "below Σ, as in S → Σv. 1ᵀV′"),
        ("V′ → AV′; S → Σv. 1ᵀV′", "V_c′ never becomes a word"),
        ("V′ → V′ | 1", "applies no operation"),
        ("X′ → 1", "'X′' is not a variable"),
    ],
)
def test_faults_of_marked_grammars(text: str, part: str) -> None:
    with pytest.raises(GrammarError, match=part.replace(".", r"\.")):
        Grammar.parse(text)


def test_changes_keep_the_marks() -> None:
    grammar = find_grammar("r-G_L3Σ")
    assert "V′ → v" not in grammar - "V′ → v"
    assert "M′ → M′ᵀ" in grammar | "M' -> M'^T"
    assert find_grammar("r-G_L3Σ ∪ M' → M'ᵀ") == grammar | "M′ → M′ᵀ"


def test_words_inside_and_outside() -> None:
    grammar = find_grammar("r-G_L3Σ")
    inside = [str(word.term) for word in enumerate_words(grammar, "V'", 4)]
    assert inside[:4] == ["1", "v", "A1", "Av"]
    assert not {"diag(v)v", "diag(v)1"} & set(inside), "both are v"
    sentences = [str(word.term) for word in enumerate_words("r-G_L1ΣΣ", max_size=5)]
    assert "Σu. Σv. 1ᵀAu" in sentences


def test_derivations_go_through_sums_and_lifts() -> None:
    grammar = find_grammar("L3Σ")
    tree = derive_word(grammar, parse_word(grammar, "Σv. vᵀAv"))
    assert [str(node.rule) for node in tree.nodes()][:2] == ["S → Σv. S′", "S′ → (V_r′)(V_c′)"]
    with pytest.raises(GrammarError, match="not a word"):
        derive_word(find_grammar("r-G_L3Σ"), parse_word(grammar, "Σu. 1ᵀu"))


@pytest.mark.parametrize("name", ["r-G_L3Σ", "r-G_L1ΣΣ", "L3Σ (full)"])
def test_stacks_of_marked_graphs_against_the_interpreter(name: str) -> None:
    """Every sentence of some operations: its value by stacks, and by summing over all nodes."""
    grammar = find_grammar(name)
    graphs = [nx.to_numpy_array(nx.gnp_random_graph(4, 0.6, seed=seed)) for seed in (1, 2)]
    stack = Stack(graphs, (), PRIMES[0], grammar.marks)
    sentences = list(enumerate_words(grammar, S, 8, limit=60))
    assert len(sentences) > 10
    for word in sentences:
        values = stack.values(word.term, ())[0, :, 0, 0]
        wanted = [evaluate_mod(word.term, graph, PRIMES[0])[0, 0] for graph in graphs]
        assert np.array_equal(values, wanted), word.term


def test_layers_see_how_many_marks_stand_at_once() -> None:
    assert LayeredGrammar.of(find_grammar("r-G_L1ΣΣ")).scope == 2
    assert LayeredGrammar.of(find_grammar("r-G_L3")).scope == 0


def test_a_rule_moves_into_marks_and_out_again() -> None:
    outside, inside = Rule.parse("V → AV"), Rule.parse("V′ → AV′")
    assert outside.within(1) == inside
    assert inside.within(1) == Rule.parse("V″ → AV″")
    assert inside.within(1).plain == inside.plain == outside
