"""The obligations of L3 → r-G_L3 as THEORY.md lists them, and every identity in numbers."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.language.evaluation import PRIME, evaluate_mod
from g2n2.language.parsing import CONSTANTS, parse
from g2n2.language.patterns import Assumption, normal_form
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import Leaf, Term, leaves
from g2n2.reduction.invariants import Claim, Form
from g2n2.reduction.simulation import Proof, SimulationWitness, prove

OPAQUE = {"s": S, "v": V, "w": V, "m": M}
NAMES: dict[str, Term] = {
    **CONSTANTS,
    **{f"{a}{i}": Leaf(f"{a}{i}", sort) for a, sort in OPAQUE.items() for i in range(2)},
}

# Left: a rule on alternatives. Right: the sentences that split off, then the word that is left.
# Opaque scalars split off as themselves and are not shown; nothing else is left of a scalar. The
# last twelve are what THEORY.md calls the rest.
THEORY = """
(m0⊙m1)ᵀ                     => m0ᵀ⊙m1ᵀ
(m0·m1)ᵀ                     => m1ᵀ·m0ᵀ
diag(v0)ᵀ                    => diag(v0)
Aᵀ                           => A
(s0×v0ᵀ)·(v1·s1)             => 1ᵀ(diag(v0)v1)
(s0×m0)·(v1·s1)              => m0·v1
((v0·s0)·w0ᵀ)·(v1·s1)        => 1ᵀ(diag(v1)w0) ; v0
(s0×v0ᵀ)·(s1×m1)             => (m1ᵀ·v0)ᵀ
(s0×v0ᵀ)·((v1·s1)·w1ᵀ)       => 1ᵀ(diag(v0)v1) ; w1ᵀ
(s0×m0)·(s1×m1)              => m0·m1
(s0×m0)·((v1·s1)·w1ᵀ)        => (m0·v1)·w1ᵀ
((v0·s0)·w0ᵀ)·(s1×m1)        => v0·(m1ᵀ·w0)ᵀ
((v0·s0)·w0ᵀ)·((v1·s1)·w1ᵀ)  => 1ᵀ(diag(v1)w0) ; v0·w1ᵀ
(s0×m0)ᵀ                     => m0ᵀ
((v0·s0)·w0ᵀ)ᵀ               => w0·v0ᵀ
(v0·s0)⊙(v1·s1)              => diag(v0)·v1
(s0×m0)⊙(s1×m1)              => m0⊙m1
(s0×m0)⊙((v1·s1)·w1ᵀ)        => diag(v1)·m0·diag(w1)
((v0·s0)·w0ᵀ)⊙((v1·s1)·w1ᵀ)  => (diag(v0)v1)·(diag(w0)w1)ᵀ
diag(v0·s0)                  => diag(v0)
((v0·s0)·w0ᵀ)⊙(s1×m1)        => diag(v0)·m1·diag(w0)
(v0·s0)·(s1×v1ᵀ)             => v0·v1ᵀ
(s0×v0ᵀ)⊙(s1×v1ᵀ)            => (diag(v0)v1)ᵀ
(s0×v0ᵀ)ᵀ                    => v0
(v0·s0)ᵀ                     => v0ᵀ
(v0·s0)·s1                   => v0
s0·(s1×v1ᵀ)                  => v1ᵀ
1                            => 1
A                            => A
diag(s0)                     =>
s0·s1                        =>
s0⊙s1                        =>
"""

Triple = tuple[object, ...]


def triple(term: Term, factors: list[Term], word: Term | None) -> Triple:
    """An obligation up to equality of its term, its sentences and its word."""
    shown = sorted(str(sorted(normal_form(f).items(), key=str)) for f in factors)
    return term.sort, key(term), tuple(shown), word and (word.sort, key(word))


def key(term: Term) -> object:
    return frozenset(normal_form(term).items())


def whole_word(witness: SimulationWitness) -> Term | None:
    """What is left once the sentences are split off, as one term of the obligation's sort."""
    sort, words = witness.obligation.term.sort, witness.words
    if sort == S:
        return None
    if len(words) == 2:
        return words[0] @ words[1].T
    return words[0].T if sort == R else words[0]


def from_theory(line: str) -> Triple:
    left, right = line.split("=>")
    term = parse(left, NAMES)
    parts = [parse(text, NAMES) for text in right.split(";") if text.strip()]
    word = None if term.sort == S else parts.pop()
    return triple(term, parts, word)


def from_proof(witness: SimulationWitness) -> Triple:
    factors = [f for f in witness.factors if not (isinstance(f, Leaf) and f.sort == S)]
    return triple(witness.obligation.term, factors, whole_word(witness))


@cache
def proof_of(larger: str, smaller: str, form: Form, assume: Assumption = "symmetric") -> Proof:
    claim = Claim(find_grammar(larger), find_grammar(smaller), form, assume)
    proof = prove(claim)
    assert proof is not None
    return proof


def test_theorys_obligations_of_l3() -> None:
    lines = THEORY.strip().splitlines()
    proof = proof_of("G_L3", "r-G_L3", "shape")
    assert len(lines) == len(proof.witnesses) == 32
    ours = Counter(map(from_proof, proof.witnesses))
    missing = [line for line in lines if from_theory(line) not in ours]
    assert not missing
    assert Counter(map(from_theory, lines)) == ours


