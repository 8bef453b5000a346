"""QM9: 130,831 molecules with DFT geometry, bonds in the order of the atoms and twelve targets.

`load_qm9` reads a cache file, which is built once from the package qm9pack. There are two tracks,
always named in results: `bonds` sees the molecular graph, `distance` sees the geometry as well.

qm9pack gives a geometry and a SMILES whose atoms are in different orders. The bonds are rebuilt by
taking as many atom pairs as the SMILES has bonds, shortest first by d / (rᵢ + rⱼ), and matching the
SMILES onto that skeleton. A match covers every atom and the counts are equal, so it is an
isomorphism: the molecule in XYZ order is the SMILES' molecule, bond for bond.

The arrays of a molecule, of a chunk and of the cache are the same, one molecule after the other:

- `numbers` and `sizes` `[G]`, the number in GDB-9 from 1 and the atoms; `targets` `[G, 12]`
- `elements` `[ΣN]`, atomic numbers; `positions` `[ΣN, 3]` in Å, in the cache as bytes (`planes`)
- `atoms` `[ΣN, 6]`: aromatic, hybridisation (1 sp, 2 sp2, 3 sp3, else 0), hydrogen-bond donor and
  acceptor, bonded hydrogens, formal charge + 8
- `degrees` `[ΣN]`; `neighbours` `[ΣE]` of each atom in turn, ascending, counted from 0 within its
  molecule; `orders` `[ΣE]` of those bonds, with `AROMATIC_BIT`
"""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache as remember
from importlib import import_module
from itertools import islice
from multiprocessing import current_process, get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from ..atomic_files import sole_builder
from ..errors import DataError
from ..input_files import sha256_of
from ..validation import check_option
from .archives import read_npz
from .files import cache_folder, write_cache_file
from .graph_set import GraphSet, Ints, Target
from .qm9_features import AROMATIC_BIT, ATOMIC_NUMBERS, FEATURE_NOTES, Features, feature_columns

Track = Literal["bonds", "distance"]
EnergyUnit = Literal["hartree", "meV"]
Bytes = NDArray[np.uint8]
Arrays = dict[str, NDArray[Any]]

MOLECULES = 130_831
"""Molecules of QM9 without the 3,054 that failed its consistency check."""
MEV_PER_HARTREE = 27211.386245988
"""CODATA 2018."""
RESOLUTION = 1e-5
"""Å to which the cache keeps positions; targets are kept exactly."""

_INSTALL = 'pip install "g2n2[chem]"'
_FORMAT = 1
_OCTETS = ("sizes", "elements", "planes", "atoms", "degrees", "neighbours", "orders")
_DTYPES = {"numbers": "<i4", "targets": "<f8", **dict.fromkeys(_OCTETS, "|u1")}
_CHUNK = 512
# Covalent radii in Å by atomic number (Cordero et al. 2008).
_RADII = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57}
# Two of the 130,831 molecules (133857 and 133859) have a bond longer than some non-bonded pair.
_LOOSE_RATIO = 1.45
_MOST_MATCHES = 100_000


class QM9Target(NamedTuple):
    """A property: name, printed symbol, unit, its column in qm9pack, other names for it."""

    name: str
    symbol: str
    unit: str
    column: str
    aliases: tuple[str, ...] = ()


QM9_TARGETS = (
    QM9Target("mu", "μ", "D", "Dipole_debye"),
    QM9Target("alpha", "α", "a₀³", "Polarizability_bohr3"),
    QM9Target("homo", "ε_homo", "hartree", "HOMO_au", ("e_homo",)),
    QM9Target("lumo", "ε_lumo", "hartree", "LUMO_au", ("e_lumo",)),
    QM9Target("gap", "Δε", "hartree", "HOMO_LUMO_gap_au", ("delta_e",)),
    QM9Target("r2", "R²", "a₀²", "R2_bohr2"),
    QM9Target("zpve", "ZPVE", "hartree", "ZPVE_au"),
    QM9Target("u0", "U₀", "hartree", "InternalEnergy_0K_au", ("U_0",)),
    QM9Target("u", "U", "hartree", "InternalEnergy_298K_au", ("u298",)),
    QM9Target("h", "H", "hartree", "Enthalphy_298K_au", ("h298",)),  # spelled so in the file
    QM9Target("g", "G", "hartree", "GibbsFreeEnergy_298K_au", ("g298",)),
    QM9Target("cv", "C_v", "cal/(mol K)", "Heatcapacity_Cv_cal_mol_K"),
)


