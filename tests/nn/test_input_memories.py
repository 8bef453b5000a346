"""Constants that are made when asked for; first memories, with and without gradients."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
from g2n2.nn.input_memories import halved, input_memories, part_of


def batch(nodes, edges):
    """Two graphs of 5 and 3 nodes with features of their nodes and pairs."""
    torch.manual_seed(0)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    adjacency = (torch.rand(2, 5, 5) < 0.5).float().triu(1)
    adjacency = adjacency + adjacency.mT
    return GraphBatch(adjacency, torch.rand(2, 5, nodes), torch.rand(2, 5, 5, edges), mask)


WITH_MATRICES = product(["r-G_L3"], [0, 3], [0, 2], ["modern", "paper", "ppgn"])
WITHOUT = product(["GNNML1"], [0, 3], [0], ["modern"])


@pytest.mark.parametrize(("grammar", "nodes", "edges", "preset"), [*WITH_MATRICES, *WITHOUT])
def test_without_gradients_the_memories_are_the_same(grammar, nodes, edges, preset):
    model = GrammarGNN(grammar, nodes, edges, width=4, layers=1, preset=preset)
    given = batch(nodes, edges)

    def first():
        constants = model.constants(given.adjacency, given.mask)
        tensors = given.nodes, given.edges, constants
        return input_memories(model.plan.inputs, model.words, *tensors)

    expected = first()
    with torch.no_grad():
        found = first()
    assert set(found) == set(expected)
    for letter, value in expected.items():
        assert torch.equal(found[letter], value), letter
    if "M" in found:
        assert not found["M"][1, 3:].any(), "padding is zero"
        assert not found["M"][1, :, 3:].any()


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float16], ids=str)
def test_features_of_other_dtypes_are_promoted_with_and_without_gradients(dtype):
    """One-hot features often come as whole numbers."""
    model = GrammarGNN("r-G_L3", 3, 2, width=4, layers=1)
    given = batch(3, 2)
    given = replace(given, nodes=(given.nodes > 0.5).to(dtype), edges=given.edges.round().to(dtype))
    expected = model(given).detach()
    with torch.no_grad():
        torch.testing.assert_close(model(given), expected)


def test_the_constants_of_a_network():
    """Three nodes of which one is padding, counted by hand."""
    adjacency = torch.tensor([[[0.0, 1.0, 9.0], [1.0, 0.0, 9.0], [9.0, 9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    found = GrammarGNN("r-G_L3", width=4, layers=1).constants(adjacency, mask)
    assert found["1"][0, :, 0].tolist() == [1, 1, 0]
    assert found["11ᵀ"][0, ..., 0].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert found["I"][0, ..., 0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert found["J"][0, ..., 0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert found["A"][0, ..., 0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert float(found["1/√n"][0]) == pytest.approx(2**-0.5)


def test_a_network_makes_no_constant_its_rules_do_not_name():
    model = GrammarGNN("r-G_L3", width=4, layers=1, backend="plain")
    mask = torch.ones(1, 3, dtype=torch.bool)
    adjacency = torch.ones(1, 3, 3)
    _, constants = model.final(adjacency, torch.zeros(1, 3, 0), torch.zeros(1, 3, 3, 0), mask)
    assert "J" not in constants.made


def test_a_part_of_memories_in_two_halves_keeps_both():
    """Three features of nodes and one column; in half precision 1/3 needs the second half."""
    whole = GrammarGNN("GNNML1", 3, width=4, layers=1).plan.inputs
    part = replace(whole, column=tuple(name for name in whole.column if name == "X"))
    assert len(part.column) < len(whole.column)
    values = torch.tensor([[1 / 3, 1 / 5, 1 / 7, 1 / 9]])
    first = part_of({"V": halved(values, torch.bfloat16)}, whole, part)["V"]
    places = [0, 1, 2] if whole.column[0] == "X" else [1, 2, 3]
    high, low = first.float().chunk(2, dim=-1)
    torch.testing.assert_close(high + low, values[:, places], rtol=1e-4, atol=0)
    assert part_of({"V": values}, whole, part)["V"].equal(values[:, places])
