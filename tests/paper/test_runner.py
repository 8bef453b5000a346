"""The runner: what it runs, what it keeps, and what a failure or a stop leaves behind."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from benchmark_files import real_file
from g2n2.atomic_files import sole_writer
from g2n2.errors import DataError
from g2n2_paper import record as records
from g2n2_paper import runner
from g2n2_paper.record import CellRecord
from g2n2_paper.runner import (
    ATTEMPTS,
    Cell,
    Job,
    Measurement,
    ShareEndsError,
    cells_of,
    choose,
    run_cells,
    run_share,
    shares_of,
)


def measured(value: float = 1.0) -> Measurement:
    return Measurement(3, "parts", {"value": value}, {"made up": "abc"})


def cell(name: str = "a", run=lambda job: measured(), **options) -> Cell:
    return Cell("q1", name, run, {"width": 8}, **options)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "work", tmp_path / "results", "cpu")


def states(outcomes) -> list[str]:
    return [outcome.state for outcome in outcomes]


def test_a_cell_with_a_record_is_not_run_again(job):
    ran = []

    def run(own):
        ran.append(own.work)
        return measured()

    told = []
    assert states(run_cells([cell(run=run)], job, tell=told.append)) == ["done"]
    assert states(run_cells([cell(run=run)], job)) == ["kept"]
    assert len(ran) == 1
    assert str(told[0]) == "q1 a, seed 0: done, 3 parts"
    record = CellRecord.read(job.results / "q1" / "a.s0.json")
    assert (record.done, record.metrics, record.data) == (3, {"value": 1.0}, {"made up": "abc"})
    assert {"commit", "source", "paper source", "torch", "device", "cpu"} <= set(record.provenance)
    assert record.seconds >= 0


def test_other_settings_are_run_again_in_a_folder_of_their_own(job):
    folders = []

    def run(own):
        folders.append(own.work)
        return replace(measured(), config={"width": 16})

    run_cells([cell()], job)
    wider = Cell("q1", "a", run, {"width": 16})
    assert states(run_cells([wider], job)) == ["done"]
    assert folders[0] != cell().folder(job.work)
    assert states(run_cells([cell()], job)) == ["done"], "the record is of the wider one now"


def test_a_setting_that_a_record_does_not_have_had_its_default(job):
    run_cells([cell()], job)
    more = {"width": 8, "rate": 0.5}
    assert states(run_cells([Cell("q1", "a", cell().run, more)], job)) == ["done"]
    run_cells([cell("old")], job)
    record = CellRecord.read(job.results / "q1" / "old.s0.json")
    same = Cell("q1", "old", cell().run, more, defaults={"rate": 0.5, "depth": 3})
    assert same.matches(record)
    assert not replace(same, defaults={"rate": 0.1}).matches(record)


def test_a_cell_that_another_call_has_ended_meanwhile_is_not_run_again(job):
    def run(own):
        other = replace(job, work=job.work / "other")  # a call that began at the same time
        run_cells([cell("b", lambda _: measured(7.0))], other)
        return measured()

    outcomes = run_cells([cell(run=run), cell("b", lambda _: measured(8.0))], job)
    assert states(outcomes) == ["done", "kept"]
    assert CellRecord.read(job.results / "q1" / "b.s0.json").metrics == {"value": 7.0}


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_fails_cells_one_by_one(job, monkeypatch):
    """Neither the log nor the attempts can be written then."""

    def run(own):
        monkeypatch.setattr(Path, "write_text", no_space)
        monkeypatch.setattr(runner, "replace_file", no_space)
        no_space()

    outcomes = run_cells([cell(run=run), cell("b")], job)
    assert states(outcomes) == ["failed", "failed"]
    assert all("No space left" in outcome.reason for outcome in outcomes)
    assert not any("see" in outcome.reason for outcome in outcomes)


def test_a_results_folder_that_cannot_be_written_is_told_before_anything_is_computed(job, tmp_path):
    (tmp_path / "file").write_text("")
    ran = []
    for results in (tmp_path / "file", tmp_path / "file" / "results"):
        with pytest.raises(DataError, match="cannot write records in"):
            run_cells([cell(run=ran.append)], replace(job, results=results))
    assert ran == []


def test_a_record_that_does_not_fit_on_the_disk_is_told(job, monkeypatch):
    monkeypatch.setattr(records, "replace_file", no_space)
    (outcome,) = run_cells([cell()], job)
    path = job.results / "q1" / "a.s0.json"
    assert outcome.reason == f"cannot write {path}: No space left on device"


def test_ctrl_c_on_a_full_disk_still_stops(job, monkeypatch):
    def run(own):
        monkeypatch.setattr(runner, "replace_file", no_space)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells([cell(run=run)], job)


def test_a_damaged_file_of_attempts_and_a_number_that_is_none_are_named(job):
    run_cells([cell(run=lambda _: measured(float("nan")))], job)
    (outcome,) = run_cells([cell(run=lambda _: measured(float("nan")))], job)
    assert outcome.reason == "its value is nan, so there is no record of it"
    path = cell().folder(job.work) / ATTEMPTS
    path.write_text("[{")
    (outcome,) = run_cells([cell()], job)
    assert outcome.reason.startswith(f"{path} is damaged")
    assert "delete it" in outcome.reason


def test_one_faulty_cell_does_not_stop_the_others(job):
    def broken(own):
        raise ZeroDivisionError("by nothing")

    def refused(own):
        raise DataError("no such data")

    cells = [cell("broken", broken), cell("refused", refused), cell("fine")]
    outcomes = run_cells(cells, job)
    assert states(outcomes) == ["failed", "failed", "done"]
    assert outcomes[1].reason == "no such data"
    log = Path(outcomes[0].reason.rpartition("see ")[2])
    assert "by nothing" in log.read_text()
    assert states(run_cells(cells, job)) == ["kept", "failed", "failed"]


def test_a_stopped_cell_goes_on_with_the_parts_it_has(job):
    computed = []

    def part(number):
        computed.append(number)
        if computed == [0, 1]:
            raise KeyboardInterrupt
        return number * 10

    def run(own):
        return measured(sum(own.kept(f"part-{i}", part, i) for i in range(3)))

    with pytest.raises(KeyboardInterrupt):
        run_cells([cell(run=run)], job)
    assert list(job.results.rglob("*.json")) == []
    assert states(run_cells([cell(run=run)], job)) == ["done"]
    assert computed == [0, 1, 1, 2]
    assert CellRecord.read(job.results / "q1" / "a.s0.json").metrics == {"value": 30.0}


def test_a_partial_record_lends_its_parts_its_time_and_its_place(job):
    computed = []

    def part(number):
        computed.append(number)
        return number * 10

    def run(own):
        parts = own.kept_parts({f"part-{i}": (i,) for i in range(3)}, part)
        return replace(measured(sum(parts)), detail={"parts": parts})

    whole = cell(run=run, parts=3, parts_of=lambda record: {"part-1": record.detail["parts"][0]})
    run_cells([whole], job)
    record = whole.record(job.results)
    elsewhere = {**record.provenance, "device": "another"}
    partial = replace(record, done=1, detail={"parts": [11]}, provenance=elsewhere, seconds=7.0)
    partial.write(job.results)
    assert states(run_cells([whole], replace(job, work=job.work / "new"))) == ["done"]
    assert computed == [0, 1, 2, 0, 2]
    again = whole.record(job.results)
    assert (again.metrics, again.detail) == ({"value": 31.0}, {"parts": [0, 11, 20]})
    assert again.seconds >= 7.0
    assert [place["device"] for place in again.provenance["earlier slices"]] == ["another"]


def test_finished_parts_are_recorded_and_the_others_computed_later(job):
    computed = []

    def part(number):
        if number == 2 and computed.count(2) == 0:
            computed.append(2)
            raise KeyboardInterrupt
        computed.append(number)
        return number * 10

    def run(own):
        parts = own.parts({f"part-{i}": (i,) for i in range(3)})
        values = own.kept_parts(parts, part)
        detail = {"parts": dict(zip(parts, values, strict=True))}
        return replace(measured(sum(values)), done=len(parts), detail=detail)

    whole = cell(run=run, parts=3, parts_of=lambda record: record.detail["parts"])
    taken = replace(job, finished=True)
    assert states(run_cells([whole], taken)) == [], "there is nothing yet"
    with pytest.raises(KeyboardInterrupt):
        run_cells([whole], job)
    assert states(run_cells([whole], taken)) == ["done"]
    record = whole.record(job.results)
    assert (record.done, record.metrics, computed) == (2, {"value": 10.0}, [0, 1, 2])
    spent = record.seconds
    assert states(run_cells([whole], taken)) == ["done"]
    assert whole.record(job.results).seconds == spent, "no time is counted twice"
    elsewhere = replace(job, work=job.work / "another")
    assert states(run_cells([whole], elsewhere)) == ["done"]
    again = whole.record(job.results)
    assert (again.done, again.metrics, computed) == (3, {"value": 30.0}, [0, 1, 2, 2])
    assert again.seconds >= spent


def test_a_cell_that_needs_all_its_parts_has_no_record_of_some(job):
    def run(own):
        return measured(sum(own.kept_parts({"part-0": (0,), "part-1": (1,)}, lambda i: i)))

    whole = cell(run=run, parts=2)
    folder = whole.folder(job.work)
    folder.mkdir(parents=True)
    (folder / "part-0.json").write_text("0")
    (outcome,) = run_cells([whole], replace(job, finished=True))
    assert (outcome.state, outcome.reason) == (
        "failed",
        "some of its parts are not finished, and it needs them all",
    )


def test_time_and_place_of_stopped_attempts_are_recorded(job, monkeypatch):
    real, commits = runner.provenance, iter(["first", "second", "second"])
    monkeypatch.setattr(runner, "provenance", lambda d: real(d) | {"commit": next(commits)})
    tries = []

    def run(own):
        tries.append(1)
        time.sleep(0.05)
        if len(tries) < 3:
            raise KeyboardInterrupt
        return measured()

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run_cells([cell(run=run)], job)
    run_cells([cell(run=run)], job)
    record = CellRecord.read(job.results / "q1" / "a.s0.json")
    assert record.provenance["commit"] == "second"
    assert [place["commit"] for place in record.provenance["earlier slices"]] == ["first"]
    assert record.seconds >= 0.15


def test_a_cell_that_another_process_runs_is_left_to_it(job):
    with sole_writer(cell().folder(job.work), ""):
        (outcome,) = run_cells([cell()], job)
    assert outcome.state == "failed"
    assert "is being written by process" in outcome.reason


def test_cells_are_chosen_by_parts_of_their_names():
    cells = [cell("single/r2/bonds"), cell("single/mu/bonds"), cell("joint/r2", seed=1)]
    names = lambda *only: [c.name for c in choose(cells, only)]  # noqa: E731
    assert names() == [c.name for c in cells]
    assert names("r2") == ["single/r2/bonds", "joint/r2"]
    assert names("single/r2") == ["single/r2/bonds"]
    assert [c.name for c in choose(cells, (), (1,))] == ["joint/r2"]
    with pytest.raises(DataError, match="no cell has the part 'r'; parts of names: bonds, joint"):
        choose(cells, ("r",))
    with pytest.raises(DataError, match="seed 5"):
        choose(cells, (), (5,))
    with pytest.raises(DataError, match="no question 'q9'"):
        cells_of("q9")


def test_cells_that_measure_time_run_before_and_beside_nothing(job, monkeypatch):
    order = []

    def alone(own):
        order.append("timed")
        return measured()

    def parallel(cells, *_):
        order.append([c.name for c in cells])

    monkeypatch.setattr(runner, "_run_parallel", parallel)
    run_cells([cell("x"), cell("clock", alone, timed=True), cell("y")], job, jobs=2)
    assert order == ["timed", ["x", "y"]]


class PoolOfThreads(ThreadPoolExecutor):
    """Workers that end where they compute a cell named in `deadly`, as a process that is killed."""

    deadly: ClassVar[set[str]] = set()
    pools = 0

    def __init__(self, jobs, *_):
        super().__init__(jobs)
        PoolOfThreads.pools += 1
        self.broken = threading.Event()

    def submit(self, run, question, name, seed, job):
        if self.broken.is_set():
            raise BrokenProcessPool
        return super().submit(self.compute, name, job)

    def compute(self, name, job):
        if name in self.deadly:
            self.broken.set()
        elif job.share != (0, 1):
            return "shared", ""
        else:
            self.broken.wait(0.1)
        if self.broken.is_set():
            raise BrokenProcessPool
        return "done", "1 parts"


@pytest.mark.parametrize("deadly", ["b", "c", "e", ""])
def test_a_killed_worker_fails_what_ran_beside_it_and_no_more(job, monkeypatch, deadly):
    monkeypatch.setattr(runner, "ProcessPoolExecutor", PoolOfThreads)
    monkeypatch.setattr(PoolOfThreads, "deadly", {deadly})
    before, told = PoolOfThreads.pools, []
    outcomes = run_cells([cell(name) for name in "abcde"], job, jobs=2, tell=told.append)
    assert outcomes == told
    assert sorted(outcome.label[3] for outcome in outcomes) == list("abcde")
    lost = {outcome.label[3] for outcome in outcomes if outcome.state == "failed"}
    assert len(lost) <= 2
    assert deadly in {"", *lost}
    assert PoolOfThreads.pools - before == 1 + bool(deadly)


@pytest.mark.parametrize(("deadly", "state"), [("e", "failed"), ("", "done")])
def test_a_killed_worker_fails_a_cell_of_several_shares_once(job, monkeypatch, deadly, state):
    monkeypatch.setattr(runner, "ProcessPoolExecutor", PoolOfThreads)
    monkeypatch.setattr(PoolOfThreads, "deadly", {deadly})
    assert shares_of(parts=2, cells=1, jobs=2) == 2
    assert states(run_cells([cell("e", parts=2)], job, jobs=2)) == [state]


@pytest.mark.slow
def test_processes_share_the_cells_of_a_question(job):
    """Real cells of Q4 in two processes; the second call finds all records."""
    data = str(real_file("filtering", "TwoDGrid30.mat").parents[1])
    small = replace(job, data=data, smoke=True)
    cells = cells_of("q4", smoke=True)
    assert states(run_cells(cells, small, jobs=2)) == ["done"] * 3
    assert states(run_cells(cells, small, jobs=2)) == ["kept"] * 3
    scores = json.loads((job.results / "q4" / "ceilings.s0.json").read_text())["metrics"]
    assert scores["low: polynomial of D − A, test R²"] > 0.99


@pytest.mark.parametrize(
    ("parts", "cells", "jobs", "shares"),
    [(400, 1, 3, 3), (10, 12, 8, 2), (10, 30, 4, 1), (1, 2, 8, 1), (3, 1, 8, 3)],
)
def test_few_cells_are_cut_into_shares(parts, cells, jobs, shares):
    assert shares_of(parts, cells, jobs) == shares


def test_a_share_computes_its_own_parts_and_ends(tmp_path):
    computed = []

    def compute(part):
        computed.append(part)
        return part.upper()

    parts = {part: (part,) for part in "abcde"}
    with pytest.raises(ShareEndsError):
        Job(tmp_path, share=(1, 3)).kept_parts(parts, compute)
    assert computed == ["b", "e"]
    assert Job(tmp_path).kept_parts(parts, compute) == list("ABCDE")
    assert computed == ["b", "e", "a", "c", "d"]


def test_a_share_that_fails_leaves_it_to_the_cell_to_say_so(job):
    def run(own):
        own.kept_parts({"first": (1,), "second": (0,)}, lambda number: 1 / number)
        return measured()

    faulty = cell(run=run, parts=2)
    for index in range(2):
        assert run_share(faulty, replace(job, share=(index, 2))) == ("shared", "")
    assert (faulty.folder(job.work) / "first.json").exists()
    (outcome,) = run_cells([faulty], job)
    assert outcome.state == "failed"
    assert "ZeroDivisionError" in outcome.reason


@pytest.mark.slow
def test_processes_share_the_parts_of_a_cell(job):
    """Pairs of BREC in two processes and in one."""
    data = str(real_file("expressivity", "brec_v3_pairs.g6.gz").parents[1])
    small = replace(job, data=data, smoke=True)
    brec = cells_of("power", smoke=True)[:1]
    assert states(run_cells(brec, small, jobs=2)) == ["done"]
    folder = brec[0].folder(small.work)
    names = {path.name for path in folder.glob(ATTEMPTS.replace(".", "*."))}
    assert names == {ATTEMPTS, *(ATTEMPTS.replace(".", f"-{index}.") for index in range(2))}
    alone = replace(small, work=job.work / "alone", results=job.results / "alone")
    assert states(run_cells(brec, alone)) == ["done"]
    shared, single = (brec[0].record(each.results) for each in (small, alone))
    assert shared.metrics == single.metrics
    assert shared.seconds > 0


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """Killed, it cannot tell them."""
    program = f"""
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from g2n2_paper.runner import _start_worker

