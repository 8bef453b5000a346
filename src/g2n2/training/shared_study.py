"""Trials of a sweep in a database, shared by several processes or machines.

Optuna's heartbeat says which running trials are alive; one whose heartbeat stops is queued again.
Optuna does not decide who may start the next trial, and with SQLite two processes can take the same
one, so one process at a time decides: behind a lock file beside an SQLite file, behind a locked row
in any other database.
"""

from __future__ import annotations

import os
import random
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..atomic_files import without_passwords
from ..errors import DataError, G2N2Error

HEARTBEAT = 15
"""Seconds between two heartbeats of a running trial."""
MISSED = 4
"""Heartbeats missed by a trial that is taken over."""
PATIENCE = 60
"""Seconds to wait for another process that writes, and of silence in a transaction."""
OPENINGS = 5
"""Several processes that make the same tables at once get in each other's way."""


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
            with self._file_lock(), self._experiments():
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
        with self._experiments():
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
    def _experiments(self) -> Iterator[None]:
        """Use what Optuna calls experimental, without its warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            yield

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
