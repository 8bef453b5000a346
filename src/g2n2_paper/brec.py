"""BREC: a fresh network is trained on each pair of graphs, then two statistics judge it.

The protocol of a pair: 32 relabelings of each graph, cosine embedding loss, Adam, at most 20
epochs, stopped below a loss of 0.2; then the statistics of `brec_statistics` on the embeddings of
these copies, and on copies of one of the graphs as a reliability check. Unlike the released code,
a pair whose check fails does not count as separated. The network starts calibrated on the first
copies of the pair. Metrics of a cell, beside those of `contenders`:

    trained separated                    BREC's released test: no factor q, threshold 72.34
    trained separated, Hotelling's T²    the textbook's test, level 0.05
    trained separated, clear of noise    on fresh relabelings, ten times their whole spread
    separated beyond the bound           of the first, pairs beyond the exact power: errors
    unreliable                           failed the reliability check
    trained separated, CATEGORY          of the first
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cosine_embedding_loss

from g2n2.data.suites import BREC_PAIRS, load_suite
from g2n2.errors import DataError
from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import (
    FLOOR_ULPS,
    GRAPHS_PER_CALL,
    MARGIN,
    Embeddings,
    Network,
    Precision,
    build,
    embed,
    forward,
    relabelings,
    relabelled,
)
from g2n2.nn.marks import remember_orbits
from g2n2.power.suites import Suite

from .brec_statistics import (
    RELEASED_THRESHOLD,
    hotelling_t2,
    hotelling_threshold,
    released_separates,
    released_statistic,
)
from .contenders import Contender, ExactPower, calibrated_embedding, exact_power, suite_checksum
from .runner import Cell, Job, Measurement

SEED = 0
PRECISION: Precision = "float64"
"""In float32, differences that appear in the fifth layer and later are lost in rounding."""
TRAINED = "trained separated"
CLEAR = "trained separated, clear of noise"
BEYOND = "separated beyond the bound"
RELABELINGS = 32
CALIBRATING = 2
"""Copies of each graph that weights are calibrated on."""
FRESH = 16
"""Relabelings of each graph that were not used in training."""

BrecVerdict = Literal["separated", "merged", "unreliable", "not finite"]
Relabel = Callable[[Adjacency, int, Sequence[int]], list[Adjacency]]
PairVerdict = dict[str, Any]
"""Index and category of a pair, the verdicts and values of both tests, whether some number differs
clearly on fresh relabelings and by how much, and seconds; None is a value that is not finite.
"""


@dataclass(frozen=True)
class BrecTraining:
    """Settings of the contrastive training, BREC's own by default; `margin` is of the cosine."""

    epochs: int = 20
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    margin: float = 0.0
    stop_below: float = 0.2


class BrecTest(NamedTuple):
    """One statistic on one pair, and the verdict by it and by its reliability check."""

    value: float
    verdict: BrecVerdict


def brec_cell(
    contender: Contender, pairs: Sequence[int] = (), training: BrecTraining | None = None
) -> Cell:
    """A contender on BREC, or on a suite of some of its pairs, by number.

    Pairs that were judged are kept, also those of a record that has not all of them.
    """
    training = training or BrecTraining()

    def run(job: Job) -> Measurement:
        suite, device = _brec(job.data), job.torch_device()
        suite = of_pairs(suite, pairs) if pairs else suite
        every = range(len(suite.pairs))
        parts = job.parts({f"pair-{i}": (contender, training, suite, i, device) for i in every})
        verdicts = job.kept_parts(parts, judge)
        return Measurement(
            len(verdicts),
            "pairs",
            metrics(verdicts, exact_power(contender, suite)),
            data={"brec": suite_checksum(suite)},
            detail={"pairs": verdicts},
        )

    return Cell(
        "power",
        f"brec/{contender.name}",
        run,
        {
            "contender": contender.as_dict(),
            "seed": SEED,
            "training": asdict(training),
            "precision": PRECISION,
        },
        parts=len(pairs) or BREC_PAIRS,
        parts_of=lambda record: {f"pair-{v['pair']}": v for v in record.detail["pairs"]},
    )


@lru_cache(maxsize=1)
def _brec(data: str | None) -> Suite:
    return load_suite("brec", data)


def of_pairs(suite: Suite, chosen: Sequence[int]) -> Suite:
    graphs = tuple(suite.graphs[i] for number in chosen for i in suite.pairs[number])
    pairs = tuple((2 * number, 2 * number + 1) for number in range(len(chosen)))
    return Suite(suite.name, graphs, pairs, tuple(suite.categories[number] for number in chosen))


def judge(
    contender: Contender, training: BrecTraining, suite: Suite, index: int, device: torch.device
) -> PairVerdict:
    """Train a network on one pair of a suite and test it."""
    start = time.monotonic()
    graphs = [suite.graphs[i] for i in suite.pairs[index]]
    key = (SEED, index)
    relabel: Relabel = relabelled
    if contender.options.get("marks") == "orbits":
        relabel = partial(relabelled_with_orbits, marks=contender.network.count("Σ"))

    def copies(count: int, *more: int) -> list[Sequence[Adjacency]]:
        return [relabel(g, count, (*key, side, *more)) for side, g in enumerate(graphs)]

    def make(_: int) -> Network:
        few = list(chain(*copies(CALIBRATING)))
        return calibrated_embedding(contender, few, device)

    model = build(make, SEED, PRECISION)
    released, hotelling = brec_tests(model, graphs, key, training, relabel)
    fresh = (embed(model, some[1:], "batch", PRECISION) for some in copies(FRESH + 1, FRESH))
    gap = clearest_gap(*fresh)
    return {
        "pair": index,
        "category": suite.categories[index],
        "released": released.verdict,
        "released_value": _finite(released.value),
        "hotelling": hotelling.verdict,
        "hotelling_value": _finite(hotelling.value),
        "clear": gap > MARGIN,
        "gap": _finite(gap),
        "seconds": round(time.monotonic() - start, 3),
    }


