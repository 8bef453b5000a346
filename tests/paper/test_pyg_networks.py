"""PyG's networks as baselines of the library."""

import numpy as np
import pytest
import torch

from g2n2.bench import drawn_molecules
from g2n2.data.store import GraphStore
from g2n2.errors import LoweringError
from g2n2.nn import baselines
from g2n2.nn.baselines import baseline

pytest.importorskip("torch_geometric", reason="they are made of PyG's layers")
from torch_geometric.nn import SchNet as OfPyG
from torch_geometric.nn.models import visnet

from g2n2_paper.pyg_networks import NETWORKS, SchNet, ViSNet, positions_of


def test_schnet_is_pygs():
    """PyG's forward pass, with its own sum over atoms, from positions and elements."""
    graphs = drawn_molecules(6)
    elements = graphs.node_features[:, :5].argmax(1)
    store = GraphStore(graphs, distance=("raw",))
    torch.manual_seed(0)
    model = SchNet(graphs.node_features.shape[1], store.edge_width, width=8, layers=2).double()
    cutoff = 4.0
    model.schnet.cutoff = cutoff
    for block in model.schnet.interactions:
        block.conv.cutoff = cutoff
    scale, shift = model.readout.decision[0].weight.item(), model.readout.decision[0].bias.item()
    given = store.batch(np.arange(6))
    found = model.network(
        given.adjacency.double(), given.nodes.double(), given.edges.double(), given.mask
    )
    edges = {}
    twin = OfPyG(8, 8, 2, interaction_graph=lambda *_: edges["here"]).double()
    for block in twin.interactions:
        block.conv.cutoff = cutoff
        del block.mlp
    twin.load_state_dict(model.schnet.state_dict())
    end = np.cumsum(graphs.sizes)
    for number, (start, stop) in enumerate(zip(end - graphs.sizes, end, strict=True)):
        where = torch.from_numpy(graphs.positions[start:stop]).double()
        distances = torch.cdist(where, where)
        near = ((distances > 0) & (distances <= cutoff)).nonzero().T
        edges["here"] = near, distances[near[0], near[1]]
        atoms = torch.from_numpy(elements[start:stop])
        expected = twin(atoms, where, torch.zeros_like(atoms)).item() * scale + shift
        assert found[number].item() == pytest.approx(expected, rel=1e-5, abs=1e-7)


def radius_graph(positions, r, batch, loop, max_num_neighbors):
    """What torch-cluster's does where no atom has too many neighbours."""
    pairs = [
        (i, j)
        for i in range(len(positions))
        for j in range(len(positions))
        if batch[i] == batch[j] and (positions[i] - positions[j]).norm() <= r and (loop or i != j)
    ]
    return torch.tensor(pairs).T


def test_visnet_is_pygs(monkeypatch):
    """PyG's forward pass and sum over atoms, from true positions and a search for pairs."""
    monkeypatch.setattr(visnet, "radius_graph", radius_graph)
    graphs = drawn_molecules(6)
    store = GraphStore(graphs, distance=("raw",))
    torch.manual_seed(0)
    model = ViSNet(graphs.node_features.shape[1], store.edge_width, width=16, layers=3)
    twin = visnet.ViSNet(hidden_channels=16, num_layers=3)
    twin.load_state_dict(model.visnet.state_dict())
    atoms = torch.from_numpy(graphs.node_features[:, :5].argmax(1))
    graph = torch.from_numpy(np.repeat(np.arange(6), graphs.sizes))
    values, _ = twin(atoms, torch.from_numpy(graphs.positions), graph)
    scale, shift = model.readout.decision[0].weight, model.readout.decision[0].bias
    found = model(store.batch(np.arange(6)))
    torch.testing.assert_close(found, values * scale + shift, rtol=1e-4, atol=1e-4)
    weight = model.visnet.output_model.output_network[0].vec1_proj.weight
    (gradient,) = torch.autograd.grad(found.sum(), weight)
    other = twin.output_model.output_network[0].vec1_proj.weight
    (expected,) = torch.autograd.grad((values * scale).sum(), other)
    assert expected.abs().max() > 1e-6, "the vectors count"
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4)


