"""Marks in a network: the grammar inside them, and what stands around the sums over them.

    S → Σv. 1ᵀV′       the words of V′ and M′ are computed on a copy of the graph for each v, read
    V′ → M′V′ | 1 | v  out as any network is, mixed, summed over the copies, and decided on

Words inside a mark are an ordinary grammar with one more column to start from. So a network with
marks is an ordinary one on marked copies, as long as nothing but sums of scalars leaves a mark.

    V → Σv. V′         where columns or matrices leave a mark, or words enter it, the copies of a
    V′ → M′V′ | v | V  graph *meet* in every layer: there are memories of the graph and of its
                       copies, and rules that cross from the ones to the others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal, cast

from ..errors import LoweringError
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule, crosses
from ..language.sorts import M, S, Sort, V
from ..language.terms import (
    A,
    Apply,
    Hole,
    Leaf,
    MarkSum,
    Term,
    apply,
    leaves,
    substitute,
    subterms,
)
from ..validation import MOST_LAYERS

if TYPE_CHECKING:
    from .plan import LayerPlan, Linear


Marks = Literal["all", "orbits", "heavy"] | int
"""Which vertices are marked; see `nn.marks`."""
WAYS = ("all", "orbits", "heavy")


@dataclass(frozen=True)
class MarkPlan:
    """What stands around the words inside marks."""

    names: tuple[str, ...]  # of the marks, the outermost first
    # the MLP in front of each sum, the innermost first; none where a sum follows at once
    mixers: tuple[tuple[Linear, ...], ...]
    chosen: Marks = "all"  # the vertices that are marked
    # the linear maps and the layers before the marks, whose memories every copy starts with
    embeddings: tuple[tuple[Sort, Linear], ...] = ()
    trunk: tuple[LayerPlan, ...] = ()


def check_marks(marks: object, grammar: Grammar) -> None:
    """Refuse a choice of marks that is none, or one for a grammar without marks."""
    drawn = isinstance(marks, int) and not isinstance(marks, bool) and marks > 0
    if not drawn and marks not in WAYS:
        more = ""
        if isinstance(marks, str) and marks.startswith("colour"):
            more = (
                "; vertices of one colour need not have isomorphic marked copies, as rook's and "
                "Shrikhande's graph side by side show: one of each orbit is what is sound"
            )
        raise LoweringError(
            "marks is all, orbits, heavy or a number of vertices drawn in training, got "
            f"{marks!r}{more}"
        )
    if marks != "all":
        refuse_without_marks(marks, grammar)


def refuse_without_marks(marks: object, grammar: Grammar) -> None:
    """Refuse any choice of marks for a grammar without marks."""
    name = grammar.name or "this grammar"
    if not grammar.scope:
        raise LoweringError(
            f"marks={marks!r} says where marks are, and {name} has none; leave it out, "
            "or choose a grammar with marks, such as r-G_L3Σ"
        )


def check_trunk(trunk: object, grammar: Grammar) -> None:
    """Refuse a number of layers before the marks that is none, or a trunk without marks."""
    if not isinstance(trunk, int) or isinstance(trunk, bool) or not 0 <= trunk <= MOST_LAYERS:
        raise LoweringError(
            f"trunk is the number of layers before the marks, 0 to {MOST_LAYERS}, got {trunk!r}"
        )
    name = grammar.name or "this grammar"
    if trunk and not grammar.scope:
        raise LoweringError(
            f"trunk={trunk} is a number of layers before the marks, and {name} has no "
            "marks; add them to layers, or choose a grammar with marks, such as r-G_L3Σ"
        )


def marks_named(text: str) -> Marks:
    """The choice of marks of that name: a number is how many are drawn."""
    return int(text) if text.isascii() and text.isdigit() else cast(Marks, text)


def copies_meet(grammar: Grammar) -> bool:
    """Whether marked copies exchange words before a sum of scalars at the end."""
    try:
        inside(grammar)
    except LoweringError:
        return True
    return False


def by_scope(grammar: Grammar) -> tuple[Grammar, ...]:
    """The rules outside a mark and those inside as grammars; those that cross are left out.

    With V′ → V the terminals of V are also inside. Sentences are outside, sums over marks too.
    """
    own = [rule for rule in grammar.rules if not crosses(rule)]
    lifts = {rule.head for rule in grammar.rules if isinstance(rule.body, Hole)}
    lifted = [rule.within(1) for rule in own if not rule.holes and rule.head.within(1) in lifts]
    outer, inner = (
        tuple(dict.fromkeys(rule.plain for rule in rules if rule.head.scope == scope))
        for scope, rules in enumerate((own, own + lifted))
    )
    return replace(grammar, rules=outer), replace(grammar, rules=inner, readout=())


def check_meeting(grammar: Grammar, marks: Marks) -> list[str]:
    """What keeps a network whose copies meet from being made, one sentence each."""
    name = grammar.name or "this grammar"
    if grammar.scope > 1:
        try:
            inside(grammar)
        except LoweringError as error:
            return [f"{error}; where words leave or enter marks earlier, networks have one mark"]
    reasons = []
    for rule in grammar.all_rules:
        inner = rule.body.body if isinstance(rule.body, MarkSum) else rule.body
        nested = any(isinstance(part, MarkSum) for part in subterms(inner))
        if rule.holes and (nested or (isinstance(rule.body, MarkSum) and rule.head.scope)):
            reasons.append(
                f"{rule} has Σ inside a term or inside a mark, and networks have it in front of a "
                "rule outside: give the sum a rule of its own, as V_c → Σv. V_c′"
            )
    why = {
        "orbits": "the copies of an orbit are isomorphic, but their entries are permuted, so that "
        "one does not stand for the others",
        "heavy": "the entries that come from marks on leaves would be missing",
    }
    if isinstance(marks, str) and marks in why:
        reasons.append(
            f"marks={marks!r} is for sums of scalars at the end, and {name} sums columns and "
            f"matrices over marks: {why[marks]}; use marks='all', or a number of vertices drawn in "
            "training"
        )
    return reasons


def with_named_marks(grammar: Grammar) -> Grammar:
    """The grammar with each leading sum over the mark of its scope, by the name words give it.

    A sum without variables may call it by another: `Σw. wᵀA³w` beside `V′ → v`.
    """
    names = grammar.marks

    def named(rule: Rule) -> Rule:
        body, marks = rule.body, list[str]()
        called: dict[str, Term] = {}
        for mark in names[rule.head.scope :]:
            if isinstance(body, MarkSum):
                called[body.mark], body = Leaf(mark, V), body.body
                marks.insert(0, mark)
        body = reduce(lambda term, mark: MarkSum(mark, term), marks, substitute(body, called))
        return Rule(rule.head, body)

    rules, readout = (tuple(map(named, part)) for part in (grammar.rules, grammar.readout))
    return replace(grammar, rules=rules, readout=readout)


def inside(grammar: Grammar) -> Grammar:
    """The words inside all marks of a grammar, as a grammar whose words may use the marks.

    Its sentences are what the innermost sum is taken of. A grammar without marks is its own inside.

    Raises:
        LoweringError: More than scalars leaves a mark, words enter one, or a rule with variables
            names a mark.
    """
    scope, sentences = grammar.scope, list[Rule]()
    if not scope:
        return grammar
    for rule in grammar.all_rules:
        if rule.head.scope == scope:
            _refuse_lifted(grammar, rule, scope)
        elif rule.head.plain != S or not _sums_scalars(rule.body, rule.head.scope, scope):
            raise LoweringError(
                f"{rule} stands outside the marks, and not only as a sum at the end; leave out the "
                "rules outside the marks, as r-G_L3Σ does"
            )
        elif (sentence := _innermost(rule.body)) is not None:
            if _sums(rule.body) > scope - rule.head.scope:
                raise LoweringError(
                    f"{rule} sums over more marks than the words of {grammar.name or 'the grammar'}"
                    " have: write it without the inner Σ, as `vᵀA1` for `Σw. vᵀAw`"
                )
            sentences.append(Rule(S, sentence).plain)
    rules = tuple(rule.plain for rule in grammar.rules if rule.head.scope == scope)
    return replace(grammar, rules=rules, readout=tuple(dict.fromkeys(sentences)))


def outside(words: Grammar, whole: Grammar) -> Grammar:
    """Words inside the marks of a grammar with the sums over them: what a network computes.

    S′ → 1ᵀV′ is what is read out of a copy, S → Σv. S′ the sum over copies; a variable of scalars
    stands wherever the network has an MLP in front of a sum.
    """
    scope = whole.scope
    rules = [rule.within(scope) for rule in (*words.rules, *words.sentence_rules)]
    body: Term = Hole(S.within(scope))
    for depth, function in zip(range(scope, 0, -1), has_function_between(whole), strict=True):
        if function and depth < scope:
            rules.append(Rule(S.within(depth), body))
            body = Hole(S.within(depth))
        body = MarkSum(whole.marks[depth - 1], body)
    return replace(words, rules=tuple(dict.fromkeys(rules)), readout=(Rule(S, body),))


def has_function_between(grammar: Grammar) -> tuple[bool, ...]:
    """Whether an MLP may stand in front of each sum over a mark, the innermost first.

    In front of the innermost it adds nothing. In front of another it stands for S′ → S′S′, so it is
    there where the grammar has that rule.
    """
    squares = {
        rule.head.scope
        for rule in grammar.all_rules
        if rule.head.plain == S and not isinstance(rule.body, MarkSum) and len(rule.holes) > 1
    }
    return tuple(
        scope == grammar.scope or scope in squares for scope in range(grammar.scope, 0, -1)
    )


def seeds(grammar: Grammar, names: Sequence[str]) -> dict[str, list[Term]]:
    """Words next to each mark that layers would need rounds to make: Av, diag(v) and diag(Av).

    Given at the start, they save two layers. By the letter of their sort.
    """
    bodies = {str(rule) for rule in grammar.rules}
    has_product = bool(bodies & {"V_c → MV_c", "V_c → AV_c"})
    marks = [Leaf(name, V) for name in names if Rule(V, Leaf(name, V)) in grammar.rules]
    neighbours = [apply("matmul", A, mark) for mark in marks] if has_product else []
    on_diagonal = [*marks, *neighbours] if f"{M.variable} → diag(V_c)" in bodies else []
    return {"V": [*neighbours], "M": [apply("diag", column) for column in on_diagonal]}


def _refuse_lifted(grammar: Grammar, rule: Rule, scope: int) -> None:
    marks = [leaf.name for leaf in leaves(rule.body) if leaf.name in grammar.marks]
    if any(hole.scope != scope for hole in rule.holes):
        raise LoweringError(
            f"{rule} takes words from outside a mark; write their rules with as many primes as "
            "its head has, as in r-G_L3Σ"
        )
    if marks and rule.holes:
        raise LoweringError(
            f"{rule} names the mark {marks[0]} beside a "
            f"variable; make it a word of its own, {V.within(scope).variable} → {marks[0]}, and "
            "use the variable"
        )


def _sums_scalars(body: Term, scope: int, most: int) -> bool:
    """Whether a rule of S adds up scalars of the next mark, or multiplies those of its own."""
    match body:
        case Hole(sort=sort):
            return sort == S
        case MarkSum(body=inner):
            return scope + 1 == most or _sums_scalars(inner, scope + 1, most)
        case Apply(op="matmul" | "hadamard", args=args):
            return all(isinstance(arg, Hole) and arg.sort == S for arg in args)
    return False


def _sums(body: Term) -> int:
    """How many sums over marks a term begins with."""
    return 1 + _sums(body.body) if isinstance(body, MarkSum) else 0


def _innermost(body: Term) -> Term | None:
    """What the sums of a rule are taken of; None where it is only a scalar of the next mark."""
    if not isinstance(body, MarkSum):
        return None
    while isinstance(body, MarkSum):
        body = body.body
    return None if isinstance(body, Hole) and body.sort == S else body
