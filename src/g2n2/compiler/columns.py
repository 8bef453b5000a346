"""Rules that use matrices only in products with columns, computed without making a matrix.

`(XY)v` is `X(Yv)`, `(X + Y)v` is `Xv + Yv`, `diag(w)v` is `w⊙v`: what is left of a matrix built out
of A are products of A itself with columns, and for those A may be a sparse tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from ..errors import LoweringError
from ..grammars.grammar import Grammar
from ..language.printing import to_text
from ..language.sorts import M, R, V
from ..language.terms import Apply, Leaf, Term, subterms
from ..ops import reference as ops
from .lowering import FUSED, Constants, Lowered, lower_node

Product = Callable[[Tensor, Sequence[Tensor], Constants], Tensor]
"""A column, the operands of the rule and the constants -> a matrix times the column."""
Supports = Mapping[str, Term]


def columns_only(grammar: Grammar) -> bool:
    """Whether a grammar has no matrix variable and uses matrices only in products with columns."""
    if grammar.scope or any(M in (rule.head, *rule.holes) for rule in grammar.all_rules):
        return False
    try:
        for rule in grammar.all_rules:
            lower_to_columns(rule.body, dict(grammar.supports))
    except LoweringError:
        return False
    return True


def on_either(dense: Lowered, body: Term, supports: Supports) -> Lowered:
    """A body's function that takes a sparse A too; `dense` where A is not sparse."""
    if to_text(body, powers=False) in FUSED or all(part.sort != M for part in subterms(body)):
        return dense
    sparse = lower_to_columns(body, supports)
    return lambda x, c: (sparse if c["A"].is_sparse else dense)(x, c)


def lower_to_columns(body: Term, supports: Supports) -> Lowered:
    """The function of tensors a body stands for, where A is block-diagonal: `ops.sparse_column`."""
    places = iter(range(body.size))
    return _value(body, lambda: next(places), supports)


def _value(term: Term, next_operand: Callable[[], int], supports: Supports) -> Lowered:
    """A column, a row or a number; operands are counted in the order they are written in."""
    match term:
        case Apply(op="matmul", args=(matrix, column), sort=sort) if (matrix.sort, sort) == (M, V):
            times = _times(matrix, False, next_operand, supports)
            inner = _value(column, next_operand, supports)
            return lambda x, c: times(inner(x, c), x, c)
        case Apply(op="matmul", args=(row, matrix), sort=sort) if (matrix.sort, sort) == (M, R):
            inner = _value(row, next_operand, supports)
            times = _times(matrix, True, next_operand, supports)
            return lambda x, c: times(inner(x, c), x, c)
    if term.sort == M or any(arg.sort == M for arg in getattr(term, "args", ())):
        raise LoweringError(f"{to_text(term)} needs the entries of a matrix")
    return lower_node(term, next_operand, lambda part: _value(part, next_operand, supports))


def _times(
    matrix: Term, flipped: bool, next_operand: Callable[[], int], supports: Supports
) -> Product:
    """A matrix times a column; `flipped`: its transpose."""

    def times(part: Term, turned: bool = flipped) -> Product:
        return _times(part, turned, next_operand, supports)

    def value(part: Term) -> Lowered:
        return _value(part, next_operand, supports)

    match matrix:
        case Leaf(name="A"):
            return lambda v, x, c: ops.sparse_column(c["A"].t() if flipped else c["A"], v)
        case Leaf(name="I"):
            return lambda v, x, c: v
        case Leaf(name="J"):
            return lambda v, x, c: c["1"] * v.sum(1, keepdim=True) - v
        case Leaf(name=name) if name in supports:
            return times(supports[name])
        case Apply(op="transpose", args=(inner,)):
            return times(inner, not flipped)
        case Apply(op="diag", args=(column,)) if column.sort == V:
            diagonal = value(column)
            return lambda v, x, c: diagonal(x, c) * v
        case Apply(op="add", args=(left, right)):
            first, second = times(left), times(right)
            return lambda v, x, c: first(v, x, c) + second(v, x, c)
        case Apply(op="matmul", args=(left, right)) if left.sort == right.sort == M:
            first, second = times(left), times(right)
            outer, inner_ = (second, first) if flipped else (first, second)
            return lambda v, x, c: outer(inner_(v, x, c), x, c)
        case Apply(op="matmul", args=(left, right)) if (left.sort, right.sort) == (V, R):
            ends = value(left), value(right)
            to, along = reversed(ends) if flipped else ends
            return lambda v, x, c: ops.scaled_vector(ops.row_column(along(x, c), v), to(x, c))
        case Apply(op="scale", args=(number, inner)):
            factor, product = value(number), times(inner)
            return lambda v, x, c: ops.scaled_vector(factor(x, c), product(v, x, c))
    raise LoweringError(f"{to_text(matrix)} is no sum or product of A, I, J and diagonals")
