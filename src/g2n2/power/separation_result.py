"""The verdict on two graphs, nodes or pairs, with the sentence that tells them apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ..grammars.membership import factors, joined
from ..language.terms import MAX_SIZE, Apply, Leaf, Term
from .layered_grammar import Level

_SMALLEST_SHARED = 4  # nodes; A² has three and is shorter than a name and its definition


class Definition(NamedTuple):
    """A name and the term it stands for, written with the names defined before it."""

    name: str
    term: Term

    def __str__(self) -> str:
        return f"{self.name} = {self.term}"


def with_shared_subterms(term: Term) -> list[Definition]:
    """Name the parts a term uses more than once.

    Returns:
        The definitions in order of use, the last one the term itself. Names are the letter of the
        sort and a number: M1, v1, r1, s1.
    """
    uses: Counter[Term] = Counter()
    order: list[Term] = []
    _count(term, uses, order)
    definitions: list[Definition] = []
    short: dict[Term, Term] = {}
    numbers: Counter[str] = Counter()
    for part in order:
        if not isinstance(part, Apply):
            continue
        args = tuple(short.get(arg, arg) for arg in part.args)
        shown = Apply(part.op, args, part.sort, part.function)
        if part is term or uses[part] < 2 or part.size < _SMALLEST_SHARED:
            short[part] = shown
            continue
        letter = _letter(part)
        numbers[letter] += 1
        name = f"{letter}{numbers[letter]}"
        definitions.append(Definition(name, regrouped(shown)))
        short[part] = Leaf(name, part.sort)
    return [*definitions, Definition(_letter(term), regrouped(short.get(term, term)))]


def regrouped(term: Term) -> Term:
    """The same string with its products bracketed from the left, so that it prints without any."""
    if not isinstance(term, Apply) or term.size > MAX_SIZE:
        return term
    if term.op == "matmul":
        return joined(map(regrouped, factors(term)))
    return Apply(term.op, tuple(map(regrouped, term.args)), term.sort, term.function)


def _count(term: Term, uses: Counter[Term], order: list[Term]) -> None:
    """Count how often each different part is an argument of a different part, innermost first."""
    uses[term] += 1
    if uses[term] > 1:
        return
    if isinstance(term, Apply):
        for arg in term.args:
            _count(arg, uses, order)
    order.append(term)


def _letter(term: Term) -> str:
    letter = term.sort.letter
    return letter if letter == "M" else letter.lower()


@dataclass(frozen=True)
class Separation:
    """The verdict on two graphs, nodes or pairs.

    Attributes:
        verdict: `different`, `same`, or `same up to d layers`.
        level: What was compared: graph, node or pair.
        readout: The read-out, in words.
        engine: `closure` or `mixing`.
        primes: The moduli the verdict rests on; a difference needs one.
        depth: The fewest layers at which any sentence differs.
        sentence: One that differs, in the grammar's own notation; at node and pair level a word.
        values: Its values on both sides.
        modulus: The prime the values are residues of; None where they are exact.
        sentence_depth: The layers this sentence takes; the shortest may take more than `depth`.
        shortest: Whether no sentence with fewer operations differs.
        searched: All sentences with at most so many operations have been tried.
        note: What else a reader should know.
    """

    verdict: str
    level: Level
    readout: str
    engine: str
    primes: tuple[int, ...]
    depth: int | None = None
    sentence: Term | None = None
    values: tuple[int | Fraction, ...] | None = None
    modulus: int | None = None
    sentence_depth: int | None = None
    shortest: bool = False
    searched: int | None = None
    note: str = ""

    @property
    def different(self) -> bool:
        return self.verdict == "different"

    def definitions(self) -> list[Definition]:
        """The sentence with its shared parts named, last; empty where there is none."""
        return [] if self.sentence is None else with_shared_subterms(self.sentence)

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.sentence is not None and self.values is not None:
            what = "shortest" if self.shortest else "not proved shortest"
            lines += [f"  {definition}" for definition in self.definitions()[:-1]]
            last = self.definitions()[-1].term
            shown = " against ".join(map(str, self.values))
            modulo = f" (modulo {self.modulus})" if self.modulus else ""
            lines.append(f"  {last}: {shown}{modulo}, {what}")
        if self.depth is not None:
            lines.append(f"  layers: {self.depth}")
        lines.append(f"  read-out: {self.readout}")
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)
