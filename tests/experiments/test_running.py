"""The driver: what is complete is skipped, what is partial goes on, what fails stops nothing."""

import errno
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from g2n2.errors import DataError
from g2n2.experiments import kept, packing, running, slices
from g2n2.experiments.cell import Cell, NothingYetError
from g2n2.experiments.questions import cells_of, choose
from g2n2.experiments.record import EARLIER, Record
from g2n2.experiments.running import Settings, failures, run_cells
from g2n2.experiments.slices import after, places_of
from g2n2.training.config import RunConfig
from made_up_records import record as made_up

sys.path.insert(0, str(Path(__file__).parent))
import counting_cells
from counting_cells import at_once, counting, failing


@pytest.fixture
def settings(tmp_path):
    return Settings(results=tmp_path / "results", work=tmp_path / "work")


def states(outcomes):
    return [(outcome.label.split()[1].rstrip(","), outcome.state) for outcome in outcomes]


def test_a_partial_cell_goes_on_and_a_complete_one_is_skipped(settings):
    cell = counting("a/b")
    seen = [states(run_cells([cell], settings))[0][1] for _ in range(5)]
    assert seen == ["partial", "partial", "complete", "kept", "kept"]
    assert (cell.folder(settings.work) / "count").read_text() == "3"
    assert Record.read(cell.path(settings.results)).done == 3


def test_a_record_of_other_settings_is_not_kept_and_its_work_not_gone_on_with(settings):
    old, new = (counting("a", settings={"epochs": epochs}) for epochs in (50, 60))
    made = replace(counting_cells.record("a", 0, counting_cells.PLANNED), config={"epochs": 50})
    made.write(settings.results)
    assert states(run_cells([old], settings)) == [("a", "kept")]
    assert old.folder(settings.work) != new.folder(settings.work)
    assert states(run_cells([new], settings)) == [("a", "partial")]
    assert (new.folder(settings.work) / "count").read_text() == "1"
    before_there_was_such_a_setting = counting("a", settings={"epochs": 50, "passes": 1})
    assert states(run_cells([before_there_was_such_a_setting], settings)) == [("a", "kept")]
    replace(made, config={"dataset": "qm9", "epochs": 50}).write(settings.results)
    assert states(run_cells([before_there_was_such_a_setting], settings)) == [("a", "kept")]
    no_default_of_a_run = counting("a", settings={"epochs": 50, "passes": 9})
    assert states(run_cells([no_default_of_a_run], settings)) == [("a", "partial")]


def test_a_record_planned_with_less_work_is_no_whole_one(settings):
    less = counting_cells.record("a", 0, counting_cells.PLANNED)
    less.write(settings.results)
    assert states(run_cells([counting("a", planned=3)], settings)) == [("a", "kept")]
    assert states(run_cells([counting("a", planned=4)], settings)) == [("a", "partial")]
    seen = []
    more = Cell("q1", "b", 0, "smoke", seen.append, planned=4, goes_on=True)
    replace(less, cell="b").write(settings.results)
    run_cells([more], settings)
    assert [one.done for one in seen[0].known] == [3], "what it holds is gone on from"


def test_what_measures_a_gpu_is_left_out_on_a_cpu(settings):
    cell = at_once("a", needs_gpu=True)
    (outcome,) = run_cells([cell], replace(settings, device="cpu"))
    assert (outcome.state, outcome.why) == ("left out", "it measures a GPU, and none is used here")
    assert not cell.path(settings.results).exists()


def test_workers_find_the_cache_of_qm9_built(settings, monkeypatch):
    built = []
    monkeypatch.setattr("g2n2.data.qm9.qm9_cache", lambda *where: built.append(where))
    monkeypatch.setattr(packing, "absent", lambda *_: "")
    settings = replace(settings, options={"cache": "there"}, data="raw")
    packing._build_shared([counting("a"), counting("b", needs=("MUTAG",))], settings)
    assert not built
    packing._build_shared([counting("a"), counting("b", needs=("qm9",))], settings)
    assert built == [("there", "raw")]
    monkeypatch.setattr(packing, "absent", lambda *_: "it is not here")
    packing._build_shared([counting("b", needs=("qm9",))], settings)
    assert len(built) == 1


