"""The command line: one module per group of commands, imported when one of them is called."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from .. import __version__
from ..errors import G2N2Error, G2N2Warning
from .help import LazyCommands
from .plugins import load_plugin

app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"g2n2 {__version__}")
        raise typer.Exit


@app.callback()
def options(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module, or a .py file, that registers operations; may be given several times.",
            metavar="MODULE",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """From a set of matrix operations to a graph neural network of known power.

    COMMAND --help explains a command, with examples.
    """
    for module in plugin or ():
        load_plugin(module)


_python_format = warnings.formatwarning


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Our own warnings as a note to the user; others as Python shows them."""
    if issubclass(category, G2N2Warning):
        return f"note: {message}\n"
    return _python_format(message, category, filename, lineno, line)


def main() -> None:
    """Run the command line; exit 2 always means bad input."""
    report_errors(app)


def report_errors(commands: typer.Typer) -> None:
    """Run some commands; an error of ours is a line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = _format_warning
    try:
        commands()
    except G2N2Error as fault:
        typer.echo(f"error: {fault}", err=True)
        raise SystemExit(2) from None
