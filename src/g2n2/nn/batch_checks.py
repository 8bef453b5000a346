"""Check that a batch fits a network before its first tensor operation."""

from __future__ import annotations

from torch import nn

from ..data.batch import GraphBatch
from ..data.packed_batch import PackedBatch
from ..errors import DataError, ShapeError


def validate_batch(
    model: nn.Module, batch: GraphBatch | PackedBatch, node_features: int, edge_features: int
) -> None:
    """Compare a batch with what a network was made for.

    Raises:
        ShapeError: Another number of features.
        DataError: Numbers of another dtype or on another device.
    """
    for what, got, expected in (
        ("node", batch.nodes.shape[-1], node_features),
        ("edge", batch.edges.shape[-1], edge_features),
    ):
        if got != expected:
            raise ShapeError(
                f"the batch has {got} {what} features, the network was made for {expected}: "
                f"give {what}_features={got} when making it, or other data"
            )
    weight = next(model.parameters())
    if (batch.adjacency.dtype, batch.adjacency.device) != (weight.dtype, weight.device):
        raise DataError(
            f"the batch holds {batch.adjacency.dtype} on {batch.adjacency.device}, the network "
            f"{weight.dtype} on {weight.device}: use batch.to({weight.device.type!r}, "
            f"{weight.dtype}), or move the network"
        )
