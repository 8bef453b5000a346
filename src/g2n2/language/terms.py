"""Terms: frozen, typed trees over leaves, numbers, grammar variables and operations.

Leaf    A, the ones vector 1, I, J, a free variable such as M or v, a support such as C_1
Number  an exact rational, the left operand of ×
Hole    a grammar variable (S, V_c, V_r, M): every occurrence is a slot of its own
Apply   an operation on terms; a pointwise operator also names its function
MarkSum Σv. e, the sum of e over the canonical columns v = e₁ … e_n; `v` in e is the bound mark
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

from ..errors import GrammarError, SortError
from .operations import BINDERS, FUNCTIONS, OPERATIONS, binder, pointwise
from .sorts import M, R, S, Sort, V

MAX_DEPTH = 200
MAX_SIZE = 2000


class Term:
    """Base of the four kinds of term; `sort` and `depth` are known to all of them."""

    __slots__ = ()
    sort: Sort
    depth: int
    size: int
    operations: int

    def __str__(self) -> str:
        from .printing import to_text

        return to_text(self)

    def _repr_latex_(self) -> str:
        from .printing import to_latex

        return f"${to_latex(self)}$"

    @property
    def T(self) -> Term:
        return apply("transpose", self)

    def __matmul__(self, other: Term) -> Term:
        return apply("matmul", self, other)

    def __mul__(self, other: Term) -> Term:
        return apply("scale" if self.sort == S else "hadamard", self, other)

    def __rmul__(self, number: int | float | Fraction) -> Term:
        return apply("scale", Number(Fraction(number)), self)

    def __add__(self, other: Term) -> Term:
        return apply("add", self, other)

    def __sub__(self, other: Term) -> Term:
        return apply("add", self, -1 * other)


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Term):
    """A named value: `A`, `1`, `I`, `J`, a free variable or a support."""

    name: str
    sort: Sort
    depth: int = field(default=0, init=False, compare=False)
    size: int = field(default=1, init=False, compare=False)
    operations: int = field(default=0, init=False, compare=False)

    def __repr__(self) -> str:
        return f"Leaf({self.name!r}, {self.sort.letter})"


@dataclass(frozen=True, slots=True, repr=False)
class Number(Term):
    """An exact scalar constant."""

    value: Fraction
    sort: Sort = field(default=S, init=False, compare=False)
    depth: int = field(default=0, init=False, compare=False)
    size: int = field(default=1, init=False, compare=False)
    operations: int = field(default=0, init=False, compare=False)

    def __repr__(self) -> str:
        return f"Number({self.value})"


@dataclass(frozen=True, slots=True, repr=False)
class Hole(Term):
    """A grammar variable in the body of a rule; `scope` is how many marks its words may use."""

    sort: Sort
    scope: int = field(default=0, init=False)
    depth: int = field(default=0, init=False, compare=False)
    size: int = field(default=1, init=False, compare=False)
    operations: int = field(default=0, init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", self.sort.scope)
        object.__setattr__(self, "sort", self.sort.plain)

    @property
    def variable(self) -> Sort:
        """The variable: its sort with its scope."""
        return self.sort.within(self.scope)

    def __repr__(self) -> str:
        return f"Hole({self.variable.letter})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Apply(Term):
    """An operation on terms. Build it with `apply` or `call`, which check the sorts."""

    op: str
    args: tuple[Term, ...]
    sort: Sort
    function: str = ""
    depth: int = field(init=False)
    size: int = field(init=False)
    operations: int = field(init=False)
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        fill = object.__setattr__
        fill(self, "depth", 1 + max((arg.depth for arg in self.args), default=0))
        fill(self, "size", 1 + sum(arg.size for arg in self.args))
        fill(self, "operations", 1 + sum(arg.operations for arg in self.args))
        fill(self, "_hash", hash((self.op, self.function, self.args)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Apply], tuple[object, ...]]:
        """Built anew where it is unpickled: another process hashes strings otherwise."""
        return Apply, (self.op, self.args, self.sort, self.function)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Apply)
            and self._hash == other._hash
            and self.sort == other.sort
            and (self.op, self.function, self.args) == (other.op, other.function, other.args)
        )

    def __repr__(self) -> str:
        return f"Apply({self.function or self.op}, {', '.join(map(repr, self.args))})"


@dataclass(frozen=True, slots=True, repr=False)
class MarkSum(Term):
    """`Σv. e`: the sum of `e` over v = e₁ … e_n; leaves called `v` in `e` are this mark."""

    mark: str
    body: Term
    sort: Sort = field(init=False, compare=False)
    depth: int = field(init=False, compare=False)
    size: int = field(init=False, compare=False)
    operations: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        fill = object.__setattr__
        fill(self, "sort", self.body.sort)
        fill(self, "depth", 1 + self.body.depth)
        fill(self, "size", 1 + self.body.size)
        fill(self, "operations", 1 + self.body.operations)
        _within_limits(self)

    def __repr__(self) -> str:
        return f"MarkSum({self.mark!r}, {self.body!r})"


A = Leaf("A", M)
ONE = Leaf("1", V)
IDENTITY = Leaf("I", M)
HOLLOW = Leaf("J", M)
"""J of the paper's 2-IGN: 1·1ᵀ − I, ones off the diagonal."""
DISTANCES = Leaf("D", M)
"""Squared distances between nodes that have positions; rules may name it, terms of A may not."""

