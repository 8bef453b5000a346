"""Constants of a rule body as residues: adjacency matrices, supports, and functions of them.

A float64 is a rational number whose denominator is a power of two, so it has an exact residue.
`inv` is exact in the field. `sqrt` is exact in a field that holds the square roots of the primes it
needs, chosen one by one and multiplied out, so that √2·√3 = √6 there too. `relu` and `abs` of
rational numbers are exact. Any other function becomes a random number for each of its values, which
is what a function that nothing is known of can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, GrammarError
from ..graphs import Adjacency
from ..language.evaluation import evaluate as evaluate_float
from ..language.modular import PRIMES, Residues, reduced
from ..language.pattern_values import evaluate
from ..language.patterns import normal_form
from ..language.terms import DISTANCES, Apply, Leaf, Term, leaves, substitute, subterms

EXACT_FUNCTIONS = frozenset(("inv", "sqrt", "relu", "abs"))
FIELD_BITS = 26
LARGEST_DENOMINATOR = 10_000


def residues(values: NDArray[np.float64], prime: int) -> Residues:
    """Exact residues of float64 numbers."""
    if (values == np.rint(values)).all() and (np.abs(values) <= 2**53).all():
        return np.remainder(values, prime)
    distinct, where = np.unique(values, return_inverse=True)
    ratios = [float(value).as_integer_ratio() for value in distinct]
    table = np.array([float(a * pow(b, -1, prime) % prime) for a, b in ratios])
    return table[where.reshape(values.shape)]


def lifted(values: Residues, nodes: int, marks: int) -> Residues:
    """Values `[draws, graphs, …]` of graphs as those of the graphs with so many more marks."""
    return values if marks <= 0 else np.repeat(values, nodes**marks, axis=1)


def inverses(values: Residues, prime: int) -> Residues:
    """Inverses in the field, 0 where the value is 0."""
    result, power, exponent = np.ones_like(values), values, prime - 2
    while exponent:
        if exponent & 1:
            result = reduced(result * power, prime)
        exponent >>= 1
        power = reduced(power * power, prime)
    return np.where(values == 0, 0.0, result)


def applied_functions(terms: Iterable[Term]) -> frozenset[str]:
    """The functions that terms apply."""
    return frozenset(
        part.function
        for term in terms
        for part in subterms(term)
        if isinstance(part, Apply) and part.function
    )


class Constants:
    """Values of constant terms on stacks `[graphs, n, n]` of graphs, modulo each of two primes.

    The primes depend on `terms`, the constant terms that apply a function. `supports` defines
    matrices a grammar names besides A, `given` has per stack the values of those it leaves
    undefined.
    """

    def __init__(
        self,
        stacks: Sequence[Adjacency],
        supports: Mapping[str, Term],
        given: Sequence[Mapping[str, NDArray[np.float64]]],
        terms: Iterable[Term],
        rng: np.random.Generator,
    ) -> None:
        self.stacks, self.given, self.supports = stacks, given, supports
        self.rng = rng
        self.random_values: dict[tuple[str, float, int], float] = {}
        written = [substitute(term, dict(supports)) for term in (*terms, *supports.values())]
        self.primes = self._primes(written)
        self.matrices: list[dict[str, list[Residues]]] = []
        for number, stack in enumerate(stacks):
            values = {"A": stack, **given[number]}
            self.matrices.append(
                {
                    name: [residues(value, prime)[None] for prime in self.primes]
                    for name, value in values.items()
                }
            )
        for name, definition in supports.items():
            for number in range(len(stacks)):
                self.matrices[number][name] = [
                    self.value(definition, number, field) for field in range(len(self.primes))
                ]

    def labels(self, stack: int, field: int, marks: Sequence[str] = ()) -> dict[str, Residues]:
        """The value of each named matrix on one stack, modulo one of the primes, and of each mark.

        Inside marks a graph stands there once for each choice of them, next to each other.
        """
        values = {name: of_field[field] for name, of_field in self.matrices[stack].items()}
        graphs, nodes = self.stacks[stack].shape[:2]
        if marks:
            values = {name: lifted(v, nodes, len(marks)) for name, v in values.items()}
        for at, mark in enumerate(marks):
            columns = np.repeat(np.eye(nodes), nodes ** (len(marks) - 1 - at), axis=0)
            values[mark] = np.tile(columns, (graphs * nodes**at, 1))[None]
        return values

    def value(self, term: Term, stack: int, field: int, marks: Sequence[str] = ()) -> Residues:
        """A term without grammar variables inside marks, `[1, graphs] + [n] * axes`."""
        graphs, nodes = self.stacks[stack].shape[:2]
        graphs *= nodes ** len(marks)
        prime = self.primes[field]
        values = self.labels(stack, field, marks)
        outer = self._without_functions(term, stack, field, values)
        form = tuple(normal_form(outer, "none").items())
        return evaluate(form, term.sort.boundary, values, nodes, graphs, prime)

    def _without_functions(
        self, term: Term, stack: int, field: int, values: dict[str, Residues]
    ) -> Term:
        """The term with every function's value as a named leaf, whose value is added."""
        if not isinstance(term, Apply):
            return term
        if term.function:
            name = f"{term.function}#{len(values)}"
            values[name] = self._function(term, stack, field)
            return Leaf(name, term.sort)
        args = tuple(self._without_functions(arg, stack, field, values) for arg in term.args)
        return Apply(term.op, args, term.sort)

    def _function(self, term: Apply, stack: int, field: int) -> Residues:
        prime = self.primes[field]
        if term.function == "inv":
            return inverses(self.value(term.args[0], stack, field), prime)
        argument = self._floats(term.args[0], stack)
        distinct, where = np.unique(argument, return_inverse=True)
        table = [self._number(term.function, float(value), prime) for value in distinct]
        return np.array(table)[where.reshape(argument.shape)][None]

    def _number(self, function: str, value: float, prime: int) -> float:
        if function == "sqrt":
            return float(_square_root(_rational(value), prime))
        if function in ("relu", "abs"):
            kept = max(value, 0.0) if function == "relu" else abs(value)
            return float(residues(np.array(kept), prime))
        key = function, round(value, 9), prime
        if key not in self.random_values:
            self.random_values[key] = float(self.rng.integers(0, prime))
        return self.random_values[key]

    def _floats(self, term: Term, stack: int) -> NDArray[np.float64]:
        """A constant term in float64, `[graphs] + [n] * axes`."""
        written = substitute(term, dict(self.supports))
        parts = []
        for index, matrix in enumerate(self.stacks[stack]):
            given = {name: values[index] for name, values in self.given[stack].items()}
            value = evaluate_float(written, matrix, given)
            parts.append(value.reshape((len(matrix),) * written.sort.boundary))
        return np.stack(parts)

    def _primes(self, terms: Sequence[Term]) -> tuple[int, int]:
        needed: set[int] = set()
        for term in terms:
            for part in subterms(term):
                if isinstance(part, Apply) and part.function == "sqrt":
                    for stack in range(len(self.stacks)):
                        for value in np.unique(self._floats(part.args[0], stack)):
                            needed |= _odd_primes(_rational(float(value)))
        return PRIMES[:2] if not needed else primes_with_roots(frozenset(needed))


