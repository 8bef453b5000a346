"""Faults while g2n2 writes, in real processes of its command line.

A run that was hit must end, once it is taken up again, with the same bytes as one that was left
alone; an output must be whole, the old one or the new; a refusal must be a message.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from g2n2.experiments.record import Record
from g2n2.training.checkpoints import NAME as CHECKPOINT
from g2n2.training.checkpoints import PREVIOUS
from g2n2.training.manifest import NAME as MANIFEST
from g2n2.training.run_folder import BEST
from run_processes import in_folder
from small_runs import SMALL, learned_state, same_bytes

from .mutations import in_bytes
from .process import Blow, command, fill_cache, write_record

PRELOADED = [
    *("g2n2.cli", "g2n2.training.session", "g2n2.training.display", "lightning.fabric"),
    *("torch.utils.tensorboard", "torture.process", "run_processes"),
]
PATIENCE = 300.0
"""Seconds after which a process that should have ended hangs, on however busy a machine."""
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
OUTPUTS = {"predict": "out.csv", "evaluate": "scores.csv", "derive": "proof.json"}
REFUSED = ("is being written by", "holds a run already")


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


def try_faults(folder: Path, seed: int, full: bool, workers: int, only: str = "") -> dict[str, Count]:
    """Try every fault, several at a time.

    Args:
        folder: For all files; emptied case by case.
        seed: Of what is left to chance.
        full: All of them, or a sample of every kind.
        workers: How many at a time.
        only: Part of the name of a kind.
    """
    bench = Bench(folder, seed)
    cases = [case for case in bench.cases(full) if only in case.kind]
    found = {case.kind: Count() for case in cases}

    def outcome(numbered: tuple[int, Case]) -> str:
        number, case = numbered
        own = folder / f"case-{number}"
        own.mkdir()
        try:
            case.run(own)
        except Exception as error:
            return f"{case.what}: {str(error) or traceback.format_exc()}"[:3000]
        finally:
            shutil.rmtree(own, ignore_errors=True)
        return ""

    with ThreadPoolExecutor(workers) as pool:
        for case, failure in zip(cases, pool.map(outcome, enumerate(cases)), strict=True):
            count = found[case.kind]
            count.tried += case.faults
            count.survived += 0 if failure else case.faults
            count.failures += [failure] if failure else []
    return found


class Bench:
    """Runs that were left alone, to compare with, and the cases.

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
        (self.folder / "few.g6").write_text("Bw\nC~\nDQc\n" * 20)
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
        self.hit([*self.train, "--out", "half"], self.folder, self.calls["train"] * 2 // 3)

    # --- processes ---

    def start(self, words: list[str], folder: Path, blow: Blow | None = None, log: str = "log") -> Any:
        process = self.context.Process(
            target=command, args=(words, folder, folder / log, blow or Blow()), daemon=True
        )
        process.start()
        return process

    def ended(self, process: Any, folder: Path, log: str = "log") -> tuple[int, str]:
        """How a process ended, and what it said."""
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError("it hangs")
        said = (folder / log).read_text(errors="replace") if (folder / log).exists() else ""
        assert "Traceback" not in said, said[-2000:]
        return process.exitcode, said

    def done(self, words: list[str], folder: Path) -> str:
        """Run a command that must succeed."""
        code, said = self.ended(self.start(words, folder), folder)
        assert code == 0, f"{' '.join(words)}: {said}"
        return said

    def hit(self, words: list[str], folder: Path, at: int) -> None:
        code, said = self.ended(self.start(words, folder, Blow(at)), folder)
        assert code == -signal.SIGKILL, said

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
        assert same_bytes(learned_state(self.run), learned_state(run)), "another state"
        for name in ("metrics.csv", "test.csv", BEST, "config.json", "data.json", "split.json"):
            assert (run / name).read_bytes() == (self.run / name).read_bytes(), f"another {name}"
        results = [json.loads((where / "result.json").read_text()) for where in (run, self.run)]
        assert results[0]["test"] == results[1]["test"], "another result"
        left = {path.name for path in run.iterdir()} - {path.name for path in self.run.iterdir()}
        assert not left - {PREVIOUS}, f"left behind: {left}"

    # --- cases ---

    def cases(self, full: bool) -> Iterator[Case]:
        """All of them, or a sample of every kind."""
        times = Random(f"{self.seed} kills")
        for number in range(4 if full else 1):
            kills = 15 if full else 5
            yield Case(
                "kill at a random time while training",
                f"run {number}",
                lambda folder, kills=kills, seed=times.random(): self.random_kills(folder, kills, seed),
                kills,
            )
        for at in self.some(self.calls["train"], 8, full):
            yield Case(
                "kill at a write, fsync or rename while training",
                f"call {at}",
                lambda folder, at=at: self.kill_training(folder, at),
            )
        for at in self.some(self.calls["train"] // 4, 3, full):
            yield Case(
                "kill while resuming",
                f"call {at}",
                lambda folder, at=at: self.kill_resuming(folder, at),
            )
        for name in OUTPUTS:
            for at in self.some(self.calls[name], 2, full):
                yield Case(
                    "kill at a write, fsync or rename of an output",
                    f"{name}, call {at}",
                    lambda folder, name=name, at=at: self.hit_output(folder, name, Blow(at)),
                )
        for number in range(4 if full else 1):
            yield Case(
                "kill while sweeping",
                f"sweep {number}",
                lambda folder, seed=times.random(): self.kill_sweep(folder, 4, seed),
                4,
            )
        for number in (signal.SIGINT, signal.SIGTERM):
            for again in range(3 if full else 1):
                yield Case(
                    "SIGINT or SIGTERM while training",
                    f"{number.name} {again}",
                    lambda folder, number=number: self.interrupt(folder, number),
                )
        for name in (CHECKPOINT, BEST, MANIFEST, "config.json", "data.json", "split.json", "metrics.csv"):
            for number in range(6 if full else 1):
                yield Case(
                    "torn or garbled file of a run that goes on",
                    f"{name} {number}",
                    lambda folder, name=name, number=number: self.tear(folder, name, number),
                )
        for at in self.some(self.calls["train"], 6, full):
            yield Case(
                "disk full at a write, fsync or rename while training",
                f"call {at}",
                lambda folder, at=at: self.full_disk(folder, at),
            )
        for name in OUTPUTS:
            for at in self.some(self.calls[name], 1, full):
                yield Case(
                    "disk full at a write, fsync or rename of an output",
                    f"{name}, call {at}",
                    lambda folder, name=name, at=at: self.hit_output(folder, name, Blow(at, "full")),
                )
        if _can_mount():
            used = sum(path.stat().st_size for path in self.run.rglob("*") if path.is_file()) // 1024
            for share in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0) if full else (0.3, 0.7):
                yield Case(
                    "a real disk that is too small",
                    f"{share:.0%} of what the run needs",
                    lambda folder, size=int(share * used): self.small_disk(folder, size),
                )
        if _can_mount() or os.getuid():
            for name in ("train", "resume", "sweep", *OUTPUTS):
                yield Case(
                    "read-only folder",
                    name,
                    lambda folder, name=name: self.read_only(folder, name),
                )
        yield Case(
            "several processes start runs in one folder",
            "runs",
            lambda folder, count=100 if full else 12: self.starts(folder, count),
            100 if full else 12,
        )
        for number in range(4 if full else 1):
            yield Case(
                "several processes, one --out",
                f"runs {number}",
                lambda folder: self.one_folder(folder, 8),
                8,
            )
            yield Case(
                "several processes resume one run",
                f"runs {number}",
                lambda folder: self.resumes(folder, 4),
                4,
            )
            yield Case(
                "several processes, one output file",
                f"outputs {number}",
                lambda folder: self.one_output(folder, 4),
                4,
            )
            yield Case(
                "several processes, one sweep",
                f"sweeps {number}",
                lambda folder: self.sweeps(folder, 2),
                2,
            )
        yield Case("several processes, one cache file", "cache", self.one_cache, 8)
        yield Case("several processes, one experiment record", "record", self.one_record, 8)
        for number in range(3 if full else 1):
            yield Case(
                "one of two training processes killed",
                f"kill {number}",
                lambda folder, number=number: self.killed_worker(folder, number),
            )

    @staticmethod
    def some(calls: int, few: int, full: bool) -> list[int]:
        """Every call, or a few spread over all of them."""
        return list(range(1, calls + 1)) if full else [1 + calls * k // few for k in range(few)]

    def random_kills(self, folder: Path, kills: int, seed: float) -> None:
        chance = Random(seed)
        for _ in range(kills):
            there = (folder / "run" / "config.json").exists()
            words = ["train", "--resume", "run"] if there else [*self.train, "--out", "run"]
            process = self.start(words, folder, Blow(slow=True))
            if chance.random() < 0.8:  # most often after the first step
                before = _stamp(folder / "run" / CHECKPOINT)
                while process.is_alive() and _stamp(folder / "run" / CHECKPOINT) == before:
                    time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.15))
            process.kill()
            self.ended(process, folder)
        self.finish(folder)

    def kill_training(self, folder: Path, at: int) -> None:
        self.hit([*self.train, "--out", "run"], folder, at)
        self.finish(folder)

    def kill_resuming(self, folder: Path, at: int) -> None:
        shutil.copytree(self.half, folder / "run")
        self.hit(["train", "--resume", "run"], folder, at)
        self.finish(folder)

    def hit_output(self, folder: Path, name: str, blow: Blow) -> None:
        old, new = b"old\n", (self.folder / OUTPUTS[name]).read_bytes()
        path = folder / OUTPUTS[name]
        path.write_bytes(old)
        words = [*self.commands[name], "--out", path.name]
        code, said = self.ended(self.start(words, folder, blow), folder)
        if blow.action == "kill":
            assert code == -signal.SIGKILL, said
        else:
            _refusal(code, said)
        assert path.read_bytes() in (old, new), "half an output"
        self.done(words, folder)
        assert path.read_bytes() == new, "another output"

    def kill_sweep(self, folder: Path, kills: int, seed: float) -> None:
        chance = Random(seed)
        (folder / "sweep.toml").write_text(SWEEP)
        words = ["sweep", "sweep.toml", "--trials", "4"]
        for _ in range(kills):
            process = self.start(words, folder, Blow(slow=True))
            while process.is_alive() and not (folder / "sweep.db").exists():
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 1.0))
            process.kill()
            self.ended(process, folder)
        self.done(words, folder)
        self.four_trials(folder)

    def four_trials(self, folder: Path) -> None:
        """Exactly the trials asked for, each with a run of its own."""
        import optuna

        (name,) = optuna.get_all_study_names(f"sqlite:///{folder}/sweep.db")
        study = optuna.load_study(study_name=name, storage=f"sqlite:///{folder}/sweep.db")
        finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
        widths = sorted(trial.params["width"] for trial in finished)
        assert widths == [2, 3, 4, 5], f"finished trials have the widths {widths}"
        for trial in finished:
            run = folder / trial.user_attrs["folder"]
            result = json.loads((run / "result.json").read_text())
            assert result["config"]["width"] == trial.params["width"], "a result of another trial"

    def interrupt(self, folder: Path, number: signal.Signals) -> None:
        process = self.start([*self.train, "--out", "run"], folder, Blow(slow=True))
        while process.is_alive() and not (folder / "run" / CHECKPOINT).exists():
            time.sleep(0.001)
        os.kill(process.pid, number)
        code, said = self.ended(process, folder)
        assert code == 130, said
        assert said.rstrip().endswith("g2n2 train --resume run"), said
        self.finish(folder)

    def tear(self, folder: Path, name: str, number: int) -> None:
        run = folder / "run"
        shutil.copytree(self.half, run)
        if not (run / name).exists():
            name = CHECKPOINT
        whole = (run / name).read_bytes()
        chance = Random(f"{self.seed} {name} {number}")
        cut = whole[: chance.randrange(len(whole))]
        (run / name).write_bytes(cut if number % 2 == 0 else in_bytes(chance, whole))
        code, said = self.ended(self.start(["train", "--resume", "run"], folder), folder)
        if code:
            _refusal(code, said)
            assert name in said, f"{name} is not named: {said}"
            (run / name).write_bytes(whole)
            self.done(["train", "--resume", "run"], folder)
        self.compare(run)

    def full_disk(self, folder: Path, at: int) -> None:
        words = [*self.train, "--out", "run"]
        code, said = self.ended(self.start(words, folder, Blow(at, "full")), folder)
        _refusal(code, said)
        self.finish(folder)

    def small_disk(self, folder: Path, size: int) -> None:
        disk = folder / "disk"
        disk.mkdir()
        with _mounted("-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)):
            words = [*self.train, "--out", "disk/run"]
            code, said = self.ended(self.start(words, folder), folder)
            _refusal(code, said)
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            self.finish(folder, "disk/run")

    def read_only(self, folder: Path, name: str) -> None:
        place = folder / "place"
        shutil.copytree(self.half, place / "run")
        (folder / "sweep.toml").write_text(SWEEP)
        words = {
            "train": [*self.train, "--out", "place/new"],
            "resume": ["train", "--resume", "place/run"],
            "sweep": ["sweep", "sweep.toml", "--trials", "2", "--storage", "place/sweep.db"],
        }
        words |= {kind: [*said, "--out", f"place/{kind}"] for kind, said in self.commands.items()}
        before = _contents(place)
        with _unwritable(place):
            code, said = self.ended(self.start(words[name], folder), folder)
        _refusal(code, said)
        assert _contents(place) == before, "something was changed"

    def starts(self, folder: Path, count: int) -> None:
        """Runs that name no folder, each with a seed of its own."""
        quick = {**SETTINGS, "epochs": 1}
        (folder / "settings.json").write_text(json.dumps(quick))
        base = ["train", "--config", "settings.json", "--seed"]
        ended = self.at_once(folder, [[*base, str(seed)] for seed in range(count)])
        assert [code for code, _ in ended] == [0] * count, [said for code, said in ended if code]
        runs = sorted((folder / "runs").iterdir())
        assert len(runs) == count, f"{len(runs)} folders"
        seeds = set()
        for run in runs:
            config = json.loads((run / "config.json").read_text())
            assert json.loads((run / "result.json").read_text())["config"] == config, "mixed"
            (told,) = (said for _, said in ended if f"run folder: runs/{run.name} " in said)
            assert f"seed {config['seed']}." in told, "the result of another run"
            seeds.add(config["seed"])
        assert seeds == set(range(count)), "a run is lost"

    def one_folder(self, folder: Path, count: int) -> None:
        base = [*self.train, "--out", "run", "--seed"]
        ended = self.at_once(folder, [[*base, str(seed)] for seed in range(count)])
        winners = [seed for seed, (code, _) in enumerate(ended) if code == 0]
        assert len(winners) == 1, ended
        for code, said in ended:
            assert code == 0 or (code == 2 and any(why in said for why in REFUSED)), said
        for name in ("result.json", "config.json"):
            said = json.loads((folder / "run" / name).read_text())
            assert said.get("config", said)["seed"] == winners[0], "mixed"

    def resumes(self, folder: Path, count: int) -> None:
        shutil.copytree(self.half, folder / "run")
        ended = self.at_once(folder, [["train", "--resume", "run"]] * count)
        assert any(code == 0 for code, _ in ended), ended
        for code, said in ended:
            assert code == 0 or (code == 2 and REFUSED[0] in said), said
        self.compare(folder / "run")

    def one_output(self, folder: Path, count: int) -> None:
        words = [*self.commands["predict"], "--out", "out.csv"]
        ended = self.at_once(folder, [words] * count)
        assert any(code == 0 for code, _ in ended), ended
        for code, said in ended:
            assert code == 0 or (code == 2 and REFUSED[0] in said), said
        whole = (self.folder / OUTPUTS["predict"]).read_bytes()
        assert (folder / "out.csv").read_bytes() == whole, "another output"

    def sweeps(self, folder: Path, count: int) -> None:
        (folder / "sweep.toml").write_text(SWEEP)
        ended = self.at_once(folder, [["sweep", "sweep.toml", "--trials", "4"]] * count)
        assert [code for code, _ in ended] == [0] * count, ended
        self.four_trials(folder)

    def at_once(self, folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
        logs = [f"{number}.log" for number in range(len(commands))]
        started = [
            self.context.Process(target=in_folder, args=(folder, words, folder / log), daemon=True)
            for words, log in zip(commands, logs, strict=True)
        ]
        for process in started:
            process.start()
        (folder / "go").touch()
        return [self.ended(p, folder, log) for p, log in zip(started, logs, strict=True)]

    def one_cache(self, folder: Path) -> None:
        contents = [bytes([number]) * 200_000 for number in range(8)]
        self.together(folder, [(fill_cache, (folder, content)) for content in contents])
        assert (folder / "g2n2" / "tu" / "a.zip").read_bytes() in contents, "mixed"
        assert len(list((folder / "g2n2" / "tu").iterdir())) == 1, "left behind"

    def one_record(self, folder: Path) -> None:
        self.together(folder, [(write_record, (folder, number)) for number in range(8)])
        (path,) = (folder / "q1").iterdir()
        config = Record.read(path).config
        assert config["more"] == [config["number"]] * 1000, "mixed"

    def together(self, folder: Path, work: list[tuple[Any, Any]]) -> None:
        started = [self.context.Process(target=do, args=given, daemon=True) for do, given in work]
        for process in started:
            process.start()
        (folder / "go").touch()
        for process in started:
            code, _ = self.ended(process, folder)
            assert code == 0, "a process failed"

    def killed_worker(self, folder: Path, number: int) -> None:
        """One of the two processes of a run is killed; the other says so, and the run goes on."""
        settings = {**SETTINGS, "epochs": 40, "precision": "64"}
        (folder / "settings.json").write_text(json.dumps(settings))
        words = ["train", "--config", "settings.json", "--devices", "2", "--out", "run"]
        with (folder / "log").open("w") as log:
            first = subprocess.Popen(
                [sys.executable, "-m", "g2n2", *words], cwd=folder, stdout=log, stderr=log
            )
            while first.poll() is None and not (folder / "run" / CHECKPOINT).exists():
                time.sleep(0.01)
            others = _children(first.pid)
            assert others, f"no second process: {(folder / 'log').read_text()}"
            os.kill(others[-1] if number % 2 == 0 else first.pid, signal.SIGKILL)
            try:
                code = first.wait(PATIENCE)
                for other in others:
                    _wait_for_end(other)
            finally:
                for process in (first.pid, *others):
                    _end(process)
        said = (folder / "log").read_text(errors="replace")
        assert "Traceback" not in said, said[-3000:]
        assert code != 0, said
        self.done(["train", "--resume", "run", "--devices", "1"], folder)
        result = json.loads((folder / "run" / "result.json").read_text())
        assert result["config"]["epochs"] == 40, "another run"


def _refusal(code: int, said: str) -> None:
    """What a user must see: a message, and the exit code of bad input."""
    assert code == 2, f"ended with {code}: {said}"
    assert "error: " in said, said


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(text) for text in path.read_text().split()]


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _wait_for_end(process: int) -> None:
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{process}").exists():
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
        if state == "Z":
            return
        assert time.monotonic() < end, "the other process goes on alone"
        time.sleep(0.05)


def _can_mount() -> bool:
    return os.getuid() == 0 and shutil.which("mount") is not None and _mounts()


def _mounts() -> bool:
    """Whether root may mount here, which in a container it often may not."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            with _mounted("-t", "tmpfs", "tmpfs", folder):
                return True
        except subprocess.CalledProcessError:
            return False


@contextmanager
def _mounted(*words: str) -> Iterator[None]:
    subprocess.run(["mount", *words], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", words[-1]], check=False, capture_output=True)


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    """A folder that nobody can write in; modes do not stop root, a mount does."""
    if os.getuid() == 0:
        with _mounted("--bind", str(folder), str(folder)):
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
            yield
        return
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o755)
