"""What a page of the workbench shows, as one value; its permalink restores all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from .languages import MOST_CHARACTERS

TESTS = ("1-WL", "3-WL", "network")
"""Whose rounds colour the graphs."""

TABS = ("python", "train", "latex", "certificate", "svg", "permalink")

RANGES: dict[str, tuple[int, int]] = {
    "step": (-1, 99),
    "case": (0, 999),
    "nodes": (1, 200),
    "width": (1, 256),
    "layers": (1, 8),
    "round": (0, 99),
    "place": (0, 99),
}
MOST_GRAPH_CHARACTERS = 600
_LONGEST = {"language": MOST_CHARACTERS, "g": MOST_GRAPH_CHARACTERS, "h": MOST_GRAPH_CHARACTERS}
_CHOICES = {"test": TESTS, "tab": TABS}


@dataclass(frozen=True)
class State:
    """Everything a page shows.

    Attributes:
        language: What is typed on the left.
        step: How many rules the slider of the proof has removed; -1 for the most telling step.
        case: Which obligation of the current rule is drawn.
        nodes: Nodes of a graph, for the costs.
        width: Channels of every memory.
        layers: Layers of the network.
        g: The first graph of the pair: graph6, SMILES or a name.
        h: The second.
        test: Whose colours are shown: `1-WL`, `3-WL` or `network`.
        round: After how many rounds.
        place: Which occurrence of the counted pattern is drawn.
        tab: What is open at the bottom.
    """

    language: str = "L3"
    step: int = -1
    case: int = 0
    nodes: int = 29
    width: int = 64
    layers: int = 3
    g: str = "C6"
    h: str = "2·C3"
    test: str = "1-WL"
    round: int = 0
    place: int = 0
    tab: str = "python"

    def changed(self, **values: Any) -> State:
        """This state with other values, each brought into its range; what cannot be is ignored."""
        names = {field.name for field in fields(self)}
        clean: dict[str, Any] = {k: _clean(k, value) for k, value in values.items() if k in names}
        return replace(self, **{name: value for name, value in clean.items() if value is not None})

    def query(self) -> str:
        """The query string of the permalink: what differs from a fresh page."""
        fresh = asdict(State())
        shown = {name: value for name, value in asdict(self).items() if value != fresh[name]}
        return urlencode(shown)


def from_query(values: Mapping[str, str]) -> State:
    """The state of a permalink; what is missing or makes no sense is as on a fresh page."""
    return State().changed(**dict(values))


def _clean(name: str, value: Any) -> str | int | None:
    if name in RANGES:
        least, most = RANGES[name]
        try:
            number = int(str(value)[:9])
        except ValueError:
            return None
        return min(max(number, least), most)
    if name in _CHOICES:
        return value if value in _CHOICES[name] else None
    # One character too many stays, so that the fault is said and not hidden.
    return str(value)[: _LONGEST[name] + 1]
