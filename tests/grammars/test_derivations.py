"""Membership and trees, against all the strings a grammar generates."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from random import Random

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import DerivationTree, derive_word, tree_dot, tree_text
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar, Rule
from g2n2.language.parsing import parse
from g2n2.language.sorts import SORTS, M, R, S, V
from g2n2.language.terms import (
    IDENTITY,
    ONE,
    A,
    Apply,
    Leaf,
    Number,
    Term,
    fill,
    leaves,
    operation_count,
)
from strategies import AllDerivations, Vocabulary, random_term

G_L1, G_L3, R_G_L3 = (find_grammar(name) for name in ("G_L1", "G_L3", "r-G_L3"))


def string(term: Term) -> str:
    """The term as the paper's grammars write it: a product is mere juxtaposition."""
    match term:
        case Leaf(name="I"):
            return "diag(1)"
        case Leaf(name=name):
            return name
        case Number(value=value):
            return str(value)
        case Apply(op="matmul", args=(a, b)):
            return string(a) + string(b)
        case Apply(op="hadamard" | "add" | "scale" as op, args=(a, b)):
            return f"({string(a)}{op}{string(b)})"
        case Apply(op=op, args=(a,), function=function):
            return f"{function or op}({string(a)})"
    raise AssertionError(term)


VOCABULARIES = {
    "L1": Vocabulary(frozenset(("matmul", "transpose", "diag")), (A, ONE, IDENTITY)),
    "L3": Vocabulary(frozenset(("matmul", "transpose", "diag", "hadamard")), (A, ONE, IDENTITY)),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("G_L1", 4),
        ("G_L3", 3),
        ("r-G_L1", 6),
        ("r-G_L3", 5),
        ("i-G_L3", 4),
        ("r-G_L3 ∪ {Mᵀ}", 4),
        ("PPGN", 6),
        ("TriMul", 7),
        ("2-IGN", 5),
        ("GNNML1", 6),
    ],
)
def test_membership_agrees_with_all_strings(name: str, size: int) -> None:
    """A random term is a member iff its string is among all the strings the grammar generates."""
    grammar = find_grammar(name)
    twin = AllDerivations(grammar)
    strings = {s: {string(t) for _, t in twin.up_to(s, size)} for s in SORTS}
    generated = [t for s in grammar.variables for _, t in twin.up_to(s, size)]
    rng = Random(4)
    terms = [
        random_term(rng, sort, rng.randint(0, size), VOCABULARIES["L3"])
        for sort in SORTS
        for _ in range(120)
    ]
    terms += [reassociated(rng, rng.choice(generated)) for _ in range(120)]
    outcomes = {True: 0, False: 0}
    for term in terms:
        if operation_count(term) + leaves(term).count(IDENTITY) > size:  # I is diag(1)
            continue
        member = string(term) in strings[term.sort]
        outcomes[member] += 1
        if member:
            check_derivation(grammar, derive_word(grammar, term), term)
        else:
            with pytest.raises(GrammarError, match="is not a word of"):
                derive_word(grammar, term)
    assert outcomes[True] > 50
    assert outcomes[False] > 50 or name in ("G_L1", "G_L3")


def reassociated(rng: Random, term: Term) -> Term:
    """The same string with its products bracketed at random."""
    if not isinstance(term, Apply):
        return term
    args = tuple(reassociated(rng, arg) for arg in term.args)
    if term.op == "matmul":
        a, b = args
        if isinstance(a, Apply) and a.op == "matmul" and rng.random() < 0.5:
            return a.args[0] @ (a.args[1] @ b)
        if isinstance(b, Apply) and b.op == "matmul" and rng.random() < 0.5:
            return (a @ b.args[0]) @ b.args[1]
    return Apply(term.op, args, term.sort, term.function)


def check_derivation(grammar: Grammar, tree: DerivationTree, term: Term) -> None:
    """Every node applies a rule of the grammar, and its string is its rule's filled in."""
    assert string(tree.term) == string(term)
    for node in tree.nodes():
        assert node.rule in grammar.all_rules
        assert tuple(child.rule.head for child in node.children) == node.rule.holes
        filled = fill(node.rule.body, [child.term for child in node.children])
        assert string(filled) == string(node.term)


