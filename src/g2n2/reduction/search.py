"""The smallest grammar that provably simulates a given one.

Each obligation is met by certain sets of templates; they are computed once, over all templates
together. The smallest grammar is then the smallest set of templates that contains one such set for
every obligation: a covering problem of a few dozen elements, solved by branch and bound. Sets of
templates are bit masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import product
from math import prod
from operator import or_

from ..grammars.grammar import Grammar, Level, Rule
from ..grammars.membership import bits
from ..language.operations import OPERATIONS
from ..language.patterns import Assumption, pattern_of
from ..language.sorts import M, S
from ..language.terms import Term, multilinear, operation_count
from .invariants import OUTPUTS, Claim, Form, Obligation, obligations, transpose_obligation
from .proof_goals import Need, action_rules, anonymous, goal_of, hypotheses, opaque_words
from .simulation import instances_of, universe_of
from .templates import library, readouts, size_key
from .word_universe import Universe

Choice = int
"""A set of templates used together, as a bit mask; the highest bit is the transpose lemma."""

MAX_CHOICES = 64
MAX_OPERANDS = 4
"""An operation of more has too many ways to be filled: its grammar is left as it is."""
PAPER_READOUT = Rule.parse("S → 1ᵀV_c")

Cost = tuple[int, int, int, int, bool, int]
"""Rules, read-outs, operations, variables in bodies, not the paper's read-out, its operations."""


def cost(grammar: Grammar) -> Cost:
    """What "smaller" means; ties beyond this go to the shorter text."""
    outer = grammar.readout
    return (
        len(grammar.rules),
        len(outer),
        sum(operation_count(r.body) for r in grammar.rules),
        sum(len(r.holes) for r in grammar.rules),
        outer != (PAPER_READOUT,),
        sum(operation_count(r.body) for r in outer),
    )


def smallest(
    grammar: Grammar,
    form: Form,
    assume: Assumption,
    level: Level,
    most: int,
    inlining: bool = True,
) -> Grammar | None:
    """The smallest grammar of templates that simulates `grammar`, with at most `most` rules.

    None, too, where an operation takes more than `MAX_OPERANDS` operands. `inlining` says whether
    rules with a variable already replaced may be used.
    """
    if form != "exact" and any(OPERATIONS[op].arity > MAX_OPERANDS for op in grammar.operations):
        return None
    claim = Claim(grammar, Grammar(()), form, assume, level)
    templates = [*library(grammar, form, assume, inlining), *readouts(grammar, form, assume)]
    cover = _Cover(claim, sorted(templates, key=size_key), most).solve()
    if cover is None:
        return None
    rules = sorted(cover, key=_paper_order)
    chosen = Grammar.of(rules, supports=grammar.supports, default_readout=False)
    return chosen.reachable_part(OUTPUTS[level])


