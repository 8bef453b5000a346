"""The verdict: what a grammar and its network can tell apart, set against 1-WL and 3-WL.

Three statements are never mixed: what the *words* of a grammar tell apart; what they tell apart
*with functions* on every variable, in the limit of many layers; and what *this network* tells apart
with its read-out and its number of layers. Each stands with its evidence: a certificate that the
checker accepted, a theorem cited, a pair of graphs, or the graphs it was tested on. All of it is
about simple undirected graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from .errors import G2N2Error
from .grammars.catalogue import find_grammar
from .grammars.fragments import Fragment
from .grammars.grammar import Grammar, Rule
from .graphs import to_graph6
from .language.operations import OPERATIONS, POINTWISE
from .language.sorts import Sort
from .language.terms import Apply, Hole, leaves, operators, subterms
from .power.wl_tests import ONE_WL, THREE_WL, WLTest
from .reduction.compare import included, with_functions
from .reduction.theorems import (
    BOUNDED,
    DIAGONALS,
    IGN_IS_1WL,
    L1_IS_1WL,
    L3_IS_3WL,
    OUTER,
    WITHIN_3WL,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .compiler.plan import NetworkPlan
    from .power.colours.memories import Mixing
    from .power.probes import Pool, Probe
    from .power.table import PowerRow
    from .reduction.compare import Comparison, Inclusion

Relation = Literal[
    "equals",
    "strictly below",
    "strictly above",
    "incomparable with",
    "at most",
    "at least",
    "not bounded by",
    "does not reach",
    "open against",
    "agrees with",
]

_RELATIONS: dict[tuple[bool | None, bool | None], Relation] = {
    (True, True): "equals",
    (True, False): "strictly below",
    (False, True): "strictly above",
    (False, False): "incomparable with",
    (True, None): "at most",
    (None, True): "at least",
    (False, None): "not bounded by",
    (None, False): "does not reach",
    (None, None): "open against",
}

_OF_SYMBOLS: dict[str, Relation] = {
    "≡": "equals",
    "⊊": "strictly below",
    "⊋": "strictly above",
    "incomparable": "incomparable with",
    "⊆": "at most",
    "⊇": "at least",
    "⊈": "not bounded by",
    "⊉": "does not reach",
    "open": "open against",
}
SYMBOLS = {relation: symbol for symbol, relation in _OF_SYMBOLS.items()}


@dataclass(frozen=True)
class Statement:
    """One thing set against another.

    Attributes:
        about: What it is about: `as words`, `with functions`, `as this network` …
        relation: How it stands.
        against: To what: `1-WL`, `3-WL`, or another grammar's name.
        evidence: Why, one sentence each: certificate, theorem cited, pair of graphs, or test.
        witness: The pairs of graphs among the evidence, with names and graph6.
    """

    about: str
    relation: Relation
    against: str
    evidence: tuple[str, ...] = ()
    witness: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "relation": self.relation,
            "against": self.against,
            "evidence": list(self.evidence),
            "witness": list(self.witness),
        }


@dataclass(frozen=True)
class Verdict:
    """Statements, and what else is to be said, in plain words."""

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

    def __add__(self, other: Verdict) -> Verdict:
        notes = dict.fromkeys((*self.notes, *other.notes))
        return Verdict((*self.statements, *other.statements), tuple(notes))

    def to_json(self) -> dict[str, Any]:
        return {
            "statements": [statement.to_json() for statement in self.statements],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Bound:
    """Whether one side tells apart no more than the other; None where it is not known."""

    holds: bool | None
    evidence: str
    witness: dict[str, Any] | None = None


def grammar_verdict(grammar: Grammar, about: str = "") -> Verdict:
    """A grammar as words, and with functions on every variable.

    Args:
        grammar: Any grammar.
        about: Put before what a statement is about, for instance the grammar's name.
    """
    if not grammar.sentence_rules:
        return silent_verdict(grammar)
    prefix = f"{about} " if about else ""
    words = words_statements(grammar, f"{prefix}as words")
    functions = functions_statements(grammar, f"{prefix}with functions, in the limit")
    return Verdict((*words, *functions))


def derivation_verdict(exhaustive: Grammar, reduced: Grammar) -> Verdict:
    """Both grammars of a derivation: equal as words, and not always with functions."""
    if not reduced.sentence_rules:
        return silent_verdict(exhaustive)
    words = words_statements(reduced, "as words")
    own = functions_statements(reduced, f"with functions, in the limit: {reduced.name}")
    if exhaustive == reduced:
        return Verdict((*words, *own))
    all_rules = functions_statements(exhaustive, f"with functions, in the limit: {exhaustive.name}")
    if [s.relation for s in own] == [s.relation for s in all_rules]:
        about = f"with functions, in the limit: {reduced.name}, and {exhaustive.name}"
        return Verdict((*words, *(replace(s, about=about) for s in own)))
    return Verdict((*words, *own, *all_rules))


def silent_verdict(grammar: Grammar) -> Verdict:
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
    own = {"matmul"} if not operations else operations
    others = [name for name in OPERATIONS if name not in own and name not in POINTWISE]
    found: list[tuple[str, ...]] = []
    for size in (1, 2):
        for more in combinations(others, size):
            if any(set(smaller) <= set(more) for smaller in found):
                continue
            if Fragment([*own, *more]).exhaustive().sentence_rules:
                found.append(more)
    return found


def words_statements(grammar: Grammar, about: str) -> tuple[Statement, ...]:
    """What the words of a grammar tell apart, against 1-WL and 3-WL."""
    shown, probe = _words_probe(grammar)
    return _equal_first(_placed(about, shown, test, probe) for test in (ONE_WL, THREE_WL))


def _words_probe(grammar: Grammar) -> tuple[Grammar, Probe]:
    """The words of a grammar; where they cannot be evaluated, what bounds them."""
    from .power.probes import Bounded, Colours, Words

    evaluated = as_words(grammar)
    if evaluated is not None:
        return evaluated, Words(evaluated)
    return grammar, Bounded(Colours(without_functions(grammar)[0]))


def functions_statements(grammar: Grammar, about: str) -> tuple[Statement, ...]:
    """What a grammar tells apart with functions on every variable, against 1-WL and 3-WL."""
    words, probe = _functions_probe(grammar)
    return _equal_first(_placed(about, words, test, probe) for test in (ONE_WL, THREE_WL))


def _equal_first(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statement that says it all before those that follow from it."""
    return tuple(sorted(statements, key=lambda statement: statement.relation != "equals"))


