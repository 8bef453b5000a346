"""Molecules as graphs: what every reader of SMILES, SDF and XYZ shares.

Node features (`ATOM_FEATURES`) and edge features (`BOND_FEATURES`) are the same for every file, so
a network trained on one file reads another. Chirality and double-bond geometry are CIP labels (R,
S, E, Z), which do not depend on the order of the atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...errors import DataError
from ...graphs.text import LONGEST_SMILES
from ..assembly import GraphRecord

Molecule: TypeAlias = Any  # an rdkit Mol: RDKit ships no types

ELEMENTS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I")
OTHER_ELEMENT = "other element"
ATOM_FEATURES = (
    *ELEMENTS,
    OTHER_ELEMENT,
    "formal charge",
    "aromatic",
    "sp",
    "sp2",
    "sp3",
    "hydrogens",
    "in ring",
    "R",
    "S (stereo)",
)
BOND_FEATURES = ("single", "double", "triple", "aromatic", "in ring", "E", "Z")
_ELEMENT_COLUMN = {symbol: column for column, symbol in enumerate(ELEMENTS)}
_BOND_ORDER_TRIALS = 10_000  # the search for orders is exponential in the worst case
MOST_ATOMS = LONGEST_SMILES
"""Of a molecule, for the same reason."""
_BOND_ORDERS = {1.0: 0, 2.0: 1, 3.0: 2, 1.5: 3}
# RDKit raises plain RuntimeError for a broken invariant and ValueError for broken chemistry.
_RDKIT_FAULTS = (RuntimeError, ValueError, OverflowError)


@contextmanager
def chemistry() -> Iterator[Any]:
    """Give `rdkit.Chem` with its own messages held back: ours name the row at fault.

    Raises:
        DataError: If RDKit is not installed.
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError(
            "molecules are read with RDKit, which is not installed: pip install 'g2n2[chem]'"
        ) from error
    with rdBase.BlockLogs():
        yield Chem


def parse_smiles(chem: Any, text: str) -> Molecule | str:
    """One molecule with hydrogens implicit, or why the text is none."""
    if not text:
        return "no SMILES"
    shown = _shortened(text)
    if len(text) > LONGEST_SMILES:
        return f"{shown} has {len(text):,} characters; at most {LONGEST_SMILES:,} are read"
    # RDKit takes what follows white space for a name, so a sentence may pass for a molecule.
    if len(text.split()) > 1 and "|" not in text:
        return f"{shown} holds white space"
    try:
        molecule = chem.MolFromSmiles(text)
        if molecule is not None:
            return molecule if molecule.GetNumAtoms() else f"{shown} has no atoms"
        return f"{shown}: {_fault(chem, chem.MolFromSmiles(text, sanitize=False), 'SMILES')}"
    except _RDKIT_FAULTS as fault:
        return f"{shown}: {_in_one_line(fault)}"


def parse_mol_block(chem: Any, text: str) -> Molecule | str:
    """One molecule of an SDF with the hydrogens it lists, or why the record is none."""
    try:
        molecule = chem.MolFromMolBlock(text, removeHs=False)
        if molecule is not None:
            return molecule if molecule.GetNumAtoms() else "no atoms"
        raw = chem.MolFromMolBlock(text, sanitize=False, removeHs=False)
        return _fault(chem, raw, "a V2000 or V3000 record")
    except _RDKIT_FAULTS as fault:
        return _in_one_line(fault)


