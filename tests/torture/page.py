"""docs/reliability.md, from the counts of a full torture run."""

from __future__ import annotations

from typing import Any

INTRODUCTION = """# Reliability

What happens to runs, files and predictions when things go wrong, as counted by one command:

    make torture

It starts real processes of the command line and hits them, then gives every reader and parser
damaged input. `make torture-sample` does a part of it in two minutes and fails where anything is
lost; it is part of what every change must pass. Everything below is written by the command
(`tests/torture`), from `results/reliability.json`.
"""

SURVIVED = """
A fault is survived if nothing is lost or mixed: a run that was hit ends, once it is resumed, with
the same weights, metrics and predictions to the last byte as one that was left alone; an output is
the old file or the new one, whole; of several writers each has its own result or is told who has
the folder; and whoever cannot go on says so in a message, exit code 2, without a traceback, and
within {seconds:g} s of CPU time.
"""

INPUTS = """
Each file is a valid one with bytes, lines, cells, fields or members changed. "Read" means that what
was left made sense. Where a format has checksums (certificates, models, run folders, checkpoints)
reading must give what was written or nothing, and anything else counts as altered.
"Resealed" files were changed by someone who made the checksum fit. Limits for each input: {seconds:g} s of
CPU time (a hang) and {memory:g} GB of memory, libraries included.
"""

PEERS = """## What others promise

SQLite promises more, and for longer: transactions that are atomic and durable across crashes and
power failures, and it is tested with simulated crashes, I/O errors, failing allocations and
malformed databases at full branch coverage ("How SQLite Is Tested", "Atomic Commit In SQLite"). We
kill processes and fill disks, but we cannot cut the power: that a file is whole after that rests on
fsync before rename, as it does there, and is not shown here. safetensors promises that loading a
file runs no code, that its header is bounded (100 MB) and that offsets lie inside the file; it has
no checksum, so a flipped bit in a weight loads as another weight, which is why our model files
carry one. Lightning's checkpoints hold the whole state of training and are written in a transaction
of fsspec, so that an interrupted save leaves no half file (`_atomic_save`; earlier versions did
not, issues 688 and 19970); they carry no checksum, nothing keeps two trainers out of one folder,
and they are pickles. None of the three is made for what we do with them, and none counts damaged
scientific files; we know of no peer that does, so there is no number to compare with.
"""


def page(found: dict[str, Any]) -> str:
    """The page for what a run has found."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    totals = found["totals"]
    parts = [
        INTRODUCTION,
        f"Seed {found['seed']}; {versions}.\n",
        _table(
            ("", "tried", "not as promised"),
            [
                ("faults", totals["faults"], totals["faults lost"]),
                ("damaged files", totals["files"], totals["files at fault"]),
                ("strings for parsers", totals["strings"], totals["strings at fault"]),
            ],
        ),
        f"Tracebacks: {totals['tracebacks']}. Hangs: {totals['hangs']}. "
        f"Over {found['limits']['memory'] / 1e9:g} GB of memory: {totals['memory']} "
        f"(the most was {totals['peak'] / 1e6:,.0f} MB). Altered content taken for what was written: "
        f"{totals['altered']}. Results lost or mixed: {totals['faults lost']}.\n",
        "## Faults\n",
        SURVIVED.lstrip().format(seconds=found["limits"]["seconds of a command"]),
        _table(
            ("fault", "tried", "survived"),
            [(kind, count["tried"], count["survived"]) for kind, count in found["faults"].items()],
        ),
        *(
            f"Not tried on this machine: {', '.join(found['left out'])}.\n"
            for _ in [0]
            if found["left out"]
        ),
        "## Damaged files\n",
        INPUTS.lstrip().format(
            seconds=found["limits"]["seconds"], memory=found["limits"]["memory"] / 1e9
        ),
        _inputs("format", found["files"]),
        "## Strings for parsers\n",
        "Half is noise, half are sentences of the parser's own language with one to three slips.\n",
        _inputs("parser", found["strings"]),
        PEERS,
    ]
    return "\n".join(parts)


def _inputs(what: str, tallies: dict[str, Any]) -> str:
    headers = (
        what,
        "tried",
        "read",
        "refused",
        "tracebacks",
        "hangs",
        "memory",
        "altered",
        "slowest",
    )
    rows = []
    for name, tally in tallies.items():
        said = tally["outcomes"]
        broken = said.get("traceback", 0) + said.get("crash", 0)
        counts = (said.get(kind, 0) for kind in ("hang", "memory", "altered"))
        rows.append(
            (
                name,
                sum(said.values()),
                said.get("read", 0),
                said.get("refused", 0),
                broken,
                *counts,
                f"{tally['slowest']:.1f} s",
            )
        )
    return _table(headers, rows)


def _table(headers: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [f"| {' | '.join(headers)} |", f"|-|{'-:|' * (len(headers) - 1)}"]
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
