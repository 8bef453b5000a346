"""Reference values per element: planted ones are found, from the training graphs alone."""

from dataclasses import replace

import numpy as np
import pytest

from g2n2.data.atom_references import fit_references
from g2n2.data.graph_set import GraphSet, Target
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
    found = fit_references(graphs, list(range(20)), ["u0"])["u0"]
    assert found.coefficients == pytest.approx(PLANTED)
    np.testing.assert_allclose(found.values, graphs.targets[:, 1])


def test_only_training_graphs_with_a_value_are_looked_at() -> None:
    graphs = planted_set()
    spoiled = graphs.targets.copy()
    spoiled[20:, 1] += 1000
    spoiled[3, 1] = np.nan
    found = fit_references(replace(graphs, targets=spoiled), np.arange(20), ["u0"])["u0"]
    assert found.coefficients == pytest.approx(PLANTED)


def test_other_columns_than_elements_do_not_take_part() -> None:
    graphs = planted_set()
    noise = np.random.default_rng(0).normal(size=(len(graphs.node_features), 1)).astype(np.float32)
    wider = replace(
        graphs,
        node_features=np.concatenate([noise, graphs.node_features], axis=1),
        node_names=("Z", *PLANTED),
    )
    assert fit_references(wider, np.arange(20), ["u0"])["u0"].coefficients == pytest.approx(PLANTED)


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
        fit_references(replace(planted_set(), **change), [0, 1, 2], [target])  # type: ignore[arg-type]
    assert complaint in str(caught.value)


def molecules(seed: int = 7) -> GraphSet:
    """The planted set, with atoms somewhere."""
    graphs = planted_set()
    places = np.random.default_rng(seed).normal(size=(len(graphs.node_features), 3))
    return replace(graphs, positions=(5 + 2 * places).astype(np.float32))


def moments(graphs: GraphSet, charges: dict[str, float]) -> np.ndarray:
    """Second moments of charges about their centre, atom by atom."""
    found = []
    for one, two in zip(graphs.node_offsets, graphs.node_offsets[1:], strict=False):
        assert graphs.positions is not None
        places = graphs.positions[one:two].astype(np.float64)
        each = graphs.node_features[one:two] @ np.array(list(charges.values()))
        centre = (each[:, None] * places).sum(0) / each.sum()
        found.append((each * ((places - centre) ** 2).sum(1)).sum())
    return np.array(found)


def test_the_extent_is_the_second_moment_of_charges_about_their_centre() -> None:
    graphs = molecules()
    charges = {"H": 1.0, "C": 6.0, "N": 7.0, "O": 8.0, "F": 9.0}
    wanted = moments(graphs, charges)
    planted = replace(graphs, targets=np.stack([wanted, wanted], axis=1))
    found = fit_references(planted, np.arange(30), ["u0"], extent=True)["u0"]
    np.testing.assert_allclose(found.values, wanted, rtol=1e-6)
    for pair, value in found.coefficients.items():
        one, _, other = pair.partition("·")
        product = charges[one] * charges[other] if other else 0.0
        assert value == pytest.approx(product if one != other else product / 2, abs=1e-4)
    without = fit_references(planted, np.arange(30), ["u0"])["u0"]
    assert np.abs(without.values - wanted).max() > 1.0


def test_the_extent_needs_positions() -> None:
    with pytest.raises(DataError, match="extent needs positions, which planted has not"):
        fit_references(planted_set(), [0, 1, 2], ["u0"], extent=True)
