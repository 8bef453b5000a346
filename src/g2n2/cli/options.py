"""Options several commands share, and how a command looks up its grammar."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import DataError

if TYPE_CHECKING:
    from ..pipeline import Chosen
    from ..power.wl_tests import WLTest


Assume = Literal["symmetric", "simple", "none"]
Device = Literal["auto", "cpu", "cuda"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AssumeOption = Annotated[
    Assume,
    typer.Option(
        help="What is known of A: symmetric (undirected), simple (also 0/1, no loops), or none."
    ),
]
ReadoutOption = Annotated[
    Literal["grammar", "pooled", "pooled-only", "sum", "mean", "max"] | None,
    typer.Option(
        metavar="[grammar|pooled|pooled-only]",  # the others are the old spelling of --pooling
        help="The rules of S, pooled memories beside them, or pooled memories alone. "
        "[the preset's]",
    ),
]
PoolingOption = Annotated[
    Literal["sum", "mean", "max"] | None,
    typer.Option(help="How memories are pooled. [the preset's]"),
]
FunctionsOption = Annotated[
    Literal["mlp", "free"] | None,
    typer.Option(help="MLPs on every memory, or only where they add no power. [mlp]"),
]
PairBias = Annotated[
    bool | None,
    typer.Option("--pair-bias/--no-pair-bias", help="Biases in MLPs on M. [the preset's]"),
]
PairNormOption = Annotated[
    Literal["entry", "graph", "none"] | None,
    typer.Option(help="How modern normalises M: by entry, by graph, or not. [the preset's]"),
]
MarksOption = Annotated[
    str | None,
    typer.Option(
        help="Nodes that Σ marks: all; orbits, one of each; heavy, all but leaves; or how many are "
        "drawn in training. [all]"
    ),
]
TrunkOption = Annotated[
    int | None,
    typer.Option(help="Layers before the marks, which all marked copies share. [0]"),
]
Smiles = Annotated[
    str | None, typer.Option(help="Column with the SMILES. [found by name or content]")
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column with the ids. [found by name or content]")
]
OnBadOption = Annotated[
    Literal["skip", "refuse"] | None,
    typer.Option(help="What to do with records that cannot be read. [skip]"),
]
OptionList = Annotated[
    list[str] | None,
    typer.Option("--option", help="KEY=VALUE for the data set or reader, such as energy_unit=meV."),
]
DataFolder = Annotated[
    str | None, typer.Option(help="Folder that is searched first for data sets.")
]
HELP = "A name, rules, a file of either, a certificate, a fragment, or - for a pipe."
HELP_OR_TEST = "A name, rules, a certificate, a fragment, a WL test such as 3-WL, or - for a pipe."

Reduce = Annotated[
    bool | None,
    typer.Option(
        "--reduce/--exhaustive",
        help="Reduce a set of operations, or take all its rules. "
        "[reduced for networks, exhaustive for words]",
    ),
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
    from ..power.wl_tests import WLTest

    return WLTest.find(text) or of_words(text, reduce)


def parsed_options(pairs: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` texts, with true, false and numbers as such.

    Raises:
        DataError: One has no `=`.
    """
    options: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise DataError(f"--option {pair!r} should read KEY=VALUE, for instance track=distance")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        options[key] = value if isinstance(value, bool | int | float) else text
    return options
