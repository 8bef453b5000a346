"""The power of a grammar against a WL test: an upper and a lower bound.

Each bound is refuted by two graphs, proved by a theorem or by a simulation that the checker
accepted, or open if no small graph refutes it. All statements are about simple undirected graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from .described import counted
from .errors import G2N2Error, GrammarError
from .grammars.catalogue import find_grammar
from .grammars.grammar import Grammar, Rule
from .grammars.network_rules import words_of_test
from .graphs import to_graph6
from .graphs.families import rook_graph, shrikhande_graph
from .graphs.names import graph_text
from .language.sorts import Sort
from .language.terms import Apply, Hole, leaves, multilinear, operators, substitute, subterms
from .power.witnesses import (
    ColourProbe,
    Pool,
    Probe,
    WordProbe,
    all_graphs,
    known_pairs,
    last_pairs,
    marked_pairs,
    witness,
)
from .power.wl_tests import ONE_WL, THREE_WL, WLTest, upper_bound
from .reduction.compare import included, with_functions
from .reduction.theorems import (
    BOUNDED,
    BOUNDED_MARKS,
    DIAGONALS,
    IGN_IS_1WL,
    L1_IS_1WL,
    L3_IS_3WL,
    MARK_IS_INDEX,
    MARKED_BOUND,
    MARKED_TESTS,
    MATRICES,
    OUTER,
    index_bound,
    within_3wl,
)

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

# by whether the upper bound holds (it is at most) and whether the lower bound does
RELATIONS: dict[tuple[bool | None, bool | None], Relation] = {
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

_TURNED = {RELATIONS[most, least]: RELATIONS[least, most] for most, least in RELATIONS}
"""The relation seen from the other side."""
_SYMBOLS = ("≡", "⊊", "⊋", "incomparable", "⊆", "⊇", "⊈", "⊉", "open")
OF_SYMBOLS = dict(zip(_SYMBOLS, RELATIONS.values(), strict=True))
SYMBOLS = {relation: symbol for symbol, relation in OF_SYMBOLS.items()}


@dataclass(frozen=True)
class Statement:
    """How the power of one thing stands to that of another.

    Attributes:
        about: `as words`, `with functions`, `as this network` …
        relation: `equals`, `strictly above`, `at most` …
        against: `1-WL`, `3-WL`, or another grammar's name.
        evidence: One sentence each: certificate, theorem cited, pair of graphs, or test.
        witness: The pairs of graphs among the evidence, with names and graph6.
    """

    about: str
    relation: Relation
    against: str
    evidence: tuple[str, ...] = ()
    witness: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "evidence": list(self.evidence), "witness": list(self.witness)}


@dataclass(frozen=True)
class Bound:
    """Whether one side tells apart no more than the other; None where it is not known."""

    holds: bool | None
    evidence: str
    witness: dict[str, Any] | None = None


def wl_statements(grammar: Grammar, functions: bool, about: str) -> tuple[Statement, ...]:
    """A grammar against 1-WL and 3-WL, what says it all before what follows from it."""
    shown, probe = _functions_probe(grammar) if functions else _words_probe(grammar)
    both = (_placed(about, shown, test, probe) for test in (ONE_WL, THREE_WL))
    return tuple(sorted(both, key=lambda statement: statement.relation != "equals"))


def against_test(grammar: Grammar, test: WLTest, functions: bool, about: str) -> Statement:
    """A grammar against any WL test, as words or with functions on every variable."""
    shown, probe = _functions_probe(grammar) if functions else _words_probe(grammar)
    return _placed(about, shown, test, probe)


def _words_probe(grammar: Grammar) -> tuple[Grammar, Probe]:
    """The words of a grammar; where they cannot be evaluated, what bounds them."""
    evaluated = as_words(grammar)
    if evaluated is not None:
        return evaluated, WordProbe(evaluated)
    return grammar, ColourProbe(without_functions(grammar)[0], only_merges=True)


def _functions_probe(grammar: Grammar) -> tuple[Grammar, Probe]:
    """The WL test of a grammar, and the grammar whose words decide the same."""
    plain = without_functions(grammar)[0]
    words = words_of_test(plain)
    return words, ColourProbe(plain, words)


def turned(statement: Statement, about: str, how: str) -> Statement:
    """The statement from the other side; its evidence stays as it reads, about the grammar."""
    relation = _TURNED.get(statement.relation, statement.relation)
    grammar = statement.about.removesuffix(f" {how}")
    evidence = tuple(f"{grammar}: {line}" for line in statement.evidence)
    against = f"{grammar} {how}"
    return replace(statement, about=about, relation=relation, against=against, evidence=evidence)


def compared_tests(left: WLTest, right: WLTest) -> Statement:
    """One WL test against another."""
    if (left.marks, left.full) != (right.marks, right.full):
        names = " and ".join(test.grammar or test.name for test in (left, right))
        raise GrammarError(
            f"{left.name} and {right.name} are not compared as tests: compare grammars, such as "
            f"{names}, or one of those with the other test"
        )
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
    if test.folklore > THREE_WL.folklore and within_three_indices(grammar):
        text, content = _strict_pair(THREE_WL.folklore, "3-WL", test.name)
        return Statement(
            about, "strictly below", test.name, (f"at most 3-WL, {BOUNDED}", text), (content,)
        )
    upper, lower = (
        refuted(probe, test, known_pairs(), more=more)
        or (proved_above if more else _proved_below)(grammar, test)
        or _searched(probe, test, more=more)
        for more in (True, False)
    )
    return bounded_statement(about, test.name, upper, lower)


def bounded_statement(about: str, against: str, upper: Bound, lower: Bound) -> Statement:
    witnesses = tuple(b.witness for b in (upper, lower) if b.witness is not None)
    texts = [bound.evidence for bound in (upper, lower)]
    if len({text.partition(", ")[2] for text in texts}) == 1 and upper.holds and lower.holds:
        texts = [texts[0].partition(", ")[2]]
    evidence = tuple(dict.fromkeys(texts))
    return Statement(about, RELATIONS[upper.holds, lower.holds], against, evidence, witnesses)


def refuted(probe: Probe, test: WLTest, pool: Pool, *, more: bool) -> Bound | None:
    """A bound that two graphs of a pool refute."""
    separated_pair = witness(probe, pool, pool.wl(test), test.name, more=more)
    return None if separated_pair is None else Bound(False, *separated_pair)


def _searched(probe: Probe, test: WLTest, *, more: bool) -> Bound:
    """A bound that some small graphs refute, or that is open after all of them were tried."""
    small, largest = all_graphs(6), all_graphs(7)
    marked = test.marks or test.folklore > THREE_WL.folklore
    for pool in (small, largest, last_pairs(), *([marked_pairs()] if marked else [])):
        if (found := refuted(probe, test, pool, more=more)) is not None:
            return found
    tried = f"no pair of {largest.text} refutes it"
    bounded = isinstance(probe, ColourProbe) and probe.only_merges
    if bounded or probe.classes(largest) is None:
        tried = "not tested: its functions or supports have no exact values"
    side = "at most" if more else "at least"
    return Bound(None, f"{side}: open, no proof found; {tried}")


def proved_above(grammar: Grammar, test: WLTest) -> Bound | None:
    """That a grammar is at most a WL test, by theorem or by simulation."""
    found = _proved_above(grammar, test)
    if found is not None or not grammar.marked:
        return found
    try:
        fewer_marks = index_bound(grammar, "simple")
    except G2N2Error:
        return None
    if fewer_marks is None or (found := _proved_above(fewer_marks[0], test)) is None:
        return None
    rest = found.evidence.partition(", ")[2]
    return Bound(True, f"at most, {MARK_IS_INDEX}; {fewer_marks[0].name} is at most that, {rest}")


def _proved_above(grammar: Grammar, test: WLTest) -> Bound | None:
    if test.marks:
        return _marked_above(grammar, test)
    if test.folklore >= THREE_WL.folklore:
        if within_three_indices(grammar):
            return Bound(True, f"at most, {BOUNDED}")
        marked = upper_bound(grammar) if grammar.marked else None
        enough = marked is not None and test.folklore >= marked.folklore + marked.marks
        return Bound(True, f"at most, {BOUNDED_MARKS}") if enough else None
    with_f = with_functions(find_grammar("2-IGN")).named("2-IGN with functions")
    for reference, theorem in ((find_grammar("r-G_L1"), L1_IS_1WL), (with_f, IGN_IS_1WL)):
        if reference == grammar:
            return Bound(True, f"at most, {theorem}")
        if (proof := _simulated(grammar, reference)) is not None:
            return Bound(True, f"at most, {proof}: {reference.name} simulates it; {theorem}")
    return None


def _proved_below(grammar: Grammar, test: WLTest) -> Bound | None:
    """That a grammar is at least a WL test, by simulation and theorem."""
    references: tuple[tuple[Grammar, str], ...]
    if test.marks:
        references = ((find_grammar(test.grammar), MARKED_TESTS),) if test.grammar else ()
    elif test.folklore == ONE_WL.folklore:
        references = ((find_grammar("r-G_L1"), L1_IS_1WL),)
    else:
        by_theorem = ((grammar, f"{DIAGONALS}; {L3_IS_3WL}") for grammar in (OUTER, MATRICES))
        l3 = (find_grammar("r-G_L3"), L3_IS_3WL)
        references = (l3, *by_theorem) if test.folklore == THREE_WL.folklore else ()
    for reference, theorem in references:
        if reference == grammar:
            return Bound(True, f"at least, {theorem}")
        if (proof := _simulated(reference, _without_sums(grammar))) is not None:
            return Bound(True, f"at least, {proof}: it simulates {reference.name}; {theorem}")
    return None


def _marked_above(grammar: Grammar, test: WLTest) -> Bound | None:
    """That a grammar is at most a WL test with marks."""
    if test.folklore >= THREE_WL.folklore:
        bound = upper_bound(grammar)
        if bound is not None and bound.marks <= test.marks and (test.full or not bound.full):
            return Bound(True, f"at most, {MARKED_BOUND}")
        return None
    reference = find_grammar(test.grammar or "")
    if reference == grammar:
        return Bound(True, f"at most, {MARKED_TESTS}")
    proof = _simulated(grammar, reference)
    if proof is None:
        return None
    return Bound(True, f"at most, {proof}: {reference.name} simulates it; {MARKED_TESTS}")


def _without_sums(grammar: Grammar) -> Grammar:
    """The grammar without rules that have no pattern: it tells no more apart without them."""
    rules = tuple(rule for rule in grammar.rules if multilinear(rule.body))
    readout = tuple(rule for rule in grammar.readout if multilinear(rule.body))
    return replace(grammar, rules=rules, readout=readout)


def within_three_indices(grammar: Grammar) -> bool:
    """Whether every operation of a grammar is one that 3-WL bounds, supports defined."""
    defined = dict(grammar.supports)
    bodies = [substitute(rule.body, defined) for rule in grammar.all_rules]
    if not {leaf.name for body in bodies for leaf in leaves(body)} <= {"A", "1", "I", "J"}:
        return False
    used = grammar.operations.union(*(operators(term) for term in defined.values()))
    return within_3wl(used)


def _simulated(larger: Grammar, smaller: Grammar) -> str | None:
    """How many obligations prove an inclusion; None where none is found."""
    try:
        inclusion = included(larger, smaller, "simple")
    except G2N2Error:
        return None
    if inclusion.status != "proved":
        return None
    count = len(inclusion.proof.witnesses) if inclusion.proof is not None else 0
    return f"{counted(count, 'obligation')} checked"
