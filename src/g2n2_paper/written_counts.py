"""Counts written into the weights of a network with a mark, before and after training on them.

Networks compute in float64, where sums of whole numbers are exact: a loss of 0 has no gradient, and
training then leaves every weight as it is. Errors are over the deviation of the count, as in
`counting/beyond`; `gradient` is the largest that any weight had.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from g2n2.compiler.formula_plan import requirements
from g2n2.data.batch import GraphBatch
from g2n2.data.graph_set import GraphSet
from g2n2.grammars.subgraph_counts import formula
from g2n2.nn.model import GrammarGNN
from g2n2.nn.writing import write_formula
from g2n2.training.trained_on import checksum

from .beyond import beyond_graphs
from .runner import Cell, Job, Measurement

GRAMMAR = "r-G_L3Σ"
WRITTEN = {"K4": "K4", "8_cycle": "C8"}
"""Names of counts to those of their formulas."""
BEFORE, AFTER = "normalised test MAE {}, written", "normalised test MAE {}, trained"
BATCH, RATE = 32, 1e-3


def written_cell(count: str, epochs: int = 3, limit: int = 0) -> Cell:
    """One count of `beyond_counts`; `limit` graphs of each part, all if 0."""
    settings = {"count": count, "epochs": epochs, "limit": limit, "grammar": GRAMMAR, "rate": RATE}

    def run(job: Job) -> Measurement:
        graphs, device = beyond_graphs(job.data), job.torch_device()
        model = written(count).to(device)
        column = [target.name for target in graphs.columns].index(count)

        def part(name: str) -> tuple[GraphSet, Tensor]:
            some = graphs.select(graphs.splits[name][: limit or None])
            return some, torch.tensor(some.targets[:, column], device=device)

        train, test = part("train"), part("test")
        unit = float(train[1].std(correction=0)) or 1.0
        before = error(model, *test) / unit
        steps, gradient = trained(model, *train, epochs, unit)
        return Measurement(
            done=steps,
            unit="steps",
            metrics={
                BEFORE.format(count): before,
                AFTER.format(count): error(model, *test) / unit,
                "gradient": gradient,
                "parameters": model.parameter_count,
            },
            config={**settings, "formula": model.formula, "precision": "float64"},
            data={"counting": checksum(graphs)},
        )

    return Cell("power", f"counting/written/{count}", run, settings, needs=("counting",))


def written(count: str) -> GrammarGNN:
    """A network just large enough, with the formula of a count in its weights, in float64."""
    term = formula(WRITTEN[count])
    needed = requirements(GRAMMAR, term)
    width = dict(needed.width)
    model = GrammarGNN(
        GRAMMAR, width=width, layers=needed.depth, preset="paper", decision=(2,)
    ).double()
    write_formula(model, term)
    return model


def batches(graphs: GraphSet, order: Sequence[int], device: torch.device) -> list[GraphBatch]:
    """The graphs in that order, `BATCH` at a time."""
    dense = [graphs.adjacency(index) for index in order]
    groups = (dense[start : start + BATCH] for start in range(0, len(dense), BATCH))
    return [GraphBatch.of(group, dtype=torch.float64).to(device) for group in groups]


@torch.no_grad()
def error(model: GrammarGNN, graphs: GraphSet, counts: Tensor) -> float:
    """Mean absolute error."""
    parts = [model(b)[:, 0] for b in batches(graphs, range(len(graphs)), counts.device)]
    return float((torch.cat(parts) - counts).abs().mean())


def trained(
    model: GrammarGNN, graphs: GraphSet, counts: Tensor, epochs: int, unit: float
) -> tuple[int, float]:
    """Adam on the mean squared error; the steps taken and the largest gradient of any weight."""
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    stacks = batches(graphs, range(len(graphs)), counts.device)
    parts, largest = torch.split(counts, BATCH), counts.new_zeros(())
    for _ in range(epochs):
        for batch, wanted in zip(stacks, parts, strict=True):
            optimizer.zero_grad()
            loss = ((model(batch)[:, 0] - wanted) / unit).square().mean()
            torch.autograd.backward(loss)
            slopes = [w.grad.abs().max() for w in model.parameters() if w.grad is not None]
            largest = torch.maximum(largest, torch.stack(slopes).max())
            optimizer.step()
    return epochs * len(stacks), float(largest)