def molecule_from_atoms(
    chem: Any, atoms: Sequence[tuple[str, float, float, float]], charge: str
) -> tuple[Molecule | str, bool]:
    """A molecule from elements and coordinates: bonds by distance, bond orders from valences.

    Returns:
        The molecule, or why there is none, and whether bond orders were found.
    """
    from rdkit.Chem import rdDetermineBonds

    bare = chem.RWMol()
    shape = chem.Conformer(len(atoms))
    shape.Set3D(True)
    for index, (symbol, *point) in enumerate(atoms):
        try:
            bare.AddAtom(chem.Atom(_symbol(chem, symbol)))
        except _RDKIT_FAULTS:
            return f"{_shortened(symbol)} is no element", False
        shape.SetAtomPosition(index, point)
    bare.AddConformer(shape)
    try:
        total = int(float(charge or 0))
    except (ValueError, OverflowError):
        return f"charge={_shortened(charge)} is no whole number", False
    if len(atoms) == 1:
        return _lone_atom(chem, bare, total), True
    molecule = chem.RWMol(bare)
    try:
        rdDetermineBonds.DetermineBonds(molecule, charge=total, maxIterations=_BOND_ORDER_TRIALS)
    except _RDKIT_FAULTS:
        return _connected(chem, bare), False
    return molecule, True


def _connected(chem: Any, bare: Molecule) -> Molecule | str:
    """The molecule with single bonds by distance, where no bond orders fit."""
    from rdkit.Chem import rdDetermineBonds

    molecule = chem.RWMol(bare)
    try:
        rdDetermineBonds.DetermineConnectivity(molecule)
        molecule.UpdatePropertyCache(strict=False)
        chem.FastFindRings(molecule)
        chem.SetHybridization(molecule)
    except _RDKIT_FAULTS as fault:
        return _in_one_line(fault)
    return molecule


def _lone_atom(chem: Any, bare: Molecule, charge: int) -> Molecule | str:
    """A single atom, as He or Na with charge=1, for which RDKit determines no bonds."""
    molecule = chem.RWMol(bare)
    atom = molecule.GetAtomWithIdx(0)
    atom.SetNoImplicit(True)
    try:
        atom.SetFormalCharge(charge)
        chem.SanitizeMol(molecule)
    except _RDKIT_FAULTS as fault:
        return _in_one_line(fault)
    if atom.GetNumRadicalElectrons():
        return (
            f"a single {atom.GetSymbol()} atom of charge {charge} with free valences; list its "
            "hydrogens, or its charge as charge= in the comment"
        )
    return molecule


@dataclass(frozen=True, eq=False)
class ReadMolecule:
    """One molecule as a graph.

    Attributes:
        record: Its graph.
        smiles: Its canonical SMILES.
        fragments: Number of its parts without a bond between them.
        elements: Symbols of its atoms that are nodes.
    """

    record: GraphRecord
    smiles: str
    fragments: int
    elements: frozenset[str]


def graph_and_smiles(
    chem: Any, molecule: Molecule, hydrogens: bool = False, largest: bool = False
) -> ReadMolecule | str:
    """The graph of a molecule and its canonical SMILES, or why there is none.

    Args:
        chem: `rdkit.Chem`.
        molecule: From one of the functions above.
        hydrogens: Make implicit hydrogens nodes of the graph.
        largest: Keep only the fragment with the most heavy atoms.
    """
    if molecule.GetNumAtoms() > MOST_ATOMS:
        return f"{molecule.GetNumAtoms():,} atoms; molecules of at most {MOST_ATOMS:,} are read"
    try:
        fragments = len(chem.GetMolFrags(molecule))
        if largest and fragments > 1:
            molecule = _largest_fragment(chem, molecule)
        record = molecule_record(chem.AddHs(molecule) if hydrogens else molecule)
        elements = frozenset(atom.GetSymbol() for atom in _atoms(molecule))
        heavy = chem.RemoveHs(molecule, sanitize=False) if "H" in elements else molecule
        if record.size > molecule.GetNumAtoms():
            elements |= {"H"}
        smiles = chem.MolToSmiles(heavy)
    except _RDKIT_FAULTS as fault:
        return _in_one_line(fault)
    if record.positions is not None and not np.isfinite(record.positions).all():
        return "a coordinate is NaN, infinite or too large"
    return ReadMolecule(record, smiles, fragments, elements)


