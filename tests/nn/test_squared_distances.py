"""D, the squared distances: moments of charges as sentences of a grammar."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from g2n2 import GrammarGNN, GraphBatch, find_grammar, load
from g2n2.data.distances import squared_distances
from g2n2.data.graph_set import GraphSet, Target
from g2n2.data.store import GraphStore
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.run import Run
from g2n2.training.session import train_config

CHARGES = 0  # the first node feature is the charge


def molecules(count: int = 6, seed: int = 0) -> GraphSet:
    """Random points with a charge and a class each, on paths; no target."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, count)
    edges = [np.array([[i, i + 1] for i in range(n - 1)]).T for n in sizes]
    both = [np.concatenate([e, e[::-1]], axis=1) for e in edges]
    total = int(sizes.sum())
    return GraphSet(
        name="charges",
        sizes=sizes,
        edge_counts=np.array([e.shape[1] for e in both]),
        edges=np.concatenate(both, axis=1),
        node_features=random.normal(size=(total, 2)).astype(np.float32),
        edge_features=np.zeros((sum(e.shape[1] for e in both), 0), np.float32),
        targets=np.zeros((count, 1)),
        columns=(Target("t"),),
        positions=random.normal(size=(total, 3)).astype(np.float32) * 2,
        node_names=("charge", "other"),
    )


