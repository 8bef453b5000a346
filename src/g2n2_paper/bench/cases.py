"""The benchmark cases, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from g2n2.bench import Precision
from g2n2.errors import DataError

Kind = Literal["train", "infer", "epoch", "product", "profile"]
Device = Literal["cpu", "cuda"]
Peer = Literal["reference", "ppgn", "block-diagonal", "bmm"]

GIB = 1024**3
BOTH: tuple[Device, ...] = ("cpu", "cuda")
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


def _network_cases() -> list[Case]:
    """The table of the networks at QM9's sizes, for the paper's layer and for the default one."""
    everyone: tuple[Peer, ...] = ("reference", "ppgn", "block-diagonal")
    rows: list[tuple[Kind, int, Precision, int, float]] = [
        ("train", 32, "bf16", 32, 50_000),
        ("train", 128, "bf16", 32, 100_000),
        ("train", 512, "bf16", 32, 150_000),
        ("train", 128, "tf32", 32, 50_000),
        ("infer", 2048, "bf16", 8, 500_000),
    ]
    cases = []
    for preset in ("paper", "modern"):
        for kind, batch, precision, batches, least in rows:
            case = Case(
                name=f"{kind}-{batch}-{precision}" + ("" if preset == "paper" else f"-{preset}"),
                group="training" if kind == "train" else "inference",
                kind=kind,
                batch=batch,
                preset=preset,
                precision=precision,
                batches=batches,
                peers=everyone if preset == "paper" else ("reference",),
                floor=Floor("graphs_per_second", least),
            )
            cases.append(case)
    return cases


def _scaling_cases() -> list[Case]:
    """Throughput against nodes, batch and width; a CPU computes in 32 bits."""
    cases = []
    for nodes in (10, 20, 50, 100, 200, 500, 1000, 2000, 4000):
        batch = max(1, min(1024, 100_000 // nodes**2))
        whole = nodes >= 500  # large enough that launching costs nothing, and memory counts
        cases.append(
            Case(f"nodes-{nodes}", "nodes", batch=batch, nodes=nodes, graphed=not whole, batches=1)
        )
    for batch in (1, 4, 16, 64, 256, 1024, 4096):
        cases.append(Case(f"batch-{batch}", "batch", batch=batch, batches=4))
    for width in (16, 32, 64, 128, 256):
        cases.append(Case(f"width-{width}", "width", width=width, batches=4))
    return [replace(case, devices=BOTH) for case in cases]


CASES: tuple[Case, ...] = (
    *_network_cases(),
    Case(
        "qm9-epoch",
        "epoch",
        "epoch",
        preset="modern",
        floor=Floor("epoch_seconds", 1.5, at_most=True),
    ),
    *(
        Case(f"profile-{batch}", "profile", "profile", batch=batch, preset="modern", batches=4)
        for batch in (32, 128, 512)
    ),
    *(
        Case(
            f"product-{n}",
            "product",
            "product",
            batch=max(1, 2**20 // n**2),
            nodes=n,
            peers=("bmm",),
        )
        for n in (18, 64, 128, 256, 512, 1024)
    ),
    Case(
        "large-4000",
        "large",
        batch=1,
        nodes=4000,
        width=32,
        batches=1,
        graphed=False,
        floor=Floor("peak_bytes", 80 * GIB, at_most=True),
    ),
    Case(
        "large-900",
        "large",
        batch=1,
        nodes=900,
        width=32,
        precision="32",
        batches=1,
        shape="grid",
        devices=("cpu",),
        floor=Floor("peak_bytes", 6 * GIB, at_most=True),
    ),
    *(
        Case(
            f"cpu-{kind}-32",
            "cpu",
            kind,
            batch=32,
            precision="32",
            batches=2,
            devices=("cpu",),
            peers=("reference", "ppgn", "block-diagonal"),
            floor=Floor("× block-diagonal", 8.0),
        )
        for kind in ("train", "infer")
    ),
    *_scaling_cases(),
)
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
