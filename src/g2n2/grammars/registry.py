"""`register` for users: adds an operation, unless it is named like a grammar of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import GrammarError
from ..language import registry
from ..language.operations import Operation
from .catalogue import named_grammar


def register(operation: Operation) -> Operation:
    """Make an operation known: to the parser, the reductions, the networks, everything.

    Args:
        operation: A multilinear operation, such as `Operation("dg", "dg", "aa->a1")`.

    Returns:
        The operation as it is known from now on; one that is there already is not added twice.

    Raises:
        GrammarError: Its name is taken, or cannot be told from other text.

    Example:
        >>> from g2n2 import Operation, evaluate, register
        >>> path2 = register(Operation("path2", "path2", "ab,bc->ac"))
        >>> evaluate("1ᵀpath2(A, A)1", "Bw")  # walks of length 2 in a triangle
        array([[12.]])
    """
    _refuse_catalogue_names(operation)
    return registry.register(operation)


@contextmanager
def registered(*operations: Operation, alone: bool = False) -> Iterator[None]:
    """Register operations for a while, for this thread; with `alone` no others are known."""
    for operation in operations:
        _refuse_catalogue_names(operation)
    with registry.registered(*operations, alone=alone):
        yield


def _refuse_catalogue_names(operation: Operation) -> None:
    if not isinstance(operation, Operation):
        return  # which `registry.register` says
    for spelling in (operation.name, operation.symbol, *operation.aliases):
        if isinstance(spelling, str) and (grammar := named_grammar(spelling)) is not None:
            raise GrammarError(
                f"the operation {operation.name!r} cannot be written {spelling!r}: {grammar.name} "
                "is a grammar of the catalogue"
            )
