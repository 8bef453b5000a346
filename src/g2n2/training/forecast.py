"""How long a run will take on this CPU, and what a network without matrices would take."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..data.batching import epoch_batches
from ..errors import G2N2Error
from .config import RunConfig, with_rules
from .setup import Parts, make_model, make_store, takes_edges, without_edge_features
from .step import batch_for

CHEAPER = "r-G_L1"
"""The grammar without matrices that is named beside one with them."""
FORWARD = 1 / 3
"""Of the time of a training step: a prediction needs no gradients."""
LONG_STEP = 0.3
"""Seconds: a step that takes longer is timed once."""


@dataclass(frozen=True)
class Forecast:
    """Seconds of a run without a time limit, and of one with `CHEAPER` if it has matrices.

    None where that cannot be measured: the run itself says why, or goes on with smaller batches.
    """

    seconds: float | None
    cheaper: float | None


def forecast(config: RunConfig, parts: Parts) -> Forecast:
    """Time a few steps of a copy, so that the run is as without."""
    cheaper = None
    if not (config.baseline or config.start) and takes_edges(config):
        plain = RunConfig(
            config.dataset,
            grammar=CHEAPER,
            recipe=config.recipe,
            width=config.width,
            layers=config.layers,
            batch=config.batch,
            epochs=config.epochs,
            passes=config.passes,
            precision=config.precision,
        )
        graphs = without_edge_features(parts.graphs)
        cheaper = run_seconds(with_rules(plain), replace(parts, graphs=graphs))
    return Forecast(run_seconds(config, parts), cheaper)


def run_seconds(config: RunConfig, parts: Parts) -> float | None:
    """Seconds of all steps, validations and the last predictions; None if a step fails."""
    recipe, splits = config.effective_recipe(), parts.splits
    sizes = parts.graphs.sizes[splits["train"]]
    chosen = splits["train"][epoch_batches(sizes, recipe.batch, config.seed, 0)[0]]
    try:
        step = step_seconds(config, replace(parts, graphs=parts.graphs.select(chosen)))
    except (G2N2Error, RuntimeError, MemoryError):
        return None
    each = step / len(chosen)
    trained = recipe.epochs * config.passes * len(splits["train"])
    predicted = recipe.epochs * len(splits["validation"]) + sum(map(len, splits.values()))
    return each * (trained + FORWARD * predicted)


def step_seconds(config: RunConfig, parts: Parts) -> float:
    """Seconds of forward and backward on all graphs of the parts, once caches are warm."""
    graphs = replace(parts.graphs, targets=parts.scaling.scale(parts.task, parts.graphs))
    with torch.random.fork_rng():
        store = make_store(config, graphs, torch.device("cpu"))
        model = make_model(config, parts).to(store.dtype)
        every, seconds = np.arange(len(graphs)), []
        for indices in (every[:2], every, every, every):
            begin = time.perf_counter()
            batch = batch_for(model, store, indices)
            assert batch.targets is not None, "the store always gives targets"
            loss, _ = parts.task.loss(model(batch), batch.targets)
            loss.backward()  # type: ignore[no-untyped-call]
            seconds.append(time.perf_counter() - begin)
            if len(seconds) > 1 and seconds[-1] > LONG_STEP:
                break
    return min(seconds[1:])
