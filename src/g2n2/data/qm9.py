"""QM9: 130,831 molecules with DFT geometry, bonds in the order of the atoms and twelve targets.

`load_qm9` reads a cache file, which is built once from the package qm9pack. There are two tracks,
always named in results: `bonds` sees the molecular graph, `distance` sees the geometry as well.

The arrays of a molecule, of a chunk and of the cache are the same, one molecule after the other:

- `numbers` and `sizes` `[G]`, the number in GDB-9 from 1 and the atoms; `targets` `[G, 12]`
- `elements` `[ΣN]`, atomic numbers; `positions` `[ΣN, 3]` in Å, in the cache as bytes (`planes`)
- `atoms` `[ΣN, 6]`: aromatic, hybridisation (1 sp, 2 sp2, 3 sp3, else 0), hydrogen-bond donor and
  acceptor, bonded hydrogens, formal charge + 8
- `degrees` `[ΣN]`; `neighbours` `[ΣE]` of each atom in turn, ascending, counted from 0 within its
  molecule; `orders` `[ΣE]` of those bonds, with `AROMATIC_BIT`
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import sole_builder
from ..errors import DataError
from ..validation import check_option
from .archives import read_npz
from .files import cache_folder, write_cache_file
from .graph_set import GraphSet, Ints, Target
from .qm9_build import AROMATIC_BIT, ATOMIC_NUMBERS, MOLECULES, Arrays, rebuild_qm9
from .readers.molecules import ATOM_FEATURES, BOND_FEATURES

Features = Literal["pyg", "ppgn", "sanitized", "smiles"]
Track = Literal["bonds", "distance"]
EnergyUnit = Literal["hartree", "meV"]

MEV_PER_HARTREE = 27211.386245988
"""CODATA 2018."""
RESOLUTION = 1e-5
"""Å to which the cache keeps positions; targets are kept exactly."""

_FORMAT = 1
_OCTETS = ("sizes", "elements", "planes", "atoms", "degrees", "neighbours", "orders")
_DTYPES = {"numbers": "<i4", "targets": "<f8", **dict.fromkeys(_OCTETS, "|u1")}
_GROUND = 1e-6  # conductance of each node to ground, so that a graph may have several components
_ENTRIES = 2**22  # of the matrices that are inverted at a time
_PYG_NAMES = (*ATOMIC_NUMBERS, "Z", "aromatic", "sp", "sp2", "sp3", "hydrogens")
_NOTES = {
    "pyg": "features pyg: aromatic, sp, sp2, sp3 and aromatic bonds are 0 for every molecule, "
    "as in PyG's own processing; bonds are Kekulé bonds",
    "ppgn": "features ppgn: the sanitized features, and hydrogen-bond donor and acceptor as "
    "RDKit's BaseFeatures.fdef defines them",
    "sanitized": "features sanitized: PyG's columns with what RDKit says of aromaticity and "
    "hybridisation",
    "smiles": "features smiles: those of a molecule read from SMILES with its hydrogens, without "
    "R, S, E and Z",
}


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
    sizes, degrees = arrays["sizes"].astype(np.int64), arrays["degrees"]
    starts = np.cumsum(sizes) - sizes
    edge_counts = np.add.reduceat(degrees, starts, dtype=np.int64)
    within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    edges = np.stack([np.repeat(within, degrees), arrays["neighbours"]])
    notes = [_NOTES[features]]
    if len(sizes) != MOLECULES:
        notes.append(f"the cache holds {len(sizes):,} of {MOLECULES:,} molecules only")
    in_mev = [energy_unit == "meV" and target.unit == "hartree" for target in chosen]
    values = arrays["targets"][:, [QM9_TARGETS.index(target) for target in chosen]]
    source: dict[str, object] = {
        "dataset": "QM9",
        "track": track,
        "features": features,
        "energy_unit": energy_unit,
        "resolution": f"{RESOLUTION:g} Å",
        "cache": str(path),
    }
    if features == "smiles":
        columns = _smiles_features(arrays, sizes, edge_counts, edges)
        symbols = {number: symbol for symbol, number in ATOMIC_NUMBERS.items()}
        elements = np.split(arrays["elements"], starts[1:])
        # Read by runs: how a SMILES has to be read to have these features.
        source |= {
            "hydrogens": True,
            "stereo": False,
            "elements": tuple(frozenset(map(symbols.get, part.tolist())) for part in elements),
        }
    else:
        columns = _pyg_features(arrays, features)
    return GraphSet(
        name=f"QM9 ({track})",
        sizes=sizes,
        edge_counts=edge_counts,
        edges=edges,
        targets=values * np.where(in_mev, MEV_PER_HARTREE, 1.0),
        columns=tuple(
            Target(t.name, "meV" if mev else t.unit, symbol=t.symbol)
            for t, mev in zip(chosen, in_mev, strict=True)
        ),
        positions=_from_planes(arrays["planes"]) if track == "distance" else None,
        ids=tuple(f"gdb_{number}" for number in arrays["numbers"].tolist()),
        notes=tuple(notes),
        source={**source, **about},
        **columns,
    )


def _pyg_features(arrays: Arrays, features: Features) -> dict[str, Any]:
    """Node and edge features of PyG's files, and of MPNN and PPGN, with their names."""
    # One-hot H C N O F and Z; aromatic, sp, sp2, sp3; hydrogens; donor and acceptor.
    by_element = np.zeros((max(ATOMIC_NUMBERS.values()) + 1, 13), dtype=np.float32)
    for column, number in enumerate(ATOMIC_NUMBERS.values()):
        by_element[number, [column, 5]] = 1, number
    nodes = by_element.take(arrays["elements"], axis=0)
    aromatic, hybridisation, donor, acceptor, hydrogens, _ = arrays["atoms"].T
    nodes[:, 10] = hydrogens
    if features != "pyg":
        nodes[:, 6], nodes[:, 11], nodes[:, 12] = aromatic, donor, acceptor
        nodes[:, 7:10] = hybridisation[:, None] == (1, 2, 3)
    node_names = (*_PYG_NAMES, "donor", "acceptor") if features == "ppgn" else _PYG_NAMES
    return {
        "node_features": np.ascontiguousarray(nodes[:, : len(node_names)]),
        "edge_features": _bond_orders(arrays, kekule=features == "pyg"),
        "node_names": node_names,
        "edge_names": ("single", "double", "triple", "aromatic"),
    }


