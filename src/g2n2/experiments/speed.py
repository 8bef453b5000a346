"""Seconds per epoch of several networks in one run, and budgets of equal time made of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import DataError
from ..training.config import RunConfig
from .cell import Cell, Slice
from .machines import machine, precision_on
from .record import Record, record_path
from .shared_data import graphs_of
from .training_cells import Adapt, epoch_seconds, train_slice

TIMED = ("full", "short")
"""Budgets whose speeds hold for others."""


def seconds_key(network: str) -> str:
    return f"seconds per epoch {network}"


def speed_cell(
    question: str,
    name: str,
    budget: str,
    configs: Mapping[str, RunConfig],
    epochs: int,
    *,
    optional: bool = False,
) -> Cell:
    """A cell that times networks one after the other, with nothing beside them.

    Args:
        question: It belongs to.
        name: Of the cell.
        budget: Whose settings it has.
        configs: Name of each network to its run, on the same data.
        epochs: Timed, after one that is not.
        optional: Whether it is one.
    """

    def run(given: Slice) -> Record:
        return speed_record(question, name, budget, configs, epochs, given)

    settings = {network: config.as_dict() for network, config in configs.items()}
    return Cell(question, name, 0, budget, run, ("qm9",), optional, alone=True, settings=settings)


def speed_record(
    question: str,
    name: str,
    budget: str,
    configs: Mapping[str, RunConfig],
    epochs: int,
    given: Slice,
) -> Record:
    """Time every network anew: half a measurement is none."""
    from ..training.run_folder import RunFolder

    begun = time.monotonic()
    metrics: dict[str, float | None] = {}
    data = {}
    for network, config in configs.items():
        given.tell(f"timing {network}", len(metrics), len(configs))
        folder = given.work / network
        shutil.rmtree(folder, ignore_errors=True)
        timed = replace(config, epochs=epochs + 1)
        graphs = graphs_of(timed, given)
        alone = replace(given, minutes=0.0, tell=lambda *_: None, note=lambda: None)
        train_slice(timed, folder, alone, graphs, begun)
        metrics[seconds_key(network)] = _measured(folder)
        data[config.dataset] = RunFolder(folder).read_json("data.json")["sha256"]
    first, *others = configs
    for other in others:
        metrics[f"{other} / {first}"] = _ratio(metrics, other, first)
    return Record(
        question=question,
        cell=name,
        seed=0,
        budget=budget,
        done=len(configs),
        planned=len(configs),
        unit="networks",
        metrics=metrics,
        config={
            **{network: config.as_dict() for network, config in configs.items()},
            "run in": {name: precision_on(one, given.device) for name, one in configs.items()},
        },
        data=data,
        provenance=machine(given.device),
        seconds=round(time.monotonic() - begun, 3),
    )


def _measured(folder: Path) -> float | None:
    from ..training.checkpoint import load_checkpoint

    content, _ = load_checkpoint(folder)
    return epoch_seconds(content["progress"]["history"]) if content else None


def _ratio(metrics: Mapping[str, float | None], slow: str, fast: str) -> float | None:
    above, below = metrics[seconds_key(slow)], metrics[seconds_key(fast)]
    return above / below if above and below else None


def equal_time(question: str, speed: str, budget: str) -> Adapt:
    """Give PPGN as many epochs as fit into the seconds G²N² takes for the config's own.

    Args:
        question: Both cells belong to.
        speed: Name of the cell that timed both networks.
        budget: Of both cells; where the speed was timed in another, that is taken: it does not
            depend on how long a run is.
    """

    def adapt(config: RunConfig, given: Slice) -> int:
        places = [record_path(given.results, question, speed, 0, b) for b in (budget, *TIMED)]
        known = (Record.read(path).metrics.get("PPGN / G2N2") for path in places if path.is_file())
        ratio = next(filter(None, known), None)
        if not ratio:
            raise DataError(
                f"equal time needs the seconds per epoch of both networks; first run: "
                f"g2n2 experiment {question} --budget {budget} --only {speed}"
            )
        return epochs_in_equal_time(config.effective_recipe().epochs, ratio)

    return adapt


def epochs_in_equal_time(epochs: int, ratio: float) -> int:
    """How many fit into the time of so many that take a `ratio`-th of the time each."""
    return max(1, round(epochs / ratio))
