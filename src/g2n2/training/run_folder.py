"""A run on disk: everything needed to understand it, repeat it, resume it and use its model.

config.json       settings, as read back by `--resume` and `predict`
data.json         where the graphs came from, their checksum, features and targets, the scaling
split.json        indices of the training, validation and test graphs
metrics.csv       one row for each epoch; no times, so that the same run gives the same file
checkpoint.pt     to resume; checkpoint.previous.pt is the one before it
operations.json   the operations its grammar uses that are not built in, if any
best.safetensors  the best weights, with the grammar and the plan
calibration.json  how far predictions can be trusted; written when the run has ended
manifest.json     checksums of all the above but metrics.csv: they belong together
result.json       scores on the test graphs, and what they were got with
test.csv          what the best weights say of each test graph
*.png             learning curve, and predictions against targets
tensorboard/      the curves of metrics.csv for TensorBoard
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.graph_set import GraphSet, Ints, Target
from ..errors import DataError, GrammarError
from ..grammars.catalogue import find_grammar
from ..language.registry import described, from_description, register
from ..locks import HOLDER, LOCK, sole_writer
from ..validation import Int, check
from .calibration import Calibration
from .checkpoint import NAME as CHECKPOINT
from .checkpoint import PREVIOUS, cannot_write, write_announced, write_whole
from .config import RunConfig, as_then
from .manifest import NAME as MANIFEST
from .manifest import Manifest, refuse_altered, sha256
from .scaling import Scaling
from .settings import rules_of
from .setup import Parts, distance_kinds
from .task import Task

BEST = "best.safetensors"
CALIBRATION = "calibration.json"
OPERATIONS = "operations.json"
PARTS = ("train", "validation", "test")
DATA = {
    "graphs": Int(),
    "sha256": str,
    "level": ("graph", "node", "edge"),
    "node_features": Int(),
    "edge_features": Int(),
    "node_names": [str],
    "edge_names": [str],
    "positions": bool,
    "columns": [
        {
            "name": str,
            "unit": str,
            "kind": ("regression", "binary", "multiclass"),
            "classes": [str],
            "symbol": str,
        }
    ],
    "scaling": {"mean": [float], "deviation": [float], "references": {str: {str: float}}},
}
"""Fields of data.json that are read back."""
DESCRIPTION = ("config.json", "data.json", "split.json", OPERATIONS)
"""What a run depends on, written before its first step and never changed."""


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def existing(cls, path: str | Path) -> RunFolder:
        """A folder that holds a run.

        Raises:
            DataError: It does not.
        """
        folder = cls(path)
        if not folder.started:
            raise DataError(f"{path} is no run folder: it has no config.json; make one: g2n2 train")
        folder._register_operations()
        return folder

    @property
    def started(self) -> bool:
        """Whether there is a run, finished or not."""
        return os.path.isfile(self.path / "config.json")

    def sole_writer(self) -> AbstractContextManager[None]:
        """Make the folder and be its only writer, for as long as the run lasts.

        Raises:
            DataError: Another process writes there; the message names it.
        """
        return sole_writer(
            self.path, "wait for it to end, or name another folder: g2n2 train … --out FOLDER"
        )

    def _register_operations(self) -> None:
        """Make known the operations the run's grammar uses besides the built-in ones."""
        if not (self.path / OPERATIONS).is_file():
            return
        try:
            for entry in self.read_json(OPERATIONS):
                register(from_description(entry))
        except (GrammarError, TypeError) as error:
            raise DataError(
                f"{self.path} needs an operation that is another one here: {error}"
            ) from error

    def write_json(self, name: str, content: Any) -> None:
        write_whole(self.path / name, _json(content))

    def read_json(self, name: str) -> Any:
        """What a file holds.

        Raises:
            DataError: It is not there, is damaged, or is not what the run has written there.
        """
        try:
            content = (self.path / name).read_bytes()
            found = json.loads(content)
        except OSError:
            raise DataError(
                f"{self.path} has no {name}: the run has not come to its end; go on: "
                f"g2n2 train --resume {self.path}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path / name} is damaged: {error}") from None
        if name in (*DESCRIPTION, CALIBRATION):
            refuse_altered(self.path, name, content)
        return found

    @property
    def unchecked(self) -> str:
        """A sentence where the folder has no checksums; else empty."""
        if Manifest.read(self.path) is not None:
            return ""
        return (
            f"{self.path} has no {MANIFEST}, as those of earlier versions: whether its files "
            "belong together is not checked"
        )

    def adopt(self) -> None:
        """Give a folder of an earlier version its checksums, as its files are now."""
        names = (*DESCRIPTION, CALIBRATION, BEST, PREVIOUS, CHECKPOINT)
        manifest = Manifest({})
        for path in (self.path / name for name in names):
            if path.is_file():
                name = CHECKPOINT if path.name == PREVIOUS else path.name
                manifest = manifest.followed_by(name, path.read_bytes())
        manifest.write(self.path)

    def keep_only_best(self) -> None:
        """Once a run has ended, know its last best weights only, not those it had before."""
        manifest = Manifest.read(self.path)
        if manifest is not None:
            last = {k: v[:1] for k, v in manifest.files.items() if k in (BEST, CALIBRATION)}
            Manifest({**manifest.files, **last}).write(self.path)

    def describe(self, config: RunConfig, parts: Parts) -> None:
        """Write what the run depends on, before its first step."""
        graphs = parts.graphs
        content: dict[str, Any] = {
            "split.json": {k: v.tolist() for k, v in parts.splits.items()},
            "data.json": {
                "name": graphs.name,
                "graphs": len(graphs),
                "sha256": checksum(graphs),
                "ids_sha256": ids_checksum(graphs),
                "level": graphs.level,
                "node_names": list(graphs.node_names),
                "edge_names": list(graphs.edge_names),
                "node_features": graphs.node_features.shape[1],
                "edge_features": graphs.edge_features.shape[1],
                "positions": bool(distance_kinds(config, graphs)),
                "columns": [asdict(column) for column in graphs.columns],
                "scaling": parts.scaling.as_dict(),
                "source": {k: v for k, v in graphs.source.items() if isinstance(v, str | int)},
                "notes": [*graphs.notes, *parts.notes],
            },
        }
        if not config.baseline:
            grammar = find_grammar(config.grammar)
            terms = [*(rule.body for rule in grammar.all_rules), *dict(grammar.supports).values()]
            if operations := described(terms, aliases=True):
                content[OPERATIONS] = operations
        content["config.json"] = config.as_dict()  # the last: from here on there is a run
        manifest = Manifest({name: (sha256(_json(made)),) for name, made in content.items()})
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            manifest.write(self.path)
        except OSError as error:
            raise cannot_write(self.path / MANIFEST, error) from None
        for name, made in content.items():
            self.write_json(name, made)

    def foreign(self) -> list[str]:
        """What the folder holds that no run killed at its very start has left there."""
        own = (*DESCRIPTION, MANIFEST, LOCK, HOLDER)
        found = self.path.iterdir() if os.path.isdir(self.path) else ()
        return sorted(p.name for p in found if p.name not in own and not p.name.endswith(".part"))

    def forget(self) -> None:
        """Undo `describe`, for a run that never began; the folder goes where nothing else is."""
        with suppress(OSError):  # a path that is no folder: what the run failed of says so
            for name in (*DESCRIPTION, MANIFEST, HOLDER):
                (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / "tensorboard", ignore_errors=True)
        with suppress(OSError):  # not empty, or never made
            if {path.name for path in self.path.iterdir()} <= {LOCK}:
                (self.path / LOCK).unlink(missing_ok=True)
                self.path.rmdir()

    def drop_unfinished(self) -> None:
        """Remove what a killed process was writing."""
        for pattern in (".*.part", f".{BEST}.*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def config(self) -> RunConfig:
        """The settings; where the rules were not written down yet, a fragment was exhaustive."""
        said, path = self.read_json("config.json"), self.path / "config.json"
        check(said, {}, "config", path)
        config = RunConfig.from_dict(as_then(said), str(path))
        if config.baseline or config.rules:
            return config
        return replace(config, rules=rules_of(find_grammar(config.grammar)))

    def splits(self) -> dict[str, Ints]:
        said = self.read_json("split.json")
        members = [Int(0, self.data("graphs") - 1)]
        check(said, dict.fromkeys(PARTS, members), "split", self.path / "split.json")
        return {part: np.asarray(said[part], dtype=np.int64) for part in PARTS}

    def data(self, field: str) -> Any:
        """A field of data.json.

        Raises:
            DataError: It is not there, or not of its shape.
        """
        said = self.read_json("data.json")
        check(said, {field: DATA[field]}, "data", self.path / "data.json")
        return said[field]

    def columns(self) -> tuple[Target, ...]:
        rows = self.data("columns")
        if not rows:
            raise DataError(f"{self.path / 'data.json'} is damaged: there are no columns")
        return tuple(Target(**{**row, "classes": tuple(row["classes"])}) for row in rows)

    def scaling(self) -> Scaling:
        """How targets were scaled.

        Raises:
            DataError: There is not one number for each target, or a deviation is 0.
        """
        scaling, count = Scaling.from_dict(self.data("scaling")), len(self.data("columns"))
        if not len(scaling.mean) == len(scaling.deviation) == count or 0 in scaling.deviation:
            raise DataError(
                f"{self.path / 'data.json'} is damaged: scaling needs a mean and a deviation other "
                f"than 0 for each of {count} columns"
            )
        return scaling

    def write_calibration(self, calibration: Calibration) -> None:
        write_announced(self.path / CALIBRATION, _json(calibration.as_dict()))

    def calibration(self, task: Task) -> Calibration | None:
        """How far predictions can be trusted; None where the run has not said it yet.

        Raises:
            DataError: The file is damaged, was altered, or is of another run.
        """
        if self.uncalibrated:
            return None
        path = self.path / CALIBRATION
        return Calibration.from_dict(self.read_json(CALIBRATION), task, path)

    @property
    def uncalibrated(self) -> str:
        """A sentence where the folder does not say how far to trust predictions; else empty."""
        if (self.path / CALIBRATION).exists():
            return ""
        return (
            f"{self.path} has no {CALIBRATION}, as it has not come to its end or is of an earlier "
            "version: predictions have no interval, and no note where a graph is unlike the "
            f"training graphs; make it: g2n2 train --resume {self.path}"
        )

    def refuse_other_data(self, graphs: GraphSet) -> None:
        """Compare the data with what the run was started on.

        Raises:
            DataError: They differ, so that resuming would mix two data sets.
        """
        other = "data" if checksum(graphs) != self.data("sha256") else ""
        ids = ids_checksum(graphs)
        if self.read_json("data.json").get("ids_sha256", ids) != ids:
            other = other or "ids"
        if other:
            verb = "is" if other == "data" else "are"
            raise DataError(
                f"the {other} of {graphs.name} {verb} not what {self.path} was started on; "
                "restore it, or start a new run"
            )

    def finished_epochs(self) -> bool:
        """Whether metrics.csv has a row."""
        with suppress(OSError):
            return len((self.path / "metrics.csv").read_bytes().splitlines()) > 1
        return False

    def write_metrics(self, history: list[dict[str, float]]) -> None:
        """The whole table anew, so that a resumed run has no row twice."""
        text = io.StringIO()
        names = [name for name in history[0] if name != "seconds"] if history else ["epoch"]
        rows = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        rows.writerows({k: f"{v:.10g}" for k, v in row.items()} for row in history)
        write_whole(self.path / "metrics.csv", text.getvalue().encode())


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=2).encode()


def ids_checksum(graphs: GraphSet) -> str:
    """sha256 over what the graphs are called, in their order."""
    return sha256(json.dumps(graphs.ids).encode())


def checksum(graphs: GraphSet) -> str:
    """sha256 over every array a network sees."""
    digest = hashlib.sha256()
    arrays: Mapping[str, Any] = {
        "sizes": graphs.sizes,
        "edge_counts": graphs.edge_counts,
        "edges": graphs.edges,
        "node_features": graphs.node_features,
        "edge_features": graphs.edge_features,
        "weights": graphs.weights,
        "positions": graphs.positions,
        "targets": graphs.targets,
    }
    for name, values in arrays.items():
        digest.update(name.encode())
        if values is not None:
            digest.update(str(values.shape).encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
