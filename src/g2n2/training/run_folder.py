"""A run on disk: everything needed to understand it, repeat it, resume it and use its model.

config.json       settings, as read back by `--resume` and `predict`
data.json         where the graphs came from, their checksum, features and targets, the scaling
split.json        indices of the training, validation and test graphs
graph_keys.json   hashes by which these graphs are known when a network is trained further
metrics.csv       one row for each epoch; no times, so that the same run gives the same file
checkpoint.pt     to resume; checkpoint.previous.pt is the one before it
operations.json   the operations its grammar uses that are not built in, if any
start.safetensors the network it started from, with its new inputs and outputs, if any
best.safetensors  the best weights, with the grammar and the plan
calibration.json  intervals and calibrated probabilities; written when the run has ended
manifest.json     checksums of all the above but metrics.csv: they belong together
result.json       scores on the test graphs, and the versions and hardware behind them
test.csv          predictions of the best weights for the test graphs
*.png             learning curve, and predictions against targets
tensorboard/      the curves of metrics.csv for TensorBoard
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from .. import __version__
from ..atomic_files import HOLDER, LOCK, check_folder, disk_errors, make_folder
from ..data.graph_set import Ints
from ..errors import DataError, GrammarError
from ..grammars.catalogue import find_grammar
from ..grammars.registry import register
from ..language.registry import described, from_description
from ..validation import Int, check, read_as
from .calibration import Calibration
from .checkpoint import (
    CHECKPOINT,
    MANIFEST,
    PREVIOUS,
    Manifest,
    read_manifest,
    refuse_altered,
    sha256,
    with_version,
    write_announced,
    write_manifest,
    write_whole,
)
from .config import RunConfig, rules_of, run_grammar, upgraded
from .processes import first_process
from .setup import Parts, make_model
from .task import Task
from .trained_on import GraphKeys, TrainedOn

if TYPE_CHECKING:
    from ..nn.model import GrammarGNN

BEST = "best.safetensors"
CALIBRATION = "calibration.json"
OPERATIONS = "operations.json"
START = "start.safetensors"
KEYS = "graph_keys.json"
PARTS = ("train", "validation", "test")
DESCRIPTION = ("config.json", "data.json", "split.json", OPERATIONS)
"""Written before the first step and never changed."""


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def existing(cls, path: str | Path, by_name: Sequence[str] = ()) -> RunFolder:
        """A folder that holds a run, else a DataError; registers operations of its grammar.

        `by_name` are networks that the message offers where there is nothing at the path.
        """
        folder = cls(path)
        if not folder.started:
            what, more = "there is nothing at that path: check it", ""
            if os.path.exists(path):
                what = "it has no config.json" if os.path.isdir(path) else "it is a file"
            elif by_name:
                more = f"; by name there is {', '.join(by_name)}"
            raise DataError(f"{path} is no run folder: {what}; make one: g2n2 train{more}")
        if (folder.path / OPERATIONS).is_file():
            try:
                for entry in folder.read_json(OPERATIONS):
                    register(from_description(entry))
            except (GrammarError, TypeError) as error:
                raise DataError(
                    f"{path} needs an operation that is another one here: {error}"
                ) from error
        return folder

    @property
    def started(self) -> bool:
        """Whether there is a run, finished or not."""
        return os.path.isfile(self.path / "config.json")

    def read_json(self, name: str) -> Any:
        """A file's content; a DataError without one, or if it is damaged or was altered."""
        try:
            content = (self.path / name).read_bytes()
            parsed = json.loads(content)
        except OSError:
            raise DataError(
                f"{self.path} has no {name}: the run has not come to its end; go on: "
                f"g2n2 train --resume {self.path}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path / name} is damaged: {error}") from None
        if name in (*DESCRIPTION, CALIBRATION, KEYS):
            refuse_altered(self.path, name, content)
        return parsed

    @property
    def checksum_note(self) -> str:
        """A sentence if the folder has no checksums; else empty."""
        if read_manifest(self.path) is not None:
            return ""
        return (
            f"{self.path} has no {MANIFEST}, as those of earlier versions: whether its files "
            "belong together is not checked"
        )

    def add_checksums(self) -> None:
        """Write checksums for a folder of an earlier version."""
        manifest: Manifest = {}
        for name in (*DESCRIPTION, KEYS, CALIBRATION, BEST, PREVIOUS, CHECKPOINT):
            if (self.path / name).is_file():
                known_as = CHECKPOINT if name == PREVIOUS else name
                manifest = with_version(manifest, known_as, (self.path / name).read_bytes())
        write_manifest(self.path, manifest)

    def write_ending(self, calibration: Calibration, result: dict[str, Any]) -> None:
        """Write calibration.json and result.json, and drop checksums of earlier best weights."""
        write_announced(self.path / CALIBRATION, _json(calibration.as_dict()))
        if manifest := read_manifest(self.path):
            last = {k: v[:1] for k, v in manifest.items() if k in (BEST, CALIBRATION)}
            write_manifest(self.path, {**manifest, **last})
        write_whole(self.path / "result.json", _json(result))

    def describe(self, config: RunConfig, parts: Parts, start: nn.Module | None = None) -> None:
        """Write the files of `DESCRIPTION`, and the network a run starts from."""
        from ..nn.files import to_bytes
        from ..nn.model import GrammarGNN

        trained_on, graphs = TrainedOn.of(config, parts), parts.graphs
        if not trained_on.positions and graphs.positions is not None:
            graphs = replace(graphs, positions=None)  # new graphs are read without them
        contents: dict[str, Any] = {
            KEYS: asdict(GraphKeys.of(graphs)),
            "split.json": {k: v.tolist() for k, v in parts.splits.items()},
            "data.json": asdict(trained_on),
        }
        if not config.baseline:
            grammar = run_grammar(config)
            terms = [*(rule.body for rule in grammar.all_rules), *dict(grammar.supports).values()]
            if operations := described(terms, aliases=True):
                contents[OPERATIONS] = operations
        contents["config.json"] = config.as_dict()  # the last: from here on there is a run
        files = {name: _json(content) for name, content in contents.items()}
        if isinstance(start, GrammarGNN):
            files = {START: to_bytes(start), **files}
        write_manifest(self.path, {name: [sha256(content)] for name, content in files.items()})
        for name, content in files.items():
            write_whole(self.path / name, content)

    def refuse_wrong_use(self, *, resume: bool) -> None:
        """Raise a DataError without a run to resume, or if a new one cannot be started here."""
        if resume and not self.started:
            raise DataError(f"nothing to resume in {self.path}: it holds no run; start one there")
        if resume:
            return
        if self.started:
            raise DataError(
                f"{self.path} holds a run already; go on with --resume {self.path}, "
                "or name another --out"
            )
        ours = {
            *DESCRIPTION,
            START,
            KEYS,
            MANIFEST,
            LOCK,
            HOLDER,
        }  # a run killed at its start left them
        paths = self.path.iterdir() if os.path.isdir(self.path) else ()
        others = [p.name for p in paths if p.name not in ours and not p.name.endswith(".part")]
        if others:
            raise DataError(
                f"{self.path} holds other files ({', '.join(sorted(others)[:3])}); "
                "name a new folder with --out"
            )

    def forget(self) -> None:
        """Undo `describe`, for a run that never began; an empty folder is removed."""
        with suppress(OSError):  # a path that is no folder: the run's failure names it
            for name in (*DESCRIPTION, START, KEYS, MANIFEST, HOLDER):
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
        """The settings; a fragment in a folder without recorded rules was exhaustive."""
        settings, path = self.read_json("config.json"), self.path / "config.json"
        check(settings, {}, "config", path)
        config = RunConfig.from_dict(upgraded(settings), str(path))
        if config.baseline or config.rules:
            return config
        return replace(config, rules=rules_of(find_grammar(config.grammar)))

    def splits(self) -> dict[str, Ints]:
        splits = self.read_json("split.json")
        members = [Int(0, self.trained_on.graphs - 1)]
        check(splits, dict.fromkeys(PARTS, members), "split", self.path / "split.json")
        return {part: np.asarray(splits[part], dtype=np.int64) for part in PARTS}

    def graph_keys(self) -> GraphKeys | None:
        """Keys of all graphs; None in folders of earlier versions."""
        if not (self.path / KEYS).is_file():
            return None
        path = self.path / KEYS
        read: GraphKeys = read_as(GraphKeys, self.read_json(KEYS), "graph_keys", path)
        if len(read.keys) != self.trained_on.graphs:
            raise DataError(f"{path} is damaged: expected {self.trained_on.graphs:,} keys")
        return read

    @cached_property
    def trained_on(self) -> TrainedOn:
        """What data.json says; a DataError if it is damaged."""
        return TrainedOn.from_dict(self.read_json("data.json"), self.path / "data.json")

    def calibration(self, task: Task) -> Calibration | None:
        """None before the run has ended; a DataError if damaged, altered or of another run."""
        if self.calibration_note:
            return None
        return Calibration.from_dict(self.read_json(CALIBRATION), task, self.path / CALIBRATION)

    @property
    def calibration_note(self) -> str:
        """A sentence if the folder has no calibration; else empty."""
        if (self.path / CALIBRATION).exists():
            return ""
        lack = f"has no {CALIBRATION}, as it has not come to its end or is of an earlier version"
        if CALIBRATION in (read_manifest(self.path) or ()):
            lack = f"has lost {CALIBRATION}"
        return (
            f"{self.path} {lack}: predictions have no interval, probabilities are not calibrated, "
            "and there is no note where a graph is unlike the training graphs; make it: "
            f"g2n2 train --resume {self.path}"
        )

    def write_metrics(self, history: list[dict[str, float]]) -> None:
        """Write the whole table again, so that a resumed run has no row twice."""
        text = io.StringIO()
        names = [name for name in history[0] if name != "seconds"] if history else ["epoch"]
        rows = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        rows.writerows({k: f"{v:.10g}" for k, v in row.items()} for row in history)
        write_whole(self.path / "metrics.csv", text.getvalue().encode())

    def save_best(self, model: nn.Module) -> None:
        """Write the best weights: of a grammar with its plan, of a baseline alone."""
        from safetensors.torch import save

        from ..nn.files import to_bytes
        from ..nn.model import GrammarGNN

        if isinstance(model, GrammarGNN):
            content = to_bytes(model)
        else:
            content = save({k: v.contiguous().cpu() for k, v in model.state_dict().items()})
        write_announced(self.path / BEST, content)

    def load_start(self) -> GrammarGNN:
        """The network a run started from; a DataError if its file is lost or was altered."""
        from ..nn.files import load

        path = self.path / START
        if not path.is_file():
            raise DataError(f"{self.path} has lost {START}, the network it started from")
        refuse_altered(self.path, START, path.read_bytes())
        return load(path)

    def refuse_lost_best(self) -> None:
        """Raise a DataError if there are no best weights, saying whether there ever were."""
        if (self.path / BEST).is_file():
            return
        manifest, epochs = read_manifest(self.path), 0
        with suppress(OSError):
            epochs = len((self.path / "metrics.csv").read_bytes().splitlines()) - 1
        if epochs > 0 if manifest is None else BEST in manifest:
            raise DataError(
                f"{self.path} has lost {BEST}, its best weights: restore it from a copy, or train "
                f"again: g2n2 train --config {self.path / 'config.json'}"
            )
        raise DataError(
            f"{self.path} has no {BEST}: no epoch was finished; go on: g2n2 train --resume "
            f"{self.path}"
        )

    def load_best(self, config: RunConfig, parts: Parts) -> nn.Module:
        """The network with the best weights; a baseline is rebuilt for graphs like these."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from ..nn.files import load, refuse_endless
        from ..nn.model import GrammarGNN

        path = self.path / BEST
        self.refuse_lost_best()
        refuse_altered(self.path, BEST, path.read_bytes())
        model = make_model(config, parts) if config.baseline else None
        if model is None or isinstance(model, GrammarGNN):
            return load(path)
        try:
            tensors = load_file(path)
            refuse_endless(
                path, {k: v for k, v in tensors.items() if not k.endswith("num_batches_tracked")}
            )
            model.load_state_dict(tensors, assign=True)
        except (SafetensorError, RuntimeError) as error:
            raise DataError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
        return model


def new_run_folder(config: RunConfig, root: str | Path = "runs") -> Path:
    """Make the next free run folder; only the first process of a run makes it."""
    while True:
        folder = next_run_folder(config, root)
        if not first_process():
            return folder
        check_folder(Path(root))
        with disk_errors(f"make the run folder {folder}"):
            make_folder(Path(root))
            with suppress(FileExistsError):  # another process was faster
                folder.mkdir()
                return folder


def next_run_folder(config: RunConfig, root: str | Path = "runs") -> Path:
    """`runs/<dataset>-<target>-NNN` with the next free number."""
    name = Path(config.dataset).name.partition(".")[0].lower() or "run"
    targets = "-".join(config.target[:3]).lower()
    stem = "-".join(filter(None, (name, targets)))
    stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in stem)
    taken = [path.name.rpartition("-")[2] for path in Path(root).glob(f"{stem}-[0-9]*")]
    numbers = [int(text) for text in taken if text.isdecimal()]
    return Path(root) / f"{stem}-{max(numbers, default=0) + 1:03d}"


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=2).encode()


def provenance(device: torch.device) -> dict[str, Any]:
    """Hardware and software of this process."""
    return {
        "g2n2": __version__,
        "commit": commit(),
        "source": source_digest(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
    }


def commit() -> str | None:
    """The commit of the g2n2 source, marked if files differ from it; None outside git."""
    git = ["git", "-C", str(Path(__file__).resolve().parents[1])]

    def answer(*words: str) -> str:
        done = subprocess.run([*git, *words], capture_output=True, text=True, timeout=5, check=True)
        return done.stdout.strip()

    try:
        answer("ls-files", "--error-unmatch", "__init__.py")
        changed = answer("status", "--porcelain", "--untracked-files=no", ".")
        return answer("rev-parse", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def source_digest(package: Path | None = None) -> str:
    """sha256 over the source files of a package: of g2n2 if none is named."""
    package = package or Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