def test_a_slice_too_short_for_any_number_is_partial_and_no_failure(settings):
    def run(given):
        raise NothingYetError(50, "epochs")

    (outcome,) = run_cells([Cell("q1", "a", 0, "smoke", run)], settings)
    assert str(outcome) == "q1 a, seed 0: partial, 0 of 50 epochs"
    assert not failures([outcome])


def test_work_of_other_settings_is_no_earlier_slice(settings):
    old = replace(counting_cells.record("a", 0, 1), config={"epochs": 50})
    replace(old, provenance={"commit": "old"}).write(settings.results)
    cell = counting("a", settings={"epochs": 60})
    for _ in range(3):
        run_cells([cell], settings)
    found = Record.read(cell.path(settings.results))
    assert (found.done, EARLIER in found.provenance) == (3, False)


def test_a_longer_run_is_kept_until_a_new_one_has_passed_it(settings):
    """The work folder is gone: the cell starts again, its record does not."""
    counting_cells.record("a", 0, 2).write(settings.results)
    cell = counting("a")
    found = []
    for _ in range(3):
        run_cells([cell], settings)
        found.append(Record.read(cell.path(settings.results)).done)
    assert found == [2, 2, 3]


def test_a_slice_whose_record_was_not_shown_is_not_forgotten(settings):
    """A longer record of other settings stands until the new run has ended."""
    replace(counting_cells.record("a", 0, 2), config={"epochs": 50}).write(settings.results)
    cell = counting("a", settings={"epochs": 60})
    run_cells([cell], settings)
    kept = Record.read(cell.path(cell.folder(settings.work)))
    assert (kept.done, Record.read(cell.path(settings.results)).done) == (1, 2)
    replace(kept, provenance={"device": "GPU"}).write(cell.folder(settings.work))
    for _ in range(2):
        run_cells([cell], settings)
    found = Record.read(cell.path(settings.results))
    assert found.done == 3
    assert [one["device"] for one in found.provenance[EARLIER]] == ["GPU"]


def test_a_work_folder_that_is_a_file_is_said_to_be(settings):
    settings.work.write_text("")
    with pytest.raises(DataError, match=r"work/q1: Not a directory; choose another --work"):
        run_cells([counting("a")], settings)


def test_a_cell_that_fails_stops_no_other(settings):
    cells = [
        failing("data", DataError("the file is not there")),
        failing("bug", ZeroDivisionError("division by zero")),
        at_once("good"),
    ]
    outcomes = run_cells(cells, settings)
    assert states(outcomes) == [("data", "failed"), ("bug", "failed"), ("good", "complete")]
    assert outcomes[0].why == "the file is not there"
    assert outcomes[1].why.startswith("ZeroDivisionError: division by zero; see ")
    log = Path(outcomes[1].why.rpartition("see ")[2])
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize("place", ["results", "work"])
def test_a_damaged_record_costs_its_own_cell_only(settings, place):
    cells = [counting("a"), at_once("b")]
    run_cells(cells[:1], settings)
    folder = settings.results if place == "results" else cells[0].folder(settings.work)
    cells[0].path(folder).write_text('{"question": "q1", ')
    outcomes = run_cells(cells, settings)
    assert states(outcomes) == [("a", "failed"), ("b", "complete")]
    assert str(cells[0].path(folder)) in outcomes[0].why


def test_options_say_where_data_is_and_never_what_a_cell_reads(settings):
    with pytest.raises(DataError, match=r"--option energy_unit: .* known here: cache"):
        run_cells([at_once("a")], replace(settings, options={"energy_unit": "meV"}))
    fine = replace(settings, options={"cache": "somewhere"})
    assert states(run_cells([at_once("a")], fine)) == [("a", "complete")]


def test_results_that_cannot_be_written_are_found_before_any_work(settings):
    settings.results.write_text("a file")
    with pytest.raises(DataError, match=r"nothing can be written to .*choose another --results"):
        run_cells([at_once("a")], settings)
    assert not settings.work.exists()


