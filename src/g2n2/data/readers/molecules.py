"""Molecules as graphs: SMILES in a table or a list, and what readers of SDF and XYZ share.

Node features (`ATOM_FEATURES`) and edge features (`BOND_FEATURES`) are the same for every file, so
a network trained on one file reads another. Chirality and double-bond geometry are CIP labels (R,
S, E, Z), which do not depend on the order of the atoms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...described import counted
from ...errors import DataError
from ...graphs.text import LONGEST_SMILES, chemistry, chemistry_fault, parse_smiles, quoted
from ...input_files import printable
from ..graph_set import COLUMN, DESCRIPTOR, GraphRecord, GraphSet, assemble
from . import Options, settle_bad_records
from .labels import naming_column, read_labels
from .tables import SMILES_NAMES, RecordFile, Table, finite_number, is_text, shortened

Molecule: TypeAlias = Any  # an rdkit Mol: RDKit ships no types

ELEMENTS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I")
OTHER_ELEMENT = "other element"
ATOM_FEATURES = (
    *ELEMENTS,
    OTHER_ELEMENT,
    *("formal charge", "aromatic", "sp", "sp2", "sp3", "hydrogens", "in ring", "R", "S (stereo)"),
)
BOND_FEATURES = ("single", "double", "triple", "aromatic", "in ring", "E", "Z")


def _one_hot(names: Sequence[Any]) -> dict[Any, tuple[float, ...]]:
    return {name: tuple(float(other == name) for other in names) for name in names}


_ELEMENT = _one_hot((*ELEMENTS, OTHER_ELEMENT))
_HYBRIDISATION = _one_hot(("SP", "SP2", "SP3"))
_BOND_ORDER = _one_hot((1.0, 2.0, 3.0, 1.5))
NOT_LABELS = ("charge",)
"""Properties of SDF and XYZ records that belong to the molecule."""
SAMPLE = 200
"""Cells of a column that are tried as SMILES."""
# An aromatic atom, digit, bracket or bond, or a length that tells a SMILES from a code as PBS.
_NO_CODE = re.compile(r"[bcnops\d\[\]()=#:$/\\~-]|.{6}")
_BOND_ORDER_TRIALS = 10_000  # the search for orders is exponential in the worst case
# RDKit raises plain RuntimeError for a broken invariant and ValueError for broken chemistry.
_RDKIT_FAULTS = (RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class MoleculeRecord:
    """One molecule of an SDF or XYZ file, as text."""

    place: str  # where it is in the file, such as `molecule 3`
    properties: dict[str, str]  # its data items in the file; `name` is its title
    block: str = ""  # the record of an SDF up to `M  END`; empty for XYZ
    # element and coordinates in Å of each atom of an XYZ; empty for SDF
    atoms: tuple[tuple[str, float, float, float], ...] = ()
    fault: str = ""  # why it cannot be read; empty if it may be


class ParsedMolecule(NamedTuple):
    """What is read of one molecule."""

    graph: GraphRecord
    smiles: str  # canonical
    elements: frozenset[str]  # symbols of the atoms that are nodes
    not_read: tuple[str, ...]  # phrases on what the features leave out: isotopes, radicals
    other_atoms: tuple[tuple[int, str], ...]  # those whose element is not in `ELEMENTS`
    numbers: list[float]  # of joined columns and descriptors
    fragmented: bool  # whether it has parts without a bond between them
    has_orders: bool  # whether its bond orders are known


@dataclass(frozen=True)
class ParsedMolecules:
    """The molecules of some records by their index, and why the others cannot be read."""

    molecules: dict[int, ParsedMolecule] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)

    @property
    def fragmented(self) -> int:
        """How many have several fragments."""
        return sum(molecule.fragmented for molecule in self.molecules.values())

    def graph_set(self, options: Options, source: dict[str, Any], **fields: Any) -> GraphSet:
        """The graphs as a set, which may be empty, with further fields of `GraphSet`."""
        names = {"node_names": ATOM_FEATURES, "edge_names": BOND_FEATURES}
        graph_names = [f"{COLUMN}{name}" for name in options.join]
        if options.descriptors:
            graph_names += [f"{DESCRIPTOR}{name}" for name, _ in _descriptors()]
        molecules = self.molecules.values()
        source = {**source, "rows": tuple(self.molecules), "unread": self.unread}
        for name in ("elements", "not_read", "other_atoms"):
            source[name] = tuple(getattr(molecule, name) for molecule in molecules)
        if molecules:
            features = np.array([molecule.numbers for molecule in molecules])
            features = features.reshape(len(molecules), len(graph_names))
            names |= {"graph_names": tuple(graph_names)}
            graphs = [molecule.graph for molecule in molecules]
            return assemble(graphs, source=source, graph_features=features, **names, **fields)
        return GraphSet.empty(fields["name"], source=source)


def parse_records(
    records: Iterable[str | MoleculeRecord], options: Options, joined: Iterable[Sequence[str]] = ()
) -> ParsedMolecules:
    """Read each record, a SMILES or a molecule of an SDF or XYZ file, by itself.

    `joined` has, for each record, its cells in the columns of `options.join`.
    """
    parsed = ParsedMolecules()
    cells_of = iter(joined)
    with chemistry() as chem:
        for row, record in enumerate(records):
            cells = next(cells_of) if options.join else ()
            try:
                numbers = list(map(finite_number, cells, options.join))
                parsed.molecules[row] = _parsed(chem, record, options, numbers)
            except DataError as fault:
                parsed.unread[row] = str(fault)
            except _RDKIT_FAULTS as fault:
                parsed.unread[row] = f"RDKit cannot use it ({printable(str(fault), 120)})"
    return parsed


def _molecule(chem: Any, record: str | MoleculeRecord) -> tuple[Molecule, bool]:
    """The molecule of a record, and whether its bond orders are known."""
    if isinstance(record, str):
        if not record:
            raise DataError("no SMILES")
        try:
            return parse_smiles(chem, record), True
        except DataError as fault:
            raise DataError(f"{quoted(record)}: {fault}") from None
    if record.fault:
        raise DataError(record.fault)
    if record.atoms:
        return _from_atoms(chem, record.atoms, record.properties.get("charge", "0"))
    molecule = chem.MolFromMolBlock(record.block, removeHs=False)
    if molecule is None:
        raw = chem.MolFromMolBlock(record.block, sanitize=False, removeHs=False)
        raise DataError(chemistry_fault(chem, raw) or "not a V2000 or V3000 record")
    if not molecule.GetNumAtoms():
        raise DataError("no atoms")
    return molecule, True


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
            raise DataError(f"{quoted(symbol)} is no element") from fault
        shape.SetAtomPosition(index, point)
    bare.AddConformer(shape)
    try:
        if not (charged := float(charge or 0)).is_integer():
            raise ValueError
    except ValueError as fault:
        raise DataError(f"charge={quoted(charge)} is no whole number") from fault
    total = int(charged)
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


def _parsed(
    chem: Any, record: str | MoleculeRecord, options: Options, numbers: list[float]
) -> ParsedMolecule:
    """A record as a graph, of its largest fragment or with implicit hydrogens where asked for."""
    molecule, has_orders = _molecule(chem, record)
    if options.hydrogens is False and not isinstance(record, str):
        molecule = chem.RemoveHs(molecule)
    if molecule.GetNumAtoms() > LONGEST_SMILES:  # for the same reason
        raise DataError(f"{molecule.GetNumAtoms():,} atoms; at most {LONGEST_SMILES:,} are read")
    fragments = len(chem.GetMolFrags(molecule))
    if options.largest and fragments > 1:
        molecule = max(
            chem.GetMolFrags(molecule, asMols=True),
            key=lambda m: (m.GetNumHeavyAtoms(), m.GetNumAtoms(), chem.MolToSmiles(m)),
        )
        chem.AssignStereochemistry(molecule, cleanIt=True, force=True)
    with_hydrogens = chem.AddHs(molecule, addCoords=True) if options.hydrogens else molecule
    graph, elements = _graph(with_hydrogens, options.stereo)
    heavy = chem.RemoveHs(molecule, sanitize=False) if "H" in elements else molecule
    smiles = chem.MolToSmiles(heavy)
    if graph.positions is not None and not np.isfinite(graph.positions).all():
        raise DataError("a coordinate is NaN, infinite or too large")
    if options.descriptors:
        numbers = [*numbers, *(_value(compute, molecule) for _, compute in _descriptors())]
    not_read = _not_read(molecule, options.stereo)
    symbols = () if elements <= {*ELEMENTS} else (a.GetSymbol() for a in with_hydrogens.GetAtoms())
    others = tuple(atom for atom in enumerate(symbols) if atom[1] not in ELEMENTS)
    return ParsedMolecule(
        graph, smiles, elements, not_read, others, numbers, fragments > 1, has_orders
    )


def _not_read(molecule: Molecule, stereo: bool) -> tuple[str, ...]:
    """What the features leave out of a molecule; mirror images have the same properties."""
    atoms = list(map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())))
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    double = any(bond.GetStereo().name in ("STEREOE", "STEREOZ") for bond in bonds)
    left_out = {
        "stereoisomers are not told apart": not stereo
        and (double or sum(atom.HasProp("_CIPCode") for atom in atoms) > 1),
        "isotopes are not told apart": any(atom.GetIsotope() for atom in atoms),
        "unpaired electrons are not read": any(atom.GetNumRadicalElectrons() for atom in atoms),
    }
    return tuple(phrase for phrase, is_so in left_out.items() if is_so)


def symbols_of(graphs: GraphSet, number: int) -> list[str]:
    """The element of each atom of a graph with the features above, `*` if it is not known."""
    column = [graphs.node_names.index(name) for name in (*ELEMENTS, OTHER_ELEMENT)]
    rows = graphs.node_features[slice(*graphs.node_offsets[number : number + 2])]
    symbols = [(*ELEMENTS, "*")[k] for k in rows[:, column].argmax(1).tolist()]
    others = graphs.source.get("other_atoms", ())
    for atom, symbol in others[number] if len(others) == len(graphs) else ():
        symbols[atom] = symbol
    return symbols


@cache
def _descriptors() -> list[tuple[str, Callable[[Molecule], float]]]:
    """RDKit's 2D descriptors, by name."""
    from rdkit.Chem import Descriptors

    listed: list[tuple[str, Callable[[Molecule], float]]] = Descriptors.descList
    return listed


