"""Witnesses: pairs that need a rule, checked by the interpreter and by the closure."""

from itertools import combinations

import networkx as nx
import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar, Rule
from g2n2.language.evaluation import evaluate
from g2n2.power.separation import Separation, separate
from g2n2.power.witnesses import WordProbe, all_graphs, between, digraphs, needed, witness
from g2n2.power.wl_tests import ONE_WL, THREE_WL

R_G_L3 = find_grammar("r-G_L3")


@pytest.mark.parametrize("rule", [r for r in R_G_L3.rules if str(r) != "M → diag(V_c)"])
def test_every_rule_of_the_reduced_grammar_but_diag_is_needed(rule):
    found = needed(R_G_L3, rule)
    assert found is not None
    first, second = (evaluate(found.separation.sentence, g) for g in (found.first, found.second))
    assert first.item() != second.item()
    assert [first.item(), second.item()] == [float(v) for v in found.separation.values]
    rest = Grammar.of([r for r in R_G_L3.all_rules if r != rule], default_readout=False)
    if not rest.unproductive():
        assert separate(rest, found.first, found.second).verdict == "same"


def test_nothing_shows_that_diag_is_needed():
    assert needed(R_G_L3, Rule.parse("M → diag(V)")) is None


def test_directed_graphs_need_the_transpose():
    directed = R_G_L3 | "M → Aᵀ"
    found = needed(directed, Rule.parse("M → Aᵀ"), directed=True)
    assert found is not None
    assert "arcs" in str(found)
    assert needed(directed, Rule.parse("M → A"), directed=True) is not None


def test_between_finds_the_pair_that_separates_two_grammars():
    found = between(R_G_L3, find_grammar("r-G_L1"))
    assert found.to_json()["graphs"] == ["EhEG", "EJaG"]  # C6 and two triangles
    words = between(R_G_L3, find_grammar("PPGN"))
    assert len(words.first) == 7  # PPGN's words merge pairs of 7 nodes first
    assert between(find_grammar("r-G_L1"), R_G_L3) is None


def test_between_tries_digraphs_where_they_are_meant():
    directed = R_G_L3 | "M → Aᵀ"
    assert between(directed, R_G_L3) is None
    found = between(directed, R_G_L3, directed=True)
    assert (found.first != found.first.T).any()
    first, second = (evaluate(found.separation.sentence, g) for g in (found.first, found.second))
    assert first.item() != second.item()


def test_all_digraphs_of_four_nodes_are_tried_once_each():
    graphs = [nx.from_numpy_array(g, create_using=nx.DiGraph) for g in digraphs().graphs]
    assert len(graphs) == 218  # OEIS A000273
    assert not any(nx.is_isomorphic(g, h) for g, h in combinations(graphs, 2))


def test_between_with_a_grammar_without_sentences_and_with_one_that_counts_nodes():
    silent, nodes, constant = map(find_grammar, ("· 1", "V → 1", "S → 1.0; V → 1"))
    assert between(R_G_L3, silent).to_json()["graphs"] == ["A?", "A_"]
    assert between(nodes, silent).to_json()["graphs"] == ["@", "A?"]
    assert between(constant, silent) is None
    assert between(nodes, R_G_L3) is None


def test_two_marks_are_not_tried_on_graphs_that_would_fill_the_memory(monkeypatch):
    grammar = Grammar.parse("M″ → M″M″ | A; S″ → Tr(M″); S′ → Σv. S″; S → Σu. S′")
    tried = []

    def merged(grammar, g, h, **options):
        tried.append(len(g))
        return Separation("same", "graph", "", "closure", ())

    monkeypatch.setattr("g2n2.power.witnesses.separate", merged)
    assert between(grammar, grammar) is None
    assert max(tried) == 16  # the rook's graph; a word inside two marks has 16⁴ entries there


def test_what_a_test_does_not_merge_is_not_probed():
    class Unasked(WordProbe):
        def classes(self, pool):
            raise AssertionError("there is nothing to tell apart")

    probe = Unasked(find_grammar("r-G_L1"))
    small = all_graphs(5)
    assert not small.merged(small.wl(THREE_WL))
    assert witness(probe, small, small.wl(THREE_WL), "3-WL", more=True) is None
    six = all_graphs(6)
    assert six.merged(six.wl(ONE_WL))
    with pytest.raises(AssertionError, match="nothing to tell apart"):
        witness(probe, six, six.wl(ONE_WL), "1-WL", more=True)


def test_a_grammar_without_exact_values_is_refused_before_any_pair():
    function = Rule.parse("M → f(M)")  # without it all pairs that are tried are told apart
    with pytest.raises(GrammarError, match="no exact value"):
        needed(Grammar.of([*R_G_L3.all_rules, function]), function)
