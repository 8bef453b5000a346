"""Interpreter against compiled network: random words of every grammar, written as weights.

Each word is derived at random, evaluated by `language.evaluation`, and computed by a network whose
weights `write_formula` set: graphs of several sizes in one batch, float64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cases import UNMARKED
from g2n2.compiler.formula_plan import FormulaPlan, plan_formulas
from g2n2.compiler.grammar_to_plan import steps_of, undefined_supports
from g2n2.compiler.inputs import plan_inputs
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.language.evaluation import FUNCTION_VALUES, evaluate
from g2n2.language.sorts import SORTS, M, S, Sort
from g2n2.language.terms import Number, Term, fill, subterms
from g2n2.nn.model import GrammarGNN
from g2n2.nn.writing import TASKS, write_formula

TOLERANCE = 1e-9
SIZES = (1, 2, 7, 4)
GROUP = 20
"""Words written into one network."""
CHUNK = 40
"""Words compared on one batch of graphs."""
MOST_EXTRA = 20
"""Batches of further words for a grammar with a rule that is still rare."""
NUMBERS = tuple(Fraction(x) for x in ("2", "-1", "1/2", "-3", "1", "3/4"))
LARGEST = 2.0**50
"""Above this, integers are no longer exact, and differences of them say nothing."""

GRAMMARS = UNMARKED | {
    grammar.name: grammar
    for grammar in (
        Fragment("L1").exhaustive("full"),
        Fragment("L3").exhaustive("full"),
        Fragment("L3 Tr").exhaustive("full"),
        Fragment("· Tr + × f").exhaustive(),
        Fragment("L3 Tr + × f").exhaustive("full"),
    )
}


class FixedSupports(nn.Module):
    """C_1 = A, C_2 = A with loops, C_3 = A² halved."""

    def forward(self, adjacency: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        loops = torch.diag_embed(mask.to(adjacency.dtype))
        return torch.stack([adjacency, adjacency + loops, adjacency @ adjacency / 2], dim=-1)


@dataclass
class Words:
    """Random words of a grammar, by the depth of their derivation, rarely used rules first."""

    grammar: Grammar
    rng: Random
    used: Counter[Rule]

    def __post_init__(self) -> None:
        self.least: dict[Sort, int] = {}
        for _ in SORTS:
            for rule in self.grammar.all_rules:
                if all(hole in self.least for hole in rule.holes):
                    depth = self.depth_of(rule)
                    self.least[rule.head] = min(depth, self.least.get(rule.head, depth))
        self.numbers = "scale" in self.grammar.operations

    def depth_of(self, rule: Rule) -> int:
        below = [self.least[hole] for hole in rule.holes]
        return 1 + max(below) if below else 0

    def word(self, sort: Sort, depth: int) -> Term:
        """A word whose derivation is `depth` deep where the sort allows it."""
        if sort == S and self.numbers and depth <= 1 and self.rng.random() < 0.6:
            return Number(self.rng.choice(NUMBERS))
        rules = [r for r in self.grammar.of_sort(sort) if self.depth_of(r) <= depth]
        rules = [r for r in rules if r.holes] or rules
        assert rules, f"no rule of {sort.variable} ends within {depth} steps"
        rule = self.rng.choice(rules)
        if self.rng.random() < 0.6:
            rule = min(rules, key=lambda r: self.used[r] + self.rng.random())
        self.used[rule] += 1
        deep = self.rng.randrange(max(len(rule.holes), 1))
        parts = [
            self.word(hole, max(self.least[hole], depth - 1 if k == deep else self.shallow(depth)))
            for k, hole in enumerate(rule.holes)
        ]
        return fill(rule.body, parts)

    def shallow(self, depth: int) -> int:
        return self.rng.randint(0, min(depth - 1, 2))

    def __iter__(self) -> Iterator[Term]:
        sorts = [s for s in (*SORTS, S, M) if s in self.least]
        while True:
            sort = self.rng.choice(sorts)
            depth = self.rng.choice((1, 2, 3, 4, 4, 5, 5, 6, 6))
            yield self.word(sort, max(self.least[sort], depth))


@dataclass
class Trial:
    """Words of one grammar on one batch of graphs."""

    grammar: Grammar
    seed: int
    used: Counter[Rule] = field(default_factory=Counter)
    """How often networks have applied each rule, this trial's included once it has run."""

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.numpy = np.random.default_rng(self.seed)
        inputs = plan_inputs(self.grammar, PRESETS["paper"], 0, 0, False)
        has_matrices = any(rule.head == M for rule in self.grammar.rules)
        self.weighted = bool(self.seed % 2) and (inputs.directed_safe or has_matrices)
        self.directed = self.weighted and not inputs.directed_safe
        self.inputs = plan_inputs(self.grammar, PRESETS["paper"], 0, 0, self.directed)
        self.matrices = [self.graph(n) for n in SIZES]
        self.batch = GraphBatch.of(self.matrices, dtype=torch.float64)
        self.given = [self.variables(a) for a in self.matrices]
        # A word may apply a rule or, where the layer can, have it for nothing; both are shown.
        self.by_rules = self.seed % 3 != 0

    def graph(self, n: int) -> Any:
        if self.weighted:
            return self.numpy.choice([0, 0, 1, 2, -1], size=(n, n)).astype(float)
        upper = np.triu(self.numpy.integers(0, 2, (n, n)), 1)
        return (upper + upper.T).astype(float)

    def variables(self, a: Any) -> dict[str, Any]:
        named = {"C_1": a, "C_2": a + np.eye(len(a)), "C_3": a @ a / 2}
        return named | {name: evaluate(term, a) for name, term in self.grammar.supports}

    def value(self, term: Term, graph: int) -> Any:
        functions = {"f": FUNCTION_VALUES["relu"]}
        return evaluate(term, self.matrices[graph], self.given[graph], functions)

    def sane(self, term: Term) -> bool:
        parts = set(subterms(term))
        largest = max(np.abs(self.value(part, SIZES.index(7))).max() for part in parts)
        return bool(largest < LARGEST)

    def words(self, count: int) -> list[Term]:
        found: dict[Term, None] = {}
        for tried, term in enumerate(Words(self.grammar, self.rng, self.used.copy())):
            if len(found) == count or tried > 40 * count:
                break
            if term.size < 64 and not isinstance(term, Number) and self.sane(term):
                found[term] = None
        return list(found)

    def run(self, count: int) -> list[int]:
        """Check the words; how many layers each took."""
        depths: list[int] = []
        words = self.words(count)
        for letters in ("S", "VR", "M"):
            chosen = [term for term in words if term.sort.letter in letters]
            for start in range(0, len(chosen), GROUP):
                plan = self.check(chosen[start : start + GROUP])
                for stage in plan.stages(plan.depth):
                    for rule, atoms in stage.applications.items():
                        self.used[rule] += len(atoms)
                depths += [reading.work[0] for reading in plan.readings]
        return depths

    def check(self, group: list[Term]) -> FormulaPlan:
        """Write words into a network just large enough, and compare its outputs."""
        plan = plan_formulas(self.grammar, self.inputs, group, by_rules=self.by_rules)
        needed = plan.requirements()
        model = GrammarGNN(
            self.grammar,
            width=dict(needed.width),
            layers=needed.depth,
            out=len(group),
            task=TASKS[group[0].sort.letter],
            preset="paper",
            decision=(2 * len(group),),
            directed=self.directed,
            supports=FixedSupports() if undefined_supports(self.grammar) else None,
        ).double()
        write_formula(model, group, by_rules=self.by_rules)
        with torch.no_grad():
            outputs = model(self.batch).numpy()
        for k, term in enumerate(group):
            for graph, n in enumerate(SIZES):
                expected = self.value(term, graph)
                got = outputs[graph, ..., k]
                if term.sort == M:
                    got = got[:n, :n]
                elif term.sort != S:
                    got = got[:n].reshape(expected.shape)
                error = np.abs(got - expected).max()
                scale = np.abs(expected).max()
                assert error <= TOLERANCE * scale, (
                    f"{term} in {self.grammar.name}, seed {self.seed}, graph {graph}: "
                    f"{got} is not {expected}"
                )
        return plan


