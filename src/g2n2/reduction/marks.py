"""Reductions of grammars with marks: what is inside the sums, and four laws of marks.

Sums Σ stand on scalars only. The marks are opaque columns inside, z the innermost and y the one
around it, and a word at any scope is simulated as one inside all of them, times a product of
sentences (`inside_larger`, `inside_smaller`): that is an ordinary simulation. What is left to show
is that a sum over z of a product of sentences is a word of the smaller grammar again. Factors
without z leave the sum. The others become one, either because products are sentences there (S → SS)
or by three laws:

    reroot  a sentence in which z occurs is uᵀz for some column word u: by induction over the rules
            of the smaller grammar, one step for each rule and each place z can be in. A column word
            w stands in a context cᵀw, a matrix word m in 1ᵀ(m⊙n)1 or xᵀmy, with c, x, y columns
            and n a matrix word; a step moves all that is around the part with z into its context.
    merge   (u₀ᵀz)(u₁ᵀz) = uᵀz
    sum     u₀ᵀz is a sentence that the smaller grammar sums

A sentence without z is itself a sum over z (`return`, for each rule of S that does not name z), and
so is the number of nodes (`count`). At the scopes in between, the smaller grammar has to have Σ. S
and SS, and the inner mark no rule that the outer one does not have. `marked_checker` has the
induction in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..grammars.grammar import Grammar, Rule
from ..grammars.rules import rule_depth
from ..language.patterns import (
    Assumption,
    Edge,
    Pattern,
    collapsed,
    pattern_of,
)
from ..language.sorts import M, R, S, V
from ..language.terms import (
    ONE,
    Hole,
    Leaf,
    MarkSum,
    Number,
    Term,
    apply,
    fill,
    has_mark_sum,
    holes,
    leaves,
    mark_sum,
    multilinear,
    substitute,
)
from .invariants import Claim, Obligation, opaque
from .proof_goals import Need, split
from .simulation import Proof, SimulationWitness, WordFinder, witnessed

TERMINALS = "yz"
"""What the marks are called inside, the innermost last."""

_Z = Leaf("z", V)
MARK_RULE = Rule(V, _Z)
_MULTIPLY = ("matmul", "hadamard", "scale")
"""The operations that multiply two scalars."""
_CONTEXT = 9
"""The number of the opaque words of a context, beyond those of any rule."""


@dataclass(frozen=True)
class MarkedProof:
    """That every word of a grammar with marks is made of words of another."""

    claim: Claim  # about the grammars with their marks; the form is the one inside
    inside: Proof
    laws: tuple[SimulationWitness, ...] = ()
    # sums of scalars, sums of all sorts, or each word is a word of the other
    how: Literal["pooled", "full", "exact"] = "pooled"
    outside: Proof | None = None  # of the words outside the mark, where words are words

    @property
    def transposed(self) -> bool:
        return self.inside.transposed

    @property
    def witnesses(self) -> tuple[SimulationWitness, ...]:
        outside = self.outside.witnesses if self.outside else ()
        return self.inside.witnesses + outside + self.laws


def inside_larger(grammar: Grammar, depth: int) -> Grammar | None:
    """All rules without primes, lifts and sums; None where a sum is not on a scalar by itself.

    `depth` is how many marks the smaller grammar has: the outermost mark is y where there are two.
    """
    rules: list[Rule] = []
    for rule in grammar.all_rules:
        names, body = list(grammar.marks[: rule.head.scope]), rule.body
        while isinstance(body, MarkSum):
            names, body = [*names, body.mark], body.body
        summed = len(names) > rule.head.scope
        if len(names) > depth or (summed and rule.head.plain != S) or not is_plain(body):
            return None
        if not isinstance(body, Hole):
            rules.append(Rule(rule.head.plain, unprimed(body, names, depth)))
    return Grammar.of(rules, grammar.name, grammar.supports, default_readout=False)


def inside_smaller(grammar: Grammar) -> Grammar | None:
    """The rules inside all marks and the sentences that are summed; None for another structure."""
    depth, marks = grammar.scope, grammar.marks
    if not 0 < depth <= len(TERMINALS):
        return None
    for j in range(1, depth):
        if _summed(j, marks[j - 1]) not in grammar or not product_rules(grammar, j):
            return None
    outer = S.within(depth - 1)
    through = _summed(depth, marks[-1]) in grammar.all_rules
    rules: list[Rule] = []
    for rule in (*grammar.all_rules, *_linear_sums(grammar, depth)):
        body, scope = rule.body, rule.head.scope
        direct = rule.head == outer and isinstance(body, MarkSum) and not through
        if direct and any(hole.plain == S for hole in rule.holes):
            continue  # it sums products of other scalars than those that are summed by themselves
        names = marks if direct else marks[:scope]
        if direct:
            assert isinstance(body, MarkSum)
            body = body.body
        lifted = (
            scope < depth
            and not holes(body)
            and all(
                Rule(rule.head.plain.within(j + 1), Hole(rule.head.plain.within(j)))
                in grammar.rules
                for j in range(scope, depth)
            )
        )
        usable = direct or (scope == depth and (through or rule.head.plain != S)) or lifted
        if usable and is_plain(body) and all(h.scope == depth for h in holes(body)):
            rules.append(Rule(rule.head.plain, unprimed(body, names, depth)))
    twins = {Rule(rule.head, substitute(rule.body, {"z": Leaf("y", V)})) for rule in rules}
    if depth > 1 and not twins <= set(rules):
        return None
    return Grammar.of(rules, grammar.name, grammar.supports, default_readout=False)


def _linear_sums(grammar: Grammar, depth: int) -> Iterator[Rule]:
    """S → Σv. 1ᵀV′ where S → 1ᵀV and V → Σv. V′ are rules: a sum of words is one of sentences."""
    mark = grammar.marks[depth - 1]
    for rule in grammar.of_sort(S.within(depth - 1)):
        if len(rule.holes) == 1 and rule.holes[0].scope == depth - 1 and is_plain(rule.body):
            (hole,) = rule.holes
            if Rule(hole, MarkSum(mark, Hole(hole.within(1)))) in grammar.all_rules:
                yield Rule(rule.head, MarkSum(mark, fill(rule.body, [Hole(hole.within(1))])))


def with_marks(inside: Grammar, marks: Sequence[str], products: bool, times: str) -> Grammar:
    """The grammar that sums the sentences of another over marks, which it has inside.

    `times` is the operation that multiplies two scalars.
    """
    depth = len(marks)
    inner = [primed(rule, marks) for rule in inside.all_rules if rule.holes != (S, S)]
    rules = [rule for rule in inner if products or rule.head.plain != S]
    if products:
        rules += [_product(depth, times), _summed(depth, marks[-1])]
    else:
        outer = S.within(depth - 1)
        rules += [Rule(outer, MarkSum(marks[-1], r.body)) for r in inner if r not in rules]
    for j in range(depth - 1, 0, -1):
        rules += [_product(j, times), _summed(j, marks[j - 1])]
    return Grammar.of(rules, "", inside.supports, default_readout=False)


def prove_laws(
    larger: Grammar, smaller: Grammar, inside: Proof, assume: Assumption
) -> MarkedProof | None:
    """The laws that a simulation inside needs besides it, or None."""
    inner = inside.claim.smaller
    innermost = inside_depth(larger) == smaller.scope
    finder = WordFinder(Claim(inner, inner, "plain", assume), inside.transposed)
    law = LawFinder(finder, assume)
    witnesses = []
    for obligation in owed_laws(inner, innermost):
        witness = law.met(obligation)
        if witness is None:
            return None
        witnesses.append(witness)
    claim = Claim(larger, smaller, inside.claim.form, assume)
    return MarkedProof(claim, inside, tuple(witnesses))


def inside_depth(grammar: Grammar) -> int:
    """How many marks stand around the innermost words of a grammar."""
    return max((rule_depth(rule) for rule in grammar.all_rules), default=0)


def owed_laws(inner: Grammar, innermost: bool) -> Iterator[Obligation]:
    """What is owed of the smaller grammar, in a fixed order.

    Sums over z are owed only if the larger grammar has as many marks, so that z is one of them.
    """
    yield Obligation("count", MARK_RULE, (), ONE.T @ ONE)
    for rule in inner.sentence_rules:
        if not (S in rule.holes or isinstance(rule.body, Number) or _Z in leaves(rule.body)):
            yield Obligation("return", rule, (), _filled(rule))
    if not innermost or product_rules(inner):
        return
    for rule in inner.all_rules:
        targets = ["z"] if _Z in leaves(rule.body) else [str(i) for i in range(len(rule.holes))]
        contexts = {V: ["c"], M: ["n", "xyᵀ"], S: [""], R: ["r"]}[rule.head]
        for target in targets:
            for context in contexts:
                yield Obligation("reroot", rule, (target, context), in_context(rule, context))
    u, w = opaque(V, 0), opaque(V, 1)
    both = apply("scale", u.T @ _Z, w.T @ _Z)
    yield Obligation("merge", MARK_RULE, (), tested(both))
    yield Obligation("sum", MARK_RULE, (), u.T @ _Z)


def in_context(rule: Rule, context: str) -> Term:
    """The rule on opaque words, closed by a context of opaque words."""
    body = _filled(rule)
    column, other = opaque(V, _CONTEXT), opaque(V, _CONTEXT, "w")
    match context:
        case "c":
            return column.T @ body
        case "n":
            return _entries(body, opaque(M, _CONTEXT))
        case "xyᵀ":
            return column.T @ body @ other
    return body


def tested(scalar: Term) -> Term:
    """A scalar with z as a column with any x: equal for all x iff equal at every mark."""
    return mark_sum("z", apply("scale", Leaf("x", V).T @ _Z, scalar))


def closed(part: Leaf, words: Sequence[Term]) -> Term:
    """A part in the context that one or two words make."""
    if part.sort == V:
        return words[0].T @ part
    return _entries(part, words[0]) if len(words) == 1 else words[0].T @ part @ words[1]


def law_side(obligation: Obligation, factors: Sequence[Term], words: Sequence[Term]) -> Term:
    match obligation.kind:
        case "reroot":
            return closed(_part(obligation), words)
        case "merge":
            return tested(words[0].T @ _Z)
        case "return":
            return mark_sum("z", factors[0])
    return factors[0]


def _part(obligation: Obligation) -> Leaf:
    """The part of a rule in which z occurs."""
    target = obligation.choice[0]
    return _Z if target == "z" else opaque(obligation.rule.holes[int(target)], int(target))


class LawFinder:
    """Meets the laws by words of the smaller grammar."""

    def __init__(self, finder: WordFinder, assume: Assumption) -> None:
        self.finder, self.assume = finder, assume

    def met(self, obligation: Obligation) -> SimulationWitness | None:
        match obligation.kind:
            case "reroot":
                return self._rerooted(obligation)
            case "merge":
                both = apply("hadamard", opaque(V, 0), opaque(V, 1))  # what they make at z
                word = self._word((V, pattern_of(both, self.assume)))
                return None if word is None else self._witness(obligation, (), (word,))
            case "return":
                return self._returned(obligation)
        sentence = self._word((S, pattern_of(obligation.term, self.assume)))
        return None if sentence is None else self._witness(obligation, (sentence,), ())

    def _rerooted(self, obligation: Obligation) -> SimulationWitness | None:
        """The part with z taken out of the pattern leaves the pattern of its new context."""
        if R in (obligation.rule.head, *obligation.rule.holes):
            return None
        part = _part(obligation)
        pattern = self._pattern(obligation.term)
        (edge, *more) = [e for e in pattern.edges if e.label == part.name]
        if more or part.sort == S:
            return None
        rest = tuple(e for e in pattern.edges if e is not edge)
        loose, ends = split(Pattern(pattern.vertices, rest, edge.ends))
        if loose:
            return None
        whole = Pattern(pattern.vertices, rest, edge.ends)
        options: list[tuple[Need, ...]] = [((part.sort, whole),)]
        if len(ends) == 2:
            options.append(tuple((V, end) for end in ends))
        for option in options:
            words = [self._word(need) for need in option]
            words_found = tuple(word for word in words if word is not None)
            if len(words_found) == len(words):
                return self._witness(obligation, (), words_found)
        return None

    def _returned(self, obligation: Obligation) -> SimulationWitness | None:
        """A sentence with z at some vertex of the pattern."""
        pattern = self._pattern(obligation.term)
        for vertex in range(pattern.vertices):
            edges = (*pattern.edges, Edge("z", False, (vertex,)))
            sentence = self._word((S, Pattern(pattern.vertices, edges, ())))
            if sentence is not None:
                return self._witness(obligation, (sentence,), ())
        return None

    def _word(self, need: Need) -> Term | None:
        return self.finder.word(need, "plain")

    def _pattern(self, term: Term) -> Pattern:
        pattern = pattern_of(term, self.assume)
        return collapsed(pattern) if self.assume == "simple" else pattern

    def _witness(
        self,
        obligation: Obligation,
        factors: tuple[Term, ...],
        words: tuple[Term, ...],
    ) -> SimulationWitness:
        right = pattern_of(law_side(obligation, factors, words), self.assume)
        return witnessed(obligation, factors, words, right, self.assume)


def _filled(rule: Rule) -> Term:
    return fill(rule.body, [opaque(sort, i) for i, sort in enumerate(rule.holes)])


def _entries(matrix: Term, other: Term) -> Term:
    return ONE.T @ apply("hadamard", matrix, other) @ ONE


def is_plain(body: Term) -> bool:
    return multilinear(body) and not has_mark_sum(body)


def product_rules(grammar: Grammar, scope: int = 0) -> list[str]:
    """The operations that multiply two scalars in a rule of the grammar, the usual one first."""
    return [op for op in _MULTIPLY if _product(scope, op) in grammar]


def _product(scope: int, operation: str) -> Rule:
    scalar = S.within(scope)
    return Rule(scalar, apply(operation, Hole(scalar), Hole(scalar)))


def _summed(scope: int, mark: str) -> Rule:
    """S → Σv. S′, for the mark that is the innermost of so many."""
    return Rule(S.within(scope - 1), MarkSum(mark, Hole(S.within(scope))))


def unprimed(body: Term, marks: Sequence[str], depth: int) -> Term:
    """A body with the variables and marks as they are called inside."""
    names = TERMINALS[len(TERMINALS) - depth :]
    terminals: dict[str, Term] = {
        mark: Leaf(name, V) for mark, name in zip(marks, names, strict=False)
    }
    variables: list[Term] = [Hole(sort.plain) for sort in holes(body)]
    return substitute(fill(body, variables), terminals)


def primed(rule: Rule, marks: Sequence[str]) -> Rule:
    """A rule inside so many marks; the reverse of `unprimed`."""
    names = TERMINALS[len(TERMINALS) - len(marks) :]
    leaves_of: dict[str, Term] = {
        name: Leaf(mark, V) for name, mark in zip(names, marks, strict=True)
    }
    variables: list[Term] = [Hole(sort.within(len(marks))) for sort in rule.holes]
    return Rule(rule.head.within(len(marks)), substitute(fill(rule.body, variables), leaves_of))
