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
    """Everything a page shows."""

    language: str = "L3"  # what is typed on the left
    step: int = -1  # how many rules the slider of the proof has removed; -1 on a fresh page
    case: int = 0  # which obligation of the current rule is drawn
    nodes: int = 29  # nodes of a graph, for the costs
    width: int = 64  # channels of every memory
    layers: int = 3  # layers of the network
    g: str = "C6"  # the first graph of the pair: graph6, SMILES or a name
    h: str = "2·C3"  # the second
    test: str = "1-WL"  # whose colours are shown: `1-WL`, `3-WL` or `network`
    round: int = 0  # after how many rounds
    place: int = 0  # which occurrence of the counted pattern is drawn
    tab: str = "python"  # what is open at the bottom

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
