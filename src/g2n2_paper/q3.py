"""Q3: classification on six TU sets, ten folds, three statistics.

A cell is a set and a model, as `MUTAG/GIN`; variants have the epochs of the GIN code or degrees as
classes: `MUTAG/GIN/350-epochs`, `IMDB-MULTI/GIN/one-hot`. The statistics, in percent:

    GIN's protocol             mean of ten test curves at its best epoch
    best epoch of each fold    as the paper's released code reports: optimistic
    nested validation          weights chosen on 10 % of each training fold

`errica/…` are cells of another protocol, see `errica`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.data.graph_set import GraphSet, Ints
from g2n2.data.splits import split
from g2n2.training.config import RunConfig
from g2n2.training.cuda_graphs import Recorded
from g2n2.training.trained_on import checksum

from . import errica
from .runner import Cell, Job, Measurement
from .runs import described, load, run_settings, train_fold


@dataclass(frozen=True)
class SetSettings:
    """One column of the paper's table of settings (its appendix C)."""

    graphs: int
    width: int
    decision: tuple[int, int]
    options: Mapping[str, Any] = field(default_factory=dict)  # of the data set's loader


DEGREE, ONE_HOT = {"degree": "value"}, {"degree": "one-hot"}
"""The only node feature of the IMDB sets."""
SETS = {
    "MUTAG": SetSettings(188, 16, (256, 128)),
    "PTC": SetSettings(344, 32, (512, 256)),
    "PROTEINS": SetSettings(1113, 32, (512, 256)),
    "NCI1": SetSettings(4110, 64, (128, 64)),
    "IMDB-BINARY": SetSettings(1000, 32, (512, 256), DEGREE),
    "IMDB-MULTI": SetSettings(1500, 32, (512, 256), DEGREE),
}
MODELS = ("G2N2", "PPGN", "GIN", "GNNML1", "GNNML3")
BATCH, LAYERS, FOLDS, EPOCHS, LONG = 32, 3, 10, 30, 350
STEPS = 50
"""Steps of an epoch, at least, as in the GIN code: a small set is passed through several times."""
HELD_OUT = 0.1
"""Share of a training fold that chooses the weights in nested validation."""
GIN, RELEASED, NESTED = "GIN's protocol", "best epoch of each fold", "nested validation"
STATISTICS = (GIN, RELEASED, NESTED)
ACCURACY, DEVIATION = "accuracy, {} (%)", "deviation over folds, {} (%)"
KEPT_DIGITS = 3


@dataclass(frozen=True)
class TuRun:
    """A set, a model and what differs from the plan; `steps` are those of an epoch, at least."""

    set_name: str
    model: str
    epochs: int = EPOCHS
    one_hot: bool = False
    folds: int = FOLDS
    steps: int = STEPS

    @property
    def name(self) -> str:
        tail = f"/{LONG}-epochs" * (self.epochs == LONG) + "/one-hot" * self.one_hot
        return f"{self.set_name}/{self.model}{tail}"

    def config(self, seed: int = 0) -> RunConfig:
        """Settings of each fold's run.

        The recipe is the `modern` of 0.2 for all networks: its rate follows a cosine, so that no
        test graph decides it. Weights are not averaged, and batches of 32 are drawn at random.
        """
        chosen = SETS[self.set_name]
        steps_per_pass = math.ceil(0.9 * chosen.graphs / BATCH)
        return RunConfig(
            dataset=self.set_name,
            options={"folds": "gin", **(ONE_HOT if self.one_hot else chosen.options)},
            split="stored",
            baseline=None if self.model == "G2N2" else self.model,
            width=chosen.width,
            layers=LAYERS,
            decision=chosen.decision,
            recipe=MODERN_BEFORE,
            batch=BATCH,
            epochs=self.epochs,
            passes=math.ceil(self.steps / steps_per_pass),
            window=1,
            ema=0.0,
            seed=seed,
            precision="tf32",
            threads=1,
        )


