"""What a network reads of its graphs, kept on the device: the same numbers, batch by batch."""

import numpy as np
import pytest
import torch

from g2n2.data.capacities import Capacity
from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN
from g2n2.nn.half_precision_weights import OnInputs
from g2n2.training import precompute
from g2n2.training.precompute import InputRows
from small_sets import small_set

CHOSEN = np.array([14, 1, 19, 2, 14])
NETWORKS = [
    ("r-G_L3", "modern", "graph"),
    ("r-G_L3", "paper", "edge"),
    ("r-G_L3", "official", "node"),
    ("r-G_L1", "modern", "node"),
    ("GNNML1", "paper", "graph"),
    ("G_L3", "paper", "graph"),
]


def network(grammar="r-G_L3", preset="modern", task="graph"):
    torch.manual_seed(0)
    return GrammarGNN(grammar, 2, width=8, layers=2, preset=preset, task=task, decision=(8,))


def read(inputs, count=5):
    """The batch in a capacity larger than it needs."""
    sizes = inputs.store.graphs.sizes[CHOSEN]
    capacity = Capacity(int((sizes**2).sum()) + 40, int(sizes.sum()) + 5)
    return inputs.batch(torch.from_numpy(CHOSEN), torch.tensor(count), capacity)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("grammar", "preset", "task"), NETWORKS)
def test_outputs_and_targets_are_those_of_each_graph(grammar, preset, task, dtype):
    model, store = network(grammar, preset, task), GraphStore(small_set(task))
    given, targets = read(InputRows(model, store, dtype), count=4)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=dtype is not None):
        outputs = OnInputs(model)(*given)
        start = 0
        for graph in CHOSEN[:4]:
            alone = store.packed(np.array([graph]))
            rows = slice(start, start + len(alone.targets))
            start = rows.stop
            near = {"rtol": 1e-4, "atol": 1e-5} if dtype is None else {"rtol": 0.05, "atol": 0.03}
            torch.testing.assert_close(outputs[rows], model(alone), **near)
            assert torch.equal(targets[rows].nan_to_num(-1), alone.targets.nan_to_num(-1))
    assert outputs.isfinite().all()
    assert len(targets) > start
    assert targets[start:].isnan().all(), "the fifth graph does not count"
    names_a = grammar in ("r-G_L1", "GNNML1")
    assert (given[2] is not None) == names_a, "A is kept only where a rule names it"


def test_embedded_memories_are_kept_in_two_halves_that_add_up():
    model, store = network(), GraphStore(small_set())
    assert set(model.embeddings) == {"M", "V"}
    whole = read(InputRows(model, store, None))[0][1]
    halves = read(InputRows(model, store, torch.bfloat16))[0][1]
    for letter, values in whole.items():
        width = values.shape[-1]
        assert halves[letter].dtype == torch.bfloat16
        high, low = halves[letter].double().split(width, dim=-1)
        torch.testing.assert_close(high + low, values.double(), rtol=2**-15, atol=1e-7)
    lost = (halves["V"][:, : whole["V"].shape[1]].double() - whole["V"].double()).abs()
    assert lost.max() > 1e-3, "one half alone has lost digits"
    once = read(InputRows(network(preset="paper"), store, torch.bfloat16))[0][1]
    assert once["V"].shape == read(InputRows(network(preset="paper"), store, None))[0][1]["V"].shape


def test_many_graphs_are_read_piece_by_piece(monkeypatch):
    model, store = network(), GraphStore(small_set())
    whole = InputRows(model, store, None)
    monkeypatch.setattr(precompute, "AT_ONCE", 300)
    pieces = InputRows(model, store, None)
    for name, values in whole.tables.items():
        assert torch.equal(pieces.tables[name].nan_to_num(-1), values.nan_to_num(-1))
    kept = sum(values[:-1].nbytes for name, values in whole.tables.items() if name != "targets")
    assert InputRows.bytes_of(model, store) == kept
