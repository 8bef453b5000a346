"""What a user's own data get wrong, and what is said: one table of (source, part of the message)."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.reading import read_graphs
from g2n2.errors import DataError

pytest.importorskip("rdkit", reason="molecules are read with RDKit")

EDGES = "graph,source,target\n1,0,1\n"
GOOD = "id,smiles,logS,note\na,CC,1.5,x y\nb,CCO,2.5,z w\nc,CCC,3.5,u v\n"
ODD = "smiles,y\n" + "CC,1.5\n" * 4 + "CC,>10\n"
WORDS = "smiles,y\n" + "".join(f"CC,word{k}\n" for k in range(9))

# Name and content of a file, options, part of the message.
FILES: list[tuple[str, str | bytes, dict[str, Any], str]] = [
    ("a.csv", "", {}, "is empty; expected a header"),
    ("a.csv", "\n\n", {}, "is empty"),
    ("a.csv", "smiles,y\n", {}, "has a header and no row"),
    ("a.csv", "smiles,y\nCC,1\nCC\n", {}, "line 3: got 1 cells, expected 2"),
    ("a.csv", "smiles,y\nCC,1\nCC\n", {}, "end it with separators where its last values are"),
    (
        "a.csv",
        "# ours\nsmiles,y\nCC,1\n",
        {},
        "header '# ours'; the first line should be the names",
    ),
    ("a.csv", "smiles,y,\nCC,1,note\n", {}, "line 2: got 3 cells, expected 2"),
    ("a.csv", "smiles,y\nCC,1,5\n", {}, "put text that holds a separator in quotes"),
    ("a.csv", 'smiles,y\n"CC,1\nCCO,2\n', {}, "a quote that is never closed"),
    ("a.csv", "smiles,y\n" + "C" * 200_000 + ",1\n", {}, "line 2: field larger than field limit"),
    ("a.csv", "smiles,y,y\nCC,1,2\n", {}, "has two columns 'y'"),
    ("a.csv", "smiles,,y\nCC,1,2\n", {}, "column 2 has no name"),
    ("a.csv", "CCO,1.5\nCC,2.5\n", {}, "numbers where column names are expected"),
    ("a.csv", b"\xff\xfes\0m\0i\0", {}, "is not UTF-8 text (line 1, byte 0)"),
    ("a.csv", b"smiles,y\nCC,\0\n", {}, "holds zero bytes"),
    ("a.csv", "smiles,y\nCC,1\nCé,2\n".encode("latin-1"), {}, "not UTF-8 text (line 3, byte 15)"),
    ("a.csv", b"\x89PNG\r\n\x1a\n", {}, "is not UTF-8 text"),
    ("a.csv.gz", gzip.compress(b"smiles,y\nCC,1\n", mtime=0)[:-9], {}, "is no whole gzip file"),
    ("a.csv.gz", b"smiles,y\nCC,1\n", {}, "is no whole gzip file"),
    ("a.csv", GOOD, {"target": "logs2"}, "has no column 'logs2'; did you mean logS?"),
    ("a.csv", GOOD, {"target": "zzz"}, "its columns are id, smiles, logS, note"),
    ("a.csv", GOOD, {"smiles": "smile"}, "did you mean smiles?"),
    ("a.csv", GOOD, {"id": "key"}, "has no column 'key'"),
    ("a.csv", GOOD, {"split_column": "note"}, "'x y' is no part of a split"),
    ("a.csv", GOOD, {"target": "smiles"}, "'smiles' of"),
    ("a.csv", GOOD, {"target": ["logS", "logs"]}, "a target is named twice"),
    (
        "a.csv",
        "smiles,y\n" + "CC,5%\nCC,7.5%\nCC,10%\n" * 3,
        {"target": "y"},
        "'10%' and other numbers with '%'; write the numbers alone",
    ),
    ("a.csv", "smiles,y\n" + "CC,1_5\n" * 2 + "CC,2\n" * 4, {"target": "y"}, "'1_5'"),
    ("a.csv", GOOD, {"target": "note"}, "'note' holds 3 different texts in 3 rows, such as 'u v'"),
    ("a.csv", GOOD, {"task": "binary"}, "'logS' holds 3 classes, such as 1.5, 2.5, 3.5; a binary"),
    ("a.csv", GOOD, {"task": "multilabel"}, "a multilabel target holds 0, 1 or nothing"),
    ("a.csv", GOOD, {"task": "ranking"}, "task should be regression or binary or multiclass"),
    ("a.csv", GOOD, {"on_bad": "ignore"}, "on_bad should be skip or refuse, got 'ignore'"),
    ("a.csv", GOOD, {"level": "bond"}, "level should be graph or node or edge"),
    ("a.csv", GOOD, {"directed": True}, "directed=True says nothing about molecules in a table"),
    ("a.csv", ODD, {"target": "y"}, "'y', line 6: '>10' is not a number (1 of 5 values are none)"),
    ("a.csv", WORDS, {"target": "y"}, "9 different texts in 9 rows"),
    ("a.csv", WORDS, {"target": "y"}, "learned with --task multiclass (task='multiclass')"),
    ("a.csv", "smiles,y\nCC,1\nCCO,1e999\n", {}, "target 'y', line 3 is infinite"),
    ("a.csv", "smiles,y\nxx,1\nyy,2\n", {}, "none of the 2 records"),
    ("a.csv", "smiles,y\n,1\n", {}, "line 2: no SMILES"),
    ("a.csv", "smiles,y\nCC ethane,1\n", {}, "holds white space"),
    ("a.csv", "smiles,y\nCC\u00e9,1\n", {}, "holds a character beyond ASCII"),
    ("a.csv", "x,y\n1,2\n3,4\n", {}, "no column of"),
    ("a.smi", "", {}, "expected one SMILES per line"),
    ("a.sdf", "", {}, "expected SDF records"),
    ("a.sdf", "not a molecule\n", {}, "a.sdf cannot be read: molecule 1"),
    ("a.xyz", "", {}, "expected the number of atoms on its first line"),
    ("a.xyz", "two\n\nC 0 0 0\n", {}, "line 1: got 'two', expected a number of atoms"),
    ("a.xyz", "2\n\nC 0 0 0\n", {}, "line 1: 2 atoms are announced and 1 follow"),
    ("a.xyz", "999999999999999999999\n\nC 0 0 0\n", {}, "the file is cut short"),
    ("a.xyz", "1\n\nC 0 zero 0\n", {}, "line 3: got 'C 0 zero 0'"),
    ("a.xyz", "1\n\nC 0 0 nan\n", {}, "expected an element and x y z"),
    ("a.xyz", "1\ncharge=1.5\nH 0 0 0\n", {}, "charge='1.5' is no whole number"),
    ("a.xyz", "1\n\nXx 0 0 0\n", {}, "'Xx' is no element"),
    ("a.xyz", "1\n\n900 0 0 0\n", {}, "'900' is no element"),
    ("a.g6", "C~\n!!\n", {}, ":2: '!!' is not graph6"),
    ("a.g6", "", {}, "holds no graph"),
    ("a.g6", ">>sparse6<<:An\n", {}, ":1: ':An' is sparse6, not graph6"),
    ("a.g6", ">>digraph6<<&AO\n", {}, ":1: '&AO' is digraph6, not graph6"),
    ("a.npz", b"PK\x03\x04 nothing", {}, "cannot be read as a zip file"),
    ("a.zip", b"PK\x03\x04 nothing", {}, "cannot be read as a zip file"),
    ("a.unknown", b"PAR1", {}, "has no known ending; expected CSV or .xlsx with SMILES"),
    ("a.xlsx", b"PK", {}, "cannot be read as a zip file"),
    ("a.XLSM", b"\xd0\xcf", {}, "cannot be read as a zip file"),
    ("A.XLS", b"\xd0\xcf", {}, "pandas.read_excel(path).to_csv('data.csv', index=False)"),
    ("a.ods", b"PK", {}, "is a spreadsheet"),
    ("a.jsonl", b"{}", {}, "pandas.read_json(path, lines=True).to_csv('data.csv', index=False)"),
    ("a.json", b"[]", {}, "pandas.read_json(path).to_csv('data.csv', index=False)"),
    ("a.parquet", b"PAR1", {}, "pandas.read_parquet(path).to_csv('data.csv', index=False)"),
    ("a.graphml", "<graphml/>", {}, "is GraphML, and not read: in Python: read_graphs([networkx."),
    ("a.gml", "graph []", {}, "networkx.read_gml(path)"),
    ("a.pkl", b"\x80", {}, "is a pickle, which can run any code, and not read: if you trust it"),
    ("a.s6", ":An\n", {}, "is sparse6 or digraph6, and not read: give read_graphs a list of its"),
    ("edges.csv", "graph,source,target\n1,0,1\n", {"target": "y"}, "has no column 'y'"),
    ("edges.csv", EDGES, {"id": "name"}, "no graphs file beside it: id='name' names none"),
    ("edges.csv", EDGES, {"split_column": "part"}, "split_column='part' names none"),
    ("edges.csv", f"{EDGES}1,-1,0\n", {}, "edges.csv, line 3: graph 1: node -1 is negative"),
]


@pytest.mark.parametrize(("name", "content", "options", "part"), FILES)
def test_files(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], part: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as caught:
        read_graphs(path, **options)
    assert part in str(caught.value)


SQUARE = np.ones((2, 3, 3))
ARRAYS: list[tuple[dict[str, Any], str]] = [
    ({"B": SQUARE}, "holds B; expected an array 'A'"),
    ({}, "holds nothing"),
    ({"A": np.ones((2, 3, 4))}, "array 'A' has shape [2, 3, 4], expected [G, n, n]"),
    ({"A": np.zeros((0, 3, 3))}, "array 'A' has shape [0, 3, 3]"),
    ({"A": np.array([["a"]])}, "array 'A' holds <U1, expected real numbers"),
    ({"A": np.full((1, 2, 2), np.nan)}, "entry (0, 0) of graph 0 in 'A' is nan"),
    ({"A": SQUARE, "sizes": np.array([3])}, "expected whole numbers [2]"),
    ({"A": SQUARE, "sizes": np.array([3, 4])}, "graph 1 has size 4, expected 1 to 3"),
    ({"A": SQUARE, "sizes": np.array([3, 2])}, "graph 1 has an edge beyond its 2 nodes"),
    (
        {"A": SQUARE, "x": np.ones((5, 2))},
        "array 'x' has shape [5, 2], expected [2, 3, F] or [6, F]",
    ),
    ({"A": SQUARE, "x": np.full((6, 1), np.inf)}, "a node feature of graph 0"),
    ({"A": SQUARE, "e": np.ones((2, 2, 2))}, "array 'e' has shape [2, 2, 2]"),
    (
        {"A": SQUARE, "y": np.ones(5)},
        "expected 2 rows (one per graph), 6 (per node) or 18 (per edge)",
    ),
    ({"A": SQUARE, "y": np.array(["a", "b"])}, "array 'y' holds"),
    ({"A": SQUARE, "ids": np.array(["a"])}, "array 'ids' has 1 entries, expected 2"),
    ({"A": SQUARE, "y": np.ones((2, 2)), "target_names": np.array(["a"])}, "1 names for 2"),
    ({"A": SQUARE, "y": np.ones((2, 2)), "target_names": np.array(["a", "a"])}, "have one name"),
    ({"A": SQUARE, "positions": np.ones((6, 2))}, "have shape [6, 2], expected [nodes, 3]"),
]


@pytest.mark.parametrize(("arrays", "part"), ARRAYS)
def test_arrays(tmp_path: Path, arrays: dict[str, Any], part: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError) as caught:
        read_graphs(tmp_path / "a.npz")
    assert part in str(caught.value)


def test_graphs_with_several_kinds_of_nodes_are_refused() -> None:
    data = pytest.importorskip("torch_geometric.data")
    with pytest.raises(DataError, match=r"got HeteroData, .* data.to_homogeneous\(\)"):
        read_graphs([data.HeteroData()])


class Bomb:
    """Loading its pickle would leave a mark."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return (exec, ("raise SystemExit('a pickle was run')",))


