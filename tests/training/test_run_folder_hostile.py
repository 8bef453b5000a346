"""Run folders without checksums whose files say what they should not: messages, no tracebacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from g2n2.errors import DataError
from g2n2.training.checkpoint import MANIFEST
from g2n2.training.run import Run
from g2n2.training.session import train_config
from small_runs import no_pictures, small_config, small_graphs

pytest.importorskip("lightning.fabric", reason="training needs lightning")

GRAPHS = small_graphs()
CONFIG = small_config(grammar="GNNML1", epochs=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    with no_pictures():
        train_config(CONFIG, folder, graphs=GRAPHS)
    (folder / MANIFEST).unlink()
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


CASES = [
    ("data.json", ("scaling", "mean"), ["x", "y"], r"data\.scaling\.mean\[0\] should be a finite"),
    ("data.json", ("scaling", "deviation"), [0, 1], "a deviation other than 0"),
    ("data.json", ("scaling", "mean"), [1.0], "for each of 2 columns"),
    ("data.json", ("scaling",), None, r"data\.scaling should be a table, got None"),
    ("data.json", ("columns",), [], "there are no columns"),
    ("data.json", ("columns",), [{"name": "y"}], r"data\.columns\[0\] has no unit"),
    ("data.json", ("level",), "graf", r"data\.level should be graph or node or edge, got 'graf'"),
    ("data.json", ("node_names",), 3, r"data\.node_names should be a list, got 3"),
    ("split.json", ("test",), [10**6], r"split\.test\[0\] should be a whole number from 0 to 49"),
    ("split.json", ("test",), [-1], r"split\.test\[0\] should be a whole number from 0 to 49"),
    ("split.json", ("train",), "all", r"split\.train should be a list, got 'all'"),
    ("config.json", ("seed",), 2**64, "seed must be at most"),
    ("config.json", ("layers",), 10**6, "layers must be at most 256"),
    ("config.json", (), [1], "config should be a table, got"),
]


def put(folder: Path, name: str, keys: tuple[str, ...], value: Any) -> None:
    path = folder / name
    said = json.loads(path.read_text())
    if not keys:
        path.write_text(json.dumps(value))
        return
    place = said
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(said))


def use(folder: Path) -> None:
    """Everything that reads the files."""
    run = Run(folder, "cpu")
    str(run)
    run.predict(GRAPHS)
    run.evaluate("test", GRAPHS)


@pytest.mark.parametrize(("name", "keys", "value", "message"), CASES)
def test_the_field_is_named_and_what_is_allowed(name, keys, value, message, folder):
    put(folder, name, keys, value)
    with pytest.raises(DataError, match=message):
        use(folder)
