"""BREC: its statistics against other code, its verdicts against theory, its cells."""

from dataclasses import replace
from math import inf, isclose, sqrt
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from benchmark_files import real_suite
from g2n2.errors import DataError
from g2n2.graphs import adjacency
from g2n2.graphs.families import bicyclopentyl, cfi, decalin, rook_graph, shrikhande_graph
from g2n2.graphs.symmetry import orbits
from g2n2.nn import marks
from g2n2.nn.expressivity import build, relabelled
from g2n2.power.suites import Suite
from g2n2_paper import brec
from g2n2_paper.brec import (
    BrecTest,
    BrecTraining,
    brec_cell,
    brec_tests,
    clearest_gap,
    judge,
    of_pairs,
    train_apart,
)
from g2n2_paper.brec_statistics import (
    RELEASED_THRESHOLD,
    hotelling_t2,
    hotelling_threshold,
    released_separates,
    released_statistic,
)
from g2n2_paper.contenders import CONTENDERS, MARKED, Contender, Standardise, calibrate, exact_power
from g2n2_paper.runner import Job, run_cells

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")

# The same irregular rest beside each graph: relabelings of a cycle alone give the same floats.
REST = nx.gnp_random_graph(7, 0.5, seed=3)
SMALL = Suite(
    "small",
    (
        *(
            adjacency(nx.disjoint_union(graph, REST))
            for graph in (
                nx.star_graph(4),
                nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)),
                nx.cycle_graph(6),
                nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
            )
        ),
        decalin(),
        bicyclopentyl(),
        rook_graph(4),
        shrikhande_graph(),
    ),
    pairs=((0, 1), (2, 3), (4, 5), (6, 7)),
    categories=("1-WL", "2-FWL", "2-FWL", "beyond"),
)


class Powers(nn.Module):
    """Reads `A/3` by matrix products (2-FWL can) or by products with vectors only (1-WL can)."""

    def __init__(self, products: bool) -> None:
        super().__init__()
        self.products = products
        self.out = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        p = m = a / 3
        v = torch.tanh(m.sum(dim=-1, keepdim=True))
        rows = []
        for _ in range(4):
            p, v = torch.tanh(p @ m), torch.tanh(m @ v)
            square, node = (p * p * m).sum(dim=(-2, -1)), (v * v * v).sum(dim=(-2, -1))
            rows.append(square if self.products else node)
        return self.out(torch.stack(rows, dim=-1))


def pair_tests(make: Any, index: int, suite: Suite = SMALL, **options: Any) -> tuple[BrecTest, ...]:
    graphs = [suite.graphs[i] for i in suite.pairs[index]]
    seed = options.pop("seed", 0)
    return brec_tests(build(make, seed, "float64"), graphs, (seed, index), **options)


def verdicts_of(make: Any, **options: Any) -> list[tuple[str, ...]]:
    """Released and textbook verdict on every pair of the small suite."""
    return [tuple(t.verdict for t in pair_tests(make, i, **options)) for i in range(4)]


def draws(rows: int, columns: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))


# Upper 5 % points of the F distribution as printed in tables: freedoms, value.
@pytest.mark.parametrize(
    ("dimensions", "samples", "value"), [(1, 2, 161.4476), (3, 5, 19.1643), (10, 13, 8.7855)]
)
def test_thresholds_are_made_of_printed_f_quantiles(
    dimensions: int, samples: int, value: float
) -> None:
    factor = dimensions * (samples - 1) / (samples - dimensions)
    assert hotelling_threshold(dimensions, samples) / factor == pytest.approx(value, abs=1e-4)


def test_the_released_threshold_is_the_textbook_one_for_16_dimensions() -> None:
    assert round(hotelling_threshold(16, 32, 0.05), 2) == RELEASED_THRESHOLD


def test_t2_is_the_textbook_formula() -> None:
    d = draws(32, 16) + 0.3
    mean = d.mean(axis=0)
    expected = 32 * mean @ np.linalg.inv(np.cov(d.T)) @ mean
    assert isclose(hotelling_t2(d), expected, rel_tol=1e-9)
    assert isclose(released_statistic(d), expected / 32, rel_tol=1e-9)
    one = d[:, :1]
    t = one.mean() / (one.std(ddof=1) / sqrt(32))
    assert isclose(hotelling_t2(one), t**2, rel_tol=1e-12)


