"""Proving that a smaller grammar simulates a larger one: every obligation met, with its witness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..language.patterns import (
    Assumption,
    Pattern,
    beside,
    canonical_with_order,
    collapsed,
    pattern_of,
)
from ..language.sorts import M, Sort
from ..language.terms import Term, fill, leaves, multilinear, operation_count, substitute
from .invariants import Claim, Form, Obligation, obligations, transpose_obligations
from .proof_goals import (
    Need,
    action_rules,
    anonymous,
    goal_of,
    hypotheses,
    opaque_leaves,
    opaque_scalar,
    opaque_words,
)
from .word_universe import Assignment, Universe, universe_for


@dataclass(frozen=True)
class SimulationWitness:
    """How an obligation is met: sentences split off, and the word (or two) that is left."""

    obligation: Obligation
    factors: tuple[Term, ...]
    words: tuple[Term, ...]
    bijection: tuple[int, ...]


@dataclass(frozen=True)
class Proof:
    """All obligations of a claim, met."""

    claim: Claim
    transposed: bool
    witnesses: tuple[SimulationWitness, ...]

    @property
    def inside(self) -> Proof:
        """What is proved of the words inside all marks: without marks all of it."""
        return self


def prove(claim: Claim) -> Proof | None:
    """Prove a claim, without the transpose lemma if possible, or None."""
    plain = prove_with(claim, transposed=False)
    return plain if plain or claim.form == "exact" else prove_with(claim, transposed=True)


def first_failure(claim: Claim) -> Obligation | None:
    """The first obligation that no word of the smaller grammar meets, for explanations."""
    prover = _Prover(claim, transposed=True)
    owed = [*obligations(claim), *transpose_obligations(claim)]
    return next((o for o in owed if not multilinear(o.term) or prover.meet(o) is None), None)


def prove_with(claim: Claim, transposed: bool) -> Proof | None:
    """Prove a claim with or without the transpose lemma, or None."""
    owed = list(obligations(claim))
    if transposed:
        owed = [*transpose_obligations(claim), *owed]
    if not all(multilinear(obligation.term) for obligation in owed):
        return None  # a sum or a pointwise function: no pattern argument
    prover = _Prover(claim, transposed)
    witnesses = []
    for obligation in owed:
        witness = prover.meet(obligation)
        if witness is None:
            return None
        witnesses.append(witness)
    return Proof(claim, transposed, tuple(witnesses))


class WordFinder:
    """Words of a claim's smaller grammar over opaque leaves, by their patterns."""

    def __init__(self, claim: Claim, transposed: bool) -> None:
        self.claim, self.transposed = claim, transposed
        self.rules = [(r.head, r.body) for r in claim.smaller.all_rules if multilinear(r.body)]
        self.words: dict[tuple[Need, Form], Term | None] = {}

    def word(self, need: Need, form: Form) -> Term | None:
        """The shortest word of the smaller grammar over the opaque leaves with this pattern."""
        scalar = opaque_scalar(need[1])
        if scalar is not None and form != "exact":
            return scalar
        renamed, names = anonymous(need)
        if (renamed, form) not in self.words:
            self.words[renamed, form] = self._shortest(renamed, form)
        word = self.words[renamed, form]
        if word is None:
            return None
        leaf_of: dict[str, Term] = {leaf.name: leaf for leaf in opaque_leaves(need[1])}
        return substitute(word, {new: leaf_of[old] for new, old in names})

    def _shortest(self, need: Need, form: Form) -> Term | None:
        sort, pattern = need
        rules = self.rules + action_rules(pattern, form, self.claim.turns)
        hypotheses_used = [
            (term, sort) for term, sort, lemma in opaque_words(pattern, form)
            if self.transposed or not lemma
        ]  # fmt: skip
        universe = universe_of(pattern, [body for _, body in rules], form, self.claim.assume)
        words = shortest_words(universe, rules, hypotheses_used)
        at = universe.find(sort, pattern)
        return words.get(at) if at is not None else None


