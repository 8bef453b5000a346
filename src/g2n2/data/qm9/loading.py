"""QM9: 130,831 molecules with DFT geometry, bonds and twelve targets, as one `GraphSet`.

Two tracks, always named in results: `bonds` sees the molecular graph, `distance` also the geometry.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from ...atomic_files import sole_builder
from ...errors import DataError
from ..files import cache_folder
from ..graph_set import GraphSet, Ints
from .build import build_qm9
from .cache import RESOLUTION, Molecules, read_cache
from .features import EDGE_NAMES, Features, edge_features, node_features, node_names
from .sources import MOLECULES, has_raw_files
from .targets import QM9_TARGETS, EnergyUnit, find_target

Track = Literal["bonds", "distance"]

_FEATURE_NOTES = {
    "pyg": "features pyg: aromatic, sp, sp2, sp3 and aromatic bonds are 0 for every molecule, "
    "as in PyG's own processing; bonds are Kekulé bonds",
    "ppgn": "features ppgn: the sanitized features, and hydrogen-bond donor and acceptor as "
    "RDKit's BaseFeatures.fdef defines them",
    "sanitized": "features sanitized: PyG's columns with what RDKit says of aromaticity and "
    "hybridisation",
}


def load_qm9(
    features: Features = "pyg",
    track: Track = "bonds",
    targets: str | Sequence[str] | None = None,
    energy_unit: EnergyUnit = "hartree",
    cache: str | Path | None = None,
    data: str | Path | None = None,
    progress: bool = True,
    rebuild: bool = False,
) -> GraphSet:
    """Load QM9 from its cache file, which is built first where there is none.

    Node features: `pyg` has 11 columns (one-hot H C N O F, Z, aromatic, sp, sp2, sp3, number of
    hydrogens bonded), the middle four 0 as in PyG's own files; `sanitized` has the same with real
    values; `ppgn` adds hydrogen-bond donor and acceptor to `sanitized`. A donor or acceptor is an
    atom in a feature of that family of RDKit's `BaseFeatures.fdef`. Edge features: one-hot single,
    double, triple, aromatic; `pyg` has no aromatic bonds but the Kekulé orders. A bond is listed in
    both directions, ordered by its ends.

    Args:
        features: Which node and edge features.
        track: `distance` keeps `positions`; `bonds` has none.
        targets: Names or symbols of targets, as `"R2"` or `["u0", "gap"]`; all twelve where None.
        energy_unit: `hartree`, as in the files and the paper, or `meV`.
        cache: The cache file; in the user cache where None.
        data: Folder with PyG's raw files, read instead of qm9pack where they are there.
        progress: Whether a build shows a progress bar.
        rebuild: Build the cache file even if there is one.

    Raises:
        DataError: If an option is unknown, QM9 is not installed, or the cache is damaged.
    """
    _check_option("features", features, get_args(Features))
    _check_option("track", track, get_args(Track))
    _check_option("energy unit", energy_unit, get_args(EnergyUnit))
    names = [target.name for target in QM9_TARGETS] if targets is None else targets
    chosen = [find_target(name) for name in ([names] if isinstance(names, str) else names)]
    path = qm9_cache(cache, data, progress=progress, rebuild=rebuild)
    molecules = read_cache(path)
    origin = "gdb9.sdf" if has_raw_files(data) else "qm9pack"
    if origin == "gdb9.sdf" and molecules.about["origin"] != origin:
        raise DataError(
            f"the QM9 cache {str(path)!r} was built from {molecules.about['origin']}, but "
            f"{str(data)!r} holds {origin}: name another cache file, or pass rebuild=True"
        )
    columns = [QM9_TARGETS.index(target) for target in chosen]
    scale = np.array([target.factor(energy_unit) for target in chosen])
    sizes = molecules.sizes.astype(np.int64)
    edges = _edges(molecules)
    bonds_before = np.concatenate([[0], np.cumsum(molecules.degrees, dtype=np.int64)])
    return GraphSet(
        name=f"QM9 ({track})",
        sizes=sizes,
        edge_counts=np.diff(bonds_before[np.cumsum(sizes)], prepend=0),
        edges=edges,
        node_features=node_features(molecules, features),
        edge_features=edge_features(molecules, features),
        targets=molecules.targets[:, columns] * scale,
        columns=tuple(target.as_target(energy_unit) for target in chosen),
        positions=molecules.positions if track == "distance" else None,
        node_names=node_names(features),
        edge_names=EDGE_NAMES,
        ids=tuple(f"gdb_{number}" for number in molecules.numbers.tolist()),
        notes=_notes(molecules, features),
        source=MappingProxyType(
            {
                "dataset": "QM9",
                "track": track,
                "features": features,
                "energy_unit": energy_unit,
                "resolution": f"{RESOLUTION:g} Å",
                "cache": str(path),
                "sha256": molecules.sha256,
                **molecules.about,
            }
        ),
    )


def qm9_cache(
    cache: str | Path | None = None,
    data: str | Path | None = None,
    progress: bool = True,
    rebuild: bool = False,
) -> Path:
    """Where the cache file lies, which is built first where there is none; see `load_qm9`.

    Raises:
        DataError: It cannot be built.
    """
    default = "qm9-sdf.cache" if has_raw_files(data) else "qm9.cache"
    path = cache_folder() / default if cache is None else Path(cache)
    if rebuild or not path.exists():
        with sole_builder(path):
            if rebuild or not path.exists():  # another process may have built it meanwhile
                build_qm9(path, data, progress=progress)
    return path


def _edges(molecules: Molecules) -> Ints:
    """`[2, ΣE]` ends of every bond, both ways, counted from 0 within the molecule."""
    sizes = molecules.sizes.astype(np.int64)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    edges = np.empty((2, len(molecules.neighbours)), dtype=np.int64)
    edges[0], edges[1] = np.repeat(within, molecules.degrees), molecules.neighbours
    return edges


def _notes(molecules: Molecules, features: Features) -> tuple[str, ...]:
    notes = [_FEATURE_NOTES[features]]
    if (count := len(molecules.sizes)) != MOLECULES:
        notes.append(f"the cache holds {count:,} of {MOLECULES:,} molecules only")
    if unclean := molecules.about["unclean"]:
        notes.append(
            f"RDKit refused the valences of {unclean:,} molecules; their aromatic, sp, sp2, sp3, "
            "donor and acceptor columns are 0"
        )
    return tuple(notes)


def _check_option(what: str, got: str, known: tuple[str, ...]) -> None:
    if got not in known:
        raise DataError(f"QM9 has no {what} {got!r}; choose among: {', '.join(known)}")
