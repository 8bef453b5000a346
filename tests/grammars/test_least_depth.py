"""The derivation with the fewest layers, against words built layer by layer."""

from itertools import product

import pytest

from cases import UNMARKED
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.least_depth import least_depth_derivation
from g2n2.grammars.words import enumerate_words, parse_word
from g2n2.language.terms import fill


def _depth(node):
    return 1 + max(map(_depth, node.children)) if node.children else 0


@pytest.mark.parametrize("name", ["r-G_L3", "G_L3", "i-G_L3", "2-IGN"])
def test_no_enumerated_derivation_is_shallower(name):
    """By brute force: the layer in which a word first appears, built layer by layer."""
    grammar = UNMARKED[name]
    seen = {sort: {} for sort in grammar.variables}
    for layer in range(3):
        new = [
            (rule.head, filled)
            for rule in grammar.all_rules
            for filled in _fillings(rule, {sort: list(words) for sort, words in seen.items()})
            if filled.size <= 9
        ]
        for sort, term in new:
            seen[sort].setdefault(term, layer)
    checked = 0
    for words in seen.values():
        texts = {}
        for term, layer in words.items():  # a word is a string: brackets of a product do not count
            texts[str(term)] = min(layer, texts.get(str(term), layer))
        for term in list(words)[:80]:
            assert _depth(least_depth_derivation(grammar, term)) <= texts[str(term)]
            assert _depth(least_depth_derivation(grammar, term)) <= _depth(
                derive_word(grammar, term)
            )
            checked += 1
    assert checked > 20


def _fillings(rule, by_sort):
    for chosen in product(*(by_sort.get(sort, []) for sort in rule.holes)):
        yield fill(rule.body, list(chosen))


def test_a_rule_between_variables_is_read_over_the_same_factors():
    grammar = Grammar.parse("S → Σv. vᵀM′v; M′ → A | M; M → MM | A")
    tree = least_depth_derivation(grammar, parse_word(grammar, "Σv. vᵀA²v"))
    assert [str(node.rule) for node in tree.nodes()] == [
        "S → Σv. vᵀM′v",
        "M′ → M",
        "M → MM",
        "M → A",
        "M → A",
    ]


@pytest.mark.parametrize("name", ["L1Σ", "L3Σ", "r-G_L3Σ"])
def test_a_marked_derivation_is_no_deeper_than_the_first_one_found(name):
    grammar = find_grammar(name)
    words = [word.term for word in enumerate_words(grammar, max_size=6, limit=60)]
    assert any("Σ" in str(word) for word in words)
    for word in words:
        tree = least_depth_derivation(grammar, word)
        assert _depth(tree) <= _depth(derive_word(grammar, word))
        assert all(
            tuple(child.rule.head for child in node.children) == node.rule.holes
            for node in tree.nodes()
        )
