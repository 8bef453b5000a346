"""Graphs enter rightly, and every malformed one is refused in words."""

import gzip
import sys
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from g2n2.errors import DataError
from g2n2.graphs import (
    adjacency,
    is_simple,
    parse_graph6,
    read_graph,
    read_graph6_file,
    to_graph6,
)

PATH3 = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@settings(max_examples=60)
@given(n=st.integers(1, 70), p=st.floats(0, 1), seed=st.integers(0, 2**16))
def test_graph6_agrees_with_networkx_both_ways(n: int, p: float, seed: int) -> None:
    graph = nx.gnp_random_graph(n, p, seed=seed)
    text = nx.to_graph6_bytes(graph, header=False).decode().strip()
    assert np.array_equal(parse_graph6(text), nx.to_numpy_array(graph))
    assert to_graph6(graph) == text


@pytest.mark.parametrize("n", [62, 63, 300])
def test_graph6_of_one_and_four_characters_of_order(n: int) -> None:
    cycle = nx.cycle_graph(n)
    assert np.array_equal(parse_graph6(to_graph6(cycle)), nx.to_numpy_array(cycle))


def test_graph6_of_eight_characters_of_order_is_measured_before_it_is_allocated() -> None:
    # 2 ** 24 nodes would be 2 PiB; the length shows the fault first.
    with pytest.raises(DataError, match="declares 16777216 nodes"):
        parse_graph6("~~?@????")


def test_graph6_header_and_one_node() -> None:
    assert np.array_equal(parse_graph6(">>graph6<<@"), np.zeros((1, 1)))


def test_adjacency_keeps_weights_directions_and_node_order() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(["c", "a"])
    graph.add_edge("a", "c", weight=-2.5)
    graph.add_edge("c", "b")
    expected = [[0.0, 0.0, 1.0], [-2.5, 0.0, 0.0], [0.0, 0.0, 0.0]]  # rows c, a, b
    assert np.array_equal(adjacency(graph), expected)


@pytest.mark.parametrize("values", [PATH3, PATH3.tolist(), PATH3.astype(bool), "Bg"])
def test_adjacency_is_float64_and_read_only(values: object) -> None:
    matrix = adjacency(values)
    assert matrix.dtype == np.float64
    assert not matrix.flags.writeable
    assert np.array_equal(matrix, PATH3)


def test_adjacency_does_not_share_memory_with_its_input() -> None:
    values = np.zeros((2, 2))
    matrix = adjacency(values)
    values[0, 1] = 1
    assert not matrix.any()


BAD_GRAPHS: list[tuple[object, str]] = [
    (nx.Graph(), "networkx graph has no nodes"),
    (np.zeros((0, 0)), "adjacency matrix has no nodes"),
    ("?", "'\\?' is not graph6: it has no nodes"),
    (np.zeros((2, 3)), r"got shape \[2, 3\], expected \[n, n\]"),
    ([[0, 1], [1]], "rows of unequal length"),
    ([1, 2, 3], r"got shape \[3\]"),
    ([[0, float("nan")], [0, 0]], r"entry \(0, 1\) of the adjacency matrix is nan"),
    ([[0, 0], [float("inf"), 0]], r"entry \(1, 0\) of the adjacency matrix is inf"),
    ([["a", "b"], ["c", "d"]], "expected a networkx graph"),
    (np.zeros((2, 2), dtype=complex), "complex128"),
    (None, "got NoneType"),
    (nx.Graph([(0, 1, {"weight": "heavy"})]), "'weight' of the networkx graph is not a number"),
    (nx.Graph([(0, 1, {"weight": float("nan")})]), r"entry \(0, 1\)"),
    ("", "empty text where a graph6 string was expected"),
    (";Fa@x^", "is incremental sparse6.*copyg -g"),
    ("C 1", "character ' ' at position 1"),
    ("Cé", "character 'é' at position 1"),
    ("D?", "declares 5 nodes and has 1 characters of edges, expected 2"),
    ("C~~", "declares 4 nodes and has 2 characters of edges, expected 1"),
    ("~?", "announces 3 characters for the number of nodes, got 1"),
    ("~~?@", "announces 6 characters for the number of nodes, got 2"),
    ("Bh", "3 padding bits are not all 0"),
]


