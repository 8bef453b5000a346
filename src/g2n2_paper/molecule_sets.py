"""Four sets of MoleculeNet as graphs, with their splits; and files of them that need no RDKit.

| set | molecules of | split that is given |
|-|-|-|
| Lipophilicity, BACE, Tox21 | `moleculenet/NAME.csv` | `scaffold`, the library's |
| molhiv | `moleculenet/HIV.csv.gz` | `official`, that of ogbg-molhiv |

A machine without RDKit reads `moleculenet/NAME.graphs.npz`, which `write_graphs` makes elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, cast
from zipfile import BadZipFile

import numpy as np

from g2n2 import read_graphs
from g2n2.atomic_files import replace_file
from g2n2.data.files import DataFile
from g2n2.data.graph_set import GraphSet, Ints, Target
from g2n2.data.readers.labels import rows_by_part
from g2n2.data.splits import PARTS, check_parts, split
from g2n2.errors import DataError
from g2n2.training.trained_on import checksum

FOLDER = "moleculenet"
MOLHIV_SPLIT = "molhiv_split.csv.gz"
ARRAYS = ("sizes", "edge_counts", "edges", "node_features", "edge_features", "targets")


def _file(name: str) -> DataFile:
    return DataFile("MoleculeNet", name, FOLDER)


@dataclass(frozen=True)
class MoleculeSet:
    """A set, and how results on it are scored."""

    name: str
    file: str
    targets: tuple[str, ...]  # all columns of numbers if empty
    metric: Literal["RMSE", "ROC-AUC"]
    splits: tuple[str, ...] = ("scaffold", "random")  # the first is the one that is given

    @property
    def graph_file(self) -> str:
        return f"{self.name}.graphs.npz"

    def read(self, data: str | None = None) -> GraphSet:
        """The graphs, with the given split; kept in memory for the next cell."""
        return _read(self, data)


SETS = (
    MoleculeSet("BACE", "bace.csv", ("Class",), "ROC-AUC"),
    MoleculeSet("Lipophilicity", "Lipophilicity.csv", ("exp",), "RMSE"),
    MoleculeSet("Tox21", "tox21.csv", (), "ROC-AUC"),
    MoleculeSet("molhiv", "HIV.csv.gz", ("HIV_active",), "ROC-AUC", ("official",)),
)


@lru_cache(maxsize=1)
def _read(molecules: MoleculeSet, data: str | None) -> GraphSet:
    official = molecules.splits[0] == "official"
    names = (molecules.file, MOLHIV_SPLIT) if official else (molecules.file,)
    path, *more = (_file(name).find(data) for name in names)
    if path is None or None in more or not find_spec("rdkit"):
        prepared, reason = _file(molecules.graph_file).find(data), "It is not downloaded."
        if prepared is not None:
            return load_graphs(prepared)
        if not find_spec("rdkit"):
            names = (molecules.graph_file,)
            reason = "There is no RDKit here; `g2n2-paper molecule-graphs` writes it elsewhere."
        raise DataFile(molecules.name, " and ".join(names), FOLDER).missing(data, reason)
    graphs = read_graphs(path, target=molecules.targets or None, name=molecules.name)
    if not official:
        return replace(graphs, splits=split(graphs, "scaffold"))
    with gzip.open(cast(Path, more[0]), "rt") as file:
        part_of_row = {int(line["row"]): line["part"] for line in csv.DictReader(file)}
    splits = rows_by_part([part_of_row[row] for row in graphs.source["rows"]], MOLHIV_SPLIT)
    check_parts(graphs, {part: splits.get(part, np.zeros(0, np.int64)) for part in PARTS})
    return replace(graphs, splits=splits)


def parts_of(graphs: GraphSet, how: str, seed: int) -> dict[str, Ints]:
    """Training, validation and test molecules; only `random` depends on the seed."""
    return split(graphs, "random", seed) if how == "random" else dict(graphs.splits)


def digests(molecules: MoleculeSet, graphs: GraphSet) -> dict[str, str]:
    """Of the file, and of the rows of the file in each part: equal for every contender."""
    rows = np.asarray(graphs.source["rows"], dtype=np.int64)
    digest = hashlib.sha256()
    for part in PARTS:
        digest.update(part.encode() + rows[graphs.splits[part]].tobytes())
    return {molecules.name: graphs.source["sha256"], "split": digest.hexdigest()}


def write_graphs(molecules: MoleculeSet, folder: Path, data: str | None = None) -> Path:
    """Write the graphs and their given split as one file that needs no RDKit."""
    path = folder / molecules.graph_file
    save_graphs(molecules.read(data), path)
    return path


def save_graphs(graphs: GraphSet, path: Path) -> None:
    """Write graphs, splits and checksums as plain arrays."""
    about = {
        "name": graphs.name,
        "columns": [asdict(column) for column in graphs.columns],
        "node_names": graphs.node_names,
        "edge_names": graphs.edge_names,
        "file sha256": graphs.source.get("sha256", ""),
        "checksum": checksum(graphs),
    }
    splits = {f"part {part}": members for part, members in graphs.splits.items()}
    arrays: dict[str, Any] = {name: getattr(graphs, name) for name in ARRAYS}
    arrays |= {"rows": np.asarray(graphs.source.get("rows", ()), dtype=np.int64), **splits}
    content = BytesIO()
    np.savez_compressed(content, about=np.array(json.dumps(about)), **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content.getvalue(), shared=True)


def load_graphs(path: Path) -> GraphSet:
    """The graphs of a file that `save_graphs` made."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            graphs = GraphSet(
                **{name: file[name] for name in ARRAYS},
                name=about["name"],
                columns=tuple(
                    Target(**{**column, "classes": tuple(column["classes"])})
                    for column in about["columns"]
                ),
                node_names=tuple(about["node_names"]),
                edge_names=tuple(about["edge_names"]),
                splits={n.removeprefix("part "): file[n] for n in file if n.startswith("part ")},
                source={"sha256": about["file sha256"], "rows": tuple(file["rows"].tolist())},
            )
        if checksum(graphs) != about["checksum"]:
            raise ValueError("checksum")
    except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise DataError(
            f"{path} is truncated or altered ({error}): write it again with "
            "`g2n2-paper molecule-graphs`"
        ) from None
    return graphs.check()
