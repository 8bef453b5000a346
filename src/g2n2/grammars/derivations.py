"""How a grammar derives a term: the tree of its rules, as text and for Graphviz."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import GrammarError
from ..language.operations import OPERATIONS
from ..language.printing import to_text
from ..language.sorts import Sort
from ..language.terms import Apply, Leaf, Term, fill, operators
from .grammar import Grammar, Rule
from .membership import Recogniser

_MARK = "\ue000"
"""Stands for a variable while a body is cut up: a private character no notation uses."""
_WIDTH = 60
"""The longest word shown beside its rule; a longer one is cut."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DerivationTree:
    """A rule, the term it derives, and one derivation for each variable of the rule's body."""

    rule: Rule
    term: Term
    children: tuple[DerivationTree, ...] = ()

    def nodes(self) -> Iterator[DerivationTree]:
        """This node, then those below it left to right: the leftmost derivation."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DerivationTree) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return tree_text(self)

    def __repr__(self) -> str:
        return f"DerivationTree({self.rule}, {self.term})"

    def _key(self) -> tuple[object, ...]:
        return tuple((node.rule, node.term) for node in self.nodes())


def derive_word(grammar: Grammar, term: Term, sort: Sort | None = None) -> DerivationTree:
    """Derive a term: rules in the grammar's order, the first variable taking the least it can."""
    name = grammar.name or "this grammar"
    if sort is not None and sort != term.sort:
        raise GrammarError(f"{term} is {term.sort.english}, but {sort.variable} is {sort.english}")
    if not grammar.of_sort(term.sort):
        raise GrammarError(
            f"{term} is not a word of {name}: it is {term.sort.english}, "
            f"and {term.sort.variable} has no rule there"
        )
    recogniser = Recogniser(grammar, term)
    if not recogniser.goal.holds:
        raise GrammarError(
            f"{term} is not a word of {name}: " + _why_not(grammar, recogniser, term)
        )
    return _tree(recogniser, term)


def _tree(recogniser: Recogniser, term: Term) -> DerivationTree:
    """The derivation of the recogniser's goal; loops, because a tree may be deep."""
    waiting = [recogniser.goal]
    steps: list[tuple[Rule, Term, int]] = []
    while waiting:
        goal = waiting.pop()
        rule, below = recogniser.step(goal)
        word = (goal.term if below else rule.body) if steps else term
        steps.append((rule, word, len(below)))
        waiting.extend(reversed(below))
    built: list[DerivationTree] = []
    for rule, word, count in reversed(steps):
        built.append(DerivationTree(rule, word, tuple(built.pop() for _ in range(count))))
    return built[0]


def _why_not(grammar: Grammar, recogniser: Recogniser, term: Term) -> str:
    part = recogniser.underivable()
    blamed = term if part is None else part
    missing = operators(blamed) - grammar.operations
    inside = [sort for sort in grammar.variables if sort.plain == blamed.sort and sort.scope]
    by_variable = []
    for sort in (blamed.sort, *(inside if part is not None else ())):
        if bodies := " | ".join(rule.body_text() for rule in grammar.of_sort(sort)):
            by_variable.append(f"{sort.variable} → {bodies}")
    rules = f"the rules are {'; '.join(by_variable)}"
    if not by_variable:
        rules = f"{blamed.sort.variable} has no rule"
    if missing:
        symbols = ", ".join(op.symbol for op in OPERATIONS.values() if op.name in missing)
        return f"no variable derives {blamed}, for no rule uses {symbols}; {rules}"
    if part is None:
        return f"its parts can be derived, but no rule joins them; {rules}"
    return f"no variable derives {blamed}; {rules}"


def tree_text(derivation: DerivationTree) -> str:
    """The tree as lines: each rule indented below the one whose variable it replaces."""
    rows: list[tuple[str, str]] = []
    waiting = [(derivation, "", "")]
    while waiting:
        node, lead, indent = waiting.pop()
        rows.append((f"{lead}{node.rule}", str(node.term)))
        last = len(node.children) - 1
        for index in range(last, -1, -1):
            here, below = ("└─ ", "   ") if index == last else ("├─ ", "│  ")
            waiting.append((node.children[index], indent + here, indent + below))
    width = max(len(left) for left, _ in rows)
    words = (word if len(word) <= _WIDTH else word[: _WIDTH - 1] + "…" for _, word in rows)
    return "\n".join(
        f"{left:{width}}   {word}" for (left, _), word in zip(rows, words, strict=True)
    )


def tree_dot(derivation: DerivationTree) -> str:
    """The tree for Graphviz: variables, in circles, are replaced until only terminals remain."""
    lines = [
        "digraph derivation {",
        f"  label={_quoted(str(derivation.term))};",
        "  ordering=out;",
        "  edge [arrowhead=none];",
        "  node [shape=circle, fixedsize=true, width=0.5];",
        f"  n0 [label={_quoted(derivation.rule.head.variable)}];",
    ]
    count = 1
    waiting = [(derivation, 0)]
    while waiting:
        node, number = waiting.pop()
        children = iter(node.children)
        below = []
        for symbol, is_variable in _symbols(node):
            shape = "" if is_variable else ", shape=box, fixedsize=false, width=0.3"
            lines.append(f"  n{count} [label={_quoted(symbol)}{shape}];")
            lines.append(f"  n{number} -> n{count};")
            if is_variable:
                below.append((next(children), count))
            count += 1
        waiting.extend(reversed(below))
    return "\n".join([*lines, "}"]) + "\n"


def _symbols(node: DerivationTree) -> Iterator[tuple[str, bool]]:
    """The body of a rule cut into variables and terminals; brackets only group, so they go."""
    marked = fill(node.rule.body, [Leaf(_MARK, sort) for sort in node.rule.holes])
    text = to_text(marked, powers=False)
    if text.startswith("f(") and isinstance(node.term, Apply):
        text = node.term.function + text.removeprefix("f")  # f stands for the function meant
    before, *rest = text.split(_MARK)
    yield from _terminal(before)
    for sort, after in zip(node.rule.holes, rest, strict=True):
        yield sort.variable, True
        yield from _terminal(after)


def _terminal(text: str) -> Iterator[tuple[str, bool]]:
    bare = re.sub(r"[(),]", "", text).strip()
    if bare:
        yield bare, False


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