def test_random_members_of_exhaustive_grammars_are_derived() -> None:
    rng = Random(6)
    for name, words in VOCABULARIES.items():
        grammar = find_grammar(f"G_{name}")
        for _ in range(200):
            term = random_term(rng, rng.choice(SORTS), rng.randint(0, 25), words)
            if not has_scalar_transpose(term):
                check_derivation(grammar, derive_word(grammar, term), term)


def has_scalar_transpose(term: Term) -> bool:
    """Sᵀ is left out of the paper's grammars."""
    if not isinstance(term, Apply):
        return False
    own = term.op == "transpose" and term.sort == S
    return own or any(map(has_scalar_transpose, term.args))


def test_identity_and_diag_of_ones_are_one_string() -> None:
    ppgn, four = find_grammar("PPGN"), find_grammar("four-rule")
    for text in ("I", "diag(1)", "AIA", "Adiag(1)"):
        assert derive_word(ppgn, parse(text)).term == parse(text)
        assert derive_word(four, parse(text)).term == parse(text)
    assert [str(n.rule) for n in derive_word(G_L3, IDENTITY).nodes()] == [
        "M → diag(V_c)",
        "V_c → 1",
    ]


def test_a_rule_with_f_stands_for_every_function() -> None:
    grammar = Fragment("L1 f").exhaustive()
    derive_word(grammar, parse("1ᵀrelu(Asigmoid(A1))"))
    derive_word(grammar, parse("exp(A)"))
    fixed = Grammar.parse("V → relu(V) | AV | 1")
    derive_word(fixed, parse("relu(A1)"))
    with pytest.raises(GrammarError, match=r"no variable derives exp\(A1\)"):
        derive_word(fixed, parse("Aexp(A1)"))


def test_numbers_stand_left_of_times() -> None:
    grammar = Fragment("L1 + ×").exhaustive()
    tree = derive_word(grammar, parse("1.5×A"))
    assert [str(n.rule) for n in tree.nodes()] == ["M → S×M", "S → 1.5", "M → A"]
    with pytest.raises(GrammarError, match="no variable derives 2"):
        derive_word(G_L3, parse("2×A"))


@pytest.mark.parametrize("grammar", [G_L1, G_L3, R_G_L3], ids=lambda g: g.name)
def test_long_chains_answer_at_once(grammar: Grammar) -> None:
    long = "A" * 58
    start = time.process_time()
    tree = derive_word(grammar, parse(f"1ᵀ{long}1"))
    assert sum(node.rule == Rule(M, A) for node in tree.nodes()) == 58
    with pytest.raises(GrammarError, match="no variable derives N"):
        derive_word(grammar, parse(f"1ᵀ{long}N1"))
    with pytest.raises(GrammarError, match="is not a word"):
        derive_word(R_G_L3, parse(f"1ᵀ{long}Aᵀ{long}1"))
    assert time.process_time() - start < 2


def test_deep_derivations_do_not_exhaust_the_stack() -> None:
    """A chain of ones inside diag inside chains: a tree some 900 rules deep."""
    text = "1"
    for _ in range(25):
        text = f"diag({'A' * 30}{text})1"
    tree = derive_word(find_grammar("r-G_L1"), parse(text))
    depth = {id(tree): 1}
    for node in tree.nodes():
        for child in node.children:
            depth[id(child)] = depth[id(node)] + 1
    assert max(depth.values()) > 700
    assert tree == replace(tree)
    assert len(tree_text(tree).splitlines()) == len(list(tree.nodes()))
    assert tree_dot(tree).count("->") > 800
    assert hash(tree) == hash(tree)


def test_a_product_beyond_the_limit_says_so() -> None:
    with pytest.raises(GrammarError, match="a product of 300 factors is too long"):
        derive_word(G_L3, parse("(A^150)(A^150)"))