FREE_VARIABLES: dict[str, Leaf] = {
    **{name: Leaf(name, M) for name in "MNP"},
    **{name: Leaf(name, V) for name in "uvw"},
    "r": Leaf("r", R),
}

MARKS = "uvwxyz"
"""The names a mark may have; inside its scope a name means the mark, not a free variable."""


def mark_sum(mark: str, body: Term) -> Term:
    """`Σmark. body`.

    >>> print(mark_sum("v", Leaf("v", V).T @ A @ Leaf("v", V)))
    Σv. vᵀAv

    Raises:
        GrammarError: The mark's name is not a letter from u to z.
    """
    if len(mark) != 1 or mark not in MARKS:
        raise GrammarError(f"a mark is called by one letter from u to z, got {mark!r}")
    return MarkSum(mark, body)


def apply(op: str, *args: Term) -> Term:
    """Apply an operation of the table, checking sorts."""
    if op not in OPERATIONS or op in BINDERS:
        raise GrammarError(f"no operation is called {op!r}; known: {', '.join(OPERATIONS)}")
    operation = OPERATIONS[op]
    sort = operation.typed(*(arg.sort for arg in args))
    if sort is None:
        raise SortError(_explain(op, args))
    if operation.shape_of:  # its value depends on the sort alone, so it is a leaf
        return ONE if sort == V else Number(Fraction(1))
    term = Apply(op, args, sort)
    _within_limits(term)
    return term


def call(function: str, argument: Term) -> Term:
    """Apply a named pointwise function."""
    if function not in FUNCTIONS:
        raise SortError(f"unknown function {function!r}; known: {', '.join(FUNCTIONS)}")
    term = Apply(pointwise(argument.sort), (argument,), argument.sort, function)
    _within_limits(term)
    return term


def power(base: Term, exponent: int) -> Term:
    """`base` times itself, as a chain of matrix products."""
    return reduce(lambda left, _: apply("matmul", left, base), range(exponent - 1), base)


def subterms(term: Term) -> Iterator[Term]:
    """All subterms, the term itself first, arguments left to right."""
    yield term
    if isinstance(term, Apply):
        for arg in term.args:
            yield from subterms(arg)
    elif isinstance(term, MarkSum):
        yield from subterms(term.body)


def holes(term: Term) -> tuple[Sort, ...]:
    """The grammar variables in a rule body, left to right."""
    return tuple(t.variable for t in subterms(term) if isinstance(t, Hole))


def leaves(term: Term) -> tuple[Leaf, ...]:
    """The named leaves of a term, left to right, without bound marks."""
    match term:
        case Leaf():
            return (term,)
        case Apply(args=args):
            return tuple(leaf for arg in args for leaf in leaves(arg))
        case MarkSum(mark=mark, body=body):
            return tuple(leaf for leaf in leaves(body) if leaf.name != mark)
    return ()


def operators(term: Term) -> frozenset[str]:
    """The operations a term uses; the leaf `1` counts as `one`, I as its diag, J as both and +."""
    used = {t.op for t in subterms(term) if isinstance(t, Apply)}
    used |= {binder(t.sort) for t in subterms(term) if isinstance(t, MarkSum)}
    names = {leaf.name for leaf in leaves(term)}
    if names & {"1", "I", "J"}:
        used.add("one")
    if names & {"I", "J"}:
        used.add("diag")
    if "J" in names:
        used |= {"matmul", "transpose", "add", "scale"}
    return frozenset(used)


