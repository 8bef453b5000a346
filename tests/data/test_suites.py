"""Suites hold what they say, are found where they should be, and broken files are refused."""

import gzip
import hashlib
import urllib.request
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data import suites as suite_files
from g2n2.data.suites import BREC_ARCHIVE, SUITE_NAMES, load_csl, load_exp, load_suite
from g2n2.errors import DataError
from g2n2.graphs import is_simple, to_graph6
from g2n2.power.suites import SameSizePairs, graph6_suite

FOLDER = "expressivity"
FILES = {
    "sr25": "sr251256.g6",
    "exp": "exp_graphsat.npz",
    "brec": "brec_v3_pairs.g6.gz",
}


def serve(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: BytesIO(content))


@pytest.mark.parametrize(
    ("name", "graphs", "pairs"),
    [
        ("atlas", 1252, 557_159),
        ("graph8c", 11_117, 11_117 * 11_116 // 2),
        ("csl", 10, 45),
        ("cfi", 8, 4),
    ],
)
def test_generated_suites_need_no_file(alone: Path, name: str, graphs: int, pairs: int) -> None:
    suite = load_suite(name)
    assert (suite.name, len(suite.graphs), len(suite.pairs)) == (name, graphs, pairs)
    assert all(not matrix.flags.writeable for matrix in suite.graphs)
    assert all(len(suite.graphs[i]) == len(suite.graphs[j]) for i, j in suite.pairs[:50])


def test_graph8c_is_every_connected_graph_of_8_nodes_once() -> None:
    """There are 11,117 (OEIS A001349), and closed walks at the nodes tell all of them apart."""
    stack = np.stack(load_suite("graph8c").graphs)
    assert all(nx.is_connected(nx.from_numpy_array(matrix)) for matrix in stack)
    assert all(is_simple(matrix) for matrix in stack)
    invariants = []
    for matrices in (stack, 1 - np.eye(8) - stack):
        power = matrices
        for _ in range(7):
            power = power @ matrices
            invariants.append(np.sort(np.diagonal(power, axis1=1, axis2=2), axis=1))
    assert len(np.unique(np.concatenate(invariants, axis=1), axis=0)) == 11_117


def test_cfi_suite_names_its_bases() -> None:
    suite = load_suite("cfi")
    assert suite.categories == ("C3", "K4-e", "K2,3", "K4")
    assert [len(suite.graphs[i]) for i, _ in suite.pairs] == [6, 12, 14, 16]


def test_exp_is_600_labelled_pairs() -> None:
    real_file(FOLDER, FILES["exp"])
    suite = load_suite("exp")
    assert (len(suite.graphs), len(suite.pairs)) == (1200, 600)
    assert suite.node_labels is not None
    for matrix, labels in zip(suite.graphs, suite.node_labels, strict=True):
        assert labels.shape == (len(matrix),)
        assert set(labels.tolist()) <= {0, 1}
        assert np.array_equal(matrix, matrix.T)
    edges = sum(matrix.sum() for matrix in suite.graphs) / 2 / len(suite.graphs)
    assert round(edges, 2) == 55.11
    i, j = suite.pairs[0]
    assert not nx.is_isomorphic(*(nx.from_numpy_array(suite.graphs[k]) for k in (i, j)))


def test_brec_has_the_published_table() -> None:
    real_file(FOLDER, FILES["brec"])
    suite = load_suite("brec")
    assert (len(suite.graphs), len(suite.pairs)) == (800, 400)
    orders: dict[str, list[int]] = {}
    for category, (i, j) in zip(suite.categories, suite.pairs, strict=True):
        assert len(suite.graphs[i]) == len(suite.graphs[j])
        assert suite.graphs[i].sum() == suite.graphs[j].sum()
        orders.setdefault(category, []).append(len(suite.graphs[i]))
    table = {
        name: (len(sizes), min(sizes), max(sizes), round(float(np.mean(sizes)), 1))
        for name, sizes in orders.items()
    }
    assert table == {
        "Basic": (60, 10, 10, 10.0),
        "Regular": (100, 7, 35, 19.7),
        "Extension": (100, 10, 19, 10.3),
        "CFI": (100, 18, 198, 81.7),
        "4-Vertex_Condition": (20, 63, 63, 63.0),
        "Distance_Regular": (20, 30, 63, 43.5),
    }


def official_brec(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Lay the base pairs out as `brec_v3.npy` does, with 4 entries of each pair in place of 64."""
    monkeypatch.setattr(suite_files, "BREC_COPIES", 4)
    lines = gzip.decompress(real_file(FOLDER, FILES["brec"]).read_bytes()).decode().split()
    entries = np.array(lines).reshape(400, 1, 2)
    relabelled = entries[:, :, ::-1]
    tests = np.concatenate([entries, relabelled], axis=1).ravel()
    return tests.astype(bytes)


def test_brec_from_the_official_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    expected = load_suite("brec", real_file(FOLDER, FILES["brec"]).parent)
    np.save(tmp_path / "brec_v3.npy", official_brec(monkeypatch))
    request.getfixturevalue("alone")
    suite = load_suite("brec", tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(suite.graphs, expected.graphs, strict=True))


def test_brec_array_of_objects_or_wrong_length_is_refused(tmp_path: Path, alone: Path) -> None:
    np.save(tmp_path / "brec_v3.npy", np.array([b"C~", None], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="without pickle"):
        load_suite("brec", tmp_path)
    np.save(tmp_path / "brec_v3.npy", np.array([b"C~", b"C~"]))
    with pytest.raises(DataError, match=r"as 51200 graph6 strings .*\[2\] of \|S2"):
        load_suite("brec", tmp_path)
    (tmp_path / "brec_v3.npy").write_bytes(b"\x93NUMPY\x01")
    with pytest.raises(DataError, match="truncated"):
        load_suite("brec", tmp_path)


def test_brec_download_keeps_the_base_graphs_only(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    archive, array = BytesIO(), BytesIO()
    np.save(array, official_brec(monkeypatch))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("brec_v3.npy", array.getvalue())
    cache: Path = request.getfixturevalue("alone")
    serve(monkeypatch, archive.getvalue())
    with pytest.raises(DataError, match="sha256"):
        load_suite("brec")
    assert not cache.exists()
    sha256 = hashlib.sha256(archive.getvalue()).hexdigest()
    monkeypatch.setattr(suite_files, "BREC_ARCHIVE", BREC_ARCHIVE._replace(sha256=sha256))
    assert len(load_suite("brec").graphs) == 800
    (stored,) = cache.rglob("*.gz")
    assert stored.name == "brec_v3_pairs.g6.gz"
    monkeypatch.setattr(urllib.request, "urlopen", None)
    assert len(load_suite("brec").graphs) == 800  # now from the cache


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damaged_files_are_refused(
    tmp_path: Path, request: pytest.FixtureRequest, name: str, damage: str
) -> None:
    source = real_file(FOLDER, FILES[name])
    request.getfixturevalue("alone")
    content = bytearray(source.read_bytes())
    if damage == "cut":
        del content[-20:]
    else:
        content[len(content) // 2] ^= 1
    (tmp_path / source.name).write_bytes(content)
    with pytest.raises(DataError, match=r"sha256|gzip"):
        load_suite(name, tmp_path)


def test_brec_lines_in_another_order_are_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lines = gzip.decompress(real_file(FOLDER, FILES["brec"]).read_bytes()).split()
    request.getfixturevalue("alone")
    swapped = b"\n".join([lines[1], lines[0], *lines[2:]])
    (tmp_path / "brec_v3_pairs.g6.gz").write_bytes(gzip.compress(swapped))
    with pytest.raises(DataError, match=r"list of base graphs .* has sha256"):
        load_suite("brec", tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_file_found_nowhere_names_the_folders(alone: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        load_suite(name)
    message = str(caught.value)
    assert FILES[name] in message
    assert str(alone) in message
    assert "$G2N2_DATA" in message
    assert ("no network in this test" in message) is (name != "exp")
    assert not alone.exists()


def test_the_exp_pickle_is_refused(tmp_path: Path, alone: Path) -> None:
    (tmp_path / "GRAPHSAT.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(DataError, match=r"GRAPHSAT\.pkl is a pickle"):
        load_suite("exp", tmp_path)


def test_sr25_download_is_checked_and_cached(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    content = real_file(FOLDER, FILES["sr25"]).read_bytes()
    cache: Path = request.getfixturevalue("alone")
    serve(monkeypatch, content[:-1])
    with pytest.raises(DataError, match="sha256"):
        load_suite("sr25")
    assert not cache.exists()
    serve(monkeypatch, content)
    assert len(load_suite("sr25").graphs) == 15
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["sr251256.g6"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("graph8", r"did you mean graph8c\?"),
        ("sr52", "did you mean sr25"),
        ("qm9", f"expected one of {', '.join(SUITE_NAMES)}"),
        ("", "no suite ''"),
    ],
)
def test_unknown_suite(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_suite(name)


def test_graph6_suite_as_family_and_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "mine.g6"
    path.write_text("C~\nC^\nBg\nBw\nCl\n")
    family = graph6_suite(path)
    assert list(family.pairs) == [(0, 1), (0, 4), (1, 4), (2, 3)]
    with pytest.raises(DataError, match="holds 5 graphs, expected an even number"):
        graph6_suite(path, pairs=True)
    path.write_text("C~\nC^\nBg\nBw\n")
    paired = graph6_suite(path, pairs=True)
    assert list(paired.pairs) == [(0, 1), (2, 3)]
    assert [to_graph6(matrix) for matrix in paired.graphs] == ["C~", "C^", "Bg", "Bw"]


def test_same_size_pairs_are_a_sequence() -> None:
    pairs = SameSizePairs(((0, 2, 5), (1,), (3, 4)))
    listed = [(0, 2), (0, 5), (2, 5), (3, 4)]
    assert list(pairs) == listed
    assert len(pairs) == 4
    assert [pairs[i] for i in range(-4, 4)] == listed + listed
    assert pairs[1:3] == ((0, 5), (2, 5))
    assert (2, 5) in pairs
    for index in (4, -5):
        with pytest.raises(IndexError):
            pairs[index]


def test_merged_counts_pairs_of_equal_value() -> None:
    family = load_suite("csl")
    values = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6]
    assert family.merged(values) == 3 + 1
    paired = load_suite("cfi")
    assert paired.merged([0, 0, 1, 2, 3, 3, 7, 7]) == 3
    # Equal values in different pairs, or in graphs of different size, are not merged pairs.
    atlas = load_suite("atlas")
    by_size = Counter(len(matrix) for matrix in atlas.graphs)
    assert atlas.merged([0] * 1252) == sum(n * (n - 1) // 2 for n in by_size.values())
    with pytest.raises(DataError, match="has 10 graphs, got 3 values"):
        family.merged([0, 1, 2])


SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)


def test_exp() -> None:
    path = real_file(FOLDER, FILES["exp"])
    data = load_exp()
    assert (len(data), int(data.sizes.sum()), int(data.edge_counts.sum())) == (1200, 53336, 132260)
    with np.load(path) as stored:
        assert (data.targets[:, 0] == stored["y"]).all()
        assert (data.node_features.argmax(1) == stored["x"]).all()
    assert (data.node_features.sum(1) == 1).all()
    assert data.sizes.mean() == pytest.approx(44.45, abs=0.005)
    assert data.columns[0].kind == "binary"
    assert data.ids[3] == "pair 1 graph 1"


def test_csl_is_generated() -> None:
    data = load_csl()
    assert (len(data), set(data.sizes.tolist()), set(data.edge_counts.tolist())) == (
        150,
        {41},
        {164},
    )
    assert Counter(data.targets[:, 0].tolist()) == dict.fromkeys(map(float, range(10)), 15)
    assert data.columns[0].classes == tuple(f"skip {skip}" for skip in SKIPS)
    for index in (0, 14, 15, 77, 149):
        skip = SKIPS[int(data.targets[index, 0])]
        expected = nx.circulant_graph(41, [1, skip])
        assert nx.is_isomorphic(nx.from_numpy_array(data.adjacency(index)), expected)
    assert (data.adjacency(0) != data.adjacency(1)).any()
    assert list(data.splits) == [f"fold-{k}" for k in range(1, 6)]
    for indices in data.splits.values():
        assert Counter(data.targets[indices, 0].tolist()) == dict.fromkeys(map(float, range(10)), 3)
    assert (load_csl(seed=1).edges != data.edges).any()
    assert (load_csl(seed=0).edges == data.edges).all()