class _Prover(WordFinder):
    def meet(self, obligation: Obligation) -> SimulationWitness | None:
        goal = goal_of(obligation, self.claim.form, self.claim.assume)
        form = hypotheses(obligation, self.claim.form)
        factors = [self.word(need, form) for need in goal.factors]
        if any(f is None for f in factors):
            return None
        for option in goal.options:
            words = [self.word(need, form) for need in option]
            if any(w is None for w in words):
                continue
            return self._witness(
                obligation, tuple(f for f in factors if f), tuple(w for w in words if w)
            )
        return None

    def _witness(
        self, obligation: Obligation, factors: tuple[Term, ...], words: tuple[Term, ...]
    ) -> SimulationWitness:
        right = combined(factors, words, obligation.term.sort, self.claim.form, self.claim.assume)
        return witnessed(obligation, factors, words, right, self.claim.assume)


def witnessed(
    obligation: Obligation,
    factors: tuple[Term, ...],
    words: tuple[Term, ...],
    right: Pattern,
    assume: Assumption,
) -> SimulationWitness:
    """A witness with the bijection from the obligation's pattern to that of what meets it."""
    left = pattern_of(obligation.term, assume)
    if assume == "simple":
        left, right = collapsed(left), collapsed(right)
    form_l, order_l = canonical_with_order(left)
    form_r, order_r = canonical_with_order(right)
    assert form_l == form_r, f"{obligation.term} is not {factors} {words}"
    vertex_at = {k: v for v, k in enumerate(order_r)}
    bijection = tuple(vertex_at[k] for k in order_l)
    return SimulationWitness(obligation, factors, words, bijection)


def combined(
    factors: Sequence[Term], words: Sequence[Term], sort: Sort, form: Form, assume: Assumption
) -> Pattern:
    """The pattern of the factors times the words, read as a value of the given sort."""
    total = Pattern(0, (), ())
    for factor in factors:
        total = beside(total, pattern_of(factor, assume))
    parts = [pattern_of(word, assume) for word in words]
    if sort != M or len(parts) == 2:
        parts = [_as_vector(p, w.sort, form) for p, w in zip(parts, words, strict=True)]
    for part in parts:
        total = beside(total, part)
    return total


def _as_vector(pattern: Pattern, sort: Sort, form: Form) -> Pattern:
    """The column a word stands for: v·1ᵀ and diag(v) stand for v where v is no word itself."""
    if sort != M:
        return pattern
    if form == "diagonal":
        return Pattern(pattern.vertices, pattern.edges, pattern.boundary[:1])
    kept = pattern.boundary[0]
    bare = pattern.boundary[1]
    number = {v: i for i, v in enumerate(v for v in range(pattern.vertices) if v != bare)}
    edges = tuple(e._replace(ends=tuple(number[v] for v in e.ends)) for e in pattern.edges)
    return Pattern(pattern.vertices - 1, edges, (number[kept],))


def universe_of(
    pattern: Pattern, templates: Iterable[Term], form: Form, assume: Assumption
) -> Universe:
    """The universe of a target, with the operations the hypotheses themselves use."""
    bodies = list(templates)
    bodies += [term for term, _, _ in opaque_words(pattern, form)]
    return universe_for(pattern, bodies, opaque_leaves(pattern), assume)


def shortest_words(
    universe: Universe, rules: Sequence[tuple[Sort, Term]], given: Sequence[tuple[Term, Sort]]
) -> dict[int, Term]:
    """The shortest word of the rules over the known words for each part that has one."""
    words: dict[int, Term] = {}
    for term, sort in given:
        at = universe.find(sort, pattern_of(term, universe.assume))
        if at is not None and at not in words:
            words[at] = term
    edges = [(body, *instance) for _, body in rules for instance in instances_of(universe, body)]
    changed = True
    while changed:
        changed = False
        for body, holes, result in edges:
            if any(h not in words for h in holes):
                continue
            size = operation_count(body) + sum(operation_count(words[h]) for h in holes)
            if result not in words or size < operation_count(words[result]):
                words[result] = fill(body, [words[h] for h in holes])
                changed = True
    return words


def instances_of(universe: Universe, body: Term) -> list[tuple[Assignment, int]]:
    """The instances of a rule; an action rule diag(m·(D1)) takes diagonal D only."""
    instances = list(universe.instances(body))
    if not any(leaf.name[0] == "m" for leaf in leaves(body)) or body.sort != M:
        return instances

    def diagonal(item: int) -> bool:
        boundary = universe.items[item][1].boundary
        return boundary[0] == boundary[1]

    return [(holes, result) for holes, result in instances if all(map(diagonal, holes))]
