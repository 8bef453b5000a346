"""The paper's grammars, propositions and figure as literal text (§2, §3.1, appendix A)."""

from __future__ import annotations

from random import Random

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import derive_word, tree_dot, tree_text
from g2n2.grammars.fragments import NAMED, Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import enumerate_words
from g2n2.language.operations import BINDERS, OPERATIONS, POINTWISE
from g2n2.language.parsing import parse
from g2n2.language.patterns import ASSUMPTIONS, equal
from g2n2.language.sorts import M, R, S, Sort, V
from g2n2.language.terms import ONE, A, Apply, Term, operators
from strategies import Vocabulary, random_term

PAPER = {
    "G_L1": """
        S → (V_r)(V_c) | diag(S) | SS
        V_c → MV_c | (V_r)ᵀ | V_cS | 1
        V_r → V_rM | (V_c)ᵀ | SV_r
        M → MM | (M)ᵀ | diag(V_c) | (V_c)(V_r) | A
    """,
    "G_L3": """
        S → (V_r)(V_c) | diag(S) | SS | (S⊙S)
        V_c → (V_c⊙V_c) | MV_c | (V_r)ᵀ | V_cS | 1
        V_r → (V_r⊙V_r) | V_rM | (V_c)ᵀ | SV_r
        M → (M⊙M) | MM | (M)ᵀ | diag(V_c) | (V_c)(V_r) | A
    """,
    "i-G_L3": """
        V_c → MV_c | (V_r)ᵀ | 1
        V_r → V_rM | (V_c)ᵀ
        M → (M⊙M) | MM | (M)ᵀ | diag(V_c) | A
    """,
    "r-G_L3": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | diag(V_c) | A
    """,
    "r-G_L1": "V_c → diag(V_c)V_c | AV_c | 1",
    "GNNML1": "V_c → V_c⊙V_c | AV_c | 1",
    "PPGN": "M → MM | diag(1) | A",
    "GCN": """
        V_c → CV_c | 1
        C = diag(inv(sqrt((A+I)1)))(A+I)diag(inv(sqrt((A+I)1)))
    """,
    "MPNN-3": "V_c → C_1V_c | C_2V_c | C_3V_c | 1",
    "GNNML3-3": "V_c → C_1V_c | C_2V_c | C_3V_c | V_c⊙V_c | 1",
    "2-IGN (as printed)": """
        M → V_c1ᵀ | M⊙J | M⊙I | A
        V_c → MV_c | 1
    """,
}


@pytest.mark.parametrize("name", PAPER)
def test_the_catalogue_holds_the_papers_grammars(name: str) -> None:
    assert find_grammar(name) == Grammar.parse(PAPER[name])


@pytest.mark.parametrize(("name", "count"), [("L1", 15), ("L3", 19)])
def test_the_exhaustive_grammars_are_derived(name: str, count: int) -> None:
    """Equations 9 and 1: enumeration gives the paper's rules, all of them and no other."""
    derived = Fragment(name).exhaustive()
    printed = Grammar.parse(PAPER[f"G_{name}"])
    assert derived == printed
    assert len(derived.all_rules) == count
    assert derived.name == f"G_{name}"
    assert [str(r) for r in derived.all_rules] == [str(r) for r in printed.all_rules]  # in order


LISTED: set[tuple[str, tuple[Sort, ...], Sort]] = {
    ("·", (M, M), M), ("·", (M, V), V), ("·", (R, M), R), ("·", (R, V), S),
    ("·", (V, R), M), ("1", (V,), V), ("ᵀ", (V,), R), ("1", (R,), S),
    ("ᵀ", (M,), M), ("ᵀ", (R,), V), ("·", (S, R), R), ("diag", (S,), S),
    ("diag", (V,), M), ("1", (M,), V), ("·", (S, S), S),
    ("·", (V, S), V), ("1", (S,), S),
}  # fmt: skip
"""The list in the proof of Proposition 3: every operation of L1 on words of every sort."""


def test_propositions_1_and_3_as_a_table() -> None:
    """Four sorts and no more; the table is the paper's list."""
    scalar_transpose = {("ᵀ", (S,), S)}  # in neither of the paper's lists, a scalar for all that
    assert set(Fragment("L1").table("full")) == LISTED | scalar_transpose
    left_out = {("1", (R,), S), ("1", (S,), S)}
    assert set(Fragment("L1").table()) == LISTED - left_out
    hadamard = {("⊙", (sort, sort), sort) for sort in (S, V, R, M)}
    assert set(Fragment("L3").table()) == (LISTED - left_out) | hadamard
    for name in NAMED:
        assert Fragment(name).sorts() == {S, V, R, M}


def vocabulary(fragment: Fragment) -> Vocabulary:
    """What terms over the fragment are made of: `one` is the leaf 1, all else an operation."""
    leaves = (A, ONE) if "one" in fragment else (A,)
    return Vocabulary(fragment.operations - {"one"}, leaves, full=False)


def random_fragments(seed: int, count: int) -> list[Fragment]:
    rng = Random(seed)
    names = [name for name in OPERATIONS if name not in BINDERS]
    return [Fragment(rng.sample(names, rng.randint(1, len(names)))) for _ in range(count)]


FRAGMENTS = [Fragment("L1"), Fragment("L3"), *random_fragments(1, 24)]


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_theorem_1_every_term_of_the_fragment_is_a_word(fragment: Fragment) -> None:
    grammar = fragment.exhaustive()
    words = vocabulary(fragment)
    rng = Random(2)
    sorts = sorted(words.least, key=str)
    assert set(sorts) == fragment.sorts()
    for _ in range(15):
        term = random_term(rng, rng.choice(sorts), rng.randint(0, 15), words)
        assert derive_word(grammar, term).term == term


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_theorem_1_every_word_is_a_term_of_the_fragment(fragment: Fragment) -> None:
    grammar = fragment.exhaustive()
    for sort in fragment.sorts():
        for word in enumerate_words(grammar, sort, 3, limit=60):
            assert operators(word.term) <= fragment.operations
            assert well_typed(word.term)


def well_typed(term: Term) -> bool:
    """Sorts agree with the table of operations all the way down."""
    if not isinstance(term, Apply):
        return True
    result = OPERATIONS[term.op].typed(*(arg.sort for arg in term.args), full=False)
    return result == term.sort and all(map(well_typed, term.args))


def test_theorem_1_fails_where_it_should() -> None:
    """A term with one operation outside the fragment is no word: the property can fail."""
    for fragment in FRAGMENTS:
        for op in sorted(set(OPERATIONS) - fragment.operations - {*POINTWISE, *BINDERS}):
            words = vocabulary(Fragment([*fragment.operations, op]))
            rng = Random(3)
            for _ in range(40):
                term = random_term(rng, rng.choice(sorted(words.least, key=str)), 4, words)
                if op in operators(term):
                    with pytest.raises(GrammarError, match="is not a word of"):
                        derive_word(fragment.exhaustive(), term)
                    break


@pytest.mark.parametrize("assume", ASSUMPTIONS)
def test_the_example_of_the_definition(assume: str) -> None:
    """s(X) = 1ᵀ(X² ⊙ diag(1))1 computes the trace of X², for every square X."""
    sentence = "1ᵀ(M²⊙diag(1))1"
    assert equal(parse(sentence), parse("Tr(M²)"), assume)  # type: ignore[arg-type]
    assert operators(parse(sentence)) == Fragment("L3").operations
    derive_word(find_grammar("G_L3"), parse("1ᵀ(A²⊙diag(1))1"))


def test_the_figure_of_a_derivation() -> None:
    """Appendix A.1: G_L1 generates 1ᵀA1, variables replaced until only terminals remain."""
    tree = derive_word(find_grammar("G_L1"), parse("1ᵀA1"))
    assert tree_text(tree).splitlines() == [
        "S → (V_r)(V_c)   1ᵀA1",
        "├─ V_r → V_cᵀ    1ᵀ",
        "│  └─ V_c → 1    1",
        "└─ V_c → MV_c    A1",
        "   ├─ M → A      A",
        "   └─ V_c → 1    1",
    ]
    dot = tree_dot(tree)
    boxes = [line.split('"')[1] for line in dot.splitlines() if "shape=box" in line]
    assert boxes == ["ᵀ", "1", "A", "1"]  # in the order their parents are replaced
