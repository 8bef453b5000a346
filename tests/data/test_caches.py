"""Two processes that need the same cache: one builds it, the other waits and then reads it."""

from __future__ import annotations

import multiprocessing
import time
import zipfile
from pathlib import Path

import pytest

from cache_processes import need_cache
from g2n2.atomic_files import sole_builder
from g2n2.errors import DataError


@pytest.mark.parametrize(("kind", "content"), [("qm9", "130,831 molecules"), ("tu", "2")])
def test_a_cache_is_built_once(tmp_path: Path, kind: str, content: str) -> None:
    with zipfile.ZipFile(tmp_path / "TINY.zip", "w") as archive:
        archive.writestr("TINY/TINY_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n")
        archive.writestr("TINY/TINY_graph_indicator.txt", "1\n1\n2\n2\n")
        archive.writestr("TINY/TINY_graph_labels.txt", "0\n1\n")
    context = multiprocessing.get_context("spawn")
    builder, waiting = (
        context.Process(target=need_cache, args=(kind, tmp_path), daemon=True) for _ in range(2)
    )

    def said(process: multiprocessing.process.BaseProcess) -> str:
        log = tmp_path / f"{process.pid}.log"
        return log.read_text() if log.exists() else ""

    built = tmp_path / "built"
    builder.start()
    while not built.exists():
        assert builder.is_alive()
        time.sleep(0.01)
    waiting.start()
    while "; waiting for it" not in said(waiting):
        assert builder.is_alive()
        assert waiting.is_alive()
        time.sleep(0.01)
    (tmp_path / "go").touch()
    for process in (builder, waiting):
        process.join()
        assert process.exitcode == 0
        assert said(process).splitlines()[-1] == content
    assert built.read_text().split() == [str(builder.pid)]
    assert f"is being made by process {builder.pid} on " in said(waiting)
    assert not list((tmp_path / "cache").rglob(".*")), "no lock is left"


def test_a_cache_that_cannot_be_written_is_said_before_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match=r"cannot write .*name a place that can be written"):
            sole_builder(folder / "qm9.cache").__enter__()
