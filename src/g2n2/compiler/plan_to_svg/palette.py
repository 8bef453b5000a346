"""The colours of the paper's figures: red memories, green selectors, blue rules."""

from __future__ import annotations

from ...language.sorts import M, R, S, Sort, V

MEMORY: dict[Sort, str] = {M: "#c62828", V: "#e06a00", R: "#a02c78", S: "#7a5230"}
"""Four reds, so that lines from different memories can be followed."""

MEMORY_FILL: dict[Sort, str] = {M: "#fbdcdc", V: "#fde6cf", R: "#f4d9ea", S: "#eadfd4"}
SELECTOR, SELECTOR_FILL = "#2e7d32", "#e3f3e4"
RULE, RULE_FILL = "#1a57b5", "#e1ebfa"
MIXER, MIXER_FILL = "#4a4f57", "#eceef1"
INPUT, INPUT_FILL = "#6a3fa0", "#ece4f7"
