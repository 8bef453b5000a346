"""Molecules as graphs: what every reader of SMILES, SDF and XYZ shares.

Node features (`ATOM_FEATURES`) and edge features (`BOND_FEATURES`) are the same for every file, so
a network trained on one file reads another. Chirality and double-bond geometry are CIP labels (R,
S, E, Z), which do not depend on the order of the atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...errors import DataError
from ...graphs.text import LONGEST_SMILES
from ..graph_set import GraphRecord
from . import Options

Molecule: TypeAlias = Any  # an rdkit Mol: RDKit ships no types

ELEMENTS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I")
OTHER_ELEMENT = "other element"
ATOM_FEATURES = (
    *ELEMENTS,
    OTHER_ELEMENT,
    *("formal charge", "aromatic", "sp", "sp2", "sp3", "hydrogens", "in ring", "R", "S (stereo)"),
)
BOND_FEATURES = ("single", "double", "triple", "aromatic", "in ring", "E", "Z")
_ELEMENT_COLUMN = {symbol: column for column, symbol in enumerate(ELEMENTS)}
_BOND_ORDERS = {1.0: 0, 2.0: 1, 3.0: 2, 1.5: 3}
_BOND_ORDER_TRIALS = 10_000  # the search for orders is exponential in the worst case
# RDKit raises plain RuntimeError for a broken invariant and ValueError for broken chemistry.
_RDKIT_FAULTS = (RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class MoleculeRecord:
    """One molecule of an SDF or XYZ file, as text.

    Attributes:
        place: Where it is in the file, such as `molecule 3`.
        properties: Its data items in the file; `name` is its title.
        block: The record of an SDF up to `M  END`; empty for XYZ.
        atoms: Element and coordinates in Å of each atom of an XYZ; empty for SDF.
        fault: Why it cannot be read; empty if it may be.
    """

    place: str
    properties: dict[str, str]
    block: str = ""
    atoms: tuple[tuple[str, float, float, float], ...] = ()
    fault: str = ""


@dataclass
class Parsed:
    """The molecules of some records.

    Attributes:
        records: The graphs of those that could be read.
        smiles: Canonical SMILES of each.
        elements: Symbols of the atoms of each that are nodes.
        rows: The index of each among the records.
        bad: The index of each of the others, and why it cannot be read.
        fragmented: How many have parts without a bond between them.
        without_orders: How many have no bond orders.
    """

    records: list[GraphRecord] = field(default_factory=list)
    smiles: list[str] = field(default_factory=list)
    elements: list[frozenset[str]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    fragmented: int = 0
    without_orders: int = 0


@contextmanager
def chemistry() -> Iterator[Any]:
    """`rdkit.Chem` with its own messages held back: ours name the row at fault."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError(
            "molecules are read with RDKit, which is not installed: pip install 'g2n2[chem]'"
        ) from error
    with rdBase.BlockLogs():
        yield Chem


def parse_records(records: Iterable[str | MoleculeRecord], options: Options) -> Parsed:
    """Read each record, a SMILES or a molecule of an SDF or XYZ file, by itself."""
    parsed = Parsed()
    with chemistry() as chem:
        for row, record in enumerate(records):
            try:
                molecule, has_orders = _molecule(chem, record)
                hydrogens = options.hydrogens and isinstance(record, str)
                _add_graph(parsed, chem, molecule, hydrogens, options.largest)
            except DataError as fault:
                parsed.bad.append((row, str(fault)))
            except _RDKIT_FAULTS as fault:
                parsed.bad.append((row, _in_one_line(fault)))
            else:
                parsed.rows.append(row)
                parsed.without_orders += not has_orders
    return parsed


def _molecule(chem: Any, record: str | MoleculeRecord) -> tuple[Molecule, bool]:
    """The molecule of a record, and whether its bond orders are known."""
    if isinstance(record, str):
        return _parse_smiles(chem, record), True
    if record.fault:
        raise DataError(record.fault)
    if record.atoms:
        return _from_atoms(chem, record.atoms, record.properties.get("charge", "0"))
    molecule = chem.MolFromMolBlock(record.block, removeHs=False)
    if molecule is None:
        raw = chem.MolFromMolBlock(record.block, sanitize=False, removeHs=False)
        raise DataError(_chemistry_fault(chem, raw, "a V2000 or V3000 record"))
    if not molecule.GetNumAtoms():
        raise DataError("no atoms")
    return molecule, True


def _parse_smiles(chem: Any, text: str) -> Molecule:
    """A molecule with hydrogens implicit."""
    if not text:
        raise DataError("no SMILES")
    shown = _quoted(text)
    if len(text) > LONGEST_SMILES:
        raise DataError(
            f"{shown} has {len(text):,} characters; at most {LONGEST_SMILES:,} are read"
        )
    # RDKit takes what follows white space for a name, so a sentence may pass for a molecule.
    if len(text.split()) > 1 and "|" not in text:
        raise DataError(f"{shown} holds white space")
    try:
        molecule = chem.MolFromSmiles(text)
        if molecule is None:
            raw = chem.MolFromSmiles(text, sanitize=False)
            raise DataError(f"{shown}: {_chemistry_fault(chem, raw, 'SMILES')}")
    except DataError:
        raise
    except _RDKIT_FAULTS as fault:
        raise DataError(f"{shown}: {_in_one_line(fault)}") from fault
    if not molecule.GetNumAtoms():
        raise DataError(f"{shown} has no atoms")
    return molecule


