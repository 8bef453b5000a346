"""demo: derive a network, prove it, train it beside a GIN, write a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from . import show


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report, figure and runs.")] = Path(
        "build/demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of graphs, weights and batches.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds, to see the steps; claims nothing.")
    ] = False,
) -> None:
    """Derive a network with its proof, train it against a GIN.

    Exit code 1 means that a claim about R² does not hold.
    """
    from ..demo import settings
    from ..demo.run import closing, demonstrate
    from ..training.display import plain_console

    chosen = replace(settings.QUICK if quick else settings.FULL, seed=seed)
    try:
        outcome = demonstrate(chosen, out, plain_console())
    except KeyboardInterrupt:
        show.say("\nstopped; begin anew with the same command")
        raise typer.Exit(130) from None
    show.say()
    for claim in outcome.claims:
        show.say(f"{'✓' if claim.holds else '✗ does not hold:'} {claim.text}")
    if quick:
        show.say("--quick trains too briefly to claim anything; leave it out for the real run.")
    for line in closing(outcome, out):
        show.say(line)
    raise typer.Exit(0 if outcome.holds else 1)
