"""Q2: regression on QM9 by G²N² and PPGN, all targets at once and one by one.

joint/width32/TRACK/NETWORK/modern       all twelve targets at once; also width64
single/TARGET/TRACK/NETWORK/RECIPE       one target, width 64; `modern` is that of version 0.2
single/TARGET/distance/G2N2/defaults[/wider][/tuned][/width-W]/epochs-N
                                         with the library's present defaults for so many epochs,
                                         also with distances of short and long range, and with
                                         another rate and decay
…/G2N2/paper/epochs-N                    the recipe of the paper for longer
…/SchNet/published/epochs-N              PyG's SchNet, its own width and layers, our training
…/ViSNet/published/epochs-N              PyG's ViSNet, the same
…/G2N2+D/defaults/epochs-N               the grammar with moments of learned charges as sentences
…/PPGN/modern/equal-time                 as many epochs as fit into the seconds of G²N²
…/distance/PPGN-alike/modern             the grammar of PPGN in the blocks of G²N²
…/distance/G2N2/modern/extent            with fitted sums of squared distances taken off
…/distance/G2N2/modern/long              with more epochs
speed/joint-width32/TRACK                seconds per epoch of both networks in one run
speed/single/distance, speed/single-bf16/distance
speed/networks                           the same of G²N² with the present defaults and of PyG's
                                         networks, for 20,000 molecules
collapse/u0                              20 seeds of U₀: does a run predict a constant?
precision/TARGET/PRECISION               three seeds in bf16 and in tf32
sums/elements, sums/extent               the fitted sums alone, without a network
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

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

NETWORKS = ("G2N2", "PPGN")
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
MOMENTS = ("mu", "r2")
"""Those that are moments of charges."""
DEFAULTS = {
    "G2N2/defaults/epochs-100": ("u0", "homo", "r2"),
    "G2N2/defaults/wider/epochs-100": AGAIN,
    "G2N2+D/defaults/epochs-100": MOMENTS,
    "G2N2/defaults/wider/tuned/width-128/epochs-150": ("u0", "homo", "alpha"),
    "G2N2/paper/epochs-100": COMPARED,
}
"""Long runs to their targets."""
SEVERAL = {
    "single/u0/distance/G2N2/defaults/wider/epochs-100": 3,
    "single/r2/distance/G2N2+D/defaults/epochs-100": 3,
}
"""Runs to their number of seeds, where it is not one."""
WIDER = ("raw", "square", "inverse", "rbf16", "rbf32:6")
"""Distances with short and long range."""
TUNED = {"rate": 2e-3, "decay": 0.05}
"""What lowers the validation error of U₀ after 25 epochs (docs/lab-notes.md)."""
RECIPE_OF = {"modern": MODERN_BEFORE, "defaults": "modern", "published": "modern"}
"""Recipes of the library by the names in cells."""
IN_TF32 = ("paper", "published")
"""Recipes of networks that were not made for bfloat16."""
SCHNET = "single/u0/distance/SchNet/published/epochs-30"
VISNET = "single/u0/distance/ViSNet/published/epochs-10"
OF_PYG = ("SchNet", "ViSNet")
"""Networks of PyG, with 128 channels and 6 layers as published."""
FEW = 20_000
"""Molecules where only ratios of times are read."""
FINE = (None, "r2", "zpve")
"""Targets (None is all at once) whose errors, with distances, are a few thousandths of their
spread: beyond bf16."""
EPOCHS = {"joint": 50, "compared": 60, "single": 50, "long": 300, "paper": 10}
"""Epochs of each kind of run; `compared` are single targets in `COMPARED`."""
COLLAPSE_EPOCHS, COLLAPSE_SEEDS = 5, 20
PRECISION_EPOCHS, PRECISION_SEEDS, PRECISIONS = 6, 3, ("bf16", "tf32")
TIMED_EPOCHS = 3
NARROW_RATE = 2e-3
"""Learning rate of all targets at once at width 32 with distances, for every network."""
SPREAD = "spread of predictions / spread of targets"
LEAST_SPREAD = 0.1
"""A run below this ratio predicts a constant."""
SECONDS = "seconds per epoch {}"
EQUAL_TIME = "/equal-time"
SMOKE_CELLS = (
    "speed/joint-width32/bonds",
    "joint/width32/distance/G2N2/modern",
    "joint/width32/bonds/PPGN/modern/equal-time",
    "single/r2/distance/G2N2/paper",
    "single/u0/distance/G2N2/defaults/wider/epochs-100",
    "single/mu/distance/G2N2+D/defaults/epochs-100",
    SCHNET,
    VISNET,
    "collapse/u0",
    "sums/extent",
)


def single(target: str) -> str:
    """G²N² on one target, with distances and the recipe `modern`."""
    return f"single/{target}/distance/G2N2/modern"


JOINT = "joint/width32/distance/G2N2/modern"
R2_EXTENT, R2_LONG = single("r2") + "/extent", single("r2") + "/long"


def run_names() -> Iterator[str]:
    """Every training cell of the tables, in the order they are run."""
    for width in (32, 64):
        joint = f"joint/width{width}"
        yield f"{joint}/distance/G2N2/modern/extent"
        for track in ("distance", "bonds"):
            yield f"{joint}/{track}/G2N2/modern"
            yield f"{joint}/{track}/PPGN/modern"
            if width == 32:
                yield f"{joint}/{track}/PPGN/modern{EQUAL_TIME}"
    yield from (JOINT.replace("G2N2", "PPGN-alike"), R2_EXTENT, R2_LONG)
    for target in COMPARED:
        plain = single(target)
        ppgn = plain.replace("G2N2", "PPGN")
        yield from (plain, ppgn, ppgn + EQUAL_TIME, plain.replace("distance", "bonds"))
        yield plain.replace("modern", "paper")
    yield from (single(t.name) for t in QM9_TARGETS if t.name not in COMPARED)
    for tail, targets in DEFAULTS.items():
        yield from (f"single/{target}/distance/{tail}" for target in targets)
    yield from (SCHNET, VISNET)


def config(name: str, smoke: bool = False, seed: int = 0) -> RunConfig:
    """The training run that a name says."""
    kind, what, track, network, recipe, *rest = name.split("/")
    target, width = (what, 64) if kind == "single" else (None, int(what.removeprefix("width")))
    width = given(rest, "width") or width
    narrow = recipe != "paper" and width == 32 and track == "distance"
    if network in OF_PYG:
        published = {"baseline": network, "width": 8 if smoke else 128, "layers": 6}
        shape: dict[str, Any] = published | {"distance": ("raw",)}
    else:
        shape = {"grammar": GRAMMARS.get(network, "PPGN"), "width": 8 if smoke else width}
        shape |= {"preset": "ppgn" if network == "PPGN" else None}
        shape |= {"distance": WIDER if "wider" in rest else None}
        shape |= TUNED if "tuned" in rest else {"rate": NARROW_RATE if narrow else None}
    return RunConfig(
        "qm9",
        target=(target,) if target else (),
        options={"track": track, "features": "ppgn"},
        recipe=RECIPE_OF.get(recipe, recipe),
        references=recipe != "paper",
        extent="extent" in rest,
        epochs=_epochs(target, recipe, rest, smoke),
        limit=150 if smoke else 0,
        batch=SMALL_BATCH if smoke else None,
        threads=1 if smoke else 0,
        seed=seed,
        precision="tf32" if recipe in IN_TF32 or _is_fine(track, target) else "bf16",
        **shape,
    )


def _is_fine(track: str, target: str | None) -> bool:
    return track == "distance" and target in FINE


def _epochs(target: str | None, recipe: str, rest: list[str], smoke: bool) -> int:
    named = given(rest, "epochs")
    if smoke:
        return 3 if named or "long" in rest else 2
    if named:
        return named
    if "long" in rest or recipe == "paper":
        return EPOCHS["long" if "long" in rest else "paper"]
    return EPOCHS["joint" if not target else "compared" if target in COMPARED else "single"]


def given(parts: Iterable[str], word: str) -> int | None:
    """The number that a name gives: 100 of `epochs-100`; None if it gives none."""
    numbers = (part.removeprefix(f"{word}-") for part in parts if part.startswith(f"{word}-"))
    return next(map(int, numbers), None)


def speed_name(name: str) -> str:
    """The cell that times the networks of a run."""
    kind, what, track, *_ = name.split("/")
    if kind == "joint":
        return f"speed/joint-{what}/{track}"
    return f"speed/single{'' if _is_fine(track, what) else '-bf16'}/{track}"


def cells(smoke: bool = False) -> list[Cell]:
    """Speeds come first, since equal-time cells read them."""
    timed = (JOINT, JOINT.replace("distance", "bonds"), single("r2"), single("u0"))
    everything = [speed_cell(name, smoke) for name in timed]
    speeds = {cell.name: cell for cell in everything}
    everything.append(networks_cell(smoke))
    for name in run_names():
        epochs = None
        if name.endswith(EQUAL_TIME):
            epochs = partial(equal_time_epochs, speed=speeds[speed_name(name)])
        everything.append(training_cell("q2", name, config(name, smoke), epochs=epochs))
    everything += _repeated(smoke)
    for name, seeds in SEVERAL.items():
        others = range(1, seeds)
        everything += [training_cell("q2", name, config(name, smoke, seed)) for seed in others]
    for sums, tail in (("elements", ""), ("extent", "/extent")):
        everything.append(sums_cell(f"sums/{sums}", config(JOINT + tail, smoke)))
    return [c for c in everything if not smoke or (c.name in SMOKE_CELLS and c.seed == 0)]


def _repeated(smoke: bool) -> Iterator[Cell]:
    """Runs of several seeds: those that may collapse, and those in two precisions."""
    for seed in range(COLLAPSE_SEEDS):
        run = replace(config(single("u0"), smoke, seed), epochs=2 if smoke else COLLAPSE_EPOCHS)
        yield training_cell("q2", "collapse/u0", run, measure=spread_of_predictions)
    for target in COMPARED:
        for seed in range(PRECISION_SEEDS):
            for precision in PRECISIONS:
                run = replace(config(single(target), smoke, seed), precision=precision)
                run = replace(run, epochs=2 if smoke else PRECISION_EPOCHS)
                name = f"precision/{target}/{precision}"
                cell = training_cell("q2", name, run)
                settings = {**cell.settings, "precision": precision}
                yield replace(cell, settings=settings, run=partial(_on_gpu, cell))


def _on_gpu(cell: Cell, job: Job) -> Measurement:
    if job.torch_device().type != "cuda":
        raise DataError("it compares precisions of a GPU, and the device is a CPU")
    return cell.run(job)


def speed_cell(name: str, smoke: bool) -> Cell:
    """A cell that times the networks of a run."""
    configs = {n: config(name.replace("G2N2", n), smoke) for n in NETWORKS}
    return timing_cell("q2", speed_name(name), configs, 1 if smoke else TIMED_EPOCHS)


def networks_cell(smoke: bool) -> Cell:
    """A cell that times an epoch of G²N², SchNet and ViSNet on some molecules."""
    names = {
        "G2N2": "single/u0/distance/G2N2/defaults/epochs-100",
        "G2N2, wide": "single/u0/distance/G2N2/defaults/wider/epochs-100",
        "SchNet": SCHNET,
        "ViSNet": VISNET,
    }
    configs = {network: few(config(name, smoke)) for network, name in names.items()}
    return timing_cell("q2", "speed/networks", configs, 1)


def few(config: RunConfig) -> RunConfig:
    """The same run of at most so many molecules that their time is short."""
    return replace(config, limit=min(config.limit or FEW, FEW))


def timing_cell(
    question: str, name: str, configs: Mapping[str, RunConfig], epochs: int = TIMED_EPOCHS
) -> Cell:
    """A cell that times networks one after the other, on the same data, with nothing beside them.

    The first network is the unit of the ratios; one epoch goes before those that are timed.
    """

    def run(job: Job) -> Measurement:
        seconds, data = {}, {}
        for network, config in configs.items():
            folder = job.work / network
            shutil.rmtree(folder, ignore_errors=True)  # half a measurement is none
            timed = replace(config, epochs=1 + epochs)
            trained = train(timed, folder, job, load(timed, job))
            seconds[network] = epoch_seconds(trained.history) or float("nan")
            data[config.dataset] = RunFolder(folder).read_json("data.json")["sha256"]
        first, *others = configs
        ratios = {f"{other} / {first}": seconds[other] / seconds[first] for other in others}
        metrics = {SECONDS.format(network): value for network, value in seconds.items()} | ratios
        precisions = {network: run_precision(config, job) for network, config in configs.items()}
        return Measurement(len(configs), "networks", metrics, data, {"run in": precisions})

    settings = {network: config.as_dict() for network, config in configs.items()}
    return Cell(question, name, run, settings, timed=True)


def equal_time_epochs(config: RunConfig, job: Job, speed: Cell, ratio: str = "PPGN / G2N2") -> int:
    """The epochs of a network that take as long as the config's own take another.

    The speed cell has the ratio of their seconds.
    """
    timing, command = speed.record(job.results), f"g2n2-paper {speed.question} --only {speed.name}"
    if timing is None:
        raise DataError(f"equal time needs a timing of both networks: {command}")
    times = timing.metrics[ratio]
    assert times, "a timing has a positive ratio"
    return epochs_in_equal_time(config.effective_recipe().epochs, times)


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
        metrics = {
            mae_key(column.name, column.unit): float(error)
            for column, error in zip(graphs.columns, np.nanmean(residuals, axis=0), strict=True)
        }
        metrics["parameters"] = len(next(iter(parts.scaling.references.values()))) + 1
        data = {config.dataset: checksum(graphs)}
        return Measurement(1, "fits", metrics, data, {**described(config), "precision": "64"})

    settings = run_settings(config, "epochs", "rate")
    return Cell("q2", name, run, settings, config.seed)