@pytest.mark.parametrize(
    ("grammar", "text", "message"),
    [
        ("r-G_L3", "Tr(A)", "no variable derives Tr(A), for no rule uses Tr"),
        ("r-G_L3", "1ᵀAᵀ1", "no variable derives Aᵀ; the rules are M → (M⊙M) | MM"),
        ("r-G_L3", "1ᵀ(A⊙NA)1", "no variable derives N"),
        ("r-G_L3", "1ᵀ(A⊙1·1ᵀ)1", "no variable derives 1·1ᵀ; the rules are M →"),
        ("r-G_L3", "1ᵀA", "it is a row vector, and V_r has no rule there"),
        ("r-G_L3", "(1ᵀA1)(1ᵀ1)", "its parts can be derived, but no rule joins them"),
        ("r-G_L3", "A + A", "no variable derives A + A, for no rule uses +"),
        ("r-G_L1", "1ᵀdiag(A1)1 + 1ᵀ1", "for no rule uses +"),
        ("TriMul", "AAᵀA", "no rule joins them; the rules are M → MMᵀ | MᵀM | A"),
        ("PPGN", "1ᵀA", "V_r has no rule there"),
        ("2-IGN (as printed)", "1(A1)ᵀ", "no variable derives (A1)ᵀ; V_r has no rule"),
        ("r-G_L3Σ", "Σv. vᵀAv", "no variable derives vᵀ; V_r has no rule"),  # v: V_c′ → v
        ("r-G_L3Σ", "Σv. 1ᵀAᵀ1", "derives Aᵀ; the rules are M′ → (M′⊙M′) | M′M′ |"),
    ],
)
def test_what_is_not_a_word_is_told_plainly(grammar: str, text: str, message: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(message)) as caught:
        derive_word(find_grammar(grammar), parse(text))
    assert f"is not a word of {grammar}: " in str(caught.value)


def test_the_sort_asked_for_must_be_the_terms() -> None:
    assert derive_word(G_L3, parse("A1"), V).rule.head == V
    with pytest.raises(GrammarError, match="A1 is a column vector, but V_r is a row vector"):
        derive_word(G_L3, parse("A1"), R)


def test_the_read_out_is_part_of_the_grammar() -> None:
    dot = Grammar.parse("V → AV | 1; S → VᵀV")
    derive_word(dot, parse("(A1)ᵀA1"))
    with pytest.raises(GrammarError, match="is not a word"):
        derive_word(dot, parse("1ᵀAᵀ1"))


def dot_tree(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Labels and children of a DOT text, read with a regular expression."""
    labels = dict(re.findall(r'^  (n\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.MULTILINE))
    below: dict[str, list[str]] = {node: [] for node in labels}
    for parent, child in re.findall(r"^  (n\d+) -> (n\d+);", text, re.MULTILINE):
        below[parent].append(child)
    return labels, below


def frontier(labels: dict[str, str], below: dict[str, list[str]], node: str = "n0") -> str:
    if not below[node]:
        return labels[node]
    return "".join(frontier(labels, below, child) for child in below[node])


@pytest.mark.parametrize(
    ("grammar", "text", "leaves"),
    [
        ("G_L1", "1ᵀA1", "1ᵀA1"),
        ("r-G_L3", "1ᵀ(A²⊙diag(A1))1", "1ᵀAA⊙diagA11"),
        ("PPGN", "Tr(A²I)", "TrAAdiag1"),
        ("r-G_L1", "1ᵀdiag(A1)A1", "1ᵀdiagA1A1"),
        ("{·, ᵀ, 1, f}", "1ᵀrelu(A1)", "1ᵀreluA1"),
    ],
)
def test_the_leaves_of_the_dot_tree_spell_the_sentence(
    grammar: str, text: str, leaves: str
) -> None:
    dot = tree_dot(derive_word(find_grammar(grammar), parse(text)))
    labels, below = dot_tree(dot)
    assert frontier(labels, below) == leaves
    variables = {label for node, label in labels.items() if below[node]}
    assert variables <= {"S", "V_c", "V_r", "M"}
    assert not any(labels[node] in ("S", "V_c", "V_r", "M") for node in labels if not below[node])
    assert len(labels) == 1 + dot.count("->")


def test_dot_labels_are_escaped() -> None:
    odd = DerivationTree(Rule(M, Leaf('a"b\\c', M)), Leaf('a"b\\c', M))
    dot = tree_dot(odd)
    assert r'label="a\"b\\c"' in dot
    assert dot.startswith("digraph derivation {\n")
    assert dot.endswith("}\n")
