"""Q2: regression on QM9 by G²N² and PPGN, all targets at once and one by one.

joint/width32/TRACK/NETWORK/modern       all twelve targets at once; also width64
single/TARGET/TRACK/NETWORK/RECIPE       one target, width 64; `modern` is that of version 0.2
single/TARGET/distance/G2N2/defaults     with the library's present defaults
…/defaults[/wider]/epochs-20             the same for so many epochs, also with short and long range
…/G2N2+D/defaults/epochs-20              the grammar with moments of learned charges as sentences
…/PPGN/modern/equal-time                 as many epochs as fit into the seconds of G²N²
…/distance/PPGN-alike/modern             the grammar of PPGN in the blocks of G²N²
…/distance/G2N2/modern/extent            with fitted sums of squared distances taken off
…/distance/G2N2/modern[/extent]/long     with more epochs
speed/joint-width32/TRACK                seconds per epoch of both networks in one run
speed/single/distance, speed/single-bf16/distance
collapse/u0                              20 seeds of U₀: does a run predict a constant?
precision/TARGET/PRECISION               three seeds in bf16 and in tf32
sums/elements, sums/extent               the fitted sums alone, without a network
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.data.qm9 import QM9_TARGETS
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.evaluate import Outcome
from g2n2.training.run_folder import RunFolder
from g2n2.training.setup import prepare
from g2n2.training.task import Task
from g2n2.training.trained_on import checksum

from .record import CellRecord, record_path
from .runner import Cell, Job, Measurement
from .runs import (
    SMALL_BATCH,
    described,
    epoch_seconds,
    load,
    mae_key,
    run_precision,
    run_settings,
    train,
    training_cell,
)

Track = Literal["distance", "bonds"]
Network = Literal["G2N2", "PPGN", "PPGN-alike", "G2N2+D"]
TRACKS: tuple[Track, ...] = ("distance", "bonds")
NETWORKS: tuple[Network, ...] = ("G2N2", "PPGN")
GRAMMARS = {
    "G2N2": "r-G_L3",
    "G2N2+D": (
        "V_c → MV_c | 1; M → (M⊙M) | MM | diag(V_c) | A; "
        "S → 1ᵀV_c | V_cᵀC_1V_c | V_cᵀC_2V_c | 1ᵀ(C_2⊙I)V_c; "
        "C_1 = 1/32×D; C_2 = −2×(I − inv(1ᵀ1)×(1·1ᵀ))D(I − inv(1ᵀ1)×(1·1ᵀ))"
    ),
}
"""PPGN for other networks. G2N2+D is r-G_L3+D with its supports in other units: at the start sums
of D, up to 300 Å² on QM9, are otherwise thirty times as large as what else is read out, and squared
dipoles a sixth."""
COMPARED = ("r2", "u0")
"""Targets that PPGN, the track `bonds` and the recipe `paper` are run for."""
AGAIN = ("u0", "homo", "mu", "alpha", "r2")
"""Targets that the present defaults are run for."""
STUDIED = ("u0", "homo", "mu", "r2")
"""Targets that bases of distances are compared on."""
MOMENTS = ("mu", "r2")
"""Targets that are moments of charges."""
STUDY_EPOCHS, LONG_EPOCHS = 20, (100, 200)
WIDER = ("raw", "square", "inverse", "rbf16", "rbf32:6")
"""Distances with short and long range."""
PRECISIONS = ("bf16", "tf32")
FINE = ("r2", "zpve")
"""Targets whose errors, with distances, are a few thousandths of their spread: beyond bf16."""
NARROW_RATE = 2e-3
"""Learning rate of all targets at once at width 32 with distances, for every network."""
SPREAD = "spread of predictions / spread of targets"
LEAST_SPREAD = 0.1
"""A run below this ratio predicts a constant."""
SECONDS = "seconds per epoch {}"
COLLAPSE_SEEDS = 20
TIMED_EPOCHS = 3


@dataclass(frozen=True)
class Epochs:
    """Epochs of each kind of cell: `compared` are single targets in `COMPARED`."""

    joint: int = 50
    compared: int = 60
    single: int = 50
    long: int = 300
    paper: int = 10
    collapse: int = 5
    precision: int = 6


SMOKE = Epochs(joint=2, compared=2, single=2, long=3, paper=2, collapse=2, precision=2)
SMOKE_CELLS = (
    "speed/joint-width32/bonds",
    "joint/width32/distance/G2N2/modern",
    "joint/width32/bonds/PPGN/modern/equal-time",
    "single/r2/distance/G2N2/paper",
    "single/u0/distance/G2N2/defaults/wider/epochs-20",
    "single/mu/distance/G2N2+D/defaults/epochs-20",
    "collapse/u0",
    "sums/extent",
)


@dataclass(frozen=True)
class Qm9Run:
    """What the name of a training cell says; `target` is None for all twelve."""

    target: str | None
    width: int
    track: Track = "distance"
    network: Network = "G2N2"
    recipe: Literal["modern", "paper", "defaults"] = "modern"
    extent: bool = False
    long: bool = False
    wider: bool = False
    given_epochs: int = 0  # in place of those of its kind

    @property
    def name(self) -> str:
        what = f"single/{self.target}" if self.target else f"joint/width{self.width}"
        tail = "/extent" * self.extent + "/long" * self.long + "/wider" * self.wider
        tail += f"/epochs-{self.given_epochs}" if self.given_epochs else ""
        return f"{what}/{self.track}/{self.network}/{self.recipe}{tail}"

    @property
    def speed_name(self) -> str:
        if self.target is None:
            return f"speed/joint-width{self.width}/{self.track}"
        return f"speed/single{'' if self.fine else '-bf16'}/{self.track}"

    @property
    def fine(self) -> bool:
        """Whether its errors are too small for bf16."""
        return self.track == "distance" and self.target in (None, *FINE)

    def epochs(self, epochs: Epochs) -> int:
        if self.given_epochs:
            return min(self.given_epochs, epochs.long)
        if self.long:
            return epochs.long
        if self.recipe == "paper":
            return epochs.paper
        if self.target is None:
            return epochs.joint
        return epochs.compared if self.target in COMPARED else epochs.single

    def config(self, smoke: bool = False, seed: int = 0) -> RunConfig:
        modern = self.recipe != "paper"
        narrow = modern and self.width == 32 and self.track == "distance"
        return RunConfig(
            "qm9",
            target=(self.target,) if self.target else (),
            options={"track": self.track, "features": "ppgn"},
            grammar=GRAMMARS.get(self.network, "PPGN"),
            preset="ppgn" if self.network == "PPGN" else None,
            width=8 if smoke else self.width,
            recipe={"modern": MODERN_BEFORE, "defaults": "modern"}.get(self.recipe, self.recipe),
            references=modern,
            extent=self.extent,
            epochs=self.epochs(SMOKE if smoke else Epochs()),
            distance=WIDER if self.wider else None,
            rate=NARROW_RATE if narrow else None,
            limit=150 if smoke else 0,
            batch=SMALL_BATCH if smoke else None,
            threads=1 if smoke else 0,
            seed=seed,
            precision="bf16" if modern and not self.fine else "tf32",
        )


def single(target: str) -> Qm9Run:
    """G²N² on one target, with distances and the recipe `modern`."""
    return Qm9Run(target, 64)


JOINT = Qm9Run(None, 32)
R2_EXTENT = replace(single("r2"), extent=True)
R2_LONG = replace(single("r2"), long=True)


def variants() -> Iterator[Qm9Run]:
    """Every training cell of the tables, in the order they are run."""
    for width in (32, 64):
        extent = Qm9Run(None, width, extent=True)
        yield from (extent, replace(extent, long=True)) if width == 32 else (extent,)
        for track in TRACKS:
            for network in NETWORKS:
                yield Qm9Run(None, width, track, network)
    yield Qm9Run(None, 32, network="PPGN-alike")
    yield from (R2_EXTENT, R2_LONG)
    for target in COMPARED:
        plain = single(target)
        yield from (plain, replace(plain, network="PPGN"), replace(plain, track="bonds"))
        yield replace(plain, recipe="paper")
    yield from (single(t.name) for t in QM9_TARGETS if t.name not in COMPARED)
    yield from (replace(single(target), recipe="defaults") for target in AGAIN)
    yield from defaults_for_epochs()


def defaults_for_epochs() -> Iterator[Qm9Run]:
    """The present defaults: other distances, moments as sentences, and long runs of both bases."""
    short = Qm9Run(None, 64, recipe="defaults", given_epochs=STUDY_EPOCHS)
    for target in STUDIED:
        yield from (replace(short, target=target, wider=wider) for wider in (False, True))
    yield from (replace(short, target=target, network="G2N2+D") for target in MOMENTS)
    for epochs in LONG_EPOCHS:
        for target in AGAIN:
            run = replace(short, target=target, given_epochs=epochs)
            yield from (run, replace(run, wider=True))


def cells(smoke: bool = False) -> list[Cell]:
    """Speeds come first, since equal-time cells read them."""
    everything = [*_speeds(smoke), *_trained(smoke), *_repeated(smoke)]
    for sums, extent in (("elements", False), ("extent", True)):
        everything.append(sums_cell(f"sums/{sums}", replace(JOINT, extent=extent).config(smoke)))
    if not smoke:
        return everything
    return [cell for cell in everything if cell.name in SMOKE_CELLS and cell.seed == 0]


def _trained(smoke: bool) -> Iterator[Cell]:
    for variant in variants():
        yield training_cell("q2", variant.name, variant.config(smoke))
        if variant.network == "PPGN" and (variant.target or variant.width == 32):
            epochs = partial(equal_time_epochs, speed=variant.speed_name)
            name = f"{variant.name}/equal-time"
            yield training_cell("q2", name, variant.config(smoke), epochs=epochs)


def _speeds(smoke: bool) -> Iterator[Cell]:
    runs = (JOINT, replace(JOINT, track="bonds"), single("r2"), single("u0"))
    for run in runs:
        both = {str(n): replace(run, network=n).config(smoke) for n in NETWORKS}
        yield speed_cell(run.speed_name, both, 1 if smoke else TIMED_EPOCHS)


def _repeated(smoke: bool) -> Iterator[Cell]:
    """Runs of several seeds: those that may collapse, and those in two precisions."""
    epochs = SMOKE if smoke else Epochs()
    for seed in range(COLLAPSE_SEEDS):
        config = replace(single("u0").config(smoke, seed), epochs=epochs.collapse)
        yield training_cell("q2", "collapse/u0", config, measure=spread_of_predictions)
    for target in COMPARED:
        for seed in range(3):
            for precision in PRECISIONS:
                config = single(target).config(smoke, seed)
                config = replace(config, epochs=epochs.precision, precision=precision)
                name = f"precision/{target}/{precision}"
                cell = training_cell("q2", name, config, needs_gpu=True)
                yield replace(cell, settings={**cell.settings, "precision": precision})


def speed_cell(name: str, configs: Mapping[str, RunConfig], epochs: int) -> Cell:
    """A cell that times networks one after the other, on the same data, with nothing beside them.

    The first network is the unit of the ratios; one epoch goes before those that are timed.
    """
    settings = {network: config.as_dict() for network, config in configs.items()}

    def run(job: Job) -> Measurement:
        seconds: dict[str, float] = {}
        data = {}
        for network, config in configs.items():
            folder = job.work / network
            shutil.rmtree(folder, ignore_errors=True)  # half a measurement is none
            timed = replace(config, epochs=epochs + 1)
            trained = train(timed, folder, job, load(timed, job))
            seconds[network] = epoch_seconds(trained.history) or float("nan")
            data[config.dataset] = RunFolder(folder).read_json("data.json")["sha256"]
        first, *others = configs
        ratios = {f"{other} / {first}": seconds[other] / seconds[first] for other in others}
        precisions = {network: run_precision(config, job) for network, config in configs.items()}
        return Measurement(
            done=len(configs),
            unit="networks",
            metrics={SECONDS.format(network): value for network, value in seconds.items()} | ratios,
            config={**settings, "run in": precisions},
            data=data,
        )

    return Cell("q2", name, run, settings, needs=("qm9",), timed=True)


def equal_time_epochs(config: RunConfig, job: Job, speed: str) -> int:
    """The epochs of PPGN that take as long as the config's own take G²N²."""
    path = record_path(job.results, "q2", speed, 0)
    if not path.exists():
        raise DataError(f"equal time needs a timing of both networks: g2n2-paper q2 --only {speed}")
    ratio = CellRecord.read(path).metrics["PPGN / G2N2"]
    assert ratio, "a timing has a positive ratio"
    return epochs_in_equal_time(config.effective_recipe().epochs, ratio)


