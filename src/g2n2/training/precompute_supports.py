"""Spectral supports of all graphs, made once before training: they hold nothing that is learned."""

from __future__ import annotations

import torch
from torch import nn

from ..data.pair_table import PairTable
from ..data.store import GraphStore
from ..nn.supports import SpectralSupports
from .cuda_graphs import SHARE, Recorded
from .devices import free_cached_memory, out_of_memory
from .graph_cache import same_graphs

LARGEST = 2**31
"""Bytes a table may take, and no more than a share of a GPU's free memory; beyond, supports are
made for every batch."""


def precompute_supports(model: nn.Module, store: GraphStore, recorded: Recorded) -> None:
    """Keep the supports of a network that has some with the graphs.

    Args:
        model: Any network.
        store: Its graphs.
        recorded: May hold those of a run before, and keeps these for the next.
    """
    supports = getattr(model, "supports", None)
    if type(supports) is not SpectralSupports:
        return
    room = LARGEST
    if store.device.type == "cuda":
        room = min(room, int(SHARE * torch.cuda.mem_get_info(store.device)[0]))
    if PairTable.bytes_of(store, supports.count) > room:
        return
    said = (supports.extra_repr(), store.device, store.dtype)
    before = recorded.designed
    if before is not None and before[0] == said and same_graphs(before[1].graphs, store.graphs):
        store.designed = before[1].designed
    else:
        store.designed = _table(supports, store)
    recorded.designed = (said, store)


def _table(supports: SpectralSupports, store: GraphStore) -> PairTable | None:
    try:
        return PairTable(store, lambda batch: supports.designed(batch.adjacency, batch.mask))
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    free_cached_memory(store.device)
    return None