def _largest_fragment(chem: Any, molecule: Molecule) -> Molecule:
    """The part of most heavy atoms; among equals that of most atoms, then by SMILES."""
    parts = chem.GetMolFrags(molecule, asMols=True)
    largest = max(parts, key=lambda m: (m.GetNumHeavyAtoms(), m.GetNumAtoms(), chem.MolToSmiles(m)))
    chem.AssignStereochemistry(largest, cleanIt=True, force=True)
    return largest


def fragment_notes(count: int, largest: bool) -> list[str]:
    """A note if some molecules, `count` of them, are of several fragments."""
    if not count:
        return []
    what = "1 molecule is" if count == 1 else f"{count:,} molecules are"
    if largest:
        return [f"{what} of several fragments; the largest is kept."]
    return [
        f"{what} of several fragments, such as salts; the option largest=true keeps the largest."
    ]


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _in_one_line(fault: BaseException) -> str:
    return f"RDKit cannot use it ({' '.join(str(fault).split())[:120]})"


def _symbol(chem: Any, text: str) -> str:
    """The element's symbol, from its symbol in any case or its number."""
    if text.isdecimal():
        return str(chem.GetPeriodicTable().GetElementSymbol(int(text)))
    return text.capitalize()


def _fault(chem: Any, raw: Molecule | None, what: str) -> str:
    if raw is None:
        return f"not {what}"
    problems = chem.DetectChemistryProblems(raw)
    return str(problems[0].Message()) if problems else f"not {what} RDKit can use"


def molecule_record(molecule: Molecule) -> GraphRecord:
    """A sanitised molecule as one graph: atoms in its own order, each bond both ways."""
    atoms = np.array([_atom_row(atom) for atom in _atoms(molecule)], np.float32)
    ends: list[tuple[int, int]] = []
    rows: list[list[float]] = []
    for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())):
        ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        rows.append(_bond_row(bond))
    one_way = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    bonds = np.array(rows, np.float32).reshape(-1, len(BOND_FEATURES))
    return GraphRecord(
        size=len(atoms),
        edges=np.concatenate([one_way, one_way[::-1]], axis=1),
        node_features=atoms,
        edge_features=np.concatenate([bonds, bonds]),
        positions=_positions(molecule),
    )


def _atoms(molecule: Molecule) -> Iterator[Any]:
    """By number: RDKit's own iterator takes several times as long."""
    return map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))


def _atom_row(atom: Any) -> list[float]:
    element = [0.0] * (len(ELEMENTS) + 1)
    element[_ELEMENT_COLUMN.get(atom.GetSymbol(), len(ELEMENTS))] = 1
    hybridisation = atom.GetHybridization().name
    stereo = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
    return [
        *element,
        atom.GetFormalCharge(),
        atom.GetIsAromatic(),
        hybridisation == "SP",
        hybridisation == "SP2",
        hybridisation == "SP3",
        atom.GetTotalNumHs(includeNeighbors=True),
        atom.IsInRing(),
        stereo == "R",
        stereo == "S",
    ]


def _bond_row(bond: Any) -> list[float]:
    order = [0.0] * len(_BOND_ORDERS)
    # A bond of another order (dative, quadruple) is an edge of A and of none of the four types.
    if (column := _BOND_ORDERS.get(bond.GetBondTypeAsDouble())) is not None:
        order[column] = 1
    stereo = bond.GetStereo().name
    return [*order, bond.IsInRing(), stereo == "STEREOE", stereo == "STEREOZ"]


def _positions(molecule: Molecule) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """Coordinates in Å where the molecule has three-dimensional ones."""
    if not molecule.GetNumConformers() or not molecule.GetConformer().Is3D():
        return None
    with np.errstate(over="ignore"):  # beyond float32 is infinite, which the caller names
        return np.asarray(molecule.GetConformer().GetPositions(), dtype=np.float32)
