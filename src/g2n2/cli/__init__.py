"""The command line: one module per group of commands; heavy imports wait for the command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import G2N2Error
from . import (
    bench_commands,
    compile_commands,
    demo_commands,
    experiment_commands,
    grammar_commands,
    power_commands,
    reduction_commands,
    report_commands,
    run_commands,
    term_commands,
    train_commands,
)
from .plugins import load_plugin

app = typer.Typer(
    help="From a set of matrix operations to a graph neural network of known power.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (
    reduction_commands,
    power_commands,
    compile_commands,
    train_commands,
    run_commands,
    term_commands,
    grammar_commands,
    experiment_commands,
    report_commands,
    bench_commands,
    demo_commands,
):
    group.register(app)


@app.callback()
def options(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module, or a .py file, that registers operations; may be given several times.",
            metavar="MODULE",
        ),
    ] = None,
) -> None:
    """From a set of matrix operations to a graph neural network of known power."""
    for module in plugin or ():
        load_plugin(module)


def main() -> None:
    """Run the command line; exit 2 always means bad input."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except G2N2Error as fault:
        typer.echo(f"error: {fault}", err=True)
        raise SystemExit(2) from None
