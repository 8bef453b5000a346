"""`train` from Python: graphs and plain arguments in, a run that can be used out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

import g2n2
from g2n2 import load, predict, train
from g2n2.errors import DataError, GrammarError
from g2n2.training.run_folder import RunFolder
from g2n2.training.session import train_config

SMALL: dict[str, Any] = {
    "grammar": "GNNML1",
    "width": 4,
    "layers": 1,
    "epochs": 2,
    "batch": 8,
    "device": "cpu",
    "threads": 1,
    "pictures": False,
}
MOLECULES = ["C" * n + end for n in range(1, 8) for end in ("O", "N", "F", "")]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Chains of carbon, with how many atoms they have and a second target."""
    pytest.importorskip("rdkit")
    path = tmp_path / "molecules.csv"
    rows = [f"{smiles},{len(smiles)},{len(smiles) % 3}.5" for smiles in MOLECULES]
    path.write_text("smiles,atoms,other\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def rings(count: int = 20) -> list[nx.Graph]:
    graphs = [nx.cycle_graph(3 + i % 5) for i in range(count)]
    for graph in graphs:
        graph.graph["y"] = float(len(graph))
    return graphs


def test_a_table_of_molecules(csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = train("molecules.csv", target="atoms", **SMALL)
    assert run.folder == Path("runs/molecules-atoms-001")
    assert isinstance(run.model, g2n2.GrammarGNN)
    assert not run.model.training
    assert set(run.scores) == {"all", "atoms"}
    assert run.scores["atoms"]["mae"] >= 0
    assert set(run.guesses) == set(run.scores)
    assert [row["epoch"] for row in run.history] == [1, 2]
    assert "GNNML1 on" in str(run)
    assert "test atoms: mae" in str(run)
    assert train("molecules.csv", target=["atoms", "other"], out="second", **SMALL).folder == Path(
        "second"
    )
    assert train("molecules.csv", target="atoms", **SMALL).folder.name == "molecules-atoms-002"


def test_predictions_are_the_same_by_every_way(csv: Path, tmp_path: Path) -> None:
    run = train(csv, "atoms", out=tmp_path / "run", **SMALL)
    by_file = run.predict(csv)
    by_list = run.predict(MOLECULES)  # CC and CF are molecules here, not graph6
    assert np.array_equal(by_file.values, by_list.values)
    assert np.array_equal(predict(tmp_path / "run", MOLECULES, device="cpu").values, by_file.values)
    assert np.array_equal(predict(load(tmp_path / "run", "cpu"), csv).values, by_file.values)
    again = run.predict(csv, targets=True)
    assert again.scores["atoms"]["mae"] == pytest.approx(
        float(np.abs(by_file.values[:, 0] - [len(s) for s in MOLECULES]).mean())
    )
    before = csv.read_bytes()
    with pytest.raises(DataError, match="would overwrite the graphs that are read or were trained"):
        run.predict_to(csv, csv)
    with pytest.raises(DataError, match="would overwrite"):
        by_file.to_csv(csv)
    new = tmp_path / "new.csv"
    new.write_bytes(before)
    with pytest.raises(DataError, match="would overwrite"):
        run.predict_to(new, csv)
    assert csv.read_bytes() == before
    with pytest.raises(DataError, match=r"an interval is '0\.9'; expected a share below 1"):
        run.predict(csv, interval="0.9")  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match=r"got Run, expected a network; that of a run is run\.model"
    ):
        g2n2.explain(run, ["C6"])  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match="target in train should be a name, or a list of names, got 5"
    ):
        train(csv, 5, **SMALL)  # type: ignore[arg-type]
    rows = by_list.rows()
    assert len(rows) == len(by_list) == len(MOLECULES)
    assert rows[3]["atoms"] == by_list.values[3, 0]
    by_list.to_csv(tmp_path / "made.csv")
    assert (tmp_path / "made.csv").read_text().splitlines()[
        0
    ] == "id,atoms,atoms low,atoms high,note"
    assert run.evaluate("test").scores == run.scores


def test_graphs_in_memory(tmp_path: Path) -> None:
    run = train(rings(), out=tmp_path / "run", **SMALL)
    assert set(run.scores) == {"all", "y"}
    assert run.evaluate("test").scores == run.scores
    new = [nx.cycle_graph(4), nx.complete_graph(4)]
    values = run.predict(new).values
    assert np.array_equal(run.predict([nx.to_numpy_array(graph) for graph in new]).values, values)
    assert np.array_equal(run.predict([nx.to_graph6_bytes(g).decode() for g in new]).values, values)
    read = g2n2.read_graphs(rings())
    again = train(read, "y", out=tmp_path / "again", **SMALL)
    assert again.scores == run.scores


