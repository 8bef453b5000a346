"""Operations of your own: one declaration makes one known everywhere.

    g2n2.register(Operation("dg", "dg", "aa->a1"))   # the diagonal, as a column

The signature is data, so certificates and saved networks carry those they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..errors import GrammarError
from .operations import BUILT_IN, FUNCTIONS, OPERATIONS, Operation
from .parsing import GRAMMAR_NAMES, TERM_NAMES
from .terms import Apply, Term, subterms

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,23}")
_FRAGMENT = re.compile(r"[Ll][0-9]+")
_LONGEST_SYMBOL = 24
_MEANINGFUL = set("·@∙⋅×⊙∘*+-−(),;|=→⟶⊤ᵀ'^.#{}[]<>\"\\/:&$%~`!?")
"""Characters that mean something in a term, a rule or a fragment."""
_LEAF = "|".join(
    [
        *sorted({*TERM_NAMES, *GRAMMAR_NAMES, "x"}, key=len, reverse=True),
        "C_?[0-9]+",
        "[svwurm][0-9]+",  # opaque words of certificates
    ]
)
_PRODUCT = re.compile(f"(?:{_LEAF})+")

FIELDS = ("name", "symbol", "signature")
"""What a file says of an operation."""


def register(operation: Operation) -> Operation:
    """Add an operation to the table; `grammars.registry.register` is the public door."""
    if not isinstance(operation, Operation):
        raise GrammarError(
            f"an operation was expected, such as Operation('dg', 'dg', 'aa->a1'), got {operation!r}"
        )
    earlier = OPERATIONS.get(operation.name)
    if earlier is not None:
        if _meaning(earlier) != _meaning(operation):
            raise GrammarError(
                f"the name {operation.name} is taken by {_described(earlier)}; it cannot also be "
                f"{_described(operation)}: choose another name"
            )
        if operation.name in BUILT_IN or set(operation.aliases) <= set(earlier.aliases):
            return earlier
        operation = replace(
            operation,
            aliases=tuple(dict.fromkeys((*earlier.aliases, *operation.aliases))),
        )
    _refuse_other_kinds(operation)
    for spelling in (operation.name, operation.symbol, *operation.aliases):
        _refuse_spelling(spelling, operation)
    OPERATIONS[operation.name] = operation
    return operation


@contextmanager
def registered(*operations: Operation, alone: bool = False) -> Iterator[None]:
    """Register operations for a while, for this thread; with `alone` it knows no others."""
    with OPERATIONS.apart():
        if alone:  # first, so that one of them may have the name of an operation beside them
            for name in set(OPERATIONS) - set(BUILT_IN):
                del OPERATIONS[name]
        for operation in operations:
            register(operation)
        yield


def described(terms: Iterable[Term], aliases: bool = False) -> list[dict[str, Any]]:
    """The registered operations some terms use, as a file describes them, by name.

    `aliases`: with their other spellings, for text that a user has written.
    """
    used = {t.op for term in terms for t in subterms(term) if isinstance(t, Apply)}
    entries: list[dict[str, Any]] = []
    for operation in (OPERATIONS[name] for name in sorted(used - set(BUILT_IN))):
        entries.append({field: getattr(operation, field) for field in FIELDS})
        if aliases and operation.aliases:
            entries[-1]["aliases"] = list(operation.aliases)
    return entries


def from_description(entry: Any) -> Operation:
    """The operation a file describes."""
    fields = dict(entry) if isinstance(entry, dict) else {}
    aliases = fields.pop("aliases", [])
    texts = [*fields.values(), *aliases] if isinstance(aliases, list) else [None]
    if set(fields) != set(FIELDS) or not all(isinstance(text, str) for text in texts):
        raise GrammarError(f"an operation is described by {', '.join(FIELDS)}, got {entry!r}")
    if fields["name"] in BUILT_IN:
        raise GrammarError(f"{fields['name']} is built in and cannot be declared anew")
    return Operation(**fields, aliases=tuple(aliases))


def _meaning(operation: Operation) -> tuple[object, ...]:
    return operation.symbol, operation.signature, operation.kind, operation.shape_of


def _described(operation: Operation) -> str:
    return f"{operation.symbol} {operation.signature!r}"


def _role(spelling: str, operation: Operation) -> str:
    if spelling == operation.name:
        return "the name"
    return "the symbol" if spelling == operation.symbol else "an alias"


def _refuse_other_kinds(operation: Operation) -> None:
    plain = Operation(operation.name, operation.symbol, operation.signature)
    for field in ("kind", "shape_of", "sorts", "notation"):
        if getattr(operation, field) != getattr(plain, field):
            raise GrammarError(
                f"{operation.name}: {field} is for built-in operations; an operation that is "
                "registered is multilinear, its signature says all, and it is written "
                f"{operation.name}(…)"
            )


def _refuse_spelling(spelling: str, operation: Operation) -> None:
    """Refuse a spelling that some text could mean otherwise."""
    shown = f"the operation {operation.name!r} cannot be written {spelling!r}"
    if not isinstance(spelling, str) or not spelling:
        raise GrammarError(f"{shown}: a spelling is some text")
    if spelling.isascii() or spelling == operation.name:
        if not _NAME.fullmatch(spelling):
            raise GrammarError(
                f"{shown}: write it with letters, digits and _, a letter first, 24 at most"
            )
    elif (
        len(spelling) > _LONGEST_SYMBOL
        or not spelling.isprintable()
        or any(x.isspace() or x in _MEANINGFUL or x.isnumeric() for x in spelling)
    ):
        raise GrammarError(
            f"{shown}: it holds a space, a digit or a sign that means something else"
        )
    if spelling in FUNCTIONS:
        raise GrammarError(f"{shown}: {spelling} is a pointwise function")
    if _FRAGMENT.fullmatch(spelling):
        raise GrammarError(f"{shown}: L1, L2 … are names of fragments")
    others = [op for op in OPERATIONS.values() if op.name != operation.name]
    for other in others:
        if spelling in (other.name, other.symbol, *other.aliases):
            role = "name" if spelling == operation.name else "spelling"
            raise GrammarError(
                f"the {role} {spelling!r} is already {_role(spelling, other)} of {other.symbol}; "
                "choose another"
            )
    if _PRODUCT.fullmatch(spelling):
        raise GrammarError(f"{shown}: it reads as a variable, or as a product of some")
    calls = [*FUNCTIONS, *(call for other in others for call in other.spellings)]
    for call in calls:
        for longer, shorter in ((spelling, call), (call, spelling)):
            if longer.endswith(shorter) and _PRODUCT.fullmatch(longer[: -len(shorter)]):
                raise GrammarError(
                    f"{shown}: {longer}(…) would also read as "
                    f"{longer[: -len(shorter)]}·{shorter}(…)"
                )
