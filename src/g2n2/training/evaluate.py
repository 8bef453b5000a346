"""Scores of a model on some graphs, in the targets' own units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from ..data.graph_set import Ints
from ..data.store import GraphStore
from ..described import Described
from .inference import outputs
from .metrics import Metrics, metrics
from .setup import Parts
from .task import Values

Scores = dict[str, Metrics]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Described):
    """What a model says of some graphs.

    Attributes:
        rows: Place of each row among the rows of the set's targets.
        values: `[rows, out]` values in their units, or probabilities.
        targets: `[rows, T]`, NaN where unknown.
    """

    rows: Ints
    values: Values
    targets: Values

    def facts(self) -> dict[str, str]:
        """How many, for `repr` and notebooks."""
        known = int(np.isfinite(self.targets).any(axis=1).sum()) if self.targets.size else 0
        return {
            "rows": f"{len(self.rows):,}",
            "columns": str(self.values.shape[-1]),
            "with known targets": f"{known:,}",
        }


def predict(
    model: nn.Module, parts: Parts, store: GraphStore, indices: Ints, fabric: Any = None
) -> Predictions:
    """Predictions in the set's own order; several processes share the graphs and all get them."""
    rank, world = (fabric.global_rank, fabric.world_size) if fabric is not None else (0, 1)
    mine = indices[rank::world]
    if len(mine):
        raw, rows = outputs(model, store, mine)
    else:
        raw, rows = np.zeros((0, parts.task.out)), np.zeros(0, dtype=np.int64)
    if world > 1:
        from torch.distributed import all_gather_object

        gathered: list[Any] = [None] * world
        all_gather_object(gathered, (raw, rows))
        raw = np.concatenate([part for part, _ in gathered])
        rows = np.concatenate([part for _, part in gathered])
    order = np.argsort(rows)
    raw, rows = raw[order], rows[order]
    everything = np.zeros((len(parts.graphs.targets), raw.shape[1]))
    everything[rows] = raw
    in_units = parts.scaling.unscale(parts.task, parts.graphs, everything)[rows]
    return Predictions(rows, parts.task.decode(in_units), parts.graphs.targets[rows])


def constant_guess(parts: Parts, made: Predictions) -> tuple[Values, Values]:
    """Decoded values that look at no graph, and the targets: what any model should beat.

    The mean of the training graphs, or how often each class occurs among them.
    """
    known = parts.graphs.select(parts.splits["train"]).targets
    if parts.task.kind == "multiclass":
        classes = known[np.isfinite(known)].astype(np.int64)
        guess = np.bincount(classes, minlength=parts.task.out) / max(1, len(classes))
    else:
        counts = np.isfinite(known).sum(axis=0)
        guess = np.nansum(known, axis=0) / np.maximum(counts, 1)
    return np.tile(guess, (len(made.rows), 1)), made.targets


def score(
    model: nn.Module, parts: Parts, store: GraphStore, indices: Ints, fabric: Any = None
) -> Scores:
    """Metrics of each target and their mean (`all`)."""
    made = predict(model, parts, store, indices, fabric)
    return metrics(parts.task, made.values, made.targets)
