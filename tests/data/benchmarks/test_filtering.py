"""TwoDGrid30 as published, and filtered again from the picture."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data.benchmarks.filtering import (
    load_filtering,
    read_image,
    read_mat,
    regenerate_filtering,
)
from g2n2.errors import DataError

COLUMNS = {"input": 0, "band": 1, "low": 2, "high": 3}  # of each image in the published array F


def published() -> dict[str, Any]:
    io = pytest.importorskip("scipy.io", reason="needs g2n2[train]")
    content: dict[str, Any] = io.loadmat(real_file("filtering", "TwoDGrid30.mat"))
    return content


def test_the_published_file_is_read_column_by_column() -> None:
    raw, data = published(), load_filtering(origin="mat")
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


def test_the_picture_filtered_again_agrees_to_1e_12() -> None:
    published()
    image = read_image(real_file("filtering", "grid95_image.npz").read_bytes())
    ours, theirs = (
        regenerate_filtering(image),
        read_mat(real_file("filtering", "TwoDGrid30.mat").read_bytes()),
    )
    assert np.abs(ours.inputs - theirs.inputs).max() <= 1e-12
    assert np.abs(ours.targets - theirs.targets).max() <= 1e-12
    assert (ours.mask == theirs.mask).all()
    assert (ours.adjacency == theirs.adjacency).all()
    degrees = np.bincount(theirs.adjacency.sum(1).astype(int)).tolist()
    assert degrees == [0, 0, 4, 112, 784]  # corners, sides, inside
    again = load_filtering(origin="image")
    assert np.nanmax(np.abs(again.targets - load_filtering(origin="mat").targets)) <= 1e-12


def test_low_pass_is_the_published_function_of_the_grid() -> None:
    real_file("filtering", "grid95_image.npz")
    fields = regenerate_filtering(
        read_image(real_file("filtering", "grid95_image.npz").read_bytes())
    )
    summed = fields.inputs @ (fields.adjacency + np.eye(900))
    expected = 0.212146 * summed - 0.044925
    assert np.abs(fields.targets[:, :, 0] - expected)[:, fields.mask].max() < 1e-5


def test_the_band_is_at_a_quarter_of_the_sampling_frequency() -> None:
    wave = 127.5 * (1 + np.cos(2 * np.pi * 24 * np.arange(95) / 95))  # frequency 24/95 ~ 0.25
    fields = regenerate_filtering(np.tile(wave, (95, 1)))
    band = fields.targets[:, :, 2]
    assert np.ptp(band) > 0.99
    assert np.corrcoef(band.ravel(), fields.inputs.ravel())[0, 1] > 0.99
    slow = 127.5 * (1 + np.cos(2 * np.pi * 5 * np.arange(95) / 95))
    both = regenerate_filtering(np.tile(0.5 * wave + 0.5 * slow, (95, 1)))
    assert both.targets[:, :, 2] == pytest.approx(band, abs=1e-6)


def test_other_pictures_and_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"95×95, got \[30, 30\]"):
        regenerate_filtering(np.zeros((30, 30)))
    with pytest.raises(DataError, match="origin: got 'web'"):
        load_filtering(origin="web")  # type: ignore[arg-type]
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"TwoDGrid30\.mat or grid95_image\.npz"):
        load_filtering()
    (tmp_path / "TwoDGrid30.mat").write_bytes(b"MATLAB 5.0")
    with pytest.raises(DataError, match="sha256"):
        load_filtering(tmp_path)
