"""Matching a rule's body with a term: which parts of the term its variables take.

Products are strings of factors, however they are bracketed, so A⁴ may be A²·A²; so are entrywise
products. I and diag(1) are the same. A factor Xᵀ of a body takes any run of factors, for X is then
its transpose, pushed to the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from ..language.sorts import S, Sort
from ..language.terms import ONE, Apply, Hole, Leaf, Term, apply, substitute

EYE = apply("diag", ONE)
ROW_OF_ONES = apply("transpose", ONE)
_ASSOCIATIVE = ("matmul", "hadamard")
_REMEMBERED = 20_000
"""Parts of terms remembered: all runs of a long product are asked for again and again."""


def written_out(term: Term) -> Term:
    """The term with I as diag(1)."""
    return substitute(term, {"I": EYE})


@lru_cache(maxsize=_REMEMBERED)
def spread(term: Term) -> tuple[str, tuple[Term, ...]]:
    """The associative operation a term applies and its factors; no operation and itself else."""
    if not isinstance(term, Apply) or term.op not in _ASSOCIATIVE:
        return "", (term,)
    factors: list[Term] = []
    waiting: list[Term] = [term]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Apply) and part.op == term.op:
            waiting.extend(reversed(part.args))
        else:
            factors.append(part)
    return term.op, tuple(factors)


@lru_cache(maxsize=_REMEMBERED)
def joined(op: str, run: tuple[Term, ...]) -> Term:
    """The factors as one term, nested to the left."""
    return run[0] if len(run) == 1 else apply(op, joined(op, run[:-1]), run[-1])


def run_sort(run: tuple[Term, ...]) -> Sort:
    """The sort of a product of factors, entrywise or not."""
    return Sort((run[0].sort.axes[0], run[-1].sort.axes[1]))


@lru_cache(maxsize=_REMEMBERED)
def transposed(term: Term) -> Term:
    """The transpose, pushed to the leaves."""
    if term.sort == S:
        return term
    match term:
        case Apply(op="transpose", args=(x,)):
            return x
        case Apply(op="matmul", args=(x, y)):
            return apply("matmul", transposed(y), transposed(x))
        case Apply(op="hadamard" | "add" as op, args=(x, y)):
            return apply(op, transposed(x), transposed(y))
        case Apply(op="scale", args=(s, x)):
            return apply("scale", s, transposed(x))
        case Apply(op="diag") | Leaf(name="I" | "J"):
            return term
        case Apply(op=op, args=(x,), function=function) if function:
            inner = transposed(x)
            return Apply(op, (inner,), inner.sort, function)
    return apply("transpose", term)


def instances(body: Term, term: Term) -> Iterator[tuple[Term, ...]]:
    """All ways to see a term as a rule's body: what its variables take, left to right."""
    if body.sort != term.sort:
        return
    if isinstance(body, Hole):
        yield (term,)
        return
    op, items = spread(body)
    if op:
        other, run = spread(term)
        if other == op:
            yield from _laid(op, items, run)
            if op == "hadamard" and len(run) == 2:
                yield from _laid(op, items, run[::-1])
    elif isinstance(body, Apply) and isinstance(term, Apply):
        # The network computes the opaque f of a fragment as ReLU.
        same = body.function == term.function or {body.function, term.function} == {"f", "relu"}
        if body.op == term.op and same:
            pairs = zip(body.args, term.args, strict=True)
            for parts in product(*(list(instances(b, t)) for b, t in pairs)):
                yield sum(parts, ())
    elif body == term:
        yield ()


def _laid(op: str, items: tuple[Term, ...], run: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """A variable, or its transpose, takes a run of factors, any other item one."""
    if not items:
        if not run:
            yield ()
        return
    first, rest = items[0], items[1:]
    turned = (
        isinstance(first, Apply) and first.op == "transpose" and isinstance(first.args[0], Hole)
    )
    most = len(run) - len(rest) if turned or isinstance(first, Hole) else min(1, len(run))
    for cut in range(1 if rest else max(1, len(run)), most + 1):
        if run_sort(run[:cut]) == first.sort:
            part = joined(op, run[:cut])
            ways = iter([(transposed(part),)]) if turned else instances(first, part)
            for taken in ways:
                for others in _laid(op, rest, run[cut:]):
                    yield taken + others
