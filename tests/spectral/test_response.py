"""Spectral responses against hand formulas, and their independence from chosen eigenvectors."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from cases import GRAPHS
from g2n2.errors import DataError, LoweringError
from g2n2.language.terms import IDENTITY, Term, power
from g2n2.spectral.laplacians import laplacian
from g2n2.spectral.response import layer_response, output_response, response, spectrum

NETWORKX = {
    "combinatorial": nx.laplacian_matrix,
    "normalised": nx.normalized_laplacian_matrix,
}


@pytest.mark.parametrize("kind", NETWORKX)
@pytest.mark.parametrize("name", GRAPHS)
def test_power_of_the_laplacian_responds_with_that_power(kind: str, name: str) -> None:
    eigenvalues = np.linalg.eigvalsh(NETWORKX[kind](GRAPHS[name]).toarray().astype(float))
    for exponent in (0, 1, 2, 5):
        word = power(laplacian(kind), exponent) if exponent else IDENTITY
        found = response(word, GRAPHS[name], kind)
        scale = max(1.0, eigenvalues.max() ** exponent)
        assert np.allclose(found.eigenvalues, eigenvalues, rtol=0, atol=1e-12 * scale)
        assert np.allclose(found.responses[:, 0], eigenvalues**exponent, rtol=0, atol=1e-11 * scale)
        assert found.residues[0] < 1e-12
        assert found.names == (str(word),)


def test_distinct_eigenvalues_give_the_papers_diagonal() -> None:
    graph = nx.path_graph(6)
    matrix = nx.to_numpy_array(graph)
    word = matrix @ matrix * matrix + np.diag(matrix.sum(1) ** 2)
    _, vectors = np.linalg.eigh(nx.laplacian_matrix(graph).toarray().astype(float))
    found = response("(A²⊙A) + diag(A1⊙A1)", graph, "combinatorial")
    assert np.allclose(
        found.responses[:, 0], np.diag(vectors.T @ word @ vectors), rtol=0, atol=1e-12
    )


def test_degenerate_eigenspaces_are_averaged() -> None:
    """diag of one marked node on C₆: the projector on each eigenspace has constant diagonal."""
    marked = np.zeros((6, 6))
    marked[0, 0] = 1.0
    found = response(marked, nx.cycle_graph(6))
    assert np.allclose(found.eigenvalues, [0, 0.5, 0.5, 1.5, 1.5, 2])
    assert np.allclose(found.responses[:, 0], np.full(6, 1 / 6), rtol=0, atol=1e-12)
    assert np.isclose(found.residues[0], np.sqrt(5 / 6))


def test_response_does_not_depend_on_node_order() -> None:
    graph, order = GRAPHS["rook 4×4"], np.random.default_rng(1).permutation(16)
    values = np.random.default_rng(0).normal(size=(16, 16, 3))
    moved = nx.to_numpy_array(graph)[np.ix_(order, order)]
    one, other = response(values, graph), response(values[np.ix_(order, order)], moved)
    assert one.responses.shape == (16, 3)
    assert np.allclose(one.responses, other.responses, rtol=0, atol=1e-12)
    assert np.allclose(one.residues, other.residues, rtol=0, atol=1e-12)


def test_spectrum_rebuilds_a_filter() -> None:
    found = spectrum(GRAPHS["lollipop"])
    expected = nx.normalized_laplacian_matrix(GRAPHS["lollipop"]).toarray()
    assert np.allclose(found.filter(found.eigenvalues), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("word", "graph", "reason"),
    [
        ("A1", nx.path_graph(3), "only a matrix has a spectral response"),
        ("A", nx.DiGraph([(0, 1)]), "directed"),
        (np.eye(4), nx.path_graph(3), r"shape \[4, 4, 1\], the graph has 3 nodes"),
    ],
)
def test_refusals(word: str | Term, graph: nx.Graph, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        response(word, graph)


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = response(np.random.default_rng(0).normal(size=(4, 4, 3)), GRAPHS["K4"]).plot(
        tmp_path / "response.svg"
    )
    assert path.read_text(encoding="utf-8").count("<use") > 12  # a marker for each point
    with pytest.raises(DataError, match=r"\.svg"):
        response("A", GRAPHS["K4"]).plot(tmp_path / "response.xyz")


torch = pytest.importorskip("torch")


def test_inputs_of_a_network_respond_as_what_they_are() -> None:
    from g2n2.nn import GrammarGNN

    graph = GRAPHS["Petersen"]
    model = GrammarGNN("r-G_L3", width=4, layers=2, preset="paper").double()
    found = layer_response(model, graph, 0)
    assert np.allclose(found.responses[:, 0], 1.0)
    assert np.allclose(found.responses[:, 1], 3 * (1 - found.eigenvalues), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["auto", "reference", "plain"])
def test_layer_response_is_the_response_of_the_memory(backend: str) -> None:
    from g2n2.data.batch import GraphBatch
    from g2n2.nn import GrammarGNN

    graph = GRAPHS["lollipop"]
    features = np.random.default_rng(0).normal(size=(len(graph), 2))
    model = GrammarGNN("r-G_L3", node_features=2, width=4, layers=3, backend=backend).double()
    batch = GraphBatch.of([graph], [features], dtype=torch.float64)
    memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    expected = response(memories["M"][0].detach().numpy(), graph, "combinatorial")
    last = layer_response(model, graph, 3, "combinatorial", nodes=features)
    first = layer_response(model, graph, 1, "combinatorial", nodes=features)
    assert np.allclose(last.responses, expected.responses, rtol=0, atol=1e-12)
    assert not np.allclose(first.responses, expected.responses, rtol=0, atol=1e-3)


def test_a_network_without_matrices_has_no_response() -> None:
    from g2n2.nn import GrammarGNN

    with pytest.raises(LoweringError, match="GNNML1 has no matrix memory"):
        layer_response(GrammarGNN("GNNML1", width=4), GRAPHS["K4"], 1)
    with pytest.raises(LoweringError, match="layers 1 to 3, got 4"):
        layer_response(GrammarGNN("GNNML1", width=4), GRAPHS["K4"], 4)


def test_output_response_needs_matrices_to_come_out() -> None:
    from g2n2.nn import GrammarGNN

    model = GrammarGNN("r-G_L3", width=4, layers=1, task="edge", out=2).double()
    assert output_response(model, GRAPHS["K4"]).responses.shape == (4, 2)
    with pytest.raises(LoweringError, match="task graph are no matrices"):
        output_response(GrammarGNN("r-G_L3", width=4), GRAPHS["K4"])
