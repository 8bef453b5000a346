"""BREC's protocol for a network: 32 relabelings of each graph, Hotelling's T², reliability check.

Both statistics of `brec_statistics` are computed on the same embeddings. Unlike the released code,
which counts such pairs and lists them besides, a pair whose reliability check fails is not counted
as separated. `brec_statistics` says how either can be wrong; `network_separates` is sturdier.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from typing import Any, Literal

import numpy as np

from ..errors import DataError
from ..nn.expressivity import Embeddings, MakeModel, Precision, Style, build, embed, relabelled
from .suites import Suite
from .trials.brec_statistics import (
    RELEASED_THRESHOLD,
    hotelling_t2,
    hotelling_threshold,
    released_separates,
    released_statistic,
)
from .trials.brec_training import Training, train_apart

BrecVerdict = Literal["separated", "merged", "unreliable", "not finite"]
Statistic = Literal["released", "correct"]


@dataclass(frozen=True)
class BrecTest:
    """One statistic on one pair.

    Attributes:
        value: Of the differences between the two graphs.
        reliability: Of the differences between relabelings of one of them.
        verdict: "unreliable" if the second is not below the threshold, "not finite" if the
            embeddings are not.
    """

    value: float
    reliability: float
    verdict: BrecVerdict


@dataclass(frozen=True)
class BrecPair:
    """Both statistics on one pair of the suite."""

    index: int
    category: str
    released: BrecTest
    correct: BrecTest


@dataclass(frozen=True)
class BrecResult:
    """Outcome of the protocol.

    Attributes:
        pairs: One entry per pair tested.
        thresholds: What each statistic was compared with.
        dimensions: Length of an embedding.
        relabelings: Of each graph.
        alpha: How often the correct statistic exceeds its threshold by chance, under normal noise.
        seed: Of the weights and relabelings.
        precision: Of the network.
        training: None for random weights.
    """

    pairs: tuple[BrecPair, ...]
    thresholds: dict[Statistic, float]
    dimensions: int
    relabelings: int
    alpha: float
    seed: int
    precision: Precision
    training: Training | None

    def indices(self, statistic: Statistic, verdict: BrecVerdict) -> tuple[int, ...]:
        """Return the indices of the pairs with that verdict."""
        return tuple(p.index for p in self.pairs if getattr(p, statistic).verdict == verdict)

    def separated(self, statistic: Statistic) -> int:
        """Count the pairs told apart."""
        return len(self.indices(statistic, "separated"))

    def by_category(self) -> dict[str, dict[str, int]]:
        """Count pairs, and for each statistic the separated and the unreliable ones."""
        table: dict[str, Counter[str]] = {}
        for pair in self.pairs:
            row = table.setdefault(pair.category, Counter())
            row["pairs"] += 1
            for name, test in (("released", pair.released), ("correct", pair.correct)):
                row[f"{name}_separated"] += test.verdict == "separated"
                row[f"{name}_unreliable"] += test.verdict == "unreliable"
        return {category: dict(row) for category, row in table.items()}

    def to_json(self) -> dict[str, Any]:
        """Return plain content for a JSON file; a statistic that is not finite is None."""
        content: dict[str, Any] = _plain(asdict(self))
        for statistic in self.thresholds:
            content[f"{statistic}_separated"] = self.separated(statistic)
            content[f"{statistic}_unreliable"] = list(self.indices(statistic, "unreliable"))
        content["by_category"] = self.by_category()
        return content


def brec_protocol(
    make_model: MakeModel,
    suite: Suite,
    *,
    pairs: Iterable[int] | None = None,
    seed: int = 0,
    relabelings: int = 32,
    alpha: float = 0.05,
    style: Style = "dense",
    precision: Precision = "float64",
    released_threshold: float = RELEASED_THRESHOLD,
    train: Training | None = None,
) -> BrecResult:
    """Run BREC's protocol on the pairs of a suite.

    Args:
        make_model: Takes a seed, returns a network; see `network_separates`.
        suite: `load_suite("brec")`, or any other.
        pairs: Indices into `suite.pairs`; all by default.
        seed: Of the weights and relabelings.
        relabelings: q, of each graph; must exceed the length of an embedding.
        alpha: Level of the correct test. If the noise is normal, at BREC's 0.05 one pair in twenty
            passes by chance and as many fail the reliability check; most true differences in
            float64 survive 1e-9 as well.
        style: What the network takes; see `network_separates`.
        precision: BREC runs in float32, where small differences drown in rounding.
        released_threshold: Versions of the released code use 72.34, 20.0 and 5.0.
        train: Train a fresh network on each pair; by default one network with random weights
            serves all.

    Raises:
        DataError: If embeddings have `relabelings` dimensions or more, there is no such pair, or
            the network cannot be run or trained.
    """
    if seed < 0:
        raise DataError(f"seed {seed} is negative: expected 0 or more")
    tested: list[BrecPair] = []
    dimensions, correct_threshold = 0, np.nan
    model = build(make_model, seed, precision)
    for index in range(len(suite.pairs)) if pairs is None else pairs:
        if not 0 <= index < len(suite.pairs):
            raise DataError(f"no pair {index} in suite {suite.name}: it has {len(suite.pairs)}")
        graphs = [suite.graphs[i] for i in suite.pairs[index]]
        one, other = (relabelled(g, relabelings, (seed, index, i)) for i, g in enumerate(graphs))
        judge = int(np.random.default_rng((seed, index)).integers(2))
        control = relabelled(graphs[judge], 2 * relabelings, (seed, index, 2))
        if train is not None:
            model = build(make_model, seed, precision)
            train_apart(model, one, other, train, style, precision)
        run = partial(embed, model, style=style, precision=precision)
        first, second, both = run(one), run(other), run(control)
        if not dimensions:
            dimensions = first.shape[1]
            correct_threshold = hotelling_threshold(dimensions, relabelings, alpha)
        lengths = {rows.shape[1] for rows in (first, second, both)}
        if lengths != {dimensions}:
            raise DataError(
                f"the network gives embeddings of different lengths, {dimensions} and "
                f"{max(lengths - {dimensions})} at pair {index}, expected one length for all "
                "graphs: read out the graph, not its nodes"
            )
        released, correct = _tests(
            (first, second), (both[0::2], both[1::2]), released_threshold, correct_threshold
        )
        category = suite.categories[index] if suite.categories else suite.name
        tested.append(BrecPair(index, category, released, correct))
    return BrecResult(
        pairs=tuple(tested),
        thresholds={"released": released_threshold, "correct": float(correct_threshold)},
        dimensions=dimensions,
        relabelings=relabelings,
        alpha=alpha,
        seed=seed,
        precision=precision,
        training=train,
    )


def _tests(
    pair: Sequence[Embeddings],
    control: Sequence[Embeddings],
    released_threshold: float,
    correct_threshold: float,
) -> tuple[BrecTest, BrecTest]:
    """Compute both statistics on the embeddings of a pair and of the reliability check."""
    if not all(np.isfinite(rows).all() for rows in (*pair, *control)):
        nothing = BrecTest(np.nan, np.nan, "not finite")
        return nothing, nothing
    differences, same = pair[0] - pair[1], control[0] - control[1]
    value, check = released_statistic(differences), released_statistic(same)
    counted = released_separates(value, check, released_threshold)
    released = _test(value, check, counted, released_threshold)
    size = np.max(np.abs(np.concatenate([*pair, *control])), axis=0)
    resolution = np.finfo(size.dtype).eps * size
    value, check = hotelling_t2(differences, resolution), hotelling_t2(same, resolution)
    return released, _test(value, check, value > correct_threshold, correct_threshold)


def _test(value: float, check: float, counted: bool, threshold: float) -> BrecTest:
    verdict: BrecVerdict = "separated" if counted else "merged"
    return BrecTest(value, check, verdict if check < threshold else "unreliable")


def _plain(content: Any) -> Any:
    """Turn tuples into lists and numbers JSON has no word for into None."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content
