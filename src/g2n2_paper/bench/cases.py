"""The benchmark cases, read from `cases.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Literal

from g2n2.bench import Precision
from g2n2.errors import DataError

Device = Literal["cpu", "cuda"]
Peer = Literal[
    "reference", "compiled", "ppgn", "block-diagonal", "floydnet", "gine", "schnet", "bmm"
]

GIB = 1024**3


@dataclass(frozen=True)
class Floor:
    """A bound that a figure should reach; the metric `× PEER` is the ratio to a peer."""

    metric: str
    value: float
    at_most: bool = False


@dataclass(frozen=True)
class Case:
    name: str  # how it is asked for
    group: str  # whose table and file it belongs to; asking for a group asks for all of its cases
    # `epoch` goes through `g2n2 train`, `profile` says where the time of a training step goes
    kind: Literal["train", "infer", "epoch", "product", "profile"] = "train"
    batch: int = 128  # graphs at a time
    nodes: int = 0  # nodes of every graph; 0 for molecules of QM9's sizes
    width: int = 64
    layers: int = 3
    preset: str = "paper"  # of the network
    grammar: str = "r-G_L3"
    marks: str = "all"  # vertices that a grammar with marks marks
    trunk: int = 0  # layers before the marks
    bonds: bool = False  # whether pairs have no distances
    precision: Precision = "bf16"  # of its arithmetic
    batches: int = 32  # batches of one pass; their sizes follow the data's
    shape: Literal["random", "grid"] = "random"
    graphed: bool = True  # whether steps on a GPU are CUDA graphs
    devices: tuple[Device, ...] = ("cuda",)  # where it makes sense
    peers: tuple[Peer, ...] = ()  # what it is compared with in the same run
    floor: Floor | None = None  # what it should reach

    @property
    def training(self) -> bool:
        return self.kind != "infer"

    def at_most(self, **sizes: int) -> Case:
        """The same with no more nodes, width, …"""
        smaller: dict[str, Any] = {n: min(getattr(self, n), size) for n, size in sizes.items()}
        return replace(self, **smaller)

    def quick(self) -> Case:
        """The same on tiny sizes; its figures say nothing."""
        return replace(self.at_most(batch=4, nodes=16, width=8, layers=2, batches=2), floor=None)


def _case(fields: dict[str, Any]) -> Case:
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
    floor = fields.get("floor")
    return Case(**{**values, "floor": Floor(**floor) if floor else None})


_TEXT = files(__package__).joinpath("cases.toml").read_text("utf-8")
CASES = tuple(map(_case, tomllib.loads(_TEXT)["cases"]))


def cases_for(device: Device, wanted: Sequence[str] = ()) -> list[Case]:
    """The cases to run on a device, in the registry's order; all it can run where none is named."""
    able = [case for case in CASES if device in case.devices]
    for name in wanted:
        named = [case for case in CASES if name in (case.name, case.group)]
        if not named:
            close = get_close_matches(name, [n for c in CASES for n in (c.name, c.group)], n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise DataError(
                f"no benchmark is called {name!r}; {hint}All of them: g2n2-paper bench --list"
            )
        if not any(case in able for case in named):
            needs = " or ".join(named[0].devices)
            raise DataError(f"{name} runs on {needs}, and this is {device}: use --device {needs}")
    able = [case for case in able if not wanted or {case.name, case.group} & set(wanted)]
    return [replace(case, precision="32") for case in able] if device == "cpu" else able
