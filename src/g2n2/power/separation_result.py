"""The verdict on two graphs, nodes or pairs, with the sentence that tells them apart."""

from dataclasses import dataclass
from fractions import Fraction

from ..language.terms import Term
from .layered_grammar import Level
from .sharing import Definition, with_shared_subterms


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