class _Cover:
    def __init__(self, claim: Claim, templates: Sequence[Rule], most: int) -> None:
        self.claim, self.templates, self.most = claim, templates, most
        self.lemma: Choice = 1 << len(templates)
        self.inner = sum(1 << i for i, r in enumerate(templates) if r.head != S)
        self.outer = self.lemma - 1 - self.inner
        self.best: Choice | None = None
        self._owed_transposes: dict[int, list[Choice]] = {}
        self._words: dict[tuple[Need, Form], list[Choice]] = {}

    def solve(self) -> list[Rule] | None:
        wanted: list[list[Choice]] = []
        for obligation in obligations(self.claim):
            if not multilinear(obligation.term):
                continue  # its rule is kept as it is, and meets it
            choices = self._choices(obligation)
            if not choices:
                return None
            if choices[0]:
                wanted.append(choices)
        self._cover(self._kept, wanted)
        if self.best is None:
            return None
        return [rule for i, rule in enumerate(self.templates) if self.best >> i & 1]

    @cached_property
    def _kept(self) -> Choice:
        """Rules with a pointwise function or a sum stay: no pattern argument removes them."""
        return sum(1 << i for i, r in enumerate(self.templates) if not multilinear(r.body))

    def _cover(self, chosen: Choice, wanted: list[list[Choice]]) -> None:
        """Extend the chosen templates until every obligation has one of its choices."""
        price = self._price(chosen)
        if price[0] > self.most or (self.best is not None and price >= self._price(self.best)):
            return
        unmet = [choices for choices in wanted if not any(c & ~chosen == 0 for c in choices)]
        if chosen & self.lemma:
            unmet += [c for c in self._transposes(chosen) if not any(x & ~chosen == 0 for x in c)]
        if not unmet:
            self.best = chosen
            return
        affordable = [[c for c in choices if self._within(chosen | c)] for choices in unmet]
        narrowest = min(affordable, key=len)
        for choice in sorted(narrowest, key=lambda c: self._price(c & ~chosen)):
            self._cover(chosen | choice, affordable)

    def _price(self, chosen: Choice) -> tuple[int, int, int, int, bool, int, Choice]:
        rules, sentences = chosen & self.inner, chosen & self.outer
        return (
            rules.bit_count(),
            sentences.bit_count(),
            self._operations(rules),
            sum(len(self.templates[i].holes) for i in bits(rules)),
            [self.templates[i] for i in bits(sentences)] != [PAPER_READOUT],
            self._operations(sentences),
            chosen,
        )

    def _operations(self, chosen: Choice) -> int:
        return sum(operation_count(self.templates[i].body) for i in bits(chosen))

    def _within(self, chosen: Choice) -> bool:
        return (chosen & self.inner).bit_count() <= self.most

    def _transposes(self, chosen: Choice) -> list[list[Choice]]:
        """What the transpose lemma asks for each chosen rule of M."""
        owed = []
        for i in bits(chosen & self.inner):
            if self.templates[i].head != M:
                continue
            if i not in self._owed_transposes:
                choices = self._choices(transpose_obligation(self.templates[i]))
                self._owed_transposes[i] = self._antichain(c & ~self.lemma for c in choices)
            owed.append(self._owed_transposes[i])
        return owed

    def _choices(self, obligation: Obligation) -> list[Choice]:
        """The minimal template sets that meet an obligation."""
        goal = goal_of(obligation, self.claim.form, self.claim.assume)
        form = hypotheses(obligation, self.claim.form)
        factors = [self._word_choices(need, form) for need in goal.factors]
        choices: list[Choice] = []
        for option in goal.options:
            parts = [*factors, *(self._word_choices(need, form) for need in option)]
            choices += self._unions(parts)
        return self._antichain(choices)

    def _word_choices(self, need: Need, form: Form) -> list[Choice]:
        """The minimal template sets that make a pattern; renamed labels share the work."""
        key = anonymous(need)[0], form
        if key not in self._words:
            self._words[key] = self._saturated(*key)
        return self._words[key]

    def _saturated(self, need: Need, form: Form) -> list[Choice]:
        sort, pattern = need
        assume = self.claim.assume
        if not pattern.vertices and form != "exact":
            return [0]
        rules = [(1 << i, r.body) for i, r in enumerate(self.templates) if multilinear(r.body)]
        rules += [(0, body) for _, body in action_rules(pattern, form, self.claim.turns)]
        universe = universe_of(pattern, [body for _, body in rules], form, assume)
        goal = universe.find(sort, pattern)
        if goal is None:
            return []
        choices: dict[int, list[Choice]] = {}
        for term, word_sort, lemma in opaque_words(pattern, form):
            at = universe.find(word_sort, pattern_of(term, assume))
            if at is not None:
                choices.setdefault(at, []).append(self.lemma if lemma else 0)
        return self._fixed_point(universe, rules, choices, goal)

    def _fixed_point(
        self,
        universe: Universe,
        rules: list[tuple[Choice, Term]],
        given: dict[int, list[Choice]],
        goal: int,
    ) -> list[Choice]:
        """The minimal template sets for the goal: a least fixed point over all instances."""
        edges = {
            (choice, holes, result)
            for choice, body in rules
            for holes, result in instances_of(universe, body)
            if result not in holes
        }
        needed, grew = {goal}, True
        while grew:
            more = {h for _, holes, result in edges if result in needed for h in holes} - needed
            needed |= more
            grew = bool(more)
        minimal = {at: self._antichain(choices) for at, choices in given.items()}
        useful = sorted((e for e in edges if e[2] in needed), key=lambda e: e[2])  # parts first
        changed = True
        tried: dict[int, list[list[Choice]]] = {}
        while changed:
            changed = False
            for number, (choice, holes, result) in enumerate(useful):
                parts = [minimal.get(h, []) for h in holes]
                if not all(parts) or tried.get(number) == parts:
                    continue
                tried[number] = parts
                old = minimal.get(result, [])
                fresh = [
                    combined
                    for union in self._unions(parts)
                    if self._within(combined := choice | union)
                    and not any(o & ~combined == 0 for o in old)
                ]
                if fresh:
                    new = self._antichain([*old, *fresh])
                    changed = changed or new != old
                    minimal[result] = new
        return minimal.get(goal, [])

    def _unions(self, parts: Sequence[Sequence[Choice]]) -> Iterable[Choice]:
        """One choice of each part, together; the minimal ones where there are very many."""
        if prod(map(len, parts)) <= MAX_CHOICES**2:
            return (reduce(or_, choices, 0) for choices in product(*parts))
        total = [0]
        for part in parts:
            total = self._antichain(
                union for a in total for b in part if self._within(union := a | b)
            )
        return total

    def _antichain(self, choices: Iterable[Choice]) -> list[Choice]:
        """The minimal sets, cheapest first, at most a few dozen."""
        kept: list[Choice] = []
        for choice in sorted(set(choices), key=lambda c: ((c & self.inner).bit_count(), c)):
            if not any(k & ~choice == 0 for k in kept):
                kept.append(choice)
                if len(kept) == MAX_CHOICES:
                    break
        return kept


def _paper_order(rule: Rule) -> tuple[int, bool, int, int, str]:
    """The order in which the paper prints rules."""
    order = {"hadamard": 0, "matmul": 1, "transpose": 2, "diag": 3}
    sort = ["V", "R", "M", "S"].index(rule.head.letter)
    op = order.get(getattr(rule.body, "op", ""), 4)
    return sort, not rule.holes, op, -len(rule.holes), str(rule)
