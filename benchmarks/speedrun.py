"""How long from nothing to an error of 10 meV for U₀ of QM9, on validation molecules.

    python benchmarks/speedrun.py run results/speedrun/NAME.json [--cache FILE] [--epochs 80]
        [--rate 0.002] [--batch 64] [--distance raw,rbf16]
    python benchmarks/speedrun.py table      # writes the table of benchmarks/speedrun.md

The clock starts before anything is imported, so it counts imports, reading the data, compiling and
recording; QM9's cache file is the only thing there before. The run ends when an epoch's averaged
weights are good enough. Everything not named here is the library's default.
"""

from __future__ import annotations

import time

START = time.monotonic()  # before the imports that follow

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

ROOT = Path(__file__).parents[1]
PAGE, RECORDS = ROOT / "benchmarks" / "speedrun.md", ROOT / "results" / "speedrun"
BEGIN, END = "<!-- records: begin -->", "<!-- records: end -->"
GOAL = 10.0
"""meV."""


class GoalReached(Exception):
    """Ends the run from a callback."""


def run(out: Path, cache: str | None, goal: float, **settings: Any) -> None:
    """Train until the goal is reached or the epochs are over; write a record."""
    import torch

    from g2n2.training.config import RunConfig
    from g2n2.training.run_folder import provenance
    from g2n2.training.session import Watch, train_config

    gpu = torch.cuda.is_available()
    options: dict[str, Any] = {"track": "distance", "features": "ppgn", "energy_unit": "meV"}
    config = RunConfig(
        "qm9",
        target=("u0",),
        options={**options, **({"cache": cache} if cache else {})},
        references=True,
        precision="bf16" if gpu else "32",
        **settings,
    )
    curve: list[tuple[float, float]] = []

    def after_epoch(loop: Any) -> None:
        error = loop.progress.history[-1][loop.progress.metric]
        curve.append((round(time.monotonic() - START, 2), round(error, 3)))
        if error <= goal:
            raise GoalReached

    reached = False
    with tempfile.TemporaryDirectory() as folder:
        try:
            train_config(config, Path(folder) / "run", watch=Watch(epoch=after_epoch))
        except GoalReached:
            reached = True
    record = {
        "seconds": curve[-1][0],
        "reached": reached,
        "goal (meV)": goal,
        "validation MAE (meV)": curve[-1][1],
        "epochs": [len(curve), config.epochs],
        "curve": curve,
        "config": replace(config, options=options).as_dict(),
        "made_with": provenance(torch.device("cuda" if gpu else "cpu")),
        "command": " ".join(without_cache(sys.argv[1:])),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    state = "reached" if reached else "missed"
    print(f"{state}: {curve[-1][1]} meV after {len(curve)} epochs, {curve[-1][0]} s")


def table() -> str:
    """The records, the fastest first."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(RECORDS.glob("*.json"))]
    lines = ["| seconds | validation MAE (meV) | epochs | device | commit |", "|-|-|-|-|-|"]
    for row in sorted((row for row in rows if row["reached"]), key=lambda row: row["seconds"]):
        done, planned = row["epochs"]
        made = row["made_with"]
        cells = (
            f"{row['seconds']:.0f}",
            f"{row['validation MAE (meV)']:.2f}",
            f"{done} of {planned}",
            made["device"],
            str(made["commit"])[:9],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines if len(lines) > 2 else ["No record yet."])


def without_cache(words: list[str]) -> list[str]:
    """The words of a command that its outcome depends on: not where the cache file lies."""
    if "--cache" not in words:
        return words
    place = words.index("--cache")
    return [*words[:place], *words[place + 2 :]]


def comma_separated(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("out", type=Path)
    running.add_argument("--cache")
    running.add_argument("--epochs", type=int, default=80)
    running.add_argument("--rate", type=float, help="learning rate, if not the recipe's")
    running.add_argument("--batch", type=int, help="molecules in a step, if not the recipe's")
    running.add_argument("--distance", type=comma_separated, help="features of distances, likewise")
    running.add_argument("--limit", type=int, default=0, help="molecules, to try the script")
    running.add_argument("--goal", type=float, default=GOAL, help="meV")
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        names = ("epochs", "rate", "batch", "distance", "limit")
        run(given.out, given.cache, given.goal, **{name: getattr(given, name) for name in names})
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
