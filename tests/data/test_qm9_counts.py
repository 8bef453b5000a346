"""QM9 as it is published: counts known from outside, and a tenth of its molecules."""

from pathlib import Path

import numpy as np
import pytest

from g2n2.data.atom_references import fit_references
from g2n2.data.qm9 import load_qm9
from g2n2.data.qm9_build import find_source, read_entries
from g2n2.data.splits import split

pytestmark = pytest.mark.slow


def test_counts_are_those_of_the_literature(some_qm9: Path) -> None:
    sizes = np.array([len(texts[1].split(",")) for _, _, texts in read_entries(find_source(), [])])
    assert len(sizes) == 130_831
    assert sizes.sum() == 2_359_210
    assert (sizes.min(), sizes.max()) == (3, 29)
    assert some_qm9.stat().st_size < 4_000_000
    graphs = load_qm9("sanitized", "distance", cache=some_qm9).check()
    assert np.array_equal(graphs.sizes, sizes[::10])
    # PyG states 37.3 directed edges a molecule.
    assert graphs.edge_counts.mean() == pytest.approx(37.3, abs=0.2)
    assert not graphs.directed
    assert len(set(graphs.ids)) == len(graphs)
    assert "the cache holds 13,084 of 130,831 molecules only" in graphs.notes
    # A molecule is connected: its bonds join all of its atoms.
    assert (graphs.edge_counts // 2 >= graphs.sizes - 1).all()
    assert (np.bincount(graphs.edges[0], minlength=29) > 0).all()


def test_references_per_element_explain_the_energy(some_qm9: Path) -> None:
    graphs = load_qm9(targets=["u0"], cache=some_qm9)
    splits = split(graphs)
    fit = fit_references(graphs, splits["train"], ["u0"])["u0"]
    # Energies of free atoms at the same level, in hartree: bonds add a few tenths to them.
    free = {"H": -0.500, "C": -37.847, "N": -54.584, "O": -75.065, "F": -99.719}
    for element, value in free.items():
        assert fit.coefficients[element] == pytest.approx(value, abs=0.35)
    test = splits["test"]
    left = graphs.targets[test, 0] - fit.values[test]
    assert left.std() < 0.01 * graphs.targets[test, 0].std()
