"""explain(): planted words are found, shares are those of least squares, nothing is made up."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from g2n2 import evaluate
from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError
from g2n2.formulas.writing import write_formula
from g2n2.language.printing import to_text
from g2n2.nn import GrammarGNN
from g2n2.nn.explaining import explain
from g2n2.nn.supports import SpectralSupports

GRAPHS = [nx.gnp_random_graph(n, 0.4, seed=n) for n in range(5, 25)]
MATRICES = [nx.to_numpy_array(graph) for graph in GRAPHS]


class Planted(GrammarGNN):
    """A network whose output is known."""

    def __init__(self, output: Tensor, **options: object) -> None:
        super().__init__(**{"width": 2, "layers": 1, "out": output.shape[-1], **options})
        self.planted = output

    def network(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        return self.planted


def texts(shares: object) -> list[str]:
    return [to_text(word.word) for word in shares.words]


def test_planted_sentences_come_out_with_the_shares_of_least_squares() -> None:
    edges = np.array([m.sum() for m in MATRICES])
    triangles = np.array([np.trace(m @ m @ m) for m in MATRICES])
    noise = np.random.default_rng(1).normal(size=len(GRAPHS)) * 0.2 * triangles.std()
    y = triangles + noise
    (found,) = explain(Planted(torch.tensor(y)[:, None]), GRAPHS, top=1).outputs
    closed = {"1ᵀ(A²⊙A)1", "Tr(A³)", "1ᵀ(A⊙A²)1"}
    assert texts(found)[0] in closed
    assert found.words[0].share == pytest.approx(np.corrcoef(y, triangles)[0, 1] ** 2, abs=1e-6)
    (found,) = explain(Planted(torch.tensor(edges + 0.0)[:, None]), GRAPHS).outputs
    assert texts(found) == ["1ᵀA1"]
    assert found.total == pytest.approx(1.0, abs=1e-6)


def test_words_that_differ_on_directed_graphs_only_are_tried_there() -> None:
    model = Planted(torch.arange(4.0)[:, None], grammar="M → MM | Mᵀ | A; S → Tr(M)")
    one_way = [np.triu(matrix) for matrix in MATRICES[:4]]
    undirected, directed = (
        explain(model, graphs, size=4).candidates for graphs in (MATRICES[:4], one_way)
    )
    assert directed > undirected


def test_shares_add_up_to_what_least_squares_explains() -> None:
    y = np.random.default_rng(2).normal(size=len(GRAPHS))
    (found,) = explain(Planted(torch.tensor(y)[:, None]), GRAPHS, size=5, top=3).outputs
    assert len(found.words) == 3
    shares = [word.share for word in found.words]
    columns = [np.ones(len(GRAPHS))]
    for count, word in enumerate(found.words, start=1):
        columns.append(np.array([evaluate(word.word, g).item() for g in GRAPHS]))
        design = np.stack([c / np.abs(c).max() for c in columns], 1)
        fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        explained = 1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        assert sum(shares[:count]) == pytest.approx(explained, abs=1e-6)
    assert found.words[0].share < 3 * found.chance, "noise is explained no better than by chance"


FORMULAS = [
    ("r-G_L3", "graph", "1ᵀ(A²⊙A)1"),
    ("r-G_L3", "node", "(A²⊙A)1"),
    ("r-G_L3", "edge", "A²⊙A"),
    ("GNNML1", "graph", "1ᵀ(A1⊙A1)"),
    ("PPGN", "edge", "A³"),
]


@pytest.mark.parametrize(("grammar", "task", "formula"), FORMULAS)
def test_a_written_formula_comes_first(grammar: str, task: str, formula: str) -> None:
    model = GrammarGNN(grammar, width=8, layers=4, task=task, preset="paper").double()
    write_formula(model, formula)
    (found,) = explain(model, GRAPHS[:8]).outputs
    assert texts(found) == [formula]
    assert found.words[0].share == pytest.approx(1.0, abs=1e-9)


def test_a_formula_larger_than_any_candidate_comes_first_too() -> None:
    formula = "1ᵀ(A⁴⊙A)1"
    model = GrammarGNN("r-G_L3", width=12, layers=5, preset="paper").double()
    write_formula(model, formula)
    (found,) = explain(model, GRAPHS, size=3).outputs
    assert texts(found) == [formula]


def test_several_outputs_and_a_constant_one() -> None:
    edges = torch.tensor([m.sum() for m in MATRICES])
    sizes = torch.tensor([float(len(m)) for m in MATRICES])
    output = torch.stack([edges, torch.full_like(edges, 7.0), sizes], dim=1)
    shown = explain(Planted(output), GRAPHS)
    assert [texts(x) for x in shown.outputs] == [["1ᵀA1"], [], ["1ᵀ1"]]
    assert [x.constant for x in shown.outputs] == [None, 7.0, None]
    text = str(shown)
    assert "output 1\n   constant: 7" in text
    assert "100.0%  1ᵀA1" in text
    assert "against 20 values" in text


def test_matrices_stand_in_for_the_vectors_a_grammar_lacks() -> None:
    degrees = torch.zeros(len(GRAPHS), 24, 1, dtype=torch.float64)
    for b, m in enumerate(MATRICES):
        degrees[b, : len(m), 0] = torch.tensor(m.sum(1))
    (found,) = explain(Planted(degrees, grammar="PPGN", task="node"), GRAPHS).outputs
    assert texts(found) == ["A1"]
    ends = degrees.unsqueeze(2).expand(-1, -1, 24, -1)
    (found,) = explain(Planted(ends, grammar="GNNML1", task="edge"), GRAPHS).outputs
    assert texts(found) == ["A1·1ᵀ"]


def test_supports_of_a_grammar_are_words_too() -> None:
    gcn = GrammarGNN("GCN", width=4, layers=1, preset="paper", task="node")
    assert any("C" in text for text in texts(explain(gcn, GRAPHS).outputs[0]))
    designed = GrammarGNN("GNNML3-3", width=4, layers=1, task="node", supports=SpectralSupports(3))
    assert any("C_" in text for text in texts(explain(designed, GRAPHS).outputs[0]))


def test_features_are_named_as_not_explained() -> None:
    model = GrammarGNN("r-G_L3", node_features=1, width=4, layers=1)
    batch = GraphBatch.of(GRAPHS, [np.ones((len(g), 1)) for g in GRAPHS])
    assert "owes to features is not explained" in str(explain(model, batch))


def test_one_value_or_no_word_is_refused() -> None:
    with pytest.raises(DataError, match="no variance to share out: give more graphs"):
        explain(GrammarGNN("GNNML1", width=2, layers=1), GRAPHS[:1])
    with pytest.raises(DataError, match="no word of 0 operations or fewer to try: raise size"):
        explain(GrammarGNN("GNNML1", width=2, layers=1), GRAPHS, size=0)


def test_weights_and_gradients_are_left_alone() -> None:
    model = GrammarGNN("GNNML1", width=2, layers=1)
    before = nn.utils.parameters_to_vector(model.parameters()).clone()
    explain(model, GRAPHS)
    torch.testing.assert_close(nn.utils.parameters_to_vector(model.parameters()), before)
    assert all(p.grad is None for p in model.parameters())
