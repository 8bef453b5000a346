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

Optuna's heartbeat says which running trials are alive; one whose heartbeat stops is queued again.
Optuna does not decide who may start the next trial, and with SQLite two processes can take the same
one, so one process at a time decides: behind a lock file beside an SQLite file, behind a locked row
in any other database.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from ..atomic_files import InUseError, make_folder, without_passwords
from ..errors import DataError, G2N2Error
from .config import RunConfig, read_settings, rooted

Note = Callable[[str], None]

MOST_FAILURES = 3
"""In a row; then a sweep ends, as the settings themselves are wrong."""
HEARTBEAT = 15
"""Seconds between two heartbeats of a running trial."""
MISSED = 4
"""Heartbeats missed by a trial that is taken over."""
PATIENCE = 60
"""Seconds to wait for another process that writes, and of silence in a transaction."""
OPENINGS = 5
"""Several processes that make the same tables at once get in each other's way."""


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
                raise DataError(f"[sweep] of {path} varies {name!r}, which is no setting")
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
        for end in ("low", "high"):
            first = {k: v[end] if isinstance(v, dict) else v[0] for k, v in varied.items()}
            sweep.config(first)
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
    """A sweep's outcome.

    Attributes:
        headers: Of the table.
        rows: One for each finished trial, the best first.
        best: The run folder of the best trial.
        host: The machine with that folder, if it is not here; else empty.
    """

    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    best: Path
    host: str


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
    judged by validation graphs.

    Args:
        sweep: What to run.
        trials: How many in all.
        storage: SQLite file, created if missing, or the address of a database.
        out: Folder of the trials' run folders, on this machine.
        note: Called with sentences for the user.
        heartbeat: Seconds between two heartbeats of a trial, the same in all processes.

    Raises:
        DataError: The storage cannot be used, or trials fail one after the other.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the trial goes on in the next call.
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
        try:
            make_folder(Path(out))
        except OSError as error:
            raise DataError(
                f"cannot make {out} ({error.strerror or error}); name a folder with --out"
            ) from None
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
    if not result.best_epoch:
        raise DataError("no epoch was finished in the time of the trial; give it more minutes")
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


