"""Files that are there whole or not at all."""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from g2n2 import atomic_files
from g2n2.atomic_files import check_output, holder, make_folder, replace_file, write_output
from g2n2.errors import DataError


def test_the_old_content_stays_until_the_new_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    replace_file(path, b"old")

    def half(file, content):
        file.write(content[:2])
        raise OSError("pulled the plug")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "put", half)
        with pytest.raises(OSError, match="plug"):
            replace_file(path, b"new content")
    assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_bytes() == b"old"
    replace_file(path, b"new content")
    assert path.read_bytes() == b"new content"


def test_what_was_there_can_be_kept(tmp_path):
    path, before = tmp_path / "a", tmp_path / "b"
    replace_file(path, b"1", before)
    assert not before.exists()
    replace_file(path, b"2", before)
    assert (path.read_bytes(), before.read_bytes()) == (b"2", b"1")


def test_many_may_write_a_shared_file_at_once(tmp_path):
    path = tmp_path / "a"
    contents = [bytes([65 + k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: replace_file(path, content, shared=True), contents * 4))
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_is_written_through(tmp_path):
    target, link = tmp_path / "kept" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to(target)
    for content in (b"new", b"newer"):
        replace_file(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    target.unlink()
    replace_file(link, b"made again")
    assert link.is_symlink()
    assert target.read_bytes() == b"made again"
    assert sorted(os.listdir(tmp_path)) == ["kept", "link"]


def test_a_fifo_gets_the_content_and_stays(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    content = b"x" * 300_000  # more than a pipe holds at a time
    while not got:
        try:
            replace_file(fifo, content)
            break
        except OSError:  # the reader has not come yet
            continue
    reader.join()
    assert got == [content]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_nobody_reads_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="nobody reads it"):
        write_output(tmp_path / "fifo", b"x")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_device_is_written_to_and_stays(tmp_path):
    before = os.stat("/dev/null")
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for path in (atomic_files.Path("/dev/null"), link):
        replace_file(path, b"x")
    assert os.stat("/dev/null").st_rdev == before.st_rdev
    assert link.is_symlink()


@pytest.mark.parametrize("to_file", [True, False])
@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "link"])
def test_standard_output_is_written_to(tmp_path, to_file, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = (
        "from pathlib import Path\n"
        "from g2n2.atomic_files import write_output\n"
        "print('before')\n"
        f"write_output(Path({str(tmp_path / name)!r}), b'content\\n')\n"
        "print('after')\n"
    )
    target = tmp_path / "target"
    with open(target, "wb") as file:
        file.write(b"first\n")
        file.flush()
        inode = os.fstat(file.fileno()).st_ino
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=file if to_file else subprocess.PIPE,
            check=True,
        )
    said = b"before\ncontent\nafter\n"
    assert target.read_bytes() == b"first\n" + (said if to_file else b"")
    assert to_file or done.stdout == said
    assert target.stat().st_ino == inode
    assert os.path.islink("/dev/stdout")


def test_an_open_file_of_another_process_is_refused(tmp_path):
    with open(tmp_path / "held", "wb") as file:
        file.write(b"its own")
        file.flush()
        other = subprocess.Popen(["sleep", "600"], stdout=file)
    try:
        with pytest.raises(DataError, match="another process has it open; name a file"):
            write_output(Path(f"/proc/{other.pid}/fd/1"), b"content")
    finally:
        other.kill()
        other.wait()
    assert (tmp_path / "held").read_bytes() == b"its own"


def test_a_dead_process_is_not_named_as_the_holder(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    path = tmp_path / "holder"
    named = {"host": socket.gethostname(), "command": "g2n2", "since": "now"}
    path.write_text(json.dumps({**named, "process": dead.pid}))
    assert holder(path) == "another process"
    path.write_text(json.dumps({**named, "process": os.getpid()}))
    assert holder(path) == f"process {os.getpid()} on {socket.gethostname()} (g2n2) since now"


def test_folders_and_sockets_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    before = sorted(os.listdir(tmp_path))
    for name, what in (("folder", "folder"), ("link", "folder"), ("socket", "socket")):
        with pytest.raises(DataError, match=f"it is a {what}"):
            write_output(tmp_path / name, b"x")
        with pytest.raises(DataError, match=f"it is a {what}"):
            check_output(tmp_path / name)
    server.close()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_dash_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="name a file, or /dev/stdout"):
        write_output(Path("-"), b"x")
    assert not os.listdir(tmp_path)


def test_folders_are_made_below_the_working_folder_only(tmp_path, monkeypatch):
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(work)
    write_output(atomic_files.Path("a/b/c.txt"), b"x")
    assert (work / "a" / "b" / "c.txt").read_bytes() == b"x"
    make_folder(work / "d" / "e")
    make_folder(elsewhere / "run")
    assert (elsewhere / "run").is_dir()
    for path in (elsewhere / "typo" / "c.txt", atomic_files.Path("../elsewhere/typo/c.txt")):
        with pytest.raises(DataError, match="does not exist; make it first"):
            write_output(path, b"x")
        with pytest.raises(DataError, match="does not exist; make it first"):
            check_output(path)
    with pytest.raises(OSError, match="does not exist; make it first"):
        make_folder(elsewhere / "typo" / "run")
    (work / "out").symlink_to(elsewhere / "typo")
    with pytest.raises(DataError, match="does not exist; make it first"):
        write_output(work / "out" / "c.txt", b"x")
    assert sorted(os.listdir(elsewhere)) == ["run"]
