"""Which variable of a grammar derives which part of a term.

The paper's grammars generate strings, in which a matrix product is juxtaposition: how its factors
are bracketed cannot be seen. So a term is cut into chains, the factors of one product each, and a
rule body is laid over a run of factors: its variables take runs of any length, its other parts one
factor each. `I` and `diag(1)` are the same string. A rule with `f` stands for every pointwise
function, and a grammar with × may put any number to the left of it.

For each chain, start and variable the set of ends is kept as the bits of an integer, so a chain of
k factors costs about k² steps for each rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import NamedTuple

from ..errors import GrammarError
from ..language.sorts import S, Sort
from ..language.terms import (
    MAX_DEPTH,
    ONE,
    Apply,
    Hole,
    MarkSum,
    Number,
    Term,
    apply,
    power,
    substitute,
)
from .grammar import Grammar, Rule

_WRITTEN_OUT = {"I": apply("diag", ONE)}


@dataclass(slots=True, eq=False)
class Chain:
    """The factors of a product; `ends[i][X]` has bit j where the variable X derives i to j."""

    factors: tuple[Term, ...]
    ends: list[dict[Sort, int]]


class SpanGoal(NamedTuple):
    """To derive the factors from `start` to `end` of a chain from the variable of a sort."""

    chain: Chain
    start: int
    end: int
    sort: Sort

    @property
    def term(self) -> Term:
        return joined(self.chain.factors[self.start : self.end])

    @property
    def holds(self) -> bool:
        return bool(self.chain.ends[self.start].get(self.sort, 0) >> self.end & 1)


class Template(NamedTuple):
    """A rule and its body as a sequence of factors."""

    rule: Rule
    items: tuple[Term, ...]


class Recogniser:
    """Fills the chains of a term from the inside out, then answers how a goal is derived."""

    def __init__(self, grammar: Grammar, term: Term) -> None:
        self.templates = [
            Template(rule, factors(substitute(rule.body, _WRITTEN_OUT)))
            for rule in grammar.all_rules
        ]
        self.numbers = "scale" in grammar.operations
        self.chains: dict[Term, Chain] = {}
        whole = substitute(term, _WRITTEN_OUT)
        for part in reversed(_products(whole)):
            if part not in self.chains:
                self.chains[part] = self._recognised(factors(part))
        chain = self.chains[whole]
        self.goal = SpanGoal(chain, 0, len(chain.factors), term.sort)

    def _recognised(self, run: tuple[Term, ...]) -> Chain:
        if len(run) > MAX_DEPTH:
            raise GrammarError(
                f"a product of {len(run)} factors is too long to derive; the limit is {MAX_DEPTH}"
            )
        chain = Chain(run, [{} for _ in range(len(run) + 1)])
        rests: dict[tuple[int, int], int] = {}
        for start in reversed(range(len(run))):
            self._fill(chain, start, rests)
        return chain

    def _fill(self, chain: Chain, start: int, rests: dict[tuple[int, int], int]) -> None:
        """All ends from one start; a body that begins with a variable grows from shorter runs."""
        ends = chain.ends[start]
        fresh: list[tuple[Sort, int]] = []

        def add(number: int, at: int) -> None:
            """Put the ends of a template whose first part ends at `at`."""
            rule, items = self.templates[number]
            if (number, at) not in rests:
                rests[number, at] = self._reach(chain, items[1:], at)
            put(rule.head, rests[number, at])

        def put(sort: Sort, mask: int) -> None:
            before = ends.get(sort, 0)
            ends[sort] = before | mask
            fresh.extend((sort, end) for end in bits(mask & ~before))

        if self.numbers and isinstance(chain.factors[start], Number):
            put(S, 1 << start + 1)
        for number, (_, items) in enumerate(self.templates):
            if not isinstance(items[0], Hole) and self.matches(items[0], chain.factors[start]):
                add(number, start + 1)
        while fresh:
            sort, end = fresh.pop()
            for number, (_, items) in enumerate(self.templates):
                if items[0] == Hole(sort):
                    add(number, end)

    def _reach(self, chain: Chain, items: tuple[Term, ...], start: int) -> int:
        """Where a sequence of template parts can end when it begins at `start`."""
        mask = 1 << start
        for item in items:
            mask = reduce(int.__or__, (self._step(chain, item, at) for at in bits(mask)), 0)
        return mask

    def _step(self, chain: Chain, item: Term, at: int) -> int:
        if isinstance(item, Hole):
            return chain.ends[at].get(item.variable, 0)
        inside = at < len(chain.factors)
        return 1 << at + 1 if inside and self.matches(item, chain.factors[at]) else 0

    def matches(self, item: Term, factor: Term) -> bool:
        """Whether one factor is an instance of a template part that is not a variable."""
        match item, factor:
            case Apply(), Apply():
                same = item.op == factor.op and item.function in ("f", factor.function)
            case MarkSum(), MarkSum():
                same = item.mark == factor.mark
            case _:
                return item == factor
        return same and all(
            self._reach(self.chains[arg], factors(part), 0) >> len(factors(arg)) & 1
            for part, arg in zip(arguments(item), arguments(factor), strict=True)
        )

    def step(self, goal: SpanGoal) -> tuple[Rule, list[SpanGoal]]:
        """The first rule that derives a goal that holds, and what its variables must derive."""
        for rule, items in self.templates:
            if rule.head == goal.sort:
                below = self._laid(goal.chain, items, goal.start, goal.end)
                if below is not None:
                    return rule, below
        number = goal.chain.factors[goal.start]
        assert isinstance(number, Number)
        return Rule(S, number), []

    def _laid(
        self, chain: Chain, items: tuple[Term, ...], start: int, end: int
    ) -> list[SpanGoal] | None:
        """Goals for the variables of a template laid from `start` to `end`, earliest cuts first."""
        goals: list[SpanGoal] = []
        for index, item in enumerate(items):
            rest = items[index + 1 :]
            cuts = bits(self._step(chain, item, start))
            cut = next((c for c in cuts if self._reach(chain, rest, c) >> end & 1), None)
            if cut is None:
                return None
            if isinstance(item, Hole):
                goals.append(SpanGoal(chain, start, cut, item.variable))
            else:
                pairs = zip(arguments(item), arguments(chain.factors[start]), strict=True)
                for part, arg in pairs:
                    inner = self.chains[arg]
                    goals += self._laid(inner, factors(part), 0, len(inner.factors)) or []
            start = cut
        return goals

    def underivable(self) -> Term | None:
        """The smallest proper part that no variable derives and no rule spells out, if any."""
        spelled = [run for _, items in self.templates for run in _spelled_out(items)]
        goals = [
            SpanGoal(chain, start, start + 1, factor.sort)
            for chain in self.chains.values()
            for start, factor in enumerate(chain.factors)
        ]
        goals += [SpanGoal(c, 0, len(c.factors), part.sort) for part, c in self.chains.items()]
        bad = [
            goal.term
            for goal in goals
            if goal != self.goal
            and not any(goal._replace(sort=sort).holds for sort in _variables(goal))
            and not any(self._reach(goal.chain, run, goal.start) >> goal.end & 1 for run in spelled)
        ]
        return min(bad, key=lambda part: part.size, default=None)


def _variables(goal: SpanGoal) -> Iterator[Sort]:
    """The variable of a goal inside any number of marks."""
    return (sort for sort in goal.chain.ends[goal.start] if sort.plain == goal.sort)


def factors(term: Term) -> tuple[Term, ...]:
    """The factors of a product, however it is bracketed; any other term is its own one factor."""
    run: list[Term] = []
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Apply) and part.op == "matmul":
            waiting.extend(reversed(part.args))
        else:
            run.append(part)
    return tuple(run)


def joined(run: Iterable[Term]) -> Term:
    """The product of factors, nested to the left, equal neighbours as a power: 1ᵀA²1."""
    powers = (power(base, len(list(same))) for base, same in groupby(run))
    return reduce(lambda a, b: apply("matmul", a, b), powers)


def arguments(term: Term) -> tuple[Term, ...]:
    """What an operation is applied to; nothing for a leaf."""
    match term:
        case Apply(args=args):
            return args
        case MarkSum(body=body):
            return (body,)
    return ()


def _products(term: Term) -> list[Term]:
    """The term and every argument of its factors, outermost first."""
    parts: list[Term] = []
    waiting = [term]
    while waiting:
        parts.append(waiting.pop())
        for factor in factors(parts[-1]):
            waiting.extend(arguments(factor))
    return parts


def _spelled_out(items: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """The parts of a rule body, as runs, that are neither a variable nor the whole of it."""
    for item in items:
        if len(items) > 1 and not isinstance(item, Hole):
            yield (item,)
        for part in arguments(item):
            if not isinstance(part, Hole):
                yield factors(part)
                yield from _spelled_out(factors(part))


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
