"""CSL, EXP and SR25: classes no 1-WL network can learn, and in SR25 none that 3-WL bounds.

| set | graphs | parts |
|-|-|-|
| CSL | 15 relabelings of each of 10 graphs | 5 folds, 3:1:1 |
| EXP | 600 pairs, one of each satisfiable | 10 folds, 8:1:1 |
| SR25 | 14 relabelings of each of 15 graphs | 8:2:4, one run |

A fold is tested, the next one validates, the rest trains; classes are balanced. SR25 is usually
scored on the 15 graphs it was trained on; new relabelings of them ask for more than memory of
rounding errors.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.assembly import frozen, plain_graphs, stratified_folds
from ...power.suites import Suite, load_suite
from ...power.trials.network_inputs import relabelled
from ...training.config import RunConfig
from ..cell import Cell, Slice
from ..kept import NOT_UNDERSTOOD, keep, percentages, read_kept
from ..machines import machine
from ..record import Record
from ..training_cells import run_config_said, run_settings, train_slice
from .contenders import Contender
from .exact import exact_power

if TYPE_CHECKING:
    from ...data.graph_set import GraphSet, Ints
    from ...training.cuda_graphs import Recorded

ACCURACY = "test accuracy (%)"
DEVIATION = "deviation over folds (%)"
SR25_COPIES = {"train": 8, "validation": 2, "test": 4}


@dataclass(frozen=True)
class ClassSet:
    """A set of classes and how it is split.

    Attributes:
        load: The graphs, by the folder with data files.
        folds: How many; 1 for the parts that come with the graphs.
        files: Whether it is read from a file.
    """

    load: Callable[[str | None], GraphSet]
    folds: int
    files: bool = True


def class_cell(
    set_name: str,
    contender: Contender,
    budget: str,
    epochs: int,
    folds: int = 0,
    threads: int = 0,
    seed: int = 0,
) -> Cell:
    """A contender on one of `SETS`.

    Args:
        set_name: A key of `SETS`.
        contender: The network.
        budget: Whose settings it has.
        epochs: Of each fold.
        folds: As many as are run; 0 for all.
        threads: Of a CPU; as many as it has where 0.
        seed: Of the runs.
    """
    name = f"{set_name}/{contender.name}"
    config = RunConfig(
        set_name,
        split="stored",
        **contender.built,
        width=2 * contender.width,
        layers=contender.layers,
        epochs=epochs,
        precision="tf32",
        threads=threads,
        seed=seed,
    )

    def run(given: Slice) -> Record:
        return run_folds(name, config, contender, budget, folds, given)

    needs = (set_name,) if SETS[set_name].files else ()
    contender = replace(contender, options={})  # a run builds its network itself
    planned = folds or SETS[set_name].folds
    settings = {**run_settings(config), "contender": contender.as_dict(), "folds": planned}
    return Cell("power", name, seed, budget, run, needs, settings=settings, goes_on=True)


def run_folds(
    name: str, config: RunConfig, contender: Contender, budget: str, folds: int, given: Slice
) -> Record:
    """Do as many folds as the slice allows."""
    from ...training.cuda_graphs import Recorded
    from ...training.run_folder import checksum

    begun = time.monotonic()
    graphs, recorded = _graphs(config.dataset, given.data), Recorded()
    data, here = {config.dataset: checksum(graphs)}, machine(given.device)
    given = given.on(data)
    planned = folds or SETS[config.dataset].folds
    exact = exact_power(contender, _suite(config.dataset, given.data), given.work / "exact.json")
    accuracies = known_accuracies(given.known_detail)[:planned]

    def summed_up() -> Record:
        return Record(
            question="power",
            cell=name,
            seed=config.seed,
            budget=budget,
            done=len(accuracies),
            planned=planned,
            unit="folds",
            metrics={
                ACCURACY: fmean(accuracies) if accuracies else None,
                DEVIATION: pstdev(accuracies) if accuracies else None,
                **exact.metrics(),
            },
            config={**run_config_said(config), "contender": contender.as_dict(), "folds": planned},
            data=data,
            provenance=here,
            seconds=given.seconds(begun),
            detail={"accuracies": list(accuracies)},
        )

    for fold in range(len(accuracies) + 1, planned + 1):

        def tell(sentence: str, epoch: int, _: int, at: int = fold) -> None:
            given.tell(f"fold {at} epoch {epoch}, {sentence}", at - 1, planned)

        told = replace(given, tell=tell)
        found = _fold(config, graphs, fold, told, begun, recorded)
        if found is None:
            break
        accuracies.append(found)
        given.publish(summed_up())
    return summed_up()


def known_accuracies(detail: Mapping[str, Any]) -> list[float]:
    """Those of the first folds, in a record's detail."""
    with suppress(*NOT_UNDERSTOOD):
        found = detail["accuracies"]
        return percentages(found, len(found))
    return []


