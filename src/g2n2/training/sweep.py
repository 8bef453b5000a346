"""Sweeps over settings and grammars with Optuna, shared by several processes or machines.

A TOML file holds the settings all trials share, and a table of those that vary:

    dataset = "molecules.csv"
    target = ["logp"]
    epochs = 20

    [sweep]
    width = [32, 64]                             # one of these
    rate = { low = 1e-4, high = 1e-2, log = true }  # a number between, in logarithmic steps
    layers = { low = 2, high = 4 }               # whole numbers, as both ends are
    grammar = ["r-G_L1", "r-G_L3"]

The trials are those of a `SharedStudy`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from ..atomic_files import InUseError, disk_errors, make_folder
from ..errors import DataError, G2N2Error, guess
from .config import RunConfig, read_settings, rooted, with_rules
from .shared_study import HEARTBEAT, SharedStudy

Note = Callable[[str], None]

MOST_FAILURES = 3
"""In a row; then a sweep ends, as the settings themselves are wrong."""


@dataclass(frozen=True)
class Sweep:
    """What is varied: `varied` maps a setting to its values, or to `low`, `high` and `log`."""

    name: str
    shared: Mapping[str, Any]
    varied: Mapping[str, Any]

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """A sweep from a TOML file; a DataError if its table [sweep] is missing or unusable."""
        shared = read_settings(path)
        varied = shared.pop("sweep", None)
        if not isinstance(varied, dict) or not varied:
            raise DataError(f"{path} has no table [sweep] that says what to vary")
        settings = {field.name for field in fields(RunConfig)}
        for name, space in varied.items():
            if name not in settings:
                raise DataError(
                    f"[sweep] of {path} varies {name!r}, which is no setting{guess(name, settings)}"
                )
            if name in shared:
                raise DataError(f"{name} is both a setting of {path} and varied in [sweep]")
            in_range = isinstance(space, dict) and _is_range(**space)
            if not in_range and not (isinstance(space, list) and space):
                raise DataError(
                    f"{name} in [sweep] of {path} should be a list of values, or numbers in "
                    "ascending order such as { low = 1, high = 9, log = true }, above 0 for log, "
                    f"got {space!r}"
                )
        together = {**shared, **varied}
        baseline = together.get("baseline")
        if "grammar" in together and all(baseline if isinstance(baseline, list) else [baseline]):
            raise DataError(
                f"every trial of {path} has a baseline in place of its grammar: leave out one of "
                'them, or vary baseline = ["", …], where "" is for the grammar'
            )
        sweep = cls(Path(path).stem, shared, varied)
        first = {k: v["low"] if isinstance(v, dict) else v[0] for k, v in varied.items()}
        for name, space in varied.items():  # one that no trial can have is told before the first
            for value in (space["low"], space["high"]) if isinstance(space, dict) else space:
                config = sweep.config({**first, name: value})
                if name == "grammar":
                    with_rules(config)
        return sweep

    def config(self, values: Mapping[str, Any]) -> RunConfig:
        return rooted(RunConfig.from_dict({**self.shared, **values}, "the sweep"))

    def combinations(self) -> list[dict[str, Any]]:
        """Every choice of values, as Optuna names them; empty if a number varies in a range."""
        if any(isinstance(space, dict) for space in self.varied.values()):
            return []
        choices = [dict.fromkeys(map(_label, space)) for space in self.varied.values()]
        return [dict(zip(self.varied, chosen, strict=True)) for chosen in product(*choices)]


@dataclass(frozen=True)
class SweepResult:
    headers: tuple[str, ...]  # of the table
    rows: list[tuple[str, ...]]  # one for each finished trial, the best first
    best: Path  # the run folder of the best trial
    host: str  # the machine with that folder, if it is not here; else empty


def run_sweep(
    sweep: Sweep,
    trials: int,
    storage: str | Path,
    out: str | Path,
    note: Note,
    heartbeat: int = HEARTBEAT,
) -> SweepResult:
    """Run a sweep until the storage holds that many finished trials, those of others included.

    Several processes, on machines that reach the storage, may share the trials. If only lists vary
    and all combinations fit, each is tried once. A trial that was cut off goes on from its
    checkpoint, in the next call or in another process once its heartbeat has stopped. Trials are
    judged by validation graphs. After Ctrl-C or SIGTERM the trial goes on in the next call.

    Args:
        sweep: What to run.
        trials: How many in all.
        storage: SQLite file, created if missing, or the address of a database.
        out: Folder of the trials' run folders, on this machine.
        note: Called with sentences for the user.
        heartbeat: Seconds between two heartbeats of a trial, the same in all processes.
    """
    devices = sweep.varied.get("devices", sweep.shared.get("devices", 1))
    if devices not in (1, [1]) or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise DataError(
            "a trial of a sweep is one process: leave out devices and torchrun, and start one "
            "g2n2 sweep for each GPU with the same --storage (CUDA_VISIBLE_DEVICES=1 g2n2 sweep …)"
        )
    shared = SharedStudy(sweep.name, storage, heartbeat)
    with shared.faults():
        with shared.alone():
            settings = json.dumps({"shared": sweep.shared, "varied": sweep.varied}, sort_keys=True)
            if shared.study.user_attrs.get("sweep", settings) != settings:
                raise DataError(
                    f"{shared.label} holds the trials of another sweep called {sweep.name}; "
                    "name another --storage, rename the file of the sweep, or restore its settings"
                )
            shared.study.set_user_attr("sweep", settings)
            every, first = sweep.combinations(), len(shared.trials())
            fit = 0 < len(every) <= trials
            goal = _Goal(len(every), every, first) if fit else _Goal(trials, [], first)
        with disk_errors(f"make the folder {out}"):
            make_folder(Path(out))
        failed_in_a_row = 0
        waiting: str | None = None
        while True:
            with ExitStack() as alone:
                alone.enter_context(shared.alone())
                shared.take_over()
                if not goal.missing(shared.trials(), running=False):
                    return _table(sweep, shared.trials("complete"))
                if missing := goal.missing(shared.trials(), running=True):
                    chosen, number = missing[0], goal.trials - len(missing) + 1
                    if chosen and not shared.trials("waiting"):
                        shared.study.enqueue_trial(chosen)
                    attempt = _Trial(
                        sweep, shared, Path(out), note, f"{number} of {goal.trials}", alone
                    )
                    attempt.run()
            if not missing:
                hosts = [
                    f"trial {trial.number} on {trial.user_attrs.get('host', 'another machine')}"
                    for trial in shared.trials("running")
                ]
                if (running := ", ".join(hosts)) != waiting:
                    note(f"waiting for another sweep ({running})")
                waiting = running
                time.sleep(heartbeat / 5)
                continue
            failed_in_a_row = failed_in_a_row + 1 if attempt.error else 0
            if failed_in_a_row == MOST_FAILURES:
                raise DataError(
                    f"{MOST_FAILURES} trials failed one after the other; the last: {attempt.error}"
                )


@dataclass(frozen=True)
class _Goal:
    """How many trials there should be in all, and if all combinations fit, their values.

    A combination that failed in this call, whose first trial is number `first`, is not tried again;
    one that failed in an earlier call is.
    """

    trials: int
    combinations: list[dict[str, Any]]
    first: int

    def ended(self, trial: Any) -> bool:
        gave_up = trial.state.name == "FAIL" and "error" in trial.user_attrs
        return trial.state.name == "COMPLETE" or (
            bool(self.combinations) and gave_up and trial.number >= self.first
        )

    def missing(self, trials: list[Any], *, running: bool) -> list[dict[str, Any]]:
        """Values of the trials that have not ended, nor run if so asked; empty: Optuna chooses."""
        taken = [t for t in trials if self.ended(t) or (running and t.state.name == "RUNNING")]
        if not self.combinations:
            return [{}] * (self.trials - len(taken))
        queued = [{**t.system_attrs.get("fixed_params", {}), **t.params} for t in taken]
        return [values for values in self.combinations if values not in queued]


@dataclass
class _Trial:
    """One trial, from the choice of its values to its result."""

    sweep: Sweep
    shared: SharedStudy
    out: Path
    note: Note
    position: str
    alone: ExitStack
    error: G2N2Error | None = None
    _message: str = ""
    _number: int = 0

    def run(self) -> None:
        """Run a trial inside `optimize`, the only place that sends heartbeats."""
        study = self.shared.study
        self.shared.propose(int(self.sweep.shared.get("seed", 0)) + len(self.shared.trials()))
        try:
            study.optimize(self._objective, n_trials=1, catch=(G2N2Error,))
        except (AssertionError, RuntimeError, ValueError):  # Optuna's, of a trial failed by others
            if not self._message or self.shared.trials()[self._number].state.name == "RUNNING":
                raise
            self._message = "another sweep took over the trial: its heartbeat failed"
            self.error = None
        self.note(f"  {self._message}")

    def _objective(self, trial: Any) -> float:
        self._number = trial.number
        chosen = {name: _suggest(trial, name, space) for name, space in self.sweep.varied.items()}
        folder = trial_folder(self.out, chosen)
        self.shared.claim(trial, folder=str(folder))
        self.alone.close()
        values = ", ".join(f"{name} {_shown(value)}" for name, value in chosen.items())
        self.note(f"trial {self.position}: {values}")
        try:
            value, measured = self._train(self.sweep.config(chosen), folder)
            if math.isnan(value):
                raise DataError(f"{measured}, by which it cannot be compared")
        except KeyboardInterrupt:
            self.shared.retry(trial.number)
            raise
        except G2N2Error as error:
            self.error, self._message = error, f"failed: {error}"
            trial.set_user_attr("error", str(error))
            raise
        self._message = f"{measured}, in {folder}"
        trial.set_user_attr("measured", measured)
        return value

    def _train(self, config: RunConfig, folder: Path) -> tuple[float, str]:
        """Train, after any other process with the same values has ended."""
        waited = False
        while True:
            try:
                return train_trial(config, folder)
            except InUseError as error:
                if not waited:
                    self.note(f"  {error}; waiting for it")
                waited = True
                time.sleep(self.shared.heartbeat / 5)


def trial_folder(out: str | Path, chosen: Mapping[str, Any]) -> Path:
    """The same folder for the same values, so that a trial cut off finds its checkpoint."""
    digest = hashlib.sha256(json.dumps(dict(chosen), sort_keys=True).encode()).hexdigest()
    return Path(out) / f"trial-{digest[:8]}"


def train_trial(config: RunConfig, folder: Path) -> tuple[float, str]:
    """The validation result of a trial, lower is better, and the same in words."""
    from .display import measured
    from .session import train_config

    started = (folder / "config.json").is_file()
    result = train_config(config, folder, resume=started)
    task = result.parts.task
    value = result.history[result.best_epoch - 1][f"validation {task.metric}"]
    return (-value if task.higher_is_better else value), f"validation {measured(task, value)}"


def _table(sweep: Sweep, trials: list[Any]) -> SweepResult:
    if not trials:
        raise DataError("every trial failed; the reasons are above")
    ordered = sorted(trials, key=lambda trial: trial.value)
    rows = [
        (
            str(trial.number),
            *(_shown(trial.params[name]) for name in sweep.varied),
            trial.user_attrs["measured"],
            trial.user_attrs["folder"],
        )
        for trial in ordered
    ]
    headers = ("trial", *sweep.varied, "result", "folder")
    best = Path(ordered[0].user_attrs["folder"])
    here = (best / "config.json").is_file()
    host = "" if here else ordered[0].user_attrs.get("host", "another machine")
    return SweepResult(headers, rows, best, host)


def _is_range(low: Any = None, high: Any = None, log: Any = False, **unknown: Any) -> bool:
    ends = (low, high)
    if unknown or not isinstance(log, bool) or any(type(end) not in (int, float) for end in ends):
        return False
    return bool(-math.inf < low < high < math.inf and (low > 0 or not log))


def _suggest(trial: Any, name: str, space: Any) -> Any:
    if isinstance(space, list):
        values = {_label(value): value for value in space}
        return values[trial.suggest_categorical(name, list(values))]
    low, high, log = space["low"], space["high"], bool(space.get("log"))
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, low, high, log=log)


def _label(value: Any) -> Any:
    """A value as Optuna keeps it: lists as text."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
