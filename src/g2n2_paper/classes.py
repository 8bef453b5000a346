"""Sets of classes that no 1-WL network can learn: CSL, EXP, and SR25, which 3-WL cannot either.

A fold is tested, the next one validates, the others train. SR25, which has no folds, is usually
scored on the 15 graphs it was trained on; here new relabelings of them are tested.

Networks with marks learn CSL and SR25 from a calibrated start as on BREC, in float64. With
PyTorch's default weights the graphs of SR25 differ by 1e-6 of what three layers compute, which
training in 32 bits does not find: accuracy stays 1 in 15. Calibrated (see `contenders`) they differ
by as much as they have in common. Only the decision layers are trained: the smallest steps of the
layers below change what they read altogether.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import fmean, pstdev
from typing import Any, cast

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from g2n2.data.graph_set import GraphSet, Ints, plain_graphs
from g2n2.data.splits import stratified_folds
from g2n2.data.suites import load_csl, load_exp, load_sr25, load_suite
from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import build, embed, relabelled
from g2n2.power.suites import Suite
from g2n2.training.trained_on import checksum

from .brec import relabelled_with_orbits
from .contenders import (
    DIMENSIONS,
    MARKED,
    Contender,
    calibrated_embedding,
    exact_power,
    suite_checksum,
)
from .record import CellRecord
from .runner import Cell, Job, Measurement
from .runs import described, run_settings, train_folds

ACCURACY, DEVIATION = "test accuracy (%)", "deviation over folds (%)"
FOLDS = {"csl": 5, "exp": 10, "sr25": 1}
EPOCHS = {"csl": 60, "exp": 40, "sr25": 40}
SR25_COPIES = {"train": 8, "validation": 2, "test": 4}


def class_cell(
    set_name: str, contender: Contender, epochs: int = 0, folds: int = 0, threads: int = 0
) -> Cell:
    """A contender on CSL, EXP or SR25: on all folds, or on the first few."""
    planned, epochs = folds or FOLDS[set_name], epochs or EPOCHS[set_name]
    config = contender.config(set_name, split="stored", epochs=epochs, threads=threads)
    if contender not in MARKED.values():
        contender = replace(contender, options={})  # a run builds its network itself

    def run(job: Job) -> Measurement:
        graphs = class_graphs(set_name, job.data)
        parts = job.parts({f"fold-{f}": fold_parts(graphs, f) for f in range(1, planned + 1)})
        tested = [row["test"] for row in train_folds(config, graphs, parts, job)]
        exact = job.kept(
            "exact", lambda: exact_power(contender, load_suite(set_name, job.data)).metrics
        )
        metrics = {ACCURACY: fmean(tested), DEVIATION: pstdev(tested), **exact}
        data, detail = {set_name: checksum(graphs)}, {"accuracies": tested, "folds": [*parts]}
        return Measurement(len(parts), "folds", metrics, data, described(config), detail)

    settings = {**run_settings(config), "contender": contender.as_dict(), "folds": planned}
    return replace(
        _cell(set_name, contender, run, settings), parts=planned, parts_of=_folds_of_record
    )


def _cell(set_name: str, contender: Contender, run: Any, settings: Any) -> Cell:
    return Cell("power", f"{set_name}/{contender.name}", run, settings)


def _folds_of_record(record: CellRecord) -> dict[str, Any]:
    """The folds of a record that has not all of them, by name."""
    rows = ({"test": accuracy} for accuracy in record.detail["accuracies"])
    return dict(zip(record.detail["folds"], rows, strict=True))


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
        for i, graph in enumerate(load_suite("sr25", data).graphs)
    ]
    parts = np.tile(np.repeat(list(SR25_COPIES), list(SR25_COPIES.values())), len(relabelings))
    return plain_graphs(
        "sr25",
        [copy for several in relabelings for copy in several],
        targets=np.repeat(once.targets, copies, axis=0),
        columns=once.columns,
        splits={part: np.flatnonzero(parts == part) for part in SR25_COPIES},
        source=once.source,
    ).check()


@dataclass(frozen=True)
class ClassTraining:
    """How the classes are learned from a calibrated start; `copies` are relabelings of a graph."""

    copies: int = 2
    test_copies: int = 4
    epochs: int = 200
    rate: float = 1e-2
    stop_below: float = 0.05


def calibrated_cell(
    set_name: str,
    contender: Contender,
    training: ClassTraining | None = None,
    suite: Suite | None = None,
) -> Cell:
    """A contender with marks on CSL or SR25, or on the graphs of another suite."""
    training = training or ClassTraining()

    def run(job: Job) -> Measurement:
        graphs = suite or load_suite(set_name, job.data)
        assert len(graphs.graphs) <= DIMENSIONS, "one output for each class"
        share, losses = learn_classes(contender, graphs.graphs, training, job.torch_device())
        exact = exact_power(contender, graphs).metrics
        return Measurement(
            1,
            "folds",
            {ACCURACY: 100.0 * share, DEVIATION: 0.0, **exact},
            data={set_name: suite_checksum(graphs)},
            config={"precision": "float64"},
            detail={"accuracies": [100.0 * share], "loss": losses},
        )

    settings = {"contender": contender.as_dict(), "training": asdict(training)}
    return _cell(set_name, contender, run, settings)


def learn_classes(
    contender: Contender,
    graphs: tuple[Adjacency, ...],
    training: ClassTraining,
    device: torch.device,
) -> tuple[float, list[float]]:
    """The share of new relabelings that are recognised, and the loss of each epoch."""
    marks, count = contender.network.count("Σ"), training.copies + training.test_copies
    copies = [
        relabelled_with_orbits(g, count + 1, (25, i), marks)[1:] for i, g in enumerate(graphs)
    ]

    def make(_: int) -> Any:
        return calibrated_embedding(contender, [c[0] for c in copies], device)

    model = cast(Any, build(make, 0, "float64"))
    readout, read = model.network.readout, []
    hook = readout.decision[0].register_forward_pre_hook(lambda _, args: read.append(args[0]))
    for copy in range(count):
        embed(model, [c[copy] for c in copies], "batch", "float64")
    hook.remove()
    features = torch.cat([rows.detach() for rows in read]).reshape(count, len(graphs), -1)
    classes = torch.arange(len(graphs), device=device)
    weights = [*readout.decision.parameters()]
    weights += [] if readout.straight is None else [*readout.straight.parameters()]
    optimizer = torch.optim.Adam(weights, training.rate)
    losses: list[float] = []
    readout.train()
    while len(losses) < training.epochs and not (losses and losses[-1] < training.stop_below):
        total = 0.0
        for rows in features[: training.copies]:
            optimizer.zero_grad()
            loss = cross_entropy(readout.decide(rows), classes)
            torch.autograd.backward(loss)
            optimizer.step()
            total += loss.item() / training.copies
        losses.append(total)
    readout.eval()
    with torch.no_grad():
        right = [readout.decide(rows).argmax(1) == classes for rows in features[training.copies :]]
    return float(torch.stack(right).double().mean()), losses
