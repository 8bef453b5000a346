"""Random grammars with sentences, from a seed: some variables, some rules, some read-outs."""

from __future__ import annotations

from random import Random

from g2n2.errors import GrammarError
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.language.sorts import M, R, S, Sort, V
from g2n2.language.terms import HOLLOW, IDENTITY, ONE, A, Hole, Term, holes
from strategies import Vocabulary, random_term

OPERATIONS = frozenset(("matmul", "transpose", "diag", "hadamard", "trace"))
VARIABLES = ((M,), (V,), (M, V), (M, V), (M, V), (M, V, R), (V, R), (M, V, S), (M, R))
MOST_OPERANDS = 3


def random_grammar(seed: int) -> Grammar:
    """A grammar that compiles: at least one of M and V, terminals for each variable, sentences."""
    rng = Random(seed)
    while True:
        try:
            grammar = _attempt(rng, f"random {seed}")
        except GrammarError:
            continue
        if not grammar.unreachable():
            return grammar


def _attempt(rng: Random, name: str) -> Grammar:
    sorts = rng.choice(VARIABLES)
    constants = rng.choice(([A, ONE], [A, ONE], [A, ONE, IDENTITY], [A, ONE, HOLLOW]))
    rules = [Rule(sort, _terminal(rng, sort, constants)) for sort in sorts if sort != S]
    for sort in sorts:
        rules += [Rule(sort, _body(rng, sort, sorts, constants)) for _ in range(rng.randint(1, 3))]
    if S not in sorts:
        rules += [Rule(S, _body(rng, S, sorts, constants)) for _ in range(rng.randint(1, 2))]
    grammar = Grammar.of(rules, name, default_readout=False)
    grammar.check()
    return grammar


def _terminal(rng: Random, sort: Sort, constants: list[Term]) -> Term:
    words = Vocabulary(OPERATIONS, tuple(constants))
    if sort == M and rng.random() < 0.8:
        return A
    if sort == V and rng.random() < 0.8:
        return ONE
    return random_term(rng, sort, rng.randint(0, 2), words)


def _body(rng: Random, sort: Sort, sorts: tuple[Sort, ...], constants: list[Term]) -> Term:
    words = Vocabulary(OPERATIONS, (*(Hole(s) for s in sorts for _ in (0, 1)), *constants))
    while True:
        body = random_term(rng, sort, rng.randint(1, 4), words)
        if 1 <= len(holes(body)) <= MOST_OPERANDS and not isinstance(body, Hole):
            return body
