"""Words by size, against a naive twin that lists all derivations."""

from __future__ import annotations

import time
from random import Random

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import catalogue, find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import enumerate_words, parse_word
from g2n2.language.evaluation import evaluate_mod
from g2n2.language.patterns import Assumption
from g2n2.language.sorts import M, S, Sort, V
from g2n2.language.terms import (
    Term,
    operation_count,
)
from strategies import AllDerivations, random_inputs

G_L3, R_G_L3 = find_grammar("G_L3"), find_grammar("r-G_L3")


def value_key(term: Term, assume: str) -> tuple[object, ...]:
    """The value of a term on fixed random inputs: equal keys are, in effect, equal terms."""
    rng = Random(99)
    key: list[object] = []
    for n in (4, 5, 6) if assume != "simple" else (5, 6, 7, 7):
        a, _ = random_inputs(rng, n, assume)
        supports = {f"C_{i}": rng_matrix(rng, n) for i in range(1, 4)} | {"C": rng_matrix(rng, n)}
        key.append(tuple(evaluate_mod(term, a, variables=supports).ravel()))
    return tuple(key)


def rng_matrix(rng: Random, n: int) -> list[list[int]]:
    return [[rng.randint(0, 10**6) for _ in range(n)] for _ in range(n)]


TWINS: list[tuple[str, Sort, int, Assumption]] = [
    ("G_L1", S, 5, "symmetric"),
    ("G_L1", M, 4, "none"),
    ("G_L3", S, 4, "symmetric"),
    ("G_L3", V, 4, "symmetric"),
    ("G_L3", M, 3, "none"),
    ("r-G_L3", S, 6, "symmetric"),
    ("r-G_L3", M, 3, "simple"),
    ("r-G_L3 ∪ {Mᵀ}", M, 3, "none"),
    ("r-G_L1", V, 6, "symmetric"),
    ("GNNML1", S, 6, "simple"),
    ("PPGN", S, 6, "symmetric"),
    ("four-rule", M, 3, "simple"),
    ("TriMul", M, 7, "none"),
    ("2-IGN", M, 5, "none"),
    ("GCN", S, 6, "symmetric"),
    ("MPNN-3", V, 4, "symmetric"),
    ("· + × 1 ᵀ", S, 4, "symmetric"),
]


@pytest.mark.parametrize(("name", "sort", "size", "assume"), TWINS)
def test_enumeration_agrees_with_all_derivations(
    name: str, sort: Sort, size: int, assume: Assumption
) -> None:
    grammar = Fragment(name).exhaustive() if "·" in name else find_grammar(name)
    smallest: dict[tuple[object, ...], int] = {}
    derivations = 0
    for k, term in AllDerivations(grammar).up_to(sort, size):
        smallest.setdefault(value_key(term, assume), k)
        derivations += 1
    words = list(enumerate_words(grammar, sort, size, assume))
    assert {value_key(word.term, assume): word.size for word in words} == smallest
    assert len(words) == len(smallest)  # no two words are equal
    assert [w.size for w in words] == sorted(w.size for w in words)
    assert all(w.size == operation_count(w.term) and w.term.sort == sort for w in words)
    assert derivations > len(words) or name in ("GCN", "MPNN-3")  # merging had something to do


def test_functions_are_enumerated_and_kept_opaque() -> None:
    """f of equal arguments is one word; f of unequal ones, and f of f, are others."""
    grammar = Grammar.parse("V → f(V) | AV | 1")
    texts = {str(w.term) for w in enumerate_words(grammar, V, 2)}
    assert texts == {"1", "A1", "f(1)", "A²1", "Af(1)", "f(A1)", "f(f(1))"}
    twice = Grammar.parse("V → f(V⊙V) | V⊙V | 1")
    assert [str(w.term) for w in enumerate_words(twice, V, 2)] == ["1", "f(1⊙1)"]


def test_words_come_smallest_first_and_stop_at_the_limit() -> None:
    words = list(enumerate_words(R_G_L3, limit=4))
    assert [str(w.term) for w in words] == ["1ᵀ1", "1ᵀA1", "1ᵀA²1", "1ᵀ(A⊙A)1"]
    assert [w.size for w in words] == [2, 3, 4, 4]
    assert list(enumerate_words(R_G_L3, limit=0)) == []
    assert list(enumerate_words(R_G_L3, max_size=1)) == []


@pytest.mark.parametrize(("option", "value"), [("max_size", -1), ("limit", 2.5), ("sort", "W")])
def test_what_an_option_does_not_take_is_refused_at_the_call(option: str, value: object) -> None:
    with pytest.raises(GrammarError, match=str(value)):
        enumerate_words(R_G_L3, **{option: value})


def test_the_limit_is_reached_without_listing_everything() -> None:
    start = time.process_time()
    assert len(list(enumerate_words(G_L3, max_size=200, limit=10))) == 10
    assert time.process_time() - start < 2


def test_a_fragment_without_sentences_has_no_words_of_s() -> None:
    grammar = Fragment("⊙").exhaustive()
    assert list(enumerate_words(grammar)) == []
    assert [str(w.term) for w in enumerate_words(grammar, M, 1)] == ["A", "A⊙A"]


def test_supports_stay_named_leaves() -> None:
    gcn = find_grammar("GCN")
    texts = [str(w.term) for w in enumerate_words(gcn, S, 4)]
    assert texts == ["1ᵀ1", "1ᵀC1", "1ᵀC²1"]
    for text in texts:
        assert str(derive_word(gcn, parse_word(gcn, text)).term) == text


@pytest.mark.parametrize("name", catalogue())
def test_every_word_listed_is_a_member_and_reads_back(name: str) -> None:
    grammar = find_grammar(name)
    for sort in grammar.variables:
        for word in enumerate_words(grammar, sort, 4):
            assert parse_word(grammar, str(word.term)) == word.term
            assert derive_word(grammar, word.term).term == word.term
