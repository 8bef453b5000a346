"""BREC's protocol for one pair: 32 relabelings of each graph, Hotelling's T², reliability check.

Both statistics of `brec_statistics` are computed on the same embeddings. Unlike the released code,
which counts such pairs and lists them separately, a pair whose reliability check fails does not
count as separated. `brec_statistics` says how each statistic can be wrong;
`g2n2.nn.expressivity.network_separates` is more robust.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np

from g2n2.errors import DataError
from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import (
    GRAPHS_PER_CALL,
    Embeddings,
    MakeModel,
    Network,
    Precision,
    build,
    embed,
    forward,
    relabelled,
)

from .brec_statistics import (
    RELEASED_THRESHOLD,
    hotelling_t2,
    hotelling_threshold,
    released_separates,
    released_statistic,
)

BrecVerdict = Literal["separated", "merged", "unreliable", "not finite"]


@dataclass(frozen=True)
class BrecTraining:
    """Settings of the contrastive training, BREC's own by default.

    Attributes:
        epochs: At most so many passes over the relabelings.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        margin: Cosine similarity that is low enough.
        stop_below: Mean loss at which training stops early.
    """

    epochs: int = 20
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    margin: float = 0.0
    stop_below: float = 0.2


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


def brec_tests(
    make_model: MakeModel,
    graphs: Sequence[Adjacency],
    key: tuple[int, int],
    *,
    train: BrecTraining | None = None,
    precision: Precision = "float64",
    relabelings: int = 32,
    alpha: float = 0.05,
) -> tuple[BrecTest, BrecTest]:
    """Run BREC's protocol on two graphs.

    Args:
        make_model: Takes a seed, returns a network on stacks `[B, n, n]`.
        graphs: The two of a pair.
        key: Seed of the weights, and index of the pair; both seed the relabelings.
        train: Settings of the training; None for random weights.
        precision: BREC uses float32, where small differences are lost in rounding.
        relabelings: q, of each graph; must exceed the length of an embedding.
        alpha: Level of the textbook's test. If noise is normal, at BREC's 0.05 one pair in twenty
            passes by chance and as many fail the reliability check.

    Returns:
        The released statistic and the textbook's.

    Raises:
        DataError: Embeddings have `relabelings` dimensions or more, or the network cannot be run or
            trained.
    """
    first, second = (relabelled(g, relabelings, (*key, i)) for i, g in enumerate(graphs))
    control_graph = graphs[int(np.random.default_rng(key).integers(2))]
    control = relabelled(control_graph, 2 * relabelings, (*key, 2))
    model = build(make_model, key[0], precision)
    if train is not None:
        train_apart(model, first, second, train, precision)
    run = partial(embed, model, style="batch", precision=precision)
    rows, both = (run(first), run(second)), run(control)
    threshold = hotelling_threshold(rows[0].shape[1], relabelings, alpha)
    return _tests(rows, (both[0::2], both[1::2]), threshold)


def _tests(
    pair: Sequence[Embeddings], control: Sequence[Embeddings], threshold: float
) -> tuple[BrecTest, BrecTest]:
    """Both statistics on the embeddings of a pair and of the reliability check."""
    if not all(np.isfinite(rows).all() for rows in (*pair, *control)):
        nothing = BrecTest(np.nan, np.nan, "not finite")
        return nothing, nothing
    differences, same = pair[0] - pair[1], control[0] - control[1]
    value, check = released_statistic(differences), released_statistic(same)
    released = _test(value, check, released_separates(value, check), RELEASED_THRESHOLD)
    size = np.max(np.abs(np.concatenate([*pair, *control])), axis=0)
    resolution = np.finfo(size.dtype).eps * size
    value, check = hotelling_t2(differences, resolution), hotelling_t2(same, resolution)
    return released, _test(value, check, value > threshold, threshold)


def _test(value: float, check: float, counted: bool, threshold: float) -> BrecTest:
    verdict: BrecVerdict = "separated" if counted else "merged"
    return BrecTest(value, check, verdict if check < threshold else "unreliable")


def train_apart(
    model: Network,
    first: Sequence[Adjacency],
    second: Sequence[Adjacency],
    settings: BrecTraining,
    precision: Precision,
) -> list[float]:
    """Train on the relabelings of one pair, and leave the network in evaluation mode.

    Returns:
        The mean cosine embedding loss of each epoch.

    Raises:
        DataError: The network has no parameters.
    """
    import torch
    from torch.nn.functional import cosine_embedding_loss

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
            rows = forward(model, batch, "batch", precision)
            apart = rows.new_full((len(rows) // 2,), -1)
            loss = cosine_embedding_loss(rows[0::2], rows[1::2], apart, settings.margin)
            torch.autograd.backward(loss)
            optimizer.step()
            total += loss.item() * len(apart)
        losses.append(total / len(first))
        if losses[-1] < settings.stop_below:
            break
        scheduler.step(losses[-1])
    model.eval()
    return losses