def find_target(name: str) -> QM9Target:
    """The target of that name or symbol, in any case."""
    for target in QM9_TARGETS:
        spellings = (target.name, target.symbol, *target.aliases)
        if name.strip().casefold() in {spelling.casefold() for spelling in spellings}:
            return target
    listing = ", ".join(f"{target.name} ({target.symbol})" for target in QM9_TARGETS)
    raise DataError(f"QM9 has no target {name!r}; choose among: {listing}")


def load_qm9(
    features: Features = "pyg",
    track: Track = "bonds",
    targets: str | Sequence[str] | None = None,
    energy_unit: EnergyUnit = "hartree",
    cache: str | Path | None = None,
    progress: bool = True,
    rebuild: bool = False,
) -> GraphSet:
    """Load QM9 from its cache file; the file is built first if it does not exist.

    Node features: `pyg` has 11 columns (one-hot H C N O F, Z, aromatic, sp, sp2, sp3, number of
    bonded hydrogens), the middle four 0 as in PyG's own files; `sanitized` has the same columns
    with real values; `ppgn` adds hydrogen-bond donor and acceptor. A donor or acceptor is an atom
    in a feature of that family of RDKit's `BaseFeatures.fdef`. Edge features: one-hot single,
    double, triple, aromatic; `pyg` has Kekulé orders instead of aromatic bonds. A bond is listed in
    both directions, ordered by its ends. `smiles` has the columns that `read_graphs` makes of
    SMILES (`hydrogens=True`, `stereo=False`): a network trained on them predicts for SMILES.

    Args:
        features: Which node and edge features.
        track: `distance` keeps `positions`; `bonds` has none.
        targets: Names or symbols of targets, as `"R2"` or `["u0", "gap"]`; None for all twelve.
        energy_unit: `hartree`, as in the files and the paper, or `meV`.
        cache: The cache file; None for the one in the user cache.
        progress: Whether a build shows a progress bar.
        rebuild: Build the cache file even if there is one.
    """
    check_option("features of QM9", features, get_args(Features))
    check_option("track of QM9", track, get_args(Track))
    check_option("energy_unit of QM9", energy_unit, get_args(EnergyUnit))
    names = [target.name for target in QM9_TARGETS] if targets is None else targets
    chosen = [find_target(name) for name in ([names] if isinstance(names, str) else names)]
    path = qm9_cache(cache, progress=progress, rebuild=rebuild)
    arrays, about = read_cache(path)
    in_mev = [energy_unit == "meV" and target.unit == "hartree" for target in chosen]
    sizes, degrees = arrays["sizes"].astype(np.int64), arrays["degrees"]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    bonds_before = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    notes = [FEATURE_NOTES[features]]
    if len(sizes) != MOLECULES:
        notes.append(f"the cache holds {len(sizes):,} of {MOLECULES:,} molecules only")
    edge_counts = np.diff(bonds_before[np.cumsum(sizes)], prepend=0)
    edges = np.stack([np.repeat(within, degrees), arrays["neighbours"]])
    columns = feature_columns(arrays, features, sizes, edge_counts, edges)
    return GraphSet(
        name=f"QM9 ({track})",
        sizes=sizes,
        edge_counts=edge_counts,
        edges=edges,
        node_features=columns.nodes,
        edge_features=columns.edges,
        targets=arrays["targets"][:, [QM9_TARGETS.index(target) for target in chosen]]
        * np.where(in_mev, MEV_PER_HARTREE, 1.0),
        columns=tuple(
            Target(t.name, "meV" if mev else t.unit, symbol=t.symbol)
            for t, mev in zip(chosen, in_mev, strict=True)
        ),
        positions=_from_planes(arrays["planes"]) if track == "distance" else None,
        node_names=columns.node_names,
        edge_names=columns.edge_names,
        ids=tuple(f"gdb_{number}" for number in arrays["numbers"].tolist()),
        notes=tuple(notes),
        source={
            "dataset": "QM9",
            "track": track,
            "features": features,
            "energy_unit": energy_unit,
            "resolution": f"{RESOLUTION:g} Å",
            "cache": str(path),
            **columns.source,
            **about,
        },
    )


