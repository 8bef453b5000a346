"""The verdict: what a grammar and its network can tell apart, set against 1-WL and 3-WL.

Three statements are never mixed: what the *words* of a grammar tell apart; what they tell apart
*with functions* on every variable, in the limit of many layers; and what *this network* tells apart
with its read-out and its number of layers. Each stands with its evidence: a certificate that the
checker accepted, a theorem cited, a pair of graphs, or the graphs it was tested on. All of it is
about simple undirected graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from . import notebook_html
from .compiler.plan import Describes, NetworkPlan
from .compiler.plan_to_text import rules_text
from .described import counted
from .errors import G2N2Error
from .grammars.fragments import Fragment
from .grammars.grammar import Grammar, Rule
from .grammars.network_rules import words_of_test
from .language.operations import BINDERS, OPERATIONS, POINTWISE
from .language.sorts import S, Sort
from .placement import (
    OF_SYMBOLS,
    RELATIONS,
    Bound,
    Relation,
    Statement,
    as_words,
    bounded_statement,
    proved_above,
    refuted,
    wl_statements,
)
from .power.table import PowerRow
from .power.witnesses import (
    ColourProbe,
    Pool,
    Probe,
    WordProbe,
    all_graphs,
    known_pairs,
    last_pairs,
    witness,
)
from .power.wl_tests import ONE_WL, THREE_WL, WLTest
from .reduction.compare import Comparison, Inclusion

_NETWORK = "as this network"


@dataclass(frozen=True)
class Verdict:
    """What a grammar and its network can tell apart; print it to read it.

    Attributes:
        statements: One for each thing (words, with functions, this network) and each WL test.
        notes: Remarks in plain words, such as where a network is stronger than its words.
    """

    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = ["Verdict, for simple undirected graphs"]
        lines.append("─" * len(lines[0]))
        about = ""
        for statement in self.statements:
            if statement.about != about:
                about = statement.about
                lines.append(about)
            lines.append(f"  {statement.relation} {statement.against}")
            lines += [f"      {line}" for line in statement.evidence]
        lines += [f"{note[0].upper()}{note[1:]}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return notebook_html.verdict(self)

    def of_network(self) -> Verdict:
        """What is said of the network alone."""
        statements = (s for s in self.statements if s.about.startswith(_NETWORK))
        return Verdict(tuple(statements), self.notes)

    def __add__(self, other: Verdict) -> Verdict:
        notes = dict.fromkeys((*self.notes, *other.notes))
        return Verdict((*self.statements, *other.statements), tuple(notes))

    def to_json(self) -> dict[str, Any]:
        return {
            "statements": [statement.to_json() for statement in self.statements],
            "notes": list(self.notes),
        }


def grammar_verdict(grammar: Grammar, about: str = "") -> Verdict:
    """A grammar as words, and with functions on every variable; `about` is its name, if said."""
    if not grammar.sentence_rules:
        return no_sentences_verdict(grammar)
    prefix = f"{about} " if about else ""
    words = wl_statements(grammar, False, f"{prefix}as words")
    functions = wl_statements(grammar, True, f"{prefix}with functions, in the limit")
    return Verdict((*words, *functions))


def derivation_verdict(exhaustive: Grammar, reduced: Grammar) -> Verdict:
    """Both grammars of a derivation: equal as words, and not always with functions."""
    if not reduced.sentence_rules:
        return no_sentences_verdict(exhaustive)
    words = wl_statements(reduced, False, "as words")
    of_reduced = wl_statements(reduced, True, f"with functions, in the limit: {reduced.name}")
    if exhaustive == reduced:
        return Verdict((*words, *of_reduced))
    all_rules = wl_statements(exhaustive, True, f"with functions, in the limit: {exhaustive.name}")
    if [s.relation for s in of_reduced] == [s.relation for s in all_rules]:
        about = f"with functions, in the limit: {reduced.name}, and {exhaustive.name}"
        return Verdict((*words, *(replace(s, about=about) for s in of_reduced)))
    return Verdict((*words, *of_reduced, *all_rules))


def no_sentences_verdict(grammar: Grammar) -> Verdict:
    """What there is to say of a grammar without sentences."""
    return Verdict(notes=(f"{grammar.name or 'it'} has no sentences: {advice(grammar)}",))


def advice(grammar: Grammar) -> str:
    """Which operations would give a grammar's operations sentences, found by trying them."""
    sets = sentence_makers(grammar.operations)
    if not sets:
        return "it tells nothing apart"
    shown = [" and ".join(OPERATIONS[name].symbol for name in names) for names in sets]
    return f"it tells nothing apart; add {', or '.join(shown)}"


