"""The cache file: whole and checked, or refused with the way to build it again."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from g2n2.data import archives
from g2n2.data.qm9 import Arrays, load_qm9, read_cache, write_cache
from g2n2.errors import DataError

ABOUT = {"origin": "qm9pack"}


def molecules(shift: float = 0.0) -> Arrays:
    """Hydrogen fluoride and water, made up."""
    return {
        "numbers": np.array([5, 9], dtype=np.int32),
        "sizes": np.array([2, 3], dtype=np.uint8),
        "targets": np.arange(24.0).reshape(2, 12) / 7,
        "elements": np.array([1, 9, 8, 1, 1], dtype=np.uint8),
        "positions": np.linspace(-9, 11, 15, dtype=np.float32).reshape(5, 3) + np.float32(shift),
        "atoms": np.full((5, 6), 8, dtype=np.uint8),
        "degrees": np.array([1, 1, 2, 1, 1], dtype=np.uint8),
        "neighbours": np.array([1, 0, 1, 2, 0, 0], dtype=np.uint8),
        "orders": np.ones(6, dtype=np.uint8),
    }


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "below" / "qm9.cache"
    write_cache(path, molecules(), ABOUT)
    return path


def test_what_is_written_is_read(cache: Path) -> None:
    (found, about), expected = read_cache(cache), molecules()
    for name in expected.keys() - {"positions"}:
        np.testing.assert_array_equal(found[name], expected[name])
        assert found[name].dtype == expected[name].dtype
    positions = load_qm9(track="distance", cache=cache).positions
    np.testing.assert_allclose(positions, expected["positions"], rtol=0, atol=6e-6)
    assert about["origin"] == "qm9pack"
    assert [path.name for path in cache.parent.iterdir()] == ["qm9.cache"]


def test_it_loads_as_graphs_without_any_chemistry_package(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    graphs = load_qm9(cache=cache).check()
    assert graphs.ids == ("gdb_5", "gdb_9")
    assert graphs.adjacency(1).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_cache_is_refused(cache: Path, kept: float) -> None:
    content = cache.read_bytes()
    cache.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(DataError, match=r"truncated or altered.*rebuild=True.*delete it"):
        load_qm9(cache=cache)


def test_no_altered_byte_changes_what_is_read(cache: Path) -> None:
    content, checksum = cache.read_bytes(), read_cache(cache)[1]["sha256"]
    refused = 0
    for place in range(0, len(content), 23):
        altered = bytearray(content)
        altered[place] ^= 0x21
        cache.write_bytes(altered)
        try:
            # Dates and the like in the zip headers are not content.
            assert read_cache(cache)[1]["sha256"] == checksum
        except DataError:
            refused += 1
    assert refused > 0.6 * len(content) / 23


def test_content_exchanged_with_a_valid_zip_checksum_is_refused(cache: Path) -> None:
    with np.load(cache) as archive:
        arrays = dict(archive)
    arrays["targets"][0, 7] += 1e-9
    with cache.open("wb") as file:
        np.savez_compressed(file, **arrays)
    with pytest.raises(DataError, match="checksum does not fit"):
        read_cache(cache)


def test_a_pickle_inside_is_never_loaded(cache: Path, tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "harm"),))

    pickle.loads(pickle.dumps(Touch()))
    assert (tmp_path / "harm").exists()  # the trap works
    (tmp_path / "harm").rmdir()
    with np.load(cache) as archive:
        arrays = dict(archive)
    arrays["sizes"] = np.array([Touch()], dtype=object)
    with cache.open("wb") as file:
        np.savez_compressed(file, **arrays)
    with pytest.raises(DataError, match="truncated or altered"):
        read_cache(cache)
    assert not (tmp_path / "harm").exists()


def test_a_cache_that_would_fill_the_memory_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LARGEST_EXPANDED", 1000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was expanded"))
    with pytest.raises(DataError, match="would expand"):
        read_cache(cache)


def test_a_write_that_fails_leaves_the_old_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match=r"No space left.*another place with cache="):
        write_cache(cache, molecules(shift=1.0), ABOUT)
    assert cache.read_bytes() == before
    assert [path.name for path in cache.parent.iterdir()] == ["qm9.cache"]


def test_a_position_out_of_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="111 Å from the origin"):
        write_cache(tmp_path / "far", molecules(shift=100.0), ABOUT)
