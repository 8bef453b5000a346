"""Made-up records: numbers nobody measured, to see what tables make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from g2n2.experiments.record import Record


def record(question: str, cell: str, metrics: dict[str, float | None], **changes: Any) -> Record:
    """A record with those metrics, complete unless said otherwise."""
    content: dict[str, Any] = {
        "seed": 0,
        "budget": "full",
        "done": 300,
        "planned": 300,
        "unit": "epochs",
        "config": {},
        "data": {},
        "provenance": {"device": "made-up GPU", "commit": "0123456789abcdef"},
        "seconds": 60.0,
        "detail": {},
    }
    return Record(question=question, cell=cell, metrics=metrics, **{**content, **changes})


def write(folder: Path, question: str, cell: str, metrics: dict[str, Any], **changes: Any) -> None:
    record(question, cell, metrics, **changes).write(folder)
