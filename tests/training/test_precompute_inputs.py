"""What a network reads of its graphs, kept on the device: the same numbers, batch by batch."""

import numpy as np
import pytest
import torch

from g2n2.data.dense_store import DenseStore
from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN
from g2n2.training.precompute import Inputs
from small_sets import small_set

SIZES = small_set().sizes
CHOSEN = np.flatnonzero(SIZES.max() > SIZES)[[4, 1, 9, 2, 4]]
"""Each of them smaller than the largest graph there is."""
NETWORKS = [
    ("r-G_L3", "modern"),
    ("r-G_L3", "paper"),
    ("r-G_L3", "official"),
    ("r-G_L1", "modern"),
    ("GNNML1", "paper"),
    ("G_L3", "paper"),
]


@pytest.fixture(scope="module")
def flat():
    return GraphStore(small_set())


@pytest.fixture(scope="module")
def dense(flat):
    return DenseStore(flat)


def network(grammar="r-G_L3", preset="modern"):
    torch.manual_seed(0)
    return GrammarGNN(grammar, 2, width=8, layers=2, preset=preset, decision=(8,))


def expected(model, flat):
    batch = flat.batch(CHOSEN)
    constants = model.constants(batch.adjacency, batch.mask)
    return model.first(batch.nodes, batch.edges, constants), batch


def kept(model, dense, flat, dtype=None):
    widest = int(flat.graphs.sizes[CHOSEN].max())
    return read(Inputs(model, dense, dtype), widest)


def read(inputs, widest):
    *given, designed = inputs.batch(torch.from_numpy(CHOSEN), widest)
    assert designed is None, "the store has no supports"
    return given


@pytest.mark.parametrize(("grammar", "preset"), NETWORKS)
def test_a_batch_is_what_the_network_reads_of_it(grammar, preset, flat, dense):
    model = network(grammar, preset)
    first, adjacency, mask = kept(model, dense, flat)
    wanted, batch = expected(model, flat)
    assert torch.equal(mask, batch.mask)
    assert set(first) == set(wanted)
    for letter, values in wanted.items():
        torch.testing.assert_close(first[letter], values, rtol=0, atol=0)
    names_a = grammar in ("r-G_L1", "GNNML1")
    assert adjacency.dim() == (3 if names_a else 0), "kept only where a rule names it"
    if names_a:
        assert torch.equal(adjacency, batch.adjacency)


@pytest.mark.parametrize(("grammar", "preset"), NETWORKS)
def test_the_network_gives_the_same_outputs(grammar, preset, flat, dense):
    model = network(grammar, preset)
    first, adjacency, mask = kept(model, dense, flat)
    constants = model.constants(adjacency, mask)
    output = model.read_out(model.run(first, constants, mask), constants, mask)
    torch.testing.assert_close(output, model(flat.batch(CHOSEN)), rtol=1e-4, atol=1e-5)


@pytest.fixture
def kernels(monkeypatch):
    """The memories are kept as kernels read them; on a CPU there are none."""
    monkeypatch.setattr(GrammarGNN, "by_reference", False)


def test_embedded_memories_are_kept_in_two_halves_that_add_up(flat, dense, kernels):
    model = network()
    assert set(model.embeddings) == {"M", "V"}
    first, _, _ = kept(model, dense, flat, torch.bfloat16)
    wanted, _ = expected(model, flat)
    for letter, values in wanted.items():
        width = values.shape[-1]
        assert first[letter].dtype == torch.bfloat16
        assert first[letter].shape[-1] == 2 * width
        high, low = first[letter].double().split(width, dim=-1)
        torch.testing.assert_close(high + low, values.double(), rtol=2**-15, atol=1e-7)
    features = wanted["V"].double()
    assert (first["V"][..., : features.shape[-1]].double() - features).abs().max() > 1e-3, (
        "one half alone has lost digits"
    )


def test_memories_that_are_not_embedded_are_kept_once(flat, dense, kernels):
    model = network(preset="paper")
    first, _, _ = kept(model, dense, flat, torch.bfloat16)
    wanted, _ = expected(model, flat)
    for letter, values in wanted.items():
        assert torch.equal(first[letter], values.to(torch.bfloat16))


@pytest.mark.parametrize("preset", ["modern", "paper", "official"])
def test_half_precision_gives_what_autocast_gives(preset, flat, dense):
    model = network(preset=preset)
    first, adjacency, mask = kept(model, dense, flat, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        constants = model.constants(adjacency, mask)
        output = model.read_out(model.run(first, constants, mask), constants, mask)
        plain = model(flat.batch(CHOSEN))
    torch.testing.assert_close(output, plain, rtol=0.05, atol=0.02)


def test_a_network_in_half_precision_under_autocast(flat):
    """Its inputs come in half precision, and not as two halves."""
    model = network().to(torch.bfloat16)
    batch = flat.batch(CHOSEN).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        under = model(batch)
    torch.testing.assert_close(under, model(batch), rtol=0.05, atol=0.02)


def test_many_graphs_are_read_piece_by_piece(monkeypatch, flat, dense):
    whole = Inputs(network(), dense, None)
    monkeypatch.setattr(dense, "at_once", 7)
    pieces = Inputs(network(), dense, None)
    for letter, values in whole.memories.items():
        assert torch.equal(pieces.memories[letter], values)
    bytes_kept = sum(values.nbytes for values in whole.memories.values())
    assert Inputs.bytes_of(network(), flat) == bytes_kept


@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("grammar", "preset"), NETWORKS)
def test_what_is_not_kept_is_made_for_each_batch(grammar, preset, dtype, flat, dense):
    """For a store whose inputs would not fit the device."""
    model = network(grammar, preset)
    widest = int(flat.graphs.sizes[CHOSEN].max())
    lean = Inputs(model, dense, dtype, keep=False)
    assert lean.memories is None
    found = read(lean, widest)
    wanted = kept(model, dense, flat, dtype)
    assert set(found[0]) == set(wanted[0])
    for letter, values in wanted[0].items():
        assert torch.equal(found[0][letter], values), letter
    for mine, theirs in zip(found[1:], wanted[1:], strict=True):
        assert torch.equal(mine, theirs)
