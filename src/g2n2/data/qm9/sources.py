"""Where QM9 is read from: the CSV files of qm9pack, or the raw files PyG downloads.

Both are streams of entries; the chemistry is left to the processes that build the cache.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ...errors import DataError
from .targets import QM9_TARGETS

Origin = Literal["qm9pack", "gdb9.sdf"]

MOLECULES = 130_831
"""Molecules of QM9 less the 3,054 that failed its consistency check."""

_PARTS = tuple(f"qm9_part{part}.csv" for part in (1, 2, 3))
_SDF, _TABLE, _UNCHARACTERIZED = "gdb9.sdf", "gdb9.sdf.csv", "uncharacterized.txt"
_INSTALL = 'pip install "g2n2[chem]"'


class Entry(NamedTuple):
    """One molecule as the files hold it.

    Attributes:
        number: Its number in GDB-9, from 1.
        targets: The twelve values, in the order of `QM9_TARGETS` and the files' units.
        texts: SMILES, elements and coordinates from qm9pack; one mol block from the SDF.
    """

    number: int
    targets: tuple[float, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The files QM9 is built from.

    Attributes:
        origin: Which of the two layouts.
        files: The files read.
    """

    origin: Origin
    files: tuple[Path, ...]

    def entries(self) -> Iterator[Entry]:
        """Every molecule, in the order of the files.

        Raises:
            DataError: If a file is not what it should be.
        """
        try:
            yield from (_qm9pack if self.origin == "qm9pack" else _sdf)(self.files)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            names = ", ".join(path.name for path in self.files)
            raise DataError(
                f"cannot read QM9 from {names} ({error!r}): get the files again"
            ) from error

    def sha256(self) -> dict[str, str]:
        """The checksum of each file, by its name."""
        sums = {}
        for path in self.files:
            with path.open("rb") as file:
                sums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        return sums


def find_source(data: str | Path | None = None) -> Source:
    """Find QM9's files: PyG's raw files below `data` first, then the qm9pack package.

    Args:
        data: A folder that may hold `gdb9.sdf`, `gdb9.sdf.csv` and `uncharacterized.txt`, itself or
            in `raw`, `QM9/raw` or `qm9/raw` below it.

    Raises:
        DataError: If there is neither, or no RDKit to read them with; names the extra to install.
    """
    source = _raw_files(data) or _packaged_files()
    if source is None:
        raw = f"{_SDF}, {_TABLE} and {_UNCHARACTERIZED}"
        sought = "" if data is None else f" and {str(data)!r} does not hold {raw}"
        raise DataError(
            f"QM9 is not here: the package qm9pack, which carries it, is not installed{sought}. "
            f"Install it: {_INSTALL}"
        )
    if importlib.util.find_spec("rdkit") is None:
        raise DataError(f"building QM9 needs RDKit, which is not installed: {_INSTALL}")
    return source


def has_raw_files(data: str | Path | None) -> bool:
    """Whether PyG's raw files lie below `data`."""
    return _raw_files(data) is not None


def _raw_files(data: str | Path | None) -> Source | None:
    if data is None:
        return None
    if not Path(data).is_dir():
        raise DataError(f"the data folder {str(data)!r} is no folder: correct it or leave it out")
    for below in ("", "raw", "QM9/raw", "qm9/raw"):
        files = tuple(Path(data, below, name) for name in (_SDF, _TABLE, _UNCHARACTERIZED))
        if all(path.is_file() for path in files):
            return Source("gdb9.sdf", files)
    return None


def _packaged_files() -> Source | None:
    # qm9pack cannot be imported beside a present-day setuptools; its folder can still be found.
    spec = importlib.util.find_spec("qm9pack")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0], "data")
    files = tuple(folder / name for name in _PARTS)
    if absent := [path.name for path in files if not path.is_file()]:
        raise DataError(f"qm9pack is installed without {', '.join(absent)}; reinstall it")
    return Source("qm9pack", files)


def _qm9pack(files: tuple[Path, ...]) -> Iterator[Entry]:
    for path in files:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                targets = tuple(float(row[target.column]) for target in QM9_TARGETS)
                texts = (row["SMILES"], row["Elements"], row["XYZ_Ang"])
                yield Entry(int(row["Index"]), targets, texts)


def _sdf(files: tuple[Path, ...]) -> Iterator[Entry]:
    blocks, table, uncharacterized = files
    # PyG's reading of this file: nine lines of heading and two at the foot are no entries.
    lines = uncharacterized.read_text(encoding="utf-8").split("\n")[9:-2]
    left_out = {int(line.split()[0]) for line in lines}
    with table.open(encoding="utf-8", newline="") as rows, blocks.open(encoding="utf-8") as sdf:
        pairs = zip(csv.DictReader(rows), _blocks(sdf), strict=True)
        for number, (row, block) in enumerate(pairs, 1):
            if number not in left_out:
                targets = tuple(float(row[target.raw_column]) for target in QM9_TARGETS)
                yield Entry(number, targets, (block,))


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """The entries of an SDF, one text each."""
    block: list[str] = []
    for line in lines:
        if line.startswith("$$$$"):
            yield "".join(block)
            block = []
        else:
            block.append(line)
