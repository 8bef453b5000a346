"""Sentences with a mark as one sum over it: Σv. e, and a constant.

A network with a mark sums once, over what it reads out of each marked copy. So a combination of
sums is one sum, and a sentence without a mark is the sum over the nodes one of its products sums
over anyway: rᵀc = Σv. rᵀdiag(v)c.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial, reduce

from ..errors import LoweringError
from ..grammars.matching import joined, spread, written_out
from ..language.printing import to_text
from ..language.sorts import S, V
from ..language.terms import Apply, Leaf, MarkSum, Number, Term, apply, substitute, subterms
from .formula_to_atoms import sums


def under_one_mark(term: Term, mark: str) -> tuple[Term, Fraction]:
    """What is summed over the mark, and what is added to the sum.

    Raises:
        LoweringError: The term is no combination of sums over one mark.
    """
    parts, constant = [], Fraction(0)
    for factor, sentence in _combination(term):
        if isinstance(sentence, Number):
            constant += factor * sentence.value
        else:
            inner = _summed(sentence, mark)
            parts.append(inner if factor == 1 else apply("scale", Number(factor), inner))
    if not parts:
        return Number(Fraction(0)), constant
    return reduce(partial(apply, "add"), parts), constant


def _combination(term: Term) -> list[tuple[Fraction, Term]]:
    """A term as multiples of others."""
    match term:
        case Apply(op="add", args=args):
            return [part for arg in args for part in _combination(arg)]
        case Apply(op="scale", args=(Number(value=value), inner)):
            return [(value * factor, part) for factor, part in _combination(inner)]
    return [(Fraction(1), term)]


def _summed(sentence: Term, mark: str) -> Term:
    """A sentence as what is summed over the mark."""
    column = Leaf(mark, V)
    if isinstance(sentence, MarkSum):
        inner = substitute(sentence.body, {sentence.mark: column})
        if sentence.sort != S or _has_sums(inner):
            raise LoweringError(
                f"{to_text(sentence)} is written into networks with one mark, whose sum is that of "
                "a number: write it as a combination of sentences Σv. e"
            )
        if sentence.mark != mark:
            _refuse_free(mark, sentence.body)
        return inner
    if _has_sums(sentence):
        raise LoweringError(
            f"{to_text(sentence)} does more with a sum over marks than add it up, and a network "
            "sums over its mark last: write a combination of sentences Σv. e"
        )
    _refuse_free(mark, sentence)
    whole = written_out(sentence)
    if isinstance(whole, Apply) and whole.op == "trace":
        return joined("matmul", (apply("transpose", column), whole.args[0], column))
    op, run = spread(whole)
    for left, right in sums(run) if op == "matmul" else ():
        return joined(op, (*left, apply("diag", column), *right))
    raise LoweringError(
        f"{to_text(sentence)} is no sum over nodes, as those over a mark are; write it as one, "
        "such as 1ᵀA1"
    )


def _refuse_free(mark: str, term: Term) -> None:
    if Leaf(mark, V) in subterms(term):
        raise LoweringError(
            f"{mark} has no value in {to_text(term)}: write Σ{mark}. in front to sum over it"
        )


def _has_sums(term: Term) -> bool:
    return any(isinstance(part, MarkSum) for part in subterms(term))
