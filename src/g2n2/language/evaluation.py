"""Reference semantics: the value of a term on a graph, in float64 or exactly modulo a prime.

Naive on purpose: patterns, networks and kernels are tested against this module, so it shares no
code with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError, SortError
from ..graphs import GraphLike, adjacency
from .operations import OPERATIONS
from .parsing import TERM_NAMES, TermLike, as_term
from .sorts import M, Sort
from .terms import Apply, Hole, Leaf, MarkSum, Number, Term
from .tokens import Vocabulary

Array = npt.NDArray[Any]
Function = Callable[[Array], Array]

PRIME = 2_147_483_647
"""2³¹ − 1, the modulus used where none is given."""

FUNCTION_VALUES: dict[str, Function] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "exp": np.exp,
    "log": lambda x: np.log(np.where(x > 0, x, 1.0)),
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0.0)),
    "inv": lambda x: np.where(x == 0, 0.0, 1.0 / np.where(x == 0, 1.0, x)),
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
}


def evaluate(
    term: TermLike,
    graph: GraphLike,
    variables: Mapping[str, npt.ArrayLike] | None = None,
    functions: Mapping[str, Function] | None = None,
) -> Array:
    """The value of a term on a graph, float64, with the shape its sort says.

    >>> from g2n2 import evaluate
    >>> evaluate("1ᵀA1", "C~")  # twice the edges of K4
    array([[12.]])

    Args:
        term: A term without grammar variables, or its text.
        graph: Whatever `g2n2.graphs.adjacency` takes; it is the value of `A`.
        variables: Values of the free variables (M, N, P, u, v, w, r and supports).
        functions: Meanings of pointwise functions beyond the named ones, such as `f`.
    """
    return _Float(adjacency(graph), variables, functions).value(as_term(term, _names(variables)))


def evaluate_mod(
    term: TermLike,
    graph: GraphLike,
    prime: int = PRIME,
    variables: Mapping[str, npt.ArrayLike] | None = None,
) -> Array:
    """The value of a term modulo a prime, exact, as an object array of Python integers.

    >>> from g2n2 import evaluate_mod
    >>> evaluate_mod("Tr(A⁹)", "C~", prime=7)  # closed walks of length 9 in K4: 19680
    array([[3]], dtype=object)

    Raises:
        SortError: The term applies a pointwise function, which has no value modulo a prime.
        DataError: A matrix with entries that are not integers.
    """
    return _Modular(adjacency(graph), variables, prime).value(as_term(term, _names(variables)))


def _names(variables: Mapping[str, npt.ArrayLike] | None) -> Vocabulary:
    """What the text of a term may name: the usual names, and supports that are given values."""
    supports = {name: Leaf(name, M) for name in variables or () if name not in TERM_NAMES}
    return {**TERM_NAMES, **supports}


class _Float:
    def __init__(
        self,
        matrix: Array,
        variables: Mapping[str, npt.ArrayLike] | None,
        functions: Mapping[str, Function] | None,
    ) -> None:
        self.n = matrix.shape[0]
        self.functions = {**FUNCTION_VALUES, **(functions or {})}
        self.values = {"A": self.cast("A", matrix)}
        for name, value in (variables or {}).items():
            self.values[name] = self.cast(name, np.asarray(value))

    def cast(self, name: str, value: Array) -> Array:
        return value.astype(np.float64)

    def number(self, term: Number) -> Array:
        return np.full((1, 1), float(term.value))

    def reduced(self, value: Array) -> Array:
        return value

    def function(self, name: str, value: Array) -> Array:
        if name not in self.functions:
            raise SortError(f"no meaning is given for the function {name}")
        with np.errstate(all="ignore"):  # an overflow shows as inf in the value itself
            return self.functions[name](value)

    def value(self, term: Term) -> Array:
        match term:
            case Leaf(name=name, sort=sort):
                return self.leaf(name, sort)
            case Number():
                return self.number(term)
            case Hole():
                raise SortError(f"{term} is a grammar variable; fill it with a word first")
            case Apply(op=op, args=args, function=function):
                values = [self.value(arg) for arg in args]
                if function:
                    return self.function(function, values[0])
                return self.reduced(self.operation(op, values))
            case MarkSum(mark=mark, body=body):
                return self.reduced(self.mark_sum(mark, body))
        raise AssertionError(f"no value for {term!r}")

    def mark_sum(self, mark: str, body: Term) -> Array:
        """The sum over all nodes of the body with the mark at that node."""
        outer = self.values
        total: Any = 0
        for column in np.eye(self.n, dtype=int).astype(outer["A"].dtype):
            self.values = {**outer, mark: column}
            total = total + self.value(body)
        self.values = outer
        return np.asarray(total)

    def operation(self, op: str, values: list[Array]) -> Array:
        """The short ways of numpy, and for any other operation what its signature says."""
        match op:
            case "matmul":
                return values[0] @ values[1]
            case "hadamard":
                return values[0] * values[1]
            case "add":
                return values[0] + values[1]
            case "scale":
                return np.multiply(values[0][:1, :1], values[1])
            case "transpose":
                return values[0].T
            case "diag":
                return np.diag(values[0][:, 0])
            case "trace":
                return np.array([[np.trace(values[0])]], dtype=values[0].dtype)
        if OPERATIONS[op].kind != "multilinear":
            raise SortError(f"no value is known for the operation {OPERATIONS[op].symbol}")
        return self.interpreted(OPERATIONS[op].signature, values)

    def interpreted(self, signature: str, values: list[Array]) -> Array:
        """The value a signature says: one axis for each letter, multiplied out, then summed.

        A letter is summed as soon as no operand to come, nor the result, has it.
        """
        left, output = signature.split("->")
        inputs = left.split(",") if left else []
        size = {"1": 1}
        for axes, value in zip(inputs, values, strict=True):
            size.update(zip(axes, value.shape, strict=True))
        letters = sorted({*left, *output} - {"1", ","})
        total = np.ones((1,) * len(letters), dtype=int).astype(self.values["A"].dtype)
        for number, (axes, value) in enumerate(zip(inputs, values, strict=True)):
            total = total * value[_index(letters, axes, size)]
            for axis, letter in enumerate(letters):
                if letter not in "".join(inputs[number + 1 :]) + output:
                    total = total.sum(axis=axis, keepdims=True)
        size |= {letter: self.n for letter in output if letter not in size}
        result = np.zeros([size[letter] for letter in output], dtype=int).astype(total.dtype)
        result[_index(letters, output, size)] = total
        return result

    def leaf(self, name: str, sort: Sort) -> Array:
        shape = tuple(self.n if axis == "n" else 1 for axis in sort.axes)
        dtype = self.values["A"].dtype
        if name == "1":
            return np.ones(shape, dtype=int).astype(dtype)
        if name == "I":
            return np.eye(self.n, dtype=int).astype(dtype)
        if name == "J":
            return (1 - np.eye(self.n, dtype=int)).astype(dtype)
        if name not in self.values:
            raise DataError(f"{name} has no value here; give one, or use A, 1, I and J only")
        value = self.values[name]
        if value.size != prod(shape):
            raise DataError(f"{name} has shape {value.shape}, expected {shape} for {sort.english}")
        return value.reshape(shape)


def _index(letters: list[str], axes: str, size: Mapping[str, int]) -> tuple[Array, ...]:
    """Where the entries of a value lie along all letters; a letter that stands twice runs once."""
    grid = {"1": np.zeros((1,) * len(letters), dtype=int)}
    for axis, letter in enumerate(letters):
        if letter in axes:
            shape = [size[letter] if at == axis else 1 for at in range(len(letters))]
            grid[letter] = np.arange(size[letter]).reshape(shape)
    return tuple(grid[letter] for letter in axes)


class _Modular(_Float):
    def __init__(
        self, matrix: Array, variables: Mapping[str, npt.ArrayLike] | None, prime: int
    ) -> None:
        self.prime = prime
        super().__init__(matrix, variables, None)

    def cast(self, name: str, value: Array) -> Array:
        if not np.all(value == np.rint(value.astype(np.float64))):
            raise DataError(
                f"{name} has entries that are not integers; exact arithmetic needs them"
            )
        integers = [int(x) % self.prime for x in value.ravel()]
        return np.array(integers, dtype=object).reshape(value.shape)

    def number(self, term: Number) -> Array:
        inverse = pow(term.value.denominator, -1, self.prime)
        value = np.empty((1, 1), dtype=object)
        value[0, 0] = term.value.numerator * inverse % self.prime
        return value

    def reduced(self, value: Array) -> Array:
        return value % self.prime

    def function(self, name: str, value: Array) -> Array:
        raise SortError(f"{name} has no exact value modulo a prime; evaluate it in float64")
