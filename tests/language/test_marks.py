"""Sums over marks, Σv. e: laws, scopes, and patterns against the reference interpreter."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from random import Random

import networkx as nx
import numpy as np
import pytest

from g2n2.errors import G2N2Error, GrammarError
from g2n2.language.equality import decide
from g2n2.language.evaluation import evaluate, evaluate_mod
from g2n2.language.parsing import parse
from g2n2.language.patterns import equal, normal_form
from g2n2.language.printing import to_ascii, to_latex, to_text
from g2n2.language.sorts import SORTS, M, R, S, Sort, V
from g2n2.language.terms import ONE, A, Leaf, Term, apply, leaves, mark_sum, substitute

LAWS = [
    ("Σv. v", "1"),
    ("Σv. vvᵀ", "I"),
    ("Σv. vᵀAv", "Tr(A)"),
    ("Σv. (vᵀw)×(vvᵀ)", "diag(w)"),
    ("Σv. vᵀw", "1ᵀw"),
    ("Σv. v⊙v", "1"),
    ("Σv. diag(v)", "I"),
    ("Σv. (1ᵀv)×A", "(1ᵀ1)×A"),
    ("Σv. A", "(1ᵀ1)×A"),
    ("Σu. Σv. (uᵀAv)×((uᵀMv)×(uvᵀ))", "A⊙M"),
    ("Σu. Σv. (uᵀv)×(uᵀAv)", "Tr(A)"),
    ("Σu. Σv. uᵀAv", "Σv. Σu. uᵀAv"),
    ("Σv. Σv. vᵀAv", "(1ᵀ1)×Tr(A)"),
    ("Σv. (Av)ᵀ", "(Σv. Av)ᵀ"),
    ("Σv. vᵀAv + vᵀA²v", "Tr(A) + Tr(A²)"),
    ("Σv. f(Av)", "Σu. f(Au)"),
    ("Σu. Σv. f(u⊙Av)", "Σv. Σu. f(v⊙Au)"),
    ("Σv. f(vᵀAv)×v", "Σx. f(Tr(A⊙xxᵀ))×x"),
]
NO_LAWS = [
    ("Σv. (vᵀAv)×(vᵀMv)", "(Σv. vᵀAv)×(Σv. vᵀMv)"),
    ("Σv. A", "A"),
    ("Σu. Σv. uᵀAv", "Σv. vᵀAv"),
    ("Σv. vᵀAw", "Σw. wᵀAw"),
    ("Σv. f(vᵀAv)", "f(Σv. vᵀAv)"),
    ("Σu. Σv. f(u⊙Av)", "Σu. Σv. f(u⊙Au)"),
]


@pytest.mark.parametrize(("left", "right"), LAWS)
def test_laws(left: str, right: str) -> None:
    assert equal(left, right)


@pytest.mark.parametrize(("left", "right"), NO_LAWS)
def test_what_is_no_law_has_a_counterexample(left: str, right: str) -> None:
    decision = decide(left, right)
    assert not decision.equal
    assert decision.counterexample is not None


def test_a_loop_of_a_simple_graph_vanishes_when_the_mark_makes_it() -> None:
    assert equal("Σv. (vᵀAv)×A", "0×A", assume="simple")
    assert not equal("Σv. (vᵀAv)×A", "0×A")


def test_a_mark_is_no_free_variable() -> None:
    term = parse("vᵀA(Σv. (vᵀAv)×v)")
    assert [leaf.name for leaf in leaves(term)] == ["v", "A", "A"]
    moved = substitute(term, {"v": ONE})
    assert moved == parse("1ᵀA(Σv. (vᵀAv)×v)")
    matrix = np.array([[2, 3], [3, 5]])
    assert evaluate(term, matrix, {"v": [1, 10]}).item() == (1 * 2 + 10 * 3) * 2 + (3 + 50) * 5


def test_a_sum_captures_no_mark_that_is_substituted() -> None:
    matrix = nx.to_numpy_array(nx.lollipop_graph(4, 2))  # degrees 3, 3, 3, 4, 2, 1
    term = mark_sum("v", substitute(parse("Σv. wᵀA²v"), {"w": Leaf("v", V)}))
    assert evaluate(term, matrix).item() == 48
    assert str(term) == "Σv. Σu. vᵀA²u"
    nested = substitute(parse("Σv. Σu. (wᵀA²v)×(uᵀAv)"), {"w": Leaf("v", V)})
    assert equal(nested, parse("Σx. Σy. (vᵀA²x)×(yᵀAx)"))
    swapped = substitute(parse("Σw. (uᵀAw)×(vᵀA²w)"), {"u": Leaf("v", V), "v": Leaf("w", V)})
    assert equal(swapped, parse("Σx. (vᵀAx)×(wᵀA²x)"))


def test_a_sum_keeps_its_letter_where_it_captures_nothing() -> None:
    term = parse("Σv. Σu. uᵀAv")
    assert substitute(term, {"u": Leaf("v", V), "v": ONE, "w": Leaf("u", V)}) == term
    others = (Leaf(letter, V) for letter in "uvxyz")
    with pytest.raises(GrammarError, match="six letters"):
        substitute(parse("Σv. wᵀv"), {"w": reduce(Term.__add__, others, Leaf("w", V))})


@pytest.mark.parametrize(
    ("text", "caret", "part"),
    [
        ("Σv vᵀAv", 1, "a dot"),
        ("Σa. A", 1, "one letter from u to z"),
        ("mark A", 4, "one letter from u to z"),
        ("(Σx. x)x", 7, "outside its Σx"),
        ("Σv. ", 4, "where a term should be"),
    ],
)
def test_faults_are_shown_at_their_place(text: str, caret: int, part: str) -> None:
    with pytest.raises(G2N2Error) as caught:
        parse(text)
    assert part in str(caught.value)
    assert str(caught.value).splitlines()[2].index("^") - 2 == caret


def test_names_of_marks_are_checked_in_python_too() -> None:
    with pytest.raises(GrammarError, match="one letter from u to z"):
        mark_sum("A", A)


def test_printed_notations() -> None:
    term = parse("A(Σv. vvᵀ) + (Σu. Σv. uᵀAv) × A")
    assert to_text(term) == "A(Σv. vvᵀ) + (Σu. Σv. uᵀAv)×A"
    assert to_ascii(term) == "A (mark v. v v^T) + (mark u. mark v. u^T A v) * A"
    assert to_latex(parse("Σv. vᵀv")) == r"\sum_{v} v^{\mathsf T} v"


def random_marked(rng: Random, sort: Sort, size: int, marks: str = "") -> Term:
    """A random term of a sort; half of its columns are marks in scope."""
    if sort == S and size <= 0:
        size = 1
    if size <= 0:
        column = Leaf(rng.choice(marks), V) if marks and rng.random() < 0.6 else ONE
        return {V: column, R: column.T, M: A}[sort]
    if rng.random() < 0.3 and len(marks) < 2:
        mark = rng.choice([name for name in "uv" if name not in marks])
        return mark_sum(mark, random_marked(rng, sort, size - 1, marks + mark))

    def part(wanted: Sort) -> Term:
        return random_marked(rng, wanted, (size - 1) // 2, marks)

    ways = {
        S: [lambda: part(R) @ part(V), lambda: apply("trace", part(M))],
        V: [lambda: part(M) @ part(V), lambda: part(V) * part(V), lambda: part(R).T],
        R: [lambda: part(V).T],
        M: [
            lambda: part(M) @ part(M),
            lambda: apply("hadamard", part(M), part(M)),
            lambda: apply("diag", part(V)),
            lambda: part(V) @ part(R),
            lambda: part(M).T,
            lambda: apply("scale", part(S), part(M)),
        ],
    }
    return rng.choice(ways[sort])()


def test_a_thousand_pairs_against_the_interpreter() -> None:
    """Patterns are equal where values are equal on random matrices, and only there."""
    rng = Random(5)
    numbers = np.random.default_rng(5)
    inputs = []
    for n in (1, 2, 5):
        entries = np.triu(numbers.integers(1, 10**6, (n, n)))
        inputs.append(entries + np.triu(entries, 1).T)
    groups: dict[object, list[Term]] = defaultdict(list)
    for _ in range(2000):
        term = random_marked(rng, rng.choice(SORTS), rng.randint(1, 12))
        values = tuple(tuple(evaluate_mod(term, matrix).ravel()) for matrix in inputs)
        if term not in groups[term.sort, values]:
            groups[term.sort, values].append(term)
    same = [(x[0], y) for x in groups.values() for y in x[1:]]
    assert len(same) >= 500
    for left, right in same:
        assert equal(left, right), f"{left} = {right}"
    forms = defaultdict(set)
    for (sort, values), terms in groups.items():
        form = frozenset(normal_form(terms[0]).items())
        forms[sort, form].add(values)
    assert all(len(values) == 1 for values in forms.values()), "one pattern, two values"
    assert len(groups) >= 200


def test_marked_terms_are_printed_and_read_back() -> None:
    rng = Random(6)
    for _ in range(500):
        term = random_marked(rng, rng.choice(SORTS), rng.randint(1, 8))
        assert parse(to_text(term)) == term
        assert parse(to_ascii(term)) == term
