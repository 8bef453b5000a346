"""python -m torture: try everything and write the page, or try a sample."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import g2n2

from . import formats, strings
from .bench import CPU_SECONDS, try_cases
from .commands import bad_commands
from .faults import Faults
from .page import page
from .watch import FAULTS, MEMORY, SECONDS, try_all

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
PACKAGES = ("torch", "numpy", "rdkit", "safetensors", "optuna", "lightning")
FULL = (400, 5000)
SAMPLE = (30, 500)
"""Files of each format and strings for each parser, times their shares."""

OFFLINE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
"""Nothing is downloaded, and nothing read from a cache: all machines try the same."""


def main() -> None:
    """Try, tell, and end with 1 where something was not as it must be."""
    options = _options()
    files, texts = SAMPLE if options.sample else FULL
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        os.environ.update(OFFLINE, XDG_CACHE_HOME=str(folder / "cache"))
        os.environ.pop("G2N2_DATA", None)
        seeds = folder / "seeds"
        formats.make(seeds)
        found: dict[str, Any] = {
            "seed": options.seed,
            "versions": _versions(),
            "limits": {
                "seconds": SECONDS,
                "seconds of a command": CPU_SECONDS,
                "memory": MEMORY,
            },
        }
        wanted = [(one.name, int(files * one.share)) for one in formats.formats(seeds)]
        tallies = _tallies(partial(formats.kinds, seeds, options.seed), wanted, options)
        found["files"] = tallies
        _say(f"damaged files: {_tried(tallies):,}", begun)
        wanted = [(one.name, int(texts * one.share)) for one in strings.PARSERS]
        tallies = _tallies(partial(strings.kinds, options.seed), wanted, options)
        found["strings"] = tallies
        _say(f"strings for parsers: {_tried(tallies):,}", begun)
        bench = Faults(folder, options.seed)
        full = not options.sample
        cases = [*bench.cases(full), *bad_commands(bench, seeds, full)]
        cases = [case for case in cases if options.only in case.kind]
        counts = try_cases(cases, folder, options.workers)
        found["faults"] = {kind: asdict(count) for kind, count in counts.items()}
        found["left out"] = bench.left_out
        _say(f"faults: {sum(count.tried for count in counts.values()):,}", begun)
    found["totals"] = _totals(found)
    failures = _failures(found)
    for failure in failures:
        print(failure)
    if failures:
        sys.exit(f"{len(failures)} kinds of input or fault were not as they must be")
    if not (options.sample or options.only):
        RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(page(found), encoding="utf-8")
        _say(f"{PAGE.relative_to(ROOT)} is written", begun)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--sample", action="store_true", help="a part of everything, and no page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the name of what to try")
    return parser.parse_args()


def _tallies(
    kinds: Any, wanted: list[tuple[str, int]], options: argparse.Namespace
) -> dict[str, Any]:
    chosen = [(name, range(count)) for name, count in wanted if options.only in name]
    found = try_all(kinds, chosen, options.workers)
    return {
        name: {**vars(tally), "outcomes": dict(tally.outcomes)} for name, tally in found.items()
    }


def _tried(tallies: dict[str, Any]) -> int:
    return sum(sum(tally["outcomes"].values()) for tally in tallies.values())


def _totals(found: dict[str, Any]) -> dict[str, int]:
    inputs = [*found["files"].values(), *found["strings"].values()]

    def outcomes(*kinds: str) -> int:
        return sum(tally["outcomes"].get(kind, 0) for tally in inputs for kind in kinds)

    def at_fault(tallies: dict[str, Any]) -> int:
        return sum(tally["outcomes"].get(kind, 0) for tally in tallies.values() for kind in FAULTS)

    faults = found["faults"].values()
    return {
        "faults": sum(count["tried"] for count in faults),
        "faults lost": sum(count["tried"] - count["survived"] for count in faults),
        "files": _tried(found["files"]),
        "files at fault": at_fault(found["files"]),
        "strings": _tried(found["strings"]),
        "strings at fault": at_fault(found["strings"]),
        "tracebacks": outcomes("traceback", "crash"),
        "hangs": outcomes("hang"),
        "memory": outcomes("memory"),
        "altered": outcomes("altered"),
        "peak": max((tally["peak"] for tally in inputs), default=0),
    }


def _failures(found: dict[str, Any]) -> list[str]:
    said = []
    for name, tally in {**found["files"], **found["strings"]}.items():
        said += [f"{name}, number {number}: {what}" for number, what in tally["faults"][:3]]
    for kind, count in found["faults"].items():
        said += [f"{kind}, {failure}" for failure in count["failures"][:3]]
    return said


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in PACKAGES}
    return {"g2n2": g2n2.__version__, "Python": platform.python_version(), **packages}


def _say(text: str, begun: float) -> None:
    print(f"{text} ({time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
