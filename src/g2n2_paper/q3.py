"""Q3: classification on six TU sets, ten folds.

A cell is a set and a model, as `MUTAG/GIN`; variants have the epochs of the GIN code or degrees as
classes: `MUTAG/GIN/350-epochs`, `IMDB-MULTI/GIN/one-hot`. Three statistics, in percent:

    GIN's protocol             mean of ten test curves at its best epoch
    best epoch of each fold    as the paper's released code reports: optimistic
    nested validation          weights chosen on 10 % of each training fold

`errica/SET/G2N2` goes by the splits of Errica et al. (2020), which choose everything on validation
graphs: one run for each of the ten outer folds, with the library's defaults and fewer epochs. Its
inner hold-out chooses the epoch, and the test graphs are looked at once. Nothing else is chosen, so
there is no grid; three seeds are the three runs of the protocol.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.data.files import DataFile
from g2n2.data.graph_set import GraphSet, Ints
from g2n2.data.splits import split
from g2n2.errors import DataError
from g2n2.input_files import read_text_file
from g2n2.training.config import RunConfig
from g2n2.training.trained_on import checksum

from .record import CellRecord
from .runner import Cell, Job, Measurement
from .runs import PERCENT_DIGITS, described, load, run_settings, train_folds


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
ERRICA_SETS = ("IMDB-BINARY", "IMDB-MULTI", "PROTEINS", "NCI1")
ERRICA_SEEDS, ERRICA_EPOCHS = (0, 1, 2), 40
ERRICA_ACCURACY = "{} accuracy, mean of folds (%)"
ERRICA_DEVIATION = "deviation over folds (%)"


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

    def config(self) -> RunConfig:
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
            precision="tf32",
            threads=1,
        )


VARIANTS = (
    TuRun("MUTAG", "GIN", epochs=LONG),
    *(TuRun(name, "GIN", one_hot=True) for name in ("IMDB-BINARY", "IMDB-MULTI")),
)
"""Runs with the epochs or the input of the GIN code."""


def cells(smoke: bool = False) -> list[Cell]:
    """G²N² on every set first, then the other networks, the variants and Errica's splits."""
    if smoke:
        return [tu_cell(TuRun("MUTAG", "G2N2", epochs=2, folds=2, steps=1))]
    runs = (*(TuRun(name, model) for model in MODELS for name in SETS), *VARIANTS)
    errica = (errica_cell(name, seed) for name in ERRICA_SETS for seed in ERRICA_SEEDS)
    return [*map(tu_cell, runs), *errica]


def tu_cell(tu: TuRun) -> Cell:
    """Two runs for each fold: on its whole training part, and nested.

    The detail has `test curves` (for each fold, the accuracy after each epoch), `nested` (of each
    fold) and `held out` (the same on the graphs that chose the weights).
    """
    config = tu.config()

    def run(job: Job) -> Measurement:
        graphs, folds = load(config, job), range(1, tu.folds + 1)
        parts = {f"whole-{fold}": whole_split(graphs, fold) for fold in folds}
        parts |= {f"nested-{fold}": nested_split(graphs, fold, config.seed) for fold in folds}
        rows = train_folds(config, graphs, parts, job)
        curves = [row["curve"] for row in rows[: tu.folds]]
        tested, held_out = zip(
            *((r["test"], max(r["curve"])) for r in rows[tu.folds :]), strict=True
        )
        return Measurement(
            2 * tu.folds,
            "runs of folds",
            statistics(curves, tested),
            data={tu.set_name: checksum(graphs)},
            config={**described(config), "model": tu.model},
            detail={"test curves": curves, "nested": list(tested), "held out": list(held_out)},
        )

    settings, count = {**run_settings(config), "folds": tu.folds}, 2 * tu.folds
    return Cell("q3", tu.name, run, settings, parts=count)


def whole_split(graphs: GraphSet, fold: int) -> dict[str, Ints]:
    """A fold, counted from 1, on which every epoch is scored, and all other graphs."""
    test = graphs.splits[f"fold-{fold}"]
    return {"train": np.setdiff1d(np.arange(len(graphs)), test), "validation": test}