def _functions_probe(grammar: Grammar) -> tuple[Grammar, Probe]:
    """The WL test of a grammar, and the grammar whose words decide the same."""
    from .power.grammar_test import words_of_test
    from .power.probes import Colours

    plain = without_functions(grammar)[0]
    words = words_of_test(plain)
    return words, Colours(plain, words)


def against_test(grammar: Grammar, test: WLTest, functions: bool, about: str) -> Statement:
    """A grammar against any WL test, as words or with functions."""
    shown, probe = _functions_probe(grammar) if functions else _words_probe(grammar)
    return _placed(about, shown, test, probe)


_TURNED: dict[Relation, Relation] = {
    "strictly below": "strictly above",
    "strictly above": "strictly below",
    "at most": "at least",
    "at least": "at most",
    "not bounded by": "does not reach",
    "does not reach": "not bounded by",
}


def turned(statement: Statement, about: str, how: str) -> Statement:
    """The statement from the other side; its evidence stays as it reads, about the grammar."""
    relation = _TURNED.get(statement.relation, statement.relation)
    grammar = statement.about.removesuffix(f" {how}")
    evidence = tuple(f"{grammar}: {line}" for line in statement.evidence)
    against = f"{grammar} {how}"
    return replace(statement, about=about, relation=relation, against=against, evidence=evidence)


def tests_compared(left: WLTest, right: WLTest) -> Statement:
    """One WL test against another."""
    if left.folklore == right.folklore:
        evidence = "k-FWL and (k + 1)-WL tell the same graphs apart (Grohe and Otto 2015)"
        return Statement(left.name, "equals", right.name, (evidence,))
    low, high = sorted((left, right), key=lambda test: test.folklore)
    text, content = _strict_pair(low.folklore, low.name, high.name)
    relation: Relation = "strictly below" if low is left else "strictly above"
    evidence = "k-FWL is strictly below (k + 1)-FWL (Cai, Fürer and Immerman 1992)"
    return Statement(left.name, relation, right.name, (evidence, text), (content,))


