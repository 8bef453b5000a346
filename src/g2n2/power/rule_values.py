"""Values of rule bodies on stacks of equal-sized graphs, modulo a prime, and their pull-back.

A batch of words of one sort is an array `[K, g, rows, columns]`: K words on g graphs. Every body is
linear in each of its variables (affine if it holds a sum), so a functional of its value is one of
each variable with the others held fixed: that is the pull-back.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import GrammarError
from ..graphs import Adjacency
from ..language.operations import OPERATIONS
from ..language.signatures import Contraction
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, Leaf, Number, Term, holes, subterms
from .contractions import contracted
from .modular import Residues, product, reduced, residue_matrix

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

    def shape(self, sort: Sort) -> tuple[int, ...]:
        """The shape `[g, rows, columns]` of one word of a sort on all graphs."""
        return self.count, *self._axes(sort)

    def _axes(self, sort: Sort) -> tuple[int, ...]:
        return tuple(self.nodes if axis == "n" else 1 for axis in sort.axes)

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
            case Apply(op="add", args=(a, b)):
                # In this order: the variables are consumed left to right.
                x, y = self._value(a, arguments), self._value(b, arguments)
                return reduced(x + y, self.prime)
            case Apply(op=op, args=args) if OPERATIONS[op].multilinear:
                values = [self._value(arg, arguments) for arg in args]
                sorts = tuple(arg.sort for arg in args)
                contraction = OPERATIONS[op].contraction(sorts)
                return self._contracted(contraction, values, sorts, term.sort)
        raise GrammarError(f"{term} has no exact value: {_symbol(term)} is not multilinear")

    def _contracted(
        self,
        contraction: Contraction,
        values: Sequence[Residues],
        sorts: Sequence[Sort],
        result: Sort,
    ) -> Residues:
        """Apply a contraction, whose values have no axes of size 1, to values that have them."""
        operands = [
            x.reshape(*x.shape[:2], *(self.nodes,) * sort.boundary)
            for x, sort in zip(values, sorts, strict=True)
        ]
        made = contracted(contraction, operands, self.nodes, self.prime)
        return made.reshape(*made.shape[:2], *self._axes(result))

    def _leaf(self, name: str) -> Residues:
        if name == "1":
            return np.ones((1, 1, self.nodes, 1))
        if name in self.matrices:
            return self.matrices[name]
        diagonal = np.eye(self.nodes)[None, None]  # made anew: cheap beside any product
        return diagonal if name == "I" else 1.0 - diagonal

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
            case Apply(op=op, args=args):
                counts = [len(holes(arg)) for arg in args]
                starts = [sum(counts[:i]) for i in range(len(args))]
                at = max(i for i, start in enumerate(starts) if start <= target and counts[i])
                own = [arguments[i : i + k] for i, k in zip(starts, counts, strict=True)]
                if op != "add":
                    values = [
                        self._value(arg, iter(given))
                        for i, (arg, given) in enumerate(zip(args, own, strict=True))
                        if i != at
                    ]
                    sorts = [arg.sort for i, arg in enumerate(args) if i != at]
                    contraction = OPERATIONS[op].contraction(tuple(arg.sort for arg in args))
                    dual = self._contracted(
                        contraction.adjoint(at),
                        [*values, dual],
                        [*sorts, body.sort],
                        args[at].sort,
                    )
                return self.pull_back(args[at], own[at], dual, target - starts[at])
        raise AssertionError(f"no variable in {body!r}")


def largest_order(body: Term) -> int:
    """The most axes of size n a value has while a body is evaluated; a matrix at least."""
    orders = [
        OPERATIONS[part.op].contraction(tuple(arg.sort for arg in part.args)).peak
        for part in subterms(body)
        if isinstance(part, Apply) and OPERATIONS[part.op].multilinear
    ]
    return max(2, *orders) if orders else 2


def _symbol(term: Term) -> str:
    return OPERATIONS[term.op].symbol if isinstance(term, Apply) else str(term)


def pairing(dual: Residues, values: Residues, prime: int) -> Residues:
    """Apply a functional `[1, g, r, c]` to words `[K, g, r, c]`: one number per word, `[K]`."""
    return product(values.reshape(len(values), dual.size), dual.reshape(-1, 1), prime)[:, 0]
