"""What a step says: every identity it prints is true as it stands."""

from __future__ import annotations

import pytest

from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar, Level
from g2n2.language.parsing import parse
from g2n2.language.patterns import Assumption, equal
from g2n2.reduction.explain import steps
from g2n2.reduction.reduce import reduce
from reduction.forging import NAMES


def identities(
    grammar: Grammar, assume: Assumption = "symmetric", level: Level = "graph"
) -> set[str]:
    links = reduce(grammar, assume, level, alternatives=False).links
    return {text for step in steps(links) for text in step.identities}


def holds(identity: str, assume: Assumption) -> bool:
    left, right = (parse(side, NAMES) for side in identity.split(" = "))
    return left.sort == right.sort and equal(left, right, assume)


@pytest.mark.parametrize(
    ("fragment", "assume", "level"),
    [
        ("L1", "symmetric", "graph"),
        ("L3", "symmetric", "graph"),
        ("L3", "none", "pair"),
        ("· ᵀ 1 ⊙", "none", "node"),
        ("· ᵀ Tr", "none", "pair"),
        ("· ᵀ 1 diag f_M", "none", "node"),
        ("L1 × f_M", "none", "pair"),
        ("· ᵀ 1 f_V", "symmetric", "graph"),
        ("· 1", "none", "node"),
    ],
)
def test_every_identity_holds(fragment: str, level: Level, assume: Assumption) -> None:
    for identity in identities(Fragment(fragment).exhaustive(), assume, level):
        assert holds(identity, assume), identity


@pytest.mark.parametrize("fragment", ["· Tr", "· ᵀ 1 ⊙", "· ᵀ 1", "L3 Tr", "L1 ×"])
def test_the_paper_is_not_quoted_on_grammars_it_does_not_speak_of(fragment: str) -> None:
    found = steps(reduce(Fragment(fragment).exhaustive(), alternatives=False).links)
    assert found
    assert not any(step.paper or step.ours for step in found)


@pytest.mark.parametrize(("fragment", "theorem"), [("L1", "Theorem 4"), ("L3", "Theorem 2")])
def test_each_theorem_is_quoted_on_its_own_grammar(fragment: str, theorem: str) -> None:
    found = steps(reduce(Fragment(fragment).exhaustive(), alternatives=False).links)
    quoted = " ".join(step.paper for step in found)
    assert theorem in quoted
    assert quoted.count("Theorem") == quoted.count(theorem)


def test_the_exact_form_keeps_its_scalars_and_its_rows() -> None:
    shown = identities(Fragment("· ᵀ 1 diag f_M").exhaustive())
    assert shown == {"diag(s0) = s0", "v0s1 = (s1v0ᵀ)ᵀ", "r0m1 = (m1ᵀr0ᵀ)ᵀ"}


def test_the_other_forms_leave_out_the_scalars_they_carry() -> None:
    assert "m0⊙v1w1ᵀ = diag(v1)(m0diag(w1))" in identities(Fragment("L3").exhaustive())