def points(graphs: GraphSet, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Charges and positions of one graph, in float64."""
    span = slice(*graphs.node_offsets[index : index + 2])
    assert graphs.positions is not None
    charges = graphs.node_features[span, CHARGES].astype(np.float64)
    return charges, graphs.positions[span].astype(np.float64)


def second_moment(q: np.ndarray, x: np.ndarray) -> float:
    """Σ qᵢqⱼd²ᵢⱼ, pair by pair."""
    pairs = [(i, j) for i in range(len(q)) for j in range(len(q))]
    return sum(q[i] * q[j] * float(((x[i] - x[j]) ** 2).sum()) for i, j in pairs)


def squared_dipole(q: np.ndarray, x: np.ndarray) -> float:
    """‖Σ (qᵢ − q̄) xᵢ‖²: of charges that are made to sum to zero."""
    return float((((q - q.mean())[:, None] * x).sum(0) ** 2).sum())


def spread(q: np.ndarray, x: np.ndarray) -> float:
    """Σ qᵢ ‖xᵢ − x̄‖²."""
    return float((q * ((x - x.mean(0)) ** 2).sum(1)).sum())


def network(rule: str, backend: str = "auto") -> GrammarGNN:
    """The network whose output is one sentence of the charge, its weights set by hand."""
    definition = dict(find_grammar("r-G_L3+D").supports)["C"]
    model = GrammarGNN(
        f"V_c → AV_c | 1; S → {rule}; C = {definition}",
        node_features=2,
        width=4,
        layers=1,
        preset="paper",
        readout="grammar",
        decision=(),
        backend=backend,
    ).double()
    weights = model.state_dict()
    for value in weights.values():
        value.zero_()
    mixer = "layers.0.updates.V.mixer"
    # The layer passes the charge on as relu(q) − relu(−q); the memory it reads comes first.
    weights[f"{mixer}.0.weight"][:2, CHARGES] = torch.tensor([1.0, -1.0]).double()
    weights[f"{mixer}.2.weight"][0, :2] = torch.tensor([1.0, -1.0]).double()
    for name, value in weights.items():
        if name.startswith("readout.rules") or name == "readout.decision.0.weight":
            value[0, 0] = 1.0
    model.load_state_dict(weights)
    return model


def batch_of(graphs: GraphSet) -> GraphBatch:
    store = GraphStore(graphs, dtype=torch.float64, squared=True)
    return store.batch(np.arange(len(graphs)))


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [("V_cᵀDV_c", second_moment), ("V_cᵀCV_c", squared_dipole), ("1ᵀ(C⊙I)V_c", spread)],
)
def test_moments_of_charges_are_sentences(rule: str, expected, backend: str) -> None:
    graphs = molecules()
    model = network(rule, backend)
    values = model(batch_of(graphs))[:, 0].detach().numpy()
    truth = [expected(*points(graphs, index)) for index in range(len(graphs))]
    np.testing.assert_allclose(values, truth, rtol=1e-9, atol=1e-9)
    rows = GraphStore(graphs, dtype=torch.float64, squared=True).packed(np.arange(len(graphs)))
    packed = model(rows)[:, 0].detach().numpy()
    np.testing.assert_allclose(packed, np.array(truth)[rows.indices], rtol=1e-9, atol=1e-9)


def test_outputs_keep_under_rotation_translation_and_renumbering() -> None:
    torch.manual_seed(0)
    graphs = molecules()
    model = GrammarGNN("r-G_L3+D", node_features=2, width=6, layers=2).double().eval()
    expected = model(batch_of(graphs))
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    assert graphs.positions is not None
    moved = replace(graphs, positions=(graphs.positions @ turn + 5.0).astype(np.float64))
    torch.testing.assert_close(model(batch_of(moved)), expected, rtol=1e-5, atol=1e-5)
    pulled = replace(graphs, positions=graphs.positions * np.float32(1.5))
    assert (model(batch_of(pulled)) - expected).abs().min() > 1e-4, "it does read D"
    batch = batch_of(graphs)
    order = torch.arange(batch.mask.shape[1]).flip(0)
    assert batch.designed is not None
    renumbered = replace(
        batch,
        adjacency=batch.adjacency[:, order][:, :, order],
        nodes=batch.nodes[:, order],
        edges=batch.edges[:, order][:, :, order],
        mask=batch.mask[:, order],
        designed=batch.designed[:, order][:, :, order],
    )
    model.backend = "reference"  # the packed executor wants real nodes first
    torch.testing.assert_close(model(renumbered), expected)


def test_without_positions_it_says_what_is_missing() -> None:
    model = GrammarGNN("r-G_L3+D", width=4, layers=1)
    with pytest.raises(DataError, match=r"names D, the squared distances .* no positions"):
        model(GraphBatch.of(["C~"]))


def test_positions_of_pyg_data_are_read() -> None:
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data

    graphs = molecules(1)
    model = GrammarGNN("r-G_L3+D", node_features=2, width=4, layers=1).double()
    assert graphs.positions is not None
    data = Data(
        x=torch.tensor(graphs.node_features).double(),
        edge_index=torch.tensor(graphs.edges),
        pos=torch.tensor(graphs.positions).double(),
    )
    torch.testing.assert_close(model(data), model(batch_of(graphs)))


def test_a_saved_network_and_a_run_read_distances_again(tmp_path) -> None:
    graphs = molecules(40)
    targets = [[squared_dipole(*points(graphs, index))] for index in range(len(graphs))]
    graphs = replace(graphs, targets=np.array(targets))
    config = RunConfig("charges", grammar="r-G_L3+D", width=4, layers=1, epochs=2, distance=())
    train_config(config, tmp_path / "run", graphs=graphs, pictures=False)
    run = Run(tmp_path / "run", graphs=graphs)
    outcome = run.predict(graphs)
    assert np.isfinite(outcome.predicted).all()
    pulled = replace(graphs, positions=graphs.positions * np.float32(1.5))
    assert np.abs(run.predict(pulled).predicted - outcome.predicted).min() > 0
    flat = replace(graphs, positions=None)
    with pytest.raises(DataError, match="no positions"):
        run.predict(flat)
    with pytest.raises(DataError, match=r"r-G_L3\+D names D, .* no positions"):
        train_config(config, tmp_path / "flat", graphs=flat, pictures=False)
    network = load(tmp_path / "run" / "best.safetensors")
    store = GraphStore(graphs, squared=True)
    torch.testing.assert_close(
        network(store.batch(np.arange(3))), run.model(store.batch(np.arange(3)))
    )


def test_squared_distances_are_those_of_the_positions() -> None:
    positions = torch.tensor([[[0.0, 0, 0], [3, 4, 0], [9, 9, 9]]])
    mask = torch.tensor([[True, True, False]])
    assert squared_distances(positions, mask)[0, :, :, 0].tolist() == [
        [0, 25, 0],
        [25, 0, 0],
        [0, 0, 0],
    ]
