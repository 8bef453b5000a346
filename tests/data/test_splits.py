"""Splits are disjoint, repeatable, balanced, and refuse what cannot be split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.reading import read_graphs
from g2n2.data.splits import split, stratified_folds
from g2n2.errors import DataError


def labelled(labels: list[Any]) -> GraphSet:
    graphs = [nx.path_graph(2) for _ in labels]
    for graph, label in zip(graphs, labels, strict=True):
        graph.graph["y"] = label
    return read_graphs(graphs)


def lists(parts: dict[str, Any]) -> dict[str, list[int]]:
    return {part: members.tolist() for part, members in parts.items()}


@pytest.mark.parametrize("seed", range(2))
def test_random_parts_are_a_partition_and_depend_on_the_seed_only(seed: int) -> None:
    graphs = labelled([k / 7 for k in range(100)])
    parts = lists(split(graphs, "random", seed))
    assert sorted(index for members in parts.values() for index in members) == list(range(100))
    assert [len(parts[part]) for part in ("train", "validation", "test")] == [80, 10, 10]
    assert lists(split(graphs, "random", seed)) == parts
    assert lists(split(graphs, "random", seed + 1)) != parts


@pytest.mark.parametrize("seed", range(2))
def test_classes_keep_their_share_in_every_part(seed: int) -> None:
    labels = [0] * 160 + [1] * 30 + [2] * 10
    parts = split(labelled(labels), "random", seed)
    for part, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        counts = Counter(labels[index] for index in parts[part].tolist())
        for label, size in ((0, 160), (1, 30), (2, 10)):
            assert abs(counts[label] - share * size) <= 1


def test_a_fraction_of_nothing_is_an_empty_part() -> None:
    parts = split(labelled([0.5, 1.5, 2.5, 3.5]), "random", 0, (0.5, 0.5, 0))
    assert [len(members) for members in parts.values()] == [2, 2, 0]


def molecules(folder: Path, rows: list[str], header: str = "smiles") -> GraphSet:
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_graphs(path)


def test_scaffolds_stay_together(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="scaffolds are found with RDKit")
    benzenes = ["c1ccccc1" + "C" * k for k in range(6)]
    pyridines = ["c1ccncc1" + "C" * k for k in range(2)]
    chains = ["CC", "CCO"]
    graphs = molecules(tmp_path, [pyridines[0], *benzenes, *chains, pyridines[1]])
    parts = lists(split(graphs, "scaffold", 0, (0.6, 0.2, 0.2)))
    assert parts["train"] == [1, 2, 3, 4, 5, 6]
    # DeepChem's rule: of scaffolds of one size, the one whose first molecule comes later goes first.
    assert parts["validation"] == [7, 8]
    assert parts["test"] == [0, 9]


def test_a_column_a_stored_split_and_a_drawn_validation_part(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    rows = [f"{'C' * (k + 2)},{'test' if k < 4 else 'train'}" for k in range(24)]
    graphs = molecules(tmp_path, rows, "smiles,part")
    with pytest.raises(DataError, match=r"no split column 'part' was read.*none was read"):
        split(graphs, "column:part")
    graphs = read_graphs(tmp_path / "mine.csv", split_column="part")
    parts = lists(split(graphs, "column:part", 3))
    assert parts["test"] == [0, 1, 2, 3]
    assert len(parts["validation"]) == 2  # a ninth of the 20
    halves = split(graphs, "column:part", 3, (0.5, 0.25, 0.25))
    assert len(halves["validation"]) == 7  # a third of the 20
    assert sorted(parts["train"] + parts["validation"]) == list(range(4, 24))
    assert lists(split(graphs, "stored", 3)) == parts
    assert lists(split(graphs, "stored", 4)) != parts


def test_folds(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    molecules(tmp_path, [f"{'C' * (k + 2)},{k % 3}" for k in range(30)], "smiles,fold")
    graphs = read_graphs(tmp_path / "mine.csv", split_column="fold")
    parts = lists(split(graphs, "fold:1"))  # as the column says
    assert parts["test"] == list(range(1, 30, 3))
    assert len(parts["validation"]) == 2
    with pytest.raises(DataError, match="has no fold '4'; it has fold-0, fold-1, fold-2"):
        split(graphs, "fold:4")
    with pytest.raises(
        DataError, match="choose one with --split fold:0 --option split_column=fold"
    ):
        split(graphs, "stored")


def test_folds_keep_their_numbers_and_are_no_targets(tmp_path):
    pytest.importorskip("rdkit")
    cells = "".join(f"{'C' * (1 + k)},{k / 10},{k % 3}\n" for k in range(9))
    (tmp_path / "mine.csv").write_text(f"smiles,y,fold\n{cells}")
    graphs = read_graphs(tmp_path / "mine.csv", split_column="fold")
    assert {name: rows.tolist() for name, rows in graphs.splits.items()} == {
        "fold-0": [0, 3, 6],
        "fold-1": [1, 4, 7],
        "fold-2": [2, 5, 8],
    }
    graphs = read_graphs(tmp_path / "mine.csv")
    assert [column.name for column in graphs.columns] == ["y"]
    assert any("Column fold has a name of folds" in note for note in graphs.notes)
    with pytest.raises(DataError, match="--option split_column=NAME"):
        split(graphs, "fold:1")


def test_a_file_of_numbers_counts_the_rows_of_the_input(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    graphs = molecules(tmp_path, ["a,CC", "b,bad", "c,CCC", "d,CCO"], "id,smiles")
    assert graphs.ids == ("a", "c", "d")
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"train": [0, 1], "valid": [2], "test": [3]}))
    expected = {"train": [0], "validation": [1], "test": [2]}
    assert lists(split(graphs, f"file:{path}")) == expected
    path.write_text(json.dumps({"train": ["a"], "valid": ["c"], "test": ["d"]}))
    assert lists(split(graphs, f"file:{path}")) == expected
    table = tmp_path / "split.csv"
    table.write_text("id,split\nd,test\na,train\nc,val\n")
    assert lists(split(graphs, f"file:{table}")) == expected
    table.write_text("index,split\n3,test\n0,train\n2,val\n")
    assert lists(split(graphs, f"file:{table}")) == expected
    tabs = tmp_path / "split.tsv"
    tabs.write_text(table.read_text().replace(",", "\t"))
    assert lists(split(graphs, f"file:{tabs}")) == expected


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("3,test\n0.5,train\n", "split.csv, line 3: index '0.5' is not a whole number"),
        ("3,test\n0,trian\n", "split.csv, line 3: 'trian' is no part of a split"),
    ],
)
def test_what_is_wrong_in_a_table_of_a_split_is_named_by_line(
    tmp_path: Path, rows: str, part: str
) -> None:
    (tmp_path / "split.csv").write_text(f"index,split\n{rows}")
    with pytest.raises(DataError) as caught:
        split(labelled(FIVE), f"file:{tmp_path / 'split.csv'}")
    assert part in str(caught.value)


FIVE = [0.5, 1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize(
    ("how", "fractions", "content", "part"),
    [
        ("randomly", None, "", "no split is called 'randomly'; expected random, scaffold"),
        ("random", (0.8, 0.1, 0.2), "", "fractions 0.8, 0.1, 0.2 sum to 1.1, expected 1"),
        ("random", (0, 0.5, 0.5), "", "the first above 0"),
        ("random", (0.5, 0.5), "", "expected three from 0 to 1"),
        ("random", (float("nan"), 0.5, 0.5), "", "expected three from 0 to 1"),
        ("scaffold", None, "", "needs SMILES"),
        ("stored", None, "", "no part 'train' (parts: none)"),
        ("fold:1", None, "", "has no fold '1'; it has none: take random"),
        ("file", None, '{"train": [0, 1], "test": [1]}', "graph 1 (1) is in 'train' and 'test'"),
        ("file", None, '{"train": [0, 0]}', "graph 0 (0) is twice in 'train'"),
        (
            "file",
            None,
            '{"train": [0, 1], "test": []}',
            "the part 'test' of the split holds no graph",
        ),
        ("file", None, '{"train": [0, 9]}', "names graph 9, but there are 5 graphs"),
        ("file", None, '{"train": [-1]}', "names graph -1"),
        (
            "file",
            None,
            '{"train": ["zz"]}',
            "names 'zz', which is no id of graphs (ids are like 0, 1, 2)",
        ),
        ("file", None, '{"train": [0.5]}', "no list of whole numbers or ids"),
        ("file", None, '{"train": [true]}', "no list of whole numbers or ids"),
        ("file", None, '{"holdout": [1]}', "'holdout' is no part"),
        ("file", None, '{"test": [1]}', "no part 'train'"),
        ("file", None, '{"train": [0], "training": [1]}', "names a part twice, in other words"),
        ("file", None, "[1, 2]", "holds no object"),
        ("file", None, "{", "is not JSON"),
        ("file:none.json", None, "", "no file"),
        ("file", None, "[" * 100_000, "is not JSON"),
    ],
)
def test_what_cannot_be_split_is_refused(
    tmp_path: Path, how: str, fractions: Any, content: str, part: str
) -> None:
    if how == "file":
        (tmp_path / "split.json").write_text(content)
        how = f"file:{tmp_path / 'split.json'}"
    with pytest.raises(DataError) as caught:
        split(labelled(FIVE), how, 0, fractions or (0.6, 0.2, 0.2))
    assert part in str(caught.value)


@pytest.mark.parametrize("count", [3, 5, 9])
def test_a_handful_has_a_graph_in_every_part(count: int) -> None:
    parts = split(labelled([k / 7 for k in range(count)]))
    assert [len(parts[part]) for part in ("validation", "test")] == [1, 1]
    assert len(parts["train"]) == count - 2


def test_two_graphs_are_too_few() -> None:
    with pytest.raises(DataError, match=r"2 graphs cannot be split .*: 'train' would be empty"):
        split(labelled([0.5, 1.5]))


def test_parts_are_whole_numbers_a_set_can_be_selected_by() -> None:
    graphs = labelled(FIVE)
    parts = split(graphs, "random", 0, (0.6, 0.2, 0.2))
    assert all(members.dtype == np.int64 for members in parts.values())
    assert len(graphs.select(parts["train"])) == 3


def test_the_geometric_split_of_qm9_has_its_own_name() -> None:
    count = 120_005
    nothing = np.zeros(count, dtype=np.int64)
    graphs = GraphSet(
        "many",
        nothing + 1,
        nothing,
        np.zeros((2, 0), dtype=np.int64),
        np.zeros((count, 0), dtype=np.float32),
        np.zeros((0, 0), dtype=np.float32),
        np.zeros((count, 0)),
    )
    parts = split(graphs, "110k/10k/rest", seed=3)
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 110_000,
        "validation": 10_000,
        "test": 5,
    }
    assert len(np.unique(np.concatenate(list(parts.values())))) == count
    order = np.random.RandomState(3).permutation(count)  # a stream numpy never changes
    assert sorted(order[120_000:].tolist()) == parts["test"].tolist()
    with pytest.raises(DataError, match="needs more than 10 molecules"):
        split(graphs.select(np.arange(10)), "110k/10k/rest")


def test_unreadable_last_rows_are_left_out_of_a_split_file(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    graphs = molecules(tmp_path, ["a,CC", "b,CCC", "c,CCO", "d,bad"], "id,smiles")
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"train": [0], "valid": [1], "test": [2, 3]}))
    expected = {"train": [0], "validation": [1], "test": [2]}
    assert lists(split(graphs, f"file:{path}")) == expected


@pytest.mark.parametrize(("folds", "seed"), [(5, 0), (10, 7)])
def test_stratified_folds_are_those_of_scikit_learn(folds: int, seed: int) -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="needs g2n2[train]")
    labels = np.random.default_rng(seed).choice([7, -1, 3], p=[0.6, 0.3, 0.1], size=237)
    theirs = selection.StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels)
    ours = lists(stratified_folds(labels, folds, seed))
    assert ours == {f"fold-{k}": test.tolist() for k, (_, test) in enumerate(theirs, start=1)}
    with pytest.raises(DataError, match="graphs, not 4"):
        stratified_folds(np.array([0, 0, 0, 0, 1]), 5)
