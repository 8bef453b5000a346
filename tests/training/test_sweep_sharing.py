"""Sweeps that share a storage: an SQLite file, or a PostgreSQL server started here."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from g2n2.errors import DataError
from g2n2.training.shared_study import SharedStudy
from sweep_processes import HEARTBEAT

optuna = pytest.importorskip("optuna", reason="sweeps need Optuna")

TESTS = Path(__file__).parents[1]
SHARED = """
dataset = "regular"
target = ["triangle"]
layers = 1
batch = 8
threads = 1
device = "cpu"
checkpoint_seconds = 0.0
options = { count = 50, nodes = 8 }
"""
SECRET = "p@ss{w}ord"


def server_programs() -> Path | None:
    """The folder with `initdb` and `pg_ctl`."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists()), None)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server that wants a password."""
    pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")
    programs = server_programs()
    if programs is None:
        pytest.skip("initdb and pg_ctl are not here")
    home = Path(tempfile.mkdtemp(prefix="g2n2-"))  # not in tmp_path, which is root's alone
    (home / "password").write_text(SECRET)
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:  # servers refuse to run as root
        names = [entry.pw_name for entry in pwd.getpwall()]
        user = "postgres" if "postgres" in names else "nobody"
        as_user = {"user": user, "extra_groups": []}
        for path in (home, home / "password"):
            shutil.chown(path, user)

    def run(*words: str) -> None:
        subprocess.run(
            [programs / words[0], *words[1:]],
            check=True,
            cwd=home,
            stdout=subprocess.DEVNULL,
            **as_user,
        )

    data = str(home / "data")
    try:
        run("initdb", "-D", data, "-U", "sweeper", "--auth=scram-sha-256",
            f"--pwfile={home / 'password'}", "--no-sync")  # fmt: skip
        options = f"-k {home} -c listen_addresses='' -c fsync=off"
        run("pg_ctl", "-D", data, "-o", options, "-l", str(home / "log"), "-w", "start")
        try:
            yield f"postgresql://sweeper:p%40ss{{w}}ord@/postgres?host={home}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


@pytest.fixture
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "sweep.db")
    address: str = request.getfixturevalue("server")
    return address


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts sweeps in `tmp_path`; what is left of them at the end is killed."""
    started = []

    def sweep(settings: Path, trials: int, storage: str) -> subprocess.Popen[str]:
        words = [sys.executable, TESTS / "sweep_processes.py", settings, str(trials), storage]
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        started.append(
            subprocess.Popen(
                [*words, tmp_path],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[-1]

    yield sweep
    for process in started:
        process.kill()
        process.wait()


def settings(tmp_path: Path, varied: str, name: str) -> Path:
    path = tmp_path / f"{name}.toml"  # the name of the study: each test on the server has its own
    path.write_text(f"{SHARED}[sweep]\n{varied}")
    return path


def states(storage: str, name: str) -> Counter[str]:
    return Counter(trial.state.name for trial in SharedStudy(name, storage, HEARTBEAT).trials())


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "p%40ss" not in said
    assert SECRET not in said
    return said


@pytest.mark.parametrize(
    ("storage", "varied", "trials"),
    [
        ("sqlite", "width = [2, 3]\nseed = [0, 1]", 9),
        pytest.param("postgres", "width = { low = 2, high = 400 }", 4, marks=pytest.mark.slow),
    ],
    indirect=["storage"],
)
def test_sweeps_at_once_share_the_trials(
    tmp_path: Path, storage: str, start: Any, varied: str, trials: int
) -> None:
    (tmp_path / "made-up").touch()
    file = settings(tmp_path, varied, f"at-once-{trials}")
    sweeps = [start(file, trials, storage) for _ in range(2)]
    for process in sweeps:
        assert ended(process).endswith("4 rows\n")
    assert states(storage, file.stem) == {"COMPLETE": 4}
    started = [line.split() for line in lines(tmp_path / "started")]
    assert len(started) == len({folder for _, folder in started}) == 4, "each is tried once"


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_running_trial_is_waited_for_and_taken_over_when_its_process_is_killed(
    tmp_path: Path, storage: str, start: Any
) -> None:
    (tmp_path / "made-up").touch()
    (tmp_path / "stay").touch()
    file = settings(tmp_path, "width = [2, 3, 4]", "taken-over")
    first = start(file, 3, storage)
    until(lambda: bool(lines(tmp_path / "started")), first)
    (tmp_path / f"stay-{first.pid}").touch()
    (tmp_path / "stay").unlink()
    second = start(file, 3, storage)
    said = ""
    while "waiting for another sweep (trial 0 on " not in said:
        assert second.poll() is None
        said += second.stdout.readline()
    assert states(storage, file.stem) == {"RUNNING": 1, "COMPLETE": 2}
    first.send_signal(signal.SIGKILL)
    said += ended(second)
    assert said.endswith("3 rows\n")
    assert states(storage, file.stem) == {"FAIL": 1, "COMPLETE": 3}
    started = [line.split()[1] for line in lines(tmp_path / "started")]
    assert started[-1] == started[0], "in the same folder"
    assert len(set(started)) == 3


@pytest.mark.slow
def test_a_killed_trial_goes_on_from_its_checkpoint(
    tmp_path: Path, server: str, start: Any
) -> None:
    file = settings(tmp_path, "epochs = [12]\nseed = [0, 1]", "real")
    first, second = (start(file, 2, server) for _ in range(2))

    def far() -> list[Path]:
        """Trials the first process is in the middle of."""
        found = []
        for holder in (tmp_path / "runs").glob("*/.lock.holder"):
            rows = lines(holder.with_name("metrics.csv"))
            if len(rows) > 3 and json.loads(holder.read_text())["process"] == first.pid:
                found.append(holder.parent)
        return found

    while not (cut := far()):
        assert first.poll() is None, first.communicate()
        time.sleep(0.001)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (cut[0] / "result.json").exists()
    begun = (cut[0] / "config.json").stat().st_mtime_ns
    assert ended(second).endswith("2 rows\n")
    counts = states(server, "real")
    assert counts == {"FAIL": counts["FAIL"], "COMPLETE": 2}
    assert counts["FAIL"] >= 1
    assert (cut[0] / "config.json").stat().st_mtime_ns == begun, "no new run was begun there"
    assert len(lines(cut[0] / "metrics.csv")) == 13
    assert len(list((tmp_path / "runs").glob("*/result.json"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":p%40ss", ":wrong", "password authentication failed"),
        ("/postgres?", "/nowhere?", 'database "nowhere" does not exist'),
        ("?host=/", "?host=/nowhere/", "check that the server runs"),
        ("postgresql:", "postgresql+nope:", "is no database that is known: name a file"),
        ("p%40ss", "p@ss", "an @ in a password is written %40"),
    ],
)
def test_a_server_that_cannot_be_used_is_said(
    server: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(DataError) as refusal:
        SharedStudy("s", server.replace(old, new))
    assert message in str(refusal.value)
    assert "ss{w}ord" not in str(refusal.value)
    assert "wrong" not in str(refusal.value)
