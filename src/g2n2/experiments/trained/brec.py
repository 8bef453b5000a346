"""BREC by its own protocol, pair by pair: a fresh network trained apart on each pair, then tested.

Training is BREC's: 32 relabelings of each graph, cosine embedding loss, Adam, at most 20 epochs,
stopped below a loss of 0.2. The network starts calibrated on the first copies of the pair.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...nn.expressivity import FLOOR_ULPS, MARGIN, Embeddings, embed, relabelled
from ...power.brec_protocol import brec_protocol
from ...power.suites import Suite
from ...power.trials.brec_training import Training
from ..kept import NOT_UNDERSTOOD
from .contenders import Contender

if TYPE_CHECKING:
    import torch

    from .siamese import Embedding

CALIBRATING = 2
"""Copies of each graph that weights are calibrated on."""

FRESH = 16
"""Relabelings of each graph that no training has seen."""


@dataclass(frozen=True)
class Protocol:
    """What a pair's verdict depends on besides the pair.

    Attributes:
        contender: The network.
        seed: Of weights and relabelings.
        training: BREC's settings.
        precision: Of weights and graphs. In float32 the differences that appear in the fifth layer
            and later drown in rounding.
    """

    contender: Contender
    seed: int
    training: Training = field(default_factory=Training)
    precision: Literal["float32", "float64"] = "float64"

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return {**asdict(self), "contender": self.contender.as_dict()}


@dataclass(frozen=True)
class PairVerdict:
    """What became of one pair.

    Attributes:
        pair: Index in the suite.
        category: Of the pair.
        released: Verdict of BREC's released statistic.
        released_value: Without the factor q, compared with 72.34.
        hotelling: Verdict of the textbook's statistic, level 0.05.
        hotelling_value: With the factor q.
        clear: Whether on fresh relabelings some number differs by ten times its whole spread.
        gap: How many times that spread, at most; None where it is not finite.
        seconds: Wall time.
    """

    pair: int
    category: str
    released: str
    released_value: float | None
    hotelling: str
    hotelling_value: float | None
    clear: bool
    gap: float | None
    seconds: float

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> PairVerdict:
        """As it was kept.

        Raises:
            ValueError, TypeError: It is something else.
        """
        found = cls(**said)
        texts = (found.category, found.released, found.hotelling)
        numbers = (found.released_value, found.hotelling_value, found.gap)
        understood = (
            type(found.pair) is int
            and type(found.clear) is bool
            and all(isinstance(text, str) for text in texts)
            and all(value is None or math.isfinite(value) for value in numbers)
            and math.isfinite(found.seconds)
        )
        if not understood:
            raise ValueError
        return found


def judge(protocol: Protocol, suite: Suite, index: int, device: torch.device) -> PairVerdict:
    """Train a network on one pair of a suite and test it."""
    import torch

    from .siamese import calibrated_embedding

    begun = time.monotonic()
    graphs = [suite.graphs[i] for i in suite.pairs[index]]
    copies = [
        copy
        for side, graph in enumerate(graphs)
        for copy in relabelled(graph, CALIBRATING, (protocol.seed, index, side))
    ]
    made: list[Embedding] = []

    def make(_: int) -> Embedding:
        dtype = getattr(torch, protocol.precision)
        made.append(calibrated_embedding(protocol.contender, copies, dtype, device))
        return made[-1]

    found = brec_protocol(
        make,
        suite,
        pairs=[index],
        seed=protocol.seed,
        style="batch",
        precision=protocol.precision,
        train=protocol.training,
    ).to_json()["pairs"][0]
    run = partial(embed, made[-1], style="batch", precision=protocol.precision)
    first, second = (
        run(relabelled(graph, FRESH + 1, (protocol.seed, index, side, FRESH))[1:])
        for side, graph in enumerate(graphs)
    )
    gap = clearest_gap(first, second)
    return PairVerdict(
        pair=index,
        category=found["category"],
        released=found["released"]["verdict"],
        released_value=found["released"]["value"],
        hotelling=found["correct"]["verdict"],
        hotelling_value=found["correct"]["value"],
        clear=gap > MARGIN,
        gap=float(gap) if np.isfinite(gap) else None,
        seconds=round(time.monotonic() - begun, 3),
    )


def clearest_gap(first: Embeddings, second: Embeddings) -> float:
    """How many times its spread over relabelings a number differs between two graphs, at most.

    Args:
        first: `[q, d]`.
        second: `[q, d]`.
    """
    rows = np.concatenate([first, second])
    if not np.isfinite(rows).all():
        return float("nan")
    spread = np.maximum(np.ptp(first, axis=0), np.ptp(second, axis=0))
    # Copies may happen to agree to the last bit: no number is better known than its rounding.
    info = np.finfo(rows.dtype)
    floor = FLOOR_ULPS * info.eps * np.abs(rows).max(axis=0) / MARGIN + info.tiny
    return float((np.abs(first.mean(axis=0) - second.mean(axis=0)) / (spread + floor)).max())


class Ledger:
    """The verdicts of a cell, one line each, written as they come.

    Verdicts belong to settings: those of others are in another file.
    """

    def __init__(self, folder: Path, protocol: Protocol) -> None:
        said = json.dumps(protocol.as_dict(), sort_keys=True)
        self.path = folder / f"pairs-{hashlib.sha256(said.encode()).hexdigest()[:12]}.jsonl"

    def read(self) -> dict[int, PairVerdict]:
        """By pair; a line a killed process was writing is left out."""
        found: dict[int, PairVerdict] = {}
        lines = self.path.read_text("utf-8", "replace").splitlines() if self.path.is_file() else []
        for line in lines:
            with suppress(*NOT_UNDERSTOOD):
                verdict = PairVerdict.of(json.loads(line))
                found[verdict.pair] = verdict
        return found

    def add(self, verdict: PairVerdict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # It begins a line of its own, whatever a killed process has left.
            file.write("\n" + json.dumps(asdict(verdict), allow_nan=False))


def sample(suite: Suite, each: int, nodes: int = 0) -> tuple[int, ...]:
    """Some pairs of every category, spread over it.

    Args:
        suite: With categories.
        each: So many of each; all where 0.
        nodes: Only graphs of at most so many; of any size where 0.
    """
    chosen: list[int] = []
    for category in dict.fromkeys(suite.categories):
        members = [
            index
            for index, (i, _) in enumerate(suite.pairs)
            if suite.categories[index] == category and len(suite.graphs[i]) <= (nodes or np.inf)
        ]
        places = np.linspace(0, len(members) - 1, min(each or len(members), len(members)))
        chosen += [members[place] for place in places.round().astype(int).tolist()]
    return tuple(chosen)
