"""THE table of operations: each is one declaration, its signature in einsum style over its axes.

Typing, patterns, values, tensor ops, costs and the checker's own patterns all follow from the
signature; see `signatures`. Three kinds of operation are no contraction and say so: the sum, the
pointwise functions, and Σ, the sum over marks, which binds a name (`terms.MarkSum`).
`registry.register` adds operations to the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

from ..errors import SortError
from .signatures import Contraction, Signature
from .sorts import M, R, S, Sort, V

Kind = Literal["multilinear", "sum", "pointwise", "binder"]
Notation = Literal["call", "infix", "postfix", "constant"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on tensors whose axes have size 1 or n.

    >>> from g2n2 import Operation
    >>> column = Operation("column", "column", "ij->i1", meaning="sums of rows")
    >>> column.signature, column.arity
    ('ab->a1', 1)

    Attributes:
        name: Key of the table and ASCII name.
        symbol: How it is printed; the paper's sign where there is one.
        signature: The axes of its operands and of its result, such as `ab,bc->ac`.
        aliases: Other spellings accepted.
        meaning: What it computes, for tables.
        kind: `multilinear` operations are their signature; `sum` and `pointwise` take its typing.
        shape_of: Axes of one more operand, of which only the shape is read.
        sorts: The argument sorts it is restricted to, where the signature allows more.
        paper_omits: Argument sorts the paper's grammars leave out (`typing="full"` adds them).
        notation: How it is written: `dg(X)`, unless it has a notation of its own.
    """

    name: str
    symbol: str
    signature: str
    aliases: tuple[str, ...] = ()
    meaning: str = ""
    kind: Kind = "multilinear"
    shape_of: str = ""
    sorts: tuple[Sort, ...] = ()
    paper_omits: tuple[Sort, ...] = ()
    notation: Notation = "call"

    def __post_init__(self) -> None:
        object.__setattr__(self, "signature", str(Signature.parse(self.signature)))

    def __hash__(self) -> int:
        return hash((self.name, self.signature))  # quick: it is part of many keys

    @property
    def axes(self) -> Signature:
        """The signature, read."""
        return Signature.parse(self.signature)

    @property
    def arity(self) -> int:
        """How many operands it takes."""
        return len(self._all_axes.inputs)

    @property
    def multilinear(self) -> bool:
        """Whether it is linear in each operand; only these have patterns."""
        return self.kind == "multilinear"

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names that may stand before a bracket with its operands."""
        if self.kind in ("pointwise", "binder"):
            return ()  # written with the name of a function, or of a mark
        if self.notation == "call":
            return tuple(dict.fromkeys((self.name, self.symbol, *self.aliases)))
        return (self.name, *(self.aliases if self.notation == "constant" else ()))

    @property
    def ascii_symbol(self) -> str:
        return self.symbol if self.symbol.isascii() else self.name

    def typed(self, *sorts: Sort, full: bool = True) -> Sort | None:
        """The sort of the result, or None where the operation is undefined on `sorts`."""
        if not full and sorts and all(sort in self.paper_omits for sort in sorts):
            return None
        if self.sorts and any(sort not in self.sorts for sort in sorts):
            return None
        return self._all_axes.result(sorts)

    def contraction(self, sorts: tuple[Sort, ...]) -> Contraction:
        """What it computes on operands of these sorts; multilinear operations only."""
        assert self.multilinear, f"{self.name} is no contraction"
        return self.axes.contraction(sorts)

    @property
    def _all_axes(self) -> Signature:
        """The axes with those of the operand that is read for its shape."""
        if not self.shape_of:
            return self.axes
        return Signature((*self.axes.inputs, self.shape_of), self.axes.output)


class OperationTable(MutableMapping[str, Operation]):
    """The operations by name; inside `apart` a thread has a table of its own."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._shared = {operation.name: operation for operation in operations}
        self._own: ContextVar[dict[str, Operation] | None] = ContextVar("operations", default=None)

    @property
    def _table(self) -> dict[str, Operation]:
        table = self._own.get()
        return self._shared if table is None else table

    def __getitem__(self, name: str) -> Operation:
        return self._table[name]

    def __setitem__(self, name: str, operation: Operation) -> None:
        self._table[name] = operation

    def __delitem__(self, name: str) -> None:
        del self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._table))

    def __len__(self) -> int:
        return len(self._table)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is registered or removed meanwhile is seen by this thread alone, and forgotten."""
        token = self._own.set(dict(self._table))
        try:
            yield
        finally:
            self._own.reset(token)


OPERATIONS: Final = OperationTable(
    (
        Operation(
            "matmul", "·", "ab,bc->ac", ("@", "dot", "product", "mm"), "matrix product",
            notation="infix",
        ),
        Operation(
            "transpose", "ᵀ", "ab->ba", ("^T", "'", "T"), "transpose",
            paper_omits=(S,), notation="postfix",
        ),
        Operation(
            "one", "1", "->a1", ("ones",), "column of ones",
            shape_of="ab", paper_omits=(R, S), notation="constant",
        ),
        Operation("diag", "diag", "a1->aa", (), "diagonal matrix"),
        Operation(
            "hadamard", "⊙", "ab,ab->ab", ("*", ".*", "odot"), "entrywise product",
            notation="infix",
        ),
        Operation("trace", "Tr", "aa->11", ("tr",), "trace"),
        Operation(
            "add", "+", "ab,ab->ab", ("plus", "sum"), "sum", kind="sum", notation="infix"
        ),
        Operation(
            "scale", "×", "11,ab->ab", ("x", "times"), "scalar times anything", notation="infix"
        ),
        Operation(
            "f_S", "f_S", "ab->ab", (), "function on a scalar", kind="pointwise", sorts=(S,)
        ),
        Operation(
            "f_V", "f_V", "ab->ab", (), "function on a vector", kind="pointwise", sorts=(V, R)
        ),
        Operation(
            "f_M", "f_M", "ab->ab", (), "function on a matrix", kind="pointwise", sorts=(M,)
        ),
        Operation(
            "mark_S", "Σ_S", "ab->ab", (), "scalars over marks", kind="binder", sorts=(S,)
        ),
        Operation(
            "mark_V", "Σ_V", "ab->ab", (), "vectors over marks", kind="binder", sorts=(V, R)
        ),
        Operation(
            "mark_M", "Σ_M", "ab->ab", (), "matrices over marks", kind="binder", sorts=(M,)
        ),
    )
)  # fmt: skip

BUILT_IN: Final = tuple(OPERATIONS)
"""The names of the operations that are there before any is registered."""

POINTWISE: Final = ("f_S", "f_V", "f_M")
BINDERS: Final = ("mark_S", "mark_V", "mark_M")

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
    for name in POINTWISE:
        if OPERATIONS[name].typed(sort) is not None:
            return name
    raise SortError(f"functions act on scalars, vectors and matrices, not on {sort.english}")


def binder(sort: Sort) -> str:
    """The operation Σ on a sort: mark_S, mark_V or mark_M."""
    return next(name for name in BINDERS if sort.plain in OPERATIONS[name].sorts)


def registered_operations() -> tuple[Operation, ...]:
    """The operations that were registered, in this order."""
    return tuple(list(OPERATIONS.values())[len(BUILT_IN) :])