def qm9_cache(
    cache: str | Path | None = None, *, progress: bool = True, rebuild: bool = False
) -> Path:
    """The path of the cache file, which is built first if it does not exist; see `load_qm9`."""
    path = cache_folder() / "qm9.cache" if cache is None else Path(cache)
    if rebuild or not path.exists():
        with sole_builder(path):
            if rebuild or not path.exists():  # another process may have built it meanwhile
                build_qm9(path, progress=progress)
    return path


def write_cache(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write the cache file, whole or not at all."""
    planes = {"planes": _to_planes(arrays["positions"])}
    arrays = {name: np.asarray((arrays | planes)[name], dtype) for name, dtype in _DTYPES.items()}
    text = json.dumps({**about, "format": _FORMAT}, sort_keys=True)
    content = io.BytesIO()
    stored: Any = {**arrays, "about": text, "sha256": _checksum(arrays, text)}
    np.savez_compressed(content, **stored)
    write_cache_file(path, content.getvalue(), "name another place with cache=...")


def read_cache(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of the cache, checked against its own checksum, and where they come from."""
    try:
        arrays = read_npz(path)
        text, checksum = (str(arrays.pop(name)) for name in ("about", "sha256"))
        if {name: array.dtype.str for name, array in arrays.items()} != _DTYPES:
            raise ValueError("its arrays are not those of QM9")
        if _checksum(arrays, text) != checksum:
            raise ValueError("its checksum does not fit")
        about: dict[str, Any] = json.loads(text)
        if about.get("format") != _FORMAT:
            raise ValueError(f"its format is {about.get('format')}, expected {_FORMAT}")
    except (ValueError, LookupError) as error:
        raise DataError(
            f"the QM9 cache {str(path)!r} is truncated or altered ({error}): build it again with "
            "load_qm9(rebuild=True), or delete it and it is built at the next use"
        ) from error
    return arrays, {"sha256": checksum, **about}


def _checksum(arrays: Arrays, about: str) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _to_planes(positions: NDArray[Any]) -> Bytes:
    """`[3, 3, ΣN]` bytes of the rounded coordinates, low byte first: they compress by a third."""
    steps = np.rint(np.asarray(positions, dtype=np.float64).T / RESOLUTION).astype("<i4")
    if np.abs(steps).max(initial=0) >= 1 << 23:
        raise DataError(f"a position is {np.abs(positions).max():.0f} Å from the origin")
    octets = np.ascontiguousarray(steps).view(np.uint8).reshape(*steps.shape, 4)
    return np.ascontiguousarray(np.moveaxis(octets, 2, 0)[:3])


def _from_planes(planes: Bytes) -> NDArray[np.float32]:
    low, middle, high = planes
    steps = high.view(np.int8).astype(np.float32) * 65536
    steps += middle.astype(np.float32) * 256
    steps += low
    # Whole numbers below 2²³ are exact in float32, and so is 1e5: one rounding in all.
    steps /= np.float32(round(1 / RESOLUTION))
    return np.ascontiguousarray(steps.T)


Entry = tuple[int, tuple[float, ...], tuple[str, str, str]]
"""Number in GDB-9, targets, and SMILES, elements and coordinates as text."""


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


def _entries(files: Sequence[Path]) -> Iterator[Entry]:
    """Every molecule, in the order of the files."""
    for path in files:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    targets = tuple(float(row[target.column]) for target in QM9_TARGETS)
                    texts = (row["SMILES"], row["Elements"], row["XYZ_Ang"])
                    yield int(row["Index"]), targets, texts
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"cannot read QM9 from {path.name} ({error!r}): reinstall qm9pack"
            ) from error