def test_settings_of_several_runs_are_compared_run_by_run(settings):
    timed = counting("a", settings={"G2N2": RunConfig("qm9", width=32).as_dict()})
    made = counting_cells.record("a", 0, counting_cells.PLANNED)
    replace(made, config={"G2N2": {"dataset": "qm9", "width": 32}}).write(settings.results)
    assert states(run_cells([timed], settings)) == [("a", "kept")]
    replace(made, config={"G2N2": {"dataset": "qm9", "width": 1}}).write(settings.results)
    assert states(run_cells([timed], settings)) == [("a", "partial")]


def test_a_cell_without_its_data_is_left_out_with_the_reason(settings, monkeypatch):
    monkeypatch.setattr(running, "absent", lambda name, *_: f"{name} is not here")
    cells = [at_once("needs", needs=("qm9",)), at_once("free")]
    outcomes = run_cells(cells, settings)
    assert states(outcomes) == [("needs", "left out"), ("free", "complete")]
    assert "qm9 is not here" in str(outcomes[0])


def test_a_cache_that_is_no_file_does_not_bring_qm9(monkeypatch, tmp_path):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    cache = tmp_path / "qm9.cache"
    running.absent.cache_clear()
    assert "--option cache=FILE" in running.absent("qm9", None, str(cache))
    cache.touch()
    running.absent.cache_clear()
    assert running.absent("qm9", None, str(cache)) == ""
    running.absent.cache_clear()


def test_cells_that_do_not_fit_into_the_time_are_not_begun(settings):
    short = replace(settings, minutes=0.002)  # 0.12 s
    outcomes = run_cells([at_once("a", seconds=0.2), at_once("b")], short)
    assert states(outcomes) == [("a", "complete")]


def test_a_slice_is_told_the_shorter_of_both_limits(settings):
    given = []

    def note(slice_):
        given.append(slice_.minutes)
        return counting_cells.record("a", 0, 1)

    cell = replace(counting("a"), run=note)
    run_cells([cell], settings)
    run_cells([cell], replace(settings, cell_minutes=3.0))
    run_cells([cell], replace(settings, cell_minutes=3.0, minutes=2.0))
    assert given[:2] == [0.0, 3.0]
    assert given[2] == pytest.approx(2.0, abs=0.05)


def test_ctrl_c_keeps_what_was_done(settings):
    cells = [counting("a"), failing("stop", KeyboardInterrupt()), counting("b")]
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, settings)
    assert Record.read(cells[0].path(settings.results)).done == 1
    assert not cells[2].path(settings.results).exists()


def test_what_a_killed_cell_has_published_is_its_record(settings):
    def run(given):
        given.publish(counting_cells.record("a", 0, 2))
        raise KeyboardInterrupt

    cell = Cell("q1", "a", 0, "smoke", run)
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], settings)
    assert Record.read(cell.path(settings.results)).done == 2


def killed(done):
    """A cell that keeps something and is killed, or is killed before it has."""

    def run(given):
        given.tell("at work", 0, 3)
        if done:
            given.note()
        raise KeyboardInterrupt

    return Cell("q1", "a", 0, "smoke", run)


def seen_on(settings, monkeypatch, device, cell):
    monkeypatch.setattr(slices, "machine", lambda _: {"device": device})
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], settings)
    monkeypatch.undo()


@pytest.mark.parametrize("done", [True, False], ids=["kept something", "kept nothing"])
def test_slices_that_were_killed_are_told_of_where_they_kept_something(settings, monkeypatch, done):
    for device in ("H100", "H200"):
        seen_on(settings, monkeypatch, device, killed(done))
    cell = counting("a")
    for _ in range(2):
        run_cells([cell], settings)
        record = Record.read(cell.path(settings.results))
        earlier = [one["device"] for one in record.provenance.get(EARLIER, [])]
        assert earlier == (["H100", "H200"] if done else [])


def going_on(given):
    """One unit more than its record says."""
    done = 1 + max((one.done for one in given.known), default=0)
    here = {"device": given.device}
    return replace(counting_cells.record("a", 0, done), provenance=here, seconds=given.spent + 5.0)


