"""Edge-list CSV files and the files beside them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from g2n2.data.reading import read_graphs
from g2n2.errors import DataError

EDGES = "graph,source,target,weight,length\ng1,0,1,1,0.5\ng1,1,2,1,1.5\ng2,b,a,2,2.5\n"
NODES = "graph,node,size,y\ng1,0,10,0\ng1,1,11,1\ng1,2,12,0\ng1,9,19,1\ng2,a,20,0\ng2,b,21,1\n"
GRAPHS = "graph,y,split\ng2,5.5,test\ng1,2.25,train\n"


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_edges_alone(tmp_path: Path) -> None:
    graphs = read_graphs(written(tmp_path, mine=EDGES) / "mine.csv")
    assert graphs.ids == ("g1", "g2")
    assert graphs.adjacency(0).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graphs.adjacency(1).tolist() == [[0, 2], [2, 0]]
    assert graphs.edge_names == ("length",)
    assert sorted(graphs.edge_features[:, 0].tolist()) == [0.5, 0.5, 1.5, 1.5, 2.5, 2.5]
    assert any("Written one way and entered both ways: 3 edges." in note for note in graphs.notes)


def test_all_three_files(tmp_path: Path) -> None:
    graphs = read_graphs(written(tmp_path, edges=EDGES, nodes=NODES, graphs=GRAPHS))
    assert graphs.ids == ("g2", "g1")
    assert graphs.sizes.tolist() == [2, 4]
    assert graphs.node_names == ("size",)  # never y, which may be what a user wants to predict
    assert graphs.node_features[:, 0].tolist() == [20, 21, 10, 11, 12, 19]
    assert graphs.targets.tolist() == [[5.5], [2.25]]
    assert graphs.splits["test"].tolist() == [0]
    assert graphs.adjacency(0).tolist() == [[0, 2], [2, 0]]


def test_targets_of_nodes_and_of_edges(tmp_path: Path) -> None:
    nodes = read_graphs(written(tmp_path, mine=EDGES, mine_nodes=NODES) / "mine.csv")
    assert (nodes.level, nodes.columns[0].kind) == ("node", "binary")
    assert nodes.node_names == ("size",)
    assert nodes.targets[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    edges = read_graphs(tmp_path / "mine.csv", target="length")
    assert edges.level == "edge"
    assert edges.edge_features.shape == (6, 0)
    assert np.array_equal(edges.targets[:, 0], [0.5, 0.5, 1.5, 1.5, 2.5, 2.5])


def test_directions_are_kept_when_asked(tmp_path: Path) -> None:
    path = written(tmp_path, mine="graph,source,target\n1,0,1\n1,1,2\n1,2,1\n") / "mine.csv"
    assert read_graphs(path, directed=True).adjacency(0).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 1, 0],
    ]
    assert read_graphs(path).adjacency(0).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_gaps_and_repeated_lines_are_noted(tmp_path: Path) -> None:
    path = (
        written(tmp_path, mine="graph,source,target\n1,10,2\n1,2,10\n1,2,10\n1,2,2\n") / "mine.csv"
    )
    graphs = read_graphs(path)
    assert graphs.adjacency(0).tolist() == [[1, 1], [1, 0]]  # node 2, then node 10
    assert any("graph 1 has no node 3" in note for note in graphs.notes)
    assert any("Written twice and entered once: 1 edge." in note for note in graphs.notes)


def test_ids_are_the_graphs_unless_another_column_is_named(tmp_path: Path) -> None:
    table = "graph,name,y\nb,second,2\na,first,1\n"
    folder = written(tmp_path, edges="graph,source,target\na,0,1\nb,0,1\n", graphs=table)
    assert read_graphs(folder).ids == ("b", "a")
    assert not any("ids" in note for note in read_graphs(folder).notes)
    assert read_graphs(folder, id="name").ids == ("second", "first")


def test_a_folder_may_be_gzipped(tmp_path: Path) -> None:
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b"graph,source,target\na,0,1\n"))
    (tmp_path / "graphs.csv.gz").write_bytes(gzip.compress(b"graph,y\na,5\n"))
    assert read_graphs(tmp_path).targets.tolist() == [[5]]


@pytest.mark.parametrize(
    ("files", "part"),
    [
        (
            {"edges": EDGES + "g1,1,0,3,0.5\n"},
            "line 5: the edge 1 0 of graph g1 has other values than on line 2",
        ),
        ({"edges": EDGES.replace("2.5", "x1")}, "length is 'x1', expected a finite number"),
        ({"edges": EDGES.replace("b,a,2,", "b,a,,")}, "line 4: weight is empty"),
        (
            {"edges": EDGES, "nodes": NODES.replace("g2,a,20,0\n", "")},
            "line 4: node a of graph g2 is not in the nodes",
        ),
        ({"edges": EDGES, "nodes": NODES + "g1,0,1,1\n"}, "line 8: node 0 of graph g1"),
        ({"edges": EDGES, "graphs": GRAPHS + "g1,1,test\n"}, "line 4: graph g1 is there again"),
        ({"edges": EDGES, "graphs": "graph,y\ng1,2\n"}, "graph g2 is not in"),
        ({"edges": EDGES, "graphs": GRAPHS + "g3,1,test\n"}, "graph g3 of"),
        ({"edges": EDGES + "g1,,2,3,0.5\n"}, "line 5: the source is empty"),
        ({"edges": EDGES, "nodes": "graph,size\ng1,2\n"}, "no column 'node'"),
        ({"edges": EDGES, "nodes": NODES + "g1,,1,1\n"}, "nodes.csv, line 8: the node is empty"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, files: dict[str, str], part: str) -> None:
    with pytest.raises(DataError) as caught:
        read_graphs(written(tmp_path, **files))
    assert part in str(caught.value)


def test_new_graphs_of_a_run_need_no_graphs_file_for_their_ids(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("graph,source,target\na,0,1\nb,0,1\n")
    assert read_graphs(tmp_path / "edges.csv", target=(), id="code").ids == ("a", "b")


def test_nodes_keep_their_names(tmp_path: Path) -> None:
    graphs = read_graphs(written(tmp_path, edges=EDGES, nodes=NODES, graphs=GRAPHS))
    names = [[graphs.node_name(g, node) for node in range(n)] for g, n in enumerate(graphs.sizes)]
    assert names == [["a", "b"], ["0", "1", "2", "9"]]
    assert graphs.select([1]).node_name(0, 3) == "9"
    plain = read_graphs(written(tmp_path, plain="graph,source,target\na,0,1\n") / "plain.csv")
    assert plain.node_name(0, 1) == 1
    assert "names_of_nodes" not in plain.source