def test_a_pickle_in_an_npz_is_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", A=np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="only pickle can read"):
        read_graphs(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="cannot be read as a zip file"):
        read_graphs(tmp_path / "b.npz")


def graph(**attributes: Any) -> Any:
    found = nx.path_graph(2)
    found.graph.update(attributes)
    return found


def item(**attributes: Any) -> Any:
    return SimpleNamespace(**({"num_nodes": 2, "edge_index": np.array([[0], [1]])} | attributes))


def half_featured() -> Any:
    found = nx.path_graph(2)
    found.nodes[1]["x"] = 1.0
    return found


OBJECTS: list[tuple[Any, str]] = [
    ([], "the list holds no graph"),
    ([1, 2], "the list holds int; item 0 is no graph: an adjacency matrix is square, got shape []"),
    ([graph(), item()], "the list holds Graph, SimpleNamespace"),
    ([nx.Graph()], "graph 0 has no nodes; drop it"),
    ([nx.MultiGraph([(0, 1)])], "graph 0 is a multigraph"),
    ([half_featured()], "node 0 has no 'x' and others have"),
    ([graph(y="high")], "graph 0: y holds <U4, expected numbers"),
    ([graph(y=[1.0]), graph(y=[1.0, 2.0])], "y has 1 and 2 columns in different graphs"),
    ([item(edge_index=np.array([[0.0], [1.0]]))], "has shape [2, 1] and dtype float64"),
    ([item(edge_index=np.array([0, 1]))], "expected whole numbers [2, edges]"),
    ([item(edge_index=None)], "without an edge_index"),
    ([item(edge_index=np.array([[0], [7]]))], "names nodes 0 to 7, but graph 0 has 2 nodes"),
    (
        [item(x=np.ones((2, 2))), item(x=np.ones((2, 3)))],
        "graph '1' has 3 node features and graph '0' has 2",
    ),
    ([item(edge_attr=np.ones((5, 2)))], "graph 0: edge_attr has shape [5, 2], expected [1, F]"),
    ([item(), item(edge_weight=np.ones(5))], "graph 1: edge_weight has shape [5], expected [1, F]"),
    ([item(edge_weight=np.ones((1, 3)))], "graph 0: edge_weight has 3 columns, expected one"),
    ([item(edge_weight=np.array(["a"]))], "graph 0: edge_weight holds <U1, expected numbers"),
    ([item(edge_weight=np.array([1j]))], "graph 0: edge_weight holds complex128"),
    ([item(edge_index=[[0, 1], [1]])], "graph 0: edge_index has different lengths"),
    ([item(x=[[1, 2], [3]])], "graph 0: x has different lengths"),
    (
        [item(x=np.ones((3, 1)))],
        "graph 0: x has shape [3, 1], expected [2, F], a row for each node",
    ),
    ([item(pos=np.array([["a"] * 3] * 2))], "graph 0: pos holds <U1, expected numbers"),
    ([item(pos=np.ones((3, 3)))], "graph 0: pos has shape [3, 3], expected [2, F]"),
    ([item(y=[[1], [2, 3]])], "graph 0: y has different lengths"),
    ([item(num_nodes=None)], "but graph 0 has 0 nodes"),
    ([item(batch=np.array([0, 1]))], "graph 0 is a batch of 2 graphs, expected one"),
    ([item(y=np.array([np.inf]))], "target 'y', entry 0 is infinite"),
]


@pytest.mark.parametrize(("source", "part"), OBJECTS)
def test_objects(source: Any, part: str) -> None:
    with pytest.raises(DataError) as caught:
        read_graphs(source)
    assert part in str(caught.value)


def test_no_such_file_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file or folder"):
        read_graphs(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"holds no \.sdf, \.mol or \.xyz file, no edges"):
        read_graphs(tmp_path)


def test_something_that_is_no_source() -> None:
    with pytest.raises(DataError, match="got int"):
        read_graphs(5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the list holds"):
        read_graphs(io.StringIO("smiles\nCC\n"))
    with pytest.raises(DataError, match="got dict; expected a list of graphs: its values"):
        read_graphs({"a": "C~"})
    table = SimpleNamespace(shape=(2, 2), to_csv=print)  # as a DataFrame
    with pytest.raises(DataError, match="got SimpleNamespace; write it with to_csv"):
        read_graphs(table)


def test_one_matrix_is_one_graph() -> None:
    assert read_graphs(np.ones((3, 3)) - np.eye(3)).adjacency(0).tolist() == [
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
    ]
