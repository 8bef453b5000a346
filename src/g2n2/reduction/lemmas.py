"""What is removed by a cited lemma instead of a checked identity: sums and pointwise functions.

All other operations are multilinear, so a word with sums is a sum of words. For a fixed pair of
graphs one interpolating polynomial stands for a pointwise function on both, so the function of a
word is a combination of its Hadamard powers: it adds nothing where those powers can be made. The
constant term of the polynomial is 1 on columns and 1·1ᵀ on matrices, so that has to be a word as
well (unless f(0) = 0 is known). Where a function is not free, sums are not free either: f(u + v) is
no sum. So nothing goes while a rule that stays, the read-out among them, holds a function or a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..grammars.grammar import Grammar, Rule
from ..language.sorts import R
from ..language.terms import Apply, Hole, subterms

LEMMA = "sums and pointwise functions are free"

_HADAMARD_POWERS = {
    "f_S": (),
    "f_V": (
        {"V → 1", "V → (V⊙V)"},
        {"V → 1", "V → MV", "M → diag(V)"},
        {"V → 1", "V → diag(V)V"},
    ),
    "f_M": ({"M → (M⊙M)", "M → VR", "R → Vᵀ", "V → 1"},),
}


@dataclass(frozen=True)
class Lemma:
    """A link of a reduction that rests on the literature; `removed` are the rules it drops."""

    larger: Grammar
    smaller: Grammar
    removed: tuple[Rule, ...]


def free_rules(grammar: Grammar) -> Lemma | None:
    """The grammar without its sums and pointwise functions, where the lemma allows it."""
    removed = tuple(r for r in grammar.all_rules if _plain_operator(r) is not None)
    functions = {op for r in removed if (op := _plain_operator(r)) and op != "add"}
    if not removed or not all(is_free(op, grammar) for op in functions):
        return None
    turned = all(rule in grammar for rule in ("V → Rᵀ", "R → Vᵀ"))
    if not turned and any(r.head == R and _plain_operator(r) != "add" for r in removed):
        return None  # functions of rows are free as functions of columns
    rest = [r for r in grammar.all_rules if r not in removed]
    if any(_holds_sum_or_function(r) for r in rest):
        return None
    name = f"{grammar.name} without + and f" if grammar.name else ""
    smaller = Grammar.of(rest, name, grammar.supports, default_readout=False)
    return Lemma(grammar, smaller, removed)


def is_free(operator: str, grammar: Grammar) -> bool:
    """Whether a pointwise operator adds nothing to a grammar: it can make Hadamard powers."""
    ways = _HADAMARD_POWERS[operator]
    return not ways or any(all(rule in grammar for rule in way) for way in ways)


def _holds_sum_or_function(rule: Rule) -> bool:
    """Whether a body applies one anywhere; J is a constant, for all that it is 1·1ᵀ − I."""
    return any(isinstance(t, Apply) and (t.op == "add" or t.function) for t in subterms(rule.body))


def _plain_operator(rule: Rule) -> str | None:
    """`add` or f_S, f_V, f_M where that is all the rule applies."""
    body = rule.body
    if isinstance(body, Apply) and all(isinstance(arg, Hole) for arg in body.args):
        return body.op if body.function or body.op == "add" else None
    return None
