"""Options with a few allowed values: anything else is refused, naming the option."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from .errors import DataError, G2N2Error


def check_option(
    option: str, value: object, allowed: Sequence[str], error: type[G2N2Error] = DataError
) -> None:
    """Refuse a value that an option does not take; the message names all that it takes.

    >>> check_option("level", "graph", ("graph", "node"))
    """
    if isinstance(value, str) and value in allowed:
        return
    near = get_close_matches(value.lower(), allowed, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(map(repr, allowed))
    raise error(f"{option}: got {value!r}, expected one of {listed}{hint}")
