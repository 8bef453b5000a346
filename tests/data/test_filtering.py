"""TwoDGrid30 as published; that its targets are the filters they are called after."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data.benchmarks import load_filtering
from g2n2.errors import DataError

COLUMNS = {"input": 0, "band": 1, "low": 2, "high": 3}  # of each image in the published array F


def published() -> dict[str, Any]:
    io = pytest.importorskip("scipy.io", reason="needs g2n2[train]")
    content: dict[str, Any] = io.loadmat(real_file("filtering", "TwoDGrid30.mat"))
    return content


def test_the_published_file_is_read_column_by_column() -> None:
    raw, data = published(), load_filtering()
    assert (data.level, len(data), data.sizes.tolist()) == ("node", 3, [900] * 3)
    assert [column.name for column in data.columns] == ["low", "high", "band"]
    assert {name: indices.tolist() for name, indices in data.splits.items()} == {
        "train": [0],
        "test": [1],
        "validation": [2],
    }
    inside = raw["F"][:, 12] == 1
    for image in range(3):
        one = data.select([image])
        first = 4 * image
        assert one.node_features[:, 0] == pytest.approx(raw["F"][:, first], abs=1e-7)
        for place, column in enumerate(data.columns):
            target = one.targets[:, place]
            assert (target[inside] == raw["F"][inside, first + COLUMNS[column.name]]).all()
            assert np.isnan(target[~inside]).all()
        assert (one.adjacency(0) == raw["A"]).all()
    assert np.isnan(data.targets).sum(0).tolist() == [3 * 224] * 3


def test_the_grid_and_its_low_pass_filter() -> None:
    """Low-pass is the published function of a pixel and its four neighbours."""
    raw, data = published(), load_filtering()
    degrees = np.bincount(raw["A"].sum(1).astype(int)).tolist()
    assert degrees == [0, 0, 4, 112, 784]  # corners, sides, inside
    inputs = data.node_features.reshape(3, 900).astype(np.float64)
    expected = 0.212146 * (inputs @ (raw["A"] + np.eye(900))) - 0.044925
    low = data.targets[:, 0].reshape(3, 900)
    assert np.nanmax(np.abs(low - expected)) < 1e-5


def test_a_missing_and_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"TwoDGrid30\.mat.*gnn-matlang"):
        load_filtering()
    (tmp_path / "TwoDGrid30.mat").write_bytes(b"MATLAB 5.0")
    with pytest.raises(DataError, match="sha256"):
        load_filtering(tmp_path)
