"""THE table from rule to tensor op: the only place where grammars and tensors meet.

A rule's body is lowered operation by operation. A multilinear operation is a contraction, which its
signature says; `OPERATIONS` has a faster op for each that is built in, on each sort, and `FUSED`
names the whole bodies that have a cheaper op than the operations they are written with.

Rules that use matrices only in products with columns need no matrix: `(XY)v` is `X(Yv)`, `(X + Y)v`
is `Xv + Yv`, `diag(w)v` is `w⊙v`. What is left of a matrix built out of A are products of A itself
with columns, and for those A may be a sparse tensor (`on_either`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import torch
from torch import Tensor

from ..errors import LoweringError
from ..grammars.grammar import Grammar
from ..language.operations import OPERATIONS as LANGUAGE
from ..language.printing import to_text
from ..language.signatures import Contraction
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import Apply, Hole, Leaf, MarkSum, Number, Term, subterms
from ..ops import reference as ops

Constants = Mapping[str, Tensor]
"""`1` `[B, N, 1]`, `A`, `I`, `J` and supports `[B, N, N, 1]`: what a rule may name, masked."""
Lowered = Callable[[Sequence[Tensor], Constants], Tensor]
"""Operands in the order of the rule's variables, constants -> the rule's output."""
Product = Callable[[Tensor, Sequence[Tensor], Constants], Tensor]
"""A column, the operands of the rule and the constants -> a matrix times the column."""
Supports = Mapping[str, Term]

OPERATIONS: dict[tuple[str, tuple[Sort, ...]], Callable[..., Tensor]] = {
    ("matmul", (M, M)): ops.matrix_matrix,
    ("matmul", (M, V)): ops.matrix_column,
    ("matmul", (R, M)): ops.row_matrix,
    ("matmul", (R, V)): ops.row_column,
    ("matmul", (V, R)): ops.column_row,
    ("matmul", (V, S)): lambda v, s: ops.scaled_vector(s, v),
    ("matmul", (S, R)): ops.scaled_vector,
    ("matmul", (S, S)): ops.product,
    **{("hadamard", (sort, sort)): ops.product for sort in (S, V, R, M)},
    **{("add", (sort, sort)): ops.total for sort in (S, V, R, M)},
    ("transpose", (M,)): ops.transposed,
    ("transpose", (V,)): ops.same,
    ("transpose", (R,)): ops.same,
    ("transpose", (S,)): ops.same,
    ("diag", (V,)): ops.diagonal_matrix,
    ("diag", (S,)): ops.same,
    ("trace", (M,)): ops.trace,
    ("trace", (S,)): ops.same,
    ("scale", (S, M)): ops.scaled_matrix,
    ("scale", (S, V)): ops.scaled_vector,
    ("scale", (S, R)): ops.scaled_vector,
    ("scale", (S, S)): ops.product,
}

FUSED: dict[str, Lowered] = {
    "diag(V_c)V_c": lambda x, c: ops.product(x[0], x[1]),
    "M⊙I": lambda x, c: ops.diagonal_matrix(ops.diagonal(x[0]) * c["1"]),
    "V_c1ᵀ": lambda x, c: ops.column_row(x[0], c["1"]),
    "1V_cᵀ": lambda x, c: ops.column_row(c["1"], x[0]),
}


def lower(body: Term) -> Lowered:
    """The function of tensors that a rule's body stands for."""
    if fused := FUSED.get(to_text(body, powers=False)):
        return fused
    return _lower(body, count().__next__)


def sums_over_nodes(body: Term) -> int:
    """How many sums over nodes a rule's body makes, which a preset may scale by 1/√n each."""
    if not isinstance(body, Apply) or to_text(body, powers=False) in FUSED:
        return 1 + sums_over_nodes(body.body) if isinstance(body, MarkSum) else 0
    inner = sum(sums_over_nodes(argument) for argument in body.args)
    operation = LANGUAGE[body.op]
    if not operation.multilinear:
        return inner
    sorts = tuple(argument.sort for argument in body.args)
    return inner + len(operation.contraction(sorts).summed)


