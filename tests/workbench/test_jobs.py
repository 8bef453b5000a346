"""Computations in processes: progress, cancelling, faults, and results that are kept."""

import asyncio
import os
import pickle
import subprocess
import sys

import pytest

from g2n2.language.operations import OPERATIONS, Operation
from g2n2.language.parsing import parse
from g2n2.language.registry import registered
from g2n2.workbench import jobs as jobs_module
from g2n2.workbench.jobs import JobFailed, Jobs
from small_jobs import broken, counting, dying, endless, known_operations, refusing


@pytest.fixture
def run():
    """Runs a coroutine function with a fresh `Jobs`."""

    def in_loop(steps):
        async def whole():
            jobs = Jobs(at_once=2)
            try:
                return await steps(jobs)
            finally:
                jobs.close()

        return asyncio.run(whole())

    return in_loop


def test_a_result_comes_from_another_process_with_progress_and_is_kept(run):
    seen = []

    async def steps(jobs):
        first = await jobs.run(counting, 3, progress=lambda *said: seen.append(said))
        return first, await jobs.run(counting, 3, progress=lambda *said: seen.append(said))

    first, second = run(steps)
    assert first == second != os.getpid()
    assert seen == [(0.0, "step 0"), (1 / 3, "step 1"), (2 / 3, "step 2")]


def test_of_many_results_the_latest_are_kept(run, monkeypatch):
    monkeypatch.setattr(jobs_module, "_KEPT_RESULTS", 2)
    asked = []

    async def steps(jobs):
        for number in (1, 2, 3, 2, 3, 1):
            computed = []
            await jobs.run(counting, number, progress=lambda *_, done=computed: done.append(1))
            asked.append((number, bool(computed)))

    run(steps)
    assert asked == [(1, True), (2, True), (3, True), (2, False), (3, False), (1, True)]


def test_cancelling_ends_the_process_and_frees_its_place(run):
    async def steps(jobs):
        for _ in range(3):  # one more than there are places
            begun = asyncio.Event()
            task = asyncio.create_task(
                jobs.run(endless, progress=lambda *_, begun=begun: begun.set())
            )
            await asyncio.wait_for(begun.wait(), 60)
            (process,) = jobs.running
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(process.join, 20)
            assert not process.is_alive()
            assert not jobs.running
        return await jobs.run(counting, 1, progress=lambda *_: None)

    assert run(steps)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (refusing, "no such grammar"),
        (broken, "a fault of the workbench stopped this (ZeroDivisionError)"),
        (dying, "ended without a result"),
    ],
)
def test_a_fault_is_one_line_without_traceback(run, function, message):
    with pytest.raises(JobFailed) as caught:
        run(lambda jobs: jobs.run(function, progress=lambda *_: None))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_computation_without_end_is_stopped(run, monkeypatch):
    monkeypatch.setattr(jobs_module, "LIMIT_SECONDS", 0.5)
    with pytest.raises(JobFailed, match=r"stopped after 0\.5 seconds"):
        run(lambda jobs: jobs.run(endless, progress=lambda *_: None))


def test_registered_operations_are_known_there(run):
    column = Operation("column", "column", "ab->a1", meaning="sums of rows")
    with registered(column):
        known = run(lambda jobs: jobs.run(known_operations, progress=lambda *_: None))
    assert known == {*OPERATIONS, "column"}


def test_terms_of_another_process_equal_ours():
    program = (
        "import pickle, sys; from g2n2.language.parsing import parse; "
        "sys.stdout.buffer.write(pickle.dumps(parse('1ᵀ(A²⊙A)1')))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        sent = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True, env=environment
        ).stdout
        assert pickle.loads(sent) == parse("1ᵀ(A²⊙A)1")
        assert hash(pickle.loads(sent)) == hash(parse("1ᵀ(A²⊙A)1"))