def survey(per_rule: int, least: int, times: int) -> tuple[Counter[Rule], list[int]]:
    """Words of every grammar, more of those with many rules, until each rule was used often.

    Simple and weighted graphs take turns, and so do words with and without `by_rules`.
    """
    used: Counter[Rule] = Counter()
    depths: list[int] = []
    for place, grammar in enumerate(GRAMMARS.values()):
        count = max(least, per_rule * len(grammar.rules))
        for seed, start in enumerate(range(0, count, CHUNK)):
            trial = Trial(grammar, 101 * place + seed, used)
            depths += trial.run(min(CHUNK, count - start))
    for grammar in GRAMMARS.values():
        for seed in range(10_000, 10_000 + MOST_EXTRA):
            if all(used[rule] >= times for rule in steps_of(grammar)):
                break
            depths += Trial(grammar, seed, used).run(CHUNK)
    return used, depths


def check_spread(depths: list[int]) -> None:
    """Words of one to six layers, a quarter of them with four or more."""
    assert set(range(1, 7)) <= set(depths)
    assert sum(depth >= 4 for depth in depths) >= len(depths) / 4


def rules_of_all_grammars() -> set[Rule]:
    return {rule for grammar in GRAMMARS.values() for rule in steps_of(grammar)}


def test_hundreds_of_words_in_networks() -> None:
    used, depths = survey(per_rule=1, least=6, times=1)
    assert sum(depth >= 1 for depth in depths) >= 200
    assert set(used) == rules_of_all_grammars()
    check_spread(depths)


@pytest.mark.slow
def test_many_words_in_networks_each_rule_eight_times() -> None:
    used, depths = survey(per_rule=2, least=20, times=8)
    assert sum(depth >= 1 for depth in depths) >= 500
    assert {rule for rule, count in used.items() if count >= 8} == rules_of_all_grammars()
    check_spread(depths)


def test_a_wrong_weight_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: a selector weight off by a millionth turns it red."""
    trial, honest = Trial(GRAMMARS["r-G_L3"], 0), write_formula

    def spoilt(model: GrammarGNN, terms: list[Term], **options: Any) -> None:
        honest(model, terms, **options)
        with torch.no_grad():
            next(p for p in model.layers.parameters() if p.any()).mul_(1 + 1e-6)

    monkeypatch.setitem(globals(), "write_formula", spoilt)
    with pytest.raises(AssertionError, match="is not"):
        trial.run(8)