def between(positions):
    """Distances, by differences: `torch.cdist` multiplies where there are many."""
    return (positions[..., :, None, :] - positions[..., None, :, :]).norm(dim=-1)


def shapes_of_molecules() -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    spread = torch.randn(29, 3, generator=draw) * 3.0
    ring = torch.linspace(0.0, 5.0, 7)
    return {
        "in space": spread,
        "planar": torch.stack([ring.cos(), ring.sin(), 0.0 * ring], 1) * 2.0,
        "linear": torch.tensor([[0.0, 0, 0], [1.1, 0, 0], [2.3, 0, 0], [4.0, 0, 0]]),
        "two atoms": torch.tensor([[5.0, 5, 5], [5.0, 5, 6.2]]),
        "one atom": torch.tensor([[7.0, 0, 0]]),
    }


@pytest.mark.parametrize("together", [True, False])
def test_positions_are_recovered_from_distances(together):
    """All distances to 1e-4 Å, in one padded batch and in batches of one."""
    shapes = list(shapes_of_molecules().values())
    for batch in [shapes] if together else [[shape] for shape in shapes]:
        most = max(map(len, batch))
        distances = torch.zeros(len(batch), most, most)
        mask = torch.zeros(len(batch), most, dtype=torch.bool)
        for number, shape in enumerate(batch):
            count = len(shape)
            distances[number, :count, :count] = between(shape)
            mask[number, :count] = True
        found = positions_of(distances, mask).float()
        assert found.shape == (len(batch), most, 3)
        assert (found[~mask] == 0).all()
        again = between(found) * (mask[:, :, None] & mask[:, None])
        assert (again - distances).abs().max() < 1e-4


def test_visnet_does_not_see_the_order_of_atoms_and_learns_on_small_molecules():
    shapes = shapes_of_molecules()
    torch.manual_seed(0)
    model = ViSNet(5, 1, width=16, layers=2)
    for name, positions in shapes.items():
        count = len(positions)
        order = torch.randperm(count)
        nodes = torch.eye(5)[torch.arange(count) % 5].unsqueeze(0)
        edges = between(positions)[None, :, :, None]
        mask = torch.ones(1, count, dtype=torch.bool)
        plain = model.network(edges[..., 0], nodes, edges, mask)
        changed = edges[:, order][:, :, order]
        relabelled = model.network(changed[..., 0], nodes[:, order], changed, mask)
        torch.testing.assert_close(plain, relabelled, rtol=1e-4, atol=1e-4, msg=name)
        gradients = torch.autograd.grad(plain.sum(), [*model.parameters()], allow_unused=True)
        assert all(g is None or g.isfinite().all() for g in gradients), name


@pytest.mark.parametrize("name", ["SchNet", "ViSNet"])
def test_networks_read_elements_and_distances(monkeypatch, name):
    monkeypatch.setattr(baselines, "BASELINES", baselines.BASELINES | NETWORKS)
    graphs = drawn_molecules(4)
    store = GraphStore(graphs, distance=("raw",))
    torch.manual_seed(0)
    model = baseline(name.lower(), graphs.node_features.shape[1], store.edge_width, 8, 2).eval()
    batch = store.batch(np.arange(4))
    whole = model(batch).detach()
    alone = torch.cat([model(store.batch(np.array([index]))).detach() for index in range(4)])
    torch.testing.assert_close(whole, alone)
    tensors = [batch.adjacency, batch.nodes, batch.edges, batch.mask]
    for number, change in ((1, lambda x: x.roll(1, dims=-1)), (2, lambda x: 1.1 * x)):
        changed = [change(x) if k == number else x for k, x in enumerate(tensors)]
        assert (model.network(*changed) - whole).abs().min() > 1e-6
    with pytest.raises(LoweringError, match="one number for each graph"):
        baseline(name, 11, store.edge_width, 8, 2, out=3)