def is_smiles(chem: Any, text: str) -> bool:
    """Whether RDKit reads a text as a molecule."""
    try:
        return _parse_smiles(chem, text) is not None
    except DataError:
        return False


def _from_atoms(
    chem: Any, atoms: Sequence[tuple[str, float, float, float]], charge: str
) -> tuple[Molecule, bool]:
    """A molecule from elements and coordinates, and whether bond orders were found.

    Bonds come from distances and their orders from valences; where no orders fit, all are single.
    """
    from rdkit.Chem import rdDetermineBonds

    bare = chem.RWMol()
    shape = chem.Conformer(len(atoms))
    shape.Set3D(True)
    for index, (symbol, *point) in enumerate(atoms):
        try:
            if symbol.isdecimal():
                symbol = chem.GetPeriodicTable().GetElementSymbol(int(symbol))
            bare.AddAtom(chem.Atom(symbol.capitalize()))
        except _RDKIT_FAULTS as fault:
            raise DataError(f"{_quoted(symbol)} is no element") from fault
        shape.SetAtomPosition(index, point)
    bare.AddConformer(shape)
    try:
        total = int(float(charge or 0))
    except (ValueError, OverflowError) as fault:
        raise DataError(f"charge={_quoted(charge)} is no whole number") from fault
    if len(atoms) == 1:
        return _lone_atom(chem, bare, total), True
    molecule = chem.RWMol(bare)
    try:
        rdDetermineBonds.DetermineBonds(molecule, charge=total, maxIterations=_BOND_ORDER_TRIALS)
        return molecule, True
    except _RDKIT_FAULTS:
        rdDetermineBonds.DetermineConnectivity(bare)
        bare.UpdatePropertyCache(strict=False)
        chem.FastFindRings(bare)
        chem.SetHybridization(bare)
        return bare, False


def _lone_atom(chem: Any, molecule: Molecule, charge: int) -> Molecule:
    """A single atom, as He or Na with charge=1, for which RDKit determines no bonds."""
    atom = molecule.GetAtomWithIdx(0)
    atom.SetNoImplicit(True)
    atom.SetFormalCharge(charge)
    chem.SanitizeMol(molecule)
    if atom.GetNumRadicalElectrons():
        raise DataError(
            f"a single {atom.GetSymbol()} atom of charge {charge} with free valences; list its "
            "hydrogens, or its charge as charge= in the comment"
        )
    return molecule


def _add_graph(
    parsed: Parsed, chem: Any, molecule: Molecule, hydrogens: bool, largest: bool
) -> None:
    """Append the graph of a molecule, of its largest fragment or with implicit hydrogens."""
    if molecule.GetNumAtoms() > LONGEST_SMILES:  # for the same reason
        raise DataError(
            f"{molecule.GetNumAtoms():,} atoms; molecules of at most {LONGEST_SMILES:,} are read"
        )
    fragments = len(chem.GetMolFrags(molecule))
    if largest and fragments > 1:
        molecule = max(
            chem.GetMolFrags(molecule, asMols=True),
            key=lambda m: (m.GetNumHeavyAtoms(), m.GetNumAtoms(), chem.MolToSmiles(m)),
        )
        chem.AssignStereochemistry(molecule, cleanIt=True, force=True)
    record = _graph_record(chem.AddHs(molecule) if hydrogens else molecule)
    elements = frozenset(atom.GetSymbol() for atom in _atoms(molecule))
    heavy = chem.RemoveHs(molecule, sanitize=False) if "H" in elements else molecule
    smiles = chem.MolToSmiles(heavy)
    if record.positions is not None and not np.isfinite(record.positions).all():
        raise DataError("a coordinate is NaN, infinite or too large")
    parsed.records.append(record)
    parsed.smiles.append(smiles)
    parsed.elements.append(elements | {"H"} if record.size > molecule.GetNumAtoms() else elements)
    parsed.fragmented += fragments > 1


def fragment_notes(count: int, largest: bool) -> list[str]:
    """A note if some molecules, `count` of them, have several fragments."""
    if not count:
        return []
    what = "1 molecule has" if count == 1 else f"{count:,} molecules have"
    if largest:
        return [f"{what} several fragments; the largest is kept."]
    return [f"{what} several fragments, as salts do; --option largest=true keeps the largest."]


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _in_one_line(fault: BaseException) -> str:
    return f"RDKit cannot use it ({' '.join(str(fault).split())[:120]})"


def _chemistry_fault(chem: Any, raw: Molecule | None, what: str) -> str:
    if raw is None:
        return f"not {what}"
    problems = chem.DetectChemistryProblems(raw)
    return str(problems[0].Message()) if problems else f"not {what} RDKit can use"


def _graph_record(molecule: Molecule) -> GraphRecord:
    """A sanitised molecule as one graph: atoms in its own order, each bond both ways."""
    atoms = np.array([_atom_row(atom) for atom in _atoms(molecule)], np.float32)
    ends: list[tuple[int, int]] = []
    rows: list[list[float]] = []
    for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())):
        ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        rows.append(_bond_row(bond))
    one_way = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    bonds = np.array(rows, np.float32).reshape(-1, len(BOND_FEATURES))
    positions = None
    if molecule.GetNumConformers() and molecule.GetConformer().Is3D():
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which the caller names
            positions = np.asarray(molecule.GetConformer().GetPositions(), dtype=np.float32)
    return GraphRecord(
        size=len(atoms),
        edges=np.concatenate([one_way, one_way[::-1]], axis=1),
        node_features=atoms,
        edge_features=np.concatenate([bonds, bonds]),
        positions=positions,
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
