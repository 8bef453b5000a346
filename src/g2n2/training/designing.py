"""Spectral supports of all graphs, made once before training: they hold nothing that is learned."""

from __future__ import annotations

from torch import nn

from ..data.pair_table import PairTable
from ..data.store import GraphStore
from ..nn.supports import SpectralSupports
from .graphed import Recorded
from .taking_over import same_graphs

LARGEST = 2**31
"""Bytes a table may take; beyond, supports are made for every batch."""


def design_supports(model: nn.Module, store: GraphStore, recorded: Recorded) -> None:
    """Keep the supports of a network that has some with the graphs.

    Args:
        model: Any network.
        store: Its graphs.
        recorded: May hold those of a run before, and keeps these for the next.
    """
    supports = getattr(model, "supports", None)
    if type(supports) is not SpectralSupports:
        return
    if PairTable.bytes_of(store, supports.count) > LARGEST:
        return
    said = (supports.extra_repr(), store.device, store.dtype)
    before = recorded.designed
    if before is not None and before[0] == said and same_graphs(before[1].graphs, store.graphs):
        store.designed = before[1].designed
    else:
        store.designed = PairTable(
            store, lambda batch: supports.designed(batch.adjacency, batch.mask)
        )
    recorded.designed = (said, store)
