"""Two processes that need the same cache: one builds it, the other waits and then reads it."""

from __future__ import annotations

import multiprocessing
import time
import zipfile
from pathlib import Path

import pytest

from g2n2.atomic_files import sole_builder
from g2n2.errors import DataError
from run_processes import need_cache


@pytest.mark.parametrize(("kind", "content"), [("qm9", "130,831 molecules"), ("tu", "2")])
def test_a_cache_is_built_once(tmp_path: Path, kind: str, content: str) -> None:
    with zipfile.ZipFile(tmp_path / "TINY.zip", "w") as archive:
        archive.writestr("TINY/TINY_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n")
        archive.writestr("TINY/TINY_graph_indicator.txt", "1\n1\n2\n2\n")
        archive.writestr("TINY/TINY_graph_labels.txt", "0\n1\n")
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=need_cache, args=(kind, tmp_path), daemon=True) for _ in range(2)
    ]
    for process in processes:
        process.start()

    def said(process: multiprocessing.process.BaseProcess) -> str:
        log = tmp_path / f"{process.pid}.log"
        return log.read_text() if log.exists() else ""

    built = tmp_path / "built"
    while not (built.exists() and any("; waiting for it" in said(one) for one in processes)):
        assert all(process.is_alive() for process in processes)
        assert not built.exists() or len(built.read_text().split()) < 2
        time.sleep(0.01)
    (builder,) = built.read_text().split()
    (tmp_path / "go").touch()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert built.read_text().split() == [builder]
    assert all(said(process).splitlines()[-1] == content for process in processes)
    (waiting,) = (process for process in processes if str(process.pid) != builder)
    assert f"is being made by process {builder} on " in said(waiting)
    assert not list((tmp_path / "cache").rglob(".*")), "no lock is left"


def test_a_cache_that_cannot_be_written_is_said_before_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match=r"cannot write .*name a place that can be written"):
            sole_builder(folder / "qm9.cache").__enter__()
