"""TU sets by the splits of Errica et al. (2020): everything is chosen on validation graphs.

A cell is `errica/SET/G2N2` and a seed: one run for each of the ten outer folds, with the library's
defaults and fewer epochs. Its inner hold-out chooses the epoch, and the test graphs are looked at
once. Nothing else is chosen, so there is no grid; three seeds are the three runs of the protocol.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np

from g2n2.data.files import DataFile
from g2n2.data.graph_set import Ints
from g2n2.errors import DataError
from g2n2.input_files import read_text_file
from g2n2.training.config import RunConfig
from g2n2.training.cuda_graphs import Recorded
from g2n2.training.trained_on import checksum

from .runner import Cell, Job, Measurement
from .runs import described, load, run_settings, train_fold

SETS = ("IMDB-BINARY", "IMDB-MULTI", "PROTEINS", "NCI1")
SEEDS = (0, 1, 2)
FOLDS = 10
EPOCHS = 40
ACCURACY = "test accuracy, mean of folds (%)"
DEVIATION = "deviation over folds (%)"
VALIDATION = "validation accuracy, mean of folds (%)"


@dataclass(frozen=True)
class ErricaRun:
    """A set and a seed; `folds` are the first of ten."""

    set_name: str
    seed: int
    epochs: int = EPOCHS
    folds: int = FOLDS

    def config(self) -> RunConfig:
        return RunConfig(
            self.set_name,
            options={"folds": "none"},
            split="stored",
            epochs=self.epochs,
            seed=self.seed,
            precision="bf16",
            threads=1,
        )


def cells(epochs: int = EPOCHS, folds: int = FOLDS) -> list[Cell]:
    """Every set and seed, the quickest set first."""
    runs = (ErricaRun(name, seed, epochs, folds) for name in SETS for seed in SEEDS)
    return [errica_cell(run) for run in runs]


def errica_cell(run: ErricaRun) -> Cell:
    settings = {**run_settings(run.config()), "folds": run.folds}

    def missing(job: Job) -> str:
        file = splits_file(run.set_name)
        return "" if file.find(job.data) else str(file.missing(job.data, file.hint))

    return Cell(
        "q3",
        f"errica/{run.set_name}/G2N2",
        lambda job: run_folds(run, job),
        settings,
        run.seed,
        (run.set_name,),
        missing,
        parts=run.folds,
    )


def run_folds(run: ErricaRun, job: Job) -> Measurement:
    """One run for each fold; the detail has accuracies in percent and seconds of each."""
    config = run.config()
    graphs, recorded = load(config, job), Recorded()
    parts = {f"fold-{k}": (run, k, job, recorded) for k in range(run.folds)}
    rows = job.kept_parts(parts, run_fold)
    detail = {name: [row[name] for row in rows] for name in ("test", "validation", "seconds")}
    return Measurement(
        done=run.folds,
        unit="folds",
        metrics={
            ACCURACY: round(fmean(detail["test"]), 4),
            DEVIATION: round(pstdev(detail["test"]), 4),
            VALIDATION: round(fmean(detail["validation"]), 4),
        },
        config={**described(config), "folds": run.folds},
        data={run.set_name: checksum(graphs)},
        detail=detail,
    )


def run_fold(run: ErricaRun, fold: int, job: Job, recorded: Recorded) -> dict[str, float]:
    """One outer fold, counted from 0; folds can be run in any order and by several processes."""
    config, start = run.config(), time.monotonic()
    graphs = load(config, job)
    file = splits_file(run.set_name).find(job.data)
    assert file is not None, "`missing` has looked for it"
    parts = read_splits(file, len(graphs))[fold]
    trained = train_fold(config, graphs, parts, job.work / f"fold-{fold}", job, recorded)
    best = max(row["validation accuracy"] for row in trained.history)
    return {
        "test": round(100.0 * trained.scores["all"]["accuracy"], 3),
        "validation": round(100.0 * best, 3),
        "seconds": round(time.monotonic() - start, 1),
    }


def splits_file(set_name: str) -> DataFile:
    hint = "They are folds/ of https://github.com/diningphil/gnn-comparison."
    return DataFile("Errica's splits", f"{set_name}.json", "tu/errica_splits", hint=hint)


def read_splits(path: Path, graphs: int) -> list[dict[str, Ints]]:
    """Training, validation and test graphs of each outer fold."""
    try:
        folds = json.loads(read_text_file(path, "expected JSON"))
        parts = [
            {"test": fold["test"], **fold["model_selection"][0]} for fold in folds
        ]  # one inner hold-out
        splits = [{name: np.array(part, np.int64) for name, part in p.items()} for p in parts]
        everyone = np.arange(graphs)
        for fold in splits:
            if set(fold) != {"train", "validation", "test"}:
                raise ValueError(f"parts are {', '.join(fold)}")
            if not np.array_equal(np.sort(np.concatenate(list(fold.values()))), everyone):
                raise ValueError("the parts of a fold are not all graphs once")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DataError(f"{path} holds no folds of Errica et al. ({error})") from None
    return splits
