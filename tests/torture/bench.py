"""Processes of the command line to experiment with, and the runs to compare them with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Any

from g2n2.training.checkpoint import CHECKPOINT, PREVIOUS
from g2n2.training.run_folder import BEST
from run_processes import in_folder
from small_runs import SMALL, learned_state, same_bytes

from .process import Blow, command
from .watch import PRELOADED

CPU_SECONDS = 60.0
"""CPU time after which a command on these small inputs hangs."""
WAITING_SECONDS = 300.0
"""Seconds after which one hangs that waits for something, on a machine with nothing else to do."""
SETTINGS = {**SMALL, "grammar": "GNNML1", "epochs": 2, "checkpoint_seconds": 0.0}
SWEEP = """dataset = "regular"
grammar = "GNNML1"
layers = 1
batch = 8
epochs = 1
threads = 1
device = "cpu"
checkpoint_seconds = 0.0
[options]
count = 50
nodes = 8
[sweep]
width = [2, 3, 4, 5]
"""
REFUSED = ("is being written by", "holds a run already")
OUTPUTS = {"predict": "out.csv", "evaluate": "scores.csv", "derive": "proof.json"}


@dataclass
class Count:
    """What came of the faults of one kind.

    Attributes:
        tried: How many.
        survived: How many of them.
        failures: What happened to the others.
    """

    tried: int = 0
    survived: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One experiment.

    Attributes:
        kind: Row of the table.
        what: Tells it from others of its kind.
        run: Raises where something was lost; works in a folder of its own.
        faults: How many it holds.
    """

    kind: str
    what: str
    run: Callable[[Path], None]
    faults: int = 1


def try_cases(cases: Iterable[Case], folder: Path, workers: int) -> dict[str, Count]:
    """Try cases, several at a time, each in a folder of its own that is then removed."""
    listed = list(cases)
    found = {case.kind: Count() for case in listed}

    def outcome(numbered: tuple[int, Case]) -> str:
        number, case = numbered
        own = folder / f"case-{number}"
        own.mkdir()
        try:
            case.run(own)
        except Exception as error:
            return f"{case.what}: {str(error) or traceback.format_exc()}"[-3000:]
        finally:
            shutil.rmtree(own, ignore_errors=True)
        return ""

    with ThreadPoolExecutor(workers) as pool:
        for case, failure in zip(listed, pool.map(outcome, enumerate(listed)), strict=True):
            count = found[case.kind]
            count.tried += case.faults
            count.survived += 0 if failure else case.faults
            count.failures += [failure] if failure else []
    return found


class Started:
    """A process, whose end is asked for by one thread at a time.

    `multiprocessing` asks for the exit codes of all children whenever it starts one, and a code
    that two threads read at once comes out as 255.
    """

    _asked = Lock()

    def __init__(self, process: Any) -> None:
        self._process = process
        with self._asked:
            process.start()
        self.pid: int = process.pid
        self.kill: Callable[[], None] = process.kill

    def exit_code(self) -> int | None:
        with self._asked:
            code: int | None = self._process.exitcode
            return code

    def end(self) -> int:
        """Wait for its end.

        Raises:
            AssertionError: It hangs; it is killed then.
        """
        begun = time.monotonic()
        while (code := self.exit_code()) is None:
            if _cpu_seconds(self.pid) > CPU_SECONDS or time.monotonic() - begun > patience():
                self.kill()
                raise AssertionError("it hangs")
            time.sleep(0.01)
        return code