def _smiles_features(arrays: Arrays, sizes: Ints, edge_counts: Ints, edges: Ints) -> dict[str, Any]:
    """The features `readers.molecules` makes of a SMILES with hydrogens, 0 for R, S, E and Z."""
    aromatic, hybridisation, _, _, hydrogens, charges = arrays["atoms"].astype(np.int64).T
    on_ring = ring_edges(sizes, edge_counts, edges)
    first = np.repeat(np.cumsum(sizes) - sizes, edge_counts) + edges[0]
    values = {
        **{symbol: arrays["elements"] == number for symbol, number in ATOMIC_NUMBERS.items()},
        "formal charge": charges - 8,
        "aromatic": aromatic,
        **{name: hybridisation == rank for rank, name in enumerate(("sp", "sp2", "sp3"), 1)},
        "hydrogens": hydrogens,
        "in ring": np.bincount(first, weights=on_ring, minlength=len(aromatic)) > 0,
    }
    nodes = np.zeros((len(aromatic), len(ATOM_FEATURES)), dtype=np.float32)
    for name, column in values.items():
        nodes[:, ATOM_FEATURES.index(name)] = column
    bonds = np.zeros((len(on_ring), len(BOND_FEATURES)), dtype=np.float32)
    bonds[:, :4] = _bond_orders(arrays, kekule=False)
    bonds[:, BOND_FEATURES.index("in ring")] = on_ring
    names = {"node_names": ATOM_FEATURES, "edge_names": BOND_FEATURES}
    return {"node_features": nodes, "edge_features": bonds, **names}


