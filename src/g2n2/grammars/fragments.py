"""A fragment is a set of operations; its exhaustive grammar has every typed rule over them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any, Literal

from ..errors import GrammarError
from ..language.operations import OPERATIONS, POINTWISE, Operation
from ..language.sorts import SORTS, M, R, S, Sort, V
from ..language.terms import A, Hole, Term, apply, call
from .grammar import Grammar, Rule

Typing = Literal["paper", "full"]
TYPINGS: tuple[Typing, ...] = ("paper", "full")

NAMED: dict[str, tuple[str, ...]] = {
    "L1": ("matmul", "transpose", "one", "diag"),
    "L3": ("matmul", "transpose", "one", "diag", "hadamard"),
}
_BODY_ORDER = ("hadamard", "matmul", "transpose", "diag", "trace", "add", "scale", *POINTWISE)
_SCALAR_ORDER = ("trace", "diag", "matmul", "hadamard", "transpose", "add", "scale", "f_S")


@dataclass(frozen=True, init=False)
class Fragment:
    """A set of MATLANG operations, by name.

    >>> from g2n2 import Fragment
    >>> fragment = Fragment("· ᵀ 1 diag")
    >>> fragment == Fragment("L1"), len(fragment.exhaustive().rules)
    (True, 15)
    """

    operations: frozenset[str]

    def __init__(self, operations: str | Iterable[str]) -> None:
        """Take names of operations, or a text such as `L3`, `· ᵀ 1 diag ⊙`, `{·, Tr}`, `L3 + Tr`.

        A `+` between a named fragment and an operation joins them; the sum is meant anywhere else.

        Raises:
            GrammarError: An unknown operation, none at all, or a bracket without its partner.
        """
        text = operations if isinstance(operations, str) else ", ".join(_names(operations))
        joined = re.sub(rf"\b({'|'.join(NAMED)})\s*\+\s*(?=[^\s,])", r"\1 ", text, flags=re.I)
        words = [word for word in re.split(r"[\s,;{}()]+", joined) if word]
        if not words:
            raise GrammarError(
                f"the fragment is empty; name operations, for instance L3 or {_known()}"
            )
        names = frozenset().union(*(_lookup(word, text) for word in words))
        _refuse_lone_bracket(text)
        object.__setattr__(self, "operations", names)

    @classmethod
    def parse(cls, text: str) -> Fragment:
        """The fragment a text names."""
        return cls(text)

    @property
    def name(self) -> str:
        """`L1`, `L3`, or the set of symbols."""
        for name, operations in NAMED.items():
            if self.operations == frozenset(operations):
                return name
        return str(self)

    def __str__(self) -> str:
        return "{" + ", ".join(op.symbol for op in OPERATIONS.values() if op.name in self) + "}"

    def __contains__(self, operation: object) -> bool:
        return operation in self.operations

    def __iter__(self) -> object:
        return iter(name for name in OPERATIONS if name in self.operations)

    def sorts(self, typing: Typing = "paper") -> frozenset[Sort]:
        """The sorts derivable from A (Propositions 1 and 3 of the paper)."""
        derivable = {M}
        while True:
            new = {result for _, _, result in self._applications(derivable, typing)} - derivable
            if not new:
                return frozenset(derivable)
            derivable |= new

    def table(self, typing: Typing = "paper") -> list[tuple[str, tuple[Sort, ...], Sort]]:
        """Every operation on every sort it is defined on: symbol, arguments, result."""
        return [
            (OPERATIONS[op].symbol, sorts, result)
            for op, sorts, result in self._applications(set(self.sorts(typing)), typing)
        ]

    def exhaustive(self, typing: Typing = "paper") -> Grammar:
        """The grammar with every typed rule over the sorts derivable from A, and M → A.

        Raises:
            GrammarError: An operation takes or makes a tensor that no variable stands for.
        """
        self._refuse_other_orders()
        rules = [
            Rule(result, _body(op, sorts))
            for op, sorts, result in self._applications(set(self.sorts(typing)), typing)
        ]
        rules.append(Rule(M, A))
        ordered = sorted(dict.fromkeys(rules), key=_paper_order)
        suffix = "" if typing == "paper" else " (full typing)"
        return Grammar.of(ordered, f"G_{self.name}{suffix}", default_readout=False)

    def _refuse_other_orders(self) -> None:
        for operation in (OPERATIONS[name] for name in OPERATIONS if name in self):
            odd = operation.axes.orders - {2}
            if odd:
                raise GrammarError(
                    f"{operation.symbol} ({operation.signature}) has tensors of order {max(odd)}, "
                    "and a grammar has variables for scalars, vectors and matrices only: write "
                    "rules in which such a tensor stands inside a body, with Grammar.parse"
                )

    def _applications(
        self, sorts: set[Sort], typing: Typing
    ) -> list[tuple[str, tuple[Sort, ...], Sort]]:
        applications = []
        for name in OPERATIONS:
            if name not in self:
                continue
            operation = OPERATIONS[name]
            ordered = [sort for sort in SORTS if sort in sorts]
            for arguments in product(ordered, repeat=operation.arity):
                result = operation.typed(*arguments, full=typing == "full")
                if result is not None:
                    applications.append((name, arguments, result))
        return applications


def _body(op: str, sorts: tuple[Sort, ...]) -> Term:
    if OPERATIONS[op].kind == "pointwise":
        return call("f", Hole(sorts[0]))
    return apply(op, *(Hole(sort) for sort in sorts))


def _paper_order(rule: Rule) -> tuple[int, ...]:
    """The order in which the paper prints rules."""
    op = getattr(rule.body, "op", "one")
    scalar = S in rule.holes and rule.head != S
    outer = rule.holes == (V, R)
    terminal = not rule.holes
    if rule.head == S:
        return SORTS.index(S), terminal, rule.holes != (R, V), 0, _place(op, _SCALAR_ORDER)
    return SORTS.index(rule.head), terminal, scalar, outer, _place(op, _BODY_ORDER)


def _place(op: str, order: tuple[str, ...]) -> int:
    """Where an operation stands in an order; registered ones after it, ones last."""
    if op in order:
        return order.index(op)
    return len(order) + (len(OPERATIONS) if op == "one" else list(OPERATIONS).index(op))


def _names(operations: Any) -> Iterable[str]:
    """Names of operations, or operations, one after the other."""
    listed = list(operations) if isinstance(operations, Iterable) else [operations]
    names = [entry.name if isinstance(entry, Operation) else entry for entry in listed]
    if isinstance(operations, bytes | Mapping) or not all(isinstance(x, str) for x in names):
        raise GrammarError(
            f"got {type(operations).__name__}, expected a fragment: text such as 'L3' or '· ᵀ 1 ⊙',"
            " or a list of names of operations"
        )
    return names


def _lookup(word: str, text: str) -> set[str]:
    """The operations one word of a fragment stands for."""
    if word.upper() in NAMED:
        return set(NAMED[word.upper()])
    if word == "f":
        return set(POINTWISE)
    for operation in OPERATIONS.values():
        if word in (operation.name, operation.symbol, *operation.aliases):
            return {operation.name}
    for name in OPERATIONS:
        if word.lower() == name.lower():
            return {name}
    if "+" in word and word != "+":
        parts = [part for part in word.split("+") if part]
        return set().union(*(_lookup(part, text) for part in parts))
    close = get_close_matches(word.lower(), [*OPERATIONS, *map(str.lower, NAMED)], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise GrammarError(
        f"unknown operation {word!r} in {text!r}; {hint}known: L1, L3, {_known()}; an operation of "
        "your own is registered first: g2n2.register(Operation(…)), or --plugin MODULE"
    )


def _refuse_lone_bracket(text: str) -> None:
    opened: list[str] = []
    for character in text:
        if character in "({":
            opened.append(character)
        elif character in ")}" and (not opened or opened.pop() + character not in ("()", "{}")):
            raise GrammarError(
                f"the bracket {character!r} is never opened in {text!r}; leave it out"
            )
    if opened:
        raise GrammarError(f"the bracket {opened[-1]!r} is never closed in {text!r}; leave it out")


def _known() -> str:
    return ", ".join(
        op.symbol if op.symbol == op.name else f"{op.symbol} ({op.name})"
        for op in OPERATIONS.values()
    )
