"""THE table of operations: symbol, ASCII names, arity and typing rule of each.

Fragments, the parser, the printers and the exhaustive grammar all read this table, so adding an
operation starts with one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .sorts import M, R, S, Sort, V

Typing = Callable[..., Sort | None]
"""Sorts of the arguments -> sort of the result, or None where the operation is undefined."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One MATLANG operation.

    Attributes:
        name: Key of the table and ASCII name in a fragment.
        symbol: How the paper writes it.
        aliases: Other spellings accepted in a fragment.
        arity: Number of arguments.
        result: Typing rule under the full reading of MATLANG.
        paper_omits: Argument sorts the paper's grammars leave out (`typing="full"` adds them).
        meaning: What it computes, for tables.
        multilinear: Whether it is linear in each argument; only these have patterns.
    """

    name: str
    symbol: str
    aliases: tuple[str, ...]
    arity: int
    result: Typing
    meaning: str
    paper_omits: tuple[Sort, ...] = ()
    multilinear: bool = True

    def typed(self, *sorts: Sort, full: bool = True) -> Sort | None:
        """The sort of the result, or None where the operation is undefined on `sorts`."""
        if not full and sorts and all(sort in self.paper_omits for sort in sorts):
            return None
        return self.result(*sorts)


def _product(a: Sort, b: Sort) -> Sort | None:
    return Sort((a.axes[0], b.axes[1])) if a.axes[1] == b.axes[0] else None


def _same(a: Sort, b: Sort) -> Sort | None:
    return a if a == b else None


def _transposed(a: Sort) -> Sort | None:
    return Sort(a.axes[::-1])


def _diagonal(a: Sort) -> Sort | None:
    return {V: M, S: S}.get(a)


def _ones(a: Sort) -> Sort | None:
    return Sort((a.axes[0], "1"))


def _trace(a: Sort) -> Sort | None:
    return S if a in (M, S) else None


def _scaled(a: Sort, b: Sort) -> Sort | None:
    return b if a == S else None


def _only(*sorts: Sort) -> Typing:
    return lambda a: a if a in sorts else None


OPERATIONS: Final[dict[str, Operation]] = {
    op.name: op
    for op in (
        Operation("matmul", "·", ("@", "dot", "product", "mm"), 2, _product, "matrix product"),
        Operation(
            "transpose", "ᵀ", ("^T", "'", "T"), 1, _transposed, "transpose", paper_omits=(S,)
        ),
        Operation("one", "1", ("ones",), 1, _ones, "column of ones", paper_omits=(R, S)),
        Operation("diag", "diag", (), 1, _diagonal, "diagonal matrix of a column"),
        Operation("hadamard", "⊙", ("*", ".*", "odot"), 2, _same, "entrywise product"),
        Operation("trace", "Tr", ("tr",), 1, _trace, "trace"),
        Operation("add", "+", ("plus", "sum"), 2, _same, "sum"),
        Operation("scale", "×", ("x", "times"), 2, _scaled, "scalar times anything"),
        Operation("f_S", "f_S", (), 1, _only(S), "function of a scalar", multilinear=False),
        Operation("f_V", "f_V", (), 1, _only(V, R), "function of each entry", multilinear=False),
        Operation("f_M", "f_M", (), 1, _only(M), "function of each entry", multilinear=False),
    )
}

POINTWISE: Final = ("f_S", "f_V", "f_M")

FUNCTIONS: Final[dict[str, str]] = {
    "f": "any function; opaque until one is given",
    "relu": "max(x, 0)",
    "exp": "eˣ",
    "log": "ln x, and 0 where x ≤ 0",
    "sqrt": "√x, and 0 where x < 0",
    "inv": "1/x, and inv(0) = 0",
    "abs": "|x|",
    "sin": "sin x",
    "cos": "cos x",
    "tanh": "tanh x",
    "sigmoid": "1/(1 + e⁻ˣ)",
}
"""Pointwise functions by name, with the convention that makes each total on the reals."""


def pointwise(sort: Sort) -> str:
    """The pointwise operator (f_S, f_V or f_M) that acts on `sort`."""
    return next(name for name in POINTWISE if OPERATIONS[name].typed(sort) is not None)
