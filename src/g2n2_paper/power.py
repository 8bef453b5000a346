"""Power, trained: what networks tell apart and count, beside the exact power of their grammars.

    brec/CONTENDER                        see `brec`
    layers/…                              see `marked_layers`
    csl/…, exp/…, sr25/CONTENDER          classes that no 1-WL network can learn, by folds
    graph8c/CONTENDER                     see `graph8c`
    counting/joint/CONTENDER              six subgraph counts at once
    counting/beyond/…, zinc/CONTENDER     see `beyond`
    counting/written/COUNT                see `written_counts`
    counting/exact/CONTENDER              `pairs merged` by the words, among the connected graphs of
                                          eight nodes, and of these `pairs merged, other COUNT`: 0
                                          means that the words determine the count there

A fold is tested, the next one validates, the others train. SR25, which has no folds, is usually
scored on the 15 graphs it was trained on; here new relabelings of them are tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import comb
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from g2n2.compiler.presets import MODERN_BEFORE
from g2n2.data.benchmarks import substructure_counts
from g2n2.data.graph_set import GraphSet, Ints, plain_graphs
from g2n2.data.splits import stratified_folds
from g2n2.data.suites import load_csl, load_exp, load_sr25, load_suite
from g2n2.nn.baselines import BASELINES
from g2n2.nn.expressivity import relabelled
from g2n2.power.suites import Suite
from g2n2.training.config import RunConfig
from g2n2.training.cuda_graphs import Recorded
from g2n2.training.evaluate import Outcome
from g2n2.training.run_folder import RunFolder
from g2n2.training.trained_on import checksum

from .beyond import (
    BEYOND_BATCH,
    BEYOND_COUNTS,
    BEYOND_EPOCHS,
    ZINC_SEEDS,
    beyond_graphs,
    zinc_cell,
)
from .brec import BrecSettings, BrecTraining, brec_cell
from .calibrated_classes import calibrated_cell
from .contenders import (
    CONTENDERS,
    MARKED,
    PPGN_ALIKE,
    Contender,
    exact_power,
    suite_checksum,
    word_classes,
)
from .graph8c import graph8c, graph8c_cell
from .marked_layers import STARTS, layers_cell
from .runner import Cell, Job, Measurement
from .runs import described, run_settings, train_fold, training_cell
from .written_counts import WRITTEN, written_cell

ACCURACY, DEVIATION = "test accuracy (%)", "deviation over folds (%)"
FOLDS = {"csl": 5, "exp": 10, "sr25": 1}
MARKED_FOLDS = 4
"""Of EXP for the network with marks, which takes a minute of an H200 for each."""
EPOCHS = {"csl": 60, "exp": 40, "sr25": 40}
SR25_COPIES = {"train": 8, "validation": 2, "test": 4}
COUNTS = ("triangle", "tailed_triangle", "3_star", "4_cycle", "5_cycle", "6_cycle")
COUNTING_EPOCHS, RANDOM_NETWORKS = 200, 10
MERGED, OTHER = "pairs merged", "pairs merged, other {}"
NORMALISED = "normalised test MAE {}"


def cells(smoke: bool = False) -> list[Cell]:
    """BREC first, then classes, graph8c and counting."""
    if smoke:
        small = CONTENDERS["G2N2-3"]
        return [
            brec_cell(BrecSettings(small, training=BrecTraining(epochs=2)), small=True),
            class_cell("csl", small, epochs=1, folds=1, threads=1),
            graph8c_cell(small, networks=1, limit=200),
            counting_exact_cell(small, limit=200),
            counting_cell(small, epochs=1, limit=150, threads=1),
        ]
    published = list(CONTENDERS.values())
    trained = [*published, PPGN_ALIKE]
    return [
        *(brec_cell(BrecSettings(contender)) for contender in trained),
        *(class_cell(name, contender, EPOCHS[name]) for name in EPOCHS for contender in trained),
        *(graph8c_cell(contender, RANDOM_NETWORKS) for contender in published),
        *(counting_exact_cell(contender) for contender in trained if contender.grammar),
        *(counting_cell(contender, COUNTING_EPOCHS) for contender in trained),
        *marked_cells(),
    ]


def marked_cells() -> list[Cell]:
    """Networks with marks: BREC, classes; and beside those without, counts and ZINC."""
    deep, marked, late, sparse = (
        MARKED[name] for name in ("G2N2Σ-5", "G2N2Σ-3", "G2N2Σ-2+1", "L1ΣΣ-9")
    )
    plain = CONTENDERS["G2N2-3"]
    return [
        *(brec_cell(BrecSettings(contender)) for contender in (deep, sparse)),
        class_cell("exp", late, EPOCHS["exp"], MARKED_FOLDS),
        *(calibrated_cell(name, marked) for name in ("csl", "sr25")),
        *map(layers_cell, STARTS),
        *(beyond_counting_cell(contender) for contender in (plain, marked)),
        *map(written_cell, WRITTEN),
        *(
            zinc_cell(c, seed)
            for c in (replace(plain, network="r-G_L3"), late)
            for seed in ZINC_SEEDS
        ),
    ]


def beyond_counting_cell(
    contender: Contender, epochs: int = BEYOND_EPOCHS, **settings: Any
) -> Cell:
    settings = {"marks": "all", "batch": BEYOND_BATCH, "epochs": epochs, **settings}
    config = run_config("counting", contender, target=BEYOND_COUNTS, **settings)
    name = f"counting/beyond/{contender.name}"
    return training_cell("power", name, config, measure=normalised_errors, source=beyond_graphs)


def run_config(dataset: str, contender: Contender, **settings: Any) -> RunConfig:
    network: dict[str, Any] = {"baseline": contender.network}
    if contender.network not in BASELINES:
        network = {"grammar": contender.network}
    if contender in MARKED.values():
        network |= {**contender.options, "marks": str(contender.options["marks"])}
    network |= {"width": 2 * contender.width, "layers": contender.layers}
    return RunConfig(
        dataset,
        preset=contender.preset or None,
        recipe=MODERN_BEFORE,
        precision="tf32",
        **{**network, **settings},
    )


def class_cell(
    set_name: str, contender: Contender, epochs: int, folds: int = 0, threads: int = 0
) -> Cell:
    """A contender on CSL, EXP or SR25: on all folds, or on the first few."""
    config = run_config(set_name, contender, split="stored", epochs=epochs, threads=threads)
    if contender not in MARKED.values():
        contender = replace(contender, options={})  # a run builds its network itself
    planned = folds or FOLDS[set_name]
    settings = {**run_settings(config), "contender": contender.as_dict(), "folds": planned}

    def run(job: Job) -> Measurement:
        graphs, recorded = class_graphs(set_name, job.data), Recorded()

        def accuracy(fold: int) -> float:
            parts = fold_parts(graphs, fold)
            folder = job.work / f"fold-{fold}"
            trained = train_fold(config, graphs, parts, folder, job, recorded)
            return round(100.0 * trained.scores["all"]["accuracy"], 3)

        def exact() -> dict[str, float | None]:
            return exact_power(contender, class_suite(set_name, job.data)).metrics

        every = {f"fold-{fold}": (fold,) for fold in range(1, planned + 1)}
        accuracies = job.kept_parts(every, accuracy)
        return Measurement(
            done=planned,
            unit="folds",
            metrics={
                ACCURACY: fmean(accuracies),
                DEVIATION: pstdev(accuracies),
                **job.kept("exact", exact),
            },
            config={**described(config), "contender": contender.as_dict(), "folds": planned},
            data={set_name: checksum(graphs)},
            detail={"accuracies": accuracies},
        )

    needs = () if set_name == "csl" else (set_name,)
    name = f"{set_name}/{contender.name}"
    return Cell("power", name, run, settings, needs=needs, parts=planned)


def fold_parts(graphs: GraphSet, fold: int) -> Mapping[str, Ints]:
    """The parts of one fold, counted from 1; the set's own parts if it has no folds."""
    if "train" in graphs.splits:
        return graphs.splits
    test = graphs.splits[f"fold-{fold}"]
    validation = graphs.splits[f"fold-{fold % len(graphs.splits) + 1}"]
    rest = np.setdiff1d(np.arange(len(graphs)), np.concatenate([test, validation]))
    return {"train": rest, "validation": validation, "test": test}


