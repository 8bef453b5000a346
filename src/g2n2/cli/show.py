"""How results look in a terminal: plain text lines and a few rich tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..grammars.grammar import Grammar
    from ..pipeline import Derivation

_INDENT = "  "


def say(text: str = "") -> None:
    typer.echo(text)


def as_json(content: Any) -> None:
    say(json.dumps(content, ensure_ascii=False, indent=2))


def title(text: str) -> None:
    say(f"\n{text}\n{'─' * len(text)}")


def grammar(shown: Grammar) -> None:
    for line in shown.lines():
        say(_INDENT + line)


def table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], narrow: int = 0) -> None:
    """A table as wide as the terminal allows; `narrow` columns from the left never wrap."""
    from rich.console import Console
    from rich.table import Table

    made = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for place, header in enumerate(headers):
        made.add_column(header, no_wrap=place < narrow, overflow="fold")
    for row in rows:
        made.add_row(*row)
    Console(highlight=False, markup=False, emoji=False).print(made)


def derivation(result: Derivation, order: str) -> None:
    """The whole path: fragment, exhaustive grammar, steps, reduced grammar, what is left open."""
    from ..reduction.reduce import Simulation

    reduction = result.reduction
    title(f"{result.exhaustive.name}: every typed rule over {result.fragment}")
    grammar(result.exhaustive)
    say(f"{_INDENT}{len(result.exhaustive.all_rules)} rules")
    if not result.exhaustive.sentence_rules:
        say("\nno sentences: tells nothing apart")
        return
    if not result.steps:
        say("\nNothing can be removed by proof: the grammar stays as it is.")
    for number, step in enumerate(result.steps, 1):
        title(f"Step {number}: {step.title} ({step.status})")
        say(f"{_INDENT}removed  " + "   ".join(map(str, step.removed)))
        if step.added:
            say(f"{_INDENT}instead  " + "   ".join(map(str, step.added)))
        say(f"{_INDENT}why      {step.reason}")
        for identity in step.identities:
            say(f"{_INDENT}         {identity}")
        if step.paper:
            say(f"{_INDENT}paper    {step.paper}")
        if step.ours:
            say(f"{_INDENT}ours     {step.ours}")
    title(f"{result.reduced.name}: reduced")
    grammar(result.reduced)
    say(f"{_INDENT}{len(result.reduced.rules)} rules; read-out {result.reduced.readout_text}")
    for link in reduction.links:
        if isinstance(link, Simulation):
            proof = link.proof
            lemma = " with the transpose lemma" if proof.transposed else ""
            say(
                f"{_INDENT}proved by {len(proof.witnesses)} obligations, {proof.claim.form} form"
                f"{lemma}; converse by {len(link.converse.witnesses)}"
            )
    say(f"{_INDENT}assumed: {assumption(reduction.assume)}; {level(reduction.level)}")
    title("Rules that stay")
    for kept in result.kept:
        say(f"{_INDENT}{kept.rule!s:<22} {kept.reason}")
    if reduction.alternatives:
        title("Alternatives, not substituted")
        for other in reduction.alternatives:
            say(f"{_INDENT}{'; '.join(map(str, other.grammar.rules))}")
            say(f"{_INDENT}{_INDENT}{other.note}")


def assumption(assume: str) -> str:
    return {
        "none": "nothing of A (directed graphs; Aᵀ is a rule of its own)",
        "symmetric": "A symmetric",
        "simple": "A symmetric, 0/1, no loops",
    }[assume]


def level(chosen: str) -> str:
    return {
        "graph": "graph level",
        "node": "node level, the read-out joined to each node output",
        "pair": "pair level, the read-out and both node outputs joined to each pair output",
    }[chosen]