def check_supports(
    bodies: Iterable[Term],
    supports: Mapping[str, Term],
    given: Iterable[str],
    marks: Iterable[str] = (),
) -> None:
    """Refuse a matrix that has no value."""
    defined = {"A", "1", "I", "J", *supports, *given, *marks}
    for body in bodies:
        for leaf in leaves(body):
            if leaf == DISTANCES and leaf.name not in defined:
                raise GrammarError(
                    "D, the squared distances between nodes, is no word of A: give its values "
                    "with supports=, or leave out the rules that name it"
                )
            if leaf.name not in defined:
                raise GrammarError(
                    f"the support {leaf.name} has no definition; add a line such as "
                    f"{leaf.name} = A, or give its values with supports="
                )


def _rational(value: float) -> Fraction:
    """The rational number, 0 or more, of which a root is taken."""
    near = Fraction(max(value, 0.0)).limit_denominator(LARGEST_DENOMINATOR)
    if abs(float(near) - max(value, 0.0)) > 1e-12 * max(1.0, value):
        raise DataError(
            f"sqrt({value!r}) has no exact value here: its argument is no fraction with a "
            f"denominator up to {LARGEST_DENOMINATOR:,}; define the support without the root"
        )
    return near


def _factors(number: int) -> Counter[int]:
    powers: Counter[int] = Counter()
    divisor = 2
    while number > 1:
        divisor = number if divisor * divisor > number else divisor
        while number % divisor == 0:
            powers[divisor] += 1
            number //= divisor
        divisor += 1
    return powers


def _odd_primes(value: Fraction) -> set[int]:
    """The primes that divide a number an odd number of times."""
    product = value.numerator * value.denominator
    return {q for q, power in _factors(product).items() if power % 2} if product else set()


def _square_root(value: Fraction, prime: int) -> int:
    """The root of a rational number: a product of the chosen roots of its primes."""
    if not value:
        return 0
    root = pow(value.denominator, -1, prime)
    for q, power in _factors(value.numerator * value.denominator).items():
        root = root * pow(q, power // 2, prime) % prime
        if power % 2:
            root = root * _prime_root(q, prime) % prime
    return root


@cache
def _prime_root(q: int, prime: int) -> int:
    """A square root of q modulo a prime of the form 4k + 3 of which q is a square."""
    return pow(q, (prime + 1) // 4, prime)


@cache
def primes_with_roots(needed: frozenset[int]) -> tuple[int, int]:
    """The two largest primes below 2 ** 26, of the form 4k + 3, modulo which all are squares."""
    limit = 2**FIELD_BITS
    sieve = np.ones(limit, dtype=np.bool_)
    sieve[:2] = False
    for divisor in range(2, 2 ** (FIELD_BITS // 2)):
        if sieve[divisor]:
            sieve[divisor * divisor :: divisor] = False
    candidates = np.flatnonzero(sieve)
    candidates = candidates[(candidates > limit // 4) & (candidates % 4 == 3)]
    for q in sorted(needed):
        # By quadratic reciprocity whether q is a square depends on the prime modulo 4q only.
        rest = candidates % (4 * q)
        first = {int(r): int(candidates[np.flatnonzero(rest == r)[0]]) for r in np.unique(rest)}
        squares = [r for r, prime in first.items() if pow(q, (prime - 1) // 2, prime) == 1]
        candidates = candidates[np.isin(rest, squares)]
    if len(candidates) < 2:
        raise DataError(
            f"the square roots of {len(needed)} different primes are needed at once, and no small "
            "field holds them: pass graphs whose degrees have fewer prime factors, or fewer graphs"
        )
    return int(candidates[-1]), int(candidates[-2])
