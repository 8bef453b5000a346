"""From a grammar to the smallest one that provably keeps its power."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from ..errors import G2N2Warning, GrammarError
from ..grammars.grammar import LEVELS, Grammar, Level, Rule
from ..grammars.rules import mentions
from ..language.operations import OPERATIONS, Operation, registered_operations
from ..language.patterns import ASSUMPTIONS, Assumption
from ..language.sorts import M, R, S, V
from ..language.terms import multilinear, operators
from ..validation import check_option
from .certificates import certificate
from .checker import CheckResult, check
from .full_marks import (
    all_inside,
    has_sums_and_lifts,
    owed_by_scope,
    prove_full,
    rules_by_scope,
    smaller_inside,
    with_full_marks,
)
from .invariants import OUTPUTS, Claim, Form, owed_rules
from .lemmas import Lemma, free_rules
from .marks import (
    TERMINALS,
    MarkedProof,
    inside_depth,
    inside_larger,
    inside_smaller,
    product_rules,
    prove_laws,
    with_marks,
)
from .search import MAX_OPERANDS, cost, smallest
from .simulation import Proof, prove, prove_with

Order = Literal["direct", "paper"]

FEWEST_MATRIX_RULES = 3
"""A grammar of matrices alone has A, another constant and a product at least."""

_PROOF_FORMS: tuple[Form, ...] = ("plain", "shape", "action", "exact")
_INSIDE_FORMS: tuple[Form, ...] = ("plain", "shape", "action")
"""Forms in which columns are columns, as the laws of marks need."""
_STRONGER: tuple[tuple[Form, Assumption], ...] = (
    ("diagonal", "simple"),
    ("broadcast", "symmetric"),
)

_SILENT: dict[Form, tuple[Level, ...]] = {
    "action": ("pair",),
    "broadcast": ("node", "pair"),
    "diagonal": ("node", "pair"),
}
"""Levels a form says nothing of: without columns there is no output to compare at a node."""


@dataclass(frozen=True)
class Simulation:
    """A link of a reduction: each grammar simulates the other, with all obligations met."""

    proof: Proof | MarkedProof
    converse: Proof | MarkedProof

    @property
    def larger(self) -> Grammar:
        return self.proof.claim.larger

    @property
    def smaller(self) -> Grammar:
        return self.proof.claim.smaller


Link = Lemma | Simulation


@dataclass(frozen=True)
class Alternative:
    """A smaller grammar that needs more to be known of A, or another read-out."""

    grammar: Grammar
    assume: Assumption
    links: tuple[Link, ...]
    note: str


@dataclass(frozen=True, repr=False)
class Reduction:
    """A grammar, the smallest one found with its power, and why: a chain of links."""

    original: Grammar
    reduced: Grammar
    links: tuple[Link, ...]
    assume: Assumption
    level: Level
    alternatives: tuple[Alternative, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Reduction({self.original.rule_count} → {self.reduced.rule_count}, {self.level} level)"
        )

    def __str__(self) -> str:
        name = self.reduced.name or "reduced"
        removed = "; ".join(map(str, self.removed)) or "nothing"
        return f"{name}\n{self.reduced}\nremoved: {removed}"

    @property
    def removed(self) -> tuple[Rule, ...]:
        return tuple(r for r in self.original.all_rules if r not in self.reduced.all_rules)


def reduce(
    grammar: Grammar,
    assume: Assumption = "symmetric",
    level: Level = "graph",
    order: Order = "direct",
    alternatives: bool = True,
) -> Reduction:
    """The smallest grammar found that tells the same graphs (nodes, pairs) apart.

    Args:
        grammar: Any grammar; usually the exhaustive one of a fragment.
        assume: What is known of A: `symmetric`, `simple` (also 0/1, no loops) or `none`, which
            serves directed graphs and then needs Aᵀ as a rule of its own.
        level: Whose outputs are compared. At node and pair level the read-out is joined to each
            output, and at pair level the outputs of both nodes as well.
        order: `paper` goes by way of the grammar that still has rows and transposes; the paper has
            no marks, and with them the order is `direct`.
        alternatives: Whether to look for smaller grammars under stronger assumptions.

    Returns:
        A reduction whose certificate the checker accepts; at worst the grammar itself, no link.

    Raises:
        GrammarError: An option takes no such word.
    """
    check_option("assume", assume, ASSUMPTIONS, GrammarError)
    check_option("level", level, LEVELS, GrammarError)
    check_option("order", order, get_args(Order), GrammarError)
    written = (grammar.name, grammar.rules, grammar.readout)  # equality of grammars is of sets
    return _reduced(grammar, assume, level, order, alternatives, written, registered_operations())


@lru_cache(maxsize=256)
def _reduced(
    grammar: Grammar,
    assume: Assumption,
    level: Level,
    order: Order,
    alternatives: bool,
    written: tuple[object, ...],
    operations: tuple[Operation, ...],
) -> Reduction:
    """The same, remembered: what an operation's name means is part of the question."""
    links: list[Link] = []
    core = grammar
    lemma = free_rules(grammar)
    if lemma is not None:
        links.append(lemma)
        core = lemma.smaller
    if not core.sentence_rules and level == "graph":
        return Reduction(grammar, grammar, (), assume, level)
    marked = grammar.marked or grammar.scope > 0
    if marked and level != "graph":
        return Reduction(grammar, grammar, (), assume, level)
    simulation = (_smallest_marked if marked else _smallest)(core, assume, level)
    if marked:
        alternatives = False
    elif (
        simulation is None
        or not simulation.smaller.all_rules
        or cost(simulation.smaller) >= cost(core)
    ):
        simulation = _without_unused(core, assume, level)
    if simulation is not None:
        links += _chain(simulation, order)
    verdict = _checked(links)
    if not verdict.valid:
        text = f"nothing is removed: the checker refuses the proof found: {verdict.failure}"
        warnings.warn(text, G2N2Warning, stacklevel=3)
        links, core = [], grammar
    reduced = links[-1].smaller if links else grammar
    if links and grammar.name:
        reduced = reduced.named(f"r-{grammar.name}")
    more = _alternatives(core, reduced, assume, level) if alternatives else ()
    return Reduction(grammar, reduced, tuple(links), assume, level, more)


