"""One QM9 molecule: DFT geometry, bonds in the order of the geometry, and what RDKit says of atoms.

qm9pack gives a geometry and a SMILES whose atoms come in different orders. The bonds are found by
taking as many atom pairs as the SMILES has bonds, shortest first by d / (rᵢ + rⱼ), and matching the
SMILES onto that skeleton. A match covers every atom and the counts are equal, so it is an
isomorphism: the molecule in XYZ order is the SMILES' molecule, bond for bond.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError

Bytes = NDArray[np.uint8]

# Covalent radii in Å by atomic number (Cordero et al. 2008).
_RADII = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57}
_NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
# Two of the 130,831 molecules (133857 and 133859) have a bond longer than some non-bonded pair.
_LOOSE_RATIO = 1.45
_MOST_MATCHES = 100_000

AROMATIC_BIT = 4
"""Set in a bond's order where the bond is aromatic; the rest is its Kekulé order, 1 to 3."""


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule as arrays, its atoms in the order of the geometry.

    Attributes:
        elements: `[n]` atomic numbers.
        positions: `[n, 3]` in Å.
        atoms: `[n, 6]` aromatic, hybridisation (1 sp, 2 sp2, 3 sp3, else 0), hydrogen-bond donor,
            hydrogen-bond acceptor, hydrogens bonded, formal charge + 8.
        degrees: `[n]` neighbours of each atom.
        neighbours: `[Σ degrees]` of each atom in turn, ascending.
        orders: `[Σ degrees]` order of each of those bonds, with `AROMATIC_BIT`.
    """

    elements: Bytes
    positions: NDArray[np.float64]
    atoms: Bytes
    degrees: Bytes
    neighbours: Bytes
    orders: Bytes


def molecule_from_smiles(label: str, smiles: str, elements: str, xyz: str) -> Molecule:
    """Rebuild a molecule from a row of qm9pack.

    Args:
        label: What an error calls it.
        smiles: Its SMILES.
        elements: Symbols in XYZ order, as `['C','H']`.
        xyz: Coordinates in Å, as `[[0.,1.5,2],[…]]`; floats like `0.` are no JSON.

    Raises:
        DataError: If the SMILES does not fit the geometry.
    """
    from rdkit import Chem

    symbols = elements.translate(_NO_BRACKETS).split(",")
    if unknown := set(symbols) - _NUMBERS.keys():
        raise DataError(f"{label} holds {sorted(unknown)}; QM9 has H, C, N, O and F only")
    numbers = np.array([_NUMBERS[symbol] for symbol in symbols], dtype=np.uint8)
    positions = np.array(xyz.translate(_NO_BRACKETS).split(","), dtype=np.float64).reshape(-1, 3)
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
    return _arrays(order, numbers, positions, kekule, template)


def molecule_from_block(label: str, block: str) -> tuple[Molecule, bool]:
    """Read a molecule from one entry of `gdb9.sdf`; its bonds are already in the right order.

    Returns:
        The molecule, and whether RDKit could make sense of its valences. Some entries lack the
        charges they need; what RDKit would say of their atoms is then left at 0.
    """
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        as_written = Chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
        if as_written is None:
            raise DataError(f"{label} of gdb9.sdf is damaged; get the file again")
        perceived = Chem.Mol(as_written)
        clean = Chem.SanitizeMol(perceived, catchErrors=True) == Chem.SANITIZE_NONE
    numbers = np.array([atom.GetAtomicNum() for atom in as_written.GetAtoms()], dtype=np.uint8)
    positions = np.asarray(as_written.GetConformer().GetPositions(), dtype=np.float64)
    order = range(len(numbers))
    return _arrays(order, numbers, positions, as_written, perceived if clean else None), clean


_NO_BRACKETS = str.maketrans("", "", "[]' \"")


def _match(template: Any, numbers: Bytes, positions: NDArray[np.float64]) -> Sequence[int] | None:
    """For each atom of the template its place in the geometry, or None."""
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

    shortest = np.argsort(ratios, kind="stable")[: len(bonds)]
    pairs = zip(first[shortest].tolist(), second[shortest].tolist(), strict=True)
    match: Sequence[int] = _skeleton(numbers.tolist(), pairs).GetSubstructMatch(query)
    if match:
        return match
    loose = np.flatnonzero(ratios < _LOOSE_RATIO)
    pairs = zip(first[loose].tolist(), second[loose].tolist(), strict=True)
    matches: Iterable[Sequence[int]] = _skeleton(numbers.tolist(), pairs).GetSubstructMatches(
        query, uniquify=False, maxMatches=_MOST_MATCHES
    )
    table = np.zeros((len(numbers), len(numbers)))
    table[first, second] = table[second, first] = ratios
    begins, ends = np.array(bonds, dtype=np.int64).reshape(-1, 2).T

    def total(match: Sequence[int]) -> float:
        place = np.array(match)
        return float(table[place[begins], place[ends]].sum())

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


def _arrays(
    order: Sequence[int],
    numbers: Bytes,
    positions: NDArray[np.float64],
    kekule: Any,
    perceived: Any | None,
) -> Molecule:
    """Write a molecule in XYZ order.

    Args:
        order: For each atom of the two molecules its place in the geometry.
        numbers: `[n]` atomic numbers in XYZ order.
        positions: `[n, 3]`.
        kekule: The molecule without aromatic bonds.
        perceived: The same, sanitised; None where RDKit refuses it.
    """
    from rdkit import Chem

    hybridisation = Chem.HybridizationType
    rank = {hybridisation.SP: 1, hybridisation.SP2: 2, hybridisation.SP3: 3}
    atoms = np.zeros((len(numbers), 6), dtype=np.uint8)
    table = np.zeros((len(numbers), len(numbers)), dtype=np.uint8)
    for place, atom in zip(order, kekule.GetAtoms(), strict=True):
        atoms[place, 5] = atom.GetFormalCharge() + 8
    for bond in kekule.GetBonds():
        begin, end = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
        table[begin, end] = table[end, begin] = int(bond.GetBondTypeAsDouble())
    if perceived is not None:
        for place, atom in zip(order, perceived.GetAtoms(), strict=True):
            atoms[place, 0] = atom.GetIsAromatic()
            atoms[place, 1] = rank.get(atom.GetHybridization(), 0)
        for column, family in ((2, "Donor"), (3, "Acceptor")):
            for feature in _feature_factory().GetFeaturesForMol(perceived, includeOnly=family):
                atoms[[order[atom] for atom in feature.GetAtomIds()], column] = 1
        for bond in perceived.GetBonds():
            if bond.GetIsAromatic():
                begin, end = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
                table[[begin, end], [end, begin]] |= AROMATIC_BIT
    atoms[:, 4] = ((table > 0) & (numbers == 1)).sum(axis=1)
    sources, neighbours = np.nonzero(table)
    degrees = np.bincount(sources, minlength=len(numbers)).astype(np.uint8)
    return Molecule(
        numbers,
        positions,
        atoms,
        degrees,
        neighbours.astype(np.uint8),
        table[sources, neighbours],
    )


@cache
def _feature_factory() -> Any:
    """RDKit's own hydrogen-bond donors and acceptors (`BaseFeatures.fdef`), as in MPNN and PPGN."""
    from rdkit import RDConfig

    path = os.path.join(RDConfig.RDDataDir, "BaseFeatures.fdef")
    return import_module("rdkit.Chem.ChemicalFeatures").BuildFeatureFactory(path)