@lru_cache(maxsize=1)
def class_graphs(set_name: str, data: str | None) -> GraphSet:
    """CSL, EXP with stratified folds, or SR25 with relabelled copies of its graphs."""
    if set_name == "csl":
        return load_csl()
    if set_name == "exp":
        graphs = load_exp(data)
        return replace(graphs, splits=stratified_folds(graphs.targets[:, 0]))
    once, copies = load_sr25(data), sum(SR25_COPIES.values())
    relabelings = [
        relabelled(graph, copies + 1, (25, i))[1:]
        for i, graph in enumerate(class_suite("sr25", data).graphs)
    ]
    parts = np.tile(np.repeat(list(SR25_COPIES), list(SR25_COPIES.values())), len(relabelings))
    splits = {part: np.flatnonzero(parts == part) for part in SR25_COPIES}
    return plain_graphs(
        "sr25",
        [copy for several in relabelings for copy in several],
        targets=np.repeat(once.targets, copies, axis=0),
        columns=once.columns,
        splits=splits,
        source=once.source,
    ).check()


@lru_cache(maxsize=3)
def class_suite(set_name: str, data: str | None) -> Suite:
    return load_suite(set_name, data)


def counting_cell(contender: Contender, epochs: int, limit: int = 0, threads: int = 0) -> Cell:
    """A contender on six subgraph counts (not necessarily induced) in random graphs.

    Errors are divided by the deviation of the counts in the training graphs (Chen et al. 2020).
    """
    config = run_config(
        "counting", contender, target=COUNTS, epochs=epochs, limit=limit, threads=threads
    )
    name = f"counting/joint/{contender.name}"
    return training_cell("power", name, config, measure=normalised_errors)


