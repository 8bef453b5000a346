"""Data files are found in a fixed order, checked, and never left half-written."""

import http.client
import os
import urllib.request
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import pytest

from g2n2.data import files
from g2n2.data.files import DataFile, cache_folder, store_in_cache
from g2n2.errors import DataError

# Of the four bytes b"C~\n\n"; from the sha256sum program.
SHA256 = "20503ab0939d0d0e4d403ebc15994858e4215d38ca63c77402bad4017290c685"


def find_file(name: str, data: Path | None, subfolder: str, *, folder: bool = False) -> Path | None:
    return DataFile("set", name, subfolder).find(data, folder=folder)


def put(folder: Path, name: str = "a.g6") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"C~\n\n")
    return folder / name


def test_folders_are_searched_in_order(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, variable = tmp_path / "named", tmp_path / "variable"
    named.mkdir()
    monkeypatch.setenv("G2N2_DATA", str(variable))
    # From the last place to the first: each new file hides all before it.
    for folder in (alone, alone / "tu", variable, variable / "tu", named, named / "tu"):
        assert find_file("a.g6", named, "tu") != folder / "a.g6"
        expected = put(folder)
        assert find_file("a.g6", named, "tu") == expected
    assert find_file("a.g6", None, "tu") == variable / "tu" / "a.g6"
    assert find_file("a.g6", named, "zinc") == named / "a.g6"
    assert find_file("tu", named, "zinc", folder=True) == named / "tu"
    assert find_file("a.g6", named, "tu", folder=True) is None


def test_a_folder_that_is_none_is_refused(tmp_path: Path, alone: Path) -> None:
    with pytest.raises(DataError, match="is no folder"):
        find_file("a.g6", tmp_path / "nowhere", "tu")


def test_a_checksum_that_differs_is_refused(tmp_path: Path) -> None:
    path, file = put(tmp_path), DataFile("set", "a.g6", "tu", SHA256)
    assert file.read(tmp_path) == (path, b"C~\n\n")
    path.write_bytes(b"C~\n")
    with pytest.raises(DataError, match=rf"a\.g6 has sha256 .* expected {SHA256}"):
        file.read(tmp_path)


def test_nothing_half_written_stays_in_the_cache(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: Any) -> NoReturn:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(DataError, match="disk full"):
        store_in_cache("name.g6", b"C~", "expressivity")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_what_is_stored_is_found(alone: Path) -> None:
    path = store_in_cache("MUTAG.zip", b"abc", "tu")
    assert path == cache_folder() / "tu" / "MUTAG.zip" == find_file("MUTAG.zip", None, "tu")
    assert path.read_bytes() == b"abc"


def test_downloads_are_bounded_and_failures_say_what_to_do(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = DataFile("mutag", "MUTAG.zip", "tu", url="https://example.org/a")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: BytesIO(b"12345"))
    monkeypatch.setattr(files, "LARGEST_DOWNLOAD", 5)
    assert wanted.download(None) == b"12345"
    monkeypatch.setattr(files, "LARGEST_DOWNLOAD", 4)
    with pytest.raises(DataError, match="more than 4 bytes") as caught:
        wanted.download(None)
    for part in (str(alone), "MUTAG.zip", "subfolder tu", "$G2N2_DATA", wanted.url):
        assert part in str(caught.value)

    def broken(*_: Any, **__: Any) -> NoReturn:
        raise http.client.IncompleteRead(b"1")

    monkeypatch.setattr(urllib.request, "urlopen", broken)
    with pytest.raises(DataError, match="broken answer"):
        wanted.download(None)
