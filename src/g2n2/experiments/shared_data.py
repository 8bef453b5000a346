"""Graphs that one cell after the other reads, kept in memory between them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..training.config import RunConfig
from .cell import Slice

if TYPE_CHECKING:
    from ..data.graph_set import GraphSet


def graphs_of(config: RunConfig, given: Slice) -> GraphSet:
    """The graphs of a config; the whole set stays in memory for the next cell."""
    import numpy as np

    from ..data.catalogue import dataset_options, find_dataset
    from ..training.setup import choose_targets

    known = dataset_options(find_dataset(config.dataset))
    where = {name: value for name, value in (given.options or {}).items() if name in known}
    options = tuple(sorted({**config.options, **where}.items()))
    graphs = choose_targets(_whole(config.dataset, given.data, options), config.target)
    if config.limit:
        drawn = np.random.default_rng(config.seed).permutation(len(graphs))[: config.limit]
        graphs = graphs.select(np.sort(drawn))
    return graphs.check()


@lru_cache(maxsize=2)  # QM9 with distances and without
def _whole(dataset: str, data: str | None, options: tuple[tuple[str, Any], ...]) -> GraphSet:
    from ..training.setup import read_source

    return read_source(dataset, data, dict(options))
