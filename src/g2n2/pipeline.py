"""`derive` and `compare` as short lists of calls: fragment, grammar, reduction, certificate."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import notebook_html
from .errors import G2N2Warning, GrammarError, ReductionError
from .grammars.catalogue import (
    MARKED_TEXTS,
    TEXTS,
    file_text,
    find_grammar,
    fragment_of,
    given_rules,
    named_grammar,
    printed_name,
    reduced_name,
    without_braces,
)
from .grammars.coercion import GrammarLike, as_grammar
from .grammars.fragments import TYPINGS, Fragment, Typing
from .grammars.grammar import LEVELS, Grammar, Level, Rule
from .input_files import parse_json
from .language.operations import Operation, registered_operations
from .language.patterns import ASSUMPTIONS, Assumption
from .reduction.certificates import (
    FORMAT,
    certificate,
    declare_operations,
    proof_of,
    require_agreement,
)
from .reduction.checker import check
from .reduction.compare import Comparison, Inclusion, Mode, with_functions
from .reduction.compare import compare as prove_comparison
from .reduction.explain import ProofStep, steps
from .reduction.reduce import Order as Order
from .reduction.reduce import Reduction as Reduction
from .reduction.reduce import reduce as reduce
from .reduction.theorems import by_theorem
from .validation import check_option

if TYPE_CHECKING:
    from .verdict import Verdict


@dataclass(frozen=True)
class Kept:
    """A rule that stays.

    Attributes:
        rule: The rule.
        witness: Two graphs and a sentence that need it; None where none were found.
        reason: The witness in words, or why there is none.
    """

    rule: Rule
    witness: dict[str, Any] | None
    reason: str


@dataclass(frozen=True, repr=False)
class Derivation:
    """A fragment, its exhaustive and its reduced grammar, and the proof between them.

    Attributes:
        fragment: The operations.
        typing: `paper` or `full`.
        exhaustive: Every typed rule over the operations.
        reduction: The search's result: links to the reduced grammar, and alternatives to it.
        steps: The rules that were removed, step by step, with the reason.
        kept: The rules that stay, with the reason.
    """

    fragment: Fragment
    typing: Typing
    exhaustive: Grammar
    reduction: Reduction
    steps: tuple[ProofStep, ...]
    kept: tuple[Kept, ...]

    @property
    def reduced(self) -> Grammar:
        """The reduced grammar."""
        reduction = self.reduction
        if reduction.reduced == self.exhaustive:
            return reduction.reduced
        return reduction.reduced.named(
            reduced_name(self.exhaustive.name, reduction.assume, reduction.level)
        )

    @cached_property
    def verdict(self) -> Verdict:
        """What both grammars tell apart, against 1-WL and 3-WL; graph level only."""
        from .verdict import Verdict, derivation_verdict

        if self.reduction.level != "graph":
            return Verdict(notes=("the verdict is about graphs: derive at graph level for it",))
        return derivation_verdict(self.exhaustive, self.reduced)

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate of the reduction, as JSON."""
        return certificate(self.exhaustive, self.reduced, self.reduction.links)

    def __repr__(self) -> str:
        return (
            f"Derivation({self.exhaustive.name} → {self.reduced.name}: {self.reduced.rule_count})"
        )

    def __str__(self) -> str:
        from .narration import narrate

        return narrate(self)

    def _repr_html_(self) -> str:
        return notebook_html.derivation(self)

    def to_json(self) -> dict[str, Any]:
        """Everything `g2n2 derive --json` prints."""
        reduction = self.reduction
        return {
            "fragment": str(self.fragment),
            "typing": self.typing,
            "name": self.reduced.name,
            "exhaustive": [str(rule) for rule in self.exhaustive.all_rules],
            "reduced": [str(rule) for rule in self.reduced.rules],
            "readout": [str(rule) for rule in self.reduced.sentence_rules],
            "assumptions": {"A": reduction.assume, "level": reduction.level},
            "steps": [
                {
                    "removed": [str(r) for r in step.removed],
                    "added": [str(r) for r in step.added],
                    "reason": step.reason,
                    "identities": list(step.identities),
                    "status": step.status,
                    "paper": step.paper,
                    "ours": step.ours,
                }
                for step in self.steps
            ],
            "kept": [
                {"rule": str(k.rule), "witness": k.witness, "reason": k.reason} for k in self.kept
            ],
            "alternatives": [
                {
                    "rules": [str(rule) for rule in other.grammar.rules],
                    "readout": [str(rule) for rule in other.grammar.sentence_rules],
                    "assumptions": {"A": other.assume, "level": reduction.level},
                    "note": other.note,
                }
                for other in reduction.alternatives
            ],
            "verdict": self.verdict.to_json(),
            "certificate": self.certificate,
        }


