"""Files that are there whole or not at all."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from g2n2 import whole_files
from g2n2.whole_files import replace_file


def test_the_old_content_stays_until_the_new_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    replace_file(path, b"old")

    def half(file, content):
        file.write(content[:2])
        raise OSError("pulled the plug")

    with monkeypatch.context() as patch:
        patch.setattr(whole_files, "put", half)
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