def test_one_graph_and_what_is_no_list_of_graphs(csv: Path, tmp_path: Path) -> None:
    run = train(rings(), out=tmp_path / "run", **SMALL)
    expected = run.predict([nx.cycle_graph(4)]).values
    assert np.array_equal(run.predict(nx.cycle_graph(4)).values, expected)
    assert np.array_equal(run.predict(nx.to_numpy_array(nx.cycle_graph(4))).values, expected)
    with pytest.raises(DataError, match="got int; expected a path or a list of graphs"):
        run.predict(5)  # type: ignore[arg-type]
    molecules = train(csv, "atoms", out=tmp_path / "molecules", **SMALL)
    expected = molecules.predict(["CCO"]).values
    assert np.array_equal(molecules.predict("CCO").values, expected)
    assert np.array_equal(molecules.predict("smiles:CCO").values, expected)
    assert np.array_equal(g2n2.predict(molecules, "CCO").values, expected)
    with pytest.raises(DataError, match="a SMILES is given by --smiles"):
        molecules.predict_to("CC(=O)O", tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"no file or folder 'none\.csv'"):
        molecules.predict("none.csv")
    from rdkit import Chem

    ethanol = Chem.MolFromSmiles("OCC")
    with_hydrogens = Chem.AddHs(ethanol)
    for given in (ethanol, [ethanol], (with_hydrogens,), iter([ethanol])):
        np.testing.assert_allclose(molecules.predict(given).values, expected, rtol=1e-5)
    mixed = molecules.predict([ethanol, None, "CCO"])
    assert np.isfinite(mixed.values[:, 0]).tolist() == [True, False, True]
    assert mixed.notes[1] == "not predicted: no SMILES"


def test_graphs_that_were_in_memory_are_asked_for(tmp_path: Path) -> None:
    run = train(rings(), out=tmp_path / "run", **SMALL)
    again = load(tmp_path / "run")
    with pytest.raises(DataError, match=r"in memory give them in Python, as graphs= of run\."):
        again.evaluate()
    assert again.evaluate(graphs=g2n2.read_graphs(rings())).scores == run.scores
    with pytest.raises(DataError, match=r"first argument of train\(…, resume=True\)"):
        train_config(run.config, tmp_path / "run", resume=True)
    assert run.own_graphs().sizes.tolist() == [len(graph) for graph in rings()]


def test_a_data_set_is_scored_though_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"count": 30, "nodes": 8}
    run = train("regular", "triangle", out=tmp_path / "run", options=options, **SMALL)
    (tmp_path / "regular").mkdir()
    assert len(run.predict("regular", options, targets=True)) == 30


def test_contributions_of_nodes_that_are_alike_are_not_checked(tmp_path: Path) -> None:
    from g2n2.training.explain_run import Explainer

    run = train(rings(), out=tmp_path / "run", **SMALL)
    graphs = g2n2.read_graphs(rings(4))
    agreement = Explainer(run, None, graphs).agreement(graphs)
    assert str(agreement).endswith("no held-out graph has nodes that differ in them")


def test_the_nodes_of_one_graph_are_not_split(tmp_path: Path) -> None:
    graph = nx.karate_club_graph()
    nx.set_node_attributes(graph, {node: float(node % 2) for node in graph}, "y")
    with pytest.raises(DataError, match="whole graphs are split and not the nodes or edges of one"):
        train([graph], out=tmp_path / "run", **SMALL)


def test_power_and_export_of_a_baseline_name_the_run(tmp_path: Path) -> None:
    settings = {name: value for name, value in SMALL.items() if name != "grammar"}
    run = train(rings(), out=tmp_path / "gin", baseline="GIN", **settings)
    with pytest.raises(
        DataError, match="gin is a run of the baseline GIN, expected a network of a"
    ):
        g2n2.export(run, tmp_path / "gin.onnx")


def test_pyg_data(tmp_path: Path) -> None:
    data = pytest.importorskip("torch_geometric.data")
    utils = pytest.importorskip("torch_geometric.utils")
    graphs = []
    for graph in rings():
        made = utils.from_networkx(nx.Graph(graph.edges))
        graphs.append(
            data.Data(
                edge_index=made.edge_index, num_nodes=len(graph), y=torch.tensor([graph.graph["y"]])
            )
        )
    run = train(graphs, out=tmp_path / "run", **SMALL)
    assert run.predict(graphs[:3]).values.shape == (3, 1)