def parts(graphs: GraphSet, fold: int) -> Mapping[str, Ints]:
    """What one fold trains on, chooses by and tests on."""
    if "train" in graphs.splits:
        return graphs.splits
    count = len(graphs.splits)
    test = graphs.splits[f"fold-{fold}"]
    validation = graphs.splits[f"fold-{fold % count + 1}"]
    rest = np.setdiff1d(np.arange(len(graphs)), np.concatenate([test, validation]))
    return {"train": rest, "validation": validation, "test": test}


def _fold(
    config: RunConfig, graphs: GraphSet, fold: int, given: Slice, begun: float, recorded: Recorded
) -> float | None:
    """Accuracy in percent; None where the slice ended before the fold."""
    kept, folder = given.work / f"fold-{fold}.json", given.work / f"fold-{fold}"
    if before := read_kept(kept, lambda found: percentages([found], 1)):
        return before[0]
    own = replace(graphs, splits=frozen(dict(parts(graphs, fold))))
    trained = train_slice(config, folder, given, own, begun, recorded)
    if trained.scores is None:
        return None
    accuracy = round(100.0 * trained.scores["all"]["accuracy"], 3)
    keep(kept, accuracy)
    shutil.rmtree(folder)
    return accuracy


def _csl(_: str | None) -> GraphSet:
    from ...data.benchmarks.expressivity import load_csl

    return load_csl()


def _exp(data: str | None) -> GraphSet:
    from ...data.benchmarks.expressivity import load_exp

    graphs = load_exp(data)
    return replace(graphs, splits=frozen(stratified_folds(graphs.targets[:, 0])))


def _sr25(data: str | None) -> GraphSet:
    from ...data.benchmarks.expressivity import load_sr25

    once, copies = load_sr25(data), sum(SR25_COPIES.values())
    made = [
        relabelled(graph, copies + 1, (25, i))[1:]
        for i, graph in enumerate(_suite("sr25", data).graphs)
    ]
    place = np.tile(np.arange(copies), len(made))
    ends = np.cumsum([0, *SR25_COPIES.values()])
    splits = {
        part: np.flatnonzero((start <= place) & (place < end))
        for part, start, end in zip(SR25_COPIES, ends[:-1], ends[1:], strict=True)
    }
    return plain_graphs(
        "sr25",
        [copy for several in made for copy in several],
        targets=np.repeat(once.targets, copies, axis=0),
        columns=once.columns,
        splits=frozen(splits),
        source=once.source,
    ).check()


SETS: dict[str, ClassSet] = {
    "csl": ClassSet(_csl, 5, files=False),
    "exp": ClassSet(_exp, 10),
    "sr25": ClassSet(_sr25, 1),
}


@lru_cache(maxsize=1)
def _graphs(set_name: str, data: str | None) -> GraphSet:
    return SETS[set_name].load(data)


@lru_cache(maxsize=3)
def _suite(set_name: str, data: str | None) -> Suite:
    return load_suite(set_name, data)