def sentence_makers(operations: frozenset[str]) -> list[tuple[str, ...]]:
    """The smallest sets of one or two operations that give a set of them sentences."""
    given = operations or {"matmul"}
    left_out = (*given, *POINTWISE, *BINDERS)
    others = [name for name in OPERATIONS if name not in left_out]
    smallest: list[tuple[str, ...]] = []
    for size in (1, 2):
        for more in combinations(others, size):
            if any(set(smaller) <= set(more) for smaller in smallest):
                continue
            if Fragment([*given, *more]).exhaustive().sentence_rules:
                smallest.append(more)
    return smallest


def suite_statements(row: PowerRow) -> tuple[Statement, ...]:
    """What was measured on a suite, against 1-WL and 3-WL."""
    statements = []
    measured = f"tested: {row.separated:,} of {row.pairs:,} pairs told apart"
    if not row.exact:
        measured += f" within {counted(len(row.by_layer) - 1, 'layer')}"
    for test, (more, less) in row.against.items():
        relation: Relation = "agrees with"
        if more or less:
            relation = RELATIONS[False if more else None, False if less else None]
        counts = f"{more:,} that {test} merges; {less:,} that only {test} tells apart"
        evidence = measured if relation == "agrees with" else f"{measured}, {counts}"
        statements.append(Statement(f"{row.grammar} on {row.suite}", relation, test, (evidence,)))
    return tuple(statements)


def comparison_verdict(comparison: Comparison) -> Verdict:
    """Two grammars against each other, and each against 1-WL and 3-WL, in the comparison's mode."""
    left, right = comparison.left, comparison.right
    functions = comparison.mode == "with f"
    how = "with functions, in the limit" if functions else "as words"
    relation = OF_SYMBOLS[comparison.relation]
    sides = {"⊆": comparison.forward, "⊇": comparison.backward}
    evidence = tuple(f"{left.name} {k} {right.name}: {inclusion_text(i)}" for k, i in sides.items())
    witnesses = tuple(i.witness for i in sides.values() if i.witness is not None)
    where = ", on directed graphs" if comparison.assume == "none" else ""
    first = Statement(f"{left.name} {how}{where}", relation, right.name, evidence, witnesses)
    verdict = Verdict((first,))
    for grammar in dict.fromkeys((left, right)):
        if not grammar.sentence_rules:
            verdict += no_sentences_verdict(grammar)
            continue
        verdict += Verdict(wl_statements(grammar, functions, f"{grammar.name} {how}"))
    return verdict


def inclusion_text(inclusion: Inclusion) -> str:
    """Why an inclusion holds, fails or is open."""
    if inclusion.status == "separated":
        return f"no; {inclusion.reason}"
    if inclusion.status == "open":
        return f"open, no proof found ({inclusion.reason})"
    if not inclusion.larger.sentence_rules:
        return "proved: it has no sentences, so it tells nothing apart"
    if inclusion.proof is None:
        return f"proved: {'; '.join(inclusion.cited)}"
    count, form = len(inclusion.proof.witnesses), inclusion.proof.claim.form
    return f"proved by {counted(count, 'obligation')}, {form} form"


def network_verdict(plan: NetworkPlan, depth: int | None = None) -> Verdict:
    """A network of `depth` layers (all of the plan's where None), and its grammar by itself.

    Some network of that plan, wide enough, tells two graphs apart iff the WL test of its grammar
    does (docs/power.md); where that does not quite hold, `plan.exceptions()` are among the notes.
    """
    base = grammar_verdict(plan.grammar)
    exceptions = plan.exceptions()
    if plan.readout.task != "graph":
        return replace(base, notes=(*base.notes, *exceptions))
    layers = len(plan.layers) if depth is None else depth
    tested, options = plan.test_grammar(), plan.test_options()
    probe = ColourProbe(
        tested,
        None,
        options.functions,
        layers,
        options.last_functions,
        options.inputs,
        options.trunk,
        options.describes == "but for leaves",
    )
    pool = all_graphs(6)
    try:
        colours = probe.colours(pool)
    except G2N2Error as fault:
        note = f"the network was not placed, its WL test cannot be run: {fault}"
        return replace(base, notes=(*base.notes, note))
    describes = options.describes
    if colours.bound and describes != "not at all":
        describes = "from above"
    if colours.note:
        exceptions = (
            *exceptions,
            f"at {counted(layers, 'layer')} the test is not exact: {colours.note}",
        )
    number = counted(layers, "layer")
    if plan.trunk:
        number = f"{len(plan.trunk)} + {number}"
    about = f"{_NETWORK} of unlimited width: {number}, read-out {_readout_text(plan)}"
    # Words that tell apart at least what the network does with any number of layers.
    kinds = {s: "zero" if k == "homogeneous" else k for s, k in options.functions.items()}
    limit = words_of_test(tested, kinds)
    statements = tuple(
        _network_placed(about, probe, limit, test, pool, describes) for test in (ONE_WL, THREE_WL)
    )
    exact = describes == "exactly"
    notes = (*base.notes, *_stronger_notes(plan, base, probe, pool, exact), *exceptions)
    return Verdict((*base.statements, *statements), notes)


