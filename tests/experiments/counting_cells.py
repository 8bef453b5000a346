"""A question of small cells, found by worker processes under the name of this module."""

import os
import time
from dataclasses import replace

from g2n2.errors import DataError
from g2n2.experiments import packing, questions
from g2n2.experiments.cell import Cell, Slice
from g2n2.experiments.machines import machine
from g2n2.experiments.record import Record

PLANNED = 3
WORK = packing._work


def work(*args) -> None:
    """A worker process that knows the cells below as question q1."""
    questions.QUESTIONS["q1"] = "counting_cells"
    WORK(*args)


def record(cell: str, seed: int, done: int) -> Record:
    return Record("q1", cell, seed, "smoke", done, PLANNED, "units", {}, {}, {}, {}, 0.0)


def counting(name: str, seed: int = 0, **fields) -> Cell:
    """A cell that does one unit in each slice, and keeps count in its folder."""

    def run(given: Slice) -> Record:
        count = given.work / "count"
        done = int(count.read_text()) + 1 if count.exists() else 1
        count.write_text(str(done))
        given.tell("counting", done, PLANNED)
        return replace(record(name, seed, done), provenance=machine(given.device))

    return Cell("q1", name, seed, "smoke", run, **fields)


def at_once(name: str, seed: int = 0, seconds: float = 0.0, mates: int = 0, **fields) -> Cell:
    """A cell that is complete after one slice, and writes down when it worked.

    It waits for so many others that wait, five minutes at most: a busy machine starts workers one
    long after the other.
    """

    def run(given: Slice) -> Record:
        begun = time.monotonic()
        time.sleep(seconds)
        given.work.with_suffix(".waits").touch()
        while len(list(given.work.parent.glob("*.waits"))) <= mates:
            time.sleep(0.01)
            if time.monotonic() > begun + 300.0:
                break
        (given.work / "when").write_text(f"{begun} {time.monotonic()} {os.getpid()}")
        return record(name, seed, PLANNED)

    return Cell("q1", name, seed, "smoke", run, **fields)


def failing(name: str, error: BaseException) -> Cell:
    def run(_: Slice) -> Record:
        raise error

    return Cell("q1", name, 0, "smoke", run)


def dying(name: str) -> Cell:
    def run(_: Slice) -> Record:
        os._exit(7)

    return Cell("q1", name, 0, "smoke", run)


def cells(budget: str) -> list[Cell]:
    return [
        at_once("slow/first", mates=1),
        at_once("slow/second", mates=1),
        at_once("timing/alone", alone=True),
        dying("dies"),
        failing("fails", DataError("no such thing")),
        at_once("last", seed=1),
    ]
