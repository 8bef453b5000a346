"""Interpreter against compiled network: random words of every grammar, written as weights.

Each word is derived at random, evaluated by `language.evaluation`, and computed by a network whose
weights `write_formula` set: graphs of several sizes in one batch, float64.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import steps_of, undefined_supports
from g2n2.compiler.inputs import plan_inputs
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.formulas.formula_plan import FormulaPlan, plan_formulas
from g2n2.formulas.writing import TASKS, write_formula
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.language.evaluation import FUNCTION_VALUES, evaluate
from g2n2.language.sorts import SORTS, M, S, Sort
from g2n2.language.terms import Number, Term, fill, subterms
from g2n2.nn.model import GrammarGNN

TOLERANCE = 1e-9
SIZES = (1, 2, 7, 4)
GROUP = 20
"""Words written into one network."""
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


def least_depths(grammar: Grammar) -> dict[Sort, int]:
    """The depth of the shallowest derivation of each variable."""
    least: dict[Sort, int] = {}
    for _ in SORTS:
        for rule in grammar.all_rules:
            if all(hole in least for hole in rule.holes):
                depth = 1 + max((least[hole] for hole in rule.holes), default=-1)
                least[rule.head] = min(depth, least.get(rule.head, depth))
    return least


def word(grammar: Grammar, rule: Rule, depth: int, rng: Random) -> Term:
    """A random word that begins with a rule, derived in about so many steps."""
    least = least_depths(grammar)
    parts: list[Term] = []
    for hole in rule.holes:
        if hole == S and "scale" in grammar.operations and rng.random() < 0.4:
            parts.append(Number(rng.choice(NUMBERS)))
            continue
        room = max(depth - rng.randint(1, 3), least[hole])
        rules = [r for r in grammar.of_sort(hole) if all(least[h] < room for h in r.holes)]
        rules = [r for r in rules if r.holes and room] or rules
        parts.append(word(grammar, rng.choice(rules), room, rng))
    return fill(rule.body, parts)


class Trial:
    """Words of one grammar on one batch of graphs."""

    def __init__(self, grammar: Grammar, seed: int, weighted: bool, by_rules: bool) -> None:
        self.grammar, self.by_rules = grammar, by_rules
        self.rng, self.numpy = Random(seed), np.random.default_rng(seed)
        inputs = plan_inputs(grammar, PRESETS["paper"], 0, 0, False)
        has_matrices = any(rule.head == M for rule in grammar.rules)
        self.weighted = weighted and (inputs.directed_safe or has_matrices)
        self.directed = self.weighted and not inputs.directed_safe
        self.inputs = plan_inputs(grammar, PRESETS["paper"], 0, 0, self.directed)
        self.matrices = [self.graph(n) for n in SIZES]
        self.batch = GraphBatch.of(self.matrices, dtype=torch.float64)

    def graph(self, n: int) -> Any:
        if self.weighted:
            return self.numpy.choice([0, 0, 1, 2, -1], size=(n, n)).astype(float)
        upper = np.triu(self.numpy.integers(0, 2, (n, n)), 1)
        return (upper + upper.T).astype(float)

    def value(self, term: Term, a: Any) -> Any:
        named = {"C_1": a, "C_2": a + np.eye(len(a)), "C_3": a @ a / 2}
        named |= {name: evaluate(support, a) for name, support in self.grammar.supports}
        return evaluate(term, a, named, {"f": FUNCTION_VALUES["relu"]})

    def word(self, rule: Rule) -> Term | None:
        """A word that begins with a rule, and whose parts are exact numbers."""
        for _ in range(40):
            term = word(self.grammar, rule, self.rng.randint(1, 6), self.rng)
            if term.size < 64 and all(
                np.abs(self.value(part, self.matrices[2])).max() < LARGEST
                for part in set(subterms(term))
            ):
                return term
        return None

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
            for graph, a in enumerate(self.matrices):
                expected = self.value(term, a)
                got = outputs[graph, ..., k]
                if term.sort == M:
                    got = got[: len(a), : len(a)]
                elif term.sort != S:
                    got = got[: len(a)].reshape(expected.shape)
                error, scale = np.abs(got - expected).max(), np.abs(expected).max()
                assert error <= TOLERANCE * scale, f"{term} in {self.grammar.name}: {got}"
        return plan


def test_hundreds_of_words_in_networks() -> None:
    """Every rule of every grammar first in a word; on simple graphs each is applied by a layer."""
    applied: set[Rule] = set()
    depths: list[int] = []
    for place, grammar in enumerate(GRAMMARS.values()):
        for weighted in (False, True):
            trial = Trial(grammar, place, weighted, by_rules=not weighted)
            rules = steps_of(grammar)[place % 3 :: 3] if weighted else steps_of(grammar)
            found = [trial.word(rule) for rule in rules]
            for letters in ("S", "VR", "M"):
                chosen = [term for term in found if term and term.sort.letter in letters]
                for start in range(0, len(chosen), GROUP):
                    plan = trial.check(chosen[start : start + GROUP])
                    depths += [reading.work[0] for reading in plan.readings]
                    for stage in plan.stages(plan.depth):
                        applied |= {rule for rule, atoms in stage.applications.items() if atoms}
    assert applied == {rule for grammar in GRAMMARS.values() for rule in steps_of(grammar)}
    assert sum(depth >= 1 for depth in depths) >= 200
    assert set(range(1, 6)) <= set(depths)
