"""Examples in docstrings become code blocks of the reference pages."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Fences each paragraph of a docstring that starts with `>>>`."""

    def on_object(self, *, obj: griffe.Object, **unused: Any) -> None:
        """Rewrite the docstring of an object once it is loaded."""
        if obj.docstring is not None:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(_fenced, paragraphs))


def _fenced(paragraph: str) -> str:
    return f"```pycon\n{paragraph}\n```" if paragraph.startswith(">>> ") else paragraph
