"""Spectral response: how strongly a matrix passes each frequency of a graph (appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import figures
from ..described import Described, some
from ..errors import DataError, LoweringError
from ..graphs import GraphLike, adjacency
from ..language.evaluation import evaluate
from ..language.parsing import parse
from ..language.sorts import M
from ..language.terms import Term
from .laplacians import Laplacian, laplacian

if TYPE_CHECKING:
    from ..data.batch import GraphBatch
    from ..nn.model import GrammarGNN

Array = NDArray[np.float64]

SAME_EIGENVALUE = 1e-8
"""Eigenvalues closer than this, relative to the largest, are one eigenspace."""


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Described):
    """Eigenvalues and eigenvectors of a graph's Laplacian.

    Attributes:
        eigenvalues: `[n]`, ascending; those of one eigenspace are equal to the last digit.
        vectors: `[n, n]`, one eigenvector a column.
        laplacian: Which Laplacian.
    """

    eigenvalues: Array
    vectors: Array
    laplacian: Laplacian

    def facts(self) -> dict[str, str]:
        """The spectrum in a few words, for `repr` and notebooks."""
        return {"laplacian": self.laplacian, "eigenvalues": f"{len(self.eigenvalues):,}"}

    def filter(self, values: ArrayLike) -> Array:
        """`U diag(values) Uᵀ`: the matrix whose response is `values`."""
        scaled: Array = (self.vectors * np.asarray(values)) @ self.vectors.T
        return scaled


@dataclass(frozen=True, eq=False, repr=False)
class SpectralResponse(Described):
    """Responses of one or more matrices on one graph.

    Attributes:
        eigenvalues: `[n]` of the Laplacian, ascending, with their multiplicities.
        responses: `[n, S]` φ(λ) of each matrix, the mean over an eigenspace.
        residues: `[S]` the part of each matrix that no filter of this Laplacian gives, as a share
            of its Frobenius norm: 0 for a polynomial of L, 1 for what is orthogonal to all.
        laplacian: Which Laplacian the eigenvalues belong to.
        names: What the matrices are called.
    """

    eigenvalues: Array
    responses: Array
    residues: Array
    laplacian: Laplacian
    names: tuple[str, ...]

    def facts(self) -> dict[str, str]:
        """The responses in a few words, for `repr` and notebooks."""
        return {
            "laplacian": self.laplacian,
            "eigenvalues": f"{len(self.eigenvalues):,}",
            "matrices": some(self.names),
            "residues": some(f"{share:.3g}" for share in self.residues),
        }

    def plot(self, path: str | Path) -> Path:
        """Draw every response over the spectrum; the ending of the path chooses the format."""
        figure, axis = spectrum_axes(path, self.laplacian)
        for name, values in zip(self.names, self.responses.T, strict=True):
            axis.plot(self.eigenvalues, values, marker="o", markersize=3, label=name)
        return save_figure(figure, axis, path, legend=len(self.names) <= 8)


def spectrum(graph: GraphLike, kind: Laplacian = "normalised") -> Spectrum:
    """The eigendecomposition L = U diag(λ) Uᵀ.

    Raises:
        DataError: The graph is directed, so that its Laplacian has no orthogonal eigenvectors.
    """
    matrix = adjacency(graph)
    if not np.array_equal(matrix, matrix.T):
        raise DataError(
            "the graph is directed (A is not symmetric), and its Laplacian has no orthogonal "
            "eigenvectors; symmetrise it, for instance A + Aᵀ"
        )
    values, vectors = np.linalg.eigh(evaluate(laplacian(kind), matrix))
    for group in _eigenspaces(values):
        centre = values[group].mean()
        values[group] = 0.0 if abs(centre) < _apart(values) else centre  # √λ must not see −1e-17
    return Spectrum(values, vectors, kind)


def response(
    word: Term | str | ArrayLike, graph: GraphLike, laplacian: Laplacian = "normalised"
) -> SpectralResponse:
    """φ(λ) = diagonal(UᵀCU) of a matrix word on a graph.

    Within an eigenspace the eigenvectors are a free choice, so the mean over it is given: it is the
    same for every choice, and the paper's definition wherever eigenvalues are distinct.

    Args:
        word: A matrix word, its text, or values `[n, n]` or `[n, n, S]`.
        graph: The graph whose Laplacian defines the frequencies.
        laplacian: `normalised` or `combinatorial`.

    Raises:
        DataError: The word is no matrix, or of another size than the graph.
    """
    frequencies = spectrum(graph, laplacian)
    term = parse(word) if isinstance(word, str) else word
    if not isinstance(term, Term):
        values = np.asarray(term, dtype=np.float64)
        values = values[..., None] if values.ndim == 2 else values
        return _responses(values, frequencies, tuple(f"C{s}" for s in range(values.shape[-1])))
    if term.sort != M:
        raise DataError(
            f"{term} is {term.sort.english}, and only a matrix has a spectral response; "
            f"write diag({term}) or a matrix word"
        )
    return _responses(evaluate(term, graph)[..., None], frequencies, (str(term),))


def layer_response(
    model: GrammarGNN,
    graph: GraphLike,
    layer: int,
    laplacian: Laplacian = "normalised",
    nodes: Any = None,
    edges: Any = None,
) -> SpectralResponse:
    """φ(λ) of every channel of the matrix memory C after a layer of a network.

    Args:
        model: A network whose grammar has matrices.
        graph: The graph it runs on.
        layer: 1 for the first layer; 0 for what enters it.
        laplacian: `normalised` or `combinatorial`.
        nodes: `[n, F]` node features, where the network reads some.
        edges: `[n, n, E]` edge features, where the network reads some.

    Raises:
        LoweringError: There is no such layer, or the network has no matrix memory.
    """
    if not 0 <= layer <= len(model.layers):
        raise LoweringError(f"the network has layers 1 to {len(model.layers)}, got {layer}")
    values = _memory(model, graph, layer, nodes, edges)
    names = tuple(f"C{s} after layer {layer}" for s in range(values.shape[-1]))
    return _responses(values, spectrum(graph, laplacian), names)


def output_response(
    model: GrammarGNN,
    graph: GraphLike,
    laplacian: Laplacian = "normalised",
    nodes: Any = None,
    edges: Any = None,
) -> SpectralResponse:
    """φ(λ) of every output of an edge-level network, with the arguments of `layer_response`.

    Raises:
        LoweringError: The network has another task, so its outputs are no matrices.
    """
    import torch

    if model.plan.readout.task != "edge":
        raise LoweringError(
            f"outputs of the task {model.plan.readout.task} are no matrices; make the network with "
            'task="edge", or look at a layer with layer_response'
        )
    with torch.no_grad():
        values = model(_batch(model, graph, nodes, edges))[0].double().cpu().numpy()
    names = tuple(f"output {s}" for s in range(values.shape[-1]))
    return _responses(values, spectrum(graph, laplacian), names)


def _memory(model: GrammarGNN, graph: GraphLike, layer: int, nodes: Any, edges: Any) -> Array:
    """`[n, n, S]` the matrix memory after a layer, or before the first."""
    import torch

    with torch.no_grad():
        tensors = model.checked(_batch(model, graph, nodes, edges))
        memories, _ = model.final(*tensors, depth=layer)
    if "M" not in memories:
        name = model.plan.grammar.name or "this grammar"
        raise LoweringError(f"{name} has no matrix memory, so no spectral response to show")
    values: Array = memories["M"][0].double().cpu().numpy()
    return values


def _batch(model: GrammarGNN, graph: GraphLike, nodes: Any, edges: Any) -> GraphBatch:
    from ..data.batch import GraphBatch

    weight = next(model.parameters())
    x, e = (None if values is None else [values] for values in (nodes, edges))
    return GraphBatch.of([graph], x, e, dtype=weight.dtype).to(weight.device)


def _responses(values: Array, frequencies: Spectrum, names: tuple[str, ...]) -> SpectralResponse:
    n = len(frequencies.eigenvalues)
    if values.ndim != 3 or values.shape[:2] != (n, n):
        raise DataError(f"the matrix has shape {list(values.shape)}, the graph has {n} nodes")
    u = frequencies.vectors
    turned = np.einsum("ia,ijs,jb->abs", u, values, u, optimize=True)
    diagonal = np.einsum("aas->as", turned).copy()
    for group in _eigenspaces(frequencies.eigenvalues):
        diagonal[group] = diagonal[group].mean(0)
    total = np.square(turned).sum((0, 1))
    turned[np.arange(n), np.arange(n)] -= diagonal
    rest = np.square(turned).sum((0, 1))
    residues = np.sqrt(np.divide(rest, total, out=np.zeros_like(rest), where=total > 0))
    return SpectralResponse(
        frequencies.eigenvalues, diagonal, residues, frequencies.laplacian, names
    )


def _eigenspaces(values: Array) -> list[slice]:
    """Runs of equal eigenvalues in an ascending list."""
    cuts = [0, *(np.flatnonzero(np.diff(values) > _apart(values)) + 1).tolist(), len(values)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def _apart(values: Array) -> float:
    return SAME_EIGENVALUE * max(1.0, float(np.abs(values).max()))


def spectrum_axes(path: str | Path, laplacian: str) -> tuple[Any, Any]:
    """A figure with one axis over the eigenvalues; refused before if it could not be written."""
    figures.check_plot(Path(path))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    axis.set(xlabel=f"eigenvalue λ of the {laplacian} Laplacian", ylabel="response φ(λ)")
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def save_figure(figure: Any, axis: Any, path: str | Path, legend: bool) -> Path:
    """Write a figure of `spectrum_axes`; the ending of the path chooses the format."""
    if legend:
        axis.legend(fontsize=8, frameon=False)
    return figures.save_figure(figure, Path(path))
