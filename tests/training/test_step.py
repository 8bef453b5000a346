"""Steps that go wrong: memory that runs out, numbers that are not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from g2n2.data.batch import PackedBatch
from g2n2.data.batching import epoch_batches
from g2n2.data.graph_set import GraphSet
from g2n2.errors import TrainingError
from g2n2.nn import memory_budget
from g2n2.nn.model import GrammarGNN
from g2n2.training.loop import BAD_BATCH, Loop
from g2n2.training.session import Result, Watch, train_config
from small_runs import largest_difference, learned_state, no_pictures, small_config, small_graphs


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with no_pictures():
        yield


def run(folder: Path, graphs: Any = None, notes: list[str] | None = None, **changes: Any) -> Result:
    watch = Watch(note=[].append if notes is None else notes.append)
    return train_config(
        small_config(**changes), folder, graphs=graphs or small_graphs(), watch=watch
    )


def out_of_memory_above(graphs: int, error: Callable[[], Exception]) -> Callable[..., Tensor]:
    real = GrammarGNN.forward

    def forward(self: GrammarGNN, batch: PackedBatch) -> Tensor:
        if len(batch) > graphs:
            raise error()
        return real(self, batch)

    return forward


def no_memory() -> Exception:
    return torch.OutOfMemoryError("CUDA out of memory")


@pytest.fixture(scope="module")
def plenty(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run with memory enough."""
    return run(tmp_path_factory.mktemp("plenty"), precision="64")


def test_out_of_memory_halves_the_micro_batch_and_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plenty: Result
) -> None:
    monkeypatch.setattr(GrammarGNN, "forward", out_of_memory_above(3, no_memory))
    notes: list[str] = []
    little = run(tmp_path, notes=notes, precision="64")
    assert [note for note in notes if "memory" in note] == [
        "out of memory: going on with 4 graphs at once, the batch is still 8",
        "out of memory: going on with 2 graphs at once, the batch is still 8",
    ]
    left, right = learned_state(plenty.folder), learned_state(tmp_path)
    assert largest_difference(left, right) < 1e-12
    assert right["progress"]["micro"] == 2
    for ours, theirs in zip(plenty.history, little.history, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-12)
        assert ours["validation mae"] == pytest.approx(theirs["validation mae"], rel=1e-12)
    assert plenty.scores["all"]["mae"] == pytest.approx(little.scores["all"]["mae"], rel=1e-12)


def test_the_memory_budget_is_kept_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = GrammarGNN(node_features=1, width=4, layers=1, out=2)
    enough_for_two = memory_budget.estimate(network, 2, 8)
    assert enough_for_two < memory_budget.estimate(network, 3, 8)
    monkeypatch.setattr(memory_budget, "device_memory", lambda _: enough_for_two)
    notes: list[str] = []
    run(tmp_path, notes=notes, epochs=1)
    assert any("going on with 2 graphs at once" in note for note in notes)


def test_memory_too_small_for_one_graph_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GrammarGNN, "forward", out_of_memory_above(0, no_memory))
    with pytest.raises(TrainingError, match=r"not suffice for one graph of 8 nodes: CUDA out of"):
        run(tmp_path)


def test_another_error_is_not_taken_for_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = out_of_memory_above(3, lambda: RuntimeError("a size that does not fit"))
    monkeypatch.setattr(GrammarGNN, "forward", fault)
    with pytest.raises(RuntimeError, match="does not fit"):
        run(tmp_path)


def poisoned(graph: int, feature: float = 1.0, target: float = 1.0) -> GraphSet:
    """Graphs of which one has a feature or targets so large that float32 overflows."""
    graphs = small_graphs()
    features, targets = graphs.node_features.copy(), graphs.targets.copy()
    features[graph * 8] = feature
    targets[graph] = target
    return replace(graphs, node_features=features, targets=targets)


@pytest.mark.parametrize("looks", [True, False], ids=["each step", "late, as on a GPU"])
def test_a_loss_that_is_not_finite_stops_and_keeps_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    if not looks:
        monkeypatch.setattr(Loop, "due", property(lambda _: False))
    # Batches of one: whichever step it is, there is a checkpoint of the step before.
    graph = 7
    with pytest.raises(TrainingError, match="loss became NaN or infinite; the batch is saved in"):
        run(tmp_path, poisoned(graph, target=3e38), batch=1, checkpoint_seconds=0.0, recipe="paper")
    with np.load(tmp_path / BAD_BATCH, allow_pickle=False) as saved:
        assert saved["indices"].tolist() == [graph]
        assert saved["ids"].tolist() == ["7"]
        assert saved["adjacency"].sum() == 3 * 8
        assert saved["learned_targets"].tolist() == [[np.float32(3e38)] * 2]
    state = learned_state(tmp_path)
    order = [int(batch[0]) for batch in epoch_batches(np.full(30, 8), 1, 0, 0, 1)]
    assert state["progress"]["steps"] == order.index(graph) > 0
    assert all(torch.isfinite(weight).all() for weight in state["model"].values())


def test_a_gradient_that_is_not_finite_stops_at_its_own_batch(tmp_path: Path) -> None:
    graph = 7
    with pytest.raises(TrainingError, match="gradient became NaN or infinite"):
        run(tmp_path, poisoned(graph, feature=1e30), batch=1, checkpoint_seconds=0.0)
    with np.load(tmp_path / BAD_BATCH, allow_pickle=False) as saved:
        assert saved["indices"].tolist() == [graph]
    assert all(torch.isfinite(w).all() for w in learned_state(tmp_path)["model"].values())


def test_no_checkpoint_holds_weights_that_are_not_finite(tmp_path: Path) -> None:
    def spoil(loop: Any) -> None:
        if loop.progress.steps == 2:
            next(loop.model.parameters()).data.fill_(float("inf"))

    watch = Watch(step=spoil)
    config = small_config(checkpoint_seconds=0.0)
    with pytest.raises(TrainingError, match="weights became NaN"):
        train_config(config, tmp_path, graphs=small_graphs(), watch=watch)
    assert learned_state(tmp_path)["progress"]["steps"] == 1


def test_a_replay_that_does_not_fit_is_given_up(
    plenty: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same steps are then taken one operation after the other."""

    class Full:
        def fits(self, _: Any) -> bool:
            return True

        def step(self, *_: Any) -> Any:
            raise no_memory()

    monkeypatch.setattr(
        "g2n2.training.cuda_graphs.Recorded.record_steps",
        lambda recorded, _: setattr(recorded, "step", Full()),
    )
    notes: list[str] = []
    result = run(tmp_path / "run", notes=notes)
    assert sum("without them" in note for note in notes) == 1
    assert result.history[-1]["loss"] == pytest.approx(plenty.history[-1]["loss"], rel=1e-5)


def test_a_batch_that_fits_no_recording_is_taken_plainly(
    plenty: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what recorded steps keep of the weights follows."""
    refreshed: list[int] = []

    class Small:
        copies = SimpleNamespace(refresh=lambda: refreshed.append(1))
        inputs = SimpleNamespace(store=None)

        def fits(self, _: Any) -> bool:
            return False

    monkeypatch.setattr(
        "g2n2.training.cuda_graphs.Recorded.record_steps",
        lambda recorded, _: setattr(recorded, "step", Small()),
    )
    result = run(tmp_path / "run", precision="64")
    assert refreshed
    assert result.history[-1]["loss"] == pytest.approx(plenty.history[-1]["loss"], rel=1e-12)
