"""Pairs of graphs a network with random weights tells apart, by a criterion that rounding survives.

A network computes with floats, so even a graph and its relabelled copy get different numbers. Two
graphs are told apart only where the gap between their embeddings stands clear of that noise.
"separated" thus rests on ten times the noise measured; "merged" says only that these weights showed
no difference: narrow or saturating networks lose what their architecture could express.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..errors import DataError
from ..graphs import GraphLike, adjacency
from .trials.network_inputs import Embeddings, MakeModel, Style, build, embed, relabelled

MARGIN = 10.0
# In 7-layer PPGNs, pairs of BREC that 2-FWL merges stay below 0.3 of what these two ask for, and
# the 270 others reach 90 times as much or more.
FLOOR_ULPS = 1024
# To what power of machine epsilon (1e-4 in float64) a relabelling may change the output: an
# 8-layer network with large weights amplifies rounding to 1e-6, a bug is seen at 1e-2 and above.
INVARIANCE_POWER = 0.25

Outcome = Literal["separated", "merged", "not invariant", "not finite"]


@dataclass(frozen=True)
class NetworkVerdict:
    """Whether networks of one architecture tell two graphs apart.

    Attributes:
        outcome: "not invariant" if for any seed a relabelling changes the embedding visibly, by a
            mistake or because the network amplifies rounding that far; else "separated" if any seed
            tells the graphs apart; else "not finite" if any seed gave NaN or infinity; else
            "merged".
        separating_seeds: The seeds that tell them apart.
        seeds: All seeds tried.
        gap: Difference of the two mean embeddings in the coordinate where it is clearest, for the
            seed where it is clearest.
        noise: Largest spread of that coordinate over relabelings of either graph.
        needed: What the gap had to exceed: margin times noise plus a floor.
    """

    outcome: Outcome
    separating_seeds: tuple[int, ...]
    seeds: tuple[int, ...]
    gap: float
    noise: float
    needed: float

    @property
    def separated(self) -> bool:
        """Whether the outcome is "separated"."""
        return self.outcome == "separated"

    def to_json(self) -> dict[str, Any]:
        """Return plain content for a JSON file; a number that does not exist is None."""
        return {
            key: None if isinstance(value, float) and not np.isfinite(value) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True)
class EmbeddingComparison:
    """One network on one pair: the outcome and the numbers of the clearest coordinate."""

    outcome: Outcome
    gap: float
    noise: float
    needed: float


def network_separates(
    make_model: MakeModel,
    pairs: Iterable[tuple[GraphLike, GraphLike]],
    seeds: Sequence[int] = (0, 1, 2),
    relabelings: int = 8,
    *,
    style: Style = "dense",
    margin: float = MARGIN,
) -> list[NetworkVerdict]:
    """Say which pairs networks with random weights tell apart, in float64.

    Args:
        make_model: Takes a seed, returns a network. A torch module is turned to float64 and
            evaluation mode; torch is seeded around the call.
        pairs: The pairs of graphs.
        seeds: One network each; a pair counts as separated if one of them separates it.
        relabelings: Copies of each graph, itself included, from which the noise is measured.
        style: What the network takes: `dense` one `[n, n]` tensor, `batch` a stack `[B, n, n]`,
            `pyg` PyG data or its stand-in, with `x`, `edge_index` and `batch`. It returns one
            vector, or one per graph `[B, d]`.
        margin: How many times the noise the gap must be.

    Returns:
        One verdict per pair, in order.

    Raises:
        DataError: If there is no seed, fewer than two relabelings, a margin below 1, or the network
            does not return one vector of fixed length per graph.
    """
    if not seeds or relabelings < 2 or not margin >= 1:
        raise DataError(
            f"got {len(seeds)} seeds, {relabelings} relabelings and margin {margin}; expected at "
            "least one seed, two relabelings (one gives no noise to compare with) and margin 1"
        )
    models = [build(make_model, seed, "float64") for seed in seeds]
    verdicts = []
    for number, graphs in enumerate(pairs):
        copies = [
            relabelled(adjacency(graph), relabelings, (number, side))
            for side, graph in enumerate(graphs)
        ]
        comparisons = []
        for model in models:
            first, second = (embed(model, graph, style, "float64") for graph in copies)
            comparisons.append(compare_embeddings(first, second, margin))
        verdicts.append(_verdict(comparisons, tuple(seeds)))
    return verdicts


def compare_embeddings(first: Embeddings, second: Embeddings, margin: float) -> EmbeddingComparison:
    """Compare the embeddings `[relabelings, d]` of two graphs, coordinate by coordinate.

    A coordinate tells the graphs apart if its two means differ by more than `margin` times its
    spread over relabelings of either graph, plus `FLOOR_ULPS` units in the last place of its size:
    the spread of a few copies may happen to be zero.
    """
    if first.shape[1] != second.shape[1] or not first.shape[1]:
        raise DataError(
            f"the network gives {first.shape[1]} numbers for one graph and {second.shape[1]} for "
            "the other, expected the same positive count: read out the graph, not its nodes"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return EmbeddingComparison("not finite", np.nan, np.nan, np.nan)
    eps = float(np.finfo(first.dtype).eps)
    with np.errstate(over="ignore"):
        gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
        noise = np.maximum(np.ptp(first, axis=0), np.ptp(second, axis=0))
    size = np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
    # The smallest normal number keeps an all-zero coordinate at 0 > 0 + tiny, which is false.
    needed = margin * noise + FLOOR_ULPS * eps * size + np.finfo(first.dtype).tiny
    clearest = int(np.argmax(gap / needed))
    outcome: Outcome = "separated" if gap[clearest] > needed[clearest] else "merged"
    # Against the largest coordinate, as one that cancels to zero is all noise; and against 1e-4,
    # as the whole output may be a cancelled zero.
    if noise.max() > eps**INVARIANCE_POWER * max(size.max(), 1e-4):
        outcome, clearest = "not invariant", int(np.argmax(noise))
    return EmbeddingComparison(
        outcome, float(gap[clearest]), float(noise[clearest]), float(needed[clearest])
    )


def _verdict(comparisons: Sequence[EmbeddingComparison], seeds: tuple[int, ...]) -> NetworkVerdict:
    """Join what the seeds say; the order of the outcomes below is their precedence."""
    by_outcome: dict[Outcome, list[EmbeddingComparison]] = {}
    for comparison in comparisons:
        by_outcome.setdefault(comparison.outcome, []).append(comparison)
    precedence: tuple[Outcome, ...] = ("not invariant", "separated", "not finite", "merged")
    outcome = next(name for name in precedence if name in by_outcome)
    shown = max(by_outcome[outcome], key=lambda one: one.gap / one.needed)
    separating = tuple(
        seed
        for seed, comparison in zip(seeds, comparisons, strict=True)
        if comparison.outcome == "separated"
    )
    return NetworkVerdict(outcome, separating, seeds, shown.gap, shown.noise, shown.needed)
