"""Every named dataset loads by its name, and the table tells the truth about it."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from g2n2.data.benchmarks import generate_counting
from g2n2.data.catalogue import DATASETS, Dataset, find_dataset, load_dataset
from g2n2.errors import DataError

GENERATED = ("csl", "regular", "counting-generated")


@pytest.mark.parametrize("row", DATASETS, ids=lambda row: row.name)
def test_the_table_tells_the_truth(row: Dataset) -> None:
    if row.name == "qm9":
        pytest.skip("built in minutes; its own tests count it")
    if row.name == "counting-generated":
        assert inspect.signature(generate_counting).parameters["count"].default == row.graphs
        return
    if row.name not in GENERATED and not os.environ.get("G2N2_DATA"):
        pytest.skip("needs the benchmark files in the folder $G2N2_DATA names")
    data = load_dataset(row.name)
    assert data.name.lower() in (row.name, f"{row.name}-surrogate-train")
    assert len(data) == row.graphs
    if "class" in row.task:
        assert len(data.columns[0].classes) == int(row.task.split()[0])
    else:
        columns = len(data.columns)
        number = "" if columns == 1 else f"{columns} "
        level = "node " if data.level == "node" else ""
        assert row.task == f"{number}{level}regression{'s' * (columns > 1)}"


def test_generated_sets_need_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert {row.name for row in DATASETS if row.how == "generated"} == set(GENERATED)
    assert len(load_dataset("csl")) == 150
    assert len(load_dataset("regular", options={"count": 10, "nodes": 8})) == 10
    assert len(load_dataset("counting-generated", options={"count": 5})) == 5


def test_names_are_read_generously() -> None:
    assert find_dataset("IMDB_BINARY").name == "imdb-binary"
    assert find_dataset(" Ptc-MR ").name == "ptc_mr"
    assert len({row.name for row in DATASETS}) == len(DATASETS) == 16


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mutagg", r"did you mean mutag\?"),
        ("imdb", "did you mean imdb-multi or imdb-binary|did you mean imdb-binary or imdb-multi"),
        ("xyzzy", r"no dataset 'xyzzy': expected one of qm9, zinc, .* or a path"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(name)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("mutag", "fold", r"mutag has no option 'fold': .*; did you mean folds\?"),
        ("mutag", "name_or_path", "has no option 'name_or_path'"),
        ("exp", "seed", "has no option 'seed': expected none"),
        ("regular", "size", "expected count, nodes, degree, seed"),
    ],
)
def test_unknown_options(name: str, option: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(name, options={option: 1})


def test_the_data_folder_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "named").mkdir()
    with pytest.raises(DataError, match=str(tmp_path / "named")):
        load_dataset("exp", tmp_path / "named")


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from g2n2.data import archives, benchmarks, catalogue, files, qm9, tu, reading, splits;"
        "catalogue.load_dataset('csl');"
        "print([m for m in ('torch', 'scipy', 'sklearn', 'pandas', 'rdkit') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
