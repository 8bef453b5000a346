"""Protocols of the questions, read from `protocols.md`: written once, for the page and the docs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..demonstration.blocks import Text


def protocol(question: str) -> tuple[Text, ...]:
    """Its paragraphs."""
    return _all()[question]


@cache
def _all() -> dict[str, tuple[Text, ...]]:
    content = files(__package__).joinpath("protocols.md").read_text(encoding="utf-8")
    found = {}
    for part in f"\n{content}".split("\n# ")[1:]:
        name, *paragraphs = part.strip().split("\n\n")
        found[name] = tuple(Text(paragraph) for paragraph in paragraphs)
    return found