def link(larger: Grammar, smaller: Grammar, assume: Assumption, level: Level) -> Simulation | None:
    """A checked link between two given grammars, by the first form that proves it."""
    proof = include(larger, smaller, assume, level)
    converse = include(smaller, larger, assume, level)
    return Simulation(proof, converse) if proof and converse else None


def include(
    larger: Grammar,
    smaller: Grammar,
    assume: Assumption,
    level: Level,
    forms: tuple[Form, ...] = _PROOF_FORMS,
) -> Proof | MarkedProof | None:
    """A proof that every word of the one is made of words of the other.

    None is looked for where an operation takes more than `MAX_OPERANDS` operands.
    """
    if larger.marked or smaller.marked:
        return _include_marked(larger, smaller, assume, forms) if level == "graph" else None
    used = larger.operations | smaller.operations
    if any(OPERATIONS[op].arity > MAX_OPERANDS for op in used):
        forms = tuple(form for form in forms if form == "exact")
    for form in forms:
        if level in _SILENT.get(form, ()):
            continue
        proof = prove(Claim(larger, smaller, form, assume, level))
        if proof is not None:
            return proof
    return None


def _include_marked(
    larger: Grammar, smaller: Grammar, assume: Assumption, forms: tuple[Form, ...]
) -> MarkedProof | None:
    """The same inside the marks, and the laws that bring it out of them."""
    return (
        _include_pooled(larger, smaller, assume, forms)
        or _include_full(larger, smaller, assume)
        or _include_words(larger, smaller, assume)
    )


def _include_full(larger: Grammar, smaller: Grammar, assume: Assumption) -> MarkedProof | None:
    """Where sums bring columns and matrices out of the mark too."""
    outer = all_inside(larger)
    forms: tuple[Form, ...] = ("plain", "shape")
    for form in forms if outer else ():
        inner = smaller_inside(smaller, outer=form == "shape")
        for transposed in (False, True):
            if inner is None or outer is None:
                continue
            proof = prove_with(Claim(outer, inner, form, assume), transposed)
            marked = proof and prove_full(larger, smaller, proof, assume)
            if marked:
                return marked
    return None


