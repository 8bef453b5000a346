"""Term -> combination of atoms: the rule applications that compute it in the fewest layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeGuard

from ..compiler.grammar_to_plan import steps_of
from ..compiler.inputs import InputPlan
from ..errors import LoweringError
from ..grammars.grammar import Grammar
from ..grammars.matching import (
    EYE,
    ROW_OF_ONES,
    instances,
    joined,
    run_sort,
    spread,
    transposed,
    written_out,
)
from ..grammars.rules import Rule
from ..language.operations import OPERATIONS
from ..language.printing import to_text
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import HOLLOW, ONE, Apply, Hole, Leaf, Number, Term, apply, subterms
from .atoms_to_schedule import AtomTable, Combination, combined, layer_of, work
from .piecewise_linear import is_exact

_Key = tuple[str, tuple[Term, ...]]
"""A term as `spread` gives it: how its products are bracketed cannot be seen."""


class Realiser:
    """Finds combinations of atoms for terms, sharing every atom between them.

    The options are those of `requirements`; `names` says which channel a free variable is: of the
    node features for a column (u, v, w), of the edge features for a matrix (M, N, P).
    """

    def __init__(
        self,
        grammar: Grammar,
        inputs: InputPlan,
        domain: Sequence[int] | None = None,
        names: Mapping[str, int] | None = None,
        by_rules: bool = False,
        symmetric: bool | None = None,
    ) -> None:
        self.grammar, self.domain, self.by_rules = grammar, domain, by_rules
        self.atoms = AtomTable()
        self.rules = [(rule, written_out(rule.body)) for rule in steps_of(grammar)]
        self.scalars = any(rule.head == S for rule in grammar.rules)
        self.entrywise = any(
            rule.head == V and rule.body == apply("hadamard", Hole(V), Hole(V))
            for rule in grammar.rules
        )
        self.given = self._channels(inputs, names or {})
        self.symmetric = not inputs.directed_safe if symmetric is None else symmetric
        self.combinations: dict[_Key, Combination | None] = {}

    def _channels(self, inputs: InputPlan, names: Mapping[str, int]) -> dict[_Key, Combination]:
        """The terms that channels of the first memories are worth."""
        features = {"X": "uvw", "diag(X)": "uvw", "E": "MNP"}
        terms = dict(inputs.terms)
        given: dict[_Key, Combination] = {}
        for sort, parts in inputs.parts.items():
            start = 0
            for part in parts:
                if part in terms:
                    given[spread(written_out(terms[part]))] = self.atoms.channel(sort, start)
                    start += 1
                    continue
                width = inputs.edge_features if part == "E" else inputs.node_features
                for name in features[part]:
                    if name not in names:
                        continue
                    if not 0 <= names[name] < width:
                        raise LoweringError(
                            f"{name} is channel {names[name]} of {part}, of {width}"
                        )
                    leaf = Leaf(name, M if part == "E" else V)
                    term = apply("diag", leaf) if part == "diag(X)" else leaf
                    given[spread(term)] = self.atoms.channel(sort, start + names[name])
                start += width
        return given

    def realise(self, term: Term) -> Combination | None:
        """The combination of least work that is worth the term, I written as diag(1); or None."""
        key = spread(term)
        if key not in self.combinations:
            self.combinations[key] = None
            self.combinations[key] = self._best(term)
        return self.combinations[key]

    def _best(self, term: Term) -> Combination | None:
        candidates = list(self._by_rules(term))
        if not self.by_rules or not candidates:
            candidates += self._without_rules(term)
            candidates += self._of(shorter(term, self.entrywise))
        if not candidates:
            candidates += self._of(simpler(term))
        return min(candidates, key=lambda c: work((c,)), default=None)

    def _of(self, terms: Iterator[Term]) -> Iterator[Combination]:
        for term in terms:
            if (combination := self.realise(term)) is not None:
                yield combination

    def _by_rules(self, term: Term) -> Iterator[Combination]:
        """Applications of a rule, those in the earliest layer; a product with zero is zero."""
        by_layer: dict[int, list[tuple[Rule, tuple[Combination, ...]]]] = {}
        for rule, body in self.rules:
            for parts in instances(body, term):
                operands = self._all(parts)
                if operands is None:
                    continue
                if all(operands):
                    layer = max(map(layer_of, operands))
                    by_layer.setdefault(layer, []).append((rule, operands))
                elif isinstance(body, Apply) and body.op != "add" and not body.function:
                    yield ()
        for rule, operands in by_layer[min(by_layer)] if by_layer else ():
            yield self.atoms.application(rule, operands)

    def _all(self, parts: Sequence[Term]) -> tuple[Combination, ...] | None:
        operands = []
        for part in parts:
            operand = self.realise(part)
            if operand is None:
                return None
            operands.append(operand)
        return tuple(operands)

    def _without_rules(self, term: Term) -> Iterator[Combination]:
        if spread(term) in self.given:
            yield self.given[spread(term)]
            return
        match term:
            case Number(value=value) if self.scalars:
                unit = self.given.get(spread(Number(Fraction(1)))) or self.atoms.constant()
                yield combined([(value, unit)])
            case Apply(op="transpose", args=(Leaf(name="A") as matrix,)) if self.symmetric:
                if (combination := self.realise(matrix)) is not None:
                    yield combination
            case Apply(op="add", args=args):
                if (parts := self._all(args)) is not None:
                    yield combined((Fraction(1), part) for part in parts)
            case Apply(op="scale", args=(Number(value=value), inner)):
                if (part := self.realise(inner)) is not None:
                    yield combined([(value, part)])
            case Apply(function=function) if function:
                yield from self._pointwise(term)

    def _pointwise(self, term: Apply) -> Iterator[Combination]:
        """A nest of functions is one function, unless each can be had exactly on its own."""
        functions = [term.function]
        inner = term.args[0]
        while isinstance(inner, Apply) and inner.function:
            functions.append(inner.function)
            inner = inner.args[0]
        if all(map(is_exact, functions)):
            functions, inner = functions[:1], term.args[0]
        elif self.domain is None:
            raise LoweringError(
                f"{to_text(term)}: an MLP with ReLU computes relu and abs exactly, and any other "
                "function on finitely many integers only; name them, for instance "
                "domain=range(0, max_degree + 1)"
            )
        argument = self.realise(inner)
        if argument == () and is_exact(functions[0]):
            yield ()  # ReLU and |x| keep zero
        elif argument:
            yield self.atoms.pointwise(term.sort, tuple(reversed(functions)), argument)

    def blamed(self, term: Term) -> Term:
        """The smallest part of a term, of a sort that has rules, that nothing makes."""
        heads = {rule.head for rule in self.grammar.rules}
        missing = [
            part
            for part in subterms(term)
            if part.sort in heads and self.combinations.get(spread(part), ()) is None
        ]
        return min(missing, key=lambda part: part.size, default=term)


def rules_text(grammar: Grammar, heads: Sequence[Sort]) -> str:
    """The rules of some variables in a sentence."""
    lines = []
    for head in heads:
        bodies = " | ".join(rule.body_text() for rule in grammar.of_sort(head))
        if not bodies:
            return f"{head.variable} has no rule"
        lines.append(f"{head.variable} → {bodies}")
    return f"the rules are {'; '.join(lines)}"


def shorter(term: Term, entrywise: bool) -> Iterator[Term]:
    """Equal terms that may take fewer layers.

    Where columns can be multiplied entrywise, diag(u)w becomes u⊙w; else u⊙w becomes diag(u)w.
    """
    op, run = spread(term)
    if op == "matmul":
        if EYE in run and any(factor != EYE for factor in run):
            yield joined(op, tuple(factor for factor in run if factor != EYE))
        for index, factor in enumerate(run[:-1]):
            if entrywise and run[-1].sort == V and _is(factor, "diag"):
                scaled = apply("hadamard", factor.args[0], joined(op, run[index + 1 :]))
                yield joined(op, (*run[:index], scaled))
    elif op == "hadamard" and term.sort == V and not entrywise:
        yield apply("matmul", apply("diag", run[0]), joined(op, run[1:]))
    elif _is(term, "transpose"):
        pushed = transposed(term.args[0])
        if pushed != term:
            yield pushed


def simpler(term: Term) -> Iterator[Term]:
    """Equal terms made of smaller parts: products of sums as sums, J and scalars written out."""
    op, run = spread(term)
    if not op:
        yield from _simpler_single(term)
        return
    for index, factor in enumerate(run):
        before, after = run[:index], run[index + 1 :]
        if _is(factor, "add"):
            parts = [joined(op, (*before, part, *after)) for part in factor.args]
            yield apply("add", *parts)
            return
        if _is(factor, "scale"):
            yield apply("scale", factor.args[0], joined(op, (*before, factor.args[1], *after)))
            return
        if factor == HOLLOW:
            if op == "hadamard":
                rest = joined(op, before + after)
                yield rest - apply("hadamard", rest, EYE)
            else:
                yield joined(op, (*before, _hollow(), *after))
            return


def _simpler_single(term: Term) -> Iterator[Term]:
    if term == HOLLOW:
        yield _hollow()
    if not isinstance(term, Apply) or not OPERATIONS[term.op].multilinear or not term.args:
        return
    inner = term.args[0]
    if term.op == "scale" and not isinstance(inner, Number):
        scaled = term.args[1]
        if scaled.sort == M:
            yield apply("hadamard", joined("matmul", (ONE, inner, ROW_OF_ONES)), scaled)
        elif scaled.sort == V:
            yield apply("matmul", scaled, inner)
        else:
            yield apply("matmul", inner, scaled)
    elif (distributed := _distributed(term)) is not None:
        yield distributed
    elif inner.sort == S and term.op in ("transpose", "diag", "trace"):
        yield inner  # diag, Tr and ᵀ keep a number
    elif term.op == "diag":
        yield apply("hadamard", apply("matmul", inner, ROW_OF_ONES), EYE)
    elif term.op == "trace":
        inside = inner.args[0] if _is(inner, "diag") else None
        column = inside or apply("matmul", apply("hadamard", inner, EYE), ONE)
        op, run = spread(column)
        yield joined("matmul", (ROW_OF_ONES, *(run if op == "matmul" else (column,))))


def _distributed(term: Apply) -> Term | None:
    """A sum or a multiple among the operands of a multilinear operation, in front of it."""
    for index, operand in enumerate(term.args):
        before, after = term.args[:index], term.args[index + 1 :]
        if _is(operand, "add"):
            return apply("add", *(apply(term.op, *before, x, *after) for x in operand.args))
        if _is(operand, "scale"):
            factor, rest = operand.args
            return apply("scale", factor, apply(term.op, *before, rest, *after))
    return None


def sums(run: tuple[Term, ...]) -> Iterator[tuple[tuple[Term, ...], tuple[Term, ...]]]:
    """A sentence's factors cut into a row and a column."""
    for cut in range(1, len(run)):
        if run_sort(run[:cut]) == R and run_sort(run[cut:]) == V:
            yield run[:cut], run[cut:]


def as_traces(term: Term) -> Iterator[Term]:
    """1ᵀ(M⊙N)1 as Tr(MNᵀ), for grammars that have products and no ⊙."""
    op, run = spread(term)
    if op != "matmul" or len(run) != 3 or (run[0], run[2]) != (ROW_OF_ONES, ONE):
        return
    inner, factors = spread(run[1])
    if inner != "hadamard" or EYE in factors:  # a trace is 1ᵀ(M⊙I)1 itself
        return
    for cut in range(1, len(factors)):
        left, right = joined(inner, factors[:cut]), joined(inner, factors[cut:])
        yield apply("trace", apply("matmul", left, transposed(right)))


def _is(term: Term, op: str) -> TypeGuard[Apply]:
    return isinstance(term, Apply) and term.op == op and not term.function


def _hollow() -> Term:
    return apply("matmul", ONE, ROW_OF_ONES) - EYE
