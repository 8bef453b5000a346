"""The QM9 cache: every molecule in one compressed npz file, whole and checked or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atomic_files import replace_file
from ...described import Described
from ...errors import DataError

RESOLUTION = 1e-5
"""Å to which positions are kept; the targets are kept as they are."""

FORMAT = 1
_MOST_BYTES = 1 << 30
_PLANES = 3
_COLUMNS = {
    "numbers": "<i4",
    "sizes": "|u1",
    "targets": "<f8",
    "elements": "|u1",
    "planes": "|u1",
    "atoms": "|u1",
    "degrees": "|u1",
    "neighbours": "|u1",
    "orders": "|u1",
}


# What zipfile, zlib, numpy and json raise on bytes that are not theirs.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    ValueError,
    LookupError,
    EOFError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)


@dataclass(frozen=True, eq=False, repr=False)
class Molecules(Described):
    """All molecules as flat arrays, one after the other.

    Attributes:
        numbers: `[G]` number of each molecule in GDB-9, from 1.
        sizes: `[G]` atoms of each.
        targets: `[G, 12]` in the order of `QM9_TARGETS`, in the files' units.
        elements: `[ΣN]` atomic numbers.
        positions: `[ΣN, 3]` in Å, to `RESOLUTION`.
        atoms: `[ΣN, 6]` as `Molecule.atoms`.
        degrees: `[ΣN]` neighbours of each atom.
        neighbours: `[ΣE]` of each atom in turn, counted from 0 within its molecule.
        orders: `[ΣE]` of each of those bonds, with `AROMATIC_BIT`.
        about: Origin, checksums of the files read, versions, counts.
        sha256: Checksum of everything above.
    """

    numbers: NDArray[np.int32]
    sizes: NDArray[np.uint8]
    targets: NDArray[np.float64]
    elements: NDArray[np.uint8]
    positions: NDArray[np.float32]
    atoms: NDArray[np.uint8]
    degrees: NDArray[np.uint8]
    neighbours: NDArray[np.uint8]
    orders: NDArray[np.uint8]
    about: Mapping[str, Any]
    sha256: str = ""

    def facts(self) -> dict[str, str]:
        """How many, for `repr` and notebooks."""
        return {"molecules": f"{len(self.sizes):,}", "atoms": f"{len(self.elements):,}"}


def write_cache(path: Path, molecules: Molecules) -> str:
    """Write the cache under a temporary name, then put it in place; return its checksum.

    Raises:
        DataError: If it cannot be written; what stood there before still does.
    """
    arrays = {
        name: np.ascontiguousarray(getattr(molecules, name), dtype=kind)
        for name, kind in _COLUMNS.items()
        if name != "planes"
    }
    arrays["planes"] = _to_planes(molecules.positions)
    about = json.dumps({**molecules.about, "format": FORMAT}, sort_keys=True)
    checksum = _checksum(arrays, about)
    made = io.BytesIO()
    np.savez_compressed(made, about=about, sha256=checksum, **arrays)  # type: ignore[arg-type]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, made.getvalue(), shared=True)
    except OSError as error:
        raise DataError(
            f"cannot write the QM9 cache {str(path)!r} ({error}): free space there, or name "
            "another place with cache=..."
        ) from error
    return checksum


def read_cache(path: Path) -> Molecules:
    """Read the cache and check it against its own checksum.

    Raises:
        DataError: If it is truncated, altered or of another format; it says how to rebuild it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise ValueError("its members are too large")
            arrays = {name: _member(archive, name) for name in _COLUMNS}
            about, checksum = (str(_member(archive, name)) for name in ("about", "sha256"))
        if _checksum(arrays, about) != checksum:
            raise ValueError("its checksum does not fit")
        facts: dict[str, Any] = json.loads(about)
        if facts.get("format") != FORMAT:
            raise ValueError(f"its format is {facts.get('format')}, expected {FORMAT}")
    except _DAMAGES as error:
        raise DataError(
            f"the QM9 cache {str(path)!r} is truncated or altered ({error}): build it again with "
            "load_qm9(rebuild=True), or delete it and it is built at the next use"
        ) from error
    planes = arrays.pop("planes")
    return Molecules(positions=_from_planes(planes), about=facts, sha256=checksum, **arrays)


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """One array of the archive; never a pickle."""
    # A header that claims more than its member holds then fails on reading, not on memory.
    content = io.BytesIO(archive.read(f"{name}.npy"))
    array: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False)
    if name in _COLUMNS and array.dtype.str != _COLUMNS[name]:
        raise ValueError(f"{name} holds {array.dtype.str}, expected {_COLUMNS[name]}")
    return array


def _checksum(arrays: Mapping[str, NDArray[Any]], about: str) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _to_planes(positions: NDArray[Any]) -> NDArray[np.uint8]:
    """`[3, 3, ΣN]` bytes of the rounded coordinates, low byte first: they compress by a third."""
    steps = np.rint(np.asarray(positions, dtype=np.float64).T / RESOLUTION).astype("<i4")
    if np.abs(steps).max(initial=0) >= 1 << (8 * _PLANES - 1):
        raise DataError(f"a position is {np.abs(positions).max():.0f} Å from the origin")
    octets = np.ascontiguousarray(steps).view(np.uint8).reshape(*steps.shape, 4)
    return np.ascontiguousarray(np.moveaxis(octets, 2, 0)[:_PLANES])


def _from_planes(planes: NDArray[np.uint8]) -> NDArray[np.float32]:
    low, middle, high = planes
    steps = high.view(np.int8).astype(np.float32) * 65536
    steps += middle.astype(np.float32) * 256
    steps += low
    # Whole numbers below 2²³ are exact in float32, and so is 1e5: one rounding in all.
    steps /= np.float32(round(1 / RESOLUTION))
    return np.ascontiguousarray(steps.T)