def _strict_pair(folklore: int, low: str, high: str) -> tuple[str, dict[str, Any]]:
    """Two graphs that k-FWL merges and the next test tells apart."""
    from .power.graph_names import graph_text
    from .power.graph_sets.families import rook_graph, shrikhande_graph

    graphs = ("EhEG", "EJaG") if folklore == 1 else (rook_graph(4), shrikhande_graph())
    first, second = (graph_text(graph) for graph in graphs)
    content = {
        "graphs": [to_graph6(graph) for graph in graphs],
        "names": [first, second],
        "merged_by": low,
        "told_apart_by": high,
        "why": "",
    }
    return f"{low} merges {first} and {second}, {high} tells them apart", content


def as_words(grammar: Grammar) -> Grammar | None:
    """The grammar with its rules X → f(X) as words; None where functions stand elsewhere."""
    from .power.grammar_test import words_of_test

    plain, sorts = without_functions(grammar)
    supports = [term for _, term in grammar.supports]
    bodies = [*(rule.body for rule in plain.all_rules), *supports]
    if any(isinstance(t, Apply) and t.function for body in bodies for t in subterms(body)):
        return None
    if not sorts:
        return grammar
    kinds = {s: "any" if s in sorts else "linear" for s in plain.variables}
    return words_of_test(plain, kinds)  # type: ignore[arg-type]


def without_functions(grammar: Grammar) -> tuple[Grammar, frozenset[Sort]]:
    """A grammar without its rules X → f(X), and the variables that have one."""
    is_f = {rule: _is_function(rule) for rule in grammar.rules}
    if not any(is_f.values()):
        return grammar, frozenset()
    rules = tuple(rule for rule in grammar.rules if not is_f[rule])
    sorts = frozenset(rule.head for rule, found in is_f.items() if found)
    return replace(grammar, rules=rules), sorts


def _is_function(rule: Rule) -> bool:
    body = rule.body
    return isinstance(body, Apply) and bool(body.function) and isinstance(body.args[0], Hole)


def _placed(about: str, grammar: Grammar, test: WLTest, probe: Probe) -> Statement:
    """A grammar against a WL test, from above and from below."""
    from .power.probes import known_pairs

    if test.folklore > THREE_WL.folklore and within_three_indices(grammar):
        text, content = _strict_pair(THREE_WL.folklore, "3-WL", test.name)
        return Statement(
            about, "strictly below", test.name, (f"at most 3-WL, {BOUNDED}", text), (content,)
        )
    upper = (
        _refuted(probe, test, known_pairs(), more=True)
        or _proved_above(grammar, test)
        or _searched(probe, test, more=True)
    )
    lower = (
        _refuted(probe, test, known_pairs(), more=False)
        or _proved_below(grammar, test)
        or _searched(probe, test, more=False)
    )
    return _statement(about, test.name, upper, lower)


def _statement(about: str, against: str, upper: Bound, lower: Bound) -> Statement:
    witnesses = tuple(b.witness for b in (upper, lower) if b.witness is not None)
    texts = [bound.evidence for bound in (upper, lower)]
    if len({text.partition(", ")[2] for text in texts}) == 1 and upper.holds and lower.holds:
        texts = [texts[0].partition(", ")[2]]
    evidence = tuple(dict.fromkeys(texts))
    return Statement(about, _RELATIONS[upper.holds, lower.holds], against, evidence, witnesses)


def _refuted(probe: Probe, test: WLTest, pool: Pool, *, more: bool) -> Bound | None:
    """A bound that two graphs of a pool refute."""
    from .power.probes import witness

    found = witness(probe, pool, pool.wl(test.folklore), test.name, more=more)
    return None if found is None else Bound(False, *found)


def _searched(probe: Probe, test: WLTest, *, more: bool) -> Bound:
    """A bound that some small graphs refute, or that is open after all of them were tried."""
    from .power.probes import all_graphs, last_pairs

    small, largest = all_graphs(6), all_graphs(7)
    for pool in (small, largest, last_pairs()):
        if (found := _refuted(probe, test, pool, more=more)) is not None:
            return found
    side = "at most" if more else "at least"
    if probe.classes(largest) is None:
        return Bound(None, f"{side}: no proof found, and its words cannot be evaluated exactly")
    tried = f"no pair of {largest.text} refutes it"
    return Bound(None, f"{side}: open, no proof found; {tried}")


def _proved_above(grammar: Grammar, test: WLTest) -> Bound | None:
    """That a grammar is at most a WL test, by theorem or by simulation."""
    if test.folklore >= THREE_WL.folklore:
        return Bound(True, f"at most, {BOUNDED}") if within_three_indices(grammar) else None
    for reference, theorem in _above_1wl():
        if reference == grammar:
            return Bound(True, f"at most, {theorem}")
        if (proof := _simulated(grammar, reference)) is not None:
            return Bound(True, f"at most, {proof}: {reference.name} simulates it; {theorem}")
    return None