def multilinear(term: Term) -> bool:
    """Whether a term has one pattern: no sum, no number, no pointwise function, no J."""
    if isinstance(term, Apply):
        return OPERATIONS[term.op].multilinear and all(map(multilinear, term.args))
    if isinstance(term, MarkSum):
        return multilinear(term.body)
    return not (isinstance(term, Number) and term.value != 1) and term != HOLLOW


def combination(term: Term) -> list[tuple[Fraction, Term]]:
    """A term as multiples of others."""
    match term:
        case Apply(op="add", args=args):
            return [part for arg in args for part in combination(arg)]
        case Apply(op="scale", args=(Number(value=value), inner)):
            return [(value * factor, part) for factor, part in combination(inner)]
    return [(Fraction(1), term)]


def has_mark_sum(term: Term) -> bool:
    """Whether a term sums over marks anywhere."""
    return any(isinstance(part, MarkSum) for part in subterms(term))


def operation_count(term: Term) -> int:
    """How many operations a term applies: the size used by word enumeration."""
    return term.operations


def fill(body: Term, fillings: list[Term]) -> Term:
    """Replace the holes of a rule body, left to right; consumes `fillings` from the front."""
    if isinstance(body, Hole):
        filling = fillings.pop(0)
        if filling.sort != body.sort:
            raise SortError(f"{filling} is {filling.sort.english}, not {body.sort.english}")
        return filling
    if isinstance(body, Apply):
        args = tuple(fill(arg, fillings) for arg in body.args)
        return Apply(body.op, args, body.sort, body.function)
    if isinstance(body, MarkSum):
        return MarkSum(body.mark, fill(body.body, fillings))
    return body


def substitute(term: Term, values: dict[str, Term]) -> Term:
    """Replace named leaves, for instance a support by its definition.

    A sum over a mark that would capture one in what is put in gets another letter.

    >>> print(substitute(mark_sum("v", Leaf("w", V).T @ Leaf("v", V)), {"w": Leaf("v", V)}))
    Σu. vᵀu
    """
    if isinstance(term, Leaf):
        return values.get(term.name, term)
    if isinstance(term, Apply):
        args = tuple(substitute(arg, values) for arg in term.args)
        return term if args == term.args else Apply(term.op, args, term.sort, term.function)
    if isinstance(term, MarkSum):
        mark, names = term.mark, {leaf.name for leaf in leaves(term)}
        values = {name: value for name, value in values.items() if name in names}
        names.update(leaf.name for value in values.values() for leaf in leaves(value))
        if mark in names:
            others = [letter for letter in MARKS if letter not in names]
            if not others:
                raise GrammarError(f"the six letters of marks are taken in {term}")
            values[mark] = Leaf(others[0], V)
            mark = others[0]
        return MarkSum(mark, substitute(term.body, values)) if values else term
    return term


def _within_limits(term: Apply | MarkSum) -> None:
    if term.depth > MAX_DEPTH or term.size > MAX_SIZE:
        raise SortError(
            f"the term is too large: depth {term.depth} (limit {MAX_DEPTH}), "
            f"{term.size} nodes (limit {MAX_SIZE}); name parts of it and evaluate them apart"
        )


def _explain(op: str, args: tuple[Term, ...]) -> str:
    """Say in the user's notation why the operation is undefined, and what would do."""
    operation = OPERATIONS[op]
    symbol = operation.symbol
    if len(args) != operation.arity:
        return f"{symbol} takes {operation.arity} operands, got {len(args)}"
    shown = " and ".join(f"{_short(arg)} is {arg.sort.english} {arg.sort}" for arg in args)
    advice = {
        "matmul": "the inner sizes must agree; for a scalar write ×",
        "hadamard": "both sides must have the same sort",
        "add": "both sides must have the same sort",
        "diag": "diag takes a column vector or a scalar; transpose a row first",
        "trace": "Tr takes a matrix",
        "scale": "the left side of × must be a scalar; the number one is written 1.0",
    }.get(op, f"its signature is {operation.signature}, a letter being one size throughout")
    return f"{symbol} is not defined here: {shown}; {advice}"


def _short(term: Term) -> str:
    text = str(term)
    return text if len(text) <= 40 else text[:37] + "…"
