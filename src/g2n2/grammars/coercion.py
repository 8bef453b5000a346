"""Grammars from what a user gives: a Grammar, a derivation, or text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import GrammarError
from .catalogue import file_text, find_grammar, named_grammar
from .grammar import Grammar

if TYPE_CHECKING:
    from ..pipeline import Derivation

GrammarLike: TypeAlias = "Grammar | Derivation | str | Path"
"""A grammar, as `as_grammar` takes it."""


def as_grammar(grammar: GrammarLike) -> Grammar:
    """A grammar from itself, from a derivation or from text, as words are made of it.

    >>> as_grammar("PPGN").name
    'PPGN'
    >>> print(as_grammar("V → AV | 1"))
    V_c → AV_c | 1
    S → 1ᵀV_c

    Args:
        grammar: A grammar; what `derive` gives, which stands for its reduced grammar; or text: a
            name of the catalogue, a printed name (`r-G_{·, Tr}`), the rules themselves, a fragment
            (`L3`, `· ᵀ 1 ⊙`), which stands for its exhaustive grammar, or a file of rules or with
            a certificate. A `Path` is always a file.

    Raises:
        GrammarError: It is neither, or there is no such grammar.
        ReductionError: A certificate is damaged, or the checker refuses it.
    """
    text = _text(grammar)
    if text is None:
        return _object(grammar)
    if text.strip() == "-":  # standard input is for the command line
        return find_grammar(text)
    from ..pipeline import choose_grammar  # upward: what a text stands for is decided there

    return choose_grammar(text, reduce=False).grammar


def as_network_grammar(
    grammar: GrammarLike, weights: Callable[[Grammar], int] | None = None
) -> Grammar:
    """As `as_grammar`, where a network is made: a fragment stands for its reduced grammar.

    A warning says so, with the numbers of weights of both networks where `weights` computes them.

    >>> from g2n2 import derive
    >>> as_network_grammar(derive("L1", witnesses=False)).name
    'r-G_L1'
    """
    text = _text(grammar)
    if text is None:
        return _object(grammar)
    if text.strip() == "-":
        return find_grammar(text)
    if (named := catalogue_grammar(text)) is not None:
        return named
    from ..pipeline import network_grammar

    return network_grammar(text, weights)


def catalogue_grammar(text: str) -> Grammar | None:
    """The grammar of the catalogue with that name; None if there is a file of that name."""
    return named_grammar(text) if file_text(text) is None else None


def _text(grammar: Any) -> str | None:
    """The text that names a grammar, or that of a path; None where it is an object."""
    if isinstance(grammar, os.PathLike):
        if not Path(grammar).is_file():
            raise GrammarError(f"there is no file {os.fspath(grammar)!r}: check the path")
        return os.path.join(os.curdir, os.fspath(grammar))
    return grammar if isinstance(grammar, str) else None


def _object(grammar: Any) -> Grammar:
    """A grammar, or the reduced one of a derivation or reduction."""
    chosen = getattr(grammar, "reduced", grammar)
    if not isinstance(chosen, Grammar):
        raise GrammarError(
            f"got {type(grammar).__name__}, expected a grammar, its name such as 'r-G_L3', or its "
            "rules such as 'V → AV | 1', or the path of a file"
        )
    return chosen


def told_apart(sides: Sequence[Any], sources: Sequence[Any] = ()) -> list[Any]:
    """Grammars and WL tests, each with a name, so that different grammars have different names.

    Those of one name get the folder of the file each is from in front, if `sources`, what the user
    gave for each side, has files in different folders; else they are numbered.
    """
    named = [side if side.name else side.named(side.in_short) for side in sides]
    folders = [*map(_folder, sources), *[""] * (len(named) - len(sources))]

    def apart(side: Any, folder: str) -> Any:
        placed = dict.fromkeys(
            (other, place)
            for other, place in zip(named, folders, strict=True)
            if other.name == side.name
        )
        namesakes = list(dict.fromkeys(other for other, _ in placed))
        if len(namesakes) == 1 or not isinstance(side, Grammar):
            return side
        places = {place for _, place in placed}
        if "" not in places and len(places) == len(placed):
            return side.named(f"{folder}/{side.name}")
        return side.named(f"{side.name} ({namesakes.index(side) + 1})")

    return [apart(side, folder) for side, folder in zip(named, folders, strict=True)]


def _folder(source: Any) -> str:
    """The name of the folder a file is in; empty for what is no file."""
    is_path = isinstance(source, str | os.PathLike)
    try:
        return Path(source).resolve().parent.name if is_path and Path(source).is_file() else ""
    except (OSError, ValueError):  # rules, too long for a name of a file
        return ""
