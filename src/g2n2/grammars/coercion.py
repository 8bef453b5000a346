"""The one place where a grammar enters a public function: a Grammar, its name or its rules."""

from __future__ import annotations

from typing import TypeAlias

from ..errors import GrammarError
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
        grammar: A grammar, or text: a name of the catalogue or one that was printed
            (`r-G_{·, Tr}`), the rules themselves, a file of them, a certificate, or a fragment
            (`L3`, `· ᵀ 1 ⊙`), which stands for its exhaustive grammar.

    Raises:
        GrammarError: It is neither, or there is no such grammar.
        ReductionError: The checker refuses the certificate.
    """
    if isinstance(grammar, str):
        from ..pipeline import choose_grammar  # upward: certificates are read by the checker

        return choose_grammar(grammar, reduce=False).grammar
    if not isinstance(grammar, Grammar):
        raise GrammarError(
            f"got {type(grammar).__name__}, expected a grammar, its name such as 'r-G_L3', or its "
            "rules such as 'V → AV | 1'"
        )
    return grammar
