"""Runs that start from a trained network: what they take over, freeze, refuse and resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from g2n2 import train
from g2n2.cli import app
from g2n2.data import summary
from g2n2.data.graph_set import Target
from g2n2.errors import DataError
from g2n2.nn.files import load
from g2n2.nn.model import GrammarGNN
from g2n2.training.config import RunConfig
from g2n2.training.fine_tuning import Start, freeze
from g2n2.training.run import HELD_OUT, Run
from g2n2.training.run_folder import KEYS
from g2n2.training.session import Watch, train_config
from g2n2.training.setup import prepare
from g2n2.training.trained_before import TrainedBefore
from small_runs import largest_difference, learned_state, no_pictures
from small_sets import small_set

QUICK: dict[str, Any] = {"width": 6, "layers": 2, "epochs": 2, "batch": 8, "device": "cpu"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("source") / "run"
    with no_pictures():
        return train(small_set(columns=2), out=folder, threads=1, **QUICK)


def start_config(run: Run, **changes: Any) -> RunConfig:
    settings = {"epochs": 2, "batch": 8, "device": "cpu", "threads": 1, **changes}
    return RunConfig("small", start=str(run.folder), **settings)


def outputs(model: torch.nn.Module, config: RunConfig, parts: Any) -> Any:
    from g2n2.training.evaluate import predict
    from g2n2.training.setup import make_store

    store = make_store(config, parts.graphs, torch.device("cpu"))
    return predict(model, parts, store, np.arange(len(parts.graphs))).predicted


@contextmanager
def data_moved(run: Run, folder: Path) -> Iterator[None]:
    """While open, the data of a run lies elsewhere."""
    moved = Path(run.config.dataset).rename(folder / "elsewhere.csv")
    try:
        yield
    finally:
        moved.rename(run.config.dataset)


def test_before_the_first_step_it_predicts_what_the_trained_network_does(trained: Run) -> None:
    """With columns in another order, one more column, one target less, another scaling."""
    graphs = small_set(columns=2)
    extra = np.random.default_rng(0).normal(size=(len(graphs.node_features), 1))
    turned = replace(
        graphs,
        node_features=np.hstack([extra, graphs.node_features[:, ::-1]]).astype(np.float32),
        node_names=("new", "b", "a"),
        targets=graphs.targets[:, 1:],
        columns=graphs.columns[1:],
    )
    start = Start.find(str(trained.folder))
    config = start.settings(start_config(trained))
    parts = prepare(config, turned.select(np.arange(0, len(graphs), 2)))
    assert parts.scaling.mean != pytest.approx(trained.trained_on.scaling.mean[1:])
    model, sentences = start.network(config, parts)
    expected = trained.predict(graphs.select(np.arange(0, len(graphs), 2))).predicted[:, 1:]
    assert outputs(model, config, parts) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert "new" in " ".join(sentences)
    strange = prepare(config, replace(turned, node_names=("x", "y", "z"), edge_names=("e",)))
    with pytest.raises(DataError, match=r"no input column of small is known .* on a, b"):
        start.network(config, strange)
    with pytest.raises(DataError, match="freeze would keep their weights at 0"):
        start.network(replace(config, freeze=1), parts)


def test_frozen_layers_stay_and_the_others_learn(trained: Run, tmp_path: Path) -> None:
    with no_pictures():
        train(
            small_set(),
            out=tmp_path / "run",
            start=trained.folder,
            freeze=1,
            threads=1,
            epochs=2,
            batch=8,
            device="cpu",
        )
    first = load(tmp_path / "run" / "start.safetensors").state_dict()
    last = learned_state(tmp_path / "run")["model"]
    frozen = {name for name in first if name.startswith(("embeddings.", "layers.0."))}
    moved = {name for name in first if not torch.equal(first[name], last[name])}
    assert frozen
    assert not moved & frozen
    assert any(name.startswith("layers.1.") for name in moved)
    assert any(name.startswith("readout.") for name in moved)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_layers_before_the_marks_are_the_first_that_are_frozen(count: int) -> None:
    model = GrammarGNN("r-G_L3Σ", node_features=2, width=4, layers=2, trunk=1)
    freeze(model, count)
    first = ["trunk_embeddings.", "trunk.0.", "layers.0.", "layers.1."][: 1 + count]
    expected = {*first, *(["embeddings."] if count > 1 else [])}
    frozen = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    assert frozen == {n for n, _ in model.named_parameters() if n.startswith(tuple(expected))}
    with pytest.raises(DataError, match="freeze is 4, and the network has 3 layers"):
        freeze(model, 4)


def test_other_targets_get_a_new_head_on_the_trained_body(trained: Run) -> None:
    graphs = small_set()
    other = replace(graphs, columns=(Target("another"),))
    start = Start.find(str(trained.folder))
    config = start.settings(start_config(trained))
    model, sentences = start.network(config, prepare(config, other))
    before, after = start.model.state_dict(), model.state_dict()
    body = [name for name in before if name.startswith(("embeddings.", "layers."))]
    assert all(torch.equal(before[name], after[name]) for name in body)
    last = [name for name in after if after[name].shape[0] == 1 and name.startswith("readout.")]
    assert last
    assert all(before[name].shape != after[name].shape for name in last)
    assert "another is new" in sentences[0]


def test_a_resumed_run_says_what_its_start_was_trained_on(trained: Run, tmp_path: Path) -> None:
    config = start_config(trained, epochs=2, split="random", seed=3)

    def stop(loop: Any) -> None:
        if loop.progress.steps == 5:
            raise KeyboardInterrupt

    graphs, watch = small_set(columns=2), Watch(step=stop)
    cut = replace(config, checkpoint_seconds=0.0)
    with no_pictures():
        with pytest.raises(KeyboardInterrupt):
            train_config(cut, tmp_path / "run", graphs=graphs, watch=watch)
        result = train_config(config, tmp_path / "run", graphs=graphs, resume=True)
    said = Run(tmp_path / "run", "cpu").trained_on.trained_before
    assert said.endswith(f"{trained.folder} was trained on")
    assert result.parts.trained_before == said


def test_it_resumes_in_the_same_bytes_without_the_run_it_started_from(
    trained: Run, tmp_path: Path
) -> None:
    source = Run(shutil.copytree(trained.folder, tmp_path / "source"), "cpu")
    config = start_config(source, freeze=1, epochs=3)

    def stop(loop: Any) -> None:
        if loop.progress.steps == 5:
            raise KeyboardInterrupt

    with no_pictures():
        train_config(config, tmp_path / "whole", graphs=small_set())
        with pytest.raises(KeyboardInterrupt):
            train_config(
                replace(config, checkpoint_seconds=0.0),
                tmp_path / "cut",
                graphs=small_set(),
                watch=Watch(step=stop),
            )
        shutil.rmtree(tmp_path / "source")
        train_config(config, tmp_path / "cut", graphs=small_set(), resume=True)
    states = [learned_state(tmp_path / name) for name in ("whole", "cut")]
    assert largest_difference(*states) == 0
    assert Run(tmp_path / "cut", "cpu").config.start == str(tmp_path / "source")


def test_what_cannot_be_started_from_is_refused(trained: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run folder or network 'nope' to start from"):
        Start.find("nope")
    assert Start.find("qm9").run is not None, "a network that comes with g2n2"
    start = Start.find(str(trained.folder / "best.safetensors"))
    assert start.run is not None, "the run of the file is known"
    with pytest.raises(DataError, match="leave out width, or train from the beginning"):
        start.settings(start_config(trained, width=9))
    with pytest.raises(DataError, match="freeze keeps layers of the network to start from"):
        train_config(RunConfig("x", freeze=1), tmp_path / "run")
    with pytest.raises(DataError, match="freeze is 3, and the network has 2 layers"):
        train_config(start_config(trained, freeze=3), tmp_path / "run", graphs=small_set())
    shutil.copy(trained.folder / "best.safetensors", tmp_path / "bare.safetensors")
    bare = Start.find(str(tmp_path / "bare.safetensors"))
    config = bare.settings(start_config(trained))
    fewer = replace(small_set(), node_features=small_set().node_features[:, :1], node_names=("a",))
    with pytest.raises(DataError, match="give the same columns"):
        bare.network(config, prepare(config, fewer))


def molecules_csv(path: Path, order: Any, ids: str) -> Path:
    """Chains with one other atom, from short to long, and their number of atoms, in some order.

    With ids that begin with z they are written from the other end.
    """
    texts = [f"{'C' * n}{end}" for n in range(1, 11) for end in "ONFS"]
    texts = [text[::-1] for text in texts] if ids == "z" else texts
    lines = [f"{ids}{i},{texts[i]},{len(texts[i])}" for i in order]
    path.write_text("\n".join(["id,smiles,atoms", *lines, ""]))
    return path


@pytest.fixture(scope="module")
def on_molecules(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("molecules")
    data = molecules_csv(folder / "mine.csv", range(30), "m")
    with no_pictures():
        return train(data, "atoms", out=folder / "run", threads=1, **QUICK)


def started(run: Run, data: Path, out: Path, **changes: Any) -> tuple[Run, list[str]]:
    """A run that starts from another, with the texts of its training molecules."""
    settings = {"start": run.folder, "epochs": 1, "batch": 8, "device": "cpu", "threads": 1}
    with no_pictures():
        tuned = train(data, "atoms", out=out, **settings | changes)
    return tuned, texts_of(tuned, "train")


def texts_of(run: Run, *parts: str) -> list[str]:
    smiles = run.own_graphs().source["smiles"]
    return [smiles[i] for part in parts for i in run.files.splits()[part]]


def test_graphs_of_the_start_stay_in_their_parts_with_another_seed_order_and_ids(
    on_molecules: Run, tmp_path: Path
) -> None:
    order = np.random.default_rng(1).permutation(30)
    data = molecules_csv(tmp_path / "shuffled.csv", order, "z")
    tuned, train_texts = started(on_molecules, data, tmp_path / "run", seed=5)
    assert sorted(train_texts) == sorted(texts_of(on_molecules, "train"))
    notes = " ".join(tuned.trained_on.notes)
    assert "The split is that of" in notes
    assert "was trained on" not in notes
    assert tuned.trained_on.trained_before == ""
    # a run that starts from that one knows of the first
    again, _ = started(tuned, molecules_csv(tmp_path / "a.csv", range(30), "m"), tmp_path / "again")
    assert sorted(texts_of(again, "test")) == sorted(texts_of(on_molecules, "test"))


@pytest.mark.parametrize("new", [1, 0])
def test_a_split_changed_in_a_chain_keeps_what_none_of_it_was_trained_on(
    on_molecules: Run, tmp_path: Path, new: int
) -> None:
    """Of 3 validation and 3 test graphs of the second run, `new` are new to the first too."""
    data, base = Path(on_molecules.config.dataset), on_molecules.files.splits()
    seen = iter(base["train"].tolist())
    held = {
        name: [*base[name][:new].tolist(), *(next(seen) for _ in range(3 - new))]
        for name in ("validation", "test")
    }
    rest = sorted({*range(30)} - {*held["validation"], *held["test"]})
    (tmp_path / "split.json").write_text(json.dumps({"train": rest, **held}))
    split = f"file:{tmp_path / 'split.json'}"
    first = on_molecules.folder / "best.safetensors"  # its run is known too
    second, _ = started(on_molecules, data, tmp_path / "second", split=split, start=first)
    again, known = started(second, data, tmp_path / "again", seed=7)
    notes = " ".join(again.trained_on.notes)
    assert "has all these graphs" not in notes
    without = f"without what {first} was trained on"
    before = {*texts_of(on_molecules, "train"), *texts_of(second, "train")}
    if new:
        assert f"The split is that of {second.folder} {without}: 28/1/1 graphs." in notes
        assert {*known} == before
        assert again.trained_on.trained_before == ""
    else:
        left = "0 of its 3 validation graphs and 0 of its 3 test graphs"
        assert f"{second.folder} is not taken over: {without} it has {left}." in notes
        counts = [len(texts_of(again, part)) for part in ("train", "validation", "test")]
        assert counts == [24, 3, 3]
        count = len(before.intersection(texts_of(again, "validation")))
        assert f"was trained on {count} of the 3 graphs in validation" in notes


def test_a_graph_that_is_in_train_and_in_test_was_trained_on(
    on_molecules: Run, tmp_path: Path
) -> None:
    data = Path(on_molecules.config.dataset)
    lines = data.read_text().splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([*lines, lines[1].replace("m0", "m30"), ""]))
    split = {"train": [*range(25)], "validation": [25, 26, 27], "test": [28, 29, 30]}
    (tmp_path / "split.json").write_text(json.dumps(split))
    with no_pictures():
        run = train(
            tmp_path / "twice.csv", "atoms", out=tmp_path / "run", threads=1,
            split=f"file:{tmp_path / 'split.json'}", **QUICK,
        )  # fmt: skip
    _, known = started(run, data, tmp_path / "again", seed=3)
    first = on_molecules.own_graphs().source["smiles"][0]
    assert first in texts_of(run, "test")
    assert first in known


def test_a_split_of_which_less_than_a_tenth_is_left_is_not_taken_over() -> None:
    graphs = small_set(graphs=60)
    own = np.repeat(["train", "validation", "test"], 20)
    for left, taken in ((2, True), (1, False)):
        for start in (20, 40):
            part = own.copy()
            part[start + left : start + 20] = "train"
            before = TrainedBefore("second", part, own, ("first",), np.zeros(60, dtype=bool))
            found = before.splits(RunConfig("small"), graphs)
            assert (found is not None) == taken


def test_graphs_of_the_start_that_are_held_out_are_counted(
    on_molecules: Run, tmp_path: Path
) -> None:
    known = {*texts_of(on_molecules, "train")}
    whole = molecules_csv(tmp_path / "more.csv", range(38), "m")
    for number, (data, changes, advice) in enumerate(
        (
            (Path(on_molecules.config.dataset), {"split": "random"}, "leave out --split"),
            (whole, {}, "--split file:PATH"),
        )
    ):
        tuned, _ = started(on_molecules, data, tmp_path / str(number), seed=3, **changes)
        notes = " ".join(tuned.trained_on.notes)
        for part in ("validation", "test"):
            texts = texts_of(tuned, part)
            count = sum(text in known for text in texts)
            assert count > 0
            assert f"{count} of the {len(texts)} graphs in {part}" in notes
        assert advice in notes
        assert tuned.trained_on.trained_before.startswith(f"{count} of which")
        assert tuned.trained_on.trained_before.endswith("was trained on")


def test_what_may_have_been_trained_on_is_counted_where_it_is_not_known(
    on_molecules: Run, tmp_path: Path
) -> None:
    """By the ranges of a run without its data; of a file nothing is known."""
    folder = shutil.copytree(on_molecules.folder, tmp_path / "alone")
    (folder / KEYS).unlink()  # as in folders of earlier versions
    largest = max(len(text) for text in texts_of(on_molecules, "train"))
    data = molecules_csv(tmp_path / "mine.csv", range(40), "m")
    with data_moved(on_molecules, tmp_path):
        tuned, _ = started(Run(folder, "cpu"), data, tmp_path / "run", seed=3)
    texts = texts_of(tuned, "test")
    count = sum(len(text) <= largest for text in texts)
    assert 0 < count < len(texts)
    before = tuned.trained_on.trained_before
    assert before == f"{count} of which {folder} may have been trained on"
    never = [text for text in texts if len(text) <= largest][:1]
    (folder / HELD_OUT).write_text("\n".join(["smiles", *never, ""]))
    moved = Path(on_molecules.config.dataset).rename(tmp_path / "elsewhere.csv")
    try:
        again, _ = started(Run(folder, "cpu"), data, tmp_path / "held-out", seed=3)
    finally:
        moved.rename(on_molecules.config.dataset)
    assert texts_of(again, "test") == texts
    assert again.trained_on.trained_before.startswith(f"{count - 1} of which")
    network = Path(shutil.copy(folder / "best.safetensors", tmp_path / "network.safetensors"))
    with no_pictures():
        tuned = train(
            data, "atoms", out=tmp_path / "of-file", start=network, epochs=1, batch=8, device="cpu",
            threads=1,
        )  # fmt: skip
    assert tuned.trained_on.trained_before.startswith("4 of which")


def test_keys_do_not_depend_on_positions_that_a_network_leaves_out(tmp_path: Path) -> None:
    graphs = small_set(graphs=40)
    rng = np.random.default_rng(0)
    placed = replace(graphs, positions=rng.normal(size=(graphs.sizes.sum(), 3)).astype(np.float32))
    with no_pictures():
        source = train(placed, out=tmp_path / "first", grammar="GNNML1", threads=1, **QUICK)
        some = placed.select(list(range(30)))
        tuned = train(
            some, out=tmp_path / "second", start=source.folder, epochs=1, batch=8, device="cpu",
            threads=1,
        )  # fmt: skip
    assert not source.trained_on.positions
    notes = " ".join(tuned.trained_on.notes)
    assert "The split is that of" in notes


def test_graphs_are_hashed_once_for_the_summary_the_keys_and_the_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, real = [], summary.graph_hashes
    monkeypatch.setattr(summary, "graph_hashes", lambda graphs: calls.append(1) or real(graphs))
    words = "regular --option count=50 --option nodes=8 --width 4 --layers 1 --epochs 1"
    out = str(tmp_path / "run")
    with no_pictures():
        done = CliRunner().invoke(app, ["train", *words.split(), "--device", "cpu", "--out", out])
    assert done.exit_code == 0, done.output
    assert len(calls) == 1


def test_a_run_whose_data_is_gone_knows_its_graphs(on_molecules: Run, tmp_path: Path) -> None:
    known = {*texts_of(on_molecules, "train")}
    data = molecules_csv(tmp_path / "mine.csv", range(40), "m")
    folder = shutil.copytree(on_molecules.folder, tmp_path / "alone")
    with data_moved(on_molecules, tmp_path):
        tuned, _ = started(Run(folder, "cpu"), data, tmp_path / "run", seed=3)
    texts = texts_of(tuned, "test")
    count = sum(text in known for text in texts)
    assert 0 < count < len(texts)
    assert tuned.trained_on.trained_before == f"{count} of which {folder} was trained on"
    assert not any(text in (folder / KEYS).read_text() for text in known if len(text) > 6)


def test_some_of_the_graphs_in_memory_are_known_again(tmp_path: Path) -> None:
    """By their keys, whatever their order is, where features are scaled and columns turned."""
    rng = np.random.default_rng(0)
    whole = small_set(columns=2, graphs=80)
    whole = replace(whole, node_features=(1000 * whole.node_features).astype(np.float32))
    first, rest = whole.select(list(range(50))), rng.permutation(80)[:60]
    some = whole.select(rest.tolist())
    some = replace(
        some, node_features=some.node_features[:, ::-1].copy(), node_names=some.node_names[::-1]
    )
    with no_pictures():
        source = train(first, out=tmp_path / "first", threads=1, **QUICK)
        tuned = train(
            some, out=tmp_path / "second", start=source.folder, epochs=1, batch=8, device="cpu",
            threads=1,
        )  # fmt: skip
    trained_on = {*source.files.splits()["train"].tolist()}
    test = tuned.files.splits()["test"]
    count = sum(int(rest[index]) in trained_on for index in test)
    assert 0 < count < len(test)
    before = tuned.trained_on.trained_before
    assert before == f"{count} of which {source.folder} was trained on"
    path = source.folder / KEYS
    path.write_text(path.read_text().replace('"by"', '"of"'))
    with pytest.raises(DataError, match=r"graph_keys\.json is not the file this run wrote"):
        source.files.graph_keys()


def test_graphs_in_memory_that_are_the_same_again_keep_their_split(
    trained: Run, tmp_path: Path
) -> None:
    with no_pictures():
        tuned = train(
            small_set(columns=2), out=tmp_path / "run", start=trained.folder, seed=4, epochs=1,
            batch=8, device="cpu", threads=1,
        )  # fmt: skip
    for part, members in trained.files.splits().items():
        assert tuned.files.splits()[part].tolist() == members.tolist()