def _readout_text(plan: NetworkPlan) -> str:
    """The rules of S that are applied, and how memories are pooled where that is no sum."""
    tested = plan.test_grammar()
    text = tested.readout_text
    scalars = {rule.head for rule in tested.rules if rule.head.plain == S} if plan.marks else ()
    for scalar in sorted(scalars, key=lambda sort: sort.scope):
        bodies = " | ".join(rule.body_text() for rule in tested.rules if rule.head == scalar)
        text += f", {scalar.variable} → {bodies}"
    other = {how for _, how in plan.readout.pools} - {"sum", "none"}
    return f"{text} with {' and '.join(sorted(other))} in place of sums" if other else text


def _network_placed(
    about: str,
    probe: Probe,
    limit: Grammar,
    test: WLTest,
    pool: Pool,
    describes: Describes,
) -> Statement:
    """A network against a WL test: what it merges and separates among small graphs, and bounds."""
    exact_above = describes in ("exactly", "but for leaves")
    above = below = None
    for graphs in (known_pairs(), pool, *([last_pairs()] if limit.scope else [])):
        if exact_above:
            above = above or refuted(probe, test, graphs, more=True)
        if describes != "not at all":
            below = below or refuted(probe, test, graphs, more=False)
    upper = above or proved_above(limit, test)
    pairs = f"pairs of equal size among {pool.text}"
    if upper is None:
        tested = f"tested: tells apart no more on {pairs}"
        upper = Bound(None, f"at most: open; {tested if exact_above else 'not tested'}")
    agreement = "agrees with it" if upper.holds else f"tells apart what {test.name} does"
    bounded = f"tested: an upper bound of it tells apart what {test.name} does on {pairs}"
    seen = {
        "exactly": f"tested: {agreement} on {pairs}",
        "but for leaves": bounded,
        "from above": bounded,
        "not at all": "at least: open, not tested",
    }[describes]
    return bounded_statement(about, test.name, upper, below or Bound(None, seen))


def _stronger_notes(
    plan: NetworkPlan, words: Verdict, probe: Probe, pool: Pool, exact: bool
) -> list[str]:
    """Which rules MLPs, biases and pooling add to the words, and whether they add power."""
    name = plan.grammar.name or "the grammar"
    functions = plan.added_rules()
    reasons = _added(functions)
    pooled = plan.pooled_rules()
    if pooled:
        reasons.append(f"the pooled read-out adds {rules_text(pooled)}")
    if not reasons:
        unread = plan.readout.mode == "pooled-only" and not plan.reads_sentences()
        if not exact or unread:
            return []
        return [
            f"given enough layers, this network tells apart exactly what the words of {name} do"
        ]
    why = "; ".join(reasons)
    if not plan.grammar.sentence_rules:
        return [f"{name} has no sentences: all this network sees it sees through pooling; {why}"]
    ways = ['functions="free"'] if functions else []
    ways += ['readout="grammar"'] if pooled else []
    way = (
        ""
        if not exact
        else (
            f"; with {' and '.join(ways)} the network would tell apart exactly what the words do, "
            "given enough layers"
        )
    )
    if exact and any((s.relation, s.against) == ("equals", "3-WL") for s in words.statements[:1]):
        return [
            f"{why}; this adds no power given enough layers, because the words already equal 3-WL"
            f"{way}"
        ]
    pair = _beyond_words(plan.grammar, probe, pool) if exact else None
    if pair is None:
        return [f"{why}{way}"]
    return [f"stronger than the words of {name}: {pair}; {why}{way}"]


def _added(rules: Sequence[Rule]) -> list[str]:
    """`the MLP on M adds M → (M⊙M), its bias M → 1·1ᵀ`, one for each variable."""
    by_sort: dict[Sort, list[Rule]] = {}
    for rule in rules:
        by_sort.setdefault(rule.head, []).append(rule)
    texts = []
    for sort, (first, *rest) in by_sort.items():
        part = "MLP" if first.holes else "bias"
        biases = "".join(f", its bias {rule}" for rule in rest)
        texts.append(f"the {part} on {sort.variable} adds {first}{biases}")
    return texts


def _beyond_words(grammar: Grammar, probe: Probe, pool: Pool) -> str | None:
    """Two graphs a network tells apart and no sentence of its grammar does."""
    words = as_words(grammar)
    classes = WordProbe(words).classes(pool) if words is not None and words.sentence_rules else None
    pair = None if classes is None else witness(probe, pool, classes, "words", more=True)
    if pair is None:
        return None
    first, second = pair[1]["names"]
    return f"it tells apart {first} and {second}, which no sentence does"
