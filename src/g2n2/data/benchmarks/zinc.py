"""ZINC-12k: penalised logP of drug-like molecules, with a training set that is a SURROGATE.

Validation and test molecules are the official ones, in official order. The training molecules are
10,000 others drawn from the same pool, because the official list was not available. Results must
be called "ZINC-12k test, resampled training set", never "ZINC-12k".
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..archives import read_npz
from ..files import DataFile
from ..graph_set import GraphSet, Target, one_hot

ZINC_LABEL = "ZINC-12k test, resampled training set"
_FILE = DataFile(
    *("zinc", "zinc12k_val_test_and_surrogate_train.npz", "zinc"),
    "09b8fc967cf67bd271b7f11854db1d2734ab9cc940830e507dafd6df8cc3d0b8",
    hint="There is nothing to download: the official files are pickles, which can run any code "
    "when opened, and are refused.",
)
_PARTS = {"train": "train_surrogate", "validation": "val", "test": "test"}
_BONDS = ("single", "double", "triple")


def load_zinc(data: str | Path | None = None) -> GraphSet:
    """Load 12,000 molecules: 10,000 surrogate training, 1,000 validation, 1,000 test.

    Node features are one-hot of 28 atom types, edge features of 3 bond types.
    """
    path, content = _FILE.read(data)
    arrays = read_npz(content, name=str(path))

    def joined(key: str, dtype: type = np.int64) -> NDArray[Any]:
        parts = [arrays[f"{part}_{key}"] for part in _PARTS.values()]
        return np.concatenate(parts, axis=-1).astype(dtype)

    counts, bonds = joined("num_edges"), joined("edges")
    # Each bond is stored once: list it both ways, the bonds of a molecule together.
    origin = np.tile(np.arange(bonds.shape[1], dtype=np.int64), 2)
    order = np.argsort(np.repeat(np.arange(len(counts)), counts)[origin], kind="stable")
    edges, origin = np.concatenate([bonds, bonds[::-1]], axis=1)[:, order], origin[order]
    atoms = tuple(str(name) for name in arrays["atom_names"])
    lengths = {name: len(arrays[f"{part}_y"]) for name, part in _PARTS.items()}
    ends = np.cumsum(list(lengths.values()))
    ranges = np.split(np.arange(ends[-1], dtype=np.int64), ends[:-1])
    return GraphSet(
        name="zinc-SURROGATE-train",
        sizes=joined("num_nodes"),
        edge_counts=2 * counts,
        edges=edges,
        node_features=one_hot(joined("atom_type"), len(atoms)),
        edge_features=one_hot(joined("bond_type")[origin] - 1, len(_BONDS)),
        targets=joined("y", np.float64)[:, None],
        columns=(Target("penalised_logP", symbol="plogP"),),
        node_names=atoms,
        edge_names=_BONDS,
        ids=tuple(
            f"{'surrogate ' * (name == 'train')}{name} {i}"
            for name, length in lengths.items()
            for i in range(length)
        ),
        splits=dict(zip(_PARTS, ranges, strict=True)),
        notes=(
            "the training set is a SURROGATE: 10,000 other molecules of the same pool, not the "
            f'official ones; call results "{ZINC_LABEL}"',
        ),
        source={"path": str(path), "sha256": _FILE.sha256, "label": ZINC_LABEL},
    ).check()