def _bond_orders(arrays: Arrays, *, kekule: bool) -> NDArray[np.float32]:
    """`[ΣE, 4]` one-hot single, double, triple, aromatic."""
    by_order = np.zeros((2 * AROMATIC_BIT, 4), dtype=np.float32)
    for order in (1, 2, 3):
        by_order[order, order - 1] = 1
        by_order[order | AROMATIC_BIT, order - 1 if kekule else 3] = 1
    return by_order.take(arrays["orders"], axis=0)


def ring_edges(sizes: Ints, edge_counts: Ints, edges: Ints) -> NDArray[np.bool_]:
    """`[ΣE]` whether each edge of undirected simple graphs of some hundred nodes lies on a cycle.

    An edge is on no cycle exactly if it is a bridge, and its effective resistance is 1 then. On a
    cycle of k nodes it is at most (k − 1) / k.
    """
    on_cycle = np.zeros(edges.shape[1], dtype=bool)
    owner = np.repeat(np.arange(len(sizes)), edge_counts)
    for size in np.unique(sizes[edge_counts > 0]).tolist():
        members = np.flatnonzero((sizes == size) & (edge_counts > 0))
        at_once = max(1, _ENTRIES // size**2)
        for start in range(0, len(members), at_once):
            chosen = members[start : start + at_once]
            place = np.full(len(sizes), -1)
            place[chosen] = np.arange(len(chosen))
            rows = np.flatnonzero(place[owner] >= 0)
            graph, (i, j) = place[owner[rows]], edges[:, rows]
            laplacian = np.zeros((len(chosen), size, size))
            laplacian[graph, i, j] = -1.0
            nodes = np.arange(size)
            laplacian[:, nodes, nodes] = _GROUND - laplacian.sum(2)
            inverse = np.linalg.inv(laplacian)
            resistance = inverse[graph, i, i] + inverse[graph, j, j] - 2.0 * inverse[graph, i, j]
            on_cycle[rows] = resistance < 1.0 - 0.5 / size
    return on_cycle


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


def build_qm9(
    path: Path, rows: int | None = None, processes: int = 2, progress: bool = True
) -> None:
    """Build the cache file of all molecules, or the first `rows`, in some worker processes."""
    columns = [target.column for target in QM9_TARGETS]
    write_cache(path, *rebuild_qm9(columns, rows, processes, progress))


def write_cache(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write the cache file, whole or not at all."""
    arrays = {**arrays, "planes": _to_planes(arrays["positions"])}
    arrays = {name: np.asarray(arrays[name], dtype) for name, dtype in _DTYPES.items()}
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


def _to_planes(positions: NDArray[Any]) -> NDArray[np.uint8]:
    """`[3, 3, ΣN]` bytes of the rounded coordinates, low byte first: they compress by a third."""
    steps = np.rint(np.asarray(positions, dtype=np.float64).T / RESOLUTION).astype("<i4")
    if np.abs(steps).max(initial=0) >= 1 << 23:
        raise DataError(f"a position is {np.abs(positions).max():.0f} Å from the origin")
    octets = np.ascontiguousarray(steps).view(np.uint8).reshape(*steps.shape, 4)
    return np.ascontiguousarray(np.moveaxis(octets, 2, 0)[:3])


def _from_planes(planes: NDArray[np.uint8]) -> NDArray[np.float32]:
    low, middle, high = planes
    steps = high.view(np.int8).astype(np.float32) * 65536
    steps += middle.astype(np.float32) * 256
    steps += low
    # Whole numbers below 2²³ are exact in float32, and so is 1e5: one rounding in all.
    steps /= np.float32(round(1 / RESOLUTION))
    return np.ascontiguousarray(steps.T)