def normalised_errors(outcome: Outcome, folder: Path) -> dict[str, float]:
    """Test MAE of every count over the deviation of that count in the training graphs."""
    train = outcome.graphs.select(RunFolder(folder).splits()["train"]).targets
    return {
        NORMALISED.format(column.name): outcome.scores[column.name]["mae"] / float(deviation)
        for column, deviation in zip(outcome.graphs.columns, train.std(axis=0), strict=True)
    }


def counting_exact_cell(contender: Contender, limit: int = 0) -> Cell:
    """Which counts the words of a contender's grammar determine at its depth."""
    settings = {"contender": contender.as_dict()}

    def run(job: Job) -> Measurement:
        suite = graph8c(limit)
        classes = word_classes(contender, suite)
        assert classes is not None, "a contender without a grammar has no such cell"
        stack = np.stack(suite.graphs).astype(np.float64)
        by_name = substructure_counts(stack)
        counts = {count: by_name[count].tolist() for count in COUNTS}
        other = {OTHER.format(count): differing(classes, counts[count]) for count in COUNTS}
        return Measurement(
            done=1,
            unit="measurements",
            metrics={MERGED: equal_pairs(classes), **other},
            config={**settings, "graphs": len(suite.graphs)},
            data={"graph8c": suite_checksum(suite)},
        )

    return Cell("power", f"counting/exact/{contender.name}", run, settings)


def equal_pairs(values: Sequence[object]) -> int:
    """The number of pairs of equal values."""
    return sum(comb(times, 2) for times in Counter(values).values())


def differing(classes: Sequence[int], values: Sequence[float]) -> int:
    """The number of pairs of one class with different values."""
    return equal_pairs(classes) - equal_pairs(list(zip(classes, values, strict=True)))
