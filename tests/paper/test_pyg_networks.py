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

from g2n2_paper.pyg_networks import NETWORKS, SchNet


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


def test_schnet_reads_elements_and_distances(monkeypatch):
    monkeypatch.setattr(baselines, "BASELINES", baselines.BASELINES | NETWORKS)
    graphs = drawn_molecules(4)
    store = GraphStore(graphs, distance=("raw",))
    torch.manual_seed(0)
    model = baseline("schnet", graphs.node_features.shape[1], store.edge_width, 8, 2).eval()
    batch = store.batch(np.arange(4))
    whole = model(batch).detach()
    alone = torch.cat([model(store.batch(np.array([index]))).detach() for index in range(4)])
    torch.testing.assert_close(whole, alone)
    tensors = [batch.adjacency, batch.nodes, batch.edges, batch.mask]
    for number, change in ((1, lambda x: x.roll(1, dims=-1)), (2, lambda x: 1.1 * x)):
        changed = [change(x) if k == number else x for k, x in enumerate(tensors)]
        assert (model.network(*changed) - whole).abs().min() > 1e-6
    with pytest.raises(LoweringError, match="one number for each graph"):
        baseline("SchNet", 11, store.edge_width, 8, 2, out=3)
