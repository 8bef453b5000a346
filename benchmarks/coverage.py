"""Do intervals hold what they promise? Test coverage on four data sets, five seeds each.

    python benchmarks/coverage.py prepare FOLDER       # writes the graphs; needs RDKit and the data
    python benchmarks/coverage.py run FOLDER RECORD    # trains; needs FOLDER only
    python benchmarks/coverage.py table RECORD PAGE    # puts the table into a page of docs/

Every run is a small network of r-G_L3. Validation and test graphs are drawn anew for each seed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from g2n2.data.graph_set import GraphSet
from g2n2.data.splits import split
from g2n2_paper.molecule_sets import load_graphs, save_graphs

LEVELS = (0.8, 0.9, 0.95)
SEEDS = range(5)
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


@dataclass(frozen=True)
class Case:
    """A data set and how it is trained on.

    Attributes:
        label: For the table.
        epochs: At most.
        fractions: Of the graphs, for training, validation and test. None for ZINC: its official
            validation and test molecules are shared out anew, the surrogate training set is kept.
    """

    label: str
    epochs: int
    fractions: tuple[float, float, float] | None


CASES = {
    "qm9": Case("QM9 gap, 20,000 molecules", 30, (0.8, 0.1, 0.1)),
    "zinc": Case("ZINC, surrogate training set", 30, None),
    "lipophilicity": Case("Lipophilicity", 50, (0.5, 0.25, 0.25)),
    "nci1": Case("NCI1", 50, (0.5, 0.25, 0.25)),
}


def prepare(folder: Path) -> None:
    """Read the data sets and write them as plain arrays."""
    from g2n2.data.catalogue import load_dataset
    from g2n2.data.files import DataFile
    from g2n2.data.reading import read_with

    qm9 = load_dataset("qm9", options={"targets": ("gap",), "energy_unit": "meV"})
    chosen = np.sort(np.random.default_rng(0).permutation(len(qm9))[:20_000])
    table = DataFile("MoleculeNet", "Lipophilicity.csv", "moleculenet").find(None)
    assert table is not None, "Lipophilicity.csv is not in $G2N2_DATA"
    sets = {
        "qm9": qm9.select(chosen),
        "zinc": load_dataset("zinc"),
        "lipophilicity": read_with(str(table), {"target": ("exp",)}),
        "nci1": load_dataset("nci1"),
    }
    for name, graphs in sets.items():
        save_graphs(graphs, folder / f"{name}.npz")
        print(f"{name}: {graphs!r}, {(folder / f'{name}.npz').stat().st_size / 2**20:.1f} MiB")


def parts_of(name: str, graphs: GraphSet, seed: int) -> dict[str, Any]:
    """Who is trained on, validated on and tested on, for one seed."""
    fractions = CASES[name].fractions
    if fractions is not None:
        return split(graphs, "random", seed, fractions)
    official = 10_000 + np.random.default_rng(seed).permutation(2_000)
    return {
        "train": np.arange(10_000),
        "validation": np.sort(official[:1_000]),
        "test": np.sort(official[1_000:]),
    }


def one_run(folder: Path, name: str, seed: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train once and measure on the test graphs."""
    from g2n2.training.config import RunConfig
    from g2n2.training.run import Run
    from g2n2.training.session import train_config

    began = time.monotonic()
    graphs = load_graphs(folder / f"{name}.npz")
    if limit := settings["limit"]:
        graphs = graphs.select(np.random.default_rng(0).permutation(len(graphs))[:limit])
        parts = split(graphs, "random", seed, (0.5, 0.25, 0.25))
    else:
        parts = parts_of(name, graphs, seed)
    graphs = replace(graphs, splits=parts)
    config = RunConfig.from_dict(
        {
            "dataset": name,
            "split": "stored",
            "grammar": "r-G_L3",
            "width": settings["width"],
            "layers": 3,
            "epochs": settings["epochs"] or CASES[name].epochs,
            "seed": seed,
            "threads": 1,
        }
    )
    with tempfile.TemporaryDirectory() as made:
        result = train_config(config, Path(made) / "run", graphs=graphs, pictures=False)
        outcome = Run(result.folder, graphs=graphs).evaluate("test")
    assert outcome.calibration is not None
    scores = outcome.scores[graphs.columns[0].name]
    row: dict[str, Any] = {
        "data": name,
        "seed": seed,
        "unit": graphs.columns[0].unit,
        "graphs": {part: len(members) for part, members in parts.items()},
        "best_epoch": result.best_epoch,
        "scores": scores,
        "notes": sum(map(bool, outcome.notes)),
    }
    if outcome.task.kind == "regression":
        errors = np.abs(outcome.predicted - outcome.targets)[:, 0]
        row["levels"] = {
            f"{level:g}": {
                **replace(outcome, interval=level).reliability[graphs.columns[0].name],
                "fresh_coverage": fresh_coverage(errors, level, seed),
            }
            for level in LEVELS
        }
    else:
        row["probabilities"] = outcome.reliability[graphs.columns[0].name]
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def fresh_coverage(errors: Any, level: float, seed: int) -> float:
    """Coverage with half of the test graphs in the place of the validation graphs.

    Those chose nothing, while the validation graphs also chose the epoch: the difference between
    the two coverages is what that costs. Each half is used once.
    """
    from g2n2.training.calibration import conformal_rank

    order = np.random.default_rng(seed).permutation(len(errors))
    halves = errors[order[: len(order) // 2]], errors[order[len(order) // 2 :]]
    shares = [
        float((tested <= np.sort(used)[conformal_rank(len(used), level) - 1]).mean())
        for used, tested in (halves, halves[::-1])
    ]
    return float(np.mean(shares))


def run(folder: Path, record: Path, options: argparse.Namespace) -> None:
    """Train all cases, several at a time, and write the record after each."""
    import torch

    from g2n2.training.run_folder import provenance

    settings = {"width": options.width, "epochs": options.epochs, "limit": options.limit}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made_on = provenance(device)
    deadline = time.monotonic() + 60 * options.minutes
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        waiting = {
            pool.submit(one_run, folder, name, seed, settings): (name, seed)
            for seed in SEEDS
            for name in options.only or CASES
        }
        for done in as_completed(waiting):
            name, seed = waiting[done]
            if done.cancelled():
                continue
            try:
                rows.append(done.result())
                print(json.dumps(rows[-1]), flush=True)
            except Exception as error:  # the other runs still count
                print(f"{name}, seed {seed}: {type(error).__name__}: {error}", flush=True)
            rows.sort(key=lambda row: (list(CASES).index(row["data"]), row["seed"]))
            record.parent.mkdir(parents=True, exist_ok=True)
            content = {"settings": settings, "provenance": made_on, "runs": rows}
            record.write_text(json.dumps(content, indent=1) + "\n")
            if time.monotonic() > deadline:
                for left in waiting:
                    left.cancel()


def table(record: Path) -> str:
    """The record as Markdown: means over seeds, the deviation of the coverage beside it."""
    rows = json.loads(record.read_text())["runs"]
    levels = [f"{level:g}" for level in LEVELS]
    lines = [
        "| data | test graphs | seeds | MAE | "
        + " | ".join(f"{100 * level:g} % intervals hold" for level in LEVELS)
        + " | 90 %, fresh graphs | half-width, 90 % |",
        "|-|-|-|-|" + "-|" * (len(LEVELS) + 2),
    ]
    classes = [
        "| data | test graphs | seeds | accuracy | temperature | NLL before → after "
        "| ECE before → after |",
        "|-|-|-|-|-|-|-|",
    ]
    for name, case in CASES.items():
        own = [row for row in rows if row["data"] == name]
        if not own:
            continue
        start = f"| {case.label} | {own[0]['graphs']['test']:,} | {len(own)} |"
        if "levels" in own[0]:
            held = [[100 * row["levels"][level]["coverage"] for row in own] for level in levels]
            fresh = _mean([100 * row["levels"]["0.9"]["fresh_coverage"] for row in own])
            half = _mean([row["levels"]["0.9"]["width"] / 2 for row in own])
            shown = " | ".join(f"{np.mean(x):.1f} ± {np.std(x):.1f} %" for x in held)
            mae = _mean([row["scores"]["mae"] for row in own])
            unit = f" {own[0]['unit']}".rstrip()
            lines.append(f"{start} {mae:.3g}{unit} | {shown} | {fresh:.1f} % | {half:.3g}{unit} |")
        else:
            found = [row["probabilities"] for row in own]
            nll = " → ".join(f"{_mean([r[k] for r in found]):.3f}" for k in ("nll_before", "nll"))
            ece = " → ".join(
                f"{100 * _mean([r[k] for r in found]):.1f} %" for k in ("ece_before", "ece")
            )
            right = 100 * _mean([row["scores"]["accuracy"] for row in own])
            heat = _mean([r["temperature"] for r in found])
            classes.append(f"{start} {right:.1f} % | {heat:.2f} | {nll} | {ece} |")
    return "\n".join([*lines, "", *classes])


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("what", choices=("prepare", "run", "table"))
    words.add_argument("paths", nargs="+", type=Path)
    words.add_argument("--jobs", type=int, default=1, help="runs at a time")
    words.add_argument("--minutes", type=float, default=60.0, help="start no run after so long")
    words.add_argument("--only", nargs="*", choices=tuple(CASES))
    words.add_argument("--width", type=int, default=32)
    words.add_argument("--epochs", type=int, default=0, help="in place of each case's own")
    words.add_argument("--limit", type=int, default=0, help="graphs of each set, to try it out")
    options = words.parse_args()
    if options.what == "prepare":
        prepare(options.paths[0])
    elif options.what == "run":
        run(options.paths[0], options.paths[1], options)
    else:
        record, page = options.paths
        text = page.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        page.write_text(f"{before}{BEGIN}\n{table(record)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
