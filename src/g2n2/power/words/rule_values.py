"""Values of rule bodies on stacks of equal-sized graphs, modulo a prime, and their pull-back.

A batch of words of one sort is an array `[K, g, rows, columns]`: K words on g graphs. Every body is
linear in each of its variables (affine if it holds a sum), so a functional of its value is one of
each variable with the others held fixed: that is the pull-back.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from g2n2.graphs import Adjacency
from g2n2.language.sorts import S, Sort
from g2n2.language.terms import Apply, Hole, Leaf, Number, Term, holes
from g2n2.power.words.modular import Residues, product, reduced, residue_matrix

Supports = Sequence[tuple[str, Term]]


class Stack:
    """Some graphs of equal size, and what the leaves of a grammar are worth on them.

    Args:
        graphs: Adjacency matrices of one size.
        supports: Definitions of the matrices a grammar names besides A.
        prime: The modulus.
    """

    def __init__(self, graphs: Sequence[Adjacency], supports: Supports, prime: int) -> None:
        self.prime, self.count, self.nodes = prime, len(graphs), len(graphs[0])
        matrices = [residue_matrix(graph, prime, "A") for graph in graphs]
        self.matrices: dict[str, Residues] = {"A": np.stack(matrices)[None]}
        for name, definition in supports:
            self.matrices[name] = self.values(definition, ())

    def shape(self, sort: Sort) -> tuple[int, int, int]:
        """The shape `[g, rows, columns]` of one word of a sort on all graphs."""
        rows, columns = (self.nodes if axis == "n" else 1 for axis in sort.axes)
        return self.count, rows, columns

    def values(self, body: Term, arguments: Sequence[Residues]) -> Residues:
        """Evaluate a body whose variables, left to right, have the given values."""
        value = self._value(body, iter(arguments))
        words = max((len(argument) for argument in arguments), default=1)
        return np.broadcast_to(value, (words, *self.shape(body.sort)))

    def _value(self, term: Term, arguments: Iterator[Residues]) -> Residues:
        match term:
            case Hole():
                return next(arguments)
            case Leaf(name=name):
                return self._leaf(name)
            case Number(value=value):
                number = value.numerator * pow(value.denominator, -1, self.prime) % self.prime
                return np.full((1, 1, 1, 1), float(number))
            case Apply(op=op, args=(a, b)):
                # In this order: the variables are consumed left to right.
                x, y = self._value(a, arguments), self._value(b, arguments)
                if op == "matmul":
                    return product(x, y, self.prime)
                return reduced(x + y if op == "add" else x * y, self.prime)
            case Apply(op=op, args=(a,)):
                return self._unary(op, a.sort, self._value(a, arguments))
        raise AssertionError(f"no value for {term!r}")

    def _leaf(self, name: str) -> Residues:
        if name == "1":
            return np.ones((1, 1, self.nodes, 1))
        if name in self.matrices:
            return self.matrices[name]
        diagonal = np.eye(self.nodes)[None, None]  # made anew: cheap beside any product
        return diagonal if name == "I" else 1.0 - diagonal

    def _unary(self, op: str, sort: Sort, x: Residues) -> Residues:
        if op == "transpose":
            return np.swapaxes(x, -1, -2)
        if sort == S:  # diag and Tr of a scalar
            return x
        if op == "diag":
            return x * np.eye(self.nodes)
        assert op == "trace", op
        return reduced(np.einsum("...ii->...", x)[..., None, None], self.prime)

    def pull_back(
        self, body: Term, arguments: Sequence[Residues], dual: Residues, target: int
    ) -> Residues:
        """Turn a functional of the body's value into one of its variable number `target`.

        Args:
            body: A rule body.
            arguments: Values of its variables, one word each: `[1, g, rows, columns]`.
            dual: The functional, as the array its argument is multiplied with entry by entry.
            target: Which variable, counted left to right.
        """
        match body:
            case Hole():
                return dual
            case Apply(op=op, args=(a, b)):
                split = len(holes(a))
                first, second = arguments[:split], arguments[split:]
                if target < split:
                    other = self._value(b, iter(second))
                    return self.pull_back(a, first, self._left(op, dual, other), target)
                other = self._value(a, iter(first))
                return self.pull_back(b, second, self._right(op, dual, other), target - split)
            case Apply(op=op, args=(a,)):
                return self.pull_back(a, arguments, self._unary_dual(op, a.sort, dual), target)
        raise AssertionError(f"no variable in {body!r}")

    def _left(self, op: str, dual: Residues, right: Residues) -> Residues:
        """The functional of the left operand."""
        if op == "matmul":
            return product(dual, np.swapaxes(right, -1, -2), self.prime)
        if op == "scale":
            both = reduced(dual * right, self.prime)
            return reduced(both.sum(axis=(-1, -2), keepdims=True), self.prime)
        return dual if op == "add" else reduced(dual * right, self.prime)

    def _right(self, op: str, dual: Residues, left: Residues) -> Residues:
        """The functional of the right operand."""
        if op == "matmul":
            return product(np.swapaxes(left, -1, -2), dual, self.prime)
        return dual if op == "add" else reduced(dual * left, self.prime)

    def _unary_dual(self, op: str, sort: Sort, dual: Residues) -> Residues:
        if op == "transpose":
            return np.swapaxes(dual, -1, -2)
        if sort == S:
            return dual
        if op == "diag":
            diagonal: Residues = np.einsum("...ii->...i", dual)
            return diagonal[..., None]
        assert op == "trace", op
        return dual * np.eye(self.nodes)


def pairing(dual: Residues, values: Residues, prime: int) -> Residues:
    """Apply a functional `[1, g, r, c]` to words `[K, g, r, c]`: one number per word, `[K]`."""
    return product(values.reshape(len(values), dual.size), dual.reshape(-1, 1), prime)[:, 0]
