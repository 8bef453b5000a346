"""QM9 out of the package qm9pack, its bonds rebuilt in the order of the atoms of the geometry.

qm9pack gives a geometry and a SMILES whose atoms are in different orders. The bonds are rebuilt by
taking as many atom pairs as the SMILES has bonds, shortest first by d / (rᵢ + rⱼ), and matching the
SMILES onto that skeleton. A match covers every atom and the counts are equal, so it is an
isomorphism: the molecule in XYZ order is the SMILES' molecule, bond for bond.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib import import_module
from itertools import islice
from multiprocessing import current_process, get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from ..errors import DataError
from ..input_files import sha256_of
from .graph_set import Ints

Arrays = dict[str, NDArray[Any]]
Entry = tuple[int, tuple[float, ...], tuple[str, str, str]]
"""Number in GDB-9, targets, and SMILES, elements and coordinates as text."""

MOLECULES = 130_831
"""Molecules of QM9 without the 3,054 that failed its consistency check."""
AROMATIC_BIT = 4
"""Set in a bond's order if the bond is aromatic; the other bits are its Kekulé order, 1 to 3."""
ATOMIC_NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
_INSTALL = 'pip install "g2n2[chem]"'
_CHUNK = 512
# Covalent radii in Å by atomic number (Cordero et al. 2008).
_RADII = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57}
_HYBRIDISATION = {"SP": 1, "SP2": 2, "SP3": 3}
# Two of the 130,831 molecules (133857 and 133859) have a bond longer than some non-bonded pair.
_LOOSE_RATIO = 1.45
_MOST_MATCHES = 100_000


def find_source() -> list[Path]:
    """The files of the package qm9pack."""
    # qm9pack cannot be imported with a recent setuptools, but its folder can be found.
    spec = importlib.util.find_spec("qm9pack")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"QM9 comes with the package qm9pack, which is not installed: {_INSTALL}")
    folder = Path(spec.submodule_search_locations[0], "data")
    files = [folder / f"qm9_part{part}.csv" for part in (1, 2, 3)]
    if absent := [path.name for path in files if not path.is_file()]:
        raise DataError(f"qm9pack is installed without {', '.join(absent)}; reinstall it")
    if importlib.util.find_spec("rdkit") is None:
        raise DataError(f"building QM9 needs RDKit, which is not installed: {_INSTALL}")
    return files