VARIANTS = (
    TuRun("MUTAG", "GIN", epochs=LONG),
    *(TuRun(name, model, one_hot=True) for model in ("GIN", "G2N2") for name in list(SETS)[4:]),
)
"""Runs with the epochs or the input of the GIN code."""


def cells(smoke: bool = False) -> list[Cell]:
    """G²N² on every set first, then the other networks, the variants and Errica's splits."""
    runs = (*(TuRun(name, model) for model in MODELS for name in SETS), *VARIANTS)
    if smoke:
        return [tu_cell(TuRun("MUTAG", "G2N2", epochs=2, folds=2, steps=1))]
    return [*(tu_cell(run) for run in runs), *errica.cells()]


def tu_cell(tu: TuRun) -> Cell:
    settings = {**run_settings(tu.config()), "folds": tu.folds}
    return Cell("q3", tu.name, lambda job: run_folds(tu, job), settings, needs=(tu.set_name,))


def run_folds(tu: TuRun, job: Job) -> Measurement:
    """Two runs for each fold: on its whole training part, and nested.

    The detail has `test curves` (for each fold, the accuracy after each epoch), `nested` (of each
    fold) and `held out` (the same on the graphs that chose the weights).
    """
    config = tu.config()
    graphs, recorded = load(config, job), Recorded()

    def whole(fold: int) -> list[float]:
        test, rest = fold_parts(graphs, fold)
        splits = {"train": rest, "validation": test}
        run = train_fold(config, graphs, splits, job.work / f"whole-{fold}", job, recorded)
        return [_percent(row["validation accuracy"]) for row in run.history]

    def nested(fold: int) -> list[float]:
        test, rest = fold_parts(graphs, fold)
        inside = split(graphs.select(rest), "random", config.seed, (1.0 - HELD_OUT, HELD_OUT, 0.0))
        splits = {part: rest[inside[part]] for part in ("train", "validation")} | {"test": test}
        run = train_fold(config, graphs, splits, job.work / f"nested-{fold}", job, recorded)
        best = max(row["validation accuracy"] for row in run.history)
        return [_percent(run.scores["all"]["accuracy"]), _percent(best)]

    folds = range(1, tu.folds + 1)
    curves = [job.kept(f"whole-{fold}", whole, fold) for fold in folds]
    pairs = [job.kept(f"nested-{fold}", nested, fold) for fold in folds]
    tested, held_out = ([pair[i] for pair in pairs] for i in range(2))
    return Measurement(
        done=2 * tu.folds,
        unit="runs of folds",
        metrics=statistics(curves, tested),
        config={**described(config), "model": tu.model, "folds": tu.folds},
        data={tu.set_name: checksum(graphs)},
        detail={"test curves": curves, "nested": tested, "held out": held_out},
    )


def fold_parts(graphs: GraphSet, fold: int) -> tuple[Ints, Ints]:
    """The graphs of a test fold, counted from 1, and all others."""
    test = graphs.splits[f"fold-{fold}"]
    return test, np.setdiff1d(np.arange(len(graphs)), test)


def _percent(share: float) -> float:
    return round(100.0 * share, KEPT_DIGITS)


def statistics(curves: Sequence[Sequence[float]], nested: Sequence[float]) -> dict[str, Any]:
    """The three statistics of all folds, and the epoch that GIN's protocol chooses (from 1).

    GIN's protocol (Xu et al. 2019) chooses one epoch for all folds, by their test graphs; the first
    one where means are equal to the digits kept.
    """
    table = np.asarray(curves, dtype=np.float64)
    epoch = int(table.mean(axis=0).round(KEPT_DIGITS).argmax())
    values = {GIN: table[:, epoch], RELEASED: table.max(axis=1), NESTED: np.asarray(nested)}
    metrics: dict[str, Any] = {}
    for name, accuracies in values.items():
        metrics[ACCURACY.format(name)] = round(float(accuracies.mean()), 4)
        metrics[DEVIATION.format(name)] = round(float(accuracies.std()), 4)
    return {**metrics, f"best epoch, {GIN}": epoch + 1}
