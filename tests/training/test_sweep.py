"""Sweeps: what is tried, what is kept, what happens after a crash."""

import json
import os
import sys
import warnings

import pytest

from g2n2.errors import DataError, G2N2Error
from g2n2.training.shared_study import SharedStudy
from g2n2.training.sweep import Sweep, run_sweep, trial_folder

optuna = pytest.importorskip("optuna", reason="sweeps need Optuna")

SHARED = """
dataset = "regular"
target = ["triangle"]
limit = 60
epochs = 1
layers = 1
batch = 16
threads = 1
device = "cpu"
options = { count = 60, nodes = 8 }
"""


def sweep(tmp_path, varied):
    path = tmp_path / "search.toml"
    path.write_text(SHARED + "[sweep]\n" + varied)
    return Sweep.read(path)


def test_every_combination_once_and_resumed_without_repeating(tmp_path, monkeypatch):
    monkeypatch.setattr("g2n2.training.session.draw", lambda *_: ["picture"])
    plan = sweep(tmp_path, 'width = [2, 4]\ngrammar = ["r-G_L1", "GNNML1"]\n')
    said = []
    where = tmp_path / "sweep.db", tmp_path / "runs", said.append
    first = run_sweep(plan, 4, *where)
    assert first.headers == ("trial", "width", "grammar", "result", "folder")
    combinations = {row[1:3] for row in first.rows}
    assert combinations == {(w, g) for w in "24" for g in ("r-G_L1", "GNNML1")}
    results = [
        json.loads((folder / "result.json").read_text()) for folder in (tmp_path / "runs").iterdir()
    ]
    assert len(results) == 4
    values = [float(row[3].split()[2]) for row in first.rows]
    assert values == sorted(values)
    assert str(first.best) == first.rows[0][4]
    said.clear()
    again = run_sweep(plan, 10, *where)
    assert again.rows == first.rows
    assert said == []


def test_a_trial_cut_off_is_taken_up(tmp_path, monkeypatch):
    plan = sweep(tmp_path, "width = [2, 3, 4]\nseed = [0, 1, 2]\n")
    tried = []

    def crash(config, folder):
        tried.append((config.width, config.seed, folder))
        if len(tried) == 2:
            raise KeyboardInterrupt
        return float(config.width + config.seed), "validation MAE 1"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", crash)
    where = tmp_path / "sweep.db", tmp_path / "runs", lambda _: None
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, 4, *where)
    finished = run_sweep(plan, 4, *where)
    assert tried[2] == tried[1]
    assert len(finished.rows) == 4
    assert finished.rows[0][4] == str(min(tried, key=lambda t: t[0] + t[1])[2])


def test_ranges_are_respected(tmp_path, monkeypatch):
    plan = sweep(
        tmp_path, "rate = { low = 1e-4, high = 1e-2, log = true }\nwidth = { low = 2, high = 4 }\n"
    )
    seen = []

    def note(config, folder):
        seen.append((config.rate, config.width))
        return 1.0, "validation MAE 1"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", note)
    run_sweep(plan, 2, tmp_path / "s.db", tmp_path / "runs", lambda _: None)
    run_sweep(plan, 5, tmp_path / "s.db", tmp_path / "runs", lambda _: None)
    assert len(set(seen)) == 5
    assert all(1e-4 <= rate <= 1e-2 and width in (2, 3, 4) for rate, width in seen)


def test_a_sweep_of_bad_trials_ends(tmp_path, monkeypatch):
    plan = sweep(tmp_path, "width = { low = 2, high = 400 }\n")

    def fail(config, folder):
        raise DataError("no such data")

    monkeypatch.setattr("g2n2.training.sweep.train_trial", fail)
    with pytest.raises(
        DataError, match="3 trials failed one after the other; the last: no such data"
    ):
        run_sweep(plan, 50, tmp_path / "s.db", tmp_path / "runs", lambda _: None)


def test_a_combination_that_fails_is_tried_once_in_a_call_and_again_in_the_next(
    tmp_path, monkeypatch
):
    plan = sweep(tmp_path, "width = [2, 3, 4]\n")
    tried, said, bad = [], [], [3, 4]

    def train(config, folder):
        tried.append(config.width)
        if config.width == bad[0]:
            raise DataError("too wide")
        return (float("nan") if config.width == bad[1] else 1.0), "validation MAE nan"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", train)
    where = tmp_path / "s.db", tmp_path / "runs", said.append
    assert len(run_sweep(plan, 5, *where).rows) == 1
    assert tried == [2, 3, 4]
    assert "  failed: too wide" in said
    assert any("by which it cannot be compared" in line for line in said)
    bad[:] = [0, 0]
    assert len(run_sweep(plan, 5, *where).rows) == 3
    assert tried == [2, 3, 4, 3, 4]