class SharedStudy:
    """A study, who may start a trial of it, and which trials were abandoned.

    Attributes:
        study: Optuna's.
        label: The storage in the user's words, without passwords.
    """

    def __init__(self, name: str, storage: str | Path, heartbeat: int = HEARTBEAT) -> None:
        """Open or create a study in an SQLite file or the database at an address."""
        try:
            import optuna
            import sqlalchemy
        except ImportError:
            raise DataError('sweeps need Optuna: pip install "g2n2[sweep]"') from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.label, self.heartbeat = without_passwords(str(storage)), heartbeat
        self._optuna, self._sqlalchemy = optuna, sqlalchemy
        self._address = self._parsed(str(storage))
        self._file = self._sqlite_file()
        try:
            with self._file_lock():
                self._storage = self._opened()
                self.study = optuna.create_study(
                    study_name=name, storage=self._storage, load_if_exists=True
                )
        except ImportError:
            raise self._no_driver() from None
        except DataError:
            raise
        except Exception as error:  # Optuna hands on what SQLAlchemy and the drivers raise
            raise self._refused(error) from None
        self._id = self._storage.get_study_id_from_name(name)

    def trials(self, *states: str) -> list[Any]:
        """Trials in one of these states (`complete`, `running`, `waiting`, `fail`), or all."""
        states_of_optuna = self._optuna.trial.TrialState
        wanted = tuple(states_of_optuna[state.upper()] for state in states) or None
        trials: list[Any] = self.study.get_trials(deepcopy=False, states=wanted)
        return trials

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that decides what is started next."""
        if self._file:
            with self._file_lock():
                yield
            return
        # A row that Optuna reads and never writes.
        row = "SELECT study_id FROM study_directions WHERE study_id = :study FOR UPDATE"
        with self._storage.engine.connect() as connection:
            connection.execute(self._sqlalchemy.text(row), {"study": self._id}).all()
            yield

    def take_over(self) -> None:
        """Queue the trials of dead processes again; only while `alone`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            self._optuna.storages.fail_stale_trials(self.study)
        for trial in self.trials("running"):
            if trial.user_attrs.get("claimed") != trial.number:  # started by a process that died
                self.retry(trial.number)
                self.study.tell(trial.number, state=self._optuna.trial.TrialState.FAIL)

    def claim(self, trial: Any, **facts: str) -> None:
        """Record that this process runs a trial just started; while `alone`."""
        of_trial = self._storage.get_trial_id_from_study_id_trial_number(self._id, trial.number)
        self._storage.record_heartbeat(of_trial)
        for name, value in {**facts, "host": socket.gethostname()}.items():
            trial.set_user_attr(name, value)
        trial.set_user_attr("claimed", trial.number)

    def retry(self, number: int) -> None:
        """Queue a trial again, with its values."""
        self._storage.get_heartbeat_stale_trial_callback()(self.study, self.trials()[number])

    def propose(self, seed: int) -> None:
        """Set the sampler of the next trial; running trials are avoided."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            self.study.sampler = self._optuna.samplers.TPESampler(seed=seed, constant_liar=True)

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn the loss of the storage into a DataError."""
        kinds = self._optuna.exceptions.StorageInternalError, self._sqlalchemy.exc.SQLAlchemyError
        try:
            yield
        except G2N2Error:
            raise
        except Exception as error:  # what Optuna raises while it handles a fault or Ctrl-C
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, (*kinds, KeyboardInterrupt)):
                cause = cause.__context__
            if cause is None:
                raise
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise DataError(
                f"{self.label} keeps the trials no longer ({self._reason(cause)}); run folders "
                "are whole: once it is there again, the same command goes on"
            ) from None

    def _parsed(self, storage: str) -> Any:
        if "://" not in storage:
            return self._sqlalchemy.URL.create("sqlite", database=str(Path(storage).resolve()))
        if storage.partition("://")[2].partition("?")[0].count("@") > 1:
            raise DataError(f"--storage {self.label}: an @ in a password is written %40")
        try:
            address = self._sqlalchemy.make_url(storage)
            if address.drivername in ("postgresql", "postgres"):  # SQLAlchemy means psycopg2 there
                address = address.set(drivername="postgresql+psycopg")
            address.get_dialect()
        except ImportError:
            raise self._no_driver() from None
        except (self._sqlalchemy.exc.ArgumentError, ValueError):
            raise DataError(
                f"--storage {self.label} is no database that is known: name a file, "
                "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
            ) from None
        return address

    def _sqlite_file(self) -> Path | None:
        if self._address.get_backend_name() != "sqlite":
            return None
        if self._address.database in (None, "", ":memory:"):
            raise DataError(f"--storage {self.label} is lost with the process; name a file")
        return Path(self._address.database)

    def _opened(self) -> Any:
        """Optuna's storage; several processes may create its tables at once."""
        storages, plain = self._optuna.storages, self._optuna.storages.RDBStorage
        failed, sql = self._optuna.exceptions.StorageInternalError, self._sqlalchemy.exc
        lost = (failed, sql.SQLAlchemyError)

        class Storage(plain):  # type: ignore[misc, valid-type]
            """A heartbeat that cannot be recorded is one missed, not the end of heartbeats."""

            def record_heartbeat(self, trial_id: int) -> None:
                with suppress(*lost):
                    super().record_heartbeat(trial_id)

        text = self._address.render_as_string(hide_password=False)
        for remaining in reversed(range(OPENINGS)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
                    return Storage(
                        text.replace("{", "{{").replace("}", "}}"),  # Optuna fills in a template
                        engine_kwargs={"pool_pre_ping": True, "connect_args": self._connection()},
                        heartbeat_interval=self.heartbeat,
                        grace_period=MISSED * self.heartbeat,
                        heartbeat_stale_trial_callback=storages.RetryHeartbeatStaleTrialCallback(),
                    )
            except (sql.ProgrammingError, sql.IntegrityError, failed):
                if not remaining:
                    raise
                time.sleep(random.random())

    def _connection(self) -> dict[str, Any]:
        """Connection options the address does not set: UTC, and no row locked by a dead process."""
        if self._file:
            return {"timeout": PATIENCE}
        if self._address.get_driver_name() not in ("psycopg", "psycopg2"):
            return {}
        silence = f"-c timezone=utc -c idle_in_transaction_session_timeout={PATIENCE}s"
        ours = {"options": silence, "connect_timeout": PATIENCE // 4}
        return {name: value for name, value in ours.items() if name not in self._address.query}

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        from filelock import FileLock

        lock = FileLock(self._file.with_name(f".{self._file.name}.lock"), thread_local=False)
        try:
            if self._file.exists() and not self._file.is_file():
                raise OSError("it is no file")
            if not self._file.parent.is_dir():
                raise OSError(f"there is no folder {self._file.parent}")
            os.close(os.open(lock.lock_file, os.O_RDWR | os.O_CREAT))  # filelock would wait for it
            lock.acquire()
        except OSError as error:
            raise self._refused(error) from None
        try:
            yield
        finally:
            lock.release()

    def _reason(self, error: BaseException) -> str:
        """The last cause in one line, without the password."""
        while isinstance(error.__cause__, Exception):
            error = error.__cause__
        message = str(getattr(error, "orig", None) or error) or type(error).__name__
        reason = " ".join(message.split())[:300]
        secret = self._address.password
        return without_passwords(reason.replace(secret, "***") if secret else reason)

    def _refused(self, error: Exception) -> DataError:
        expected = "check that the server runs, and the host, port, user, password and database"
        if self._file:
            expected = "it should be a file in a folder that is there, new or written by g2n2 sweep"
        return DataError(
            f"{self.label} cannot keep the trials of a sweep ({self._reason(error)}): "
            f"{expected}; else name another --storage"
        )

    def _no_driver(self) -> DataError:
        if self.label.startswith("postgres"):
            return DataError('PostgreSQL needs psycopg: pip install "g2n2[postgres]"')
        return DataError(f"--storage {self.label} needs a driver for Python that is not installed")
