"""BREC cells: a fresh network is trained on each pair, then tested.

Training is BREC's: 32 relabelings of each graph, cosine embedding loss, Adam, at most 20 epochs,
stopped below a loss of 0.2. The network starts calibrated on the first copies of the pair. Metrics:

    trained separated                    BREC's released test: no factor q, threshold 72.34
    trained separated, Hotelling's T²    the textbook's test, level 0.05
    trained separated, clear of noise    on fresh relabelings, ten times their whole spread
    separated beyond the bound           of the first, pairs that 3-WL (1-WL) merges: errors
    unreliable                           failed BREC's reliability check; not separated
    trained separated, CATEGORY          of the first
    exact separated, CATEGORY

and those of `suites`. The detail has the verdicts and statistics of every pair under `pairs`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from g2n2.data.suites import load_suite
from g2n2.nn.expressivity import FLOOR_ULPS, MARGIN, Embeddings, embed, relabelled
from g2n2.power.suites import Suite

from .brec_protocol import BrecTraining, brec_tests
from .runner import Cell, Job, Measurement
from .suites import Contender, ExactPower, exact_power, some_pairs, suite_checksum

if TYPE_CHECKING:
    import torch

    from .embeddings import Embedding

TRAINED = "trained separated"
HOTELLING = "trained separated, Hotelling's T²"
CLEAR = "trained separated, clear of noise"
BEYOND = "separated beyond the bound"
BEYOND_HOTELLING = "separated beyond the bound, Hotelling's T²"
WITHIN = "judged within the bound"
UNRELIABLE, UNRELIABLE_HOTELLING = "unreliable", "unreliable, Hotelling's T²"
NOT_FINITE = "not finite"
CALIBRATING = 2
"""Copies of each graph that weights are calibrated on."""
FRESH = 16
"""Relabelings of each graph that were not used in training."""


@dataclass(frozen=True)
class BrecSettings:
    """What a pair's verdict depends on besides the pair.

    Attributes:
        contender: The network.
        seed: Of weights and relabelings.
        training: BREC's settings.
        precision: Of weights and graphs. In float32, differences that appear in the fifth layer and
            later are lost in rounding.
    """

    contender: Contender
    seed: int = 0
    training: BrecTraining = field(default_factory=BrecTraining)
    precision: Literal["float32", "float64"] = "float64"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "contender": self.contender.as_dict()}


@dataclass(frozen=True)
class PairVerdict:
    """Verdicts on one pair.

    Attributes:
        pair: Index in the suite.
        category: Of the pair.
        released: Verdict of BREC's released statistic.
        released_value: Without the factor q, compared with 72.34; None if it is not finite.
        hotelling: Verdict of the textbook's statistic, level 0.05.
        hotelling_value: With the factor q.
        clear: Whether on fresh relabelings some number differs by ten times its whole spread.
        gap: How many times that spread, at most; None if it is not finite.
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


def brec_cell(settings: BrecSettings, each: int = 0, nodes: int = 0) -> Cell:
    """A contender on BREC.

    Args:
        settings: How a pair is judged.
        each: Pairs of every category; 0 for all.
        nodes: Only graphs of at most so many nodes; 0 for all.
    """
    name = f"brec/{settings.contender.name}"

    def run(job: Job) -> Measurement:
        return run_brec(settings, sample(_brec(job.data), each, nodes), job)

    return Cell("power", name, run, settings.as_dict(), settings.seed, ("brec",))


def run_brec(settings: BrecSettings, chosen: tuple[int, ...], job: Job) -> Measurement:
    """Judge all chosen pairs."""
    suite, device = _brec(job.data), job.torch_device()
    exact = exact_power(settings.contender, _some(job.data, chosen))
    kept = [job.kept(f"pair-{i}", judge, settings, suite, i, device) for i in chosen]
    verdicts = [PairVerdict(**fields) for fields in kept]
    return Measurement(
        done=len(verdicts),
        unit="pairs",
        metrics=metrics(verdicts, exact, {chosen[place] for place in exact.beyond}),
        config={**settings.as_dict(), "pairs": list(chosen)},
        data={"brec": suite_checksum(suite)},
        detail={"pairs": kept},
    )


