"""Q4: the images, the start made of Chebyshev polynomials, fits that can be stopped, ceilings."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmark_files import real_file
from g2n2.compiler.presets import find_preset
from g2n2.data.assembly import frozen, plain_graphs
from g2n2.data.benchmarks.filtering import load_filtering
from g2n2.data.graph_set import GraphSet, Target
from g2n2.errors import LoweringError, TrainingError
from g2n2.experiments.cell import Slice
from g2n2.experiments.q4 import cells
from g2n2.experiments.q4.ceilings import of_adjacency, polynomial_ceiling, repeated_ceiling
from g2n2.experiments.q4.cells import run_filter
from g2n2.experiments.q4.chebyshev_start import write_chebyshev_start
from g2n2.experiments.q4.descent import Descent
from g2n2.experiments.q4.fitting import Fit, fit, outputs, ridge
from g2n2.experiments.q4.images import CPU, PARTS, Images, r_squared
from g2n2.experiments.q4.networks import SHRINK, OneGraph, make_network, read_features
from g2n2.experiments.q4.responses import band_response
from g2n2.experiments.q4.settings import BUDGETS, CHEBYSHEV, NETWORKS, Budget, Network
from g2n2.experiments.record import Record
from g2n2.nn import GrammarGNN
from g2n2.nn.supports import SpectralSupports
from g2n2.spectral.response import spectrum

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
        splits=frozen({k: np.array([i]) for i, k in enumerate(("train", "test", "validation"))}),
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
    found = read_features(model, images, "test")
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


def test_the_start_names_the_channels_it_fills() -> None:
    model = GrammarGNN(
        "r-G_L3", node_features=1, width={"M": 4, "V_c": 12}, layers=4, task="node", preset="paper"
    )
    # f, T₁ … T₅ (room for half of 12), S₁ … S₃ (after four layers)
    assert write_chebyshev_start(model, 0.25, 0.5) == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_a_solved_readout_gives_the_best_polynomial_at_once() -> None:
    images = small_images("band")  # of degree 1 in D − A
    network = replace(CHEBYSHEV, layers=3, width=8, matrix_width=4, corner=0.0)
    model = make_network(network, images, seed=0)
    assert images.score("test", outputs(model, images, "test")) > 0.999


def test_a_solved_readout_over_random_layers_is_their_least_squares_fit() -> None:
    images = small_images("low")
    network = Network("G2N2-solved", layers=3, width=8, matrix_width=4, solved=True)
    model = cast(GrammarGNN, make_network(network, images, seed=0))
    features = {part: read_features(model, images, part) for part in PARTS}
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


def test_training_goes_on_from_the_start_and_never_ends_below_it(tmp_path: Path) -> None:
    images = small_images("high")
    network = replace(CHEBYSHEV, layers=2, width=4, matrix_width=4, corner=0.0, rate=1e-3)
    model = make_network(network, images, seed=0)
    before = {part: images.score(part, outputs(model, images, part)) for part in PARTS}
    budget = Budget((network,), runs=1, steps=60, every=5)
    run = fit(model, images, network, budget, tmp_path / "run", math.inf)
    assert run is not None
    assert run.curve[0] == pytest.approx(before["validation"], abs=1e-6)
    assert run.scores["validation"] == pytest.approx(max(run.curve), abs=1e-6)
    assert images.score("train", outputs(model, images, "train")) > before["train"]


def test_a_run_stopped_and_taken_up_is_the_same_run(tmp_path: Path) -> None:
    images = small_images("low")
    network = Network("ChebNet", baseline="ChebNet", width=4, options={"order": 3})
    budget = Budget((network,), steps=8, every=2)
    model = make_network(network, images, seed=0)
    straight = fit(model, images, network, budget, tmp_path / "a", math.inf)
    calls = iter([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])  # stopped after the third step
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("g2n2.experiments.q4.fitting.time.monotonic", lambda: next(calls))
        model = make_network(network, images, seed=0)
        assert fit(model, images, network, budget, tmp_path / "b", 0.5) is None
    model = make_network(network, images, seed=1)  # the checkpoint brings its own weights
    assert fit(model, images, network, budget, tmp_path / "b", math.inf) == straight


def test_a_run_that_is_killed_goes_on_from_its_last_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = small_images("low")
    network = Network("ChebNet", baseline="ChebNet", width=4, options={"order": 3})
    budget = Budget((network,), steps=8, every=2)
    model = make_network(network, images, seed=0)
    straight = fit(model, images, network, budget, tmp_path / "a", math.inf)
    monkeypatch.setattr("g2n2.experiments.q4.fitting.SAVE_EVERY", -1.0)
    seen: list[int] = []

    def killed(progress: Fit) -> None:
        seen.append(progress.step)
        if progress.step == 6:
            raise KeyboardInterrupt

    model = make_network(network, images, seed=0)
    with pytest.raises(KeyboardInterrupt):
        fit(model, images, network, budget, tmp_path / "b", math.inf, killed)
    assert seen == [2, 4, 6]
    again: list[int] = []
    model = make_network(network, images, seed=1)
    run = fit(
        model, images, network, budget, tmp_path / "b", math.inf, lambda p: again.append(p.step)
    )
    assert (run, again) == (straight, [6, 8])


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: f"{n.name}-{n.layers}")
def test_every_network_of_the_table_takes_a_step(network: Network, tmp_path: Path) -> None:
    images = small_images("low")
    model = make_network(network, images, seed=0)
    run = fit(model, images, network, Budget((network,), steps=1), tmp_path / "run", math.inf)
    assert run is not None
    assert all(math.isfinite(value) for value in (*run.scores.values(), *run.curve))
    assert len(run.curve) == 2


def test_a_run_whose_gradient_is_not_finite_ends_with_what_was_best_before(tmp_path: Path) -> None:
    images = small_images("low")
    network = Network("GCN", baseline="GCN", width=2, layers=1, rate=1e30)
    model = make_network(network, images, seed=0)
    budget = Budget((network,), steps=40, patience=40, every=5)
    run = fit(model, images, network, budget, tmp_path / "run", math.inf)
    assert run is not None
    assert run.died
    assert run.step % 5 == 0, "looked at only then: a look waits for the device"
    assert run.best_step < run.step
    assert math.isfinite(run.scores["validation"])


@pytest.mark.gpu
@pytest.mark.parametrize("preset", ["modern", "paper"])
def test_replayed_steps_are_the_steps_taken_plainly(preset: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    images = small_images("band", torch.device("cuda"))
    network = Network("G2N2", preset=preset, width=8, layers=2)
    runs = [Descent(make_network(network, images, seed=0), images, 1e-3) for _ in range(2)]
    runs[1].records = False
    for rate in (1e-3, 2e-3, 5e-4, 1e-3):
        mine, theirs = (float(run.step(rate)) for run in runs)
        assert mine == pytest.approx(theirs, rel=1e-3)
    for mine, theirs in zip(runs[0].learned, runs[1].learned, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_a_run_ends_when_nothing_gets_better(tmp_path: Path) -> None:
    images = small_images("low")
    network = Network("GCN", baseline="GCN", width=2, layers=1, rate=1e-12)
    budget = Budget((network,), steps=100, patience=6, every=3)
    model = make_network(network, images, seed=0)
    run = fit(model, images, network, budget, tmp_path / "run", math.inf)
    assert run is not None
    assert run.step < 30


def test_r_squared_and_ridge_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    columns, truth = random.normal(size=(40, 5)) * [1, 10, 0.1, 3, 2] + 4, random.normal(size=40)
    weights, offset = ridge(columns, truth, 0.05)
    scaled = (columns - columns.mean(0)) / columns.std(0)
    expected = Ridge(alpha=0.05 * 40).fit(scaled, truth).predict(scaled)
    assert columns @ weights + offset == pytest.approx(expected)
    assert r_squared(expected, truth) == pytest.approx(r2_score(truth, expected))


def test_ridge_leaves_out_a_constant_column() -> None:
    random = np.random.default_rng(2)
    columns = np.column_stack([random.normal(size=20), np.full(20, 7.0)])
    weights, offset = ridge(columns, 3 * columns[:, 0] + 1, 1e-12)
    assert weights.tolist() == pytest.approx([3, 0])
    assert offset == pytest.approx(1)


@pytest.mark.parametrize("learned", [True, False])
def test_supports_of_one_graph_are_those_of_every_step(learned: bool) -> None:
    torch.manual_seed(0)
    supports = SpectralSupports(4, learned=learned)
    batch = small_images().batches["train"]
    expected = supports(batch.adjacency, batch.mask)
    assert torch.equal(
        OneGraph(supports, batch.adjacency, batch.mask)(batch.adjacency, batch.mask), expected
    )


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


def test_cells_are_named_and_the_hardest_filter_comes_first() -> None:
    names = [cell.name for cell in cells("full")]
    assert names[:2] == ["ceilings", "band/G2N2-chebyshev/layers-6"]
    for layers in (3, 5, 6):
        assert {f"{f}/G2N2/layers-{layers}" for f in ("low", "high", "band")} <= set(names)
    for model in ("PPGN", "GNNML3", "ChebNet", "GCN"):
        assert f"band/{model}/layers-3" in names
    assert len(names) == len(set(names))
    assert BUDGETS["full"].runs == 10


def test_a_cell_runs_end_to_end_and_is_not_run_twice(tmp_path: Path) -> None:
    data = str(real_file("filtering", "TwoDGrid30.mat").parents[1])
    cell = next(cell for cell in cells("smoke") if "ChebNet" in cell.name)
    published: list[int] = []
    shown = Slice(tmp_path, data=data, device="cpu", publish=lambda one: published.append(one.done))
    record = cell.run(shown)
    assert (record.done, record.planned, published) == (1, 1, [1])
    assert record.metrics["test R² (median of runs)"] == record.detail["runs"][0]["scores"]["test"]
    assert set(record.detail["response"]) == {"eigenvalues", "learned", "truth"}
    record.write(tmp_path / "results")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("g2n2.experiments.q4.networks.make_network", None)
        again = cell.run(Slice(work=tmp_path, data=data, device="cpu"))
    assert again.metrics == record.metrics
    (kept,) = tmp_path.glob("data-*/run-0.json")
    kept.write_text('{"seed": 0}')
    assert cell.run(Slice(work=tmp_path, data=data, device="cpu")).metrics == record.metrics


def test_runs_of_a_record_are_gone_on_with_where_the_work_folder_is_gone(tmp_path: Path) -> None:
    data = str(real_file("filtering", "TwoDGrid30.mat").parents[1])
    network = Network("ChebNet", baseline="ChebNet", width=4, options={"order": 3})
    plan = Budget((network,), runs=2, steps=2, every=1)

    def run(folder: str, *known: Record) -> Record:
        given = Slice(tmp_path / folder, data=data, device="cpu", known=known)
        given.work.mkdir()
        return run_filter("low", network, "smoke", plan, given)

    whole = run("first")
    runs, response = whole.detail["runs"], whole.detail["response"]
    first = replace(whole, done=1, detail={"runs": runs[:1]})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("g2n2.experiments.q4.networks.make_network", only_seed(1))
        on = run("second", replace(whole, data={"filtering": "other"}), first)
    assert (on.done, on.metrics, on.detail["runs"]) == (2, whole.metrics, runs)
    assert on.detail["response"] == response
    middle = min(runs, key=lambda one: one["scores"]["test"])  # the lower one of two
    assert response["learned"] == middle["learned"] != response["truth"]
    assert runs[0]["learned"] != runs[1]["learned"]

    def with_runs(*said: dict[str, Any]) -> Record:
        return replace(first, detail={"runs": list(said)})

    odd = {
        "other-data": replace(first, data={"filtering": "other"}),
        "no-response": with_runs({**runs[0], "learned": []}),
        "short-response": with_runs({**runs[0], "learned": runs[0]["learned"][:1]}),
        "nothing-known": with_runs({**runs[0], "scores": {**runs[0]["scores"], "test": math.nan}}),
        "too-good": with_runs({**runs[0], "scores": {**runs[0]["scores"], "test": 7.0}}),
        "no-steps": with_runs({**runs[0], "parameters": True}),
        "death-unknown": with_runs({**runs[0], "died": None}),
        "twice": with_runs(runs[0], runs[0]),
    }
    for folder, known in odd.items():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("g2n2.experiments.q4.networks.make_network", only_seed(1))
            with pytest.raises(AssertionError, match="seed 0"):
                run(folder, known)


def only_seed(wanted: int) -> Callable[..., Any]:
    def made(network: Network, images: Images, seed: int) -> Any:
        assert seed == wanted, f"seed {seed} is made again"
        return make_network(network, images, seed)

    return made


def test_a_kept_run_of_another_seed_is_not_believed(tmp_path: Path) -> None:
    data = str(real_file("filtering", "TwoDGrid30.mat").parents[1])
    network = Network("ChebNet", baseline="ChebNet", width=4, options={"order": 3})
    given = Slice(tmp_path, data=data, device="cpu")
    plan = Budget((network,), runs=2, steps=2, every=1)
    whole = run_filter("low", network, "smoke", plan, given)
    (folder,) = tmp_path.glob("data-*")
    (folder / "run-1.json").write_text((folder / "run-0.json").read_text())
    again = run_filter("low", network, "smoke", plan, given)
    assert [run["seed"] for run in again.detail["runs"]] == [0, 1]
    assert again.metrics == whole.metrics


def test_a_run_whose_outputs_are_not_finite_ends_with_what_was_best_before(tmp_path: Path) -> None:
    network = Network("ChebNet", baseline="ChebNet", width=4, options={"order": 3})
    images = small_images()
    model = make_network(network, images, 0)
    budget = Budget((network,), steps=6, every=1)
    scores = iter([0.25, 0.5, -math.inf])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Images, "score", lambda *_: next(scores, 0.5))
        patched.setattr("g2n2.experiments.q4.fitting.outputs", lambda *_: np.zeros(1))
        # A look that is better scores the three images.
        scores = iter([0.25, 0.2, 0.3, -math.inf])
        found = fit(model, images, network, budget, tmp_path, math.inf)
        assert found is not None
        assert (found.died, found.curve, found.scores["test"]) == (True, [0.25], 0.3)
        scores = iter([math.nan])
        with pytest.raises(TrainingError, match="no finite numbers"):
            fit(model, images, network, budget, tmp_path, math.inf)


def test_ppgn_in_other_blocks_differs_from_g2n2_by_its_grammar_alone() -> None:
    images = small_images()
    made = {
        name: make_network(next(n for n in NETWORKS if (n.name, n.layers) == (name, 3)), images, 0)
        for name in ("G2N2", "PPGN-alike")
    }
    g2n2, alike = (cast(GrammarGNN, one) for one in made.values())
    assert alike.plan.preset == g2n2.plan.preset == find_preset("modern")
    assert alike.plan.grammar.name == "PPGN"
    given = next(n for n in NETWORKS if n.name == "PPGN-alike").options
    assert alike.readout.unit == given["typical_size"] == 30 * 30
    assert g2n2.readout.unit == len(images.mask)