def build_qm9(
    path: Path, rows: int | None = None, processes: int = 2, progress: bool = True
) -> None:
    """Build the cache file of all molecules, or the first `rows`, in some worker processes."""
    files = find_source()
    entries = islice(_entries(files), rows)
    groups = iter(lambda: list(islice(entries, _CHUNK)), [])
    chunks: list[Arrays] = []
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not progress) as bar:
        task = bar.add_task("building QM9", total=min(rows or MOLECULES, MOLECULES))
        for chunk in _rebuilt(groups, processes):
            chunks.append(chunk)
            bar.advance(task, len(chunk["sizes"]))
    arrays = _joined(chunks)
    if rows is None and (count := len(arrays["sizes"])) != MOLECULES:
        raise DataError(f"qm9pack holds {count:,} molecules, QM9 has {MOLECULES:,}: reinstall it")
    about = {
        "origin": "qm9pack",
        "files": {file.name: sha256_of(file) for file in files},
        "rdkit": importlib.metadata.version("rdkit"),
    }
    write_cache(path, arrays, about)


def _rebuilt(groups: Iterable[list[Entry]], processes: int) -> Iterator[Arrays]:
    """Rebuild every group, in order; a daemonic process may not start others."""
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


def _rebuild(group: list[Entry]) -> Arrays:
    """Arrays of some entries, made in a worker process.

    The texts are not sent back: they would be nine tenths of the traffic.
    """
    molecules: list[Arrays] = []
    for number, targets, texts in group:
        arrays = molecule_from_smiles(f"molecule {number} of QM9", *texts)
        head: Arrays = {
            "numbers": np.array([number], dtype=np.int32),
            "sizes": np.array([len(arrays["elements"])], dtype=np.uint8),
            "targets": np.array([targets], dtype=np.float64),
        }
        molecules.append(head | arrays)
    return _joined(molecules)


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
    return _arrays(order, numbers, positions, kekule, template)


def _match(template: Any, numbers: Bytes, positions: NDArray[np.float64]) -> Sequence[int] | None:
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


def _arrays(
    order: Sequence[int],
    numbers: Bytes,
    positions: NDArray[np.float64],
    kekule: Any,
    perceived: Any,
) -> Arrays:
    """The arrays of one molecule, of which there is a form without aromatic bonds.

    `order` has for each of its atoms the index in the geometry, whose order the arrays have.
    """
    atoms = np.zeros((len(numbers), 6), dtype=np.uint8)
    table = np.zeros((len(numbers), len(numbers)), dtype=np.uint8)
    for index, atom in zip(order, kekule.GetAtoms(), strict=True):
        atoms[index, 5] = atom.GetFormalCharge() + 8
    for bond in kekule.GetBonds():
        begin, end = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
        table[begin, end] = table[end, begin] = int(bond.GetBondTypeAsDouble())
    rank = {"SP": 1, "SP2": 2, "SP3": 3}
    for index, atom in zip(order, perceived.GetAtoms(), strict=True):
        atoms[index, 0] = atom.GetIsAromatic()
        atoms[index, 1] = rank.get(atom.GetHybridization().name, 0)
    for column, family in ((2, "Donor"), (3, "Acceptor")):
        for feature in _feature_factory().GetFeaturesForMol(perceived, includeOnly=family):
            atoms[[order[atom] for atom in feature.GetAtomIds()], column] = 1
    for bond in perceived.GetBonds():
        if bond.GetIsAromatic():
            begin, end = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
            table[[begin, end], [end, begin]] |= AROMATIC_BIT
    atoms[:, 4] = ((table > 0) & (numbers == 1)).sum(axis=1)
    sources, neighbours = np.nonzero(table)
    return {
        "elements": numbers,
        "positions": positions,
        "atoms": atoms,
        "degrees": np.bincount(sources, minlength=len(numbers)).astype(np.uint8),
        "neighbours": neighbours.astype(np.uint8),
        "orders": table[sources, neighbours],
    }


@remember
def _feature_factory() -> Any:
    """RDKit's own hydrogen-bond donors and acceptors (`BaseFeatures.fdef`), as in MPNN and PPGN."""
    from rdkit import RDConfig

    path = os.path.join(RDConfig.RDDataDir, "BaseFeatures.fdef")
    return import_module("rdkit.Chem.ChemicalFeatures").BuildFeatureFactory(path)