def test_a_cell_may_go_on_from_its_record_where_its_work_folder_is_gone(settings):
    cell = Cell("q1", "a", 0, "smoke", going_on, settings={"epochs": 60}, goes_on=True)
    other = replace(counting_cells.record("a", 0, 1), config={"epochs": 50})
    other.write(settings.results)
    assert run_cells([cell], settings)[0].done == 1, "not from one of other settings"
    own = replace(counting_cells.record("a", 0, 1), config={"epochs": 60}, seconds=7.0)
    replace(own, provenance={"device": "GPU"}).write(settings.results)
    elsewhere = replace(settings, work=settings.work.with_name("elsewhere"), device="cpu")
    assert run_cells([cell], elsewhere)[0].done == 2
    record = Record.read(cell.path(settings.results))
    assert [one["device"] for one in record.provenance[EARLIER]] == ["GPU"]
    assert record.seconds == 12.0
    starts_again = replace(cell, goes_on=False)
    again = replace(settings, work=settings.work.with_name("third"), device="cpu")
    assert run_cells([starts_again], again)[0].done == 1
    assert Record.read(cell.path(settings.results)) == record
    alone = Record.read(cell.path(cell.folder(again.work)))
    assert (alone.seconds, EARLIER in alone.provenance) == (5.0, False)


def test_a_record_on_other_data_gives_nothing(settings):
    cell = Cell("q1", "a", 0, "smoke", lambda given: own, goes_on=True)
    old = replace(counting_cells.record("a", 0, 1), data={"set": "old"}, seconds=5000.0)
    replace(old, provenance={"device": "OLD"}).write(settings.results)
    own = replace(counting_cells.record("a", 0, 1), data={"set": "new"}, seconds=5007.0)
    own = replace(own, provenance={"device": "NEW"})
    run_cells([cell], settings)
    record = Record.read(cell.path(settings.results))
    assert (record.provenance, record.seconds) == ({"device": "NEW"}, 7.0)


def test_of_two_records_as_far_neither_place_is_lost(settings):
    def run(given):
        done = max(one.done for one in given.known) + (given.device == "cpu")
        return replace(counting_cells.record("a", 0, done), provenance={"device": given.device})

    cell = Cell("q1", "a", 0, "smoke", run, goes_on=True)
    folder = cell.folder(settings.work)
    folder.mkdir(parents=True)
    for place, device in ((settings.results, "A"), (folder, "B")):
        replace(counting_cells.record("a", 0, 1), provenance={"device": device}).write(place)
    for device, here, others in (("auto", "A", ["B"]), ("cpu", "cpu", ["B", "A"])):
        run_cells([cell], replace(settings, device=device))
        found = Record.read(cell.path(settings.results)).provenance
        assert found["device"] == here
        assert sorted(one["device"] for one in found[EARLIER]) == sorted(others)


def test_what_only_the_own_folder_knows_is_gone_on_from(settings):
    cell = Cell("q1", "a", 0, "smoke", going_on, goes_on=True)
    for done in (1, 2):
        assert run_cells([cell], settings)[0].done == done
    cell.path(settings.results).unlink()
    assert run_cells([cell], settings)[0].done == 3
    assert Record.read(cell.path(settings.results)).done == 3


def test_time_counts_when_something_is_kept(settings, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(kept.time, "monotonic", lambda: now[0])

    def run(given):
        now[0] += 13.0
        given.note()
        raise KeyboardInterrupt

    cell = Cell("q1", "a", 0, "smoke", run)
    monkeypatch.setattr(kept.Clock, "stop", kill_after(kept.Clock.stop))
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], settings)
    assert float((cell.folder(settings.work) / "wall_seconds").read_text()) == 13.0


def kill_after(stop):
    """A clock whose last stop, at the end of a slice, does not happen: the process was killed."""
    times = []

    def stopped(clock):
        times.append(clock)
        if len(times) == 1:
            stop(clock)

    return stopped