def derive(
    fragment: Fragment | str | Iterable[str],
    typing: Typing = "paper",
    assume: Assumption = "symmetric",
    level: Level = "graph",
    order: Order = "direct",
    witnesses: bool = True,
) -> Derivation:
    """From a set of operations to its reduced grammar, with proofs and witnesses.

    >>> from g2n2 import derive
    >>> print(derive("L1").reduced)
    V_c → diag(V_c)V_c | AV_c | 1
    S → 1ᵀV_c

    Args:
        fragment: A fragment, text such as `L3` or `· ᵀ 1 ⊙`, or names of operations.
        typing: `paper`, or `full`: also Sᵀ and 1 of a row.
        assume: What is known of A: `symmetric`, `simple` or `none`.
        level: Whose outputs are compared: `graph`, `node` or `pair`.
        order: `direct`, or `paper`: by way of i-G.
        witnesses: Whether graphs are searched that need each rule that stays.

    Raises:
        GrammarError: No such operation, or an option is none of those above.
    """
    check_option("typing", typing, TYPINGS, GrammarError)
    check_option("assume", assume, ASSUMPTIONS, GrammarError)
    check_option("level", level, LEVELS, GrammarError)
    check_option("order", order, ("direct", "paper"), GrammarError)
    chosen = fragment if isinstance(fragment, Fragment) else _operations(fragment)
    return _derived(chosen, typing, assume, level, order, witnesses, registered_operations())


_FRAGMENTS = {"L3Σ (full)": "L3 Σ"}
"""What derives grammars whose name does not say it."""


def _operations(given: str | Iterable[str]) -> Fragment:
    """A set of operations; a grammar's name is refused with what derives such a grammar.

    Raises:
        GrammarError: It is none.
    """
    try:
        return Fragment(given)
    except GrammarError:
        printed = printed_name(given) if isinstance(given, str) else None
        grammar = named_grammar(given) if isinstance(given, str) else None
        if printed is None and grammar is None:
            raise
    name = "" if grammar is None else grammar.name
    fragment = str(printed.fragment) if printed else _FRAGMENTS.get(name)
    advice = f"; these are its own: g2n2 derive '{fragment}'" if fragment else ""
    raise GrammarError(
        f"{given} is a grammar: give it to compile, compare or power; derive takes operations"
        f"{advice}"
    )


@lru_cache(maxsize=64)
def _derived(
    fragment: Fragment,
    typing: Typing,
    assume: Assumption,
    level: Level,
    order: Order,
    witnesses: bool,
    operations: tuple[Operation, ...],
) -> Derivation:
    """The same, remembered: what an operation's name means is part of the question."""
    exhaustive = fragment.exhaustive(typing)
    reduction = reduce(exhaustive, assume, level, order)
    reduced = reduction.reduced
    witnesses = witnesses and (reduced != exhaustive or not reduced.marked)
    kept = tuple(_kept(rule, reduction, witnesses) for rule in reduced.rules)
    return Derivation(fragment, typing, exhaustive, reduction, tuple(steps(reduction.links)), kept)


NOT_DECIDED = "open: we found no proof that it can go, and no two graphs that need it"


def _kept(rule: Rule, reduction: Reduction, witnesses: bool) -> Kept:
    """Why a rule stays: graphs that need it, or the plain word that nothing shows it."""
    reduced = reduction.reduced
    if not witnesses or not reduced.sentence_rules:
        return Kept(rule, None, "not searched")
    from .graphs.names import pair_text
    from .power.witnesses import needed

    try:
        witness = needed(reduced, rule, directed=reduction.assume == "none")
    except GrammarError as fault:
        return Kept(rule, None, f"not searched: {fault}")
    if witness is None:
        return Kept(rule, None, NOT_DECIDED)
    pair = pair_text(witness.first, witness.second)
    return Kept(rule, witness.to_json(), f"needed: without it {pair} look alike; with it {witness}")