def _proved_below(grammar: Grammar, test: WLTest) -> Bound | None:
    """That a grammar is at least a WL test, by simulation and theorem."""
    references = {1: _below_1wl(), 2: _below_3wl()}.get(test.folklore, ())
    for reference, theorem in references:
        if reference == grammar:
            return Bound(True, f"at least, {theorem}")
        if (proof := _simulated(reference, grammar)) is not None:
            return Bound(True, f"at least, {proof}: it simulates {reference.name}; {theorem}")
    return None


def within_three_indices(grammar: Grammar) -> bool:
    """Whether every operation of a grammar is one that 3-WL bounds, supports defined."""
    defined = dict(grammar.supports)
    bodies = [rule.body for rule in grammar.all_rules]
    named = {leaf.name for body in bodies for leaf in leaves(body)}
    if any(name not in ("A", "1", "I", "J") and name not in defined for name in named):
        return False
    used = grammar.operations.union(*(operators(term) for term in defined.values()))
    return used <= WITHIN_3WL


def _simulated(larger: Grammar, smaller: Grammar) -> str | None:
    """How many obligations prove an inclusion; None where none is found."""
    try:
        found = included(larger, smaller, "simple")
    except G2N2Error:
        return None
    if found.status != "proved":
        return None
    count = len(found.proof.witnesses) if found.proof is not None else 0
    return f"{count} obligations checked"


def suite_statements(row: PowerRow) -> tuple[Statement, ...]:
    """What was measured on a suite, against 1-WL and 3-WL."""
    found = []
    measured = f"tested: {row.separated:,} of {row.pairs:,} pairs told apart"
    if not row.exact:
        measured += f" within {len(row.by_layer) - 1} layers"
    for test, (more, less) in row.against.items():
        relation: Relation = "agrees with"
        if more or less:
            relation = _RELATIONS[False if more else None, False if less else None]
        counts = f"{more:,} that {test} merges; {less:,} that only {test} tells apart"
        evidence = measured if relation == "agrees with" else f"{measured}, {counts}"
        found.append(Statement(f"{row.grammar} on {row.suite}", relation, test, (evidence,)))
    return tuple(found)


def comparison_verdict(comparison: Comparison) -> Verdict:
    """Two grammars against each other, and each against 1-WL and 3-WL, in the comparison's mode."""
    left, right = comparison.left, comparison.right
    functions = comparison.mode == "with f"
    how = "with functions, in the limit" if functions else "as words"
    relation = _OF_SYMBOLS[comparison.relation]
    sides = (
        (comparison.forward, f"{left.name} ⊆ {right.name}"),
        (
            comparison.backward,
            f"{left.name} ⊇ {right.name}",
        ),
    )
    evidence = tuple(f"{claim}: {inclusion_text(found)}" for found, claim in sides)
    witnesses = tuple(found.witness for found, _ in sides if found.witness is not None)
    first = Statement(f"{left.name} {how}", relation, right.name, evidence, witnesses)
    return Verdict((first,)) + _both_placed(left, right, functions, how)


def _both_placed(left: Grammar, right: Grammar, functions: bool, how: str) -> Verdict:
    verdict = Verdict()
    for grammar in dict.fromkeys((left, right)):
        if not grammar.sentence_rules:
            verdict += silent_verdict(grammar)
            continue
        place = functions_statements if functions else words_statements
        verdict += Verdict(place(grammar, f"{grammar.name} {how}"))
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
    return f"proved by {count} obligations, {form} form"


@cache
def _above_1wl() -> tuple[tuple[Grammar, str], ...]:
    ign = find_grammar("2-IGN")
    with_f = with_functions(ign).named("2-IGN with functions")
    return (find_grammar("r-G_L1"), L1_IS_1WL), (with_f, IGN_IS_1WL)


@cache
def _below_1wl() -> tuple[tuple[Grammar, str], ...]:
    return ((find_grammar("r-G_L1"), L1_IS_1WL),)


@cache
def _below_3wl() -> tuple[tuple[Grammar, str], ...]:
    outer = OUTER.named("L3 without diag")
    return (find_grammar("r-G_L3"), L3_IS_3WL), (outer, f"{DIAGONALS}; {L3_IS_3WL}")