def test_settings_reach_the_run(tmp_path: Path) -> None:
    options = {**SMALL, "width": 6, "decision": (5,), "seed": 3, "limit": 12, "rate": 0.01}
    run = train(rings(), out=tmp_path / "run", **options)
    config = run.config
    assert (config.width, config.decision, config.seed, config.rate) == (6, (5,), 3, 0.01)
    assert run.files.read_json("data.json")["graphs"] == 12
    grammar = g2n2.Grammar.parse("V → AV | V⊙V | 1")
    own = train(rings(), out=tmp_path / "own", **{**SMALL, "grammar": grammar})
    assert own.model.plan.grammar == grammar
    named = train(
        rings(), out=tmp_path / "named", **{**SMALL, "grammar": g2n2.find_grammar("r-G_L1")}
    )
    assert named.config.grammar == "r-G_L1"
    with pytest.warns(UserWarning, match="stands for its reduced grammar"):
        reduced = train(rings(), out=tmp_path / "reduced", **{**SMALL, "grammar": "L1"})
    assert reduced.model.plan.grammar == g2n2.find_grammar("r-G_L1")


def test_resume_keeps_the_limit_of_minutes(tmp_path: Path) -> None:
    train(rings(), out=tmp_path / "run", minutes=5.0, **SMALL)
    assert load(tmp_path / "run").config.minutes == 5.0
    settings = {name: value for name, value in SMALL.items() if name != "device"}
    for minutes in (5.0, 7.0):
        given = {} if minutes == 5.0 else {"minutes": minutes}
        train(rings(), out=tmp_path / "run", resume=True, **given, **settings)
        with_it = json.loads((tmp_path / "run" / "result.json").read_text())["config"]
        assert (with_it["minutes"], with_it["device"]) == (minutes, "cpu")


def test_a_run_of_a_gpu_goes_on_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(rings(), out=tmp_path / "run", **SMALL)
    config = RunFolder.config
    monkeypatch.setattr(RunFolder, "config", lambda self: replace(config(self), device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = {name: value for name, value in SMALL.items() if name != "device"}
    train(rings(), out=tmp_path / "run", resume=True, **settings)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["config"]["device"] == "auto"


def test_resume_goes_on_with_the_runs_own_settings(tmp_path: Path) -> None:
    from g2n2.training.session import Watch

    whole = train(rings(), out=tmp_path / "whole", **SMALL)

    def stop(loop: Any) -> None:
        raise KeyboardInterrupt

    watch, graphs = Watch(epoch=stop), g2n2.read_graphs(rings())
    with pytest.raises(KeyboardInterrupt):
        train_config(whole.config, tmp_path / "part", graphs=graphs, watch=watch, pictures=False)
    run = train(rings(), out=tmp_path / "part", resume=True, **{**SMALL, "width": 99})
    assert run.config.width == SMALL["width"]
    for left, right in zip(run.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"dataset": "no/such.csv"}, DataError, "no file or folder"),
        ({"dataset": "qm10"}, DataError, "did you mean qm9"),
        ({"dataset": []}, DataError, "holds no graph"),
        ({"dataset": 7}, DataError, "expected a path or a list of graphs"),
        ({"target": "z"}, DataError, "no target 'z'"),
        (
            {"dataset": [nx.path_graph(4)] * 20},
            DataError,
            "no target to learn; .*'y' of graph.graph",
        ),
        ({"dataset": [nx.path_graph(4)], "target": "z"}, DataError, "'z'; a target is 'y' of"),
        ({"dataset": [np.ones((3, 3))] * 20}, DataError, "matrices have no targets"),
        ({"width": 0}, DataError, "width must be at least 1"),
        ({"width": "wide"}, DataError, "width in train should be a whole number, got 'wide'"),
        ({"grammar": "nonsense"}, GrammarError, "no grammar is called"),
        ({"options": {"colour": 1}}, DataError, "no option 'colour'"),
        ({"resume": True, "out": None}, DataError, "name its folder with out="),
        ({"resume": True}, DataError, "nothing to resume"),
    ],
)
def test_mistakes_are_told_in_words(
    arguments: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        train(**{"dataset": rings(), "out": tmp_path / "run", **SMALL, **arguments})
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_run_without_result_says_so(tmp_path: Path) -> None:
    run = train(rings(), out=tmp_path / "run", **SMALL)
    (tmp_path / "run" / "result.json").unlink()
    with pytest.raises(DataError, match=r"has no result\.json"):
        _ = run.scores
    assert "run folder" in str(run)


def test_progress_is_shown_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(rings(), out=tmp_path / "a", **SMALL)
    assert capsys.readouterr().out == ""
    train(rings(), out=tmp_path / "b", **SMALL, progress=True)
    assert "GNNML1" in capsys.readouterr().out
