"""Long sentences made readable: shared parts get names, products lose their brackets."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..language.terms import MARKS, MAX_SIZE, Apply, Leaf, MarkSum, Term, leaves
from .membership import arguments, factors, joined

_SMALLEST_SHARED = 4  # nodes; A² has three and is shorter than a name and its definition


class Definition(NamedTuple):
    """A name and the term it stands for, written with the names defined before it."""

    name: str
    term: Term

    def __str__(self) -> str:
        return f"{self.name} = {self.term}"


def with_shared_subterms(term: Term) -> list[Definition]:
    """Name the parts a term uses more than once (M1, v1, r1, s1 …); the last one is the term."""
    uses: Counter[Term] = Counter()
    order: list[Term] = []
    _count(term, uses, order)
    definitions: list[Definition] = []
    short: dict[Term, Term] = {}
    numbers: Counter[str] = Counter()
    for part in order:
        shown: Term
        match part:
            case Apply():
                args = tuple(short.get(arg, arg) for arg in part.args)
                shown = Apply(part.op, args, part.sort, part.function)
            case MarkSum():
                shown = MarkSum(part.mark, short.get(part.body, part.body))
            case _:
                continue
        marked = any(leaf.name in MARKS for leaf in leaves(part))  # v means nothing outside its Σ
        if part is term or uses[part] < 2 or part.size < _SMALLEST_SHARED or marked:
            short[part] = shown
            continue
        letter = _letter(part)
        numbers[letter] += 1
        name = f"{letter}{numbers[letter]}"
        definitions.append(Definition(name, regrouped(shown)))
        short[part] = Leaf(name, part.sort)
    return [*definitions, Definition(_letter(term), regrouped(short.get(term, term)))]


def regrouped(term: Term) -> Term:
    """The same string with its products bracketed from the left, so that it prints without any."""
    if isinstance(term, MarkSum):
        return MarkSum(term.mark, regrouped(term.body))
    if not isinstance(term, Apply) or term.size > MAX_SIZE:
        return term
    if term.op == "matmul":
        return joined(map(regrouped, factors(term)))
    return Apply(term.op, tuple(map(regrouped, term.args)), term.sort, term.function)


def _count(term: Term, uses: Counter[Term], order: list[Term]) -> None:
    """Count how often each different part is an argument of a different part, innermost first."""
    uses[term] += 1
    if uses[term] > 1:
        return
    for arg in arguments(term):
        _count(arg, uses, order)
    order.append(term)


def _letter(term: Term) -> str:
    letter = term.sort.letter
    return letter if letter == "M" else letter.lower()