def nested_split(graphs: GraphSet, fold: int, seed: int) -> dict[str, Ints]:
    """The same fold for tests, and a part of the other graphs to choose the weights."""
    rest, test = whole_split(graphs, fold).values()
    inside = split(graphs.select(rest), "random", seed, (1.0 - HELD_OUT, HELD_OUT, 0.0))
    return {part: rest[inside[part]] for part in ("train", "validation")} | {"test": test}


def statistics(curves: Sequence[Sequence[float]], nested: Sequence[float]) -> dict[str, Any]:
    """The three statistics of all folds, and the epoch that GIN's protocol chooses (from 1).

    GIN's protocol (Xu et al. 2019) chooses one epoch for all folds, by their test graphs; the first
    one where means are equal to the digits kept.
    """
    table = np.asarray(curves, dtype=np.float64)
    epoch = int(table.mean(axis=0).round(PERCENT_DIGITS).argmax())
    values = {GIN: table[:, epoch], RELEASED: table.max(axis=1), NESTED: np.asarray(nested)}
    metrics: dict[str, Any] = {}
    for name, accuracies in values.items():
        metrics[ACCURACY.format(name)] = round(float(accuracies.mean()), 4)
        metrics[DEVIATION.format(name)] = round(float(accuracies.std()), 4)
    return {**metrics, f"best epoch, {GIN}": epoch + 1}


def errica_cell(name: str, seed: int, epochs: int = ERRICA_EPOCHS, folds: int = FOLDS) -> Cell:
    """A set by Errica's splits, or its first folds; the detail has accuracies and seconds."""
    config = RunConfig(
        name,
        options={"folds": "none"},
        split="stored",
        epochs=epochs,
        seed=seed,
        precision="bf16",
        threads=1,
    )
    hint = "They are folds/ of https://github.com/diningphil/gnn-comparison."
    file = DataFile("Errica's splits", f"{name}.json", "tu/errica_splits", hint=hint)

    def run(job: Job) -> Measurement:
        graphs, path = load(config, job), file.find(job.data)
        if path is None:
            raise file.missing(job.data, file.hint)
        splits = read_errica_splits(path, len(graphs))[:folds]
        parts = job.parts({f"fold-{number}": parts for number, parts in enumerate(splits)})
        rows = train_folds(config, graphs, parts, job)
        detail = {name: [row[name] for row in rows] for name in ("test", "seconds")}
        detail |= {"validation": [max(row["curve"]) for row in rows], "folds": [*parts]}
        metrics = {
            ERRICA_ACCURACY.format(part): round(fmean(detail[part]), 4)
            for part in ("test", "validation")
        }
        metrics[ERRICA_DEVIATION] = round(pstdev(detail["test"]), 4)
        data = {name: checksum(graphs)}
        return Measurement(len(parts), "folds", metrics, data, described(config), detail)

    settings, cell = {**run_settings(config), "folds": folds}, f"errica/{name}/G2N2"
    return Cell("q3", cell, run, settings, seed, parts=folds, parts_of=_folds_of_record)


def _folds_of_record(record: CellRecord) -> dict[str, Any]:
    """The folds of a record that has not all of them, by name."""
    columns = (record.detail[name] for name in ("folds", "test", "seconds", "validation"))
    return {
        fold: {"test": test, "seconds": seconds, "curve": [best]}
        for fold, test, seconds, best in zip(*columns, strict=True)
    }


def read_errica_splits(path: Path, graphs: int) -> list[dict[str, Ints]]:
    """Training, validation and test graphs of each outer fold, which has one inner hold-out."""
    try:
        splits = []
        for fold in json.loads(read_text_file(path, "expected JSON")):
            parts = {"test": fold["test"], **fold["model_selection"][0]}
            splits.append({name: np.array(part, np.int64) for name, part in parts.items()})
            if set(parts) != {"train", "validation", "test"}:
                raise ValueError(f"parts are {', '.join(parts)}")
            everyone = np.sort(np.concatenate(list(splits[-1].values())))
            if not np.array_equal(everyone, np.arange(graphs)):
                raise ValueError("the parts of a fold are not all graphs once")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DataError(f"{path} holds no folds of Errica et al. ({error})") from None
    return splits
