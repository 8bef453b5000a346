"""The catalogue: every grammar has its names, its notes and a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import catalogue, find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import parse_word
from g2n2.language.parsing import parse
from g2n2.pipeline import derive


@pytest.mark.parametrize("name", catalogue())
def test_each_is_found_by_name_and_checks(name: str) -> None:
    grammar = find_grammar(name)
    assert grammar == catalogue()[name]
    assert grammar.name == name
    grammar.check()
    assert grammar.sentence_rules


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("r-GL3", "r-G_L3"),
        ("rgl3", "r-G_L3"),
        ("G2N2", "r-G_L3"),
        ("g²n²", "r-G_L3"),
        ("ppgn", "PPGN"),
        ("gnnml1", "GNNML1"),
        ("L3", "G_L3"),
        ("l1", "G_L1"),
        ("2ign", "2-IGN"),
        ("trimul", "TriMul"),
        ("MPNN", "MPNN-3"),
        ("r-G_L3 \\ {M⊙M}", "r-G_L3 ∖ {M⊙M}"),
        ("r-G_L3 - {MM}", "r-G_L3 ∖ {MM}"),
        ("r-G_L3 + {Mᵀ}", "r-G_L3 ∪ {Mᵀ}"),
        ("r-G_L3 ∖ diag(V_c)", "r-G_L3 ∖ {diag(V_c)}"),
        ("r-G_L₃", "r-G_L3"),
        ("R G L 3", "r-G_L3"),
        ("2-IGN as printed", "2-IGN (as printed)"),
        ("G_{·,Tr}", "{·, Tr}"),
        ("r-G_{·, ᵀ, 1}", "V → AV | 1; S → VᵀV"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert find_grammar(spelling) == find_grammar(name)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("r-G_L3!!", "did you mean r-G_L3"),
        ("r-G_L3()", "did you mean r-G_L3"),
        ("r-G_L3.", "did you mean r-G_L3"),
        ("?PPGN", "did you mean PPGN"),
        ("MPNN-3*", "no grammar is called"),
        ("r-G_L4", "did you mean r-G_L3"),
        ("L3!", "did you mean G_L3"),
        ("r-G_L3 ∖ {foo}", "did you mean r-G_L3 ∖ {MM}"),
        ("r-G_", "did you mean r-G_L3"),
        ("", "no grammar is named"),
        ("  ", "no grammar is named"),
        ("L3 typo", "unknown operation 'typo'"),
        ("Tr typo", "unknown operation 'typo'"),
        ("G_{·, typo}", "unknown operation 'typo'"),
        ("r-G_{}", "the fragment is empty"),
        ("here/mine.txt", "there is no file 'here/mine.txt'"),
    ],
)
def test_a_sign_too_many_makes_another_name(text: str, nearest: str) -> None:
    with pytest.raises(GrammarError) as caught:
        find_grammar(text)
    assert nearest in str(caught.value)


@pytest.mark.parametrize(
    ("fragment", "typing", "assume", "level"),
    [
        ("· Tr", "paper", "symmetric", "graph"),
        ("L1", "paper", "none", "graph"),
        ("L1", "full", "symmetric", "graph"),
        ("L1", "paper", "symmetric", "node"),
        ("· 1", "paper", "simple", "node"),
    ],
)
def test_what_a_derivation_prints_names_its_grammars(
    fragment: str, typing: str, assume: str, level: str
) -> None:
    found = derive(fragment, typing, assume, level, witnesses=False)  # type: ignore[arg-type]
    for grammar in (found.exhaustive, found.reduced):
        again = find_grammar(grammar.name)
        assert again == grammar
        assert again.name == grammar.name


def test_families_take_any_number_of_supports() -> None:
    assert find_grammar("MPNN-2") == Grammar.parse("V → C_1V | C_2V | 1")
    assert find_grammar("GNNML3-1") == Grammar.parse("V → C_1V | V⊙V | 1")
    assert len(find_grammar("MPNN-12").rules) == 13


@pytest.mark.parametrize(
    ("text", "grammar"),
    [
        ("r-G_L3 ∪ {M → Mᵀ}", "r-G_L3 ∪ {Mᵀ}"),
        ("r-G_L3 | M -> M^T", "r-G_L3 ∪ {Mᵀ}"),
        ("r-G_L3 - M → (M⊙M)", "r-G_L3 ∖ {M⊙M}"),
        ("r-G_L3 ∖ {M → MM}", "r-G_L3 ∖ {MM}"),
    ],
)
def test_a_grammar_may_be_changed_where_it_is_named(text: str, grammar: str) -> None:
    assert find_grammar(text) == find_grammar(grammar)


def test_a_grammar_may_be_text_a_fragment_or_a_file(tmp_path: Path) -> None:
    assert find_grammar("V → AV | 1") == Grammar.parse("V → AV | 1")
    assert find_grammar("{·, Tr}") == Fragment("· Tr").exhaustive()
    file = tmp_path / "mine.txt"
    file.write_text("V → AV | 1\n", encoding="utf-8")
    found = find_grammar(str(file))
    assert found == Grammar.parse("V → AV | 1")
    assert found.name == "mine"
    file.write_text("V → AV | 1\n", encoding="utf-8-sig")  # as some editors write it
    assert find_grammar(str(file)) == found
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GrammarError, match="is not UTF-8 text"):
        find_grammar(str(file))


@pytest.mark.parametrize(
    ("name", "word", "stranger"),
    [
        ("r-G_L1", "1ᵀdiag(A1)A1", "1ᵀ(A1⊙A1)"),
        ("i-G_L3", "(A1)ᵀ(A⊙Aᵀ)", "A1·1ᵀ"),
        ("GCN", "1ᵀCC1", "1ᵀA1"),
        ("MPNN-3", "1ᵀC_3C_1·1", "1ᵀ(C_3⊙C_1)1"),
        ("GNNML1", "1ᵀ(A1⊙A1)", "1ᵀdiag(A1)A1"),
        ("PPGN", "Tr(A³diag(1))", "Tr(A⊙A)"),
        ("TriMul", "AAᵀ(AᵀA)ᵀ", "AA"),
        ("2-IGN (as printed)", "((A⊙J)1·1ᵀ)⊙I", "Aᵀ"),
        ("2-IGN", "(1(Aᵀ1)ᵀ)⊙J", "A²"),
        ("four-rule", "1ᵀ(A²⊙I)1", "1ᵀdiag(A1)1"),
    ],
)
def test_a_word_and_a_stranger(name: str, word: str, stranger: str) -> None:
    grammar = find_grammar(name)
    derive_word(grammar, parse_word(grammar, word))
    with pytest.raises(GrammarError, match="is not a word of"):
        derive_word(
            grammar, parse(stranger) if "C_" not in stranger else parse_word(grammar, stranger)
        )


def test_an_unknown_name_suggests_and_lists() -> None:
    with pytest.raises(
        GrammarError, match="no grammar is called 'PPGM'; did you mean PPGN"
    ) as caught:
        find_grammar("PPGM")
    for name in ("r-G_L3", "MPNN-k", "V → AV | 1"):
        assert name in str(caught.value)
    with pytest.raises(GrammarError, match="1 to 99 supports, got 0"):
        find_grammar("MPNN-0")
