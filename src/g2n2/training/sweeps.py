"""Sweeps over hyper-parameters and grammars with Optuna, kept in a file and resumable.

A TOML file holds the settings all trials share, and a table of those that vary:

    dataset = "molecules.csv"
    target = ["logp"]
    epochs = 20

    [sweep]
    width = [32, 64]                             # one of these
    rate = { low = 1e-4, high = 1e-2, log = true }  # a number between, in logarithmic steps
    layers = { low = 2, high = 4 }               # whole numbers, as both ends are
    grammar = ["r-G_L1", "r-G_L3"]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import DataError, G2N2Error
from .config import RunConfig
from .settings import read_settings, rooted

Note = Callable[[str], None]

PATIENCE = 3
"""Failures in a row that end a sweep: the settings themselves are wrong then."""


@dataclass(frozen=True)
class Sweep:
    """What is varied, and around what.

    Attributes:
        name: Of the study in the storage file.
        shared: Settings of every trial.
        varied: Setting to its list of values, or to `low`, `high` and `log`.
    """

    name: str
    shared: Mapping[str, Any]
    varied: Mapping[str, Any]

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """A sweep from a TOML file.

        Raises:
            DataError: It has no table [sweep], or one that cannot be used.
        """
        shared = read_settings(path)
        varied = shared.pop("sweep", None)
        if not isinstance(varied, dict) or not varied:
            raise DataError(f"{path} has no table [sweep] that says what to vary")
        known = {field.name for field in fields(RunConfig)}
        for name, space in varied.items():
            if name not in known:
                raise DataError(f"[sweep] of {path} varies {name!r}, which is no setting")
            if name in shared:
                raise DataError(f"{name} is both a setting of {path} and varied in [sweep]")
            _check_space(name, space, path)
        together = {**shared, **varied}
        baseline = together.get("baseline")
        if "grammar" in together and all(baseline if isinstance(baseline, list) else [baseline]):
            raise DataError(
                f"every trial of {path} has a baseline in place of its grammar: leave out one of "
                'them, or vary baseline = ["", …], where "" is for the grammar'
            )
        sweep = cls(Path(path).stem, shared, varied)
        sweep.config({name: _first(space) for name, space in varied.items()})
        return sweep

    def config(self, chosen: Mapping[str, Any]) -> RunConfig:
        """The config of a trial."""
        return rooted(RunConfig.from_dict({**self.shared, **chosen}, "the sweep"))

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Values for every varied setting, by Optuna."""
        return {name: _suggest(trial, name, space) for name, space in self.varied.items()}

    def combinations(self) -> list[dict[str, Any]]:
        """Every choice of values, as Optuna names them; empty where numbers vary in a range."""
        if any(isinstance(space, dict) for space in self.varied.values()):
            return []
        choices = [[_label(value) for value in space] for space in self.varied.values()]
        return [dict(zip(self.varied, chosen, strict=True)) for chosen in product(*choices)]


@dataclass(frozen=True)
class Finished:
    """A sweep's outcome.

    Attributes:
        headers: Of the table.
        rows: One for each finished trial, the best first.
        best: The run folder of the best trial.
    """

    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    best: Path