def _value(descriptor: Callable[[Molecule], float], molecule: Molecule) -> float:
    """A descriptor; NaN where it has no finite value, as partial charges of some metals."""
    try:
        value = float(descriptor(molecule))
    except (*_RDKIT_FAULTS, ArithmeticError, KeyError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def _graph(molecule: Molecule, labelled: bool) -> tuple[GraphRecord, frozenset[str]]:
    """A sanitised molecule as one graph, atoms in its own order and each bond both ways.

    Atoms are taken by number, as RDKit's own iterator takes several times as long.
    """
    rows, symbols, ends, bond_rows = [], set(), [], []
    for atom in map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())):
        symbol = atom.GetSymbol()
        symbols.add(symbol)
        stereo = atom.GetProp("_CIPCode") if labelled and atom.HasProp("_CIPCode") else ""
        rows.append(
            (
                *_ELEMENT.get(symbol, _ELEMENT[OTHER_ELEMENT]),
                atom.GetFormalCharge(),
                atom.GetIsAromatic(),
                *_HYBRIDISATION.get(atom.GetHybridization().name, (0.0, 0.0, 0.0)),
                atom.GetTotalNumHs(includeNeighbors=True),
                atom.IsInRing(),
                stereo == "R",
                stereo == "S",
            )
        )
    for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())):
        ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        # A bond of another order (dative, quadruple) is an edge of A and of none of the four types.
        order = _BOND_ORDER.get(bond.GetBondTypeAsDouble(), (0.0, 0.0, 0.0, 0.0))
        stereo = bond.GetStereo().name if labelled else ""
        bond_rows.append((*order, bond.IsInRing(), stereo == "STEREOE", stereo == "STEREOZ"))
    one_way = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    bonds = np.array(bond_rows, np.float32).reshape(-1, len(BOND_FEATURES))
    positions = None
    if molecule.GetNumConformers() and molecule.GetConformer().Is3D():
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which the caller names
            positions = np.asarray(molecule.GetConformer().GetPositions(), dtype=np.float32)
    graph = GraphRecord(
        size=len(rows),
        edges=np.concatenate([one_way, one_way[::-1]], axis=1),
        node_features=np.array(rows, np.float32),
        edge_features=np.concatenate([bonds, bonds]),
        positions=positions,
    )
    return graph, frozenset(symbols)