def test_a_slice_that_added_nothing_was_nowhere(settings):
    def run(given):
        return replace(counting_cells.record("a", 0, 1), provenance={"device": given.device})

    cell = Cell("q1", "a", 0, "smoke", run, goes_on=True)
    for device in ("auto", "cpu"):
        run_cells([cell], replace(settings, device=device))
    assert Record.read(cell.path(settings.results)).provenance == {"device": "auto"}


def test_a_record_of_another_process_that_came_farther_stays(settings):
    def run(given):
        counting_cells.record("a", 0, 2).write(given.results)
        given.publish(counting_cells.record("a", 0, 1))
        return counting_cells.record("a", 0, 1)

    cell = Cell("q1", "a", 0, "smoke", run)
    run_cells([cell], settings)
    assert Record.read(cell.path(settings.results)).done == 2


def test_what_cannot_be_published_meanwhile_stops_nothing(settings, monkeypatch):
    full = []

    def run(given):
        full.append(True)
        given.publish(counting_cells.record("a", 0, 1))
        full.clear()
        return counting_cells.record("a", 0, 2)

    write = Record.write

    def refused(record, folder):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(record, folder)

    monkeypatch.setattr(Record, "write", refused)
    assert run_cells([Cell("q1", "a", 0, "smoke", run)], settings)[0].done == 2


@pytest.mark.parametrize(
    ("only", "optional", "expected"),
    [
        ((), False, ["single/r2/PPGN", "single/u0/G2N2", "single/r2"]),
        ((), True, ["single/r2/PPGN", "single/r2/PPGN/equal-time", "single/u0/G2N2", "single/r2"]),
        (("u0",), False, ["single/u0/G2N2"]),
        (("r2/PPGN",), True, ["single/r2/PPGN", "single/r2/PPGN/equal-time"]),
        (("single/r2",), True, ["single/r2"]),  # a whole name is that cell alone
        (("single/r2/PPGN/equal-time",), False, ["single/r2/PPGN/equal-time"]),
    ],
)
def test_only_takes_parts_of_names_and_whole_names(only, optional, expected):
    cells = [
        counting("single/r2/PPGN"),
        counting("single/r2/PPGN/equal-time", optional=True),
        counting("single/u0/G2N2"),
        counting("single/r2"),
    ]
    assert [cell.name for cell in choose(cells, only, (), optional)] == expected


def test_only_that_fits_nothing_lists_what_there_is():
    with pytest.raises(DataError, match=r"no cell fits --only 'x'; parts of names: a, b"):
        choose([counting("b/a")], ("x",))
    with pytest.raises(DataError, match="no cell has the seed 5; seeds of these cells: 0"):
        choose([counting("b/a", seed=0)], (), (5,))
    with pytest.raises(DataError, match="every cell that fits is optional: add --optional"):
        choose([counting("b/a", optional=True), counting("b/c")], ("a",), (0,))


def test_an_unknown_question_or_budget_is_named():
    with pytest.raises(DataError, match="no question 'q9'"):
        cells_of("q9", "smoke")
    with pytest.raises(DataError, match="no budget is called 'tiny'"):
        cells_of("q1", "tiny")


