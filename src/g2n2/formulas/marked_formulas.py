"""Sentences with marks as one sum over all of them: Σu. Σv. e, and a constant.

A network with marks sums once over each, the innermost first, over what it reads out of each marked
copy. So a combination of sums is one sum, and a sentence without a mark is the sum over the nodes
one of its products sums over anyway: rᵀc = Σv. rᵀdiag(v)c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ..errors import LoweringError
from ..grammars.matching import joined, run_sort, spread, written_out
from ..grammars.subgraph_counts import sum_of
from ..language.printing import to_text
from ..language.sorts import S, V
from ..language.terms import Apply, Leaf, MarkSum, Number, Term, apply, combination, has_mark_sum
from .formula_to_atoms import sums


def under_marks(term: Term, marks: Sequence[str]) -> tuple[Term, Fraction]:
    """What is summed over all marks, the first outermost, and what is added to the sum.

    Raises:
        LoweringError: The term is no combination of sums over so many marks.
    """
    term, constant = _called(term, marks, {}), Fraction(0)
    for depth, mark in enumerate(marks):
        parts = []
        for factor, sentence in combination(term):
            if isinstance(sentence, Number):
                factor *= sentence.value
                if not depth:
                    constant += factor
                    continue
                outer = Leaf(marks[depth - 1], V)
                sentence = apply("matmul", outer.T, outer)  # 1
            inner = _summed(sentence, mark)
            parts.append(inner if factor == 1 else apply("scale", Number(factor), inner))
        if not parts:
            return Number(Fraction(0)), constant
        term = sum_of(parts)
    return term, constant


def multiplies_sentences(term: Term) -> bool:
    """Whether a term is a product of sentences."""
    op, run = spread(term)
    return op == "matmul" and any(run_sort(run[:end]) == S for end in range(1, len(run)))


def _called(term: Term, marks: Sequence[str], names: Mapping[str, Term]) -> Term:
    """The term with its marks called as those of the grammar, the outermost first."""
    match term:
        case Leaf(name=name) if name in names:
            return names[name]
        case Leaf(name=name) if name in marks:
            raise LoweringError(f"{name} has no value here: write Σ{name}. in front to sum over it")
        case Apply(op=op, args=args, sort=sort, function=function):
            called = tuple(_called(arg, marks, names) for arg in args)
            return Apply(op, called, sort, function)
        case MarkSum(mark=mark, body=body):
            if term.sort != S or len(names) == len(marks):
                count = "one mark" if len(marks) == 1 else f"{len(marks)} marks"
                raise LoweringError(
                    f"{to_text(term)} is written into networks with {count}, whose sums are those "
                    "of numbers: write it as a combination of sentences Σv. e"
                )
            own = marks[len(names)]
            return MarkSum(own, _called(body, marks, {**names, mark: Leaf(own, V)}))
    return term


def _summed(sentence: Term, mark: str) -> Term:
    """A sentence as what is summed over the mark."""
    if isinstance(sentence, MarkSum):
        return sentence.body
    if has_mark_sum(sentence):
        raise LoweringError(
            f"{to_text(sentence)} does more with a sum over marks than add it up, and a network "
            "sums over its marks last: write a combination of sentences Σv. e"
        )
    column, whole = Leaf(mark, V), written_out(sentence)
    if isinstance(whole, Apply) and whole.op == "trace":
        return joined("matmul", (apply("transpose", column), whole.args[0], column))
    op, run = spread(whole)
    for left, right in sums(run) if op == "matmul" else ():
        return joined(op, (*left, apply("diag", column), *right))
    raise LoweringError(
        f"{to_text(sentence)} is no sum over nodes, as those over a mark are; write it as one, "
        "such as 1ᵀA1"
    )
