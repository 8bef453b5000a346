"""The TU sets have their published figures, features and folds, from a zip, a folder or the net."""

import io
import os
import shutil
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data.tu import load_tu
from g2n2.errors import DataError

# Name, graphs, class sizes by raw label, average nodes and undirected edges, node and edge columns.
PUBLISHED = [
    ("MUTAG", 188, {"-1": 63, "1": 125}, 17.93, 19.79, 7, 4),
    ("PTC", 344, {"0": 192, "1": 152}, 25.56, 25.96, 21, 0),
    ("PTC_MR", 344, {"-1": 192, "1": 152}, 14.29, 14.69, 18, 0),
    ("PROTEINS", 1113, {"1": 663, "2": 450}, 39.06, 72.82, 3, 0),
    ("NCI1", 4110, {"0": 2053, "1": 2057}, 29.87, 32.30, 37, 0),
    ("IMDB-BINARY", 1000, {"0": 500, "1": 500}, 19.77, 96.53, 0, 0),
    ("IMDB-MULTI", 1500, {"0": 500, "1": 500, "2": 500}, 13.00, 65.94, 0, 0),
]
GIN_NAMES = {"IMDB-BINARY": "IMDBBINARY", "IMDB-MULTI": "IMDBMULTI"}


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "nodes", "edges", "node_columns", "edge_columns"),
    PUBLISHED,
)
def test_published_figures(
    name: str,
    graphs: int,
    classes: dict[str, int],
    nodes: float,
    edges: float,
    node_columns: int,
    edge_columns: int,
) -> None:
    path = real_file("tu", f"{name}.zip")
    data = load_tu(name)
    assert (data.name, len(data)) == (name, graphs)
    assert data.sizes.mean() == pytest.approx(nodes, abs=0.0051)
    assert data.edge_counts.mean() / 2 == pytest.approx(edges, abs=0.0051)
    assert data.node_features.shape[1] == len(data.node_names) == node_columns
    assert data.edge_features.shape[1] == len(data.edge_names) == edge_columns
    assert (data.node_features.sum(axis=1) == (node_columns > 0)).all()
    assert not data.directed
    (column,) = data.columns
    assert column.kind == ("binary" if len(classes) == 2 else "multiclass")
    sizes = np.bincount(data.targets[:, 0].astype(int)).tolist()
    assert dict(zip(column.classes, sizes, strict=True)) == classes
    assert not data.splits
    assert data.source["path"] == str(path)


def gin_text(name: str) -> list[list[str]]:
    """The lines of the GIN code's own copy of a set."""
    with zipfile.ZipFile(real_file("tu", "gin_text_format.zip")) as archive:
        gin = GIN_NAMES.get(name, name)
        return [line.split() for line in archive.read(f"{gin}/{gin}.txt").decode().splitlines()]