@pytest.mark.parametrize("varied", ["width = [2, 3, 4]", "width = { low = 2, high = 400 }"])
def test_a_trial_that_others_took_over_counts_once(tmp_path, monkeypatch, varied):
    """Its process was asleep: others found no heartbeat, failed the trial and queued it again."""
    plan, said, tried = sweep(tmp_path, varied + "\n"), [], []

    def train(config, folder):
        tried.append(folder)
        if len(tried) == 2:
            other = SharedStudy(plan.name, tmp_path / "s.db")
            (mine,) = other.trials("running")
            other.study.tell(mine.number, state=optuna.trial.TrialState.FAIL)
            other.retry(mine.number)
        return 1.0, "validation MAE 1"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", train)
    finished = run_sweep(plan, 3, tmp_path / "s.db", tmp_path / "runs", said.append)
    assert "  another sweep took over the trial: its heartbeat failed" in said
    assert len(finished.rows) == 3
    assert len(tried) == 4
    assert tried[2] == tried[1]


def test_a_trial_of_a_process_that_died_before_its_first_heartbeat_is_not_waited_for(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("g2n2.training.sweep.train_trial", lambda *_: (1.0, "validation MAE 1"))
    plan = sweep(tmp_path, "width = [2, 3]\n")
    dead = SharedStudy(plan.name, tmp_path / "s.db")
    dead.study.enqueue_trial({"width": 2})
    with pytest.warns(UserWarning, match="Heartbeat"):
        dead.study.ask()
    finished = run_sweep(plan, 2, tmp_path / "s.db", tmp_path / "runs", lambda _: None)
    assert sorted(row[1] for row in finished.rows) == ["2", "3"]


def test_a_storage_lost_on_the_way_is_said(tmp_path, monkeypatch):
    def train(config, folder):
        (tmp_path / "s.db").write_bytes(b"junk" * 5000)
        return 1.0, "validation MAE 1"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", train)
    with pytest.raises(DataError, match=r"keeps the trials no longer .*the same command goes on"):
        run_sweep(sweep(tmp_path, "width = [2]\n"), 1, tmp_path / "s.db", tmp_path / "runs", print)


def test_ctrl_c_while_a_result_is_written_down_is_ctrl_c(tmp_path, monkeypatch):
    plan, tried = sweep(tmp_path, "width = [2]\n"), []

    def press(*_):
        raise KeyboardInterrupt

    def train(config, folder):
        tried.append(folder)
        if len(tried) == 1:
            patched.setattr(optuna.samplers.TPESampler, "after_trial", press)
            patched.setattr(optuna.storages.RDBStorage, "set_trial_state_values", press)
        return 1.0, "validation MAE 1"

    monkeypatch.setattr("g2n2.training.sweep.train_trial", train)
    monkeypatch.setattr("g2n2.training.shared_study.MISSED", 1)
    where = tmp_path / "s.db", tmp_path / "runs", lambda _: None
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        run_sweep(plan, 1, *where, heartbeat=1)
    assert len(run_sweep(plan, 1, *where, heartbeat=1).rows) == 1
    assert tried[0] == tried[1]


def test_the_best_run_may_be_on_another_machine(tmp_path, monkeypatch):
    plan = sweep(tmp_path, "width = [2]\n")
    monkeypatch.setattr("g2n2.training.sweep.train_trial", lambda *_: (1.0, "validation MAE 1"))
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")
    there = run_sweep(plan, 1, tmp_path / "s.db", tmp_path / "there", lambda _: None)
    assert there.host == "node-7"
    there.best.mkdir()
    (there.best / "config.json").touch()
    assert run_sweep(plan, 1, tmp_path / "s.db", tmp_path / "here", print).host == ""


def test_another_sweep_in_the_same_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("g2n2.training.sweep.train_trial", lambda *_: (1.0, "validation MAE 1"))
    where = tmp_path / "s.db", tmp_path / "runs", lambda _: None
    run_sweep(sweep(tmp_path, "width = [2]\n"), 1, *where)
    with pytest.raises(DataError, match="another sweep called search"):
        run_sweep(sweep(tmp_path, "width = [3]\n"), 1, *where)


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        ("", "has no table [sweep] that says what to vary"),
        ("wdith = [1]", "varies 'wdith', which is no setting; did you mean width"),
        ("epochs = [1, 2]", "epochs is both a setting"),
        ("width = 3", "should be a list of values, or"),
        ("width = { low = 3 }", "should be a list of values, or"),
        ("width = { low = 3, high = 1 }", "should be a list of values, or"),
        ("width = { low = 'a', high = 3 }", "should be a list of values, or"),
        ("rate = { low = 0.1, high = inf }", "should be a list of values, or"),
        ("dropout = { low = 0.0, high = 0.5, log = true }", "above 0 for log"),
        ("width = { low = 4, high = 1000000000 }", "width must be at most"),
        ("baseline = ['GIN', 'GCN']\ngrammar = ['L1', 'L3']", "in place of its grammar: leave out"),
        ("width = ['a']", "width in the sweep should be a whole number"),
        ("width = [3, 'a']", "width in the sweep should be a whole number"),
        ("grammar = ['r-G_L1', 'nope']", "no grammar is called 'nope'"),
    ],
)
def test_bad_sweeps_are_refused_by_name(tmp_path, varied, message):
    with pytest.raises(G2N2Error) as caught:
        sweep(tmp_path, varied + "\n")
    assert message in str(caught.value)


