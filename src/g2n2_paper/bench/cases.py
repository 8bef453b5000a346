"""The benchmark cases, read from `cases.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from typing import Literal

from g2n2.bench import Precision
from g2n2.errors import DataError

Kind = Literal["train", "infer", "epoch", "product", "profile"]
Device = Literal["cpu", "cuda"]
Peer = Literal["reference", "ppgn", "block-diagonal", "bmm"]

GIB = 1024**3
PASS_SECONDS = {"cpu": 20.0, "cuda": 10.0}
"""A case without a floor is skipped if one pass would take longer."""
TABLE_SECONDS = 45.0
"""A table of cases without floors: those left after so long are skipped."""


@dataclass(frozen=True)
class Floor:
    """A bound that a figure should reach; the metric `× PEER` is the ratio to a peer."""

    metric: str
    value: float
    at_most: bool = False


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        name: How it is asked for.
        group: Whose table and file it belongs to; asking for a group asks for all of its cases.
        kind: A training step, inference, an epoch through `g2n2 train`, the product alone, or where
            the time of a training step goes.
        batch: Graphs at a time.
        nodes: Nodes of every graph; 0 for molecules of QM9's sizes.
        width: Channels.
        layers: How many.
        preset: Of the network.
        precision: Of its arithmetic.
        batches: Batches of one pass; their sizes follow the data's.
        shape: Of graphs with a given number of nodes: `random`, or a square `grid`.
        graphed: Whether steps on a GPU are CUDA graphs.
        devices: Where it makes sense.
        peers: What it is compared with in the same run.
        floor: What it should reach.
    """

    name: str
    group: str
    kind: Kind = "train"
    batch: int = 128
    nodes: int = 0
    width: int = 64
    layers: int = 3
    preset: str = "paper"
    precision: Precision = "bf16"
    batches: int = 32
    shape: Literal["random", "grid"] = "random"
    graphed: bool = True
    devices: tuple[Device, ...] = ("cuda",)
    peers: tuple[Peer, ...] = ()
    floor: Floor | None = None

    @property
    def training(self) -> bool:
        return self.kind != "infer"

    def quick(self) -> Case:
        """The same on tiny sizes; its figures say nothing."""
        return replace(
            self,
            batch=min(self.batch, 4),
            nodes=min(self.nodes, 16),
            width=min(self.width, 8),
            layers=min(self.layers, 2),
            batches=min(self.batches, 2),
            floor=None,
        )


def _read_cases() -> Iterator[Case]:
    content = files(__package__).joinpath("cases.toml").read_text(encoding="utf-8")
    for row in tomllib.loads(content)["cases"]:
        lists = {name: tuple(row[name]) for name in ("devices", "peers") if name in row}
        floor = Floor(**row["floor"]) if "floor" in row else None
        yield Case(**{**row, **lists, "floor": floor})


CASES = tuple(_read_cases())
GROUPS = tuple(dict.fromkeys(case.group for case in CASES))


def cases_for(device: Device, wanted: Sequence[str] = ()) -> list[Case]:
    """The cases to run on a device, in the registry's order; all it can run where none is named.

    Raises:
        DataError: No case or group has that name, or the device cannot run it.
    """
    known = {case.name for case in CASES} | set(GROUPS)
    for name in wanted:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise DataError(
                f"no benchmark is called {name!r}; {hint}All of them: g2n2-paper bench --list"
            )
    asked = [case for case in CASES if not wanted or {case.name, case.group} & set(wanted)]
    able = [case for case in asked if device in case.devices]
    for name in wanted:
        if not any(name in (case.name, case.group) for case in able):
            needs = " or ".join(next(c.devices for c in asked if name in (c.name, c.group)))
            raise DataError(f"{name} runs on {needs}, and this is {device}: use --device {needs}")
    if device == "cpu":
        able = [replace(case, precision="32") for case in able]
    return able
