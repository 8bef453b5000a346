"""Reductions of grammars whose sums over a mark also bring columns and matrices back out.

One mark. The smaller grammar has V → Σv. V′, M → Σv. M′, where outer products are carried also
M → Σv. V′V′ᵀ, and the lifts V′ → V and M′ → M. What stands inside the mark is a simulation as in
`marks`, with the mark as a column z. A word of the larger grammar is then a product of sentences
times a word (or an outer product of two) at its scope, by induction over its rules:

    plain rules   inside by the simulation. Outside likewise: what has no z comes back by `return`,
                  w = Σz. diag(z)w and m = Σz. diag(z)m
    sums          a factor without z leaves the sum. The others are one uᵀz by `reroot` and `merge`.
                  It goes into the word, if z occurs there, by `absorb` ((uᵀz)z = diag(u)z, and
                  words are linear in each part); else Σz. uᵀz is a sentence by `sum`, or n by
                  `count`. The word is then one that the smaller grammar sums
    transposes    of sums are sums of transposes (`turn`), where the transpose lemma is used

1 = Σz. z is a word by `unit`. Rules of V and M outside have to stand inside too.
`full_marks_checker` checks it without any of this code.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..grammars.grammar import Grammar, Rule
from ..language.patterns import Assumption, Edge, Pattern, pattern_of
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import ONE, Hole, Leaf, MarkSum, Term, apply, holes, leaves, mark_sum
from .invariants import Claim, Obligation, opaque
from .marks import (
    MARK_RULE,
    LawFinder,
    MarkedProof,
    is_plain,
    law_side,
    owed_laws,
    primed,
    unprimed,
)
from .simulation import Proof, SimulationWitness, WordFinder, witnessed

_Z = Leaf("z", V)
_X = Leaf("x", V)
_POOLED_ONLY = ("return",)
_V1, _M1 = V.within(1), M.within(1)
UNIT = Rule(V, ONE)


def sums_and_lifts(mark: str, outer: bool) -> tuple[Rule, ...]:
    """The rules that bring words out of the mark and into it."""
    rules = [Rule(V, MarkSum(mark, Hole(_V1))), Rule(M, MarkSum(mark, Hole(_M1)))]
    if outer:
        rules.append(Rule(M, MarkSum(mark, Hole(_V1) @ Hole(_V1).T)))
    return (*rules, Rule(_V1, Hole(V)), Rule(_M1, Hole(M)))


def all_inside(grammar: Grammar) -> Grammar | None:
    """All rules without primes, lifts and sums; None where there are two marks."""
    rules: list[Rule] = []
    for rule in grammar.all_rules:
        names, body = list(grammar.marks[: rule.head.scope]), rule.body
        if isinstance(body, MarkSum):
            names, body = [*names, body.mark], body.body
        if len(names) > 1 or not is_plain(body):
            return None
        if not isinstance(body, Hole):
            rules.append(Rule(rule.head.plain, unprimed(body, names, 1)))
    return Grammar.of(rules, grammar.name, grammar.supports, default_readout=False)


def smaller_inside(grammar: Grammar, outer: bool) -> Grammar | None:
    """The rules inside the mark, 1, and the sentences; None for another structure."""
    if len(grammar.marks) != 1:
        return None
    required = sums_and_lifts(grammar.marks[0], outer)
    rest = [
        rule for rule in grammar.all_rules if rule not in sums_and_lifts(grammar.marks[0], True)
    ]
    if not set(required) <= set(grammar.all_rules) or not all(is_plain(r.body) for r in rest):
        return None
    within = {h for rule in rest for h in rule.holes if rule.head.scope != h.scope}
    if within or any(rule.head not in (S, V, M, _V1, _M1) for rule in rest):
        return None
    inside = [
        Rule(rule.head.plain, unprimed(rule.body, grammar.marks[: rule.head.scope], 1))
        for rule in rest
        if rule.head.scope or rule.head == S or not rule.holes
    ]
    inside += [UNIT] if UNIT not in inside else []
    outside = {rule for rule in rest if not rule.head.scope and rule.head != S}
    one_part = all(len(r.holes) == 1 and r.holes[0] != S for r in inside if r.head == S)
    alone = all(rule == MARK_RULE for rule in inside if _Z in leaves(rule.body))
    if not outside <= set(inside) or not one_part or not alone:
        return None
    return Grammar.of(inside, grammar.name, grammar.supports, default_readout=False)


def with_full_marks(inside: Grammar, mark: str) -> Grammar:
    """The grammar that has another inside its mark, and brings all its words out."""
    kept = [rule for rule in inside.all_rules if rule not in (*inside.sentence_rules, UNIT)]
    rules = [*sums_and_lifts(mark, True), *(primed(rule, (mark,)) for rule in kept)]
    return Grammar.of([*rules, *inside.sentence_rules], "", inside.supports, default_readout=False)


def prove_full(
    larger: Grammar, smaller: Grammar, inside: Proof, assume: Assumption
) -> MarkedProof | None:
    """The laws that a simulation inside needs besides it, or None."""
    inner = inside.claim.smaller
    finder = _FullLawFinder(
        WordFinder(Claim(inner, inner, "plain", assume), inside.transposed), assume
    )
    witnesses = []
    for obligation in owed_full_laws(inner, inside.transposed):
        witness = finder.met(obligation)
        if witness is None:
            return None
        witnesses.append(witness)
    claim = Claim(larger, smaller, inside.claim.form, assume)
    return MarkedProof(claim, inside, tuple(witnesses), "full")


def owed_full_laws(inner: Grammar, transposed: bool) -> Iterator[Obligation]:
    """What is owed of the smaller grammar, in a fixed order."""
    u, m = opaque(V, 0), opaque(M, 0)
    yield Obligation("unit", MARK_RULE, (), ONE)
    yield from (law for law in owed_laws(inner, True) if law.kind not in _POOLED_ONLY)
    yield Obligation("absorb", MARK_RULE, (), at_every_mark(apply("scale", u.T @ _Z, _Z)))
    yield Obligation("return", MARK_RULE, ("V",), u)
    yield Obligation("return", MARK_RULE, ("M",), m)
    if transposed:
        yield Obligation("turn", MARK_RULE, ("m",), mark_sum("z", m).T)
        yield Obligation("turn", MARK_RULE, ("vwᵀ",), mark_sum("z", u @ opaque(V, 1).T).T)


def at_every_mark(column: Term) -> Term:
    """Equal for every column x iff the columns are equal wherever the mark is."""
    return mark_sum("z", apply("scale", _X.T @ _Z, column))


class _FullLawFinder(LawFinder):
    """Meets the laws by words of the smaller grammar."""

    def met(self, obligation: Obligation) -> SimulationWitness | None:
        fixed = fixed_side(obligation)
        if fixed is not None:
            right = pattern_of(fixed, self.assume)
            return witnessed(obligation, (), (), right, self.assume)
        if obligation.kind == "absorb":
            marked = pattern_of(apply("hadamard", opaque(V, 0), _Z), self.assume)
            return self._by_word(obligation, V, marked)
        if obligation.kind == "return":
            return self._with_z(obligation)
        return super().met(obligation)

    def _with_z(self, obligation: Obligation) -> SimulationWitness | None:
        """A word with z at one of the ends."""
        pattern = pattern_of(obligation.term, self.assume)
        for end in dict.fromkeys(pattern.boundary):
            edges = (*pattern.edges, Edge("z", False, (end,)))
            marked = Pattern(pattern.vertices, edges, pattern.boundary)
            if found := self._by_word(obligation, obligation.term.sort, marked):
                return found
        return None

    def _by_word(
        self, obligation: Obligation, sort: Sort, pattern: Pattern
    ) -> SimulationWitness | None:
        word = self.finder.word((sort, pattern), "plain")
        if word is None:
            return None
        right = pattern_of(word_side(obligation, word), self.assume)
        return witnessed(obligation, (), (word,), right, self.assume)


def fixed_side(obligation: Obligation) -> Term | None:
    """The right side of a law that no word is sought for."""
    m, v, w = opaque(M, 0), opaque(V, 0), opaque(V, 1)
    match obligation.kind, obligation.choice:
        case "unit", _:
            return mark_sum("z", _Z)
        case "turn", ("m",):
            return mark_sum("z", m.T)
        case "turn", _:
            return mark_sum("z", w @ v.T)
    return None


def word_side(obligation: Obligation, word: Term) -> Term:
    """The right side of a law that a word meets."""
    return at_every_mark(word) if obligation.kind == "absorb" else mark_sum("z", word)


def law_text(witness: SimulationWitness) -> str:
    """The right side of a law that is met."""
    obligation, words = witness.obligation, witness.words
    fixed = fixed_side(obligation)
    if fixed is not None:
        return str(fixed)
    if obligation.kind == "absorb" or (obligation.kind == "return" and words):
        return str(word_side(obligation, words[0]))
    return str(law_side(obligation, witness.factors, words))


def owed_by_scope(grammar: Grammar) -> tuple[Grammar, Grammar] | None:
    """What is owed inside the mark, sums included, and outside, if words are to be words.

    None where there are rows: no output compares them.
    """
    parts: tuple[list[Rule], list[Rule]] = ([], [])
    for rule in grammar.all_rules:
        body, scope = rule.body, rule.head.scope
        if isinstance(body, MarkSum):
            body, scope = body.body, scope + 1
        if scope > 1 or rule.head.plain == R or not is_plain(body):
            return None
        if isinstance(body, Hole):
            continue
        if any(hole.scope != scope for hole in holes(body)):
            return None
        parts[scope].append(Rule(rule.head.plain, unprimed(body, grammar.marks[:scope], 1)))
    return _pair(grammar, parts)


def rules_by_scope(grammar: Grammar) -> tuple[Grammar, Grammar]:
    """The plain rules inside the mark and outside."""
    parts: tuple[list[Rule], list[Rule]] = ([], [])
    for rule in grammar.all_rules:
        scope = rule.head.scope
        closed = scope < 2 and is_plain(rule.body) and all(h.scope == scope for h in rule.holes)
        if closed:
            body = unprimed(rule.body, grammar.marks[:scope], 1)
            parts[scope].append(Rule(rule.head.plain, body))
    return _pair(grammar, parts)


def _pair(grammar: Grammar, parts: tuple[list[Rule], list[Rule]]) -> tuple[Grammar, Grammar]:
    outside, inside = (
        Grammar.of(rules, grammar.name, grammar.supports, default_readout=False) for rules in parts
    )
    return inside, outside


def has_sums_and_lifts(smaller: Grammar, larger: Grammar) -> bool:
    """Whether a grammar has the sums and lifts that another uses, by themselves."""
    lifts = {rule for rule in larger.all_rules if isinstance(rule.body, Hole)}
    lifts |= {  # Σv. S sums what is lifted first
        Rule(rule.head.within(1), rule.body.body)
        for rule in larger.all_rules
        if isinstance(rule.body, MarkSum) and rule.body.body == Hole(rule.head)
    }
    sums = {
        Rule(rule.head, MarkSum(mark, Hole(rule.head.within(1))))
        for mark in smaller.marks[:1]
        for rule in larger.all_rules
        if isinstance(rule.body, MarkSum)
    }
    return bool(smaller.marks) and lifts | sums <= set(smaller.all_rules)
