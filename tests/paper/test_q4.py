"""Q4: the images, the start made of Chebyshev polynomials, fits, ceilings."""

import math
from dataclasses import replace
from typing import Any, cast

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmark_files import real_file
from g2n2.data.benchmarks import load_filtering
from g2n2.data.graph_set import GraphSet, Target, plain_graphs
from g2n2.errors import LoweringError, TrainingError
from g2n2.nn import GrammarGNN
from g2n2.spectral.response import spectrum
from g2n2_paper.chebyshev_start import write_chebyshev_start
from g2n2_paper.filter_images import CPU, PARTS, Images, band_response, r_squared
from g2n2_paper.filter_runs import (
    SHRINK,
    FilterNetwork,
    FilterPlan,
    fit,
    make_network,
    numbers,
    one_run,
    outputs,
    read_features,
)
from g2n2_paper.q4 import (
    CHEBYSHEV,
    NETWORKS,
    cells,
    detail,
    metrics,
    of_adjacency,
    polynomial_ceiling,
    repeated_ceiling,
)
from g2n2_paper.runner import Job

SIDE = 7


def grid_matrices(corner: float) -> tuple[np.ndarray, np.ndarray]:
    """A of the grid, and (D − A) + a(D' − A') with A' found from coordinates."""
    grid = nx.grid_2d_graph(SIDE, SIDE)
    across = nx.Graph()
    across.add_nodes_from(grid)
    across.add_edges_from(
        ((i, j), (i + 1, j + s)) for i, j in grid for s in (1, -1) if (i + 1, j + s) in grid
    )
    stencil = [nx.laplacian_matrix(g, nodelist=list(grid)).toarray() for g in (grid, across)]
    return nx.to_numpy_array(grid), stencil[0] + corner * stencil[1]


def small_images(name: str = "band", device: torch.device = CPU) -> Images:
    """Three random images on a small grid; the targets are polynomials of D − A."""
    adjacency, stencil = grid_matrices(0.0)
    inputs = np.random.default_rng(0).random((3, SIDE * SIDE))
    half = stencil / 4
    filtered = [inputs @ half, inputs @ half @ half, inputs @ (np.eye(SIDE**2) - half)]
    inner = np.zeros((SIDE, SIDE), dtype=bool)
    inner[1:-1, 1:-1] = True
    targets = np.where(inner.ravel()[None, :, None], np.stack(filtered, -1), np.nan)
    graphs: GraphSet = plain_graphs(
        "small filtering",
        [adjacency] * 3,
        node_features=inputs.reshape(-1, 1).astype(np.float32),
        targets=targets.reshape(-1, 3),
        columns=tuple(Target(each) for each in ("low", "high", "band")),
        level="node",
        splits={k: np.array([i]) for i, k in enumerate(("train", "test", "validation"))},
    )
    return Images(graphs, name, device)