def _include_words(larger: Grammar, smaller: Grammar, assume: Assumption) -> MarkedProof | None:
    """Where every word of the one is a word of the other, inside the mark and outside."""
    owed = owed_by_scope(larger)
    if owed is None or not has_sums_and_lifts(smaller, larger):
        return None
    inside, outside = (
        prove(Claim(big, small, "exact", assume, "pair"))
        for big, small in zip(owed, rules_by_scope(smaller), strict=True)
    )
    if inside is None or outside is None:
        return None
    claim = Claim(larger, smaller, "exact", assume)
    return MarkedProof(claim, inside, how="exact", outside=outside)


def _include_pooled(
    larger: Grammar, smaller: Grammar, assume: Assumption, forms: tuple[Form, ...]
) -> MarkedProof | None:
    """Where sums are of scalars."""
    inner = inside_smaller(smaller)
    outer = None if inner is None else inside_larger(larger, smaller.scope)
    if inner is None or outer is None:
        return None
    allowed = tuple(form for form in forms if form in _INSIDE_FORMS)
    proof = include(outer, inner, assume, "graph", allowed)
    if not isinstance(proof, Proof):
        return None
    marked = prove_laws(larger, smaller, proof, assume)
    if marked is None and not proof.transposed and proof.claim.form != "exact":
        turned = prove_with(proof.claim, transposed=True)
        marked = None if turned is None else prove_laws(larger, smaller, turned, assume)
    return marked


def _smallest_marked(grammar: Grammar, assume: Assumption, level: Level) -> Simulation | None:
    """The smallest grammar inside the marks, with its sentences summed; products go if they can."""
    inner = inside_larger(grammar, inside_depth(grammar))
    if inner is None:
        return _smallest_full(grammar, assume, level)
    if not inner.sentence_rules:
        return None
    reduced = _smallest(inner, assume, level)
    marks = grammar.marks or ("v",)
    (times, *_) = product_rules(inner) or ["matmul"]
    for products in (False, True):
        smaller = with_marks(reduced.smaller if reduced else inner, marks, products, times)
        simulation = link(grammar, smaller, assume, level)
        if simulation is not None and cost(smaller) < cost(grammar):
            return simulation
    return None


def _smallest_full(grammar: Grammar, assume: Assumption, level: Level) -> Simulation | None:
    """The smallest grammar inside the mark, and the rules that bring its words out and in."""
    inner = all_inside(grammar)
    reduced = _smallest(inner, assume, level) if inner and inner.sentence_rules else None
    if reduced is None or any(mentions(r.body, TERMINALS) for r in reduced.smaller.sentence_rules):
        return None  # sentences that name the mark are summed over it, not read outside
    smaller = with_full_marks(reduced.smaller, grammar.marks[0])
    return link(grammar, smaller, assume, level) if cost(smaller) < cost(grammar) else None


def _checked(links: Sequence[Link]) -> CheckResult:
    """Whether the checker agrees with the search: what it refuses is not proved."""
    if not links:
        return CheckResult(True, 0, ())
    return check(certificate(links[0].larger, links[-1].smaller, links))


def _smallest(grammar: Grammar, assume: Assumption, level: Level) -> Simulation | None:
    """The cheapest proved answer of all forms; own rules first: inlinings must do with fewer.

    Templates write every row as a transposed column, which a grammar may be too poor to make. So
    what the search finds may be stronger than the grammar; then there is no converse, and no link.
    """
    if not all(multilinear(r.body) for r in grammar.all_rules):
        kept = smallest(grammar, "exact", assume, level, len(grammar.all_rules))
        return link(grammar, kept, assume, level) if kept else None
    best: Simulation | None = None
    passes: list[tuple[Form, bool]] = [("shape", False), ("plain", False)]
    passes += [("shape", True), ("plain", True)]
    if level != "pair":
        passes.insert(0, ("action", True))
    for form, inlining in passes:
        most = len(grammar.rules) if best is None else len(best.smaller.rules) - inlining
        if best is not None and most <= _fewest(grammar, form):
            continue  # with no rule to spare M is a constant, and the action form has tried that
        candidate = smallest(grammar, form, assume, level, most, inlining)
        if candidate is not None and (best is None or cost(candidate) < cost(best.smaller)):
            best = link(grammar, candidate, assume, level) or best
    return best


