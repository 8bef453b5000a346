"""The one place where a grammar enters a public function: a Grammar, its name or its rules."""

from __future__ import annotations

from typing import TypeAlias

from ..errors import GrammarError
from .catalogue import find_grammar
from .grammar import Grammar

GrammarLike: TypeAlias = Grammar | str
"""A grammar, as `as_grammar` takes it."""


def as_grammar(grammar: GrammarLike) -> Grammar:
    """A grammar from itself or from text.

    >>> as_grammar("PPGN").name
    'PPGN'
    >>> print(as_grammar("V → AV | 1"))
    V_c → AV_c | 1
    S → 1ᵀV_c

    Args:
        grammar: A grammar, or text: a name of the catalogue, the rules themselves, a fragment
            (`L3`, `· ᵀ 1 ⊙`), or a file of rules.

    Raises:
        GrammarError: It is neither, or there is no such grammar.
    """
    if isinstance(grammar, str):
        return find_grammar(grammar)
    if not isinstance(grammar, Grammar):
        raise GrammarError(
            f"got {type(grammar).__name__}, expected a grammar, its name such as 'r-G_L3', or its "
            "rules such as 'V → AV | 1'"
        )
    return grammar
