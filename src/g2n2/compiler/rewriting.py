"""Equal terms a grammar may have rules for where it has none for the term as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from ..language.operations import OPERATIONS
from ..language.sorts import M, R, S, V
from ..language.terms import HOLLOW, ONE, Apply, Number, Term, apply
from .matching import EYE, ROW_OF_ONES, joined, run_sort, spread, transposed


def shorter(term: Term, entrywise: bool) -> Iterator[Term]:
    """Equal terms that may take fewer layers.

    Args:
        term: Any term, I written as diag(1).
        entrywise: Whether columns can be multiplied entrywise, so that diag(u)w is u⊙w; else u⊙w
            is diag(u)w.
    """
    op, run = spread(term)
    if op == "matmul":
        if EYE in run and any(factor != EYE for factor in run):
            yield joined(op, tuple(factor for factor in run if factor != EYE))
        for place, factor in enumerate(run[:-1]):
            if entrywise and run[-1].sort == V and _is(factor, "diag"):
                scaled = apply("hadamard", factor.args[0], joined(op, run[place + 1 :]))
                yield joined(op, (*run[:place], scaled))
    elif op == "hadamard" and term.sort == V and not entrywise:
        yield apply("matmul", apply("diag", run[0]), joined(op, run[1:]))
    elif _is(term, "transpose"):
        pushed = transposed(term.args[0])
        if pushed != term:
            yield pushed


def simpler(term: Term) -> Iterator[Term]:
    """Equal terms made of smaller parts: products of sums as sums, J and scalars written out."""
    op, run = spread(term)
    if not op:
        yield from _simpler_single(term)
        return
    for place, factor in enumerate(run):
        before, after = run[:place], run[place + 1 :]
        if _is(factor, "add"):
            parts = [joined(op, (*before, part, *after)) for part in factor.args]
            yield apply("add", *parts)
            return
        if _is(factor, "scale"):
            yield apply("scale", factor.args[0], joined(op, (*before, factor.args[1], *after)))
            return
        if factor == HOLLOW:
            if op == "hadamard":
                rest = joined(op, before + after)
                yield rest - apply("hadamard", rest, EYE)
            else:
                yield joined(op, (*before, _hollow(), *after))
            return


def _simpler_single(term: Term) -> Iterator[Term]:
    if term == HOLLOW:
        yield _hollow()
    if not isinstance(term, Apply) or not term.args:
        return
    inner = term.args[0]
    if term.op == "scale" and not isinstance(inner, Number):
        scaled = term.args[1]
        if scaled.sort == M:
            yield apply("hadamard", joined("matmul", (ONE, inner, ROW_OF_ONES)), scaled)
        elif scaled.sort == V:
            yield apply("matmul", scaled, inner)
        else:
            yield apply("matmul", inner, scaled)
    elif term.op in ("transpose", "diag", "trace"):
        if _is(inner, "add"):
            yield apply("add", *(apply(term.op, part) for part in inner.args))
        elif _is(inner, "scale"):
            yield apply("scale", inner.args[0], apply(term.op, inner.args[1]))
        elif inner.sort == S:
            yield inner  # diag, Tr and ᵀ keep a number
        elif term.op == "diag":
            yield apply("hadamard", apply("matmul", inner, ROW_OF_ONES), EYE)
        elif term.op == "trace":
            inside = inner.args[0] if _is(inner, "diag") else None
            column = inside or apply("matmul", apply("hadamard", inner, EYE), ONE)
            yield joined("matmul", (ROW_OF_ONES, *_factors(column)))
    elif OPERATIONS[term.op].multilinear:
        yield from _distributed(term)


def _distributed(term: Apply) -> Iterator[Term]:
    """A sum or a multiple among the operands of a multilinear operation, in front of it."""
    for place, operand in enumerate(term.args):
        before, after = term.args[:place], term.args[place + 1 :]
        if _is(operand, "add"):
            yield apply("add", *(apply(term.op, *before, x, *after) for x in operand.args))
            return
        if _is(operand, "scale"):
            factor, rest = operand.args
            yield apply("scale", factor, apply(term.op, *before, rest, *after))
            return


def _factors(column: Term) -> tuple[Term, ...]:
    """The factors of a product of matrices and a column; the column itself else."""
    op, run = spread(column)
    return run if op == "matmul" else (column,)


def sums(run: tuple[Term, ...]) -> Iterator[tuple[tuple[Term, ...], tuple[Term, ...]]]:
    """A sentence's factors cut into a row and a column."""
    for cut in range(1, len(run)):
        if run_sort(run[:cut]) == R and run_sort(run[cut:]) == V:
            yield run[:cut], run[cut:]


def _is(term: Term, op: str) -> TypeGuard[Apply]:
    return isinstance(term, Apply) and term.op == op and not term.function


def _hollow() -> Term:
    return apply("matmul", ONE, ROW_OF_ONES) - EYE