def judge(settings: BrecSettings, suite: Suite, index: int, device: torch.device) -> dict[str, Any]:
    """Train a network on one pair of a suite and test it; the fields of a `PairVerdict`."""
    import torch

    from .embeddings import calibrated_embedding

    start = time.monotonic()
    graphs = [suite.graphs[i] for i in suite.pairs[index]]
    copies = [
        copy
        for side, graph in enumerate(graphs)
        for copy in relabelled(graph, CALIBRATING, (settings.seed, index, side))
    ]
    models: list[Embedding] = []

    def make(_: int) -> Embedding:
        dtype = getattr(torch, settings.precision)
        models.append(calibrated_embedding(settings.contender, copies, dtype, device))
        return models[-1]

    released, hotelling = brec_tests(
        make, graphs, (settings.seed, index), train=settings.training, precision=settings.precision
    )
    run = partial(embed, models[-1], style="batch", precision=settings.precision)
    first, second = (
        run(relabelled(graph, FRESH + 1, (settings.seed, index, side, FRESH))[1:])
        for side, graph in enumerate(graphs)
    )
    gap = clearest_gap(first, second)
    verdict = PairVerdict(
        pair=index,
        category=suite.categories[index],
        released=released.verdict,
        released_value=_finite(released.value),
        hotelling=hotelling.verdict,
        hotelling_value=_finite(hotelling.value),
        clear=gap > MARGIN,
        gap=_finite(gap),
        seconds=round(time.monotonic() - start, 3),
    )
    return asdict(verdict)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def clearest_gap(first: Embeddings, second: Embeddings) -> float:
    """The largest difference of two graphs' embeddings `[q, d]`, in units of its spread.

    Copies may agree to the last bit, so the spread is at least the rounding error of a number.
    """
    rows = np.concatenate([first, second])
    if not np.isfinite(rows).all():
        return float("nan")
    spread = np.maximum(np.ptp(first, axis=0), np.ptp(second, axis=0))
    info = np.finfo(rows.dtype)
    floor = FLOOR_ULPS * info.eps * np.abs(rows).max(axis=0) / MARGIN + info.tiny
    return float((np.abs(first.mean(axis=0) - second.mean(axis=0)) / (spread + floor)).max())


def sample(suite: Suite, each: int, nodes: int = 0) -> tuple[int, ...]:
    """`each` pairs of every category (0 for all), spread over it, with at most `nodes` nodes."""
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


def metrics(
    verdicts: Sequence[PairVerdict], exact: ExactPower, beyond: set[int]
) -> dict[str, float | None]:
    """The metrics of the cell; `beyond` are the pairs that no weights tell apart."""
    separated = [verdict for verdict in verdicts if verdict.released == "separated"]
    by_hotelling = [verdict for verdict in verdicts if verdict.hotelling == "separated"]
    table: dict[str, float | None] = {
        TRAINED: len(separated),
        HOTELLING: len(by_hotelling),
        CLEAR: sum(verdict.clear for verdict in verdicts),
        BEYOND: sum(verdict.pair in beyond for verdict in separated),
        BEYOND_HOTELLING: sum(verdict.pair in beyond for verdict in by_hotelling),
        WITHIN: sum(verdict.pair not in beyond for verdict in verdicts),
        UNRELIABLE: sum(verdict.released == "unreliable" for verdict in verdicts),
        UNRELIABLE_HOTELLING: sum(verdict.hotelling == "unreliable" for verdict in verdicts),
        NOT_FINITE: sum(verdict.released == "not finite" for verdict in verdicts),
        **exact.metrics(),
    }
    by_category = Counter(verdict.category for verdict in separated)
    for category, count in (exact.categories or {}).items():
        table[f"{TRAINED}, {category}"] = by_category[category]
        table[f"exact separated, {category}"] = count
    return table


@lru_cache(maxsize=1)
def _brec(data: str | None) -> Suite:
    return load_suite("brec", data)


@lru_cache(maxsize=2)
def _some(data: str | None, chosen: tuple[int, ...]) -> Suite:
    return some_pairs(_brec(data), chosen)
