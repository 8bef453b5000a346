"""Networks never tell apart more than the WL test of their grammar, and together all of it.

For every grammar of the catalogue, reduced grammars of sets of operations with a sentence, and random
grammars: presets `paper` and `modern`, sums, own and pooled read-out, with and without pair biases,
on all pairs of graphs of equal size up to six nodes. The default suite runs a few of them, `-m slow`
the whole; `-s` prints the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import pytest

import network_trials
from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import undefined_supports
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.power.grammar_test import grammar_test
from g2n2.reduction.reduce import reduce
from network_trials import AT_ONCE, Outcome, outcomes
from random_grammars import random_grammar

pytestmark = pytest.mark.usefixtures("one_thread")
CORE = ("matmul", "transpose", "one", "diag", "hadamard", "trace")
RANDOM = 12
MORE = 9
"""Networks after the first three, where those have not told apart all that the test does."""

EXCEPTIONS: frozenset[str] = frozenset(())
"""Settings in which these networks left pairs together that the test tells apart."""

SOME = (
    "r-G_L1",
    "r-G_L3",
    "M → A; S → Tr(MMM)",
    "V → (A⊙A)1 | 1; V_r → 1ᵀAA; S → V_rV_c",
)


@dataclass
class Summary:
    """Counts over many settings."""

    cases: int = 0
    at_once: int = 0
    later: int = 0
    largest: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, none above the test (largest gap within a class "
            f"{self.largest:.0e}), {self.at_once} seen within {AT_ONCE} networks, {self.later} with "
            f"up to {MORE} more, {self.cases - self.at_once - self.later} not"
        )


def assert_networks_fit(grammars: Iterable[Grammar], layers: Sequence[int]) -> None:
    summary = Summary()
    left: set[str] = set()
    for grammar in grammars:
        for outcome in outcomes(grammar, layers=layers, more=MORE):
            assert not outcome.above, f"{outcome.name}, {outcome.setting}: {outcome.above[:3]}"
            summary.cases += 1
            summary.largest = max(summary.largest, outcome.largest)
            if outcome.left:
                left.add(f"{outcome.name}: {outcome.setting}")
            elif outcome.networks <= AT_ONCE:
                summary.at_once += 1
            else:
                summary.later += 1
    print(summary)
    assert left <= EXCEPTIONS


def with_sentences() -> list[Fragment]:
    """The sets of the six operations whose grammar has a sentence."""
    sets = (Fragment(c) for size in range(1, 7) for c in combinations(CORE, size))
    return [fragment for fragment in sets if fragment.exhaustive().sentence_rules]


@pytest.mark.parametrize("text", SOME)
def test_some_grammars(text: str) -> None:
    assert_networks_fit([find_grammar(text)], (1, 2))


@pytest.mark.slow
def test_the_catalogue() -> None:
    grammars = [g for g in UNMARKED.values() if not undefined_supports(g)]
    assert len(grammars) == 18
    assert_networks_fit(grammars, (3,))


@pytest.mark.slow
def test_reduced_grammars_of_sets_of_operations() -> None:
    fragments = with_sentences()
    assert len(fragments) == 36
    reduced = {reduce(f.exhaustive(), alternatives=False).reduced: str(f) for f in fragments[::2]}
    assert_networks_fit((grammar.named(name) for grammar, name in reduced.items()), (2,))


@pytest.mark.slow
def test_random_grammars() -> None:
    assert_networks_fit(map(random_grammar, range(RANDOM)), (2,))


# -- the trials themselves can fail -----------------------------------------------------------------


def trial_of(text: str, layers: int, monkeypatch: pytest.MonkeyPatch, shift: int) -> list[Outcome]:
    """Networks against the test of another depth than their own."""
    honest = network_trials.classes_of_test
    monkeypatch.setattr(
        network_trials, "classes_of_test", lambda plan, rounds, _: honest(plan, rounds + shift)
    )
    return list(outcomes(find_grammar(text), ("paper",), (layers,), 3))


@pytest.mark.parametrize("text", ["r-G_L1", "r-G_L3"])
def test_a_test_that_is_too_weak_is_found_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(outcome.above for outcome in trial_of(text, 2, monkeypatch, -1))


@pytest.mark.parametrize("text", ["r-G_L1", "r-G_L3"])
def test_a_test_that_is_too_strong_is_found_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(outcome.left for outcome in trial_of(text, 1, monkeypatch, 1))


def test_biases_on_pairs_make_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks without them do not reach what any function would tell apart."""
    monkeypatch.setattr(
        network_trials,
        "classes_of_test",
        lambda plan, rounds, _: (
            grammar_test(
                plan.test_grammar(), network_trials.small_graphs(), rounds=rounds
            ).graph_colours
        ),
    )
    grammar = find_grammar("M → A; S → Tr(MMM)")
    for outcome in outcomes(grammar, ("paper",), (1,), 3, readouts=("grammar",)):
        assert bool(outcome.left) is not outcome.setting.pair_bias
