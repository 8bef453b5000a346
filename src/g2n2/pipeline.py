"""The pipeline as one short list of calls: fragment, grammar, reduction, what is kept and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .grammars.fragments import Fragment, Typing
from .grammars.grammar import Grammar, Rule
from .language.patterns import Assumption
from .reduction.certificates import certificate
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
) -> Derivation:
    """From a set of operations to its reduced grammar, with proofs.

    >>> print(derive("L1").reduced)
    V_c → diag(V_c)V_c | AV_c | 1
    S → 1ᵀV_c
    """
    chosen = Fragment.parse(fragment) if isinstance(fragment, str) else fragment
    exhaustive = chosen.exhaustive(typing)
    reduction = reduce(exhaustive, assume, level, order)
    kept = tuple(Kept(rule, None, "not searched") for rule in reduction.reduced.rules)
    return Derivation(chosen, typing, exhaustive, reduction, tuple(steps(reduction.links)), kept)