def _without_unused(grammar: Grammar, assume: Assumption, level: Level) -> Simulation | None:
    """What is left to do where nothing else can go: rules of variables that no output uses."""
    used = grammar.reachable_part(OUTPUTS[level])
    return link(grammar, used, assume, level) if used != grammar else None


def _fewest(grammar: Grammar, form: Form) -> int:
    """Columns need a constant and a recursive rule, matrices a constant: no search below that."""
    if form == "action":
        return 1
    return (2 if grammar.of_sort(V) else 0) + (1 if grammar.of_sort(M) else 0)


def _chain(direct: Simulation, order: Order) -> list[Link]:
    """The link itself, or by way of the paper's intermediate grammar where that is proved too."""
    core, reduced, claim = direct.larger, direct.smaller, direct.proof.claim
    assume, level = claim.assume, claim.level
    by_rows = order == "paper" and not core.marked and not core.scope
    middle = _with_rows(core, reduced, assume, level) if by_rows else None
    if middle is None:
        return [direct]
    first, second = link(core, middle, assume, level), link(middle, reduced, assume, level)
    return [first, second] if first and second else [direct]


def _with_rows(core: Grammar, reduced: Grammar, assume: Assumption, level: Level) -> Grammar | None:
    """The paper's intermediate grammar: rows and transposes are still there."""
    forms: tuple[Form, ...] = (
        ("action", "shape", "plain") if level != "pair" else ("shape", "plain")
    )
    candidates = [
        smallest(core, form, assume, level, len(core.rules), inlining=False) for form in forms
    ]
    usable = [g for g in candidates if g is not None]
    if not usable:
        return None
    rows = [
        r
        for r in core.rules
        if S not in (r.head, *r.holes)
        and operators(r.body) <= {"transpose", "matmul"}
        and (R in (r.head, *r.holes) or "transpose" in operators(r.body))
        and not (r.head == M and R in r.holes)
    ]
    if not rows:
        return None
    base = min(usable, key=cost)
    rules, name = [*base.all_rules, *rows], f"i-{core.name}"
    middle = Grammar.of(rules, name, core.supports, default_readout=False)
    return middle if middle not in (core, reduced) else None


def _alternatives(
    core: Grammar, reduced: Grammar, assume: Assumption, level: Level
) -> tuple[Alternative, ...]:
    """Smaller grammars under stronger assumptions or with another read-out."""
    alternatives: list[Alternative] = []
    fewest = len(reduced.rules)
    if (
        assume == "none"
        or fewest <= FEWEST_MATRIX_RULES
        or not all(multilinear(r.body) for r in core.all_rules)
    ):
        return ()
    for form, stronger in _STRONGER:
        if fewest <= FEWEST_MATRIX_RULES:
            break
        smaller = smallest(core, form, stronger, level, fewest - 1, inlining=True)
        if smaller is None:
            continue
        proof = include(core, smaller, stronger, level, (form,))
        converse = include(smaller, core, stronger, level)
        if proof and converse and _checked(links := (Simulation(proof, converse),)).valid:
            note = f"read-out {smaller.readout_text}"
            if stronger == "simple" and assume != "simple":
                note = f"for 0/1 symmetric A without loops; {note}"
            alternatives.append(Alternative(smaller, stronger, links, note))
            fewest = len(smaller.rules)
    return tuple(alternatives)


def unused_rules(claim: Claim) -> tuple[Rule, ...]:
    """Rules of the larger grammar that no sentence uses."""
    owed = owed_rules(claim)
    return tuple(r for r in claim.larger.all_rules if r not in owed)
