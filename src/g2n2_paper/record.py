"""Records: the result of one cell and seed, as a JSON file with all that is needed to trace it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from g2n2.atomic_files import disk_errors, replace_file
from g2n2.errors import DataError

QUESTIONS = ("q1", "q2", "q3", "q4", "power", "molecules")
EARLIER = "earlier slices"
"""The key of a record's provenance that lists other machines and commits it was computed with."""


@dataclass(frozen=True)
class CellRecord:
    """The result of one cell for one seed."""

    question: str  # one of `QUESTIONS`
    cell: str  # name within the question, parts joined by `/`: `single/r2/distance/G2N2/modern`
    seed: int
    done: int  # amount of work (epochs, folds, pairs)
    unit: str  # what `done` counts
    # numbers shown in tables. A metric's name contains its unit
    metrics: Mapping[str, float | None]
    config: Mapping[str, Any]  # all settings
    data: Mapping[str, str]  # data set name to checksum
    provenance: Mapping[str, Any]  # hardware, versions and commit
    seconds: float  # wall time, over all attempts
    # numbers shown in figures: curves, accuracies of folds, responses
    detail: Mapping[str, Any] = field(default_factory=dict)

    def path(self, results: Path) -> Path:
        return record_path(results, self.question, self.cell, self.seed)

    def write(self, results: Path) -> Path:
        path = self.path(results)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        with disk_errors(f"write {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, f"{text}\n".encode(), shared=True)
        return path

    @classmethod
    def read(cls, path: Path) -> CellRecord:
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
            if content["done"] < content.get("planned", 1):
                raise ValueError(f"partial: {content['done']} of {content['planned']}")
            record = cls(**{f.name: content[f.name] for f in fields(cls)})
            record._check_types()
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path} is not a complete record ({type(error).__name__}: {error}); delete it and "
                "run its cell again"
            ) from None
        if (right := record.path(path.parents[1])) != path:
            raise DataError(
                f"{path} contains the record of {record.question} {record.cell}, seed "
                f"{record.seed}, which belongs in {right}: move it there"
            )
        return record

    def _check_types(self) -> None:
        kinds = {"question": str, "cell": str, "unit": str, "seed": int, "done": int}
        kinds |= dict.fromkeys(("metrics", "config", "data", "provenance", "detail"), dict)
        for name, kind in kinds.items():
            if type(getattr(self, name)) is not kind:
                raise TypeError(f"{name} is {getattr(self, name)!r}")
        numbers = [value for value in self.metrics.values() if value is not None]
        if not all(type(n) in (int, float) and math.isfinite(n) for n in [*numbers, self.seconds]):
            raise TypeError(f"a metric is not a finite number: {dict(self.metrics)}")


def record_path(results: Path, question: str, cell: str, seed: int) -> Path:
    """`results/q2/single-r2-distance-G2N2-modern.s0.json`."""
    return results / question / f"{cell.replace('/', '-')}.s{seed}.json"


def read_records(results: Path) -> list[CellRecord]:
    """All records of a results folder, sorted by question and file name."""
    if not results.is_dir():
        raise DataError(f"no folder {results}; `g2n2-paper q4` writes records to --results")
    paths = [p for question in QUESTIONS for p in sorted((results / question).glob("*.json"))]
    return [CellRecord.read(path) for path in paths]


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
