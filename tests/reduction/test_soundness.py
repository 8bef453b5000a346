"""Reductions of many fragments: certificates hold, and no power is lost, by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from random import Random

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import enumerate_words
from g2n2.language.evaluation import evaluate
from g2n2.language.operations import BINDERS, OPERATIONS
from g2n2.language.patterns import Pattern, canonical, pattern_of
from g2n2.language.sorts import S
from g2n2.language.terms import Apply, Leaf, Term
from g2n2.reduction.certificates import certificate
from g2n2.reduction.checker import check
from g2n2.reduction.proof_goals import split
from g2n2.reduction.reduce import Reduction, reduce

Ints = npt.NDArray[np.int64]
LIMIT = 100
UNMARKED = [name for name in OPERATIONS if name not in BINDERS]
CORE = ("matmul", "transpose", "one", "diag", "hadamard", "trace")


@cache
def reduced(*operations: str) -> Reduction:
    return reduce(Fragment(operations).exhaustive(), alternatives=False)


def assert_sound(reduction: Reduction) -> None:
    """The certificate holds from the grammar to the smaller one, which is not larger."""
    content = certificate(reduction.original, reduction.reduced, reduction.links)
    verdict = check(content)
    assert verdict.valid, verdict.failure
    assert content["from"] == [str(r) for r in reduction.original.all_rules]
    assert len(reduction.reduced.all_rules) <= len(reduction.original.all_rules)
    assert len(reduction.reduced.rules) <= len(reduction.original.rules)
    assert reduction.reduced.operations <= reduction.original.operations


def random_subsets(count: int) -> Iterator[tuple[str, ...]]:
    """Subsets of all operations; each size from one to all is as likely as any other."""
    rng = Random(20)
    for _ in range(count):
        chosen = rng.sample(UNMARKED, rng.randint(1, len(UNMARKED)))
        yield tuple(name for name in UNMARKED if name in chosen)


def test_random_fragments_with_marks() -> None:
    rng = Random(21)
    chosen = [tuple(rng.sample(CORE, rng.randint(2, 6))) for _ in range(8)]
    found = [reduced(*subset, "mark_S", *["mark_S"] * (i % 2)) for i, subset in enumerate(chosen)]
    for reduction in found:
        assert_sound(reduction)
    assert any(r.links for r in found)


def test_random_fragments() -> None:
    subsets = list(random_subsets(24))
    assert len(set(subsets)) > 15
    assert set().union(*subsets) == set(UNMARKED)
    reductions = [reduced(*subset) for subset in subsets]
    for reduction in reductions:
        assert_sound(reduction)
    assert sum(bool(r.links) for r in reductions) > 7
    assert sum(len(r.links) == 2 for r in reductions) > 1  # the lemma, then a simulation


@pytest.mark.slow
def test_more_random_fragments_with_alternatives() -> None:
    for subset in dict.fromkeys(random_subsets(20)):
        grammar = Fragment(subset).exhaustive()
        reduction = reduce(grammar)
        assert reduction.reduced == reduced(*subset).reduced
        assert_sound(reduction)
        for other in reduction.alternatives:
            assert len(other.grammar.rules) < len(reduction.reduced.rules)
            assert check(certificate(reduction.links[-1].larger, other.grammar, other.links)).valid


@pytest.mark.slow
def test_every_fragment_of_the_multilinear_core() -> None:
    subsets = [c for size in range(1, 7) for c in combinations(CORE, size)]
    assert len(subsets) == 63
    for subset in subsets:
        assert_sound(reduced(*subset))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "assume"), [("node", "none"), ("node", "simple"), ("pair", "symmetric")]
)
def test_fragments_of_the_core_at_other_levels(level: str, assume: str) -> None:
    for subset in [c for size in range(1, 7) for c in combinations(CORE, size)][::3]:
        grammar = Fragment(subset).exhaustive()
        assert_sound(reduce(grammar, assume, level, alternatives=False))  # type: ignore[arg-type]


# --- no power is lost, by brute force ------------------------------------------------------------


def matrices() -> dict[int, Ints]:
    """By size, all graphs of up to five nodes and all small symmetric matrices, as `[B, n, n]`.

    The weights and loops matter: simple graphs so small are told apart by walk counts alone. Four
    graphs of seven nodes are not, two and two, though 1-WL tells them apart.
    """
    graphs = [g for g in nx.graph_atlas_g() if 1 <= g.number_of_nodes() <= 5]
    assert len(graphs) == 52
    by_size: dict[int, list[Ints]] = {n: [] for n in range(1, 6)}
    for graph in graphs:
        by_size[len(graph)].append(nx.to_numpy_array(graph, dtype=np.int64))
    for n, values in ((2, 4), (3, 3), (4, 2)):
        for entries in product(range(values), repeat=n * (n + 1) // 2):
            a = np.zeros((n, n), np.int64)
            a[np.triu_indices(n)] = entries
            by_size[n].append(a + np.triu(a, 1).T)
    walk_mates = map(nx.from_graph6_bytes, (b"FhoW?", b"Fg?hg", b"FDgh_", b"F[EoG"))
    by_size[7] = [nx.to_numpy_array(g, dtype=np.int64) for g in walk_mates]
    return {n: np.stack(found) for n, found in by_size.items()}


MATRICES = matrices()


def odd_function(x: Ints) -> Ints:
    """A function that is no polynomial of low degree; f(0) = 1."""
    return np.where(x == 0, 1, (x * x + 3) % 7)


def value(term: Term, a: Ints) -> Ints:
    """The value of a term on a stack of matrices, in whole numbers."""
    n = a.shape[-1]
    match term:
        case Leaf(name="A"):
            return a
        case Leaf(name="1"):
            return np.ones((len(a), n, 1), np.int64)
        case Apply(args=(x,), function=function) if function:
            return odd_function(value(x, a))
        case Apply(op="matmul", args=(x, y)):
            return value(x, a) @ value(y, a)
        case Apply(op="hadamard" | "scale", args=(x, y)):
            return value(x, a) * value(y, a)
        case Apply(op="add", args=(x, y)):
            return value(x, a) + value(y, a)
        case Apply(op="transpose", args=(x,)):
            return np.swapaxes(value(x, a), 1, 2)
        case Apply(op="diag", args=(x,)):
            return value(x, a) if x.sort == S else value(x, a) * np.eye(n, dtype=np.int64)
        case Apply(op="trace", args=(x,)):
            return np.trace(value(x, a), axis1=1, axis2=2)[:, None, None]
    raise AssertionError(term)


def test_the_values_agree_with_the_reference() -> None:
    for word in enumerate_words(Fragment("L3 Tr + ×").exhaustive(), S, 6, limit=200):
        a = MATRICES[4][::100]
        assert list(value(word.term, a).ravel()) == [evaluate(word.term, x).item() for x in a]


@cache
def profile(grammar: Grammar, size: int) -> list[tuple[int, ...]]:
    """For each matrix the values of its small sentences."""
    terms = [word.term for word in enumerate_words(grammar, S, size, limit=LIMIT)]
    rows: list[tuple[int, ...]] = []
    for a in MATRICES.values():
        columns = [value(term, a).ravel() for term in terms]
        assert all(abs(column).max() < 2**60 for column in columns)
        rows += zip(*columns, strict=True) if columns else [()] * len(a)
    return rows


def lost_pair(larger: Grammar, smaller: Grammar, size: int, more: int) -> tuple[int, int] | None:
    """Two matrices that small sentences of one tell apart and those of the other do not."""
    first: dict[tuple[int, ...], int] = {}
    ours, theirs = profile(larger, size), profile(smaller, more)
    for i, row in enumerate(theirs):
        j = first.setdefault(row, i)
        if ours[i] != ours[j]:
            return j, i
    return None


# operations; size of the sentences of G, and of those of its reduction
FRAGMENTS = [
    ("· Tr", 5, 8),
    ("· ᵀ 1", 5, 8),
    ("L1", 5, 8),
    ("L3", 5, 8),
    ("L3 Tr", 4, 8),
    ("· ᵀ 1 Tr", 5, 8),
    ("· ⊙ Tr", 4, 6),
    ("· ᵀ 1 ⊙", 5, 8),
    ("⊙ Tr", 5, 6),
    ("1 diag · Tr", 5, 8),
    ("1 diag ⊙ Tr ᵀ", 5, 7),
    ("· ᵀ 1 + f_S", 5, 8),
    ("L1 f_V f_S", 5, 10),
    ("L3 f_S f_V f_M", 5, 9),
    ("· ⊙ Tr f_M", 4, 5),
    ("· ᵀ 1 f_V", 5, 6),
]


@pytest.mark.parametrize(("fragment", "size", "more"), FRAGMENTS, ids=[f for f, *_ in FRAGMENTS])
def test_no_power_is_lost_on_small_matrices(fragment: str, size: int, more: int) -> None:
    reduction = reduced(*Fragment(fragment).operations)
    assert lost_pair(reduction.original, reduction.reduced, size, more) is None


# Too small a grammar, and it shows; what the brute force would find in a wrong reduction.
TOO_SMALL = [
    ("L1", "V → AV | 1"),
    ("L3", "V → diag(V)V | AV | 1"),
    ("L3", "V → MV | 1; M → MM | diag(V) | A"),
    ("· ᵀ 1 Tr", "V → AV | 1; S → VᵀV"),
    ("· ⊙ Tr", "M → MM | A; S → Tr(M)"),
    ("· ⊙ Tr", "M → M⊙M | A; S → Tr(M)"),
    ("· ⊙ Tr f_M", "M → M⊙M | MM | A; S → Tr(M)"),
    ("· ᵀ 1 f_V", "V → AV | 1"),
]


@pytest.mark.parametrize(("fragment", "smaller"), TOO_SMALL)
def test_the_brute_force_can_fail(fragment: str, smaller: str) -> None:
    larger = Fragment(fragment).exhaustive()
    assert lost_pair(larger, Grammar.parse(smaller), 7, 8) is not None


# --- every sentence is a product of sentences ----------------------------------------------------


def components(grammar: Grammar, size: int, limit: int) -> dict[Pattern, str]:
    """The connected parts of the small sentences of a grammar, each with one such sentence."""
    found: dict[Pattern, str] = {}
    for word in enumerate_words(grammar, S, size, limit=limit):
        for part in split(pattern_of(word.term))[0]:
            found.setdefault(canonical(part), str(word.term))
    return found


@pytest.mark.parametrize(
    ("fragment", "size", "more"),
    [
        ("L1", 7, 10),
        ("L3", 6, 9),
        ("· Tr", 7, 7),
        ("· ᵀ 1", 8, 9),
        ("· ᵀ 1 Tr", 7, 8),
        ("· ⊙ Tr", 6, 6),
        ("1 diag · Tr", 6, 9),
    ],
)
def test_every_sentence_is_a_product_of_sentences_of_the_reduced_grammar(
    fragment: str, size: int, more: int
) -> None:
    """What the invariant says of S, by listing both sides."""
    reduction = reduced(*Fragment(fragment).operations)
    wanted = components(reduction.original, size, 400)
    made = components(reduction.reduced, more, 4000)
    missing = [text for part, text in wanted.items() if part not in made]
    assert len(wanted) > 3
    assert not missing
