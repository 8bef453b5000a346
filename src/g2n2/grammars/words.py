"""Words of a grammar by size: each value once, in its shortest form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ..errors import GrammarError
from ..language.parsing import TERM_NAMES, parse
from ..language.patterns import ASSUMPTIONS, Assumption, normal_form
from ..language.sorts import SORTS, S, Sort
from ..language.terms import Term, fill, leaves, operation_count
from ..language.tokens import scope_of
from ..validation import check_option
from .coercion import GrammarLike, as_grammar
from .grammar import Grammar
from .shared_subterms import regrouped


class Word(NamedTuple):
    """A term a grammar derives, and how many operations it applies."""

    term: Term
    size: int


def enumerate_words(
    grammar: GrammarLike,
    sort: Sort | str = S,
    max_size: int = 6,
    assume: Assumption = "symmetric",
    limit: int | None = None,
) -> Iterator[Word]:
    """The words of one sort, smallest first, no two equal under `assume`.

    >>> from g2n2 import enumerate_words
    >>> [str(word.term) for word in enumerate_words("r-G_L1", max_size=3)]
    ['1ᵀ1', '1ᵀA1']

    Of equal words the one with the fewest operations is kept, then the one found first: rules in
    the grammar's order, their slots filled left to right. Building only on the words kept loses
    none, because equal subwords make equal words and the one kept is never larger.

    Args:
        grammar: Where the words come from, or its name or rules; its supports stay named leaves.
        sort: The variable to start from, or its name (`M`, `V_c`, `V_c′`); S lists sentences.
        max_size: The most operations a word may apply.
        assume: What is known of A when two words are compared.
        limit: The most words to list.

    Raises:
        GrammarError: No such variable or assumption, or a number that is none.
    """
    check_option("assume", assume, ASSUMPTIONS, GrammarError)
    for name, number in (("max_size", max_size), ("limit", limit)):
        if number is not None and (not isinstance(number, int) or number < 0):
            raise GrammarError(f"{name}: got {number!r}, expected a whole number, at least 0")
    sort = variable_named(sort)
    table = _WordTable(as_grammar(grammar), assume)
    # islice asks for nothing after the last word, so no larger size is built in vain.
    return islice(
        (
            Word(regrouped(term), size)
            for size in range(max_size + 1)
            for term in table.words(sort, size)
        ),
        limit,
    )


def variable_named(sort: Sort | str) -> Sort:
    """The variable of that name."""
    if isinstance(sort, Sort):
        return sort
    name = sort.replace("'", "′")
    for variable in SORTS:
        if name.rstrip("′″") in (variable.variable, variable.letter):
            return variable.within(scope_of(name))
    names = ", ".join(variable.variable for variable in SORTS)
    raise GrammarError(f"{sort!r} is not a variable; the variables are {names}")


def parse_word(grammar: GrammarLike, text: str) -> Term:
    """Parse a term that may also name the supports of a grammar."""
    rules = as_grammar(grammar).all_rules
    named = {leaf.name: leaf for rule in rules for leaf in leaves(rule.body)}
    named.pop("1", None)  # a token of its own, never a name
    return parse(text, {**TERM_NAMES, **named})


class _WordTable:
    """Distinct words by sort and size, filled from the smallest up as they are asked for."""

    def __init__(self, grammar: Grammar, assume: Assumption) -> None:
        self.grammar, self.assume, self.marks = grammar, assume, grammar.marks
        self.by_size: dict[Sort, list[list[Term]]] = {}
        self.seen: dict[Sort, set[object]] = {}

    def words(self, sort: Sort, size: int) -> list[Term]:
        rows = self.by_size.setdefault(sort, [])
        while len(rows) <= size:
            rows.append(self._new(sort, len(rows)))
        return rows[size]

    def _new(self, sort: Sort, size: int) -> list[Term]:
        """The words of exactly this size that equal no smaller one."""
        seen = self.seen.setdefault(sort, set())
        kept = []
        for rule in self.grammar.of_sort(sort):
            for fillings in self._fillings(rule.holes, size - operation_count(rule.body)):
                term = fill(rule.body, fillings)
                marks = frozenset(self.marks[: sort.scope])
                value = frozenset(normal_form(term, self.assume, marks).items())
                if value not in seen:
                    seen.add(value)
                    kept.append(term)
        return kept

    def _fillings(self, slots: tuple[Sort, ...], spare: int) -> Iterator[list[Term]]:
        """All ways to fill the slots with words that apply `spare` operations in all."""
        if not slots:
            if spare == 0:
                yield []
            return
        first, rest = slots[0], slots[1:]
        for size in range(spare + 1) if rest else (spare,) if spare >= 0 else ():
            for tail in self._fillings(rest, spare - size):
                for term in self.words(first, size):
                    yield [term, *tail]
