"""What a cell keeps between slices: damaged files, two processes at one cell, the clock."""

import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from g2n2.experiments import kept
from g2n2.experiments.cell import Cell
from g2n2.experiments.kept import Clock, Places, keep, read_kept
from g2n2.experiments.record import Record
from g2n2.experiments.running import Settings, run_cells

sys.path.insert(0, str(Path(__file__).parent))
import counting_cells
from counting_cells import at_once, counting


@pytest.fixture
def settings(tmp_path):
    return Settings(results=tmp_path / "results", work=tmp_path / "work")


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", "\x00", '"ten"'])
def test_a_damaged_file_is_as_good_as_none(tmp_path, text):
    path = tmp_path / "fold-1.json"
    assert read_kept(path, float) is None
    path.write_text(text)
    assert read_kept(path, float) is None
    keep(path, 87.5)
    assert read_kept(path, float) == 87.5


HOLD = """
import sys
from pathlib import Path
from g2n2.experiments.kept import held
with held(Path(sys.argv[1])) as mine:
    print("mine" if mine else "taken", flush=True)
    sys.stdin.read()
"""


def test_a_cell_another_process_is_at_is_left_alone(settings):
    cell = at_once("a")
    cell.path(settings.work).parent.mkdir(parents=True)
    folder = cell.folder(settings.work)
    words = [sys.executable, "-c", HOLD, str(folder.with_name(f"{folder.name}.lock"))]
    with subprocess.Popen(words, stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout.readline() == "mine\n"
        (outcome,) = run_cells([cell], settings)
        assert (outcome.state, str(folder) in outcome.why) == ("left out", True)
        assert not folder.exists()
        other.kill()  # whoever is killed lets go
    (outcome,) = run_cells([cell], settings)
    assert outcome.state == "complete"


def stopped_once(seconds):
    """A cell that is interrupted in its first slice."""

    def run(given):
        begun = time.monotonic()
        time.sleep(seconds)
        if not (given.work / "begun").exists():
            (given.work / "begun").touch()
            raise KeyboardInterrupt
        made = counting_cells.record("a", 0, counting_cells.PLANNED)
        return Record(**{**vars(made), "seconds": given.seconds(begun)})

    return Cell("q1", "a", 0, "smoke", run)


def test_the_time_of_a_slice_that_was_interrupted_counts(settings):
    cell = stopped_once(0.2)
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], settings)
    run_cells([cell], settings)
    assert Record.read(cell.path(settings.results)).seconds >= 0.4


def test_a_clock_goes_on_from_the_record_where_its_folder_knows_nothing(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(kept.time, "monotonic", lambda: now[0])
    clock = Clock(tmp_path, known=50.0)
    now[0] += kept.EVERY / 2
    clock.tick()
    assert not any(tmp_path.iterdir()), "a moment ago is not worth a write"
    now[0] += kept.EVERY / 2
    clock.tick()
    assert Clock(tmp_path, known=0.0).spent == 50.0 + kept.EVERY
    assert Clock(tmp_path, known=99.0).spent == 99.0, "the record was written later"
    for text in ("half a num", "NaN", "1e999", "-3", "9" * 400, "[1]"):
        (tmp_path / "wall_seconds").write_text(text)
        assert Clock(tmp_path, known=7.0).spent == 7.0


@pytest.mark.parametrize(
    "text", ["{", "[[]]", '[["ab"]]', "3", '{"a": 1}', '[{"device": NaN}]', "[" * 100_000]
)
def test_places_that_cannot_be_understood_are_none(tmp_path, text):
    (tmp_path / "places.json").write_text(text)
    assert Places(tmp_path).earlier == []


def test_a_place_is_written_down_once_in_a_slice(tmp_path):
    for device in ("A", "A", "B"):
        places = Places(tmp_path)
        for _ in range(2):
            places.note(lambda device=device: {"device": device})
    assert [one["device"] for one in Places(tmp_path).earlier] == ["A", "A", "B"]


def test_a_full_disk_costs_one_cell_and_no_traceback(settings, monkeypatch):
    write = Record.write

    def refuse(self, folder):
        if self.cell == "a":
            raise OSError(28, os.strerror(28), str(folder / "a.json"))
        return write(self, folder)

    monkeypatch.setattr(Record, "write", refuse)
    outcomes = run_cells([at_once("a"), at_once("b")], settings)
    assert [outcome.state for outcome in outcomes] == ["failed", "complete"]
    assert "a.json: No space left on device" in outcomes[0].why


def test_what_a_cell_said_of_its_failure_goes_with_a_later_success(settings):
    cell = counting("a")
    run_cells([cell], settings)
    count = cell.folder(settings.work) / "count"
    kept_count = count.read_text()
    count.write_text("not a number")
    (outcome,) = run_cells([cell], settings)
    log = Path(outcome.why.rpartition("see ")[2])
    assert log.is_file()
    count.write_text(kept_count)
    run_cells([cell], settings)
    assert not log.exists()
