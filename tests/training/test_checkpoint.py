"""Checkpoints: damaged, hostile, foreign, and disks that refuse."""

from __future__ import annotations

import errno
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from g2n2.errors import DataError
from g2n2.training.checkpoint import CHECKPOINT, FORMAT, PREVIOUS, load_checkpoint, save_checkpoint


def content(step: int) -> dict[str, Any]:
    return {"progress": {"step": step}, "model": {"w": torch.arange(100.0) + step}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the checkpoints of steps 1 (the previous) and 2."""
    for step in (1, 2):
        save_checkpoint(tmp_path, content(step))
    return tmp_path


def step_of(folder: Path) -> tuple[int, list[str]]:
    found, troubles = load_checkpoint(folder)
    assert found is not None
    assert torch.equal(found["model"]["w"], torch.arange(100.0) + found["progress"]["step"])
    return found["progress"]["step"], troubles


class Payload:
    """Runs code when unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_the_newest_is_read_and_the_one_before_is_kept(folder: Path) -> None:
    assert step_of(folder) == (2, [])
    os.replace(folder / PREVIOUS, folder / CHECKPOINT)
    assert step_of(folder) == (1, [])


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) == (None, [])


def test_other_users_can_read_what_the_umask_lets_them(folder: Path) -> None:
    plain = folder / "plain"
    plain.write_bytes(b"")
    assert (folder / CHECKPOINT).stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_one_falls_back(folder: Path, share: float) -> None:
    whole = (folder / CHECKPOINT).read_bytes()
    (folder / CHECKPOINT).write_bytes(whole[: int(len(whole) * share)])
    step, troubles = step_of(folder)
    assert step == 1
    assert len(troubles) == 1
    assert troubles[0].startswith(f"{CHECKPOINT} is damaged (")


def test_no_flipped_byte_gives_other_numbers(folder: Path) -> None:
    whole = (folder / CHECKPOINT).read_bytes()
    noticed = 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (folder / CHECKPOINT).write_bytes(damaged)
        step, _ = step_of(folder)  # the same numbers as before, or those of the one before
        noticed += step == 1
    assert noticed > 50  # the rest hit padding
    weights = whole.index(content(2)["model"]["w"].numpy().tobytes())
    damaged = bytearray(whole)
    damaged[weights + 5] ^= 1
    (folder / CHECKPOINT).write_bytes(damaged)
    assert step_of(folder)[0] == 1


def test_the_window_between_two_renames(folder: Path) -> None:
    """Killed after the old one is put aside and before the new one has its name."""
    os.replace(folder / CHECKPOINT, folder / PREVIOUS)
    (folder / f".{CHECKPOINT}.part").write_bytes(b"whole or not, it has no name")
    assert step_of(folder) == (2, [])


def test_both_broken_is_an_error_that_names_both(folder: Path) -> None:
    for name in (CHECKPOINT, PREVIOUS):
        (folder / name).write_bytes(b"nonsense")
    with pytest.raises(
        DataError, match=rf"no checkpoint in .*{CHECKPOINT} is damaged.*{PREVIOUS} is dam"
    ):
        load_checkpoint(folder)


def test_a_newer_format_is_not_passed_over(folder: Path) -> None:
    torch.save({"format": FORMAT + 1}, folder / CHECKPOINT)
    with pytest.raises(DataError, match="newer g2n2; upgrade"):
        load_checkpoint(folder)


def test_another_file_of_torch_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / CHECKPOINT)
    with pytest.raises(DataError, match="is no checkpoint of g2n2"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("wrapped", [True, False], ids=["torch.save", "pickle"])
def test_a_hostile_pickle_is_refused_and_does_not_run(folder: Path, wrapped: bool) -> None:
    mark = folder / "mark"
    hostile = {"format": FORMAT, "model": Payload(mark)}
    if wrapped:
        torch.save(hostile, folder / CHECKPOINT)
    else:
        (folder / CHECKPOINT).write_bytes(pickle.dumps(hostile))
    assert step_of(folder)[0] == 1
    (folder / PREVIOUS).unlink()
    with pytest.raises(DataError, match="never unpickles" if wrapped else "is damaged"):
        load_checkpoint(folder)
    assert not mark.exists()
    if wrapped:  # the payload is a real one
        torch.load(folder / CHECKPOINT, weights_only=False)
        assert mark.exists()


def test_a_compressed_archive_is_refused_before_it_unfolds(folder: Path) -> None:
    with zipfile.ZipFile(folder / CHECKPOINT, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10_000_000))
    step, troubles = step_of(folder)
    assert step == 1
    assert "it is compressed" in troubles[0]


@pytest.mark.parametrize(
    ("call", "number", "advice"),
    [
        ("fsync", errno.ENOSPC, "free space"),
        ("fsync", errno.EDQUOT, "free space"),
        ("replace", errno.EACCES, "can be written"),
    ],
)
def test_a_disk_that_refuses_leaves_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, advice: str
) -> None:
    before = {name: (folder / name).read_bytes() for name in (CHECKPOINT, PREVIOUS)}

    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(DataError, match=advice) as caught:
            save_checkpoint(folder, content(3))
    assert os.strerror(number) in str(caught.value)
    assert f"and try again; go on: g2n2 train --resume {folder}" in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    save_checkpoint(folder, content(3))
    assert step_of(folder) == (3, [])


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="check that the folder can be written"):
        save_checkpoint(tmp_path / "file" / "run", content(1))
