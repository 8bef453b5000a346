"""Build the QM9 cache: two processes rebuild the molecules while a progress bar counts them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import current_process, get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from .bonds import Molecule, molecule_from_block, molecule_from_smiles
from .cache import Molecules, write_cache
from .sources import MOLECULES, Entry, find_source

_CHUNK = 512
_PARTS = ("elements", "positions", "atoms", "degrees", "neighbours", "orders")


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some molecules one after the other, and how many of them RDKit could not make sense of."""

    entries: list[tuple[int, tuple[float, ...]]]
    sizes: list[int]
    parts: dict[str, NDArray[Any]]
    unclean: int


def build_qm9(
    path: Path,
    data: str | Path | None = None,
    rows: int | None = None,
    processes: int = 2,
    progress: bool = True,
) -> None:
    """Build the cache file from qm9pack, or from PyG's raw files where `data` holds them.

    Args:
        path: Where the cache is written.
        data: Folder that may hold the raw files; see `find_source`.
        rows: Only that many molecules from the beginning; all where None.
        processes: How many processes work; with 1 no other process is started.
        progress: Whether a progress bar is shown.

    Raises:
        DataError: If the files are absent or damaged, or the cache cannot be written.
    """
    source = find_source(data)
    chunks: list[_Chunk] = []
    with _bar(progress, min(rows or MOLECULES, MOLECULES)) as advance:
        for chunk in _worked(_grouped(islice(source.entries(), rows)), processes):
            chunks.append(chunk)
            advance(len(chunk.sizes))
    count = sum(len(chunk.sizes) for chunk in chunks)
    if rows is None and count != MOLECULES:
        raise DataError(
            f"{source.origin} holds {count:,} molecules, QM9 has {MOLECULES:,}: a file is "
            "incomplete; get it again"
        )
    about = {
        "origin": source.origin,
        "files": source.sha256(),
        "unclean": sum(chunk.unclean for chunk in chunks),
        "rdkit": importlib.metadata.version("rdkit"),
    }
    write_cache(path, _joined(chunks, about))


def _grouped(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    while group := list(islice(entries, _CHUNK)):
        yield group


def _worked(groups: Iterable[list[Entry]], processes: int) -> Iterator[_Chunk]:
    """Rebuild every group, in order; a worker of another program may start no process."""
    if processes == 1 or current_process().daemon:
        yield from map(_rebuild, groups)
        return
    # Spawned, not forked: a fork of a process whose torch has threads may hang.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(_rebuild, groups)
        except BrokenProcessPool as error:
            raise DataError(
                "a process that builds QM9 died: in a script of your own, call load_qm9 below "
                "`if __name__ == '__main__':`; else the machine may be short of memory"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _rebuild(group: list[Entry]) -> _Chunk:
    """Turn entries of the files into arrays; this is what runs in another process."""
    molecules: list[Molecule] = []
    unclean = 0
    for entry in group:
        label = f"molecule {entry.number} of QM9"
        if len(entry.texts) == 1:
            molecule, clean = molecule_from_block(label, *entry.texts)
            unclean += not clean
        else:
            molecule = molecule_from_smiles(label, *entry.texts)
        molecules.append(molecule)
    parts = {part: np.concatenate([getattr(m, part) for m in molecules]) for part in _PARTS}
    # The texts stay behind: they are nine tenths of what would travel back.
    entries = [(entry.number, entry.targets) for entry in group]
    return _Chunk(entries, [len(m.elements) for m in molecules], parts, unclean)


def _joined(chunks: list[_Chunk], about: dict[str, Any]) -> Molecules:
    entries = [entry for chunk in chunks for entry in chunk.entries]
    parts: dict[str, Any] = {
        part: np.concatenate([chunk.parts[part] for chunk in chunks]) for part in _PARTS
    }
    return Molecules(
        numbers=np.array([number for number, _ in entries], dtype=np.int32),
        sizes=np.array([size for chunk in chunks for size in chunk.sizes], dtype=np.uint8),
        targets=np.array([targets for _, targets in entries], dtype=np.float64),
        about=about,
        **parts,
    )


@contextmanager
def _bar(shown: bool, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, or nothing; yields what moves it on."""
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("building QM9", total=total)
        yield lambda done: progress.advance(task, done)
