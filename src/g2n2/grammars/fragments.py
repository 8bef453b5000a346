"""A fragment is a set of operations; its exhaustive grammar has every typed rule over them.

Σ in a fragment, the sum over marks, is Σ_S, Σ_V and Σ_M, as f is f_S, f_V and f_M: sums of scalars
alone (Σ_S) pool over marks, the others bring vectors and matrices back out of the mark. Σ listed
twice gives two marks that words see together. Inside a mark every rule stands once more, with the
mark v as a column, and words from outside may be used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any, Literal

from ..errors import GrammarError
from ..language.operations import BINDERS, OPERATIONS, POINTWISE, Operation
from ..language.sorts import SORTS, M, R, S, Sort, V
from ..language.terms import MARKS, A, Hole, Leaf, MarkSum, Term, apply, call, fill, holes
from .grammar import Grammar, Rule
from .rules import ARROWS

Typing = Literal["paper", "full"]
TYPINGS: tuple[Typing, ...] = ("paper", "full")
MOST_MARKS = 2

NAMED: dict[str, tuple[str, ...]] = {
    "L1": ("matmul", "transpose", "one", "diag"),
    "L3": ("matmul", "transpose", "one", "diag", "hadamard"),
    "L1Σ": ("matmul", "transpose", "one", "diag", "mark_S"),
    "L3Σ": ("matmul", "transpose", "one", "diag", "hadamard", "mark_S"),
    "L1ΣΣ": ("matmul", "transpose", "one", "diag", "mark_S", "mark_S"),
    "L3ΣΣ": ("matmul", "transpose", "one", "diag", "hadamard", "mark_S", "mark_S"),
}
_SHORT = {"f": POINTWISE, "Σ": BINDERS, "∑": BINDERS, "mark": BINDERS}
_BODY_ORDER = ("hadamard", "matmul", "transpose", "diag", "trace", "add", "scale", *POINTWISE)
_SCALAR_ORDER = ("trace", "diag", "matmul", "hadamard", "transpose", "add", "scale", "f_S")


@dataclass(frozen=True, init=False)
class Fragment:
    """A set of MATLANG operations, by name.

    >>> from g2n2 import Fragment
    >>> fragment = Fragment("· ᵀ 1 diag")
    >>> fragment == Fragment("L1"), len(fragment.exhaustive().rules)
    (True, 15)
    >>> len(Fragment("· ᵀ 1 diag ⊙ Σ").exhaustive().rules)
    47

    Attributes:
        operations: The names of the operations.
        marks: How many marks words see at once: how often Σ is listed.
    """

    operations: frozenset[str]
    marks: int

    def __init__(self, operations: str | Iterable[str]) -> None:
        """Take names of operations, or a text such as `L3`, `· ᵀ 1 diag ⊙`, `{·, Tr}`, `L3 + Tr`.

        A `+` between a named fragment and an operation joins them; the sum is meant anywhere else.

        Raises:
            GrammarError: An unknown operation, none at all, or a bracket without its partner.
        """
        text = operations if isinstance(operations, str) else ", ".join(_names(operations))
        if any(arrow in text for arrow in ARROWS):
            raise GrammarError(
                f"{text!r} is a grammar's rules; expected operations, for instance '· ᵀ 1 ⊙'. "
                "compile, compare, power and separate take rules, and g2n2 workbench reduces them"
            )
        joined = re.sub(rf"\b({'|'.join(NAMED)})\s*\+\s*(?=[^\s,])", r"\1 ", text, flags=re.I)
        words = [word for word in re.split(r"[\s,;{}()]+", joined) if word]
        if not words:
            raise GrammarError(
                f"the fragment is empty; name operations, for instance L3 or {_known()}"
            )
        names = Counter(name for word in words for name in _lookup(word, text))
        _refuse_lone_bracket(text)
        object.__setattr__(self, "operations", frozenset(names))
        object.__setattr__(self, "marks", max(names[name] for name in BINDERS))
        if self.marks > MOST_MARKS:
            raise GrammarError(f"{text!r} lists Σ {self.marks} times; the limit is {MOST_MARKS}")

    @classmethod
    def parse(cls, text: str) -> Fragment:
        """The fragment a text names."""
        return cls(text)

    @property
    def name(self) -> str:
        """`L1`, `L3`, or the set of symbols."""
        return next((name for name in NAMED if Fragment(NAMED[name]) == self), str(self))

    def __str__(self) -> str:
        every = set(BINDERS) <= self.operations
        symbols = [op.symbol for op in OPERATIONS.values() if op.name in self and not _binds(op)]
        sums = ["Σ"] if every else [OPERATIONS[name].symbol for name in BINDERS if name in self]
        return "{" + ", ".join([*symbols, *sums * max(1, self.marks)]) + "}"

    def __contains__(self, operation: object) -> bool:
        return operation in self.operations

    def __iter__(self) -> object:
        return iter(name for name in OPERATIONS if name in self.operations)

    def sorts(self, typing: Typing = "paper") -> frozenset[Sort]:
        """The sorts derivable from A (Propositions 1 and 3 of the paper)."""
        summed = (sort for sort in self._sorts_inside(typing) if self._sums(sort))
        return self._derivable({M, *summed}, typing)

    def _sorts_inside(self, typing: Typing) -> frozenset[Sort]:
        """The sorts derivable inside a mark, which is a column; none where there is no mark."""
        return self._derivable({M, V}, typing) if self.marks else frozenset()

    def _derivable(self, derivable: set[Sort], typing: Typing) -> frozenset[Sort]:
        while True:
            new = {result for _, _, result in self._applications(derivable, typing)} - derivable
            if not new:
                return frozenset(derivable)
            derivable |= new

    def _sums(self, sort: Sort) -> bool:
        """Whether Σ applies to words of a sort."""
        return any(sort in OPERATIONS[name].sorts for name in BINDERS if name in self)

    def table(self, typing: Typing = "paper") -> list[tuple[str, tuple[Sort, ...], Sort]]:
        """Every operation on every sort it is defined on: symbol, arguments, result."""
        rows = [
            (OPERATIONS[op].symbol, sorts, result)
            for op, sorts, result in self._applications(set(self.sorts(typing)), typing)
        ]
        binders = (rule for rule in self.exhaustive(typing).rules if rule.head.scope == 0)
        return rows + [("Σ", r.holes, r.head) for r in binders if isinstance(r.body, MarkSum)]

    def exhaustive(self, typing: Typing = "paper") -> Grammar:
        """The grammar with every typed rule over the sorts derivable from A, and M → A.

        With marks also, for each mark in scope, the same rules over primed variables, V′ → v, the
        words from outside, V′ → V, and the sums, S → Σv. S′.

        Raises:
            GrammarError: An operation takes or makes a tensor that no variable stands for.
        """
        self._refuse_other_orders()
        rules = self._typed_rules(self.sorts(typing), typing)
        for scope in range(self.marks):
            rules += self._marked_rules(scope, typing)
        ordered = sorted(dict.fromkeys(rules), key=lambda r: (r.head.scope, *_paper_order(r)))
        suffix = "" if typing == "paper" else " (full typing)"
        return Grammar.of(ordered, f"G_{self.name}{suffix}", default_readout=False)

    def _typed_rules(self, sorts: Iterable[Sort], typing: Typing) -> list[Rule]:
        applications = self._applications(set(sorts), typing)
        return [*(Rule(result, _body(op, of)) for op, of, result in applications), Rule(M, A)]

    def _marked_rules(self, scope: int, typing: Typing) -> Iterator[Rule]:
        """The rules one mark adds, inside so many others."""
        mark = (MARKS if self.marks > 1 else "v")[scope]
        inside = self._sorts_inside(typing)
        around = inside if scope else self.sorts(typing)
        for rule in self._typed_rules(inside, typing):
            primed: list[Term] = [Hole(sort.within(scope + 1)) for sort in holes(rule.body)]
            yield Rule(rule.head.within(scope + 1), fill(rule.body, primed))
        yield Rule(V.within(scope + 1), Leaf(mark, V))
        for sort in around:
            yield Rule(sort.within(scope + 1), Hole(sort.within(scope)))
        for sort in inside:
            if self._sums(sort):
                yield Rule(sort.within(scope), MarkSum(mark, Hole(sort.within(scope + 1))))

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
            operation = OPERATIONS[name]
            if name not in self or _binds(operation):
                continue
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
    head, variables = rule.head.plain, tuple(sort.plain for sort in rule.holes)
    scalar = S in variables and head != S
    outer = variables == (V, R)
    terminal = not variables or isinstance(rule.body, Hole | MarkSum)
    if head == S:
        return SORTS.index(S), terminal, variables != (R, V), 0, _place(op, _SCALAR_ORDER)
    return SORTS.index(head), terminal, scalar, outer, _place(op, _BODY_ORDER)


def _binds(operation: Operation) -> bool:
    return operation.name in BINDERS


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


def _lookup(word: str, text: str) -> tuple[str, ...]:
    """The operations one word of a fragment stands for."""
    named = word.upper().replace("MARK", "Σ")
    if named in NAMED:
        return NAMED[named]
    if word in _SHORT:
        return _SHORT[word]
    for operation in OPERATIONS.values():
        if word in (operation.name, operation.symbol, *operation.aliases):
            return (operation.name,)
    for name in OPERATIONS:
        if word.lower() == name.lower():
            return (name,)
    if "+" in word and word != "+":
        return tuple(x for part in word.split("+") if part for x in _lookup(part, text))
    if re.fullmatch("[Σ∑]{2,}", word):
        return BINDERS * len(word)
    close = get_close_matches(word.lower(), [*OPERATIONS, *map(str.lower, NAMED)], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise GrammarError(
        f"unknown operation {word!r} in {text!r}; {hint}known: L1, L3, {_known()}, "
        "and with marks L1Σ, L3Σ, L1ΣΣ, L3ΣΣ; an operation of "
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