def compare(
    left: GrammarLike, right: GrammarLike, mode: Mode = "words", assume: Assumption = "symmetric"
) -> Comparison:
    """Which of two grammars tells more graphs apart: by proof, or by a pair that refutes it.

    >>> compare("PPGN", "r-G_L3").relation, compare("r-G_L1", "GNNML1").relation
    ('⊊', '≡')

    Args:
        left: A grammar, its name or its rules.
        right: Another.
        mode: As `words` alone, or `with f`: sums and pointwise functions added.
        assume: What is known of A.
    """
    left, right = as_grammar(left), as_grammar(right)
    comparison = prove_comparison(left, right, mode, assume)
    a, b = (with_functions(g) if mode == "with f" else g for g in (left, right))
    return replace(
        comparison,
        forward=_settled(comparison.forward, a, b, assume),
        backward=_settled(comparison.backward, b, a, assume),
    )


def _settled(
    inclusion: Inclusion, larger: Grammar, smaller: Grammar, assume: Assumption
) -> Inclusion:
    """An open inclusion by theorem, or with graphs that refute it, where small or known ones do."""
    if inclusion.status != "open":
        return inclusion
    if (theorem := by_theorem(larger, smaller, assume)) is not None:
        return theorem
    from .power.witnesses import between

    try:
        witness = between(larger, smaller, directed=assume == "none")
    except GrammarError as fault:
        return replace(inclusion, reason=f"{inclusion.reason}; no graphs tried: {fault}")
    if witness is None:
        directed = ", no two digraphs of 4 nodes" if assume == "none" else ""
        small = f"no two graphs of one size, at most 7 nodes{directed}"
        more = f"{small}, and no larger pair known refute it"
        return replace(inclusion, reason=f"{inclusion.reason}; {more}")
    return replace(inclusion, status="separated", witness=witness.to_json(), reason=str(witness))


STDIN = "standard input"


@dataclass(frozen=True)
class Chosen:
    """The grammar a text stands for."""

    grammar: Grammar  # the grammar
    note: str = ""  # what was taken where the text leaves a choice, in one sentence; else empty
    # the one that was not taken: the exhaustive grammar beside the reduced one, or the reduced
    # beside the exhaustive where it is known
    other: Grammar | None = None

    def sized_note(self, weights: Callable[[Grammar], int]) -> str:
        """The note, with how many weights the networks of both grammars have.

        With marks the exhaustive grammar may have no network with the same options.
        """
        if self.other is None or self.other.scope:
            return self.note
        counts = (
            f"{weights(self.grammar):,} weights, the exhaustive grammar's network would have "
            f"{weights(self.other):,}"
        )
        return f"{self.note}; {counts}"


def choose_grammar(text: str, *, reduce: bool, exhaustive: bool = False) -> Chosen:
    """The grammar of a name, rules, a file, a certificate, a fragment, or `-` for standard input.

    Args:
        text: A name of the catalogue, a printed name (`r-G_{·, Tr}`), rules, a file of rules, a
            certificate of `derive --out`, the output of `derive --json` in a file, a fragment
            (`L3`, `· Tr`), or `-` for rules or either JSON on standard input.
        reduce: Whether a fragment stands for its reduced grammar or for its exhaustive one.
        exhaustive: Take the exhaustive grammar, also of a derivation that is read.
    """
    piped = text.strip() == "-"
    content = sys.stdin.read() if piped else file_text(text)
    if piped or (content is not None and content.lstrip().startswith("{")):
        return _read_grammar(content or "", STDIN if piped else text, exhaustive)
    from .power.wl_tests import WLTest

    if (test := WLTest.find(text)) is not None:
        raise test.refusal()
    fragment = fragment_of(text)
    if fragment is None:
        return Chosen(find_grammar(text))
    every = fragment.exhaustive()
    if exhaustive or not reduce:
        return Chosen(every, f"{fragment} stands for its exhaustive grammar, {_size(every)}")
    reduced = _reduced(every)
    if reduced == every:
        return Chosen(every, f"{fragment} stands for {every.name}: no rule of it can be removed")
    note = f"{fragment} stands for its reduced grammar, {_size(reduced)}"
    return Chosen(reduced, f"{note}; exhaustive is {_size(every)}", every)