@pytest.mark.parametrize(("graph", "message"), BAD_GRAPHS, ids=range(len(BAD_GRAPHS)))
def test_bad_graph_is_refused(graph: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        adjacency(graph)


@pytest.mark.parametrize("matrix", [[[1.0]], [[0, 1], [0, 0]], [[0, 2], [2, 0]]])
def test_graph6_refuses_what_it_cannot_hold(matrix: list[list[float]]) -> None:
    assert not is_simple(adjacency(matrix))
    with pytest.raises(DataError, match="simple undirected graphs only"):
        to_graph6(matrix)


@pytest.mark.parametrize("name", ["many.g6", "many.g6.gz"])
def test_graph6_file_with_header_and_blank_lines(tmp_path: Path, name: str) -> None:
    content = b">>graph6<<C~\n\nBg\r\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    k4, path3 = read_graph6_file(path)
    assert np.array_equal(k4, 1 - np.eye(4))
    assert np.array_equal(path3, PATH3)


def test_graph6_file_names_the_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.g6"
    path.write_text("C~\nC\n")
    with pytest.raises(DataError, match=r"bad\.g6:2: 'C' is not graph6"):
        read_graph6_file(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.g6", b"", "holds no graph"),
        ("header.g6", b">>graph6<<\n", "holds no graph"),
        ("cut.g6.gz", gzip.compress(b"C~\n" * 50, mtime=0)[:-9], "it is cut short"),
        ("plain.g6.gz", b"C~\n", "it is damaged"),
        ("binary.g6", b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_broken_graph6_file_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_graph6_file(tmp_path / name)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        read_graph6_file(tmp_path / "none.g6")
    with pytest.raises(DataError, match="is a folder"):
        read_graph6_file(tmp_path)


def test_read_graph_takes_text_and_one_graph_files(tmp_path: Path) -> None:
    (tmp_path / "one.g6").write_text("Bg\n")
    assert np.array_equal(read_graph("Bg"), PATH3)
    assert np.array_equal(read_graph(tmp_path / "one.g6"), PATH3)
    assert len(read_graph(to_graph6(nx.path_graph(200)))) == 200  # longer than a file name may be


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no/such/file", "no file 'no/such/file'"),
        ("graph.g6", "no file 'graph.g6'"),
        ("Bgg", "no file of that name, so read as a graph: 'Bgg'"),
        ("", "empty text"),
    ],
)
def test_read_graph_refuses(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_graph(text)


def test_a_graph_too_large_for_a_matrix_is_refused_before_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(40_000)))
    with pytest.raises(DataError, match=r"long\.txt has 40,001 nodes; .* up to 32,768"):
        read_graph(path)
    with pytest.raises(DataError, match="the networkx graph has 40,000 nodes"):
        adjacency(nx.path_graph(40_000))


