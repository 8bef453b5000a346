"""A user's own folder in TU layout: what is unusual is noted, what is wrong is refused by line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from g2n2.data.tu import load_tu
from g2n2.errors import DataError

# A triangle with labels 5, 5, 7 and a single edge with labels 7, 5.
TWO_GRAPHS = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "4\n-2\n",
    "node_labels": "5\n5\n7\n7\n5\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n1\n1\n",
}


def written(folder: Path, **changes: str | None) -> Path:
    folder.mkdir(exist_ok=True)
    for part, text in {**TWO_GRAPHS, **changes}.items():
        if text is not None:
            (folder / f"mine_{part}.txt").write_text(text)
    return folder


def test_an_ordinary_folder(tmp_path: Path) -> None:
    data = load_tu(written(tmp_path / "a"))
    assert data.name == "mine"
    assert data.sizes.tolist() == [3, 2]
    assert data.edge_counts.tolist() == [6, 2]
    assert data.edges.tolist() == [[0, 0, 1, 1, 2, 2, 0, 1], [1, 2, 0, 2, 0, 1, 1, 0]]
    assert data.node_names == ("label 5", "label 6", "label 7")
    assert data.node_features.argmax(1).tolist() == [0, 0, 2, 2, 0]
    assert data.edge_features.argmax(1).tolist() == [0, 0, 0, 1, 0, 1, 1, 1]
    assert data.columns[0].classes == ("-2", "4")
    assert data.targets.tolist() == [[1], [0]]
    assert data.ids == ("1", "2")
    assert data.notes == ()


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"A": "1, 2\n1, 3\n2, 3\n4, 5\n", "edge_labels": None}, "4 edge(s) of mine_A.txt are listed in one direction only"),
        ({"A": TWO_GRAPHS["A"] + "1, 2\n2, 1\n", "edge_labels": None}, "2 edge(s) of mine_A.txt are repeated"),
    ],
)  # fmt: skip
def test_what_is_unusual_is_noted(
    tmp_path: Path, changes: dict[str, str | None], note: str
) -> None:
    data = load_tu(written(tmp_path / "a", **changes))
    assert [note in line for line in data.notes] == [True]
    assert len(data) == 2
    matrix = data.adjacency(0)
    assert (matrix == matrix.T).all()
    assert matrix.sum() == 6
    if data.columns:
        assert data.columns[0].classes[int(data.targets[0, 0])] == "4"


def test_what_is_not_there_or_not_read_is_noted(tmp_path: Path) -> None:
    data = load_tu(written(tmp_path / "a", graph_labels=None))
    assert data.notes == ("no targets: they would be in mine_graph_labels.txt",)
    folder = written(tmp_path / "b", node_attributes="1\n2\n3\n4\n5\n")
    assert load_tu(folder).notes[0].startswith("mine_node_attributes.txt is not read; load_tu(")
    assert load_tu(folder, attributes=True).notes == ()
    (folder / "mine_A.txt").write_bytes("1, 2\n2, é\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"mine_A\.txt, line 2: not UTF-8 text"):
        load_tu(folder)


def test_what_changes_nothing_is_read_without_a_word(tmp_path: Path) -> None:
    blank = load_tu(written(tmp_path / "a", node_labels="5\n\n5\n7\n \n7\n5\n\n"))
    assert blank.node_features.argmax(1).tolist() == [0, 0, 2, 2, 0]
    gaps = load_tu(written(tmp_path / "b", graph_indicator="1\n1\n1\n4\n4\n"))
    assert gaps.ids == ("1", "4")
    loops = {"A": TWO_GRAPHS["A"] + "1, 1\n", "edge_labels": None}
    assert load_tu(written(tmp_path / "c", **loops)).adjacency(0)[0, 0] == 1
    missing = load_tu(written(tmp_path / "d", graph_labels="4\nnan\n"))
    assert np.isnan(missing.targets[:, 0]).tolist() == [False, True]
    assert [blank.notes, gaps.notes, missing.notes] == [()] * 3


def test_edge_labels_stay_with_their_edge(tmp_path: Path) -> None:
    changes = {"A": "3, 1\n1, 2\n1, 2\n4, 5\n", "edge_labels": "2\n0\n1\n1\n"}
    data = load_tu(written(tmp_path / "a", **changes))
    assert data.edges.tolist() == [[0, 0, 1, 2, 0, 1], [1, 2, 0, 0, 1, 0]]
    assert data.edge_features.argmax(1).tolist() == [0, 2, 0, 2, 1, 1]
    kept = load_tu(tmp_path / "a", folds="none", directed=True)
    assert kept.edges.tolist() == [[0, 2, 0], [1, 0, 1]]
    assert kept.directed


def test_real_graph_attributes_are_regression_targets(tmp_path: Path) -> None:
    changes = {"graph_labels": None, "graph_attributes": "0.5, 1e3\nnan, 2\n"}
    data = load_tu(written(tmp_path / "a", **changes))
    assert [column.kind for column in data.columns] == ["regression"] * 2
    assert data.targets[0].tolist() == [0.5, 1000]
    assert np.isnan(data.targets[1, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 2\n0, 1\n"}, r"mine_A\.txt, line 2: edge 0, 1 names no node: expected 1 to 5"),
        ({"A": "1, 2\n\n5, 6\n"}, r"mine_A\.txt, line 3: edge 5, 6 names no node"),
        ({"A": "1, 2\n3, 4\n"}, r"mine_A\.txt, line 2: edge 3, 4 joins two graphs"),
        ({"A": "1, 2\n2, x\n"}, r"mine_A\.txt, line 2: got '2, x', expected 2 numbers with commas"),
        ({"A": "1, 2\n2\n"}, r"mine_A\.txt, line 2: got '2', expected 2 numbers"),
        ({"A": "1, 2\n2, 1_0\n"}, r"mine_A\.txt, line 2: got '2, 1_0'"),
        ({"A": "1, 2, 3\n"}, r"mine_A\.txt, line 1: got 3 columns, expected 2"),
        ({"A": "1, 2\n2, 1.5\n"}, r"mine_A\.txt, line 2: got 1.5, expected a whole number"),
        ({"A": "1, 2\nnan, 1\n"}, r"mine_A\.txt, line 2: got nan, expected a whole number"),
        ({"graph_indicator": "1\n1\n1\n2\nnan\n"}, r"graph_indicator\.txt, line 5: got nan"),
        ({"graph_indicator": "1\n1\n2\n1\n2\n"}, r"graph_indicator\.txt, line 4: graph 1 after graph 2; list"),
        ({"graph_indicator": ""}, r"graph_indicator\.txt is empty"),
        ({"graph_indicator": None}, r"mine has no file mine_graph_indicator\.txt"),
        ({"node_labels": "5\n5\n7\n7\n"}, r"node_labels\.txt has 4 rows, expected 5: one per node"),
        ({"node_labels": "5\n5\ninf\n7\n5\n"}, r"node_labels\.txt, line 3: got inf"),
        ({"node_labels": "5\n5\n7\n7\n99999\n"}, "labels from 5 to 99999, the limit"),
        ({"node_labels": "5\n5\n7\n7\n1e300\n"}, r"node_labels\.txt, line 5: got 1e\+300"),
        ({"edge_labels": "0\n"}, r"edge_labels\.txt has 1 rows, expected 8: one per edge"),
        ({"graph_labels": "1\n2\n3\n"}, r"graph_labels\.txt has 3 rows, expected 2: one per graph"),
        ({"graph_labels": "1\n0.5\n"}, r"graph_labels\.txt, line 2: got 0.5, expected a whole"),
        ({"node_attributes": "1\n2\nnan\n4\n5\n"}, r"node_attributes\.txt, line 3: got nan, expected a finite"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_file_and_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = written(tmp_path / "a", **changes)
    with pytest.raises(DataError, match=message):
        load_tu(folder, attributes=True)


def test_text_that_is_no_text(tmp_path: Path) -> None:
    folder = written(tmp_path / "a")
    (folder / "mine_A.txt").write_bytes(b"\xff\xfe1\0")
    with pytest.raises(DataError, match=r"mine_A\.txt, line 1: not UTF-8 text"):
        load_tu(folder)


def test_a_folder_with_no_or_two_sets(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds none, expected one dataset: .* NAME_A\.txt"):
        load_tu(tmp_path / "empty")
    written(tmp_path / "a")
    (tmp_path / "a" / "other_A.txt").write_text("1, 2\n")
    with pytest.raises(DataError, match="holds mine, other, expected one dataset"):
        load_tu(tmp_path / "a")


def test_gin_folds_need_classes(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", graph_labels=None)
    with pytest.raises(DataError, match="needs one class for every graph"):
        load_tu(folder, folds="gin")
    with pytest.raises(DataError, match="10 folds need a class of at least 10 graphs"):
        load_tu(written(tmp_path / "b"), folds="gin")
