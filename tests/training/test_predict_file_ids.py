"""What a run reads first, and under which ids it writes."""

from __future__ import annotations

import csv
from pathlib import Path

import networkx as nx
import pytest

import g2n2
from g2n2.data.reading import read_graphs
from g2n2.errors import G2N2Error
from g2n2.training import session
from g2n2.training.session import train_config
from small_runs import no_pictures, small_config


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"grammar": "nope"}, "no grammar is called 'nope'"),
        ({"baseline": "nope"}, "no baseline is called 'nope'"),
        ({"preset": "nope"}, "no preset is called 'nope'"),
    ],
)
def test_an_unknown_network_is_refused_before_the_data_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], part: str
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("the data was read")

    monkeypatch.setattr(session, "load_graphs", read)
    with pytest.raises(G2N2Error, match=part):
        train_config(small_config(**settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_grammar_is_refused_before_graphs_in_memory_are_converted() -> None:
    class Untouched(list[nx.Graph]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            raise AssertionError("the graphs were read")

    with pytest.raises(G2N2Error, match="no grammar is called 'nope'"):
        g2n2.train(Untouched([nx.path_graph(3)]), grammar="nope")


ROWS = ["m,CC,1.5", "m,CCO,2.5", "k,not a molecule,0.5", ",CCC,3.5", "k,CCCC,1.0", "k,CCN,2.0"]


def table(folder: Path) -> Path:
    path = folder / "mine.csv"
    path.write_text("\n".join(["id,smiles,y", *ROWS]) + "\n")
    return path


def test_ids_that_repeat_are_kept_in_test_csv(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    config = small_config(
        dataset=str(table(tmp_path)), options={}, split="random", batch=2, epochs=1
    )
    with no_pictures():
        result = train_config(config, tmp_path / "run")
    with open(result.folder / "test.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {float(row.rpartition(",")[2]): row.partition(",")[0] for row in ROWS}
    assert rows
    for row in rows:
        assert row["id"] == known[float(row["true y"])]


def test_rows_of_the_input_follow_a_selection(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    graphs = read_graphs(table(tmp_path))
    assert graphs.source["rows"] == (0, 1, 3, 4, 5)
    assert graphs.select([4, 2]).source["rows"] == (5, 3)
    assert graphs.select([4, 2]).select([1]).source["rows"] == (3,)
