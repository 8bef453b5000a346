"""Whether two terms are equal, with evidence: an isomorphism of patterns, or inputs that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .evaluation import Function, evaluate, evaluate_mod
from .parsing import TermLike, as_term
from .patterns import Assumption, Combination, Pattern, normal_form
from .terms import Apply, Term, leaves, subterms

_SIZES = (1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8)
_ROUNDS = 20


@dataclass(frozen=True)
class Counterexample:
    """An input on which two terms differ."""

    matrix: npt.NDArray[Any]
    variables: dict[str, npt.NDArray[Any]]
    left: Any
    right: Any
    entry: tuple[int, ...]


@dataclass(frozen=True)
class Equality:
    """Whether two terms are equal, with the pattern argument or a counterexample."""

    equal: bool
    argument: str
    counterexample: Counterexample | None = None


def decide(left: TermLike, right: TermLike, assume: Assumption = "symmetric") -> Equality:
    """Decide equality and say why."""
    left, right = as_term(left), as_term(right)
    if left.sort != right.sort:
        return Equality(False, f"{left} is {left.sort.english}, {right} is {right.sort.english}")
    mine, theirs = normal_form(left, assume), normal_form(right, assume)
    if mine == theirs:
        return Equality(True, "both are " + describe(mine))
    example = counterexample(left, right, assume)
    argument = f"the patterns differ: {describe(mine)} against {describe(theirs)}"
    if example is None:
        argument += (
            "; no input tried tells the two apart, so they may be equal by a law of the function"
            if _functions(left) or _functions(right)
            else "; they differ on large inputs only"
        )
    return Equality(False, argument, example)


def describe(form: Combination) -> str:
    """A combination of patterns in words: vertices are a, b, c …, boundary first named."""
    if not form:
        return "zero"
    parts = []
    for pattern, coefficient in sorted(form.items(), key=lambda item: str(item[0])):
        text = _pattern_text(pattern)
        parts.append(text if coefficient == 1 else f"{coefficient} times {text}")
    return " plus ".join(parts[:4]) + (f" plus {len(parts) - 4} more" if len(parts) > 4 else "")


def _pattern_text(pattern: Pattern) -> str:
    def name(vertex: int) -> str:
        return chr(ord("a") + vertex) if pattern.vertices <= 26 else f"x{vertex}"

    edges = [f"{_label(e.label)}({','.join(name(v) for v in e.ends)})" for e in pattern.edges]
    ends = ",".join(name(v) for v in pattern.boundary)
    many = "vertex" if pattern.vertices == 1 else "vertices"
    body = " ".join(edges) if edges else "no edge"
    where = f" with boundary ({ends})" if ends else ""
    return f"[{pattern.vertices} {many}: {body}{where}]"


def _label(label: str) -> str:
    """A function's label holds its whole argument; its name is enough for a reader."""
    name, bracket, _ = label.partition("[")
    return f"{name}[…]" if bracket else label


def counterexample(left: Term, right: Term, assume: Assumption) -> Counterexample | None:
    """A small input on which the terms differ, 0/1 matrices first; None if none is found."""
    rng = np.random.default_rng(0)
    functions = _functions(left) | _functions(right)
    names = {x.name: x.sort for t in (left, right) for x in leaves(t) if x.name not in "A1IJ"}
    for attempt in range(_ROUNDS):
        for size in _SIZES:
            matrix = _matrix(rng, size, assume, weighted=attempt % 2 == 1)
            values = {
                name: rng.integers(-3, 4, tuple(size if axis == "n" else 1 for axis in sort.axes))
                for name, sort in names.items()
            }
            example = _differ(left, right, matrix, values, functions)
            if example is not None:
                return example
    return None


def _matrix(rng: np.random.Generator, n: int, assume: Assumption, weighted: bool) -> Any:
    entries = rng.integers(-2, 4, (n, n)) if weighted else rng.integers(0, 2, (n, n))
    if assume == "none":
        return entries
    entries = np.triu(entries, 1 if assume == "simple" or not weighted else 0)
    entries = entries + np.triu(entries, 1).T
    return (entries != 0).astype(int) if assume == "simple" else entries


def _functions(term: Term) -> set[str]:
    return {t.function for t in subterms(term) if isinstance(t, Apply) and t.function}


def _differ(
    left: Term, right: Term, matrix: Any, values: dict[str, Any], functions: set[str]
) -> Counterexample | None:
    if functions:
        opaque: dict[str, Function] = {"f": lambda x: x**3 - 2 * x + 5}
        a = evaluate(left, matrix, values, opaque)
        b = evaluate(right, matrix, values, opaque)
        scale = 1.0 + np.abs(a) + np.abs(b)
        with np.errstate(invalid="ignore"):
            differs = np.abs(a - b) > 1e-7 * scale
    else:
        a, b = (
            evaluate_mod(left, matrix, variables=values),
            evaluate_mod(right, matrix, variables=values),
        )
        differs = a != b
        a, b = evaluate(left, matrix, values), evaluate(right, matrix, values)
    where = np.argwhere(differs)
    if not len(where):
        return None
    entry = tuple(int(i) for i in where[0])
    return Counterexample(matrix, values, a[entry], b[entry], entry)
