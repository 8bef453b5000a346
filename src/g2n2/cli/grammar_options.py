"""How every command takes a grammar: one help text, two options, one look-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..pipeline import Chosen
    from ..power.refinement import WLTest

HELP = "A name, rules, a file of either, a certificate, a fragment, or - for a pipe."
HELP_OR_TEST = "A name, rules, a certificate, a fragment, a WL test such as 3-WL, or - for a pipe."

Reduce = Annotated[
    bool | None,
    typer.Option("--reduce/--exhaustive", help="Which grammar a fragment stands for."),
]
"""None where nothing was said: reduced for a network, exhaustive where words are asked for."""


def of_words(text: str, reduce: bool | None = None) -> Chosen:
    """The grammar whose words are asked for: a fragment is exhaustive unless it is reduced."""
    from ..pipeline import choose_grammar

    return choose_grammar(text, reduce=bool(reduce), exhaustive=reduce is False)


def of_network(text: str, reduce: bool | None = None) -> Chosen:
    """The grammar a network is made of: a fragment is reduced unless the other is asked for."""
    from ..pipeline import choose_grammar

    return choose_grammar(text, reduce=reduce is not False, exhaustive=reduce is False)


def of_words_or_test(text: str, reduce: bool | None = None) -> Chosen | WLTest:
    """A WL test by its name, else the grammar whose words are asked for."""
    from ..power.refinement import WLTest

    return WLTest.find(text) or of_words(text, reduce)