@pytest.mark.parametrize("name", ["MUTAG", "PTC", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI"])
def test_gin_folds_are_those_of_scikit_learn_on_the_gin_files(name: str) -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="needs g2n2[train]")
    path = real_file("tu", f"{name}.zip")
    lines, labels, sizes, place = gin_text(name), [], [], 1
    while place < len(lines):
        sizes.append(int(lines[place][0]))
        labels.append(int(lines[place][1]))
        place += sizes[-1] + 1
    data = load_tu(name, folds="gin")
    order = np.arange(len(labels))
    if name == "MUTAG":
        with zipfile.ZipFile(path) as archive:
            order = np.loadtxt(io.BytesIO(archive.read("MUTAG/gin_order_to_tu_order.txt")), int)
    assert data.sizes[order].tolist() == sizes
    folds = selection.StratifiedKFold(10, shuffle=True, random_state=0)
    expected = [set(order[test].tolist()) for _, test in folds.split(np.zeros(len(labels)), labels)]
    assert [set(indices.tolist()) for indices in data.splits.values()] == expected


def test_degree_features_follow_the_option() -> None:
    real_file("tu", "IMDB-BINARY.zip")
    value = load_tu("IMDB-BINARY", degree="value")
    degrees = np.concatenate([value.adjacency(i).sum(1) for i in range(len(value))])
    assert value.node_names == ("degree",)
    assert value.node_features[:, 0].tolist() == degrees.tolist()
    one_hot = load_tu("IMDB-BINARY", degree="one-hot")
    assert len(one_hot.node_names) == 65
    numbers = np.array([int(name.removeprefix("degree ")) for name in one_hot.node_names])
    assert (one_hot.node_features @ numbers).tolist() == degrees.tolist()
    assert load_tu("IMDB-BINARY").node_features.shape == (19773, 0)


def test_attributes_are_appended_when_asked_for() -> None:
    path = real_file("tu", "PROTEINS.zip")
    with zipfile.ZipFile(path) as archive:
        raw = np.loadtxt(io.BytesIO(archive.read("PROTEINS/raw/PROTEINS_node_attributes.txt")))
    data = load_tu("PROTEINS", attributes=True)
    assert data.node_features.shape == (43471, 4)
    assert data.node_features[:, 3] == pytest.approx(raw)
    assert data.node_names[3] == "attribute 1"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS"])
def test_same_as_pyg(tmp_path: Path, name: str) -> None:
    pytest.importorskip("torch_geometric", reason="needs g2n2[pyg]")
    from torch_geometric.datasets import TUDataset

    with zipfile.ZipFile(real_file("tu", f"{name}.zip")) as archive:
        archive.extractall(tmp_path)
    data = load_tu(name)
    for index, graph in enumerate(TUDataset(str(tmp_path), name)):
        one = data.select([index])
        assert one.edges.tolist() == graph.edge_index.tolist()
        assert one.node_features.tolist() == graph.x.tolist()
        assert one.targets.item() == graph.y.item()
        if graph.edge_attr is not None:
            assert one.edge_features.tolist() == graph.edge_attr.tolist()


def official_mutag() -> bytes:
    """MUTAG packed as the TUDataset site packs it: no `raw`, no index files, a README."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(real_file("tu", "MUTAG.zip")) as ours,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as official,
    ):
        official.writestr("MUTAG/README.txt", "README for dataset MUTAG")
        for member in ours.namelist():
            if "/raw/" in member:
                official.writestr(member.replace("/raw/", "/"), ours.read(member))
    return buffer.getvalue()


def test_download_is_counted_checked_and_cached(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    content = official_mutag()
    expected = load_tu("MUTAG", folds="gin")
    cache: Path = request.getfixturevalue("alone") / "tu"
    asked = []

    def serve(url: str, **_: Any) -> io.BytesIO:
        asked.append(url)
        return io.BytesIO(content)

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    data = load_tu("MUTAG", folds="gin")
    assert data.edges.tolist() == expected.edges.tolist()
    assert data.splits["fold-7"].tolist() == expected.splits["fold-7"].tolist()
    assert asked == ["https://www.chrsmrrs.com/graphkerneldatasets/MUTAG.zip"]
    assert sorted(path.name for path in cache.iterdir()) == ["MUTAG.zip", "MUTAG.zip.sha256"]
    cached = load_tu("MUTAG")
    assert cached.source["sha256"] == data.source["sha256"]
    assert len(asked) == 1
    (cache / "MUTAG.zip").write_bytes(content + b"\0")
    with pytest.raises(DataError, match="sha256"):
        load_tu("MUTAG")


def test_a_download_with_other_counts_is_refused_and_not_cached(
    monkeypatch: pytest.MonkeyPatch, alone: Path
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("MUTAG/MUTAG_A.txt", "1, 2\n2, 1\n")
        archive.writestr("MUTAG/MUTAG_graph_indicator.txt", "1\n1\n")
        archive.writestr("MUTAG/MUTAG_graph_labels.txt", "1\n")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO(buffer.getvalue()))
    with pytest.raises(DataError, match=r"got 1 graphs, 2 nodes and 1 edges, expected 188, 3371"):
        load_tu("MUTAG")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO(b"<html>"))
    with pytest.raises(DataError, match=r"chrsmrrs\.com.* cannot be read as a zip file"):
        load_tu("MUTAG")
    assert not list(alone.glob("tu/*"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MUTAG", "no network in this test"),
        ("PTC", "not in the TUDataset collection"),
        ("MUTAGG", "did you mean MUTAG"),
        ("no/such folder", "there is no file or folder 'no/such folder'"),
        (Path("nowhere.zip"), "there is no file or folder"),
    ],
)
def test_a_set_that_cannot_be_had(alone: Path, name: str | Path, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tu(name)


def test_an_unpacked_set_is_found_as_a_folder(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, expected = real_file("tu", "MUTAG.zip"), load_tu("MUTAG")
    request.getfixturevalue("alone")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "sets" / "tu")
    (tmp_path / "MUTAG").mkdir()  # an empty folder of that name is not the set
    for data in (
        load_tu("MUTAG", tmp_path / "sets"),
        load_tu("MUTAG", tmp_path / "sets" / "tu"),
        load_tu(tmp_path / "sets" / "tu" / "MUTAG"),
        load_tu(shutil.copy(path, tmp_path / "renamed.zip")),
    ):
        assert data.edges.tolist() == expected.edges.tolist()
    with pytest.raises(DataError, match="no network"):
        load_tu("MUTAG", tmp_path)


@pytest.mark.parametrize("option", [{"folds": "stored"}, {"degree": "log"}])
def test_options_are_checked(option: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="expected one of"):
        load_tu(os.curdir, **option)