def test_read_graph_refuses_a_folder_and_a_file_of_many(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_graph(tmp_path)
    (tmp_path / "two.g6").write_text("Bg\nBw\n")
    with pytest.raises(DataError, match="holds 2 graphs, expected one"):
        read_graph(tmp_path / "two.g6")


@pytest.mark.parametrize(
    ("content", "directed", "expected"),
    [
        ("0 1\n1 2\n", False, PATH3),
        ("10,2\n2,33", False, [[0, 1, 1], [1, 0, 0], [1, 0, 0]]),  # integers in numeric order
        ("# comment\nx y # why\ny z\n", False, PATH3),  # names in order of appearance
        ("source,target,weight\na, b, 2\n", False, [[0, 2], [2, 0]]),
        ("a b 1\nb a 1\n", False, [[0, 1], [1, 0]]),  # both directions stored
        ("a b 1\nb a 3\n", True, [[0, 1], [3, 0]]),
        ("0 1\n2 2 0\n", False, [[0, 1, 0], [1, 0, 0], [0, 0, 0]]),  # a node without edges
        ("5 5 0\n", False, [[0]]),
        ("0\t0\t1.5\n", False, [[1.5]]),
    ],
)
def test_edge_list(tmp_path: Path, content: str, directed: bool, expected: ArrayLike) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(content)
    assert np.array_equal(read_graph(path, directed=directed), expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no edge"),
        ("# nothing\n", "holds no edge"),
        ("0 1\n1 2 heavy\n", r"graph\.csv:2: weight 'heavy' is not a finite number"),
        ("0,1,nan\n", r"graph\.csv:1: weight 'nan' is not a finite number"),
        ("0 1 2 3\n", "got 4 field"),
        ("Bg\n", r"got 1 field.*a graph6 file is named \.g6"),
        ("0,,1\n", "got 3 field"),
        ("0 1 2\n1 0 3\n", "has weight 3 here and 2 before.*directed=True"),
    ],
)
def test_bad_edge_list_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "graph.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_graph(path)


# --- other objects and other text


@settings(max_examples=40)
@given(n=st.integers(1, 40), p=st.floats(0, 1), seed=st.integers(0, 2**16))
def test_sparse6_and_bytes_agree_with_networkx(n: int, p: float, seed: int) -> None:
    graph = nx.gnp_random_graph(n, p, seed=seed)
    expected = nx.to_numpy_array(graph)
    for header in (True, False):
        assert np.array_equal(adjacency(nx.to_sparse6_bytes(graph, header=header)), expected)
        assert np.array_equal(adjacency(nx.to_graph6_bytes(graph, header=header)), expected)


def test_digraph6() -> None:
    # The example of nauty's formats.txt: arcs 0→2, 0→4, 3→1, 3→4.
    expected = np.zeros((5, 5))
    expected[[0, 0, 3, 3], [2, 4, 1, 4]] = 1
    for text in ("&DI?AO?", "digraph6:&DI?AO?", ">>digraph6<<&DI?AO?"):
        assert np.array_equal(adjacency(text), expected)


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("CCO", [(0, 1), (1, 2)]),
        ("C=CO", [(0, 1), (1, 2)]),  # a double bond counts 1
        ("C1CC1", [(0, 1), (1, 2), (2, 0)]),
        ("smiles:CC", [(0, 1)]),
        ("SMILES: [NH4+].[Cl-]", []),
        ("c1ccccc1", [(i, (i + 1) % 6) for i in range(6)]),
    ],
)
def test_smiles(text: str, edges: list[tuple[int, int]]) -> None:
    pytest.importorskip("rdkit")
    matrix = adjacency(text)
    expected = np.zeros_like(matrix)
    for u, v in edges:
        expected[u, v] = expected[v, u] = 1
    assert np.array_equal(matrix, expected)


