"""The middle panel: a language, its reduction step by step, and the proof of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..described import counted
from ..grammars.catalogue import reduced_name
from ..grammars.grammar import Grammar, Rule
from ..language.patterns import Pattern, collapsed, pattern_of
from ..language.sorts import R, V
from ..language.terms import Term, apply
from ..reduction.certificates import certificate
from ..reduction.checker import check
from ..reduction.explain import ProofStep, innermost_names, steps
from ..reduction.lemmas import Lemma
from ..reduction.reduce import reduce
from ..reduction.simulation import Proof, SimulationWitness, combined

Report = Callable[[float, str], None]
"""Takes the share that is done and what is being done."""


@dataclass(frozen=True)
class ProofCase:
    """One obligation, met: two pattern graphs and the bijection between their vertices."""

    rule: str  # the rule that owes it
    equation: str  # both sides in the paper's notation
    left: Pattern  # the pattern of the rule applied to words of the smaller grammar
    right: Pattern  # the pattern of the smaller grammar's own words
    bijection: tuple[int, ...]  # for each vertex of `left` its vertex of `right`


@dataclass(frozen=True)
class Removal:
    """One rule that goes, why, and the obligations that show it."""

    rule: Rule
    step: ProofStep
    cases: tuple[ProofCase, ...]


@dataclass(frozen=True)
class DerivedChain:
    """From a grammar to its reduced one."""

    exhaustive: Grammar  # the grammar of the language
    reduced: Grammar  # the smallest grammar found with its power
    removals: tuple[Removal, ...]  # the rules that go, in the order of the proof
    # all obligations, those of rules that stay and of the converse among them
    cases: tuple[ProofCase, ...]
    certificate: dict[str, Any]  # the proof as JSON
    checked: str  # what the independent checker says of it

    @property
    def added(self) -> tuple[Rule, ...]:
        """The rules that take the place of removed ones."""
        return tuple(r for r in self.reduced.all_rules if r not in self.exhaustive.all_rules)

    def shown_step(self, step: int) -> int:
        """How many rules are removed at a position of the slider; a fresh page's -1 is 1."""
        return min(1 if step < 0 else step, len(self.removals))

    def after(self, step: int) -> set[Rule]:
        """The rules that are gone after so many removals."""
        return {removal.rule for removal in self.removals[:step]}


def derive_chain(grammar: Grammar, report: Report) -> DerivedChain:
    """Reduce a grammar, and lay its proof out."""
    report(0.1, "searching the smallest grammar of equal power")
    reduction = reduce(grammar, alternatives=False)
    reduced = reduction.reduced
    if reduced != grammar:
        reduced = reduced.named(reduced_name(grammar.name or "given", "symmetric", "graph"))
    report(0.7, "checking the certificate")
    proof = certificate(grammar, reduced, reduction.links)
    outcome = check(proof)
    report(0.9, "drawing the obligations")
    cases = [
        case
        for link in reduction.links
        if not isinstance(link, Lemma)
        for proved, claimed in ((link.proof, link.larger), (link.converse, link.smaller))
        for case in _cases(proved.inside, innermost_names(claimed))
    ]
    removals = [
        Removal(rule, step, _of_rule(rule, step, cases))
        for step in steps(reduction.links)
        for rule in step.removed
    ]
    cited = f"; cited: {'; '.join(outcome.cited)}" if outcome.cited else ""
    verdict = (
        f"checked independently: {counted(outcome.checked, 'obligation')} "
        f"{'holds' if outcome.checked == 1 else 'hold'}{cited}"
        if outcome.valid
        else f"the checker refuses it: {outcome.failure}"
    )
    if not reduction.links:
        verdict = "nothing to check: no rule was removed"
    return DerivedChain(grammar, reduced, tuple(removals), tuple(cases), proof, verdict)


def _of_rule(rule: Rule, step: ProofStep, cases: list[ProofCase]) -> tuple[ProofCase, ...]:
    """The obligations of a removed rule; those of its step where it owes none itself."""
    of_rule = tuple(case for case in cases if case.rule == str(rule))
    if of_rule or step.status == "cited":
        return of_rule
    return tuple(c for c in cases if any(c.equation.startswith(i) for i in step.identities))


def _cases(proof: Proof, names: Mapping[str, str]) -> list[ProofCase]:
    """The obligations of a proof; `names` are those its rules have in a grammar with marks."""
    claim = proof.claim
    proof_cases = []
    for witness in proof.witnesses:
        term = witness.obligation.term
        left = pattern_of(term, claim.assume)
        right = combined(witness.factors, witness.words, term.sort, claim.form, claim.assume)
        if claim.assume == "simple":
            left, right = collapsed(left), collapsed(right)
        rule, equation = str(witness.obligation.rule), _equation(witness)
        rule = names.get(rule, rule)
        proof_cases.append(ProofCase(rule, equation, left, right, witness.bijection))
    return proof_cases


def _equation(witness: SimulationWitness) -> str:
    """`diag(s0×v0) = s0×diag(v0)`: the obligation, and the words that meet it."""
    term, words = witness.obligation.term, witness.words
    right: Term | None = None
    if len(words) == 2:
        right = words[0] @ words[1].T
    elif words:
        right = words[0].T if term.sort == R and words[0].sort == V else words[0]
    for factor in reversed(witness.factors):
        right = factor if right is None else apply("scale", factor, right)
    return f"{term} = {'1.0' if right is None else right}"
