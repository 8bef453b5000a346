"""The rules a smaller grammar may be made of: those of the larger one and their inlinings.

Nothing is listed by hand. A row variable is written as the transpose of a column, a scalar is a
factor the invariant carries, and one variable of a rule may be replaced by the body of a rule of
its sort: that gives AV_c and diag(V_c)V_c from MV_c. Templates with one pattern are one template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

from ..grammars.grammar import Grammar, Rule
from ..language.patterns import Assumption, canonical, pattern_of
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import (
    ONE,
    A,
    Hole,
    Leaf,
    Term,
    fill,
    holes,
    leaves,
    multilinear,
    operation_count,
)
from .invariants import Form

READOUT_STEPS = 3
MAX_LIBRARY = 30
MOST_RENUMBERED = 5
"""Templates of more variables may stand in a library twice."""


def library(
    grammar: Grammar, form: Form, assume: Assumption, inlining: bool = True
) -> tuple[Rule, ...]:
    """Candidate rules for words, in order of size.

    All one-step inlinings where they are few; otherwise those of constants (A, 1), which keeps the
    search for a large grammar to seconds. A grammar of matrices alone has 1 for every column.
    """
    if form == "exact":
        return grammar.all_rules
    base = [rule for rule in _base(grammar, assume) if rule.head != S]
    if form in ("broadcast", "diagonal"):
        filled = []
        for rule in (rule for rule in base if rule.head == M):
            parts: list[Term] = [ONE if sort == V else Hole(sort) for sort in rule.holes]
            filled.append(Rule(M, fill(rule.body, parts)))
        return tuple(_distinct(filled, assume))
    if not inlining:
        rules = [rule for rule in base if form == "action" or _allowed(rule, form)]
        return tuple(_distinct(rules, assume))
    for bodies in (base, [rule for rule in base if not rule.holes]):
        inlined = [r for rule in base for r in _inlined(rule, bodies)]
        candidates = _distinct((r for r in (*base, *inlined) if _allowed(r, form)), assume)
        if len(candidates) <= MAX_LIBRARY:
            break
    return tuple(candidates)


def readouts(grammar: Grammar, form: Form, assume: Assumption) -> tuple[Rule, ...]:
    """Candidate read-outs: those of the grammar, and sums over one variable and ones."""
    if form == "exact":
        return ()
    base = _base(grammar, assume)
    candidates = [rule for rule in base if rule.head == S]
    wave = candidates
    for _ in range(READOUT_STEPS):
        wave = [inlined for rule in wave for inlined in _inlined(rule, base)]
        candidates += [
            r for r in wave if len(r.holes) == 1 and {x.name for x in leaves(r.body)} == {"1"}
        ]
    return tuple(_distinct((rule for rule in candidates if _allowed(rule, form)), assume))


def _base(grammar: Grammar, assume: Assumption) -> list[Rule]:
    """The rules with rows written as transposed columns and scalars dropped.

    Where A is not symmetric, Aᵀ is a constant like A.
    """
    rules = []
    for rule in grammar.all_rules:
        if rule.head == R or S in rule.holes:
            continue
        body = fill(rule.body, [Hole(V).T if sort == R else Hole(sort) for sort in rule.holes])
        rules.append(Rule(rule.head, body))
    if assume == "none" and "M → Mᵀ" in grammar:
        rules.append(Rule(M, A.T))
    return [rule for rule in rules if not _trivial(rule)]


def _allowed(rule: Rule, form: Form) -> bool:
    """Which variables the smaller grammar may have under each form."""
    absent = {"action": {M}, "broadcast": {V}, "diagonal": {V}}.get(form, set())
    return not absent & {rule.head, *rule.holes}


def _inlined(rule: Rule, base: Iterable[Rule]) -> Iterator[Rule]:
    """The rule with one of its variables replaced by the body of a rule."""
    options = list(base)
    for index, sort in enumerate(rule.holes):
        for other in options:
            if other.head == sort:
                fillings: list[Term] = [Hole(s) for s in rule.holes]
                fillings[index] = other.body
                yield Rule(rule.head, fill(rule.body, fillings))


def _distinct(rules: Iterable[Rule], assume: Assumption) -> list[Rule]:
    """One rule per pattern, the one with the fewest operations; trivial ones dropped."""
    kept: dict[tuple[Sort, object], Rule] = {}
    for rule in sorted(rules, key=size_key):
        if not _trivial(rule):
            kept.setdefault((rule.head, _shape(rule, assume)), rule)
    return list(kept.values())


def size_key(rule: Rule) -> tuple[int, int, bool, str]:
    """Fewest operations first, then the shorter text; 1ᵀ(M1) before (M1)ᵀ1."""
    text = rule.body_text()
    return operation_count(rule.body), len(text), not text.startswith("1"), text


def _trivial(rule: Rule) -> bool:
    """Whether the body is, up to equality, just one of its variables."""
    if not multilinear(rule.body):
        return False
    shape = pattern_of(_labelled(rule.body, range(len(rule.holes))))
    return any(
        sort == rule.head and canonical(shape) == canonical(pattern_of(Leaf(f"h{i}", sort)))
        for i, sort in enumerate(rule.holes)
    )


def _shape(rule: Rule, assume: Assumption) -> object:
    """The body's pattern with its variables unnamed: least over all numberings of them."""
    if not multilinear(rule.body):
        return rule.body
    count = len(rule.holes)
    numberings = permutations(range(count)) if count <= MOST_RENUMBERED else [range(count)]
    forms = [canonical(pattern_of(_labelled(rule.body, n), assume)) for n in numberings]
    return min(forms, key=lambda p: (p.vertices, p.edges, p.boundary))


def _labelled(body: Term, numbers: Iterable[int]) -> Term:
    return fill(body, [Leaf(f"h{i}", s) for i, s in zip(numbers, holes(body), strict=True)])
