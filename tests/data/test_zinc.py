"""ZINC: official validation and test molecules, and a training set that says it is a surrogate."""

from pathlib import Path

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data.benchmarks import load_zinc
from g2n2.errors import DataError

FILE = "zinc12k_val_test_and_surrogate_train.npz"


def test_published_figures() -> None:
    real_file("zinc", FILE)
    data = load_zinc()
    assert data.node_features.shape[1] == 28
    assert data.edge_names == ("single", "double", "triple")
    assert not data.directed
    for name, graphs, nodes, edges, mean, std in (
        ("train", 10000, 23.15, 24.91, 0.013, 2.066),
        ("validation", 1000, 23.08, 24.85, 0.031, 1.985),
        ("test", 1000, 23.12, 24.86, 0.012, 2.017),
    ):
        part = data.select(data.splits[name])
        assert len(part) == graphs
        assert part.sizes.mean() == pytest.approx(nodes, abs=0.0051)
        assert part.edge_counts.mean() / 2 == pytest.approx(edges, abs=0.0051)
        assert part.targets.mean() == pytest.approx(mean, abs=0.00051)
        assert part.targets.std() == pytest.approx(std, abs=0.00051)


def test_bonds_stay_with_their_molecule() -> None:
    with np.load(real_file("zinc", FILE)) as stored:
        arrays = dict(stored)
    data = load_zinc()
    last = data.select([11999])  # the last test molecule
    atoms, bonds = int(arrays["test_num_nodes"][-1]), int(arrays["test_num_edges"][-1])
    assert last.node_features.argmax(1).tolist() == arrays["test_atom_type"][-atoms:].tolist()
    expected = {
        tuple(sorted(pair)): kind
        for *pair, kind in zip(
            *arrays["test_edges"][:, -bonds:].tolist(),
            arrays["test_bond_type"][-bonds:].tolist(),
            strict=True,
        )
    }
    kinds = last.edge_features.argmax(1) + 1
    for u, v, kind in zip(*last.edges.tolist(), kinds.tolist(), strict=True):
        assert expected[min(u, v), max(u, v)] == kind
    assert last.edges.shape == (2, 2 * bonds)


def test_the_surrogate_is_named_everywhere() -> None:
    real_file("zinc", FILE)
    data = load_zinc()
    assert "SURROGATE" in data.name
    assert "SURROGATE" in data.notes[0]
    assert data.source["label"] == "ZINC-12k test, resampled training set"
    assert data.ids[0] == "surrogate train 0"
    assert data.ids[11000] == "test 0"


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match=f"zinc needs the file {FILE}.* pickles"):
        load_zinc()
