"""Help pages: commands in groups, none of their lines cut, each with examples that tests run."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "Understand languages, grammars and what they tell apart": {
        "derive": ("g2n2 derive L3 --out proof.json", 'g2n2 derive "· ᵀ 1 ⊙"'),
        "compare": ("g2n2 compare PPGN 3-WL", 'g2n2 compare r-G_L3 "r-G_L3 - M → MM"'),
        "separate": (
            "g2n2 separate C6 2C3",
            "g2n2 separate decalin bicyclopentyl --grammar r-G_L1",
        ),
        "power": (
            "g2n2 power r-G_L3 2-FWL --suite csl",
            'g2n2 power "V → AV | 1" --suite atlas --layers 3',
        ),
        "wl": ("g2n2 wl C6 2C3", 'g2n2 wl "rook 4×4" "Shrikhande graph" --k 2 --variant fwl'),
        "words": ("g2n2 words r-G_L1 --size 5", "g2n2 words r-G_L3 --sort M --size 3"),
        "tree": ('g2n2 tree "1ᵀA1" --grammar G_L1', 'g2n2 tree "1ᵀA²1" --dot'),
        "equal": (
            'g2n2 equal "1ᵀ(A²⊙diag(1))1" "Tr(A²)"',
            'g2n2 equal "A²⊙I" "diag(A1)" --assume simple',
        ),
        "eval": ('g2n2 eval "1ᵀ(A²⊙A)1" K4', 'g2n2 eval "A1" --graph6 C~'),
        "grammars": ("g2n2 grammars", "g2n2 grammars PPGN --latex"),
        "workbench": ("g2n2 workbench", "g2n2 workbench --port 8090"),
    },
    "Build networks from grammars": {
        "compile": (
            "g2n2 compile r-G_L3 --width 64 --layers 3 --nodes 29",
            'g2n2 compile "· ᵀ 1 ⊙" --diagram layer.svg',
        ),
        "trace": (
            'g2n2 trace "1ᵀ(A²⊙A)1" --grammar r-G_L3',
            'g2n2 trace "A²⊙A" --graph6 C~ --diagram trace.svg',
        ),
        "formula": ("g2n2 formula", "g2n2 formula C6 --grammar r-G_L3 --graph6 EhEG"),
    },
    "Train networks and predict": {
        "train": (
            "g2n2 train molecules.csv --target logp --epochs 20",
            "g2n2 train molecules.csv --target logp --grammar GNNML1 --epochs 5",
        ),
        "predict": (
            "g2n2 predict runs/molecules-logp-001 new.csv --out predictions.csv",
            "g2n2 predict runs/molecules-logp-001 --smiles CCO",
        ),
        "evaluate": (
            "g2n2 evaluate runs/molecules-logp-001",
            "g2n2 evaluate runs/molecules-logp-001 --on validation --out validation.csv",
        ),
        "sweep": (
            "g2n2 sweep sweep.toml --trials 2 --storage sweep.db",
            "g2n2 sweep sweep.toml --trials 3 --storage sweep.db --out runs/sweep",
        ),
        "datasets": ("g2n2 datasets", "g2n2 datasets qm9"),
    },
    "Check proofs, this machine, the whole chain": {
        "check": ("g2n2 check proof.json", "g2n2 check proof.json --fragment L3"),
        "doctor": ("g2n2 doctor", "g2n2 doctor --json"),
        "bench": ("g2n2 bench --quick", "g2n2 bench --quick --device cpu --threads 1"),
        "demo": ("g2n2 demo --quick --out demo", "g2n2 demo --quick --out demo --seed 1"),
    },
}


class GroupedHelp(TyperGroup):
    """The list of commands under the headings of `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One line, or several, for each command: the first line of its help."""
        left = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        for heading, names in (*GROUPS.items(), ("Others", tuple(left))):
            rows = [
                (name, (command.help or "").partition("\n\n")[0].replace("\n", " "))
                for name in names
                if (command := left.pop(name, None)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def add_examples(app: typer.Typer) -> None:
    """Put the examples of `GROUPS` below the help of each command."""
    examples = {name: lines for commands in GROUPS.values() for name, lines in commands.items()}
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        shown = "\n".join(f"  {line}" for line in examples.get(name, ()))
        command.epilog = f"\b\nExamples:\n{shown}"