def network_verdict(plan: NetworkPlan, depth: int | None = None) -> Verdict:
    """A network: its grammar as words and with functions, and itself at its depth.

    Some network of that plan, wide enough, tells two graphs apart iff the WL test of its grammar
    does (docs/power.md); where that does not quite hold, `plan.exceptions()` are among the notes.

    Args:
        plan: The plan of the network.
        depth: Layers, those of the plan where None.
    """
    from .power.probes import Colours, all_graphs

    base = grammar_verdict(plan.grammar)
    exceptions = plan.exceptions()
    if plan.readout.task != "graph":
        return replace(base, notes=(*base.notes, *exceptions))
    layers = len(plan.layers) if depth is None else depth
    tested, mixing = plan.test_grammar(), plan.functions()
    probe = Colours(tested, None, mixing, layers)
    pool = all_graphs(6)
    if probe.classes(pool) is None:
        note = "the network was not placed: its WL test needs the values of all supports"
        return replace(base, notes=(*base.notes, note))
    exact = not any("upper bound" in reason or "no round" in reason for reason in exceptions)
    count = "1 layer" if layers == 1 else f"{layers} layers"
    about = f"as this network of unlimited width: {count}, read-out {tested.readout_text}"
    limit = _limit(tested, mixing)
    statements = tuple(
        _network_placed(about, probe, limit, test, pool, exact) for test in (ONE_WL, THREE_WL)
    )
    notes = (*base.notes, *_stronger_notes(plan, base, probe, pool, exact), *exceptions)
    return Verdict((*base.statements, *statements), notes)


def _limit(tested: Grammar, mixing: Mapping[Sort, Mixing]) -> Grammar:
    """Words that tell apart at least what the network does with any number of layers."""
    from .power.grammar_test import words_of_test

    kinds = {sort: "zero" if kind == "homogeneous" else kind for sort, kind in mixing.items()}
    return words_of_test(tested, kinds)  # type: ignore[arg-type]


def _network_placed(
    about: str, probe: Probe, limit: Grammar, test: WLTest, pool: Pool, exact: bool
) -> Statement:
    """A network against a WL test: what it merges and separates among small graphs, and bounds."""
    from .power.probes import known_pairs

    above = below = None
    for graphs in (known_pairs(), pool):
        above = above or (_refuted(probe, test, graphs, more=True) if exact else None)
        below = below or _refuted(probe, test, graphs, more=False)
    upper = above or _proved_above(limit, test)
    if upper is None:
        why = (
            f"tested: tells apart no more on {pool.text}"
            if exact
            else "its WL test is a bound only"
        )
        upper = Bound(None, f"at most: open; {why}")
    said = "agrees with it" if upper.holds else f"tells apart what {test.name} does"
    seen = f"tested: {said if exact else 'its WL test, a bound, agrees with it'} on {pool.text}"
    return _statement(about, test.name, upper, below or Bound(None, seen))


def _stronger_notes(
    plan: NetworkPlan, words: Verdict, probe: Probe, pool: Pool, exact: bool
) -> list[str]:
    """Which rules MLPs, biases and pooling add to the words, and whether they add power."""
    from .compiler.power_text import rules_text

    name = plan.grammar.name or "the grammar"
    functions = plan.added_rules()
    reasons = _added(functions)
    pooled = [r for r in plan.test_grammar().sentence_rules if r not in plan.grammar.all_rules]
    if pooled:
        reasons.append(f"the pooled read-out adds {rules_text(pooled)}")
    if not reasons:
        return [f"with layers enough this network tells apart what the words of {name} do"]
    why = "; ".join(reasons)
    ways = ['functions="free"'] if functions else []
    if pooled and plan.grammar.sentence_rules:
        ways.append('readout="grammar"')
    way = f"; with {' and '.join(ways)} network and words are one" if ways else ""
    if any((s.relation, s.against) == ("equals", "3-WL") for s in words.statements[:1]):
        return [f"{why}: no power with layers enough, as the words already equal 3-WL{way}"]
    found = _beyond_words(plan.grammar, probe, pool) if exact else None
    if found is None:
        return [f"{why}{way}"]
    return [f"stronger than the words of {name}: {found}; {why}{way}"]


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
    from .power.probes import Words, witness

    words = as_words(grammar)
    classes = Words(words).classes(pool) if words is not None and words.sentence_rules else None
    found = None if classes is None else witness(probe, pool, classes, "words", more=True)
    if found is None:
        return None
    first, second = found[1]["names"]
    return f"it tells apart {first} and {second}, which no sentence does"