def molecule_of(graphs: GraphSet, number: int) -> Molecule:
    """An RDKit molecule of a graph with the features above, atoms in the graph's order, to draw."""
    names = graphs.node_names
    span = slice(*graphs.node_offsets[number : number + 2])
    edges = slice(*graphs.edge_offsets[number : number + 2])
    rows, orders = graphs.node_features[span], graphs.edge_features[edges]
    with chemistry() as chem:
        types = (*(getattr(chem.BondType, name) for name in ("SINGLE", "DOUBLE", "TRIPLE")),)
        editable = chem.RWMol()
        symbols = symbols_of(graphs, number)
        for symbol, row in zip(symbols, rows, strict=True):
            atom = chem.Atom(symbol)
            atom.SetFormalCharge(int(row[names.index("formal charge")]))
            atom.SetIsAromatic(bool(row[names.index("aromatic")]))
            atom.SetNoImplicit(True)
            atom.SetNumExplicitHs(int(row[names.index("hydrogens")]))
            editable.AddAtom(atom)
        for (i, j), order in zip(graphs.edges[:, edges].T.tolist(), orders, strict=True):
            if i < j:
                kind = int(order[:4].argmax()) if order[:4].any() else 0
                editable.AddBond(i, j, (*types, chem.BondType.AROMATIC)[kind])
                editable.GetBondBetweenAtoms(i, j).SetIsAromatic(kind == 3)
                for one, other in ((i, j), (j, i)):  # a hydrogen that is an atom is no label
                    atom = editable.GetAtomWithIdx(one)
                    atom.SetNumExplicitHs(atom.GetNumExplicitHs() - (symbols[other] == "H"))
        editable.UpdatePropertyCache(strict=False)
        chem.FastFindRings(editable)
        return editable.GetMol()


