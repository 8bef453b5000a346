"""Reference values per element: planted ones are found, from the training graphs alone."""

from dataclasses import replace

import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet, Target
from g2n2.data.qm9.atom_references import atom_references
from g2n2.errors import DataError

PLANTED = {"H": -0.5, "C": -38.0, "N": -54.5, "O": -75.0, "F": -99.7}


def planted_set() -> GraphSet:
    """Forty molecules of random atoms whose target is the sum of the planted values."""
    random = np.random.default_rng(4)
    sizes = random.integers(3, 12, 40)
    kinds = random.integers(0, 5, sizes.sum())
    values = np.array(list(PLANTED.values()))[kinds]
    totals = np.array([part.sum() for part in np.split(values, np.cumsum(sizes)[:-1])])
    return GraphSet(
        name="planted",
        sizes=sizes,
        edge_counts=np.zeros(40, dtype=np.int64),
        edges=np.zeros((2, 0), dtype=np.int64),
        node_features=np.eye(5, dtype=np.float32)[kinds],
        edge_features=np.zeros((0, 0), dtype=np.float32),
        targets=np.stack([np.zeros(40), totals], axis=1),
        columns=(Target("nothing"), Target("u0", "hartree")),
        node_names=tuple(PLANTED),
    )


def test_planted_values_are_found() -> None:
    graphs = planted_set()
    found = atom_references(graphs, list(range(20)), "u0")
    assert found.coefficients == pytest.approx(PLANTED)
    np.testing.assert_allclose(found.values, graphs.targets[:, 1])


def test_only_training_graphs_with_a_value_are_looked_at() -> None:
    graphs = planted_set()
    spoiled = graphs.targets.copy()
    spoiled[20:, 1] += 1000
    spoiled[3, 1] = np.nan
    found = atom_references(replace(graphs, targets=spoiled), np.arange(20), "u0")
    assert found.coefficients == pytest.approx(PLANTED)


def test_other_columns_than_elements_do_not_take_part() -> None:
    graphs = planted_set()
    noise = np.random.default_rng(0).normal(size=(len(graphs.node_features), 1)).astype(np.float32)
    wider = replace(
        graphs,
        node_features=np.concatenate([noise, graphs.node_features], axis=1),
        node_names=("Z", *PLANTED),
    )
    assert atom_references(wider, np.arange(20), "u0").coefficients == pytest.approx(PLANTED)


@pytest.mark.parametrize(
    ("change", "target", "complaint"),
    [
        ({}, "u1", "has no target 'u1'; it has: nothing, u0"),
        ({"node_names": ("a", "b", "c", "d", "e")}, "u0", "the features a, b, c, d, e"),
        ({"targets": np.full((40, 2), np.nan)}, "u0", "no training graph of planted has a value"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    change: dict[str, object], target: str, complaint: str
) -> None:
    with pytest.raises(DataError) as caught:
        atom_references(replace(planted_set(), **change), [0, 1, 2], target)  # type: ignore[arg-type]
    assert complaint in str(caught.value)
