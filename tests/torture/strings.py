"""Text for every parser: noise, and sentences of the parser's own language with a few slips."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import g2n2.graphs
from g2n2.cli.options import parsed_options
from g2n2.data.reading import read_graphs
from g2n2.errors import G2N2Error
from g2n2.grammars.catalogue import catalogue, find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.graphs import adjacency
from g2n2.language.parsing import parse
from g2n2.language.printing import to_ascii, to_text
from g2n2.language.registry import registered
from g2n2.language.signatures import Signature
from g2n2.training.config import RunConfig
from strategies import random_terms

from .watch import Try

ALGEBRA = "AIJMNPuvwr1111(((()))ᵀᵀ²³⁹··@×⊙**++−-'^^T2359.0 ,{}=dgiaTrfexplo_CVSR→|\n\t\0é𝔸"
PRINTABLE = "".join(map(chr, range(32, 127))) + "\t\n\0é𝔸²·"


@dataclass(frozen=True)
class Parser:
    """What is given text.

    Attributes:
        name: As the table says.
        read: The parser.
        sentences: Text it takes.
        letters: Of noise and slips.
        share: How many strings it gets, relative to others.
    """

    name: str
    read: Callable[[str], Any]
    sentences: Callable[[], list[str]]
    letters: str = ALGEBRA
    share: float = 1.0


@cache
def _terms() -> list[str]:
    return [show(t) for t in random_terms(1, 500, size=8) for show in (to_text, to_ascii)]


def _rules() -> list[str]:
    return [str(rule) for grammar in catalogue().values() for rule in grammar.all_rules]


def _grammars() -> list[str]:
    return [
        "V_c → MV_c | 1\nM → (M⊙M) | MM | diag(V_c) | A",
        "V → C_1V | CV | 1; C = A + I",
        "S -> Tr(M); M -> MM^T | A",
        *map(str, list(catalogue().values())[:8]),
    ]


def _names() -> list[str]:
    return [
        *catalogue(),
        "r-G_{·, Tr}",
        "i-G_L3",
        "MPNN-3",
        "L1 + Tr",
        "r-G_L3 - M → MM",
        "· ᵀ 1 ⊙",
    ]


FRAGMENTS = ["L3 + Tr", "· ᵀ 1 diag ⊙", "{matmul, transpose, f}", "L1", "matmul,transpose,one"]
SIGNATURES = ["ij,jk->ik", "ii->", "i,j->ij", "ij->ji", "ij,kj,k->i", "ij,ij->i"]
GRAPH6 = ["C~", "Bw", "A_", "DQc", "E?Bw", "~?@D" + "?" * 60, "IheA@GUAo", ">>graph6<<Bw"]
GRAPHS = [":An", "&A?", "C6", "2·C3", "K1,4", "Petersen", "graph6:Bw", "name:K5", "sparse6::An"]
SMILES = ["C", "CCO", "c1ccccc1", "C[C@H](N)O", "[Na+].[Cl-]", "C1CC1", "N#N", "[13CH4]", "C/C=C/C"]
OPTIONS = [
    "hydrogens=true",
    "largest=1",
    "track=distance",
    "energy_unit=meV",
    "a=",
    "x=[1]",
    "y=1e5",
]
SPLITS = ["random", "scaffold", "stored", "column:split", "fold:3", "file:a.json"]


def _smiles(text: str) -> None:
    with suppress(G2N2Error):
        adjacency(f"smiles:{text}")
    repr(read_graphs([f"smiles:{text}"], on_bad="refuse"))


def _option(text: str) -> None:
    RunConfig.from_dict({"dataset": text, "options": parsed_options([text]), "split": text})


PARSERS = [
    Parser("terms", parse, _terms, share=6),
    Parser("rules", Rule.parse, _rules, share=2),
    Parser("grammars", Grammar.parse, _grammars, share=1),
    Parser("names of grammars", find_grammar, _names, share=1),
    Parser("fragments", Fragment, lambda: FRAGMENTS, share=2),
    Parser("signatures", Signature.parse, lambda: SIGNATURES, "abcijkl,->  1^(é", 2),
    Parser("graph6", g2n2.graphs.parse_graph6, lambda: GRAPH6, PRINTABLE, 2),
    Parser("names and text of graphs", adjacency, lambda: GRAPHS, PRINTABLE, 1),
    Parser("SMILES", _smiles, lambda: SMILES, "CNOPSFIBrclno[]()=#@+-./\\%1234H*:\0é", 2),
    Parser("options", _option, lambda: [*OPTIONS, *SPLITS], PRINTABLE, 1),
]


def mangled(chance: Random, text: str, letters: str) -> str:
    """A text with one to three characters replaced, removed, added or swapped."""
    made = list(text)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(made) + 1)
        kind = chance.randrange(4)
        if kind == 0 or not made:
            made.insert(at, chance.choice(letters))
        elif kind == 1:
            made[at - 1] = chance.choice(letters)
        elif kind == 2:
            del made[at - 1]
        else:
            other = chance.randrange(len(made))
            made[at - 1], made[other] = made[other], made[at - 1]
    return "".join(made)


def kinds(seed: int, folder: Path) -> dict[str, Try]:
    """What a worker tries: number N of a parser is always the same text."""
    from rdkit import RDLogger

    RDLogger.DisableLog("rdApp.*")
    return {parser.name: _Tried(parser, seed) for parser in PARSERS}


class _Tried:
    def __init__(self, parser: Parser, seed: int) -> None:
        self.parser, self.seed = parser, seed
        self.sentences: list[str] = []

    def __call__(self, number: int) -> str:
        with registered(alone=True):
            self.parser.read(self.text(number))
        return "read"

    def text(self, number: int) -> str:
        self.sentences = self.sentences or self.parser.sentences()
        chance = Random(f"{self.seed} {self.parser.name} {number}")
        letters = self.parser.letters
        if number % 100 == 99:
            return (chance.choice(letters) + chance.choice(letters)) * chance.choice(
                (50, 500, 20_000)
            )
        if number % 2:
            return "".join(chance.choices(letters, k=chance.randint(0, 30)))
        return mangled(chance, chance.choice(self.sentences), letters)