def rebuild_qm9(
    columns: Sequence[str], rows: int | None, processes: int, progress: bool
) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of all molecules, or the first `rows`, and what they were made from.

    Args:
        columns: The columns of qm9pack with the targets.
        rows: How many molecules; None for all, which are counted.
        processes: Workers; a daemonic process may not start others, and works alone.
        progress: Whether to show a progress bar.
    """
    files = find_source()
    entries = islice(read_entries(files, columns), rows)
    groups = iter(lambda: list(islice(entries, _CHUNK)), [])
    alone = processes == 1 or current_process().daemon
    chunks = map(rebuild, groups) if alone else _in_processes(groups, processes)
    total = -(-min(rows or MOLECULES, MOLECULES) // _CHUNK)
    console = Console(stderr=True)
    bar = track(chunks, "building QM9", total, console=console, disable=not progress)
    arrays = _joined([*bar])
    if rows is None and (count := len(arrays["sizes"])) != MOLECULES:
        raise DataError(f"qm9pack holds {count:,} molecules, QM9 has {MOLECULES:,}: reinstall it")
    return arrays, {
        "origin": "qm9pack",
        "files": {file.name: sha256_of(file) for file in files},
        "rdkit": importlib.metadata.version("rdkit"),
    }


def read_entries(files: Sequence[Path], columns: Sequence[str]) -> Iterator[Entry]:
    """Every molecule, in the order of the files."""
    for path in files:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    targets = tuple(float(row[column]) for column in columns)
                    texts = (row["SMILES"], row["Elements"], row["XYZ_Ang"])
                    yield int(row["Index"]), targets, texts
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"cannot read QM9 from {path.name} ({error!r}): reinstall qm9pack"
            ) from error


def _in_processes(groups: Iterable[list[Entry]], processes: int) -> Iterator[Arrays]:
    # Spawned, not forked: a fork of a process whose torch has threads may hang.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(rebuild, groups)
        except BrokenProcessPool as error:
            raise DataError(
                "a process that builds QM9 died: in a script of your own, call load_qm9 below "
                "`if __name__ == '__main__':`; else the machine may be short of memory"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def rebuild(entries: Iterable[Entry]) -> Arrays:
    """The arrays of some molecules; the texts, nine tenths of the traffic, are not sent back."""
    return _joined(
        [
            {
                "numbers": np.array([number], dtype=np.int32),
                "targets": np.array([targets], dtype=np.float64),
                **molecule_from_smiles(f"molecule {number} of QM9", *texts),
            }
            for number, targets, texts in entries
        ]
    )


def _joined(parts: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def molecule_from_smiles(label: str, smiles: str, elements: str, xyz: str) -> Arrays:
    """Rebuild a molecule from a row of qm9pack, its atoms in XYZ order.

    Elements are written `['C','H']`, coordinates `[[0.,1.5,2],[…]]`; floats like `0.` are not JSON.
    """
    from rdkit import Chem

    no_brackets = str.maketrans("", "", "[]' \"")
    symbols = elements.translate(no_brackets).split(",")
    if unknown := set(symbols) - ATOMIC_NUMBERS.keys():
        raise DataError(f"{label} holds {sorted(unknown)}; QM9 has H, C, N, O and F only")
    numbers = np.array([ATOMIC_NUMBERS[symbol] for symbol in symbols], dtype=np.uint8)
    positions = np.array(xyz.translate(no_brackets).split(","), dtype=np.float64).reshape(-1, 3)
    parsed = Chem.MolFromSmiles(smiles)
    if parsed is None or len(numbers) != len(positions):
        raise DataError(
            f"{label} is damaged: SMILES {smiles!r}, {len(numbers)} elements, "
            f"{len(positions)} positions; reinstall qm9pack"
        )
    template = Chem.AddHs(parsed)
    order = _match(template, numbers, positions)
    if order is None:
        raise DataError(f"{label}: SMILES {smiles!r} does not fit its geometry; reinstall qm9pack")
    kekule = Chem.Mol(template)
    Chem.Kekulize(kekule, clearAromaticFlags=True)
    atoms = np.zeros((len(numbers), 6), dtype=np.uint8)
    for index, atom in zip(order, template.GetAtoms(), strict=True):
        rank = _HYBRIDISATION.get(atom.GetHybridization().name, 0)
        atoms[index] = atom.GetIsAromatic(), rank, 0, 0, 0, atom.GetFormalCharge() + 8
    for column, family in ((2, "Donor"), (3, "Acceptor")):
        for feature in _feature_factory().GetFeaturesForMol(template, includeOnly=family):
            atoms[[order[atom] for atom in feature.GetAtomIds()], column] = 1
    orders = np.zeros((len(numbers), len(numbers)), dtype=np.uint8)
    for bond, whole in zip(template.GetBonds(), kekule.GetBonds(), strict=True):
        begin, end = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
        aromatic = AROMATIC_BIT * bond.GetIsAromatic()
        orders[[begin, end], [end, begin]] = int(whole.GetBondTypeAsDouble()) | aromatic
    atoms[:, 4] = ((orders > 0) & (numbers == 1)).sum(axis=1)
    sources, neighbours = np.nonzero(orders)
    return {
        "sizes": np.array([len(numbers)], dtype=np.uint8),
        "elements": numbers,
        "positions": positions,
        "atoms": atoms,
        "degrees": np.bincount(sources, minlength=len(numbers)).astype(np.uint8),
        "neighbours": neighbours.astype(np.uint8),
        "orders": orders[sources, neighbours],
    }


@cache
def _feature_factory() -> Any:
    """RDKit's own hydrogen-bond donors and acceptors (`BaseFeatures.fdef`), as in MPNN and PPGN."""
    from rdkit import RDConfig

    path = os.path.join(RDConfig.RDDataDir, "BaseFeatures.fdef")
    return import_module("rdkit.Chem.ChemicalFeatures").BuildFeatureFactory(path)


def _match(
    template: Any, numbers: NDArray[np.uint8], positions: NDArray[np.float64]
) -> Sequence[int] | None:
    """For each atom of the template its index in the geometry, or None."""
    if template.GetNumAtoms() != len(numbers):
        return None
    first, second = np.triu_indices(len(numbers), 1)
    bondable = (numbers[first] > 1) | (numbers[second] > 1)
    first, second = first[bondable], second[bondable]
    radii = np.array([_RADII[int(number)] for number in numbers])
    lengths = np.linalg.norm(positions[first] - positions[second], axis=1)
    ratios = lengths / (radii[first] + radii[second])
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in template.GetBonds()]
    query = _skeleton([atom.GetAtomicNum() for atom in template.GetAtoms()], bonds)

    def bonded(pairs: Ints) -> Any:
        ends = zip(first[pairs].tolist(), second[pairs].tolist(), strict=True)
        return _skeleton(numbers.tolist(), ends)

    shortest = np.argsort(ratios, kind="stable")[: len(bonds)]
    match: Sequence[int] = bonded(shortest).GetSubstructMatch(query)
    if match:
        return match
    matches: Iterable[Sequence[int]] = bonded(
        np.flatnonzero(ratios < _LOOSE_RATIO)
    ).GetSubstructMatches(query, uniquify=False, maxMatches=_MOST_MATCHES)
    ratio_of = np.zeros((len(numbers), len(numbers)))
    ratio_of[first, second] = ratio_of[second, first] = ratios
    begins, ends = np.array(bonds, dtype=np.int64).reshape(-1, 2).T

    def total(match: Sequence[int]) -> float:
        index = np.array(match)
        return float(ratio_of[index[begins], index[ends]].sum())

    return min(matches, key=total, default=None)


def _skeleton(numbers: Iterable[int], bonds: Iterable[tuple[int, int]]) -> Any:
    """A molecule of bare atoms and single bonds, so that only elements and bonds are compared."""
    from rdkit import Chem

    molecule = Chem.RWMol()
    for number in numbers:
        atom = Chem.Atom(number)
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for begin, end in bonds:
        molecule.AddBond(begin, end, Chem.BondType.SINGLE)
    return molecule
