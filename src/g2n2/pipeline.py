"""The pipeline as one short list of calls: fragment, grammar, reduction, what is kept and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from .errors import GrammarError
from .grammars.coercion import GrammarLike, as_grammar
from .grammars.fragments import Fragment, Typing
from .grammars.grammar import Grammar, Rule
from .language.patterns import Assumption
from .reduction.certificates import certificate
from .reduction.compare import Comparison, Inclusion, Mode, with_functions
from .reduction.compare import compare as prove_comparison
from .reduction.explain import Step, steps
from .reduction.forms import Level
from .reduction.reduce import Order, Reduction, reduce


@dataclass(frozen=True)
class Kept:
    """A rule that stays, with graphs and a sentence that need it, or why there is no witness."""

    rule: Rule
    witness: dict[str, Any] | None
    reason: str


@dataclass(frozen=True)
class Derivation:
    """A fragment on its way to a reduced grammar."""

    fragment: Fragment
    typing: Typing
    exhaustive: Grammar
    reduction: Reduction
    steps: tuple[Step, ...]
    kept: tuple[Kept, ...]

    @property
    def reduced(self) -> Grammar:
        return self.reduction.reduced

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate of the reduction, as JSON."""
        return certificate(self.exhaustive, self.reduced, self.reduction.links)

    def __str__(self) -> str:
        from .narration import narrate

        return narrate(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """Everything `g2n2 derive --json` prints."""
        reduction = self.reduction
        return {
            "fragment": str(self.fragment),
            "typing": self.typing,
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
        }


def derive(
    fragment: Fragment | str,
    typing: Typing = "paper",
    assume: Assumption = "symmetric",
    level: Level = "graph",
    order: Order = "direct",
    witnesses: bool = True,
) -> Derivation:
    """From a set of operations to its reduced grammar, with proofs and witnesses.

    >>> print(derive("L1").reduced)
    V_c → diag(V_c)V_c | AV_c | 1
    S → 1ᵀV_c
    """
    chosen = Fragment.parse(fragment) if isinstance(fragment, str) else fragment
    exhaustive = chosen.exhaustive(typing)
    reduction = reduce(exhaustive, assume, level, order)
    kept = tuple(_kept(rule, reduction, witnesses) for rule in reduction.reduced.rules)
    return Derivation(chosen, typing, exhaustive, reduction, tuple(steps(reduction.links)), kept)


def _kept(rule: Rule, reduction: Reduction, witnesses: bool) -> Kept:
    """Why a rule stays: graphs that need it, or the plain word that nothing shows it."""
    reduced = reduction.reduced
    if not witnesses or not reduced.sentence_rules:
        return Kept(rule, None, "not searched")
    from .power.witnesses import needed

    try:
        found = needed(reduced, rule, directed=reduction.assume == "none")
    except GrammarError as fault:
        return Kept(rule, None, f"not searched: {fault}")
    if found is None:
        return Kept(rule, None, "no proof of removal, no witness")
    return Kept(rule, found.to_json(), str(found))


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
    found = prove_comparison(left, right, mode, assume)
    a, b = (with_functions(g) if mode == "with f" else g for g in (left, right))
    return replace(
        found, forward=_refuted(found.forward, a, b), backward=_refuted(found.backward, b, a)
    )


def _refuted(inclusion: Inclusion, larger: Grammar, smaller: Grammar) -> Inclusion:
    """An open inclusion with graphs that refute it, where graphs of at most 7 nodes do."""
    if inclusion.status != "open":
        return inclusion
    from .power.witnesses import between

    try:
        found = between(larger, smaller)
    except GrammarError as fault:
        return replace(inclusion, reason=f"{inclusion.reason}; no graphs tried: {fault}")
    if found is None:
        more = "no two graphs of one size, at most 7 nodes, refute it"
        return replace(inclusion, reason=f"{inclusion.reason}; {more}")
    return replace(inclusion, status="separated", witness=found.to_json(), reason=str(found))
