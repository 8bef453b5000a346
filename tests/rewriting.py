"""Rewritings that keep the value of a term, and edits that usually do not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from g2n2.language.operations import OPERATIONS, POINTWISE
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import (
    HOLLOW,
    IDENTITY,
    ONE,
    A,
    Apply,
    Leaf,
    Number,
    Term,
    apply,
    call,
)
from strategies import NUMBERS, Vocabulary


def _is(term: Term, op: str) -> bool:
    return isinstance(term, Apply) and term.op == op


def identities(term: Term, assume: str) -> list[Term]:
    """Other terms of the same value for every A that meets `assume`, by one law at the root."""
    found: list[Term] = []
    if isinstance(term, Apply) and not term.function:
        found += _LAWS[term.op](*term.args)
    if term.sort == M:
        found += [apply("matmul", IDENTITY, term), apply("matmul", term, IDENTITY)]
        found.append(apply("hadamard", term, apply("matmul", ONE, ONE.T)))
    if term.sort == V:
        found += [apply("hadamard", ONE, term), apply("diag", term) @ ONE, IDENTITY @ term]
    if term.sort != S:
        found.append(term.T.T)
    if term == IDENTITY:
        found += [apply("diag", ONE), IDENTITY.T]
    if term == HOLLOW:
        found.append(ONE @ ONE.T - IDENTITY)
    if term == A and assume != "none":
        found += [A.T, A.T]
    if term in (A, A.T) and assume == "simple":
        found += [apply("hadamard", A, A), apply("hadamard", A, HOLLOW)]
    return found


def _product_laws(a: Term, b: Term) -> list[Term]:
    found = []
    if _is(a, "matmul"):
        found.append(a.args[0] @ (a.args[1] @ b))
    if _is(b, "matmul"):
        found.append((a @ b.args[0]) @ b.args[1])
    if _is(a, "transpose") and _is(b, "transpose") and S not in (a.sort, b.sort):
        found.append((b.args[0] @ a.args[0]).T)
    for op in ("add",):
        if _is(a, op):
            found.append(apply(op, a.args[0] @ b, a.args[1] @ b))
        if _is(b, op):
            found.append(apply(op, a @ b.args[0], a @ b.args[1]))
    if _is(a, "diag") and a.sort == M and b.sort == V:
        found.append(apply("hadamard", a.args[0], b))
    if _is(a, "diag") and a.sort == M and _is(b, "diag"):
        found.append(apply("diag", apply("hadamard", a.args[0], b.args[0])))
    if a.sort == R and b.sort == V:
        found += [b.T @ a.T, apply("trace", b @ a), ONE.T @ apply("hadamard", a.T, b)]
    if (a.sort, b.sort) == (V, S):
        found.append(apply("scale", b, a))
    if a.sort == S:
        found.append(apply("scale", a, b))
    if a.sort == V and b.sort == R:
        found.append(apply("diag", a) @ (ONE @ b))
    return found


def _hadamard_laws(a: Term, b: Term) -> list[Term]:
    found = [apply("hadamard", b, a)]
    if _is(a, "hadamard"):
        found.append(apply("hadamard", a.args[0], apply("hadamard", a.args[1], b)))
    if _is(b, "hadamard"):
        found.append(apply("hadamard", apply("hadamard", a, b.args[0]), b.args[1]))
    if _is(a, "add"):
        found.append(apply("hadamard", a.args[0], b) + apply("hadamard", a.args[1], b))
    if _is(a, "transpose") and _is(b, "transpose"):
        found.append(apply("hadamard", a.args[0], b.args[0]).T)
    if a.sort == V:
        found.append(apply("diag", a) @ b)
    if a.sort == R:
        found.append(a @ apply("diag", b.T))
    if a.sort == S:
        found.append(apply("scale", a, b))
    if a.sort == M and _is(b, "matmul") and b.args[0].sort == V and b.args[1].sort == R:
        v, r = b.args
        found.append(apply("diag", v) @ a @ apply("diag", r.T))  # Proposition 2
        if _is(a, "matmul") and a.args[0].sort == V and a.args[1].sort == R:
            left = apply("hadamard", a.args[0], v)
            found.append(left @ apply("hadamard", a.args[1], r))
    if a == IDENTITY and b.sort == M:
        found.append(apply("diag", apply("hadamard", IDENTITY, b) @ ONE))
    return found


def _transpose_laws(a: Term) -> list[Term]:
    if a.sort == S:
        return [a]
    found = []
    if _is(a, "transpose"):
        found.append(a.args[0])
    if _is(a, "matmul") and a.args[0].sort != S and a.args[1].sort != S:
        found.append(a.args[1].T @ a.args[0].T)
    if _is(a, "hadamard") or _is(a, "add"):
        assert isinstance(a, Apply)
        found.append(apply(a.op, a.args[0].T, a.args[1].T))
    if _is(a, "diag"):
        found.append(a)
    if _is(a, "scale"):
        found.append(apply("scale", a.args[0], a.args[1].T))
    if a in (IDENTITY, HOLLOW):
        found.append(a)
    return found


def _diag_laws(a: Term) -> list[Term]:
    if a.sort == S:
        return [a]
    found = [apply("hadamard", IDENTITY, a @ ONE.T)]
    if _is(a, "hadamard"):
        found.append(apply("diag", a.args[0]) @ apply("diag", a.args[1]))
    if _is(a, "add"):
        found.append(apply("diag", a.args[0]) + apply("diag", a.args[1]))
    if a == ONE:
        found.append(IDENTITY)
    return found


def _trace_laws(a: Term) -> list[Term]:
    if a.sort == S:
        return [a]
    found = [apply("trace", a.T), ONE.T @ apply("hadamard", a, IDENTITY) @ ONE]
    if _is(a, "matmul"):
        p, q = a.args
        if p.sort == M:
            found.append(apply("trace", q @ p))
            found.append(ONE.T @ apply("hadamard", p, q.T) @ ONE)
        else:
            found.append(q @ p)
    if _is(a, "diag"):
        found.append(ONE.T @ a.args[0])
    return found


def _add_laws(a: Term, b: Term) -> list[Term]:
    found = [b + a]
    if _is(a, "add"):
        found.append(a.args[0] + (a.args[1] + b))
    if _is(b, "add"):
        found.append((a + b.args[0]) + b.args[1])
    if a == b:
        found.append(2 * a)
    if _is(a, "transpose") and _is(b, "transpose"):
        found.append((a.args[0] + b.args[0]).T)
    return found


def _scale_laws(s: Term, x: Term) -> list[Term]:
    found = []
    if isinstance(s, Number) and s.value == 2:
        found.append(x + x)
    if _is(x, "add"):
        found.append(apply("scale", s, x.args[0]) + apply("scale", s, x.args[1]))
    if _is(x, "scale"):
        t, y = x.args
        found.append(apply("scale", t, apply("scale", s, y)))
    if not isinstance(s, Number):
        if x.sort == V:
            found.append(x @ s)
        if x.sort.axes[0] == "1":
            found.append(s @ x)
        if x.sort == S:
            found.append(apply("hadamard", s, x))
    return found


_LAWS: dict[str, Callable[..., list[Term]]] = {
    "matmul": _product_laws,
    "hadamard": _hadamard_laws,
    "transpose": _transpose_laws,
    "diag": _diag_laws,
    "trace": _trace_laws,
    "add": _add_laws,
    "scale": _scale_laws,
}


def places(term: Term) -> list[tuple[int, ...]]:
    """The path to every subterm."""
    found: list[tuple[int, ...]] = [()]
    if isinstance(term, Apply):
        for i, arg in enumerate(term.args):
            found += [(i, *path) for path in places(arg)]
    return found


def at(term: Term, path: tuple[int, ...]) -> Term:
    for i in path:
        assert isinstance(term, Apply)
        term = term.args[i]
    return term


def replaced(term: Term, path: tuple[int, ...], new: Term) -> Term:
    if not path:
        return new
    assert isinstance(term, Apply)
    i, *rest = path
    args = list(term.args)
    args[i] = replaced(args[i], tuple(rest), new)
    return call(term.function, args[0]) if term.function else apply(term.op, *args)


def rewritten(rng: Random, term: Term, steps: int, assume: str, largest: int = 40) -> Term:
    """The term after some valid identities at random places; never larger than `largest` nodes."""
    for _ in range(steps):
        path = rng.choice(places(term))
        if options := identities(at(term, path), assume):
            candidate = replaced(term, path, rng.choice(options))
            if candidate.size <= largest:
                term = candidate
    return term


def edited(rng: Random, term: Term, words: Vocabulary) -> Term:
    """The term with one leaf, one number or one operation changed for another of its sort."""
    for _ in range(50):
        path = rng.choice(places(term))
        old = at(term, path)
        options: list[Term] = [x for x in words.leaves if x.sort == old.sort and x != old]
        if isinstance(old, Number):
            options = [Number(v) for v in NUMBERS if v != old.value]
        elif isinstance(old, Apply) and not old.function:
            options = [arg for arg in old.args if arg.sort == old.sort]
            for op in sorted(words.operations - set(POINTWISE) - {old.op}):
                arity, sorts = OPERATIONS[op].arity, [arg.sort for arg in old.args]
                if arity == len(sorts) and OPERATIONS[op].typed(*sorts) == old.sort:
                    options.append(apply(op, *old.args))
        elif old.sort == M and isinstance(old, Leaf):
            options.append(old.T)
        if options:
            return replaced(term, path, rng.choice(options))
    return term
