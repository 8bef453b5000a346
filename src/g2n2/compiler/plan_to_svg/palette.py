"""The colours of the paper's figures: red memories, green selectors, blue rules."""

from __future__ import annotations

from typing import NamedTuple

from ...language.sorts import M, R, S, Sort, V


class Paint(NamedTuple):
    """The colours of a box."""

    stroke: str
    fill: str


MEMORY: dict[Sort, Paint] = {
    M: Paint("#c62828", "#fbdcdc"),
    V: Paint("#e06a00", "#fde6cf"),
    R: Paint("#a02c78", "#f4d9ea"),
    S: Paint("#7a5230", "#eadfd4"),
}
"""Four reds, so that lines from different memories can be followed."""

SELECTOR = Paint("#2e7d32", "#e3f3e4")
RULE = Paint("#1a57b5", "#e1ebfa")
MIXER = Paint("#4a4f57", "#eceef1")
INPUT = Paint("#6a3fa0", "#ece4f7")