@pytest.mark.parametrize(
    ("layers", "width", "corner", "mirrored", "held"),
    [(4, 16, 0.0, 7, 3), (4, 16, 0.25, 7, 3), (4, 8, 0.5, 3, 3), (5, 16, 0.25, 7, 7)],
)
def test_the_start_holds_chebyshev_polynomials(
    layers: int, width: int, corner: float, mirrored: int, held: int
) -> None:
    images = small_images()
    network = replace(
        CHEBYSHEV, layers=layers, width=width, matrix_width=4, corner=corner, hold=0.3
    )
    model = make_network(network, images, seed=0)
    assert isinstance(model, GrammarGNN)
    found = numbers(read_features(model, images.batches["test"]))
    adjacency, stencil = grid_matrices(corner)
    mirror = np.eye(SIDE**2) - stencil / 4
    hold = np.where(adjacency.sum(1) == 4, 1.0, 0.3)[:, None]
    second = np.eye(SIDE**2) + hold * (mirror - np.eye(SIDE**2))
    for base, highest, start in ((mirror, mirrored, 1), (second, held, width // 2)):
        values = [images.input("test"), base @ images.input("test")]
        while len(values) <= highest:
            values.append(2 * base @ values[-1] - values[-2])
        assert found[:, 0] == pytest.approx(values[0], abs=1e-6)
        for degree in range(1, highest + 1):
            assert found[:, start + degree - 1] == pytest.approx(values[degree], abs=1e-5)


@pytest.mark.parametrize(
    "options", [{"node_features": 2}, {"preset": "modern"}, {"width": {"M": 3, "V_c": 8}}]
)
def test_the_start_refuses_other_networks(options: dict[str, Any]) -> None:
    model = GrammarGNN("r-G_L3", **{"node_features": 1, "preset": "paper", "width": 8, **options})
    with pytest.raises(LoweringError, match="needs r-G_L3, one node feature"):
        write_chebyshev_start(model, 0.0, 1.0)


def test_pairs_no_word_has_reached_stay_zero() -> None:
    images = small_images()
    network = replace(CHEBYSHEV, layers=3, width=4, matrix_width=6)
    model = make_network(network, images, seed=0)
    assert isinstance(model, GrammarGNN)
    memories, _ = model.final(*model.checked(images.batches["train"]))
    far = memories["M"][0, 0, -1].abs()  # opposite corners, 12 steps apart; three layers see 8
    assert float(far.detach().max()) == 0.0
    for name, weight in model.named_parameters():
        assert weight.requires_grad != (".M.mixer" in name and name.endswith("bias"))


def test_a_solved_readout_gives_the_best_polynomial_at_once() -> None:
    images = small_images("band")  # of degree 1 in D − A
    network = replace(CHEBYSHEV, layers=3, width=8, matrix_width=4, corner=0.0)
    model = make_network(network, images, seed=0)
    assert images.score("test", outputs(model, images, "test")) > 0.999


def test_a_solved_readout_over_random_layers_is_their_least_squares_fit() -> None:
    images = small_images("low")
    network = FilterNetwork("G2N2-solved", layers=3, width=8, matrix_width=4, solved=True)
    model = cast(GrammarGNN, make_network(network, images, seed=0))
    features = {part: numbers(read_features(model, images.batches[part])) for part in PARTS}
    found = []
    for shrink in SHRINK:
        inner, known = features["train"][images.mask], images.target("train")[images.mask]
        fitted = make_pipeline(StandardScaler(), Ridge(shrink * len(inner))).fit(inner, known)
        scores = [images.score(part, fitted.predict(features[part])) for part in PARTS]
        found.append(dict(zip(PARTS, scores, strict=True)))
    best = max(found, key=lambda scores: scores["validation"])
    for part in PARTS:
        score = images.score(part, outputs(model, images, part))
        assert score == pytest.approx(best[part], abs=1e-3)
    plain = make_network(replace(network, solved=False), images, seed=0)
    assert images.score("train", outputs(plain, images, "train")) < best["train"] - 0.1


PROJECTED = FilterNetwork(
    "G2N2-projected",
    layers=2,
    width=4,
    matrix_width=2,
    projected=1e-4,
    contrast=0.1,
    options={"pair_bias": False},
)


def test_layers_learn_under_a_readout_that_is_solved_at_every_step() -> None:
    images = replace(small_images("band"), contrast=0.1)
    model = cast(GrammarGNN, make_network(PROJECTED, images, seed=0))
    features = {part: numbers(read_features(model, images.batches[part])) for part in PARTS}
    found = []
    for shrink in SHRINK:  # what the network is worth before it has learned anything
        inner, known = features["train"][images.mask], images.target("train")[images.mask]
        fitted = make_pipeline(StandardScaler(), Ridge(shrink * len(inner))).fit(inner, known)
        scores = [images.score(part, fitted.predict(features[part])) for part in PARTS]
        found.append(dict(zip(PARTS, scores, strict=True)))
    best = max(found, key=lambda scores: scores["validation"])
    start = fit(model, images, 1e-2, FilterPlan(steps=0), PROJECTED.projected)
    assert start.scores == pytest.approx(best, abs=1e-5)
    run = fit(model, images, 1e-2, FilterPlan(steps=30, every=5), PROJECTED.projected)
    assert run.scores["validation"] == pytest.approx(max(run.curve), abs=1e-6)
    assert 1 - run.scores["train"] < (1 - best["train"]) / 2
    assert images.score("test", run.values) == run.scores["test"]


def test_a_readout_solved_at_every_step_sees_the_whole_schedule() -> None:
    plan = FilterPlan(steps=40, patience=2)
    assert plan.of(PROJECTED).patience == 40
    assert plan.of(replace(PROJECTED, projected=None)).patience == 2


def test_contrast_scales_what_a_network_reads_and_nothing_else() -> None:
    images = small_images("low")
    faint = replace(images, contrast=0.25)
    assert torch.equal(faint.batches["test"].nodes, 0.25 * images.batches["test"].nodes)
    assert np.array_equal(faint.input("test"), images.input("test"))
    same = [np.nan_to_num(each.target("test")) for each in (faint, images)]
    assert np.array_equal(*same)


def test_training_never_ends_below_its_start() -> None:
    images = small_images("high")
    network = replace(CHEBYSHEV, layers=2, width=4, matrix_width=4, corner=0.0)
    model = make_network(network, images, seed=0)
    before = {part: images.score(part, outputs(model, images, part)) for part in PARTS}
    run = fit(model, images, 1e-3, FilterPlan(runs=1, steps=60, every=5))
    assert run.curve[0] == pytest.approx(before["validation"], abs=1e-6)
    assert run.scores["validation"] == pytest.approx(max(run.curve), abs=1e-6)
    assert images.score("train", outputs(model, images, "train")) > before["train"]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: f"{n.name}-{n.layers}")
def test_every_network_of_the_table_takes_a_step(network: FilterNetwork) -> None:
    images = small_images("low")
    run = one_run(images, network, FilterPlan(steps=1), seed=0)
    assert all(map(math.isfinite, (*run["scores"].values(), *run["curve"], *run["learned"])))
    assert (len(run["curve"]), run["step"], run["seed"]) == (2, 1, 0)


def test_a_run_whose_gradient_is_not_finite_ends_with_what_was_best_before() -> None:
    images = small_images("low")
    network = FilterNetwork("GCN", baseline="GCN", width=2, layers=1)
    model = make_network(network, images, seed=0)
    run = fit(model, images, 1e30, FilterPlan(steps=40, patience=40, every=5))
    assert run.died
    assert run.best_step < run.step
    assert math.isfinite(run.scores["validation"])


def test_a_run_ends_when_nothing_gets_better() -> None:
    images = small_images("low")
    model = make_network(FilterNetwork("GCN", baseline="GCN", width=2, layers=1), images, seed=0)
    run = fit(model, images, 1e-12, FilterPlan(steps=100, patience=6, every=3))
    assert run.step < 30


def test_a_network_without_finite_outputs_is_refused() -> None:
    images = small_images("low")
    model = make_network(FilterNetwork("GCN", baseline="GCN", width=2), images, seed=0)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(math.nan)
    with pytest.raises(TrainingError, match="not finite before it is trained"):
        fit(model, images, 1e-3, FilterPlan(steps=2))


def test_metrics_and_response_are_those_of_the_median_run() -> None:
    runs = [
        {"scores": {"test": t, "validation": t + 0.1}, "parameters": 7, "learned": [t]}
        for t in (0.5, 0.9, 0.1)
    ]
    found = metrics(runs)
    assert found["test R² (median of runs)"] == 0.5
    assert (found["test R² (worst run)"], found["test R² (best run)"]) == (0.1, 0.9)
    assert detail({"truth": [1.0]}, runs)["response"] == {"truth": [1.0], "learned": [0.5]}


def test_a_response_is_the_slope_over_the_input() -> None:
    images = small_images("band")
    found = band_response(images, "test", -2.0 * images.input("test") + 5.0)
    assert found["learned"] == pytest.approx([-2.0] * len(found["learned"]))
    assert len(found["eigenvalues"]) == len(found["truth"]) > 10
    # I − (D − A)/4 passes low frequencies and turns high ones round, the crop's border aside.
    assert found["truth"][1] > 0.5 > -0.3 > found["truth"][-1]


@pytest.mark.parametrize("kind", ["laplacian", "adjacency"])
def test_a_polynomial_ceiling_is_plain_least_squares(kind: str) -> None:
    images = small_images("high")
    adjacency, laplacian = grid_matrices(0.0)
    spectra = {
        "laplacian": (laplacian, spectrum(adjacency, "combinatorial")),
        "adjacency": (adjacency, of_adjacency(adjacency)),
    }
    matrix, frequencies = spectra[kind]
    columns = {}
    for part in ("train", "test"):
        powers = [np.linalg.matrix_power(matrix, k) @ images.input(part) for k in range(2)]
        columns[part] = np.column_stack([*powers, np.ones(SIDE**2)])[images.mask]
    weights = np.linalg.lstsq(columns["train"], images.target("train")[images.mask], rcond=None)[0]
    expected = r_squared(columns["test"] @ weights, images.target("test")[images.mask])
    assert polynomial_ceiling(images, frequencies, 1, "train") == pytest.approx(expected)
    # The target is L² of the input, which A² is not: degrees are missing.
    whole = polynomial_ceiling(images, frequencies, 2, "train") == pytest.approx(1.0)
    assert whole == (kind == "laplacian")


def test_ceilings_of_the_band_pass_filter() -> None:
    data = real_file("filtering", "TwoDGrid30.mat").parents[1]
    images = Images(load_filtering(data), "band")
    frequencies = spectrum(images.adjacency, "combinatorial")
    own = polynomial_ceiling(images, frequencies, 30, "test")
    # The statement of the question has 0.917 for this and 0.973 for the border repeated.
    assert 0.90 < polynomial_ceiling(images, frequencies, 30, "train") < 0.93 < own < 0.95
    assert repeated_ceiling(images) == pytest.approx(0.973, abs=2e-3)


def test_a_cell_runs_end_to_end_and_keeps_its_runs(tmp_path: Any) -> None:
    data = str(real_file("filtering", "TwoDGrid30.mat").parents[1])
    cell = next(cell for cell in cells(smoke=True) if "ChebNet" in cell.name)
    job = Job(tmp_path, data=data, device="cpu")
    found = cell.run(job)
    assert (found.done, found.unit) == (1, "runs")
    assert set(found.detail["response"]) == {"eigenvalues", "learned", "truth"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("g2n2_paper.filter_runs.make_network", None)
        assert cell.run(job).metrics == found.metrics