def epochs_in_equal_time(epochs: int, ratio: float) -> int:
    """How many epochs fit into the time of `epochs` that take `ratio` times less each."""
    return max(1, round(epochs / ratio))


def spread_of_predictions(outcome: Outcome, folder: Path) -> Mapping[str, float]:
    """Standard deviation of predictions over that of targets, on the test graphs.

    The fitted values of the elements are subtracted from both: they vary whether or not the network
    has learned anything.
    """
    graphs = outcome.graphs
    fitted = RunFolder(folder).trained_on.scaling.reference(Task.of(graphs), graphs)[outcome.index]
    return {SPREAD: float((outcome.predicted - fitted).std() / (outcome.targets - fitted).std())}


def sums_cell(name: str, config: RunConfig) -> Cell:
    """Test errors of the fitted sums that are taken off before a network learns."""

    def run(job: Job) -> Measurement:
        graphs = load(config, job)
        parts = prepare(config, graphs)
        fitted = parts.scaling.unscale(parts.task, graphs, np.zeros_like(graphs.targets))
        residuals = np.abs(graphs.targets - fitted)[parts.splits["test"]]
        errors = {
            mae_key(column.name, column.unit): float(error)
            for column, error in zip(graphs.columns, np.nanmean(residuals, axis=0), strict=True)
        }
        coefficients = next(iter(parts.scaling.references.values()))
        return Measurement(
            done=1,
            unit="fits",
            metrics={**errors, "parameters": len(coefficients) + 1},
            config={**described(config), "precision": "64"},
            data={config.dataset: checksum(graphs)},
        )

    settings = run_settings(config, "epochs", "rate")
    return Cell("q2", name, run, settings, config.seed, (config.dataset,))
