"""Record: one result as a JSON file, with all that is needed to trace it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..atomic_files import replace_file
from ..errors import DataError

BUDGETS = ("smoke", "short", "full")
"""From a check that the harness works to what the tables should hold, cheapest first."""

EARLIER = "earlier slices"
"""Where a record's provenance lists the machines and commits it was begun with."""


@dataclass(frozen=True)
class Record:
    """What one cell gave for one seed.

    Attributes:
        question: `q1` … `q4` or `power`.
        cell: Its name within the question, parts joined by `/`: `single/r2/distance/G2N2/modern`.
        seed: Of the run.
        budget: One of `BUDGETS`.
        done: Units of work done (epochs, folds, pairs).
        planned: Units the budget asks for; fewer done means a partial result.
        unit: What is counted.
        metrics: What tables read, by name; the unit of a number is part of its name.
        config: Every setting of the run.
        data: Name of each data set to the checksum of what was read.
        provenance: Hardware, versions, commit.
        seconds: Wall time of the work, over all slices.
        detail: What figures read: curves, per-fold numbers, responses.
    """

    question: str
    cell: str
    seed: int
    budget: str
    done: int
    planned: int
    unit: str
    metrics: Mapping[str, float | None]
    config: Mapping[str, Any]
    data: Mapping[str, str]
    provenance: Mapping[str, Any]
    seconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        return self.done < self.planned

    def path(self, results: Path) -> Path:
        """Where it lies under a results folder."""
        return record_path(results, self.question, self.cell, self.seed, self.budget)

    def write(self, results: Path) -> Path:
        """Write it whole or not at all."""
        path = self.path(results)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        # Processes with work folders of their own may be at one cell.
        replace_file(path, f"{text}\n".encode(), shared=True)
        return path

    def _checked(self) -> Record:
        """Refuse what no table could read.

        Raises:
            ValueError: Saying what is wrong.
        """
        if self.budget not in BUDGETS:
            raise ValueError(f"its budget is {self.budget!r}")
        for name in ("question", "cell", "unit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"its {name} is {getattr(self, name)!r}")
        for name in ("metrics", "config", "data", "provenance", "detail"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"its {name} are no object")
        slices = self.provenance.get(EARLIER, [])
        if not (isinstance(slices, list) and all(isinstance(one, dict) for one in slices)):
            raise ValueError(f"its {EARLIER} are {slices!r}")
        for name in ("seed", "done", "planned"):
            if type(getattr(self, name)) is not int:
                raise ValueError(f"its {name} is {getattr(self, name)!r}")
        if not (0 <= self.done <= self.planned and self.planned):
            raise ValueError(f"{self.done} of {self.planned} {self.unit} cannot be")
        known = {name: value for name, value in self.metrics.items() if value is not None}
        for name, value in {**known, "seconds": self.seconds}.items():
            if type(value) not in (int, float) or not math.isfinite(value):
                raise ValueError(f"{name} is {value!r}")
        if self.seconds < 0:
            raise ValueError(f"it took {self.seconds} seconds")
        return self

    @classmethod
    def read(cls, path: Path) -> Record:
        """The record a file holds.

        Raises:
            DataError: It is no record.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
            return cls(**{f.name: content[f.name] for f in fields(cls)})._checked()
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(
                f"{path} is no result of an experiment ({error}); move it elsewhere and run the "
                "experiment again"
            ) from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds the old text or the new, never half."""
    replace_file(path, text.encode())


def record_path(results: Path, question: str, cell: str, seed: int, budget: str) -> Path:
    """`results/q2/single-r2-distance-G2N2-modern.s0.short.json`."""
    return results / question / f"{cell.replace('/', '-')}.s{seed}.{budget}.json"


def read_records(results: Path, question: str) -> list[Record]:
    """All records of a question, by name.

    Raises:
        DataError: A file is no record, or is called like another one; a folder cannot be read.
    """
    found = []
    folder = results / question
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise DataError(f"cannot read the records in {folder}: {error.strerror}") from None
    for path in (folder / name for name in names if name.endswith(".json")):
        record = Record.read(path)
        given_up = "/" in question  # kept in a folder of another name
        if record.path(results).name != path.name or not (given_up or record.question == question):
            raise DataError(
                f"{path} holds the record of {record.question} {record.cell}, seed {record.seed}, "
                f"budget {record.budget}, which would be {record.path(results)}: is it a copy? "
                "Move it elsewhere"
            )
        found.append(record)
    return found
