"""The commands of `benchmarks/gpu_session.py`: cells and cases exist, time is kept, files come back."""

import importlib.util
import os
import subprocess
import sys
import tarfile
import time
from itertools import pairwise
from pathlib import Path

import pytest

from g2n2_paper.bench.cases import cases_for
from g2n2_paper.runner import cells_of, choose

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_session.py"


@pytest.fixture
def session(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("gpu_session", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SESSION", tmp_path)
    for name in ("DATA", "RESULTS", "WORK", "LOGS"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
        (tmp_path / name.lower()).mkdir()
    return module


def commands(session):
    return [
        command
        for call in session.CALLS.values()
        for stage in call
        for lane in stage.values()
        for command in lane
    ]


def test_what_it_names_is_there(session):
    found = set()
    for command in commands(session):
        what, *words = command
        given = [b for a, b in pairwise(words) if a in ("--only", "--case")]
        if what == "bench":
            assert len(cases_for("cuda", given)) >= len(given) > 0
        elif what == "pytest":
            assert session.MARK in (session.ROOT / words[-1]).read_text()
        elif what.endswith(".py"):
            assert (session.ROOT / what).is_file()
        else:
            assert choose(cells_of(what), given)
        found.add(what)
    assert {"bench", "pytest", "q2", "q3", "power", "molecules"} <= found


def test_a_lane_stops_in_time_and_says_what_it_did_not_begin(session, monkeypatch, capsys):
    words = ["sh", "-c", "echo begun; exec sleep 60"]  # begins at once on a busy machine too
    monkeypatch.setattr(session, "words_of", lambda command, smoke: words)
    monkeypatch.setattr(session, "LEAST", 0.5)
    session.run_lane("a", [["first"], ["second"]], time.monotonic() + 3.0, smoke=False)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("a: code -15")
    assert said[1] == "a: no time for second"
    assert (session.LOGS / "a.txt").read_text() == "begun\n"


def test_fabric_of_the_other_distribution_serves(session, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "SHIMS", tmp_path / "shims")
    session.stand_in_for_lightning()
    fake = tmp_path / "lightning_fabric"
    fake.mkdir()
    (fake / "__init__.py").write_text("Fabric = 'a fabric'\n")
    (fake / "strategies.py").write_text("DDPStrategy = 'a strategy'\n")
    code = "from lightning.fabric import Fabric; "
    code += "from lightning.fabric.strategies import DDPStrategy; print(Fabric, DDPStrategy)"
    path = os.pathsep.join(map(str, (session.SHIMS, tmp_path)))
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout == "a fabric a strategy\n", done.stderr


def test_work_that_is_continued_comes_back_before_compiled_kernels(session, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "ARCHIVE_BYTES", 1000)
    monkeypatch.setattr(session, "ARCHIVES", 2)
    (session.SESSION / "triton").mkdir()
    for number in range(20):
        (session.SESSION / "triton" / f"kernel-{number}").write_bytes(bytes(100))
    for name in ("mu.s0.1", "r2.s0.2"):
        (session.WORK / "q2" / name).mkdir(parents=True)
        (session.WORK / "q2" / name / "config.json").write_bytes(bytes(10))
        (session.WORK / "q2" / name / "checkpoint.pt").write_bytes(bytes(800))
    session.pack_work(tmp_path, "train", 0.0)
    names = []
    for path in sorted(tmp_path.glob("*.tar.gz")):
        with tarfile.open(path) as tar:
            names += tar.getnames()
    cells = {
        f"work/q2/{cell}/{file}"
        for cell in ("mu.s0.1", "r2.s0.2")
        for file in ("config.json", "checkpoint.pt")
    }
    assert cells <= set(names)
    assert any(name.startswith("triton/") for name in names), "in the room that is left"


def test_new_records_logs_and_unfinished_work_come_back(session, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "ARCHIVE_BYTES", 1000)
    monkeypatch.setattr(session, "ROOT", tmp_path / "clone")
    out, before = tmp_path / "out", time.time() - 100
    out.mkdir()
    (session.RESULTS / "q2").mkdir()
    new, old = (session.RESULTS / "q2" / f"{name}.json" for name in ("new", "old"))
    for path in (new, old):
        path.write_text("{}")
    os.utime(old, (before - 100, before - 100))
    (session.LOGS / "mu.txt").write_text("said")
    for name in ("a.s0.1", "b.s0.2", "new.3", "old.4"):
        (session.WORK / "q2" / name).mkdir(parents=True)
        (session.WORK / "q2" / name / "run").write_bytes(bytes(600))
        (session.WORK / "q2" / name / "checkpoint.previous.pt").write_bytes(bytes(10))
    session.pack_records(out, "qm9", before)
    session.pack_work(out, "qm9", before)
    archives = sorted(path.name for path in out.iterdir())
    assert archives == ["qm9-records.tar.gz", *(f"qm9-work-{n}.tar.gz" for n in range(3))]
    with tarfile.open(out / archives[0]) as tar:
        assert sorted(tar.getnames()) == ["logs/mu.txt", "results/q2/new.json"]
    for path in (new, *session.WORK.glob("*/*/*")):
        path.unlink()
    session.collect(out / name for name in archives)
    assert (tmp_path / "clone" / "results" / "q2" / "new.json").read_text() == "{}"
    assert {path.name for path in session.WORK.glob("*/*/*")} == {"run"}
    back = {path.parent.name for path in session.WORK.glob("*/*/run")}
    assert back == {"a.s0.1", "b.s0.2", "old.4"}, "a cell with a new record needs no work"
