"""The one place where a term enters a public function: a Term, or its text."""

from __future__ import annotations

from typing import TypeAlias

from ..errors import ParseError
from .parsing import TERM_NAMES, parse
from .terms import Term
from .tokens import Vocabulary

TermLike: TypeAlias = Term | str
"""A term, as `as_term` takes it."""


def as_term(term: TermLike, names: Vocabulary = TERM_NAMES) -> Term:
    """A term from itself or from its text, such as `1ᵀ(A²⊙A)1` or `1^T (A^2 * A) 1`."""
    if isinstance(term, str):
        return parse(term, names)
    if not isinstance(term, Term):
        raise ParseError(
            f"got {type(term).__name__}, expected a term or its text, such as '1ᵀ(A²⊙A)1'"
        )
    return term