def test_a_grammar_may_be_tried_beside_baselines(tmp_path):
    found = sweep(tmp_path, 'baseline = ["", "GIN"]\ngrammar = ["r-G_L1"]\n').combinations()
    assert [one["baseline"] for one in found] == ["", "GIN"]


def test_the_same_values_have_the_same_folder():
    assert trial_folder("r", {"a": 1, "b": 2}) == trial_folder("r", {"b": 2, "a": 1})
    assert trial_folder("r", {"a": 1}) != trial_folder("r", {"a": 2})


@pytest.mark.parametrize(
    "storage", ["junk.db", "folder", "nowhere/sweep.db", "other.db", "fifo", "junk.db/sweep.db"]
)
def test_a_storage_that_cannot_be_one_is_refused_with_the_next_move(storage, tmp_path):
    import sqlite3

    (tmp_path / "junk.db").write_bytes(b"no database at all\n" * 100)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("create table studies (a int)")
    plan = Sweep("s", {"dataset": "regular"}, {"width": [2, 4]})
    for address in (tmp_path / storage, f"sqlite:///{tmp_path / storage}"):
        with pytest.raises(DataError, match=r"cannot keep the trials .*name another --storage"):
            run_sweep(plan, 1, address, tmp_path / "runs", note=print)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("sqlite://", "is lost with the process; name a file"),
        ("sqlite:///:memory:", "is lost with the process; name a file"),
        ("mongodb://me:hush@host/db", "is no database that is known: name a file, sqlite:///FILE"),
        ("postgresql://me:hush@host:port/db", "is no database that is known"),
        ("postgresql://me:hu@sh@host/db", "an @ in a password is written %40"),
        ("oracle://me:hush@host/db", "needs a driver for Python"),
        ("postgresql://me:hush@127.0.0.1:1/db?password=hush", "check that the server runs"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_and_its_password_never_said(storage, message):
    with pytest.raises(DataError) as caught:
        SharedStudy("s", storage)
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)
    assert "sh@" not in str(caught.value)


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DataError, match=r'needs psycopg: pip install "g2n2\[postgres\]"'):
        SharedStudy("s", "postgresql://me@host/db")


@pytest.mark.parametrize("varied", ["devices = [1, 2]", "width = [2]"])
def test_a_trial_is_one_process(tmp_path, monkeypatch, varied):
    monkeypatch.setenv("WORLD_SIZE", "1" if "devices" in varied else "2")
    with pytest.raises(DataError, match="start one g2n2 sweep for each GPU"):
        run_sweep(sweep(tmp_path, varied), 1, tmp_path / "s.db", tmp_path / "runs", print)
    assert not (tmp_path / "s.db").exists()


def test_warnings_of_optuna_are_left_to_others(tmp_path):
    kind = optuna.exceptions.ExperimentalWarning
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        SharedStudy("mine", tmp_path / "sweep.db").take_over()
        assert not [one for one in shown if issubclass(one.category, kind)]
        warnings.warn("of another study", kind, stacklevel=1)
        assert shown[-1].category is kind
