"""Functions of distances as edge channels."""

import pytest
import torch

from g2n2.data.distances import channels_of_steps, distance_width
from g2n2.errors import DataError


@pytest.mark.parametrize(("kind", "reach"), [("rbf5:6", 6.0), ("rbf5", 12.0), ("rbf5:4.5", 4.5)])
def test_bumps_of_a_radial_basis_have_their_centres_up_to_its_reach(kind: str, reach: float):
    places = torch.linspace(0, reach, 5, dtype=torch.float64)[1:]
    points = torch.zeros(5, 3, dtype=torch.float64)
    points[1:, 0] = places
    rows = channels_of_steps(points[0] - points, torch.arange(5) != 0, (kind,))
    assert rows.shape[1] == distance_width(kind) == 5
    assert not rows[0].any()  # a node has no distance to itself
    assert torch.equal(rows[1:].argmax(1), torch.arange(1, 5))
    assert torch.allclose(rows[1:].diagonal(1), torch.ones(4, dtype=torch.float64))
    assert torch.allclose(rows[2, 1], torch.tensor(-1.0, dtype=torch.float64).exp())


@pytest.mark.parametrize(
    "kind", ["rbf1", "rbf8:0", "rbf8:", "rbf:6", "rbf8:-1", "rbf8:1e3", "RBF8"]
)
def test_other_names_are_refused_with_the_known_ones(kind: str):
    with pytest.raises(DataError, match=r"rbf32:6"):
        distance_width(kind)