def contraction(op: str, sorts: tuple[Sort, ...]) -> Callable[..., Tensor]:
    """The tensor op of any multilinear operation: its operands, then the column of ones, `1`.

    A letter only the result has runs along the ones, so padding stays zero.
    """
    operation = LANGUAGE[op]
    if not operation.multilinear:
        raise LoweringError(f"{operation.symbol} has no tensor op: it is not multilinear")
    written = operation.contraction(sorts)
    more = (*written.fresh,) if written.inputs or written.fresh else ("",)
    whole = Contraction((*written.inputs, *more), written.output)
    inputs, steps, output = whole.inputs, whole.steps, whole.output  # outside what is compiled

    def compute(*operands: Tensor) -> Tensor:
        *given, ones = operands
        rest = [ones if letter else torch.ones_like(ones[:, 0]) for letter in more]
        return ops.contracted([*given, *rest], inputs, steps, output)

    return compute


def _lower(term: Term, next_operand: Callable[[], int]) -> Lowered:
    return lower_node(term, next_operand, lambda part: _lower(part, next_operand))


def lower_node(
    term: Term, next_operand: Callable[[], int], lowered: Callable[[Term], Lowered]
) -> Lowered:
    """The function of a term, from those of its parts.

    `next_operand` gives the place of a variable's operand, asked in the order of writing.
    """
    match term:
        case Hole():
            position = next_operand()
            return lambda x, c: x[position]
        case Leaf(name=name):
            return lambda x, c: c[name]
        case MarkSum(mark=mark, body=body):
            summed = lowered(body)
            return lambda x, c: _over_marks(summed, mark, x, c)
        case Number(value=value):
            number = float(value)
            return lambda x, c: torch.full_like(c["1"][:, 0], number)
        case Apply(function=function, args=(argument,), sort=sort) if function:
            inner = lowered(argument)
            apply = ops.FUNCTIONS[function]
            return lambda x, c: _masked(apply(inner(x, c)), sort, c)
        case Apply(op=op, args=args):
            sorts = tuple(argument.sort for argument in args)
            parts = [lowered(argument) for argument in args]
            if (op, sorts) in OPERATIONS:
                operation = OPERATIONS[op, sorts]
                return lambda x, c: operation(*(part(x, c) for part in parts))
            general = contraction(op, sorts)
            return lambda x, c: general(*(part(x, c) for part in parts), c["1"])
    raise AssertionError(f"no tensor op for {term!r}")


def _masked(value: Tensor, sort: Sort, constants: Constants) -> Tensor:
    """A function may send zero elsewhere; padding stays zero."""
    ones = constants["1"]
    if sort == M:
        return value * ops.column_row(ones, ones)
    return value if sort == S else value * ones


def _over_marks(body: Lowered, mark: str, x: Sequence[Tensor], c: Constants) -> Tensor:
    """The sum of a body over marks: its value on a copy of each graph for every node, added up."""
    count, nodes = c["1"].shape[:2]
    columns = torch.eye(nodes, dtype=c["1"].dtype, device=c["1"].device).repeat(count, 1)
    copies = _OfCopies(c, nodes, {mark: columns.unsqueeze(-1)})
    value = body([operand.repeat_interleave(nodes, 0) for operand in x], copies)
    present = c["1"].reshape(count * nodes, *[1] * (value.dim() - 1))
    return (value * present).view(count, nodes, *value.shape[1:]).sum(1)


class _OfCopies(Mapping[str, Tensor]):
    """Constants of graphs as those of their copies, and the columns of the mark."""

    def __init__(self, given: Constants, nodes: int, marks: Mapping[str, Tensor]) -> None:
        self.given, self.nodes, self.marks = given, nodes, marks

    def __getitem__(self, name: str) -> Tensor:
        if name in self.marks:
            return self.marks[name]
        return self.given[name].repeat_interleave(self.nodes, 0)

    def __iter__(self) -> Iterator[str]:
        return iter({**self.marks, **dict.fromkeys(self.given)})

    def __len__(self) -> int:
        return len({*self.marks, *self.given})


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
    return _value(body, count().__next__, supports)


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
    if isinstance(term, MarkSum):
        raise LoweringError(f"{to_text(term)} needs copies of the graph")
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
