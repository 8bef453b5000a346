"""CSL and SR25 as classes for networks with marks, from a calibrated start as on BREC, in float64.

With PyTorch's default weights the graphs of SR25 differ by 1e-6 of what three layers compute, which
training in 32 bits does not find: accuracy stays 1 in 15. Calibrated (see `embeddings`) they differ
by as much as they have in common. Only the decision layers are trained: the smallest steps of the
layers below change what they read altogether. New relabelings of the graphs are tested.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy

from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import build, embed

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
    epochs: int = 200
    rate: float = 1e-2
    stop_below: float = 0.05


def calibrated_cell(
    set_name: str, contender: Contender, training: ClassTraining | None = None
) -> Cell:
    """A contender with marks on CSL or SR25."""
    settings = training or ClassTraining()
    told = {"contender": contender.as_dict(), "training": asdict(settings)}

    def run(job: Job) -> Measurement:
        from .power import class_suite  # the classes of the other cells import this one

        suite = class_suite(set_name, job.data)
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
            data={set_name: suite_checksum(suite)},
            detail={"accuracies": [100.0 * accuracy], "loss": losses},
        )

    needs = () if set_name == "csl" else (set_name,)
    return Cell("power", f"{set_name}/{contender.name}", run, told, needs=needs)


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
    readout, read = model.network.readout, []
    hook = readout.decision[0].register_forward_pre_hook(lambda _, args: read.append(args[0]))
    for copy in range(count - 1):
        embed(model, [c[copy] for c in copies], "batch", "float64")
    hook.remove()
    features = torch.cat([rows.detach() for rows in read]).reshape(count - 1, len(graphs), -1)
    classes = torch.arange(len(graphs), device=device)
    weights = [*readout.decision.parameters()]
    weights += [] if readout.straight is None else [*readout.straight.parameters()]
    optimizer = torch.optim.Adam(weights, settings.rate)
    losses: list[float] = []
    readout.train()
    for _ in range(settings.epochs):
        total = 0.0
        for rows in features[: settings.copies]:
            optimizer.zero_grad()
            loss = cross_entropy(readout.decide(rows), classes)
            torch.autograd.backward(loss)
            optimizer.step()
            total += loss.item() / settings.copies
        losses.append(total)
        if total < settings.stop_below:
            break
    readout.eval()
    with torch.no_grad():
        right = [readout.decide(rows).argmax(1) == classes for rows in features[settings.copies :]]
    return float(torch.stack(right).double().mean()), losses