def test_text_that_is_graph6_and_smiles_is_graph6_and_says_so() -> None:
    with pytest.warns(UserWarning, match="'CF' is read as graph6.*'smiles:CF' for the molecule"):
        claw = adjacency("CF")
    assert sorted(claw.sum(0)) == [1, 1, 1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(adjacency("graph6:CF"), claw)
        assert len(adjacency("C~")) == 4  # no SMILES
        assert len(adjacency(nx.to_graph6_bytes(nx.star_graph(3)))) == 4  # has its header


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CC(", ["'CC(' is not graph6", "Nor is it a SMILES", "smiles:"]),
        ("CC(", ["parse it; nor a name such as C6 or K1,4. Start with graph6:, smiles: or name:"]),
        ("smiles:C1CC", ["'C1CC' is not a SMILES"]),
        ("smiles:", ["is not a SMILES: it is empty"]),
        ("graph6:CCO", ["'CCO' is not graph6"]),
        ("sparse6:Bw", ["'Bw' is not sparse6"]),
        (":", ["is not sparse6: it ends too early"]),
        (":~~~~~~~~", ["has 68,719,476,735 nodes; a graph is made a matrix up to 32,768"]),
        ("&", ["'&' is not digraph6"]),
        ("&D", ["declares 5 nodes and has 0 characters of edges, expected 5"]),
        ("&A\x7f", ["is not digraph6"]),
        ("&A~", ["padding bits"]),
    ],
)
def test_text_that_is_no_graph(text: str, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        adjacency(text)
    assert all(word in str(caught.value) for word in words)


def test_smiles_without_rdkit_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    for text in ("CCO", "smiles:CCO"):
        with pytest.raises(DataError, match=r"not installed \(pip install 'g2n2\[chem\]'\)"):
            adjacency(text)


def test_objects_that_hold_a_graph(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    chem = pytest.importorskip("rdkit.Chem")
    (tmp_path / "one.g6").write_text("Bg\n")
    matrix, tensor = PATH3.astype(float), torch.tensor(PATH3)
    index = tensor.nonzero().T
    for graph in (
        sparse.csr_array(matrix), sparse.coo_matrix(PATH3), tensor, tensor.bool(), tensor.bfloat16(),
        tensor.float().requires_grad_(), tensor.to_sparse(), tensor.float().to_sparse_csr(),
        data.Data(edge_index=index, num_nodes=3), data.Batch.from_data_list([data.Data(edge_index=index, num_nodes=3)]),
        chem.MolFromSmiles("CCC"), tmp_path / "one.g6", b"Bg\n", nx.path_graph(3),
    ):  # fmt: skip
        assert np.array_equal(adjacency(graph), PATH3)
        assert not adjacency(graph).flags.writeable


def test_pyg_data_keeps_weights_directions_and_isolated_nodes() -> None:
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    index = torch.tensor([[0, 0, 1], [1, 1, 0]])
    graph = data.Data(edge_index=index, edge_weight=torch.tensor([1.0, 2.0, 5.0]), num_nodes=3)
    assert np.array_equal(adjacency(graph), [[0, 3, 0], [5, 0, 0], [0, 0, 0]])
    assert np.array_equal(adjacency(data.Data(x=torch.zeros(2, 1))), np.zeros((2, 2)))
    one = data.Data(edge_index=index, num_nodes=3)
    for own in (torch.tensor([5]), torch.tensor(0), 0, "a", [0, 0, 0]):  # the user's, not PyG's
        assert np.array_equal(
            adjacency(data.Data(edge_index=index, num_nodes=3, batch=own)), adjacency(one)
        )
    for bad, words in (
        (data.Batch.from_data_list([one, one]), "is a batch of 2 graphs, expected one"),
        (data.Data(edge_index=index, num_nodes=1), "names nodes 0 to 1"),
        (data.Data(edge_index=index.T, num_nodes=3), r"shape \[3, 2\]"),
        (data.Data(edge_index=index.float(), num_nodes=3), "dtype float64, expected whole numbers"),
        (data.Data(edge_index=index, edge_weight=torch.ones(2), num_nodes=3), "2 entries"),
    ):
        with pytest.raises(DataError, match=words):
            adjacency(bad)


def test_what_is_accepted_is_listed() -> None:
    with pytest.raises(DataError, match=r"got object.*networkx graph, a PyG Data.*SMILES"):
        adjacency(object())  # type: ignore[arg-type]


def test_the_command_lines_graph_may_be_a_molecule() -> None:
    pytest.importorskip("rdkit")
    assert len(read_graph("CCO")) == 3
    assert len(read_graph("smiles:C/C=C/C")) == 4
    with pytest.raises(DataError, match=r"no file 'C/C=C/C'.*smiles:C/C=C/C"):
        read_graph("C/C=C/C")
