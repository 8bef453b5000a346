"""Check what files and options say against what is declared, before anything is made of it.

A shape is a type (`float` takes any finite number), an `Int` with bounds, a tuple of allowed
values and types, `[shape]` for a list, `{"name": shape}` for a table with at least these fields, or
`{str: shape}` for a table with any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .errors import DataError, G2N2Error, guess

MOST_WIDTH = 1 << 16
MOST_LAYERS = 256
MOST_WEIGHTS = 200_000_000
"""In the square maps of all layers alone; a network has several such maps in a layer."""


@dataclass(frozen=True)
class Int:
    """A whole number between bounds, both allowed."""

    least: int = 0
    most: int = 1 << 53


def check(value: Any, shape: Any, field: str, source: object) -> None:
    """Compare a value, as JSON or TOML gives it, with its shape.

    Args:
        value: The value.
        shape: Its shape.
        field: What it is called.
        source: The file; None for an option a user gives.

    Raises:
        DataError: Naming the field, what was got and what is allowed.
    """
    if isinstance(shape, list) and isinstance(value, list):
        for index, part in enumerate(value):
            check(part, shape[0], f"{field}[{index}]", source)
    elif isinstance(shape, dict) and isinstance(value, dict):
        if str in shape:
            shape = dict.fromkeys(value, shape[str])
        for name, part in shape.items():
            if name not in value:
                raise DataError(f"{source} is damaged: {field} has no {name}")
            check(value[name], part, f"{field}.{name}", source)
    elif not _fits(value, shape):
        shown = repr(value)
        shown = shown if len(shown) < 60 else f"{shown[:57]}…"
        damaged = "" if source is None else f"{source} is damaged: "
        raise DataError(f"{damaged}{field} should be {_named(shape)}, got {shown}")


def read_as(kind: Any, value: Any, field: str, source: object) -> Any:
    """A value of a declared type out of plain JSON, as `asdict` writes it.

    Types are dataclasses, tuples, mappings, `Literal`, unions and plain types; whole numbers are at
    least 0. A field of a dataclass may be absent if it has a default, and unknown ones are left
    out.

    Raises:
        DataError: As `check`.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        check(value, {}, field, source)
        hints, given = get_type_hints(kind), {}
        for entry in fields(kind):
            name = entry.name
            if name in value:
                inner = f"{field}.{name}" if field else name
                given[name] = read_as(hints[name], value[name], inner, source)
            elif entry.default is MISSING and entry.default_factory is MISSING:
                raise DataError(f"{source} is damaged: {field} has no {name}")
        return kind(**given)
    if origin is Mapping:
        check(value, {}, field, source)
        return {k: read_as(parts[1], v, f"{field}.{k}", source) for k, v in value.items()}
    if origin is tuple:
        check(value, [object], field, source)
        kinds = [parts[0]] * len(value) if parts[-1] is ... else parts
        if len(kinds) != len(value):
            raise DataError(f"{source} is damaged: {field} should have {len(kinds)} numbers")
        read = zip(kinds, value, strict=True)
        return tuple(read_as(k, v, f"{field}[{i}]", source) for i, (k, v) in enumerate(read))
    if origin in (UnionType, Union):
        if get_origin(parts[0]) is tuple and value is not None:
            return read_as(parts[0], value, field, source)
        choices = (get_args(p) if get_origin(p) is Literal else (p,) for p in parts)
        parts = tuple(None if p is NoneType else p for choice in choices for p in choice)
    check(value, parts or (Int() if kind is int else kind), field, source)
    return value


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(
            _fits(value, part) if isinstance(part, type) else value == part for part in shape
        )
    if isinstance(shape, Int):
        return type(value) is int and shape.least <= value <= shape.most
    if shape in (Any, object):
        return True
    if shape is float:
        return type(value) in (int, float) and math.isfinite(value)
    return isinstance(shape, type) and type(value) is shape


def _named(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(_named(part) if isinstance(part, type) else str(part) for part in shape)
    if isinstance(shape, Int):
        return f"a whole number from {shape.least} to {shape.most}"
    if isinstance(shape, list | dict):
        return "a list" if isinstance(shape, list) else "a table"
    return {float: "a finite number", str: "text", bool: "true or false"}.get(shape, str(shape))


def check_option(
    option: str, value: object, allowed: Sequence[str], error: type[G2N2Error] = DataError
) -> None:
    """Refuse a value that an option does not take; the message names all that it takes.

    >>> check_option("level", "graph", ("graph", "node"))
    """
    if isinstance(value, str) and value in allowed:
        return
    listed, near = (
        ", ".join(map(repr, allowed)),
        guess(value, allowed) if isinstance(value, str) else "",
    )
    raise error(f"{option}: got {value!r}, expected one of {listed}{near}")
