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
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from g2n2.training.checkpoint import CHECKPOINT, MANIFEST
from g2n2.training.run_folder import BEST
from g2n2_paper.record import CellRecord

from .bench import OUTPUTS, SETTINGS, SWEEP, Bench, Case, patience, refusal
from .mutations import in_bytes
from .process import Blow, fill_cache, write_record

DESCRIPTION = ("config.json", "data.json", "split.json")


class Faults(Bench):
    """The cases.

    Attributes:
        left_out: Kinds that cannot be tried on this machine.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.left_out: list[str] = []

    def cases(self, full: bool) -> Iterator[Case]:
        """All of them, or a sample of every kind."""
        yield from self.kills(full)
        yield from self.damages(full)
        yield from self.writers(full)

    def kills(self, full: bool) -> Iterator[Case]:
        """Processes that end in the middle of things."""
        kills = 15 if full else 5
        for number in range(4 if full else 1):
            work = partial(self.random_kills, kills=kills, number=number)
            yield Case("kill at a random time while training", f"run {number}", work, kills)
        for at in self.some(self.calls["train"], 8, full):
            work = partial(self.kill_training, at=at)
            yield Case("kill at a write, fsync or rename while training", f"call {at}", work)
        for at in self.some(self.calls["train"] // 4, 3, full):
            yield Case("kill while resuming", f"call {at}", partial(self.kill_resuming, at=at))
        for name, at in self.of_outputs(2, full):
            work = partial(self.hit_output, name=name, blow=Blow(at))
            yield Case("kill at a write, fsync or rename of an output", f"{name}, call {at}", work)
        for number in range(4 if full else 1):
            kills = 4 if full else 2
            work = partial(self.kill_sweep, kills=kills, number=number)
            yield Case("kill while sweeping", f"sweep {number}", work, kills)
        for number in range(6 if full else 2):
            sent = (signal.SIGINT, signal.SIGTERM)[number % 2]
            work = partial(self.interrupt, number=sent)
            yield Case("SIGINT or SIGTERM while training", f"{sent.name} {number}", work)
        for number in range(4 if full else 1):
            work = partial(self.killed_worker, number=number)
            yield Case("one of two training processes killed", f"kill {number}", work)
        for number in range(2 if full else 0):
            yield Case("one of two Ray workers killed", f"kill {number}", self.killed_actor)

    def damages(self, full: bool) -> Iterator[Case]:
        """Files and disks that fail."""
        for name in (*DESCRIPTION, CHECKPOINT, BEST, MANIFEST, "metrics.csv"):
            for number in range(6 if full else 1):
                work = partial(self.tear, name=name, number=number)
                yield Case("torn or garbled file of a run that goes on", f"{name} {number}", work)
        for at in self.some(self.calls["train"], 50 if full else 6, False):
            work = partial(self.full_disk, at=at)
            yield Case("disk full at a write, fsync or rename while training", f"call {at}", work)
        for name, at in self.of_outputs(1, full):
            work = partial(self.hit_output, name=name, blow=Blow(at, "full"))
            kind = "disk full at a write, fsync or rename of an output"
            yield Case(kind, f"{name}, call {at}", work)
        if _can_mount():
            needed = sum(map(len, self.outputs.values())) // 1024
            for share in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0) if full else (0.3, 0.7):
                work = partial(self.small_disk, size=int(share * needed))
                yield Case("real disk that is too small", f"{share:.0%} of the need", work)
        else:
            self.left_out.append("a real disk that is too small, which needs root")
        if _can_mount() or os.getuid():
            for name in ("train", "resume", "sweep", *OUTPUTS):
                yield Case("read-only folder", name, partial(self.read_only, name=name))
        else:
            self.left_out.append("read-only folders, as root may not mount here")

    def writers(self, full: bool) -> Iterator[Case]:
        """Several processes at once."""
        count = 100 if full else 12
        work = partial(self.starts, count=count)
        yield Case("several processes start runs in one folder", f"{count} runs", work, count)
        for number in range(4 if full else 1):
            for kind, run, count in (
                ("several processes, one --out", self.one_folder, 8),
                ("several processes resume one run", self.resumes, 4),
                ("several processes, one output file", self.one_output, 4),
                ("several processes, one sweep", self.sweeps, 2),
            ):
                yield Case(kind, f"time {number}", partial(run, count=count), count)
        yield Case("several processes, one cache file", "cache", self.one_cache, 8)
        yield Case("several processes, one experiment record", "record", self.one_record, 8)

    def of_outputs(self, few: int, full: bool) -> list[tuple[str, int]]:
        return [(name, at) for name in OUTPUTS for at in self.some(self.calls[name], few, full)]

    @staticmethod
    def some(calls: int, few: int, full: bool) -> list[int]:
        """Every call, or a few spread over all of them."""
        return list(range(1, calls + 1)) if full else [1 + calls * k // few for k in range(few)]

    def random_kills(self, folder: Path, kills: int, number: int) -> None:
        chance = Random(f"{self.seed} {number}")
        for _ in range(kills):
            there = (folder / "run" / "config.json").exists()
            words = ["train", "--resume", "run"] if there else [*self.train, "--out", "run"]
            process = self.start(words, folder, Blow(slow=True))
            if chance.random() < 0.8:  # most often after the first step
                before = _stamp(folder / "run" / CHECKPOINT)
                while process.exit_code() is None and _stamp(folder / "run" / CHECKPOINT) == before:
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
        elif code == 0:  # struck after the output was whole
            assert path.read_bytes() == new, said
            return
        else:
            refusal(code, said)
        assert path.read_bytes() in (old, new), "half an output"
        begun = (folder / f"{path.name}.partial").exists()
        self.done([*words, "--resume"] if begun else words, folder)
        assert not (folder / f"{path.name}.partial").exists(), "left behind"
        assert path.read_bytes() == new, "another output"

    def kill_sweep(self, folder: Path, kills: int, number: int) -> None:
        chance = Random(f"{self.seed} {number}")
        (folder / "sweep.toml").write_text(SWEEP)
        words = ["sweep", "sweep.toml", "--trials", "4"]
        for _ in range(kills):
            process = self.start(words, folder, Blow(slow=True))
            while process.exit_code() is None and not (folder / "sweep.db").exists():
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
        while process.exit_code() is None and not (folder / "run" / CHECKPOINT).exists():
            time.sleep(0.001)
        os.kill(process.pid, number)
        code, said = self.ended(process, folder)
        assert code == 130, said
        assert said.rstrip().endswith("g2n2 train --resume run"), said
        self.finish(folder)

    def tear(self, folder: Path, name: str, number: int) -> None:
        run = folder / "run"
        shutil.copytree(self.half, run)
        whole = (run / name).read_bytes()
        chance = Random(f"{self.seed} {name} {number}")
        cut = whole[: chance.randrange(len(whole))]
        (run / name).write_bytes(cut if number % 2 == 0 else in_bytes(chance, whole))
        code, said = self.ended(self.start(["train", "--resume", "run"], folder), folder)
        if code:
            refusal(code, said)
            assert name in said, f"{name} is not named: {said}"
            (run / name).write_bytes(whole)
            self.done(["train", "--resume", "run"], folder)
        self.compare(run)

    def full_disk(self, folder: Path, at: int) -> None:
        words = [*self.train, "--out", "run"]
        code, said = self.ended(self.start(words, folder, Blow(at, "full")), folder)
        refusal(code, said)
        self.finish(folder)

    def small_disk(self, folder: Path, size: int) -> None:
        disk = folder / "disk"
        disk.mkdir()
        with _mounted("-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)):
            words = [*self.train, "--out", "disk/run"]
            code, said = self.ended(self.start(words, folder), folder)
            refusal(code, said)
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
        refusal(code, said)
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
        for name in ("result.json", "config.json"):
            said = json.loads((folder / "run" / name).read_text())
            assert said.get("config", said)["seed"] == winners[0], "mixed"

    def resumes(self, folder: Path, count: int) -> None:
        shutil.copytree(self.half, folder / "run")
        self.at_once(folder, [["train", "--resume", "run"]] * count)
        self.compare(folder / "run")

    def one_output(self, folder: Path, count: int) -> None:
        words = [*self.commands["predict"], "--out", "out.csv"]
        self.at_once(folder, [words] * count)
        whole = (self.folder / OUTPUTS["predict"]).read_bytes()
        assert (folder / "out.csv").read_bytes() == whole, "another output"

    def sweeps(self, folder: Path, count: int) -> None:
        (folder / "sweep.toml").write_text(SWEEP)
        ended = self.at_once(folder, [["sweep", "sweep.toml", "--trials", "4"]] * count)
        assert [code for code, _ in ended] == [0] * count, ended
        self.four_trials(folder)

    def one_cache(self, folder: Path) -> None:
        contents = [bytes([number]) * 200_000 for number in range(8)]
        self.together(folder, [(fill_cache, (folder, content)) for content in contents])
        assert (folder / "g2n2" / "tu" / "a.zip").read_bytes() in contents, "mixed"
        assert len(list((folder / "g2n2" / "tu").iterdir())) == 1, "left behind"

    def one_record(self, folder: Path) -> None:
        self.together(folder, [(write_record, (folder, number)) for number in range(8)])
        (path,) = (folder / "q1").iterdir()
        config = CellRecord.read(path).config
        assert config["more"] == [config["number"]] * 1000, "mixed"

    def together(self, folder: Path, work: list[tuple[Any, Any]]) -> None:
        started = [self.process(do, *given) for do, given in work]
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
                code = first.wait(patience())
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

    def killed_actor(self, folder: Path) -> None:
        """A worker of `predict --engine ray` is killed: the same rows as without."""
        import psutil

        (folder / "many.g6").write_text("Bw\nC~\nDQc\n" * 20_000)
        words = ["predict", str(self.run), "many.g6", "--out"]
        self.done([*words, "local.csv"], folder)
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "g2n2", *words, "ray.csv", "--engine", "ray"],
                cwd=folder,
                stdout=log,
                stderr=log,
            )
            actors: list[Any] = []
            while process.poll() is None and len(actors) < 2:
                time.sleep(0.05)
                with suppress(psutil.Error):
                    below = psutil.Process(process.pid).children(recursive=True)
                    actors = [one for one in below if "MapWorker" in " ".join(one.cmdline())]
            said = (folder / "log").read_text(errors="replace")
            assert actors, f"it ended before it could be hit: {said}"
            actors[0].kill()
            code = process.wait(patience())
        said = (folder / "log").read_text(errors="replace")
        assert code == 0, said[-3000:]
        assert (folder / "ray.csv").read_bytes() == (folder / "local.csv").read_bytes(), (
            "other rows"
        )


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
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _wait_for_end(process: int) -> None:
    begun = time.monotonic()
    while Path(f"/proc/{process}").exists():
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
        if state == "Z":
            return
        assert time.monotonic() - begun < patience(), "the other process goes on alone"
        time.sleep(0.05)


def _can_mount() -> bool:
    return os.getuid() == 0 and shutil.which("mount") is not None and _mounts()


def _mounts() -> bool:
    """Whether root may mount here, which in a container it often may not."""
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
