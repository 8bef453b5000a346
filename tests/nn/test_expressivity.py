"""Networks with random weights tell apart what their architecture can, and nothing by rounding."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from benchmark_files import real_suite
from g2n2.errors import DataError
from g2n2.graphs import Adjacency, adjacency
from g2n2.graphs.families import bicyclopentyl, decalin, rook_graph, shrikhande_graph
from g2n2.nn import expressivity
from g2n2.nn.expressivity import build, compare_embeddings, embed, network_separates, relabelled
from g2n2.power.refinement import refine
from g2n2.power.suites import Suite

pytestmark = pytest.mark.usefixtures("one_thread")
HEXAGON_TRIANGLES = (
    adjacency(nx.cycle_graph(6)),
    adjacency(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))),
)
STAR_SQUARE = (
    adjacency(nx.star_graph(4)),
    adjacency(nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1))),
)
MOLECULES = (decalin(), bicyclopentyl())
STRONGLY_REGULAR = (rook_graph(4), shrikhande_graph())
SEEDS = (0, 1, 2)


class MessagePassing(nn.Module):
    """As strong as 1-WL: sums over neighbours, MLPs, a sum over nodes. Takes `[..., n, n]`."""

    def __init__(self, width: int = 16, layers: int = 5) -> None:
        super().__init__()
        widths = [1, *[width] * layers]
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * before, after), nn.Tanh(), nn.Linear(after, after))
            for before, after in pairwise(widths)
        )

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        h = a.new_ones(*a.shape[:-1], 1)
        for mlp in self.mlps:
            h = torch.tanh(mlp(torch.cat([h, a @ h], dim=-1)))
        return h.sum(dim=-2)


class Sparse(MessagePassing):
    """The same network on PyG data."""

    def forward(self, data: Any) -> torch.Tensor:
        source, target = data.edge_index
        h = data.x
        for mlp in self.mlps:
            messages = torch.zeros_like(h).index_add(0, target, h[source])
            h = torch.tanh(mlp(torch.cat([h, messages], dim=-1)))
        return h.new_zeros(data.num_graphs, h.shape[1]).index_add(0, data.batch, h)


class MatrixProducts(nn.Module):
    """As strong as 2-FWL: PPGN blocks. Centred products and sines keep small differences alive."""

    def __init__(self, width: int = 8, layers: int = 7, gain: float = 3.0) -> None:
        super().__init__()
        widths = [2, *[width] * layers]
        self.blocks = nn.ModuleList(
            nn.ModuleList([nn.Linear(d, width), nn.Linear(d, width), nn.Linear(d + width, width)])
            for d in widths[:-1]
        )
        self.out = nn.Linear(2 * width, 16)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=gain / module.in_features**0.5)
                nn.init.normal_(module.bias, std=0.5)

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        m = torch.stack([a, torch.eye(a.shape[-1], dtype=a.dtype).expand_as(a)], dim=-1)
        for left, right, mix in self.blocks:
            p = (left(m).movedim(-1, -3) @ right(m).movedim(-1, -3)).movedim(-3, -1)
            p = p - p.mean(dim=(-3, -2), keepdim=True)
            p = p / (p.square().mean(dim=(-3, -2), keepdim=True) + 1e-6).sqrt()
            m = torch.sin(mix(torch.cat([m, p], dim=-1)))
        trace = m.diagonal(dim1=-3, dim2=-2).sum(dim=-1)
        return self.out(torch.cat([trace, m.sum(dim=(-3, -2))], dim=-1))


def one_network(function: Callable[[torch.Tensor], Any]) -> Callable[[int], Any]:
    return lambda _: function


def outcomes(make_model: Callable[[int], Any], *pairs: Any, **options: Any) -> list[str]:
    return [verdict.outcome for verdict in network_separates(make_model, pairs, **options)]


def chosen(suite: Suite, indices: Any) -> list[tuple[Adjacency, Adjacency]]:
    return [(suite.graphs[i], suite.graphs[j]) for i, j in (suite.pairs[k] for k in indices)]


@pytest.mark.parametrize("style", ["dense", "batch"])
def test_message_passing_is_no_stronger_than_1_wl(style: Any) -> None:
    pairs = [HEXAGON_TRIANGLES, MOLECULES, STAR_SQUARE]
    verdicts = network_separates(lambda _: MessagePassing(), pairs, style=style)
    assert [v.outcome for v in verdicts] == ["merged", "merged", "separated"]
    assert [v.separating_seeds for v in verdicts] == [(), (), SEEDS]
    assert verdicts[2].gap > verdicts[2].needed > 10 * verdicts[2].noise


def test_matrix_products_separate_what_2_fwl_does() -> None:
    pairs = [HEXAGON_TRIANGLES, MOLECULES, STAR_SQUARE, STRONGLY_REGULAR]
    verdicts = network_separates(lambda _: MatrixProducts(layers=3), pairs, style="batch")
    assert [v.outcome for v in verdicts] == ["separated"] * 3 + ["merged"]
    assert [v.separating_seeds for v in verdicts] == [SEEDS] * 3 + [()]
    assert verdicts[3].noise > 0  # rounding did differ: the criterion had something to withstand


def test_message_passing_agrees_with_refinement_on_small_graphs() -> None:
    graphs = [adjacency(g) for g in nx.graph_atlas_g() if len(g) == 6 and g.size() == 8]
    pairs = [(a, b) for i, a in enumerate(graphs) for b in graphs[:i]]
    verdicts = network_separates(lambda _: MessagePassing(), pairs, seeds=(0,), relabelings=3)
    truth = [refine(pair, k=1).separated() for pair in pairs]
    assert {True, False} == set(truth)
    assert [v.separated for v in verdicts] == truth


@pytest.mark.parametrize("value", [0.0, 1.0, -1e300, 1e-320])
def test_a_constant_network_separates_nothing(value: float) -> None:
    constant = one_network(lambda a: a.new_full((3,), value))
    assert outcomes(constant, HEXAGON_TRIANGLES, STAR_SQUARE) == ["merged", "merged"]


def test_a_difference_below_rounding_is_none() -> None:
    def last_place(a: torch.Tensor) -> torch.Tensor:
        return 1 + torch.finfo(a.dtype).eps * a.sum()

    assert outcomes(one_network(last_place), STAR_SQUARE) == ["merged"]  # 8 ends against 8
    path_square = (adjacency(nx.path_graph(4)), adjacency(nx.cycle_graph(4)))
    assert outcomes(one_network(last_place), path_square) == ["merged"]
    assert outcomes(one_network(lambda a: 1 + 1e-9 * a.sum()), path_square) == ["separated"]


@pytest.mark.parametrize("share", [1.0, 0.01])
def test_a_network_that_sees_node_order_is_reported(share: float) -> None:
    def first_nodes(a: torch.Tensor) -> torch.Tensor:
        places = torch.arange(len(a), dtype=a.dtype)
        return torch.stack([a.sum(), a.sum() + share * (places @ a @ places)])

    verdicts = network_separates(one_network(first_nodes), [HEXAGON_TRIANGLES, STAR_SQUARE])
    assert [v.outcome for v in verdicts] == ["not invariant"] * 2
    assert verdicts[0].noise > share


def test_one_bad_seed_makes_the_pair_not_invariant() -> None:
    def make(seed: int) -> Any:
        return lambda a: a[0, 1] if seed == 2 else (a @ a * a).sum()

    assert outcomes(make, HEXAGON_TRIANGLES, seeds=(0, 1)) == ["separated"]
    assert outcomes(make, HEXAGON_TRIANGLES, seeds=(0, 2)) == ["not invariant"]


def test_numbers_that_are_not_finite_are_reported() -> None:
    def make(seed: int) -> Any:
        return lambda a: (a @ a * a).sum()[None] * (torch.nan if seed == 1 else 1)

    assert outcomes(make, HEXAGON_TRIANGLES, seeds=(1,)) == ["not finite"]
    assert outcomes(one_network(lambda a: a.sum() / 0), STAR_SQUARE) == ["not finite"]
    [verdict] = network_separates(make, [HEXAGON_TRIANGLES], seeds=(0, 1))
    assert (verdict.outcome, verdict.separating_seeds) == ("separated", (0,))
    [verdict] = network_separates(make, [(decalin(), decalin())], seeds=(0, 1))
    assert verdict.outcome == "not finite"
    [verdict] = network_separates(make, [HEXAGON_TRIANGLES], seeds=(1,))
    assert verdict.to_json() == {
        "outcome": "not finite",
        "separating_seeds": (),
        "seeds": (1,),
        "gap": None,
        "noise": None,
        "needed": None,
    }


def test_float32_inside_a_network_is_taken_as_noise() -> None:
    def single(seed: int) -> Any:
        network = MatrixProducts(layers=2, gain=1.0)
        return lambda a: network(a.float()).double()

    assert outcomes(single, STRONGLY_REGULAR, HEXAGON_TRIANGLES, style="batch") == [
        "merged",
        "separated",
    ]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6).flatmap(
        lambda values: st.tuples(st.just(values), st.permutations(values))
    )
)
def test_the_same_numbers_in_another_order_are_never_separated(
    rows: tuple[list[float], list[float]],
) -> None:
    first, second = (np.array(values)[:, None] for values in rows)
    assert compare_embeddings(first, second, margin=1.0).outcome != "separated"


def test_the_margin_decides() -> None:
    noisy = np.array([[1.0, 0.0], [1.0 + 1e-6, 0.0]])
    assert compare_embeddings(noisy, noisy + np.array([5e-6, 0]), margin=10).outcome == "merged"
    assert compare_embeddings(noisy, noisy + np.array([5e-6, 0]), margin=2).outcome == "separated"
    assert compare_embeddings(noisy, noisy + np.array([2e-5, 0]), margin=10).outcome == "separated"
    # A small clear coordinate counts next to a large noisy one.
    assert compare_embeddings(noisy, noisy + np.array([0, 1e-12]), margin=10).outcome == "separated"


def test_pyg_style_equals_the_dense_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressivity, "find_spec", lambda _: None)
    dense, sparse = (build(lambda _, t=t: t(), 7, "float64") for t in (MessagePassing, Sparse))
    graphs = [*STAR_SQUARE, *MOLECULES, adjacency(nx.empty_graph(2))]
    expected = embed(dense, graphs, "dense", "float64")
    np.testing.assert_allclose(embed(sparse, graphs, "pyg", "float64"), expected, rtol=1e-12)
    found = outcomes(lambda _: Sparse(), HEXAGON_TRIANGLES, STAR_SQUARE, style="pyg")
    assert found == ["merged", "separated"]


def test_pyg_itself_is_used_where_installed() -> None:
    pytest.importorskip("torch_geometric", reason="needs the extra g2n2[pyg]")
    from torch_geometric.data import Batch

    seen = []

    def make(_: int) -> Any:
        network = Sparse().double()
        return lambda data: (seen.append(data), network(data))[1]

    assert outcomes(make, HEXAGON_TRIANGLES, STAR_SQUARE, style="pyg") == ["merged", "separated"]
    for data in seen:
        assert isinstance(data, Batch)
        assert data.x.tolist() == [[1.0]] * data.num_nodes
        assert data.edge_weight.tolist() == [1.0] * data.edge_index.shape[1]
        assert data.x.dtype == data.edge_weight.dtype == torch.float64


def test_relabelings_come_back_from_their_seed() -> None:
    graph = decalin()
    copies = relabelled(graph, 5, (3, 1))
    assert np.array_equal(copies, relabelled(graph, 5, (3, 1)))
    assert not np.array_equal(copies[1], relabelled(graph, 5, (3, 2))[1])
    assert np.array_equal(copies[0], graph)
    for copy in copies[1:]:
        assert not np.array_equal(copy, graph)
        assert nx.is_isomorphic(nx.from_numpy_array(copy), nx.from_numpy_array(graph))


def test_seeds_give_other_weights_and_leave_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = (build(lambda _: MessagePassing(), seed, "float64") for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    rows = [embed(model, STAR_SQUARE, "dense", "float64") for model in (first, again, other)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2])
    assert rows[0].dtype == np.float64
    assert not first.training


def test_dropout_is_off() -> None:
    def make(_: int) -> nn.Module:
        return nn.Sequential(MessagePassing(), nn.Dropout(0.5))

    assert outcomes(make, HEXAGON_TRIANGLES, STAR_SQUARE) == ["merged", "separated"]


@pytest.mark.parametrize(
    ("make_model", "options", "message"),
    [
        (lambda _: None, {}, "make_model(0) returned NoneType"),
        (lambda _: lambda a: (a.sum(), a), {}, "returned tuple, expected a tensor"),
        (lambda _: lambda a: a.sum() * 1j, {}, "complex numbers"),
        (lambda _: lambda a: a.sum(0), {}, "6 numbers for one graph and 5 for the other"),
        (lambda _: lambda a: a.sum()[None][:0], {}, "expected the same positive count"),
        (lambda _: lambda a: a.sum(), {"style": "batch"}, "shape [] for 8 graphs, expected [8, d]"),
        (lambda _: lambda d: d.x.sum(0), {"style": "pyg"}, "pool with data.batch"),
        (lambda _: lambda a: a, {"style": "sparse"}, "expected one of dense, batch, pyg"),
        (lambda _: lambda a: a, {"seeds": ()}, "got 0 seeds"),
        (lambda _: lambda a: a, {"relabelings": 1}, "1 relabelings"),
        (lambda _: lambda a: a, {"margin": 0.5}, "margin 0.5"),
    ],
)
def test_mistakes_are_told(make_model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        network_separates(make_model, [(nx.cycle_graph(6), nx.cycle_graph(5))], **options)
    assert message in str(error.value)


def test_graphs_of_two_sizes_in_one_call_need_one_length() -> None:
    with pytest.raises(DataError, match="different lengths"):
        embed(lambda a: a.sum(-1), [*STAR_SQUARE, decalin()], "batch", "float64")
    with pytest.raises(DataError, match="different lengths"):
        embed(lambda a: a.sum(-1), [*STAR_SQUARE * 8, decalin()], "dense", "float64")


def test_message_passing_separates_no_basic_pair_of_brec() -> None:
    pairs = chosen(real_suite("brec"), range(60))
    assert set(outcomes(lambda _: MessagePassing(), *pairs, style="batch")) == {"merged"}


def test_matrix_products_separate_basic_pairs_of_brec() -> None:
    pairs = chosen(real_suite("brec"), range(0, 60, 5))
    options = {"style": "batch", "seeds": (0,), "relabelings": 4}
    assert set(outcomes(lambda _: MatrixProducts(), *pairs, **options)) == {"separated"}
