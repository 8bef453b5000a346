"""One graph, several doors: what is odd about it is refused alike wherever it enters."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import g2n2
from g2n2.data.batch import GraphBatch
from g2n2.data.reading import read_graphs
from g2n2.errors import DataError
from g2n2.graphs import adjacency

Door = Callable[[Any], Any]
DOORS: dict[str, Door] = {
    "adjacency": adjacency,
    "GraphBatch.of": lambda graph: GraphBatch.of([graph]),
    "evaluate": lambda graph: g2n2.evaluate("1ᵀA1", graph),
    "separate": lambda graph: g2n2.separate("r-G_L1", graph, "Bw"),
    "read_graphs": lambda graph: read_graphs([graph]),
}
MULTI = [nx.MultiGraph([(0, 1), (0, 1)]), nx.MultiDiGraph([(0, 1), (1, 2)])]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("graph", MULTI, ids=["parallel", "digraph"])
def test_a_multigraph_is_refused(door: str, graph: Any) -> None:
    with pytest.raises(DataError, match=r"is a multigraph; make its edges single"):
        DOORS[door](graph)


EDGES = [
    ("0 1\n1 -1\n", r"a\.txt:2: node -1 is negative"),
    ("0,1\n-1,0\n", r"a\.txt:2: node -1 is negative"),
    ("0 1\n1 −1\n", r"a\.txt:2: node −1 is negative"),
    ("0 1 0,5\n", r"a\.txt:1: weight '0,5' has a comma; write a decimal point, as in 0\.5"),
    ("0;1;0,5\n", r"a\.txt:1: weight '0,5' has a comma"),
    ("a b 1\nb c -1,25e3\n", r"a\.txt:2: weight '-1,25e3' has a comma"),
    ("0 1 ,5\n", r"a\.txt:1: weight ',5' has a comma"),
    ("0,1,0,5\n", r"a\.txt:1: got 4 field\(s\).*numbers with a decimal point"),
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("text", "part"), EDGES)
def test_an_edge_list_of_one_graph(tmp_path: Path, door: str, text: str, part: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=part):
        DOORS[door](path)


def test_negative_numbers_among_names_are_names(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a -1\n-1 b\n")
    assert len(adjacency(tmp_path / "a.txt")) == 3
    (tmp_path / "b.txt").write_text("New York,Boston,2\nBoston,5 th,1\n")
    assert len(adjacency(tmp_path / "b.txt")) == 3


TABLES = [
    ("graph,source,target\n1,0,1\n1,1,-1\n", "graph 1: node -1 is negative"),
    ("graph,source,target\n1,0,1\n1,1,−1\n", "graph 1: node −1 is negative"),
    (
        "graph;source;target;weight\n1;0;1;0,5\n1;1;2;1.5\n",
        "line 2: weight is '0,5'.*decimal point",
    ),
    ("graph;source;target;length\n1;0;1;1,500\n", "line 2: length is '1,500'"),
    ('graph,source,target,weight\n1,0,1,"0,5"\n', "line 2: weight is '0,5'"),
]


@pytest.mark.parametrize(("text", "part"), TABLES)
def test_an_edge_list_with_graph_ids(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(DataError, match=part):
        read_graphs(tmp_path / "edges.csv")


def test_a_nodes_file_may_name_a_node_minus_one(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("graph,source,target\n1,0,-1\n")
    (tmp_path / "nodes.csv").write_text("graph,node,x\n1,-1,0.5\n1,0,1.5\n")
    assert read_graphs(tmp_path / "edges.csv").sizes.tolist() == [2]


def test_numbers_between_semicolons_have_a_decimal_comma(tmp_path: Path) -> None:
    """As spreadsheets write them where the comma is decimal: 1,234 beside 0,5 is no thousand."""
    pytest.importorskip("rdkit")
    path = tmp_path / "a.csv"
    path.write_text(
        "id;smiles;y;z\n1,1;CC;0,5;7\n1,2;CCO;1,234;8\n1.3;CCC;3;\n2,1;CCCC;-4,5e1;9,25\n"
    )
    graphs = read_graphs(path, target=["y", "z"])
    assert graphs.ids == ("1,1", "1,2", "1.3", "2,1")
    assert graphs.targets[:, 0].tolist() == [0.5, 1.234, 3, -45]
    assert graphs.targets[[0, 1, 3], 1].tolist() == [7, 8, 9.25]
    assert any("decimal comma, as in '0,5'" in note for note in graphs.notes)
    (tmp_path / "edges.csv").write_text("graph;source;target;weight\n1;0;1;0,5\n1;1;2;1,5\n")
    weights = read_graphs(tmp_path / "edges.csv").adjacency(0)
    assert sorted(set(weights.flatten().tolist())) == [0, 0.5, 1.5]


@pytest.mark.parametrize(
    "text",
    [
        "smiles;y\nCC;1,234\nCCO;5,678\n",  # thousands, perhaps
        "smiles;x;y\nCC;0.5;0,5\nCCO;1.5;1,5\n",  # two kinds of numbers
        'smiles,y\nCC,"0,5"\nCCO,"1,25"\n',
        "smiles,y\n" + 'CC,"0,5"\nCCO,"1,5"\n' * 5,  # two values must not become two classes
    ],
)
def test_commas_that_may_be_no_decimal_ones_are_refused_or_said(tmp_path: Path, text: str) -> None:
    pytest.importorskip("rdkit")
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"target 'y', line 2: '.*' has a comma; write numbers"):
        read_graphs(path, target="y")
    graphs = read_graphs(path)
    assert "y" not in graphs.columns
    assert any(re.search("Column y is left out: .* has a comma", note) for note in graphs.notes)