# --- the same identities in numbers --------------------------------------------------------------

Value = npt.NDArray[np.object_]


def random_values(rng: Random, n: int, assume: Assumption) -> tuple[Value, dict[str, Value]]:
    """A matrix that meets the assumption, and values of all opaque leaves."""
    high = 1 if assume == "simple" else 50
    upper = np.array([[rng.randint(0, high) for _ in range(n)] for _ in range(n)])
    if assume == "simple":
        upper = np.triu(upper, 1)
        upper = upper + upper.T
    elif assume == "symmetric":
        upper = upper + upper.T
    shapes = {"s": (1, 1), "v": (n, 1), "w": (n, 1), "x": (n, 1), "r": (1, n), "m": (n, n)}
    leaves_of = {
        f"{letter}{i}": np.array(
            [rng.randrange(PRIME) for _ in range(rows * columns)], dtype=object
        ).reshape(rows, columns)
        for letter, (rows, columns) in shapes.items()
        for i in ([0, 1, 2] if letter != "x" else [""])
    }
    return upper, leaves_of


def both_sides(
    witness: SimulationWitness, form: Form, a: Value, given: dict[str, Value]
) -> list[Value]:
    """The obligation's value, and that of its factors times its words."""

    def value(term: Term) -> Value:
        return evaluate_mod(term, a, PRIME, given)

    scale = 1
    for factor in witness.factors:
        scale = scale * value(factor).item() % PRIME
    sort = witness.obligation.term.sort
    words = [value(word) for word in witness.words]
    if sort != M or len(words) == 2:
        columns = [w if x.sort != M else column(w, form) for w, x in zip(words, witness.words, strict=True)]  # fmt: skip
        words = [columns[0] @ columns[1].T] if len(columns) == 2 else columns
    total = words[0] if words else np.array([[1]], dtype=object)
    right = scale * (total.T if sort == R and total.shape[1] == 1 else total) % PRIME
    return [value(witness.obligation.term), right]


def column(matrix: Value, form: Form) -> Value:
    """The column that v·1ᵀ or diag(v) stands for."""
    assert form in ("broadcast", "diagonal")
    if form == "broadcast":
        assert all((matrix[:, :1] == matrix).all(axis=1))
        return matrix[:, :1]
    diagonal = np.diag(matrix)
    assert np.array_equal(matrix, np.diag(diagonal))
    return diagonal.reshape(-1, 1)


CLAIMS: list[tuple[str, str, Form, Assumption]] = [
    ("G_L1", "r-G_L1", "action", "symmetric"),
    ("r-G_L1", "G_L1", "plain", "symmetric"),
    ("G_L3", "r-G_L3", "shape", "symmetric"),
    ("r-G_L3", "G_L3", "plain", "symmetric"),
    ("G_L3", "i-G_L3", "shape", "symmetric"),
    ("i-G_L3", "r-G_L3", "plain", "symmetric"),
    ("G_L3", "r-G_L3 ∪ M → Aᵀ", "shape", "none"),
    ("G_L1", "V → AV | AᵀV | diag(V)V | 1", "action", "none"),
    ("G_L3", "M → M⊙M | MM | diag(1) | A; S → 1ᵀ(M1)", "diagonal", "simple"),
    ("r-G_L3", "M → M⊙M | MM | diag(1) | 1·1ᵀ | A; S → 1ᵀ(M1)", "broadcast", "symmetric"),
    ("L3,Tr", "r-G_L3", "shape", "symmetric"),
    ("L3,×", "r-G_L3", "shape", "symmetric"),
    ("matmul,transpose,one,hadamard", "V → V⊙V | MV | 1; M → M⊙M | MM | VVᵀ | A", "plain", "symmetric"),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: f"{c[0]} by {c[1]}")
def test_every_identity_holds_in_numbers(claim: tuple[str, str, Form, Assumption]) -> None:
    proof = proof_of(*claim)
    rng = Random(7)
    for witness in proof.witnesses:
        for n in (1, 2, 4, 5):
            given = random_values(rng, n, claim[3])
            left, right = both_sides(witness, claim[2], *given)
            assert left.shape == right.shape
            assert np.array_equal(left, right), witness.obligation


def test_only_the_transpose_lemma_gives_transposed_words() -> None:
    """Without it L3 → r-G_L3 has an obligation that is not met: v0ᵀ·m1 needs m1ᵀ."""
    proof = proof_of("G_L3", "r-G_L3", "shape")
    assert proof.transposed
    turned = [w for w in proof.witnesses if any("ᵀ" in str(x) for x in w.words)]
    assert {str(w.obligation.rule) for w in turned if w.obligation.kind == "simulate"} == {
        "V_r → V_rM",
        "M → MM",
        "M → Mᵀ",
    }
    assert all(leaf.name[0] == "m" for w in turned for x in w.words for leaf in leaves(x) if leaf.sort == M)  # fmt: skip
    assert Fragment("L3").exhaustive() == find_grammar("G_L3")