def network_grammar(text: str, weights: Callable[[Grammar], int] | None = None) -> Grammar:
    """The grammar a network is built of; a warning says so where a fragment was reduced.

    Args:
        text: As for `choose_grammar`.
        weights: How many weights the network of a grammar has, to be said too.
    """
    chosen = choose_grammar(text, reduce=True)
    if chosen.other is not None and fragment_of(text) is not None:
        note = chosen.note if weights is None else chosen.sized_note(weights)
        more = f"the other is called {chosen.other.name}"
        warnings.warn(f"{note}; {more}", FragmentWarning, stacklevel=3)
    return chosen.grammar


class FragmentWarning(G2N2Warning):
    """A network was made of a fragment's reduced grammar, not of its exhaustive one."""


def _size(grammar: Grammar) -> str:
    return f"{grammar.name} with {grammar.rule_count}"


def _reduced(every: Grammar) -> Grammar:
    """The reduced grammar of a fragment's exhaustive one; the paper's two are known."""
    name = f"r-{every.name}"
    if name in TEXTS | MARKED_TEXTS:
        return find_grammar(name)
    return reduce(every, alternatives=False).reduced


def _read_grammar(content: str, source: str, exhaustive: bool) -> Chosen:
    """The grammar of a certificate, of what `derive --json` printed, or of rules."""
    if not content.strip():
        raise GrammarError(
            f"{source} is empty; pipe a derivation in: g2n2 derive L3 --json | g2n2 compile -"
        )
    if not content.lstrip().startswith(("{", "[")):
        return Chosen(given_rules(content))
    try:
        data = parse_json(content)
    except ValueError as fault:
        if '"' not in content and without_braces(content) != content:
            return Chosen(given_rules(content))
        raise GrammarError(f"{source} is not JSON: {fault}") from None
    proof = proof_of(data)
    if proof is None:
        raise GrammarError(
            f"{source} holds neither a certificate ({FORMAT!r}) nor a derivation; write one with "
            "`g2n2 derive FRAGMENT --out FILE` or `--json`"
        )
    every, reduced = _certified(proof, source)
    if proof is not data:
        require_agreement(data, proof, source)
    taken, other = (every, reduced) if exhaustive else (reduced, every)
    note = f"{source}: {_size(taken)}"
    return Chosen(taken, note, None if taken == other else other)


def _certified(proof: dict[str, Any], source: str) -> tuple[Grammar, Grammar]:
    """Both ends of a reduction whose certificate the checker accepts."""
    verdict = check(proof)
    if not verdict.valid:
        raise ReductionError(f"the checker refuses the certificate in {source}: {verdict.failure}")
    if any(link["kind"].endswith("inclusion") for link in proof["links"]):
        raise ReductionError(
            f"{source} certifies an inclusion of two grammars, not a reduction; "
            "give one of the grammars itself"
        )
    declare_operations(proof, source)
    every, reduced = (
        Grammar.of([Rule.parse(rule) for rule in proof[end]], default_readout=False)
        for end in ("from", "to")
    )
    every = every.named(
        _name_of(every) or (every.in_short if source == STDIN else Path(source).stem)
    )
    if reduced == every:
        return every, every
    assume: Assumption = "symmetric"
    level: Level = "graph"
    for link in proof["links"]:
        assume, level = link.get("assume", assume), link.get("level", level)
    return every, reduced.named(reduced_name(every.name, assume, level))


def _name_of(every: Grammar) -> str:
    """The name of the fragment whose exhaustive grammar this is, empty where there is none."""
    if not every.operations:
        return ""
    full: tuple[Typing, ...] = ("paper", "full")
    exhaustive = (Fragment(every.operations).exhaustive(typing) for typing in full)
    return next((grammar.name for grammar in exhaustive if grammar == every), "")
