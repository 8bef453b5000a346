"""Cells without a network: what fitted sums alone say, which `modern` lets a network start from."""

from __future__ import annotations

import time

import numpy as np

from ..training.config import RunConfig
from .cell import Cell, Slice
from .machines import machine
from .record import Record
from .shared_data import graphs_of
from .training_cells import mae_key, run_config_said, run_settings


def sums_cell(question: str, name: str, budget: str, config: RunConfig) -> Cell:
    """Test errors of the references of a run, on its own split; metrics as those of its network."""

    def run(given: Slice) -> Record:
        from ..training.run_folder import checksum
        from ..training.setup import prepare

        begun = time.monotonic()
        graphs = graphs_of(config, given)
        parts = prepare(config, graphs)
        nothing = np.zeros_like(graphs.targets)
        rest = graphs.targets - parts.scaling.unscale(parts.task, graphs, nothing)
        errors = np.nanmean(np.abs(rest[parts.splits["test"]]), axis=0)
        fitted = next(iter(parts.scaling.references.values()))
        return Record(
            question=question,
            cell=name,
            seed=config.seed,
            budget=budget,
            done=1,
            planned=1,
            unit="fits",
            metrics={
                **{
                    mae_key(column.name, column.unit): float(error)
                    for column, error in zip(graphs.columns, errors, strict=True)
                },
                "parameters": len(fitted) + 1,
            },
            config={**run_config_said(config), "precision": "64"},
            data={config.dataset: checksum(graphs)},
            provenance=machine("cpu"),
            seconds=round(time.monotonic() - begun, 3),
        )

    settings = run_settings(config, "epochs", "rate")
    return Cell(question, name, config.seed, budget, run, (config.dataset,), settings=settings)
