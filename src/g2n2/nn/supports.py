"""Supports that a module gives: GNNML3's convolution matrices, and the squared distances D."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..compiler.lowering import lower
from ..errors import DataError, LoweringError
from ..grammars.subgraph_counts import laplacian_power
from ..ops.precision import without_autocast

LAPLACIAN = lower(laplacian_power(1, normalised=True))
"""The normalised Laplacian of `A`, from a graph's tensors."""


class SpectralSupports(nn.Module):
    """Supports C_1 … C_k of GNNML3 (Balcilar et al. 2021, section 4.2).

    Before anything is learned there are k − 1 Gaussian bumps over the spectrum of the normalised
    Laplacian, `U diag(exp(−b(λ − f_s)²)) Uᵀ` with f_s evenly spread from 0 to the graph's largest
    eigenvalue, and I; all are zero outside the receptive field `(A + I)^r > 0`. Where learned, a
    small network without biases mixes them entry by entry, `relu(W₄(relu(W₁c) ‖ tanh(W₂c) ⊙
    tanh(W₃c)))`, so that zeros stay zero. A matrix function of L depends on no choice of
    eigenvectors. All layers of a network share the learned supports.

    Args:
        count: k, at least 2.
        bandwidth: b; a larger one makes narrower bumps.
        receptive_field: r, in steps along edges, at least 1.
        learned: Whether the mixing network is there.
    """

    def __init__(
        self,
        count: int,
        bandwidth: float = 5.0,
        receptive_field: int = 1,
        learned: bool = True,
    ) -> None:
        super().__init__()
        for name, value, least in (("count", count, 2), ("receptive_field", receptive_field, 1)):
            if value < least:
                raise LoweringError(f"{name} must be at least {least}, got {value}")
        if not bandwidth > 0:
            raise LoweringError(f"bandwidth must be positive, got {bandwidth}")
        self.count, self.bandwidth, self.receptive_field = count, bandwidth, receptive_field
        self.mix = EdgeFunction(count) if learned else None

    def forward(self, adjacency: Tensor, mask: Tensor, designed: Tensor | None = None) -> Tensor:
        """`[B, N, N]` and `[B, N]` to `[B, N, N, k]`, zero at the padding.

        Args:
            adjacency: Of undirected graphs.
            mask: Where nodes are.
            designed: What `designed` gives for them, where that is known already.

        Raises:
            DataError: Some graph is directed, so that its Laplacian has no real spectrum.
        """
        if designed is None:
            designed = self.designed(adjacency, mask)
        return designed if self.mix is None else self.mix(designed)

    @torch.no_grad()
    def designed(self, adjacency: Tensor, mask: Tensor) -> Tensor:
        """`[B, N, N, k]` the bumps and I, in the receptive field: nothing that is learned."""
        if not torch.compiler.is_compiling() and not torch.equal(adjacency, adjacency.mT):
            raise DataError(
                "some graph is directed (A is not symmetric): spectral supports need undirected "
                "graphs; symmetrise them, for instance A + Aᵀ"
            )
        with without_autocast(adjacency.device.type):
            return self._designed(adjacency, mask)

    def _designed(self, adjacency: Tensor, mask: Tensor) -> Tensor:
        exact = adjacency if adjacency.dtype == torch.float64 else adjacency.float()
        ones = mask.to(exact.dtype).unsqueeze(-1)
        exact = exact * ones * ones.mT
        matrix = LAPLACIAN((), {"A": exact.unsqueeze(-1), "1": ones})[..., 0]
        # Padding is a block of zeros, which no function of the matrix mixes with the graph.
        values, vectors = torch.linalg.eigh(matrix)
        centres = torch.linspace(0, 1, self.count - 1, dtype=exact.dtype, device=exact.device)
        differences = values.unsqueeze(-1) - values.amax(-1)[:, None, None] * centres
        bumps = torch.exp(-self.bandwidth * differences.square())
        supports = torch.einsum("bia,bas,bja->bijs", vectors, bumps, vectors)
        identity = torch.diag_embed(ones[..., 0])
        field = self._field(exact, identity).unsqueeze(-1)
        return torch.cat([supports * field, identity.unsqueeze(-1)], dim=-1).to(adjacency.dtype)

    def _field(self, adjacency: Tensor, identity: Tensor) -> Tensor:
        """`[B, N, N]` one where a node is within reach of another."""
        step = ((adjacency != 0) | (identity != 0)).to(identity.dtype)
        reached = step
        for _ in range(self.receptive_field - 1):
            reached = ((reached @ step) > 0).to(step.dtype)
        return reached

    def extra_repr(self) -> str:
        return (
            f"{self.count}, bandwidth={self.bandwidth}, receptive_field={self.receptive_field}, "
            f"learned={self.mix is not None}"
        )


class SquaredDistances(nn.Module):
    """D = (d²ᵢⱼ) in Å², which the positions of the nodes give; a batch has it as `designed`."""

    def forward(self, adjacency: Tensor, mask: Tensor, designed: Tensor | None = None) -> Tensor:
        """`[B, N, N, 1]`.

        Raises:
            DataError: The batch has no D.
        """
        if designed is None:
            raise DataError(
                "a rule names D, the squared distances between nodes, and these graphs have no "
                "positions: give graphs with positions (SDF, XYZ, PyG's pos), or for a GraphBatch "
                "designed=squared_distances(positions, mask)"
            )
        return designed


GIVEN_WITH_BATCHES = (SpectralSupports, SquaredDistances)
"""Modules whose values, or what they are made of, a batch may have as `designed`."""


class EdgeFunction(nn.Module):
    """The learned mixing of GNNML3, entry by entry; no bias, so zero entries stay zero."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = 2 * channels
        self.first = nn.Linear(channels, hidden, bias=False)
        self.left = nn.Linear(channels, hidden, bias=False)
        self.right = nn.Linear(channels, hidden, bias=False)
        self.last = nn.Linear(2 * hidden, channels, bias=False)

    def forward(self, supports: Tensor) -> Tensor:
        product = self.left(supports).tanh() * self.right(supports).tanh()
        joined = torch.cat([self.first(supports).relu(), product], dim=-1)
        value: Tensor = self.last(joined).relu()
        return value