SILENT = """
import os, sys, time
from pathlib import Path
from g2n2.experiments import packing, questions
from g2n2.experiments.cell import Cell
from g2n2.experiments.running import Settings, run_cells

questions.QUESTIONS["q1"] = "silent"
WORK = packing._work

def run(given):
    (given.results / f"{os.getpid()}.pid").touch()
    time.sleep(600)

def cells(budget):
    return [Cell("q1", name, 0, "smoke", run) for name in "ab"]

def work(*args):
    WORK(*args)

if __name__ == "__main__":
    import silent
    packing._work = silent.work
    here = Path(__file__).parent
    run_cells(silent.cells("smoke"), Settings(here, here / "work", jobs=2))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "silent.py").write_text(SILENT)
    process = subprocess.Popen([sys.executable, "silent.py"], cwd=tmp_path)
    until = time.monotonic() + 120
    while len(found := list(tmp_path.glob("*.pid"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    living = {int(path.stem) for path in found}
    assert len(living) == 2
    while living and time.monotonic() < until:
        time.sleep(0.05)
        living = {pid for pid in living if Path(f"/proc/{pid}").exists()}
    assert not living, "they would be silent for ten minutes"


def test_workers_run_two_at_a_time_and_one_alone_and_survive_a_death(settings, monkeypatch):
    monkeypatch.setattr(packing, "_work", counting_cells.work)
    cells = counting_cells.cells("smoke")
    outcomes = run_cells(cells, replace(settings, jobs=2))
    assert sorted(states(outcomes)) == [
        ("dies", "failed"),
        ("fails", "failed"),
        ("last", "complete"),
        ("slow/first", "complete"),
        ("slow/second", "complete"),
        ("timing/alone", "complete"),
    ]
    why = {outcome.label.split()[1].rstrip(","): outcome.why for outcome in failures(outcomes)}
    assert why == {"dies": "its process ended with code 7", "fails": "no such thing"}
    first, second, alone = (
        [float(part) for part in (cell.folder(settings.work) / "when").read_text().split()]
        for cell in cells[:3]
    )
    assert max(first[0], second[0]) < min(first[1], second[1])  # beside each other
    assert first[2] != second[2]
    assert alone[0] >= max(first[1], second[1])


def test_a_worker_that_died_idle_costs_no_cell(settings, monkeypatch):
    monkeypatch.setattr(packing, "_work", counting_cells.work)
    started = []
    start = packing._start

    def first_is_dead(given):
        worker = start(given)
        started.append(worker)
        if len(started) == 1:
            worker.process.kill()
            worker.process.join()
        return worker

    monkeypatch.setattr(packing, "_start", first_is_dead)
    cells = [cell for cell in counting_cells.cells("smoke") if cell.name.startswith("slow")]
    outcomes = run_cells(cells, replace(settings, jobs=2))
    assert sorted(state for _, state in states(outcomes)) == ["complete", "complete"]
    assert len(started) == 3


@pytest.mark.parametrize(
    ("wrong", "done"),
    [("folder", 3), ("other cell", 3), ("other cell", 1), ("other cell with other settings", 3)],
)
def test_what_is_no_record_of_the_cell_is_said_before_any_work(settings, wrong, done):
    (mine,) = states(run_cells([at_once("mine")], settings))
    assert mine == ("mine", "complete")
    other = at_once("other", settings={"epochs": 60} if "settings" in wrong else {})
    if wrong == "folder":
        other.path(settings.results).mkdir()
    else:
        made = replace(counting_cells.record("mine", 0, done), config={"epochs": 50})
        made.write(settings.results)
        content = at_once("mine").path(settings.results).read_text()
        other.path(settings.results).write_text(content)
    (outcome,) = run_cells([other], settings)
    assert outcome.state == "failed"
    assert "move it elsewhere" in outcome.why
    assert not other.folder(settings.work).exists()


def test_a_record_says_where_its_earlier_slices_were_run():
    """On other hardware or with other code; a run that starts anew has no earlier slice."""
    made = made_up("q2", "a/b", {}, done=1, planned=3)
    first = replace(made, provenance={**made.provenance, "device": "GPU", "source": "a"})
    second = replace(first, provenance={**first.provenance, "device": "cpu"})
    third = replace(first, provenance={**first.provenance, "device": "cpu", "source": "b"})
    assert after([], first) is first
    assert after(places_of(first), first) is first
    two = after(places_of(first), second)
    assert [slice_["device"] for slice_ in two.provenance["earlier slices"]] == ["GPU"]
    three = after(places_of(after(places_of(two), second)), third)
    told = [(s["device"], s["source"]) for s in three.provenance["earlier slices"]]
    assert told == [("GPU", "a"), ("cpu", "a")]


@pytest.mark.parametrize(("device", "jobs"), [("cuda", 5), ("cpu", 1)])
def test_small_cells_share_a_gpu_unless_told_otherwise(monkeypatch, device, jobs):
    import torch

    monkeypatch.setattr(packing, "device_called", lambda _: torch.device(device))
    assert packing.jobs_for("q3", "auto") == jobs