def test_t2_does_not_depend_on_units() -> None:
    d = draws(32, 6) + 1
    units = np.array([1e-140, 1e-9, 1, 1, 1e9, 1e140])
    assert isclose(hotelling_t2(d), hotelling_t2(d * units), rel_tol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_released_statistic_is_what_torch_computes(dtype: Any) -> None:
    d = draws(32, 4).astype(dtype)
    d = np.concatenate([d, d[:, :2] + d[:, 2:]], axis=1) + dtype(0.5)  # covariance of rank 4
    x = torch.tensor(d.T)
    mean = x.mean(dim=1, keepdim=True)
    expected = (mean.T @ torch.linalg.pinv(torch.cov(x)) @ mean).item()
    assert isclose(released_statistic(d), expected, rel_tol=1e-3 if dtype == np.float32 else 1e-9)


def test_differences_that_do_not_vary() -> None:
    constant = np.tile([1.0, 0.0, 2.0], (32, 1))
    assert hotelling_t2(constant) == inf
    assert hotelling_t2(0 * constant) == 0
    assert isclose(hotelling_t2(constant, resolution=0.5), 32 * 5 / 0.25)
    assert hotelling_t2(constant * 1e-9, resolution=1e-6) < 1e-3
    assert released_statistic(constant) == 0  # the pseudo-inverse of zero is zero
    noisy = draws(32, 2)
    collinear = np.concatenate([noisy, noisy.sum(axis=1, keepdims=True)], axis=1)
    assert isclose(hotelling_t2(collinear), hotelling_t2(noisy), rel_tol=1e-9)
    assert hotelling_t2(collinear + np.array([0, 0, 1.0])) == inf


def test_the_released_comparison() -> None:
    assert released_separates(72.35, 1.0)
    assert not released_separates(72.33, 1.0)
    assert not released_separates(100.0, 100.0005)


def test_verdicts_are_those_of_the_architecture() -> None:
    both, neither = ("separated", "separated"), ("merged", "merged")
    assert verdicts_of(lambda _: Powers(True)) == [both, both, both, neither]
    assert verdicts_of(lambda _: Powers(False)) == [both, neither, neither, neither]


def test_the_released_statistic_asks_32_times_too_much() -> None:
    """A difference of 12 standard errors in one of 8 dimensions: found by T², lost as released."""

    def make(_: int) -> Any:
        rng = np.random.default_rng(0)

        def network(stack: torch.Tensor) -> torch.Tensor:
            rows = torch.tensor(rng.normal(size=(len(stack), 8)))
            rows[:, 0] += (stack @ stack * stack).sum(dim=(1, 2)) / 4  # 12 more in two triangles
            return rows

        return network

    released, correct = pair_tests(make, 1)
    assert (released.verdict, correct.verdict) == ("merged", "separated")
    assert isclose(correct.value, 32 * released.value, rel_tol=1e-6)


def test_a_network_that_tells_a_graph_from_itself_is_unreliable() -> None:
    def places_leak(_: int) -> Any:
        network = Powers(True).double()
        return lambda a: network(a) * (1 + 1e-3 * (torch.arange(len(a)) % 2)[:, None])

    assert verdicts_of(places_leak) == [("unreliable", "unreliable")] * 4


def test_numbers_that_are_not_finite_and_repeated_runs() -> None:
    nothing = pair_tests(lambda _: lambda a: a.sum((1, 2))[:, None] / 0, 0)
    assert {test.verdict for test in nothing} == {"not finite"}
    make = lambda _: Powers(True)  # noqa: E731
    assert pair_tests(make, 1, seed=5) == pair_tests(make, 1, seed=5) != pair_tests(make, 1, seed=6)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda _: lambda a: torch.ones(len(a), 32), {}, "got 32 and 32"),
        (
            lambda _: nn.Flatten(1),
            {"training": BrecTraining()},
            "Flatten has no parameters to train",
        ),
    ],
)
def test_mistakes_are_told(make: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        pair_tests(make, 0, **options)


class Counts(nn.Module):
    """A linear layer on the numbers of edges and, if it may, triangles."""

    def __init__(self, triangles: bool) -> None:
        super().__init__()
        self.triangles = triangles
        self.out = nn.Linear(2, 4)

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        counts = torch.stack([a, (a @ a * a) * self.triangles]).sum(dim=(-2, -1)).T
        return self.out(counts / 10)


def test_training_pushes_a_pair_apart_and_stops_early() -> None:
    settings = BrecTraining(epochs=300, learning_rate=0.05, stop_below=0.2)
    copies = [relabelled(SMALL.graphs[i], 8, (0, i)) for i in (2, 3)]
    strong, weak = (build(lambda _, t=t: Counts(t), 0, "float64") for t in (True, False))
    losses = train_apart(strong, *copies, settings)
    assert losses[0] > 0.5
    assert losses[-1] < 0.2 <= min(losses[:-1])
    assert 1 < len(losses) < 300
    assert not strong.training

    losses = train_apart(weak, *copies, replace(settings, epochs=5))
    assert losses == pytest.approx([1.0] * 5)  # equal embeddings: their cosine is 1


@pytest.fixture(scope="module")
def pairs() -> Suite:
    """C6 and two triangles, which two products tell apart; and a pair that 3-WL merges."""
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = (adjacency(nx.cycle_graph(6)), adjacency(triangles), rook_graph(4), shrikhande_graph())
    return Suite("brec", graphs, ((0, 1), (2, 3)), ("cycles", "regular"))


ONE = BrecTraining(epochs=1)


def narrow(name: str = "G2N2-3") -> Contender:
    return replace(CONTENDERS[name], width=8)


def test_a_network_tells_apart_what_its_grammar_does_and_no_more(pairs: Suite) -> None:
    cycles, regular = (judge(narrow(), ONE, pairs, i, CPU) for i in (0, 1))
    assert (cycles["released"], cycles["hotelling"], cycles["clear"]) == (*["separated"] * 2, True)
    weak = judge(narrow("GIN"), ONE, pairs, 0, CPU)
    for merged in (regular, weak):
        assert (merged["released"] == "separated", merged["clear"]) == (False, False)


@pytest.mark.parametrize("name", ["G2N2Σ-3", "L1ΣΣ-9"])
def test_a_network_with_marks_goes_past_3wl_and_not_past_its_own_bound(
    name: str, pairs: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    # CFI graphs of K5 are beyond 4-WL. The orbits of relabelled copies are known from those of the
    # graph, and never searched.
    twisted = cfi(nx.complete_graph(5))
    suite = Suite("brec", (*pairs.graphs, *twisted), (*pairs.pairs, (4, 5)), ("a", "b", "c"))
    contender = replace(MARKED[name], width=4, layers=3)
    known = {m.tobytes() for m in (*pairs.graphs, *twisted)}
    searched = []
    monkeypatch.setattr(marks, "orbits", lambda m: searched.append(m) or orbits(m))
    assert judge(contender, ONE, suite, 1, CPU)["released"] == "separated"
    assert {m[..., 0].tobytes() for m in searched} <= known
    assert exact_power(contender, suite).beyond == {2}


def test_a_cell_counts_verdicts_beside_exact_power(
    pairs: Suite, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brec, "_brec", lambda data: pairs)
    judged = []
    real = brec.judge
    monkeypatch.setattr(brec, "judge", lambda *a: judged.append(a[3]) or real(*a))
    cell = brec_cell(narrow(), training=ONE)
    job = Job(tmp_path, device="cpu")
    first, second = cell.run(job), cell.run(job)
    assert judged == [0, 1], "a pair that was judged is not judged again"
    assert first.metrics == second.metrics
    assert first.metrics["trained separated"] == first.metrics["exact separated"] == 1
    assert first.metrics["separated beyond the bound"] == 0
    assert (first.metrics["exact bound"], first.metrics["judged within the bound"]) == (1, 1)
    assert first.metrics["trained separated, regular"] == 0
    assert [pair["category"] for pair in first.detail["pairs"]] == ["cycles", "regular"]


def test_what_is_separated_beyond_the_bound_is_counted(pairs: Suite) -> None:
    exact = exact_power(CONTENDERS["G2N2-3"], pairs)
    assert (exact.metrics["exact separated"], exact.metrics["exact bound"]) == (1, 1)
    assert exact.beyond == {1}
    assert exact_power(CONTENDERS["GIN"], pairs).beyond == {0, 1}
    assert exact_power(CONTENDERS["GNNML3"], pairs).metrics["exact separated"] is None
    fine = {"category": "cycles", "released": "separated", "hotelling": "separated", "clear": True}
    wrong = {**fine, "pair": 1, "category": "regular", "hotelling": "merged"}
    counts = brec.metrics([{**fine, "pair": 0}, wrong], exact)
    assert counts["separated beyond the bound"] == 1
    assert counts["separated beyond the bound, Hotelling's T²"] == 0
    assert (counts["trained separated"], counts["judged within the bound"]) == (2, 1)


def test_some_pairs_are_a_suite_of_their_own() -> None:
    graphs = tuple(adjacency(nx.path_graph(n)) for n in range(1, 7))
    suite = Suite("s", graphs, ((0, 1), (2, 3), (4, 5)), ("a", "b", "c"))
    few = of_pairs(suite, (2, 0))
    assert (few.pairs, few.categories) == (((0, 1), (2, 3)), ("c", "a"))
    assert [len(graph) for graph in few.graphs] == [5, 6, 1, 2]


def test_pairs_of_a_record_are_not_judged_again(
    pairs: Suite, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brec, "_brec", lambda data: pairs)
    judged = []
    real = brec.judge
    monkeypatch.setattr(brec, "judge", lambda *a: judged.append(a[3]) or real(*a))
    cell = replace(brec_cell(narrow(), training=ONE), parts=2)
    job = Job(tmp_path / "work", tmp_path / "results", "cpu")
    run_cells([cell], job)
    whole = cell.record(job.results)
    verdicts = whole.detail["pairs"]
    replace(whole, done=1, detail={"pairs": verdicts[1:]}).write(job.results)
    assert not cell.is_whole(cell.record(job.results))
    run_cells([cell], replace(job, work=tmp_path / "other"))
    assert judged == [0, 1, 0]
    again = cell.record(job.results)
    assert again.detail["pairs"][1] == verdicts[1]
    assert again.metrics == whole.metrics


def test_a_gap_is_measured_by_the_spread_of_relabelings():
    first = np.array([[0.0, 5.0], [1.0, 5.0]])
    second = np.array([[10.0, 5.0], [12.0, 5.0]])
    assert clearest_gap(first, second) == pytest.approx(10.5 / 2.0)
    exact = np.array([[3.0], [3.0]])
    assert clearest_gap(exact, exact) == 0.0
    assert clearest_gap(exact, exact + 1.0) > 1e9
    assert clearest_gap(exact, exact * (1 + 1e-15)) < 1.0
    assert np.isnan(clearest_gap(first, second * np.nan))


def test_calibrated_maps_give_values_of_size_one():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4, bias=False)).double()
    rows = torch.randn(2, 50, 3, dtype=torch.float64) * torch.tensor([1e-6, 1.0, 1e4]) + 7.0
    calibrate(model, lambda: model(rows))
    hidden = model[0](rows).flatten(0, 1)
    assert hidden.mean(0).abs().max() < 1e-6
    assert (hidden.std(0, correction=0) - 1).abs().max() < 1e-6
    assert (model(rows).flatten(0, 1).std(0, correction=0) - 1).abs().max() < 1e-6
    # Columns of any size weigh the same.
    per_column = model[0].weight * rows.flatten(0, 1).std(0)
    assert per_column.norm(dim=0).max() < 20 * per_column.norm(dim=0).min()


def test_calibration_does_not_centre_a_constant_away():
    model = nn.Linear(1, 3)
    ones = torch.ones(5, 4, 1)
    calibrate(model, lambda: model(ones))
    assert torch.allclose(model(ones).abs(), torch.ones(5, 4, 3))
    assert not model._forward_pre_hooks


def test_standardised_features_make_small_differences_large():
    part = Standardise(2).double()
    rows = torch.tensor([[1.0, 3.0], [1.0 + 1e-9, 3.0 + 1e-15]], dtype=torch.float64)
    seen = part(rows)
    assert torch.allclose(seen[:, 0], torch.tensor([-1.0, 1.0]).double(), atol=1e-6)
    assert seen[:, 1].abs().max() < 0.01  # rounding stays small
    part.eval()
    assert torch.allclose(part(rows + 1e-9)[:, 0], torch.tensor([1.0, 3.0]).double(), atol=1e-5)


def test_brec_itself() -> None:
    suite = real_suite("brec")
    for index in (0, 24, 54, 60, 100):
        strong, weak = (pair_tests(lambda _, p=p: Powers(p), index, suite) for p in (True, False))
        assert {test.verdict for test in strong} == {"separated"}
        assert not any(test.verdict == "separated" for test in weak)
