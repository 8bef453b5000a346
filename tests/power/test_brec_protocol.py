"""BREC's protocol: its statistics against tables and other code, its verdicts against theory."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from math import comb, inf, isclose, pi, sqrt, tan
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.graphs import adjacency
from g2n2.graphs.families import bicyclopentyl, decalin, rook_graph, shrikhande_graph
from g2n2.nn.expressivity import build, relabelled
from g2n2.power.brec_protocol import BrecResult, brec_protocol
from g2n2.power.suites import Suite
from g2n2.power.trials.brec_statistics import (
    RELEASED_THRESHOLD,
    f_quantile,
    hotelling_t2,
    hotelling_threshold,
    incomplete_beta,
    released_separates,
    released_statistic,
)
from g2n2.power.trials.brec_training import Training, train_apart

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


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(products: bool = True, **options: Any) -> BrecResult:
    options = {"style": "batch", **options}
    return brec_protocol(lambda _: Powers(products), SMALL, **options)


def draws(rows: int, columns: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))


# Upper points of the F distribution as printed in tables: area above, freedoms, value.
@pytest.mark.parametrize(
    ("area", "numerator", "denominator", "value"),
    [
        (0.05, 1, 1, 161.4476),
        (0.05, 3, 2, 19.1643),
        (0.05, 10, 3, 8.7855),
        (0.05, 2, 15, 3.68232),
        (0.025, 1, 1, 647.7890),
        (0.01, 8, 2, 99.3742),
        (0.01, 1, 1, 4052.1807),
        (0.01, 5, 10, 5.64),
        (0.05, 12, 5, 4.68),
    ],
)
def test_f_quantiles_are_those_of_the_tables(
    area: float, numerator: int, denominator: int, value: float
) -> None:
    digits = len(str(value).split(".")[1])
    assert round(f_quantile(1 - area, numerator, denominator), digits) == value


@given(st.floats(0.001, 0.999), st.integers(1, 500))
def test_f_quantiles_with_a_closed_form(p: float, m: int) -> None:
    assert isclose(f_quantile(p, 2, m), m / 2 * ((1 - p) ** (-2 / m) - 1), rel_tol=1e-9)
    assert isclose(f_quantile(p, 1, 1), tan(pi * p / 2) ** 2, rel_tol=1e-9)
    assert isclose(f_quantile(p, 3, m) * f_quantile(1 - p, m, 3), 1, rel_tol=1e-8)


@given(st.floats(0.001, 0.999), st.integers(1, 40), st.integers(1, 40))
def test_the_incomplete_beta_function_is_a_binomial_tail(x: float, a: int, b: int) -> None:
    n = a + b - 1
    tail = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert isclose(incomplete_beta(x, a, b), tail, rel_tol=1e-10, abs_tol=1e-14)


def test_the_released_threshold_is_the_textbook_one_for_16_dimensions() -> None:
    assert round(hotelling_threshold(16, 32, 0.05), 2) == RELEASED_THRESHOLD
    assert isclose(hotelling_threshold(1, 32), f_quantile(0.95, 1, 31))  # t² for one dimension


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


def test_the_level_of_the_test_is_alpha() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(2000, 32, 8)) @ rng.normal(size=(8, 8))
    values = np.array([hotelling_t2(d) for d in samples])
    for alpha in (0.05, 0.2):
        found = np.mean(values > hotelling_threshold(8, 32, alpha))
        assert abs(found - alpha) < 4 * sqrt(alpha * (1 - alpha) / 2000)
    assert not any(released_separates(released_statistic(d), 0.0) for d in samples[:200])


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
    assert released_separates(72.33, 1.0, threshold=20.0)


def test_verdicts_are_those_of_the_architecture() -> None:
    strong, weak = run(products=True), run(products=False)
    assert strong.indices("correct", "separated") == (0, 1, 2)
    assert strong.indices("released", "separated") == (0, 1, 2)
    assert strong.indices("correct", "merged") == (3,)
    assert weak.indices("correct", "separated") == weak.indices("released", "separated") == (0,)
    assert strong.by_category() == {
        "1-WL": _row(1, 1),
        "2-FWL": _row(2, 2),
        "beyond": _row(1, 0),
    }
    assert (strong.dimensions, strong.relabelings, strong.separated("correct")) == (8, 32, 3)
    assert strong.thresholds == {
        "released": 72.34,
        "correct": hotelling_threshold(8, 32, 0.05),
    }


def _row(pairs: int, separated: int) -> dict[str, int]:
    counts = {"released_separated": separated, "correct_separated": separated}
    return {"pairs": pairs, **counts, "released_unreliable": 0, "correct_unreliable": 0}


def test_the_released_statistic_asks_32_times_too_much() -> None:
    """A difference of 12 standard errors in one of 8 dimensions: found by T², lost as released."""

    def make(_: int) -> Any:
        rng = np.random.default_rng(0)

        def network(stack: torch.Tensor) -> torch.Tensor:
            rows = torch.tensor(rng.normal(size=(len(stack), 8)))
            rows[:, 0] += (stack @ stack * stack).sum(dim=(1, 2)) / 4  # 12 more in two triangles
            return rows

        return network

    [pair] = brec_protocol(make, SMALL, pairs=[1], style="batch").pairs
    assert pair.correct.verdict == "separated"
    assert pair.released.verdict == "merged"
    assert isclose(pair.correct.value, 32 * pair.released.value, rel_tol=1e-6)


def test_exact_invariants_are_separated_although_they_do_not_vary() -> None:
    def triangles(a: torch.Tensor) -> torch.Tensor:
        return torch.stack([(a @ a * a).sum(), a.sum()])

    result = brec_protocol(lambda _: triangles, SMALL)
    assert result.indices("correct", "separated") == (1,)
    assert result.indices("released", "separated") == ()


def test_a_difference_in_the_last_place_is_none() -> None:
    def last_place(a: torch.Tensor) -> torch.Tensor:
        row = a.new_full((8,), 1.9)
        row[0] += torch.finfo(a.dtype).eps * ((a @ a * a).sum() > 6)  # 6 lie in the rest
        return row

    assert len({last_place(torch.tensor(SMALL.graphs[i]))[0].item() for i in (2, 3)}) == 2
    assert brec_protocol(lambda _: last_place, SMALL, pairs=[1]).separated("correct") == 0


def test_a_network_that_tells_a_graph_from_itself_is_unreliable() -> None:
    def places_leak(_: int) -> Any:
        network = Powers(True).double()
        return lambda a: network(a) * (1 + 1e-3 * (torch.arange(len(a)) % 2)[:, None])

    result = brec_protocol(places_leak, SMALL, style="batch")
    assert result.indices("correct", "unreliable") == (0, 1, 2, 3)
    assert result.indices("released", "unreliable") == (0, 1, 2, 3)
    assert result.separated("correct") == result.separated("released") == 0


def test_numbers_that_are_not_finite() -> None:
    result = brec_protocol(lambda _: lambda a: a.sum() / 0 * torch.ones(3), SMALL, pairs=[0])
    assert (
        result.indices("correct", "not finite") == result.indices("released", "not finite") == (0,)
    )
    text = json.dumps(result.to_json(), allow_nan=False)
    assert json.loads(text)["pairs"][0]["correct"]["value"] is None


def test_a_result_can_be_repeated_and_written() -> None:
    result = run(pairs=[3, 1], seed=5)
    assert result == run(pairs=[3, 1], seed=5)
    assert result != replace(run(pairs=[3, 1], seed=6), seed=5)
    content = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [pair["index"] for pair in content["pairs"]] == [3, 1]
    assert content["correct_separated"] == content["released_separated"] == 1
    assert content["correct_unreliable"] == []
    assert content["by_category"] == result.by_category()
    assert content["thresholds"]["released"] == 72.34
    assert (content["alpha"], content["seed"], content["training"]) == (0.05, 5, None)


def test_single_precision_is_noisier() -> None:
    single, double = (run(pairs=[1], precision=name) for name in ("float32", "float64"))
    assert single.pairs[0].correct.value < 1e-6 * double.pairs[0].correct.value
    assert single.indices("correct", "separated") == (1,)


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
    settings = Training(epochs=300, learning_rate=0.05, stop_below=0.2)
    copies = [relabelled(SMALL.graphs[i], 8, (0, i)) for i in (2, 3)]
    strong, weak = (build(lambda _, t=t: Counts(t), 0, "float64") for t in (True, False))
    losses = train_apart(strong, *copies, settings, "batch", "float64")
    assert losses[0] > 0.5
    assert losses[-1] < 0.2 <= min(losses[:-1])
    assert 1 < len(losses) < 300
    assert not strong.training

    losses = train_apart(weak, *copies, replace(settings, epochs=5), "batch", "float64")
    assert losses == pytest.approx([1.0] * 5)  # equal embeddings: their cosine is 1


def test_the_protocol_trains_a_fresh_network_for_each_pair() -> None:
    made = []

    def make(_: int) -> nn.Module:
        made.append(Powers(True))
        return made[-1]

    settings = Training(epochs=2, learning_rate=0.01)
    result = brec_protocol(make, SMALL, pairs=[0, 1], style="batch", train=settings)
    assert len(made) == 3  # the first is replaced before it is used
    weights = [network.out[0].weight for network in made]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])
    assert result.indices("correct", "separated") == (0, 1)
    assert result.to_json()["training"]["epochs"] == 2


@pytest.mark.parametrize(
    ("make_model", "options", "message"),
    [
        (lambda _: lambda a: torch.ones(32), {}, "got 32 and 32"),
        (lambda _: lambda a: torch.ones(8), {"relabelings": 8}, "at least 9 relabelings"),
        (lambda _: lambda a: torch.ones(8), {"pairs": [4]}, "no pair 4 in suite small: it has 4"),
        (lambda _: lambda a: torch.ones(8), {"train": Training()}, "no parameters to train"),
        (lambda _: nn.Flatten(0), {"train": Training()}, "Flatten has no parameters to train"),
        (lambda _: lambda a: torch.ones(8), {"alpha": 0}, "probability inside (0, 1)"),
        (lambda _: lambda a: a.sum(0), {"pairs": [0, 1]}, "different lengths, 12 and 13 at pair 1"),
        (lambda _: lambda a: a, {"seed": -1}, "seed -1 is negative"),
        (lambda _: lambda a: a, {"precision": "half"}, "expected float32 or float64"),
    ],
)
def test_mistakes_are_told(make_model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        brec_protocol(make_model, SMALL, **options)
    assert message in str(error.value)


def test_brec_itself() -> None:
    folder = os.environ.get("G2N2_DATA", "")
    if not folder or not Path(folder, "expressivity", "brec_v3_pairs.g6.gz").is_file():
        pytest.skip(f"needs expressivity/brec_v3_pairs.g6.gz in the folder $G2N2_DATA: {folder!r}")
    suite, pairs = load_suite("brec"), (*range(0, 60, 6), *range(60, 110, 10))
    options: dict[str, Any] = {"pairs": pairs, "style": "batch"}
    strong = brec_protocol(lambda _: Powers(True), suite, **options)
    weak = brec_protocol(lambda _: Powers(False), suite, **options)
    assert (
        strong.indices("correct", "separated") == strong.indices("released", "separated") == pairs
    )
    assert weak.separated("released") == weak.separated("correct") == 0
    assert {name: row["pairs"] for name, row in strong.by_category().items()} == {
        "Basic": 10,
        "Regular": 5,
    }
