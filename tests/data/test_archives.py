"""Hostile and broken archives are refused before anything of them is expanded."""

import io
import pickle
import resource
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from g2n2.data import archives
from g2n2.data.archives import read_npz, read_zip
from g2n2.errors import DataError


def zipped(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return path


def test_an_honest_zip_is_read_whole_or_in_part(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("X/", b""), ("X/a.txt", b"1"), ("X/b..c.txt", b"22"))
    assert read_zip(path) == {"X/a.txt": b"1", "X/b..c.txt": b"22"}
    assert read_zip(path.read_bytes(), lambda name: "a.t" in name) == {"X/a.txt": b"1"}


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "a/../../evil.txt",
        "a/..",
        "a\\..\\evil.txt",
        "/etc/evil",
        "\\\\host\\evil",
        "C:\\evil",
        "c:evil",
        "a.txt\0.npy",
    ],
)
def test_members_outside_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    info = zipfile.ZipInfo("placeholder")
    info.filename = name  # the constructor would tidy the name
    path = zipped(tmp_path / "slip.zip", ("good.txt", b"1"), (info, b"evil"))
    for wanted in (lambda member: True, lambda member: member == "good.txt"):
        with pytest.raises(DataError, match=r"slip\.zip is refused: .* outside the archive"):
            read_zip(path, wanted)
    assert [entry.name for entry in tmp_path.iterdir()] == ["slip.zip"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFBLK])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("X_A.txt")
    info.external_attr = (kind | 0o777) << 16
    with pytest.raises(DataError, match=r"'X_A\.txt' is a link or a device"):
        read_zip(zipped(tmp_path / "a.zip", (info, b"/etc/passwd")))


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    content = bytearray(zipped(tmp_path / "a.zip", ("a.txt", b"1")).read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1
    content[6] |= 1
    with pytest.raises(DataError, match=r"is refused: its member 'a\.txt' is encrypted"):
        read_zip(bytes(content))


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        path = zipped(tmp_path / "a.zip", ("a.txt", b"1"), ("a.txt", b"2"))
    with pytest.raises(DataError, match="is there twice"):
        read_zip(path)


def test_a_bomb_is_refused_unexpanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped(tmp_path / "bomb.zip", ("zeros.txt", b"\0" * (2**26 + 1)))
    content = bytearray(bomb.read_bytes())
    assert len(content) < 100_000

    def expand(*_: object, **__: object) -> None:
        raise AssertionError("a member was opened")

    monkeypatch.setattr(zipfile.ZipFile, "open", expand)
    for read in (read_zip, read_npz):
        with pytest.raises(DataError, match=r"would expand from .* to 67,108,865 bytes"):
            read(bomb)
    stored = content.index(b"PK\x01\x02") + 20
    content[stored : stored + 8] = struct.pack("<II", 2**29, 2**30 + 1)  # twofold, but too large
    with pytest.raises(DataError, match="would expand from 536,870,912 to 1,073,741,825 bytes"):
        read_zip(bytes(content))


def test_the_size_limit_is_of_all_members_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "a.zip", ("a", b"x" * 60), ("b", b"x" * 60))
    monkeypatch.setattr(archives, "LARGEST_EXPANDED", 120)
    assert len(read_zip(path)) == 2
    monkeypatch.setattr(archives, "LARGEST_EXPANDED", 119)
    with pytest.raises(DataError, match="to 120 bytes"):
        read_zip(path, lambda name: name == "a")


def test_a_member_longer_than_it_says_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped(tmp_path / "a.zip", ("a", b"x" * 5000)).read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 10)
    with pytest.raises(DataError, match="truncated, damaged"):
        read_zip(bytes(content))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packing_methods_are_refused(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("a.txt", b"1")
    with pytest.raises(DataError, match="another method than deflate"):
        read_zip(tmp_path / "a.zip")


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "a.zip", ("a", b""), ("b", b""))
    monkeypatch.setattr(archives, "MOST_MEMBERS", 1)
    with pytest.raises(DataError, match="has 2 members"):
        read_zip(path)


def test_truncated_damaged_and_absent_zips(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = zipped(tmp_path / "a.zip", ("a", rng.bytes(1000))).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    with pytest.raises(DataError, match=r"cut\.zip cannot be read as a zip file"):
        read_zip(tmp_path / "cut.zip")
    damaged = bytearray(whole)
    damaged[500] ^= 255
    for content in (bytes(damaged), b"", b"not a zip"):
        with pytest.raises(DataError, match="cannot be read as a zip file"):
            read_zip(content)
    with pytest.raises(DataError, match="nowhere"):
        read_zip(tmp_path / "nowhere.zip")


def npz(path: Path, **arrays: object) -> Path:
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    return path


def test_an_honest_npz_is_read(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", a=np.arange(6).reshape(2, 3), s=np.array(["x", "yz"]), z=3.5)
    arrays = read_npz(path)
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["s"].tolist() == ["x", "yz"]
    assert arrays["z"] == 3.5
    empty = npz(tmp_path / "b.npz", e=np.zeros((0, 4), dtype=np.float32))
    assert read_npz(empty)["e"].shape == (0, 4)


class Payload:
    """Unpickling it creates the file it was given."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def test_pickles_are_refused_and_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    objects = np.array([Payload(trace)], dtype=object)
    path = npz(tmp_path / "a.npz", good=np.ones(2), x=objects)
    with pytest.raises(DataError, match=r"array 'x' of .*a\.npz holds Python objects"):
        read_npz(path)
    raw = zipped(tmp_path / "b.npz", ("x.npy", pickle.dumps(Payload(trace))))
    with pytest.raises(DataError, match="has a damaged header"):
        read_npz(raw)
    assert not trace.exists()
    with np.load(path, allow_pickle=True) as arrays:
        arrays["x"]  # the payload works where pickle is allowed
    assert trace.exists()


def forged(shape: str, dtype: str = "'<f8'") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 16


LIES = ["(10**9,)", "(100000000000,)", "(1000000000, 1000000000)", "(3,)", "(-1, -2)", "(2,"]


@pytest.mark.parametrize("shape", [*LIES, f"({'9' * 5000},)", "(2,), " + "'secret' " * 200])
def test_a_header_that_lies_is_refused_and_not_shown(tmp_path: Path, shape: str) -> None:
    assert read_npz(zipped(tmp_path / "ok.npz", ("a.npy", forged("(2,)"))))["a"].shape == (2,)
    path = zipped(tmp_path / "a.npz", ("a.npy", forged(shape)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError) as caught:
        read_npz(path)
    reason = "is truncated or has a damaged header: save it again with numpy.savez"
    assert str(caught.value) == f"array 'a' of {path} {reason}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_other_files_are_no_npz(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'a\.txt', which is no \.npy"):
        read_npz(zipped(tmp_path / "a.npz", ("a.txt", b"1")))
    version = bytearray(forged("(2,)"))
    version[6] = 9
    with pytest.raises(DataError, match="has a damaged header"):
        read_npz(zipped(tmp_path / "b.npz", ("a.npy", bytes(version))))
    buffer = io.BytesIO()
    np.savez(buffer, a=np.ones(1000))
    with pytest.raises(DataError, match=r"mine\.npz cannot be read"):
        read_npz(buffer.getvalue()[:4000], name="mine.npz")
