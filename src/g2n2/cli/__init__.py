"""The command line: one module per group of commands, imported when one of them is called.

Help lists the commands in groups, no line cut, and for each command examples that tests run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import G2N2Error, G2N2Warning
from .plugins import load_plugin

GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "Understand languages, grammars and what they tell apart": {
        "derive": ("reduction", "g2n2 derive L3 --out proof.json", 'g2n2 derive "· ᵀ 1 ⊙"'),
        "compare": ("reduction", "g2n2 compare PPGN 3-WL", 'g2n2 compare r-G_L3 "r-G_L3 - M → MM"'),
        "separate": (
            "power",
            "g2n2 separate C6 2C3",
            "g2n2 separate decalin bicyclopentyl --grammar r-G_L1",
        ),
        "power": (
            "power",
            "g2n2 power r-G_L3 2-FWL --suite csl",
            'g2n2 power "V → AV | 1" --suite atlas --layers 3',
        ),
        "wl": (
            "power",
            "g2n2 wl C6 2C3",
            'g2n2 wl "rook 4×4" "Shrikhande graph" --k 2 --variant fwl',
        ),
        "words": ("grammar", "g2n2 words r-G_L1 --size 5", "g2n2 words r-G_L3 --sort M --size 3"),
        "tree": ("grammar", 'g2n2 tree "1ᵀA1" --grammar G_L1', 'g2n2 tree "1ᵀA²1" --dot'),
        "equal": (
            "grammar",
            'g2n2 equal "1ᵀ(A²⊙diag(1))1" "Tr(A²)"',
            'g2n2 equal "A²⊙I" "diag(A1)" --assume simple',
        ),
        "eval": ("grammar", 'g2n2 eval "1ᵀ(A²⊙A)1" K4', 'g2n2 eval "A1" --graph6 C~'),
        "grammars": ("grammar", "g2n2 grammars", "g2n2 grammars PPGN --latex"),
        "workbench": ("machine", "g2n2 workbench", "g2n2 workbench --port 8090"),
    },
    "Build networks from grammars": {
        "compile": (
            "compile",
            "g2n2 compile r-G_L3 --width 64 --layers 3 --nodes 29",
            'g2n2 compile "· ᵀ 1 ⊙" --diagram layer.svg',
        ),
        "trace": (
            "compile",
            'g2n2 trace "1ᵀ(A²⊙A)1" --grammar r-G_L3',
            'g2n2 trace "A²⊙A" --graph6 C~ --diagram trace.svg',
        ),
        "formula": ("compile", "g2n2 formula", "g2n2 formula C6 --grammar r-G_L3 --graph6 EhEG"),
    },
    "Train networks and predict": {
        "train": (
            "train",
            "g2n2 train molecules.csv --target logp --epochs 20",
            "g2n2 train molecules.csv --target logp --grammar GNNML1 --epochs 5",
            "g2n2 train molecules.csv --from runs/molecules-logp-001 --freeze 1 --epochs 5",
        ),
        "predict": (
            "run",
            "g2n2 predict runs/molecules-logp-001 new.csv --out predictions.csv",
            "g2n2 predict qm9 --smiles CCO",
        ),
        "explain": (
            "explain",
            "g2n2 explain qm9 --smiles CCO --target mu --check 3",
            "g2n2 explain runs/molecules-logp-001 new.csv --out why.svg --check 3",
        ),
        "evaluate": (
            "run",
            "g2n2 evaluate runs/molecules-logp-001",
            "g2n2 evaluate runs/molecules-logp-001 --on validation --out validation.csv",
        ),
        "sweep": (
            "train",
            "g2n2 sweep sweep.toml --trials 2 --storage sweep.db",
            "g2n2 sweep sweep.toml --trials 3 --storage sweep.db --out runs/sweep",
        ),
        "datasets": ("run", "g2n2 datasets", "g2n2 datasets qm9"),
    },
    "Check proofs, this machine, the whole chain": {
        "check": ("reduction", "g2n2 check proof.json", "g2n2 check proof.json --fragment L3"),
        "doctor": ("machine", "g2n2 doctor", "g2n2 doctor --json"),
        "bench": ("machine", "g2n2 bench --quick", "g2n2 bench --quick --device cpu --threads 1"),
        "demo": (
            "machine",
            "g2n2 demo --quick --out demo",
            "g2n2 demo --quick --out demo --seed 1",
        ),
    },
}
"""By heading: the module of each command, without `_commands`, and its examples."""
MODULES = {name: module for group in GROUPS.values() for name, (module, *_) in group.items()}


OF_TERMS = ("tree", "equal", "eval", "trace")
"""The commands that take terms."""


def function_of(name: str) -> Callable[..., None]:
    """The function of a command; one that is called as a builtin has a name that ends in `_`."""
    source = vars(import_module(f".{MODULES[name]}_commands", __package__))
    function: Callable[..., None] = source.get(f"{name}_") or source[name]
    return function


class LazyCommands(TyperGroup):
    """The commands of `GROUPS`, listed under its headings; each is imported when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; for an unknown one all are imported, to suggest the nearest."""
        for name in [cmd_name] if cmd_name in MODULES else MODULES:
            if name not in self.commands:
                self._import(name)
        return self.commands.get(cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a term such as −A is no option, and the message says where it goes."""
        try:
            return super().invoke(ctx)
        except Exception as fault:  # of click, or of the copy of it that typer brings along
            option = getattr(fault, "option_name", "--")
            if not option.startswith("--") and vars(fault)["ctx"].info_name in OF_TERMS:
                vars(fault)["message"] += f"; if {option}… is a term, write -- before it"
            raise

    def _import(self, name: str) -> None:
        """Add a command, with its examples below its help."""
        commands = typer.Typer(rich_markup_mode=None)
        commands.callback()(lambda: None)
        commands.command(name)(function_of(name))
        self.commands.update(typer.main.get_group(commands).commands)
        examples = next(group[name][1:] for group in GROUPS.values() if name in group)
        shown = "\n".join(f"  {line}" for line in examples)
        self.commands[name].epilog = f"\b\nExamples:\n{shown}"

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One line, or several, for each command: the first line of its help."""
        for heading, names in GROUPS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name, (command.help or "").partition("\n\n")[0].replace("\n", " "))
                        for name, command in commands.items()
                        if not command.hidden
                    ]
                )


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
