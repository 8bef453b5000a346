"""SR25 as 15 classes for networks with marks, from a calibrated start as on BREC, in float64.

With PyTorch's default weights the 15 graphs differ by 1e-6 of what three layers compute, which
training in 32 bits does not find: accuracy stays 1 in 15. Calibrated (see `embeddings`) they differ
by as much as they have in common. Decision layers have one rate and the layers below, whose small
steps already change everything, another. New relabelings of the graphs are tested.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import build, embed, forward

from .brec import relabelled_with_orbits
from .contenders import Contender, exact_power, suite_checksum
from .embeddings import DIMENSIONS, calibrated_embedding
from .runner import Cell, Job, Measurement

ACCURACY = "test accuracy (%)"


@dataclass(frozen=True)
class ClassTraining:
    """How the classes are learned; `copies` are relabelings of each graph."""

    copies: int = 2
    test_copies: int = 4
    epochs: int = 40
    rate: float = 1e-2
    rate_below: float = 1e-6
    stop_below: float = 0.05


def sr25_cell(contender: Contender, training: ClassTraining | None = None) -> Cell:
    """A contender with marks on SR25."""
    settings = training or ClassTraining()
    told = {"contender": contender.as_dict(), "training": asdict(settings)}

    def run(job: Job) -> Measurement:
        from .power import class_suite  # the classes of the other cells import this one

        suite = class_suite("sr25", job.data)
        assert len(suite.graphs) <= DIMENSIONS, "one output for each class"
        accuracy, losses = classes_learned(contender, suite.graphs, settings, job.torch_device())
        return Measurement(
            done=1,
            unit="folds",
            metrics={
                ACCURACY: 100.0 * accuracy,
                "deviation over folds (%)": 0.0,
                **exact_power(contender, suite).metrics,
            },
            config={**told, "precision": "float64"},
            data={"sr25": suite_checksum(suite)},
            detail={"accuracies": [100.0 * accuracy], "loss": losses},
        )

    return Cell("power", f"sr25/{contender.name}", run, told, needs=("sr25",))


def classes_learned(
    contender: Contender,
    graphs: tuple[Adjacency, ...],
    settings: ClassTraining,
    device: torch.device,
) -> tuple[float, list[float]]:
    """The share of new relabelings that are recognised, and the loss of each epoch."""
    marks = contender.network.count("Σ")
    count = settings.copies + settings.test_copies + 1
    copies = [relabelled_with_orbits(g, count, (25, i), marks)[1:] for i, g in enumerate(graphs)]

    def make(_: int) -> Any:
        return calibrated_embedding(contender, [c[0] for c in copies], torch.float64, device)

    model = cast(Any, build(make, 0, "float64"))
    readout = model.network.readout
    above = [*readout.decision.parameters()]
    above += [] if readout.straight is None else [*readout.straight.parameters()]
    below = [p for p in model.parameters() if not any(p is q for q in above)]
    optimizer = torch.optim.Adam(
        [{"params": above, "lr": settings.rate}, {"params": below, "lr": settings.rate_below}]
    )
    classes = torch.arange(len(graphs), device=device)
    losses: list[float] = []
    model.train()
    for _ in range(settings.epochs):
        total = 0.0
        for copy in range(settings.copies):
            optimizer.zero_grad()
            loss = cross_entropy(
                forward(model, [c[copy] for c in copies], "batch", "float64"), classes
            )
            torch.autograd.backward(loss)
            optimizer.step()
            total += loss.item() / settings.copies
        losses.append(total)
        if total < settings.stop_below:
            break
    model.eval()
    tested = range(settings.copies, settings.copies + settings.test_copies)
    right = [
        np.mean(
            embed(model, [c[copy] for c in copies], "batch", "float64").argmax(1)
            == np.arange(len(graphs))
        )
        for copy in tested
    ]
    return float(np.mean(right)), losses