def relabelled_with_orbits(
    matrix: Adjacency, count: int, seed: Sequence[int], marks: int
) -> list[Adjacency]:
    """`relabelled`; networks with so many marks know the orbits of the copies without a search."""
    orders = relabelings(len(matrix), count, seed)
    remember_orbits(matrix.astype(np.float64)[..., None], orders, marks)
    return relabelled(matrix, count, seed)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def brec_tests(
    model: Network,
    graphs: Sequence[Adjacency],
    key: tuple[int, int],
    training: BrecTraining | None = None,
    relabel: Relabel = relabelled,
) -> tuple[BrecTest, BrecTest]:
    """Run BREC's protocol on two graphs.

    The network takes stacks `[B, n, n]`; `key` seeds the relabelings. Returned are the released
    test and the textbook's; if noise is normal, one pair in twenty passes the latter by chance.
    """
    first, second = (relabel(g, RELABELINGS, (*key, i)) for i, g in enumerate(graphs))
    control_graph = graphs[int(np.random.default_rng(key).integers(2))]
    control = relabel(control_graph, 2 * RELABELINGS, (*key, 2))
    if training is not None:
        train_apart(model, first, second, training)
    ours, theirs, both = (embed(model, g, "batch", PRECISION) for g in (first, second, control))
    rows = ours, theirs, both[0::2], both[1::2]
    threshold = hotelling_threshold(rows[0].shape[1], RELABELINGS)
    if not all(np.isfinite(part).all() for part in rows):
        nothing = BrecTest(np.nan, "not finite")
        return nothing, nothing
    differences, same = rows[0] - rows[1], rows[2] - rows[3]
    value, check = released_statistic(differences), released_statistic(same)
    counted = released_separates(value, check)
    released = BrecTest(value, _verdict(counted, check < RELEASED_THRESHOLD))
    size = np.max(np.abs(np.concatenate(rows)), axis=0)
    resolution = np.finfo(size.dtype).eps * size
    value, check = hotelling_t2(differences, resolution), hotelling_t2(same, resolution)
    return released, BrecTest(value, _verdict(value > threshold, check < threshold))


def _verdict(counted: bool, reliable: bool) -> BrecVerdict:
    return ("separated" if counted else "merged") if reliable else "unreliable"


def train_apart(
    model: Network,
    first: Sequence[Adjacency],
    second: Sequence[Adjacency],
    settings: BrecTraining,
) -> list[float]:
    """Train on the relabelings of one pair, and leave the network in evaluation mode.

    Returned is the mean cosine embedding loss of each epoch.
    """
    if not isinstance(model, torch.nn.Module) or not any(True for _ in model.parameters()):
        raise DataError(f"{type(model).__name__} has no parameters to train: give a torch module")
    # Interleaved as in BREC, so that normalisation layers see both graphs in every batch.
    graphs = list(chain.from_iterable(zip(first, second, strict=True)))
    batches = [graphs[i : i + GRAPHS_PER_CALL] for i in range(0, len(graphs), GRAPHS_PER_CALL)]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    losses: list[float] = []
    model.train()
    for _ in range(settings.epochs):
        total = 0.0
        for batch in batches:
            optimizer.zero_grad()
            rows = forward(model, batch, "batch", PRECISION)
            different = rows.new_full((len(rows) // 2,), -1)
            loss = cosine_embedding_loss(rows[0::2], rows[1::2], different, settings.margin)
            torch.autograd.backward(loss)
            optimizer.step()
            total += loss.item() * len(different)
        losses.append(total / len(first))
        if losses[-1] < settings.stop_below:
            break
        scheduler.step(losses[-1])
    model.eval()
    return losses


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


def metrics(verdicts: Sequence[PairVerdict], exact: ExactPower) -> dict[str, float | None]:
    table: dict[str, float | None] = {
        CLEAR: sum(v["clear"] for v in verdicts),
        "judged within the bound": sum(v["pair"] not in exact.beyond for v in verdicts),
        "not finite": sum(v["released"] == "not finite" for v in verdicts),
        **exact.metrics,
    }
    for test, tail in (("released", ""), ("hotelling", ", Hotelling's T²")):
        separated = [verdict for verdict in verdicts if verdict[test] == "separated"]
        table[f"{TRAINED}{tail}"] = len(separated)
        table[f"{BEYOND}{tail}"] = sum(verdict["pair"] in exact.beyond for verdict in separated)
        table[f"unreliable{tail}"] = sum(v[test] == "unreliable" for v in verdicts)
    by_category = Counter(v["category"] for v in verdicts if v["released"] == "separated")
    for category, number in exact.categories.items():
        table[f"{TRAINED}, {category}"] = by_category[category]
        table[f"exact separated, {category}"] = number
    return table