def run_sweep(
    sweep: Sweep, trials: int, storage: str | Path, out: str | Path, note: Note
) -> Finished:
    """Run a sweep until the storage file holds that many finished trials.

    Where lists alone vary and all combinations fit, each is tried once. A trial cut off by a
    crash goes on from its checkpoint the next time. Trials are judged by validation graphs.

    Args:
        sweep: What to run.
        trials: How many in all, those of earlier calls counted.
        storage: SQLite file; made where it is not there.
        out: Folder of the trials' run folders.
        note: Told what happens.

    Raises:
        DataError: Optuna is not installed, or trials fail one after the other.
    """
    optuna, study = _open(sweep, storage)
    combinations = sweep.combinations()
    if combinations and len(combinations) <= trials:
        trials = len(combinations)
        for chosen in combinations:
            study.enqueue_trial(chosen, skip_if_exists=True)
    failed_in_a_row = 0
    while (done := len(_finished(optuna, study))) < trials:
        trial = study.ask()
        chosen = sweep.suggest(trial)
        note(f"trial {done + 1} of {trials}: {_listed(chosen)}")
        try:
            folder = trial_folder(out, chosen)
            value, measured = _train(sweep.config(chosen), folder)
        except G2N2Error as error:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            note(f"  failed: {error}")
            failed_in_a_row += 1
            if failed_in_a_row == PATIENCE:
                raise DataError(
                    f"{PATIENCE} trials failed one after the other; the last: {error}"
                ) from None
            continue
        failed_in_a_row = 0
        trial.set_user_attr("folder", str(folder))
        trial.set_user_attr("measured", measured)
        study.tell(trial, value)
        note(f"  {measured}, in {folder}")
    return _table(sweep, _finished(optuna, study))


def trial_folder(out: str | Path, chosen: Mapping[str, Any]) -> Path:
    """The same folder for the same values, so that a trial cut off finds its checkpoint."""
    digest = hashlib.sha256(json.dumps(dict(chosen), sort_keys=True).encode()).hexdigest()
    return Path(out) / f"trial-{digest[:8]}"


def _open(sweep: Sweep, storage: str | Path) -> tuple[Any, Any]:
    """Optuna and the study of a sweep, with trials a crash has left behind queued anew."""
    try:
        import optuna
    except ImportError:
        raise DataError('sweeps need Optuna: pip install "g2n2[sweep]"') from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = f"sqlite:///{Path(storage).resolve()}"
    try:
        study = optuna.create_study(study_name=sweep.name, storage=address, load_if_exists=True)
    except Exception as error:  # Optuna hands on what SQLAlchemy and SQLite raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{storage} cannot keep the trials of a sweep ({reason}): it should be a file in a "
            "folder that is there, new or written by g2n2 sweep; name another --storage"
        ) from None
    description = json.dumps({"shared": sweep.shared, "varied": sweep.varied}, sort_keys=True)
    if study.user_attrs.setdefault("sweep", description) != description:
        raise DataError(
            f"{storage} holds the trials of another sweep called {sweep.name}; "
            "name another --storage, or restore the file's settings"
        )
    study.set_user_attr("sweep", description)
    for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params)
    # Another seed each time: the same one would propose the first trials again.
    seed = int(sweep.shared.get("seed", 0)) + len(study.trials)
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    return optuna, study


def _train(config: RunConfig, folder: Path) -> tuple[float, str]:
    """The validation result of a trial, lower is better, and the same in words."""
    from .display import measured
    from .session import train_config

    started = (folder / "config.json").is_file()
    result = train_config(config, folder, resume=started)
    if not result.best_epoch:
        raise DataError("no epoch was finished in the time of the trial; give it more minutes")
    task = result.parts.task
    value = result.history[result.best_epoch - 1][f"validation {task.metric}"]
    return (-value if task.higher_is_better else value), f"validation {measured(task, value)}"


def _finished(optuna: Any, study: Any) -> list[Any]:
    found: list[Any] = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    return found


def _table(sweep: Sweep, trials: list[Any]) -> Finished:
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
    return Finished(headers, rows, Path(ordered[0].user_attrs["folder"]))


def _check_space(name: str, space: Any, path: str | Path) -> None:
    if isinstance(space, list) and space:
        return
    numbers = isinstance(space, dict) and {"low", "high"} <= space.keys() <= {"low", "high", "log"}
    if not numbers or not space["low"] < space["high"]:
        raise DataError(
            f"{name} in [sweep] of {path} should be a list of values, or "
            f"{{ low = 1, high = 9, log = true }}, got {space!r}"
        )


def _first(space: Any) -> Any:
    return space["low"] if isinstance(space, dict) else space[0]


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


def _listed(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in chosen.items())


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