def patience() -> float:
    """Seconds to wait for a process, more of them the busier the machine is."""
    return WAITING_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Starts processes, and has runs that were left alone to compare theirs with.

    Args:
        folder: Where they are kept.
        seed: Of what is left to chance.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.context = get_context("forkserver")
        self.context.set_forkserver_preload(PRELOADED)
        self.folder = folder / "whole"
        self.folder.mkdir(parents=True)
        (self.folder / "settings.json").write_text(json.dumps(SETTINGS))
        (self.folder / "few.g6").write_text("Bw\nC~\nDQc\n" * 1000)
        rows = "".join(f"{'C' * (1 + k % 7)}O,{k}\n" for k in range(20))
        (self.folder / "table.csv").write_text(f"smiles,y\n{rows}")
        (self.folder / "sweep.toml").write_text(SWEEP)
        self.train = ["train", "--config", str(self.folder / "settings.json")]
        self.commands = {
            "predict": ["predict", str(self.folder / "run"), str(self.folder / "few.g6")],
            "evaluate": ["evaluate", str(self.folder / "run")],
            "derive": ["derive", "L1"],
        }
        self.run = self.folder / "run"
        self.calls = {"train": self._counted([*self.train, "--out", "run"])}
        for name, words in self.commands.items():
            self.calls[name] = self._counted([*words, "--out", OUTPUTS[name]])
        self.half = self.folder / "half"
        self.outputs = {path: path.read_bytes() for path in self.run.rglob("*") if path.is_file()}
        at = self.calls["train"] * 2 // 3
        while not (self.half / CHECKPOINT).exists():  # between two renames there is none
            shutil.rmtree(self.half, ignore_errors=True)
            self.hit([*self.train, "--out", "half"], self.folder, at)
            at += 1

    def start(
        self, words: list[str], folder: Path, blow: Blow | None = None, log: str = "log"
    ) -> Started:
        return self.process(command, words, folder, folder / log, blow or Blow())

    def process(self, work: Callable[..., None], *given: Any) -> Started:
        return Started(self.context.Process(target=work, args=given, daemon=True))

    def ended(self, process: Started, folder: Path, log: str = "log") -> tuple[int, str]:
        """How a process ended, and what it said."""
        code = process.end()
        said = (folder / log).read_text(errors="replace") if (folder / log).exists() else ""
        assert "Traceback" not in said, said[-2000:]
        return code, said

    def done(self, words: list[str], folder: Path) -> str:
        """Run a command that must succeed."""
        code, said = self.ended(self.start(words, folder), folder)
        assert code == 0, f"{' '.join(words)}: {said}"
        return said

    def hit(self, words: list[str], folder: Path, at: int) -> None:
        code, said = self.ended(self.start(words, folder, Blow(at)), folder)
        assert code == -signal.SIGKILL, f"ended with {code}: {said}"

    def _counted(self, words: list[str]) -> int:
        number = self.folder / "calls"
        code, said = self.ended(self.start(words, self.folder, Blow(counted=number)), self.folder)
        assert code == 0, said
        return int(number.read_text())

    def finish(self, folder: Path, name: str = "run") -> None:
        """Take a run up again, or start it where it never began, and compare it."""
        there = (folder / name / "config.json").exists()
        words = ["train", "--resume", name] if there else [*self.train, "--out", name]
        self.done(words, folder)
        self.compare(folder / name)

    def compare(self, run: Path) -> None:
        """Refuse a run that is not the same to the last byte."""
        assert same_bytes(_learned(self.run), _learned(run)), "another state"
        for name in ("metrics.csv", "test.csv", BEST, "config.json", "data.json", "split.json"):
            assert (run / name).read_bytes() == (self.run / name).read_bytes(), f"another {name}"
        results = [json.loads((where / "result.json").read_text()) for where in (run, self.run)]
        assert results[0]["test"] == results[1]["test"], "another result"
        left = {path.name for path in run.iterdir()} - {path.name for path in self.run.iterdir()}
        assert not left - {PREVIOUS}, f"left behind: {left}"

    def refuse_changes(self) -> None:
        """Refuse that a command has written in a run it was only to read."""
        now = {path: path.read_bytes() for path in self.run.rglob("*") if path.is_file()}
        assert now == self.outputs, "a run was changed"

    def at_once(self, folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
        """How commands ended that were started together, and what they said."""
        logs = [folder / f"{number}.log" for number in range(len(commands))]
        started = [
            self.process(in_folder, folder, words, log)
            for words, log in zip(commands, logs, strict=True)
        ]
        (folder / "go").touch()
        ended = [self.ended(p, folder, log.name) for p, log in zip(started, logs, strict=True)]
        writers = [f"{REFUSED[0]} process {process.pid} on " for process in started]
        for code, said in ended:
            refused = any(why in said for why in (*writers, REFUSED[1]))
            assert code == 0 or (code == 2 and refused), f"ended with {code}: {said}"
        assert any(code == 0 for code, _ in ended), ended
        return ended


def _learned(run: Path) -> Any:
    """The state of a run but for the learning rate, which is set anew before every step."""
    state = learned_state(run)
    for group in state["optimiser"]["param_groups"]:
        group.pop("lr")
    return state


def refusal(code: int, said: str) -> None:
    """What a user must see: a message, and the exit code of bad input."""
    assert code == 2, f"ended with {code}: {said}"
    assert "error: " in said, said