def _hydrogens_are_nodes(graphs: GraphSet) -> bool | None:
    """Whether all hydrogens of all molecules are nodes, or none of them; None if some."""
    names = graphs.node_names
    hydrogen, on_atoms = (graphs.node_features[:, names.index(n)] for n in ("H", "hydrogens"))
    if not hydrogen.any():
        return False
    return True if on_atoms[hydrogen == 0].sum() == hydrogen.sum() else None


def fragment_notes(count: int, largest: bool) -> list[str]:
    """A note if some molecules, `count` of them, have several fragments."""
    if not count:
        return []
    what = "1 molecule has" if count == 1 else f"{count:,} molecules have"
    advice = ", as salts do; --option largest=true keeps the largest."
    return [f"{what} several fragments{'; the largest is kept.' if largest else advice}"]


class MoleculeFile:
    """A file whose rows are molecules, as SMILES in a column or as records of an SDF or XYZ file.

    Args:
        file: The file.
        options: How it is read.
        smiles: The column with the SMILES; None where records are molecules, or texts of SMILES.

    Attributes:
        naming: The column that names the molecules, or None.
        facts: Of that column.
        choice: Sentences on which column gives the molecules, and which might.
    """

    def __init__(self, file: RecordFile, options: Options, smiles: str | None = None) -> None:
        self.file, self.options, self.smiles = file, options, smiles
        self._used = NOT_LABELS if smiles is None else (smiles,)
        header = file.header()
        self._joined = header.joined(options.join)
        used = {*self._used, *self._joined}
        others = other_smiles_columns(file, smiles) if smiles else []
        self.naming, self.facts = naming_column(header, options, used, file.blocks, others)
        if others and self.naming is None:  # a number would not say which molecule was read
            own = replace(options, id=smiles)
            self.naming, self.facts = naming_column(header, own, used, file.blocks)
        self.choice = [f"Column {smiles} gives the molecules."] if smiles else []
        if others and options.smiles is None:
            verb = "looks" if len(others) == 1 else "look"
            self.choice.append(
                f"{shortened(others)} {verb} like SMILES too; --smiles {others[0]} "
                f"(smiles={others[0]!r}) reads that column."
            )

    @classmethod
    def of_table(cls, file: RecordFile, options: Options) -> MoleculeFile:
        """The molecules of a table.

        The SMILES column is the one named, one with a usual name, or the one RDKit reads best.
        """
        with chemistry():  # RDKit is asked for before any work
            return cls(file, options, smiles_column(file, options.smiles))

    def names(self, rows: Table) -> tuple[str, ...]:
        """The user's name for each of some rows."""
        return tuple(rows.columns[self.naming] if self.naming else map(str, rows.rows))

    def records(self, rows: Table) -> Sequence[Any]:
        """The molecule of each row."""
        return rows.columns[self.smiles] if self.smiles else rows.records

    def joined(self, rows: Table) -> list[tuple[str, ...]]:
        """The cells of each row in the columns to be joined."""
        return list(zip(*(rows.columns[name] for name in self._joined), strict=True))

    def read(self) -> GraphSet:
        """All molecules with their ids, targets and split.

        A row that cannot be read is named and skipped, or refused.
        """
        table, options = self.file.read(), self.options
        records, names = self.records(table), self.names(table)
        parsed = parse_records(records, options, self.joined(table))
        bad = [
            f"{table.places[row]}{f' ({names[row]})' if self.naming else ''}: {why}"
            for row, why in parsed.unread.items()
        ]
        notes = [*self.file.notes]
        notes += self.choice
        notes += settle_bad_records(bad, len(table), table.name, options.on_bad)
        if any(isinstance(record, MoleculeRecord) and record.atoms for record in records):
            notes.append("Bonds are found from the distances between atoms.")
        molecules = parsed.molecules.values()
        others = {symbol for molecule in molecules for _, symbol in molecule.other_atoms}
        if others:
            notes.append(
                f"Elements without a feature of their own: {shortened(sorted(others))}; such "
                f"atoms are all read as '{OTHER_ELEMENT}'."
            )
        if without := sum(not molecule.has_orders for molecule in molecules):
            notes.append(
                f"Without bond orders, each bond a single one: {counted(without, 'molecule')}."
            )
        read = table.keep([*parsed.molecules])
        labels = read_labels(read, options, self._used, self._joined, self.naming)
        notes += [*fragment_notes(parsed.fragmented, options.largest), *labels.pop("notes")]
        if self.naming and labels["ids"] != tuple(read.columns[self.naming]):
            notes.append(f"Predictions are named by the cells of {self.naming} all the same.")
        source = {
            "format": "smiles" if isinstance(records[0], str) else "molecules",
            "smiles": tuple(molecule.smiles for molecule in molecules),
            "records": len(table),
            "record_ids": names,
            **labels.pop("source"),
        }
        name = options.set_name(table.name)
        graphs = parsed.graph_set(options, source, name=name, notes=notes, **labels)
        if source["format"] == "smiles" or (whole := _hydrogens_are_nodes(graphs)) is None:
            return graphs
        return replace(graphs, source={**graphs.source, "hydrogens": whole})


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their indices in it."""
    name = "the molecule" if len(texts) == 1 else "the list"

    def rows() -> Iterator[tuple[str, list[str], str]]:
        return ((f"molecule {number}", [], text) for number, text in enumerate(texts))

    return MoleculeFile(RecordFile(name, (), rows), options).read()


def smiles_column(file: RecordFile, named: str | None) -> str:
    """The column that holds the molecules."""
    header = file.header()
    if named is not None:
        return header.find(named)
    if usual := header.first_of(SMILES_NAMES):
        return usual
    scores = _scores(file.columns, file.blocks())
    best = max(scores, key=lambda column: scores[column][:2], default=None)
    if best is None or scores[best][0] < 0.5:
        raise DataError(
            f"no column of {file.name} holds SMILES (columns: {shortened(file.columns)}); "
            "name it with --smiles COLUMN (smiles=), or for an edge list use the columns graph, "
            "source, target"
        )
    if parse_records([best], Options()).molecules:
        raise DataError(
            f"{file.name} has no header: its first line has the SMILES {best!r} where column "
            f"names are expected; add a header such as smiles,y, or say --smiles {best}"
        )
    return best


def other_smiles_columns(file: RecordFile, chosen: str) -> list[str]:
    """Columns beside the chosen one that hold SMILES too; codes as Cl or PBS are none."""
    columns = [column for column in file.columns if column != chosen]
    scores = _scores(columns, islice(file.blocks(), 1)) if columns else {}
    return [
        column
        for column, (share, _, telling) in scores.items()
        if share > 0.5 and (telling or column.lower() in SMILES_NAMES)
    ]


def _scores(columns: Sequence[str], blocks: Iterable[Table]) -> dict[str, tuple[float, int, bool]]:
    """For each column with text: the share of its first cells that are SMILES, and their variety.

    The last says whether one of those SMILES is more than what might be a code.
    """
    samples: dict[str, list[str]] = {name: [] for name in columns}
    for rows in blocks:
        for column, sample in samples.items():
            sample += [cell for cell in rows.columns[column] if cell][: SAMPLE - len(sample)]
        if all(len(sample) == SAMPLE for sample in samples.values()):
            break
    scores: dict[str, tuple[float, int, bool]] = {}
    for column, sample in samples.items():
        if any(map(is_text, sample)):
            read = parse_records(sample, Options()).molecules
            telling = any(_NO_CODE.search(sample[row]) for row in read)
            # Words such as C, F or IN are SMILES too; more varied text is likelier one.
            scores[column] = len(read) / len(sample), len(set("".join(sample))), telling
    return scores