def work():
    Path({str(tmp_path / "worker")!r}).write_text(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    ProcessPoolExecutor(1, get_context("spawn"), _start_worker, (1,)).submit(work)
    time.sleep(60)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    parent = subprocess.Popen([sys.executable, str(path)])
    written = tmp_path / "worker"
    deadline = time.monotonic() + 60
    while not (written.exists() and written.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    worker = int(written.read_text())
    parent.kill()
    parent.wait()
    state = Path(f"/proc/{worker}/stat")
    try:
        while time.monotonic() < deadline and state.exists() and ") Z" not in state.read_text():
            time.sleep(0.05)
        assert time.monotonic() < deadline
    finally:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


@pytest.mark.slow
def test_ctrl_c_keeps_the_work_and_the_same_command_ends_it(tmp_path):
    """A run of MUTAG stopped within a fold; its epochs are not done twice."""
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    command = [
        sys.executable, "-m", "g2n2_paper", "q3", "--smoke", "--device", "cpu", "--data", data,
        "--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("work/q3/*/whole-1.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    kept = {path.name: path.read_text() for path in tmp_path.glob("work/q3/*/whole-1.json")}
    if process.returncode == 130:
        assert "the same command continues" in out
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    record = CellRecord.read(tmp_path / "results" / "q3" / "MUTAG-G2N2.s0.json")
    assert json.loads(kept["whole-1.json"])["curve"] == record.detail["test curves"][0]
    assert len(record.detail["nested"]) == 2
