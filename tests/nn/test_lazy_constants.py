"""Tensors made when somebody first asks for them."""

import pytest
import torch

from g2n2.nn import GrammarGNN
from g2n2.nn.lazy_constants import LazyConstants


@pytest.fixture
def made():
    return []


@pytest.fixture
def named(made):
    def maker(name, value):
        return lambda others: made.append(name) or value(others)

    return LazyConstants(
        {
            "one": maker("one", lambda c: torch.tensor(1.0)),
            "two": maker("two", lambda c: c["one"] + c["one"]),
            "never": maker("never", lambda c: torch.tensor(torch.nan)),
        }
    )


def test_each_is_made_once_and_only_if_asked_for(named, made):
    assert made == []
    assert float(named["two"]) == 2.0
    assert float(named["two"]) == 2.0
    assert named["two"] is named["two"]
    assert made == ["two", "one"]


def test_names_are_known_before_anything_is_made(named, made):
    assert list(named) == ["one", "two", "never"]
    assert len(named) == 3
    assert made == []
    with pytest.raises(KeyError):
        named["three"]


def test_another_dtype_is_made_as_late(named, made):
    low = named.to(torch.bfloat16)
    assert made == []
    assert low["two"].dtype == torch.bfloat16
    assert float(low["two"]) == 2.0
    assert named["two"].dtype == torch.float32
    assert made == ["two", "one"]


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
