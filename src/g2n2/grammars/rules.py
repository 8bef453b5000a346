"""One production, its notation, and which productions are linear in their one variable."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..errors import GrammarError
from ..language.parsing import GRAMMAR_NAMES, parse_body
from ..language.patterns import Combination, normal_form
from ..language.printing import to_ascii, to_latex, to_text
from ..language.sorts import Sort, V
from ..language.terms import MARKS, Apply, Hole, Leaf, MarkSum, Term, fill, holes, leaves
from ..language.tokens import scope_of

ARROWS = ("→", "->", "::=", "⟶")

_HEAD = re.compile(r"(.*?)([′″']*)")
_ASCII_PRIMES = re.compile(r"(?<=[SVRM])'+|(?<=V_[cr])'+|(?<=V[cr])'+")
_BINDER = re.compile(r"Σ|∑|\bmark\b")
_MARK_LEAVES = {name: Leaf(name, V) for name in MARKS}


@dataclass(frozen=True, slots=True)
class Rule:
    """One production: a variable and the term it may become."""

    head: Sort
    body: Term

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse one production such as `M → (M⊙M)`."""
        rules = parse_rules(text)
        if len(rules) != 1:
            raise GrammarError(f"one production was expected, got {len(rules)}: {text!r}")
        return rules[0]

    @property
    def holes(self) -> tuple[Sort, ...]:
        return holes(self.body)

    @property
    def plain(self) -> Rule:
        """The rule outside all marks: V′ → AV′ as V → AV."""
        return Rule(self.head.plain, fill(self.body, [Hole(sort.plain) for sort in self.holes]))

    def within(self, marks: int) -> Rule:
        """The rule inside so many marks more: V → AV as V′ → AV′."""
        body = fill(self.body, [Hole(sort.within(marks)) for sort in self.holes])
        return Rule(self.head.within(marks), body)

    def body_text(self, style: str = "text") -> str:
        show = {"text": to_text, "ascii": to_ascii, "latex": to_latex}[style]
        text = show(self.body, powers=False)
        bare = isinstance(self.body, Apply) and self.body.op == "hadamard"
        return f"({text})" if bare else text

    def __str__(self) -> str:
        return f"{self.head.variable} → {self.body_text()}"


def parse_rules(line: str) -> list[Rule]:
    """Parse `M → MM | A` into its productions."""
    arrow = next((a for a in ARROWS if a in line), None)
    if arrow is None:
        raise GrammarError(f"no arrow in {line.strip()!r}; write for instance `M → MM | A`")
    left, right = line.split(arrow, 1)
    named = _HEAD.fullmatch(left.strip())
    head = GRAMMAR_NAMES.get(named[1]) if named else None
    if named is None or not isinstance(head, Hole):
        raise GrammarError(
            f"{left.strip()!r} is not a variable; the variables are S, V_c, V_r and M, "
            "inside a mark S′, V_c′, V_r′ and M′"
        )
    variable = head.sort.within(scope_of(named[2].replace("'", "′")))
    if variable.scope or _BINDER.search(right):
        # Where there are marks an apostrophe after a variable is a prime, elsewhere a transpose.
        right = _ASCII_PRIMES.sub(lambda m: "′" * len(m[0]), right)
    return [_rule(variable, body, line) for body in right.split("|")]


def _rule(head: Sort, body: str, line: str) -> Rule:
    if not body.strip():
        raise GrammarError(f"an alternative is empty in {line.strip()!r}")
    term = parse_body(body, _MARK_LEAVES if head.scope else None)
    if term.sort != head.plain:
        raise GrammarError(
            f"{body.strip()} is {term.sort.english}, but {head.variable} is {head.english}"
        )
    for hole, depth in holes_with_depth(term, head.scope):
        if hole.scope > depth:
            raise GrammarError(
                f"{hole} in {head.variable} → {body.strip()} stands outside its mark: write it "
                f"below Σ, as in S → Σv. 1ᵀV′, or give the rule to a variable with as many primes"
            )
    return Rule(head, term)


def mentions(term: Term, names: Collection[str]) -> bool:
    """Whether a leaf of a term, a matrix or a mark, has one of these names."""
    return any(leaf.name in names for leaf in leaves(term))


def rule_depth(rule: Rule) -> int:
    """The most marks in scope anywhere in a rule."""

    def below(term: Term) -> int:
        match term:
            case Apply(args=args):
                return max(map(below, args), default=0)
            case MarkSum(body=body):
                return 1 + below(body)
        return 0

    return rule.head.scope + below(rule.body)


def crosses(rule: Rule) -> bool:
    """Whether a rule brings words into a mark or out of it."""
    entering = any(hole.scope < rule.head.scope for hole in rule.holes)
    return entering or isinstance(rule.body, MarkSum)


def bound_scopes(body: Term, scope: int) -> Iterator[tuple[str, int]]:
    """The marks a body binds for variables below, each with the scope around its Σ."""
    match body:
        case Apply(args=args):
            for arg in args:
                yield from bound_scopes(arg, scope)
        case MarkSum(mark=mark, body=inner):
            if any(hole.scope > scope for hole, _ in holes_with_depth(inner, scope + 1)):
                yield mark, scope
            yield from bound_scopes(inner, scope + 1)


def holes_with_depth(term: Term, depth: int) -> Iterator[tuple[Hole, int]]:
    """The variables of a body, each with the number of marks in scope where it stands."""
    match term:
        case Hole():
            yield term, depth
        case Apply(args=args):
            for arg in args:
                yield from holes_with_depth(arg, depth)
        case MarkSum(body=body):
            yield from holes_with_depth(body, depth + 1)


def is_linear(body: Term) -> bool:
    """Whether a body is linear in its one variable.

    A learned combination of its values on all channels is then its value on a selected channel, so
    the first map after the read-out makes a selector needless.
    """
    return len(holes(body)) == 1 and _linear_below(body)


def _linear_below(term: Term) -> bool:
    """Whether nothing but products with constants stands above the one variable of a term."""
    if isinstance(term, MarkSum):
        return _linear_below(term.body)
    if not isinstance(term, Apply):
        return True
    if term.function or term.op == "add":
        return False
    return all(_linear_below(argument) for argument in term.args if holes(argument))


def spans(rules: Iterable[Rule], rule: Rule) -> bool:
    """Whether a rule that is linear in one variable is a sum of multiples of other such rules."""
    if not is_linear(rule.body):
        return False
    alike = [r.body for r in rules if is_linear(r.body) and r.holes == rule.holes]
    return _in_span(_filled(rule.body), [_filled(body) for body in alike])


def _filled(body: Term) -> Combination:
    """The normal form of a body, an opaque value in place of its one variable."""
    return normal_form(fill(body, [Leaf("X", holes(body)[0])]), "none")


def _in_span(value: Combination, given: Sequence[Combination]) -> bool:
    """Whether a combination of patterns is a sum of multiples of others."""
    rows: list[Combination] = []
    for form in given:
        if reduced := _reduced(form, rows):
            rows.append(reduced)
    return not _reduced(value, rows)


def _reduced(form: Combination, rows: Sequence[Combination]) -> Combination:
    """What is left of a combination when each row has taken away its first pattern."""
    for row in rows:
        pivot, coefficient = next(iter(row.items()))
        factor = form.get(pivot, Fraction(0)) / coefficient
        both = {**form, **row}
        left = {p: form.get(p, Fraction(0)) - factor * row.get(p, Fraction(0)) for p in both}
        form = {pattern: x for pattern, x in left.items() if x}
    return form
