"""What a run gives again, refuses, masks and survives, within one process."""

from __future__ import annotations

import errno
import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from g2n2.data.graph_set import GraphSet, Target
from g2n2.data.store import GraphStore
from g2n2.errors import DataError
from g2n2.training import loop
from g2n2.training.checkpoint import CHECKPOINT, PREVIOUS, load_checkpoint, save_checkpoint
from g2n2.training.display import data_sentences
from g2n2.training.evaluate import outputs
from g2n2.training.plots import draw
from g2n2.training.run import Run
from g2n2.training.run_folder import RunFolder
from g2n2.training.session import Result, Watch, train_config
from g2n2.training.setup import make_model, prepare
from g2n2.training.task import Task
from small_runs import (
    class_graphs,
    largest_difference,
    learned_state,
    no_pictures,
    same_bytes,
    small_config,
    small_graphs,
)


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with no_pictures():
        yield


def run(folder: Path, graphs: GraphSet | None = None, **changes: Any) -> Result:
    return train_config(small_config(**changes), folder, graphs=graphs or small_graphs())


def stop_at(step: int) -> Watch:
    """Interrupts a run after so many steps, as Ctrl-C would."""

    def interrupt(loop: Any) -> None:
        if loop.progress.steps == step:
            os.kill(os.getpid(), 2)

    return Watch(step=interrupt)


def resume(folder: Path, graphs: GraphSet | None = None) -> tuple[Result, list[str]]:
    notes: list[str] = []
    watch = Watch(note=notes.append)
    graphs = graphs or small_graphs()
    return train_config(small_config(), folder, graphs=graphs, resume=True, watch=watch), notes


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run of 3 epochs of 4 steps."""
    return run(tmp_path_factory.mktemp("done"))


@pytest.fixture
def halfway(tmp_path: Path) -> Path:
    """The same run interrupted after 6 of its 12 steps."""
    folder = tmp_path / "halfway"
    with pytest.raises(KeyboardInterrupt):
        train_config(small_config(), folder, graphs=small_graphs(), watch=stop_at(5))
    assert learned_state(folder)["progress"]["steps"] == 6
    return folder


def same_run(left: Path, right: Path) -> bool:
    files = ("metrics.csv", "best.safetensors", "split.json", "data.json", "test.csv")
    return same_bytes(learned_state(left), learned_state(right)) and all(
        (left / name).read_bytes() == (right / name).read_bytes() for name in files
    )


def test_the_same_seed_gives_the_same_bytes_however_often_it_is_saved(
    done: Result, tmp_path: Path
) -> None:
    torch.rand(7)  # what was drawn before a run does not matter
    run(tmp_path / "saved often", checkpoint_seconds=0.0)
    assert same_run(done.folder, tmp_path / "saved often")


def test_a_damaged_checkpoint_does_not_replace_the_one_before(
    done: Result, halfway: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between keeping the old checkpoint and naming the new one, the run still goes on."""
    content, _ = load_checkpoint(halfway)
    assert content is not None
    save_checkpoint(halfway, content)
    (halfway / CHECKPOINT).write_bytes(b"damaged")
    rename = os.replace

    def killed(source: Path, target: Path) -> None:
        if target == halfway / CHECKPOINT:
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            resume(halfway)
    resume(halfway)
    assert same_run(done.folder, halfway)


def test_another_seed_gives_others(done: Result, tmp_path: Path) -> None:
    run(tmp_path, seed=1)
    assert largest_difference(learned_state(done.folder), learned_state(tmp_path)) > 1e-3


def test_an_interrupted_run_ends_in_the_same_bytes(done: Result, halfway: Path) -> None:
    _, notes = resume(halfway)
    assert not notes
    assert same_run(done.folder, halfway)


def test_steps_are_recorded_with_the_weights_a_run_goes_on_with(
    halfway: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-precision copies are made then: copies of other weights would give a wrong step."""
    seen = []

    def recording(_: Any, learner: Any) -> None:
        weights = {k: v.clone() for k, v in learner.model.state_dict().items()}
        seen.append((weights, bool(learner.optimiser.state)))

    content, _ = load_checkpoint(halfway)
    monkeypatch.setattr("g2n2.training.cuda_graphs.Recorded.record_steps", recording)
    resume(halfway)
    ((weights, knows),) = seen
    assert knows, "the optimiser has its state"
    assert all(torch.equal(weights[name], value) for name, value in content["model"].items())


def test_an_interrupted_run_with_dropout_ends_in_the_same_bytes(
    done: Result, tmp_path: Path
) -> None:
    config = small_config(dropout=0.3)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train_config(config, whole, graphs=small_graphs())
    with pytest.raises(KeyboardInterrupt):
        train_config(config, parts, graphs=small_graphs(), watch=stop_at(5))
    torch.rand(3)  # the numbers drawn go on where they stopped
    train_config(config, parts, graphs=small_graphs(), resume=True)
    assert same_run(whole, parts)
    assert largest_difference(learned_state(done.folder), learned_state(whole)) > 1e-3


def test_a_crash_epochs_after_a_shared_checkpoint_costs_only_time(
    done: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(run: Any) -> None:
        if run.progress.epoch == 2:
            raise RuntimeError("crash")

    monkeypatch.setattr(loop, "SHORT_EPOCH", 1e6)
    with pytest.raises(RuntimeError, match="crash"):
        train_config(
            small_config(), tmp_path / "a", graphs=small_graphs(), watch=Watch(epoch=crash)
        )
    monkeypatch.undo()
    resume(tmp_path / "a")
    assert same_run(done.folder, tmp_path / "a")


def test_a_truncated_checkpoint_is_said_and_costs_only_time(done: Result, tmp_path: Path) -> None:
    config = small_config(checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        train_config(config, tmp_path, graphs=small_graphs(), watch=stop_at(5))
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[:1000])
    assert (tmp_path / PREVIOUS).is_file()
    _, notes = resume(tmp_path)
    assert [note for note in notes if "damaged" in note and "from the one before it" in note]
    assert same_run(done.folder, tmp_path)


def test_a_checkpoint_of_another_run_is_refused(
    done: Result, halfway: Path, tmp_path: Path
) -> None:
    run(tmp_path / "other", seed=1)
    (halfway / CHECKPOINT).write_bytes((tmp_path / "other" / CHECKPOINT).read_bytes())
    (halfway / "manifest.json").unlink()  # without checksums the settings are compared
    with pytest.raises(DataError, match=r"does not fit this run .*seed 1 and not 0"):
        resume(halfway)


def test_a_checkpoint_from_before_a_setting_existed_is_gone_on_with(
    done: Result, halfway: Path
) -> None:
    content, _ = load_checkpoint(halfway)
    assert content is not None
    assert content["config"].pop("passes") == 1
    save_checkpoint(halfway, content)
    resume(halfway)
    assert same_run(done.folder, halfway)


def as_before_rules_of_s_were_read_out(folder: Path) -> None:
    """A run folder as an older g2n2 left it."""
    new = ("pooling", "functions", "pair_bias")
    content, _ = load_checkpoint(folder)
    assert content is not None
    settings = json.loads((folder / "config.json").read_text())
    for name in new:
        del content["config"][name], settings[name]
    save_checkpoint(folder, content)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "manifest.json").unlink()


@pytest.mark.parametrize("settings", ["its own", "today's"])
def test_a_run_from_before_rules_of_s_were_read_out_is_gone_on_with(
    done: Result, halfway: Path, settings: str
) -> None:
    as_before_rules_of_s_were_read_out(halfway)
    config = RunFolder.existing(halfway).config()
    assert config.readout == "pooled-only"
    config = config if settings == "its own" else small_config()
    train_config(config, halfway, graphs=small_graphs(), resume=True)
    assert same_bytes(*(load_file(f / "best.safetensors") for f in (done.folder, halfway)))


def test_other_data_is_refused(halfway: Path) -> None:
    graphs = small_graphs()
    with pytest.raises(DataError, match=r"is not what .* was started on"):
        resume(halfway, replace(graphs, targets=graphs.targets + 1.0))


@pytest.mark.parametrize("what", ["best", "metrics"])
def test_a_full_disk_at_the_end_of_an_epoch(
    done: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(loop, "SHORT_EPOCH", 0.0)  # a checkpoint after every epoch, short as it is
    real, writes = os.fsync, []

    def full(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        writes.append(name)
        if f".{what}" in name and sum(f".{what}" in other for other in writes) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match="No space left on device"):
            run(tmp_path)
    assert load_file(tmp_path / "best.safetensors")
    assert learned_state(tmp_path)["progress"]["epoch"] == 1
    resume(tmp_path)
    assert same_run(done.folder, tmp_path)


def test_the_best_weights_are_those_of_the_best_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = iter([1.0, 0.5, 0.8])
    monkeypatch.setattr(loop, "metrics", lambda *_: {"all": {"relative_mae": next(results)}})
    kept: list[bytes] = []
    watch = Watch(epoch=lambda _: kept.append((tmp_path / "best.safetensors").read_bytes()))
    result = train_config(small_config(), tmp_path, graphs=small_graphs(), watch=watch)
    assert result.best_epoch == 2
    assert kept[0] != kept[1] == kept[2] == (tmp_path / "best.safetensors").read_bytes()


TIES = [
    # results, validation losses, the best epoch
    ([0.5, 1.0, 1.0, 1.0], [0.7, 0.6, 0.2, 0.3], 3),
    ([0.5, 1.0, 1.0], [0.1, 0.6, 0.6], 2),  # the result first, and then the earlier
    ([1.0, 1.0, 1.0], [0.6, np.nan, 0.5], 3),
    ([1.0, 1.0], [np.nan, np.nan], 1),
    ([np.nan, 0.5, np.nan], [0.1, 0.6, 0.1], 2),
    ([np.nan, np.nan], [np.nan, np.nan], 2),
    ([0.5, 1.0, 1.0], [None, None, None], 2),  # of a version that kept no loss
    ([0.5, 1.0, 1.0, 1.0], [None, None, 0.1, 0.2], 2),  # resumed: its weights were kept
    ([0.5, 1.0, 1.1, 1.1], [None, None, 0.3, 0.2], 4),
    ([], [], 0),
]


def best_epoch(task: Task, results: list[float], losses: list[float | None]) -> int:
    column = f"validation {task.metric}"
    history = [
        {column: result} | ({} if loss is None else {"validation loss": loss})
        for result, loss in zip(results, losses, strict=True)
    ]
    progress = loop.Progress(metric=column, history=history)
    return loop.Loop.best_epoch.fget(SimpleNamespace(task=task, progress=progress))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("results", "losses", "best"), TIES)
def test_of_epochs_that_tie_the_surest_is_the_best(
    results: list[float], losses: list[float | None], best: int
) -> None:
    two = Target("two", kind="binary", classes=("no", "yes"))
    three = Target("three", kind="multiclass", classes=("x", "y", "z"))
    assert best_epoch(Task((two,), "binary"), results, losses) == best
    assert best_epoch(Task((three,), "multiclass"), results, losses) == best
    for end in range(best, len(results)):  # saved when it came, and never replaced
        assert best_epoch(Task((two,), "binary"), results[:end], losses[:end]) == best


def test_errors_that_tie_are_those_of_the_first_epoch() -> None:
    task = Task((Target("y"),), "regression")
    assert best_epoch(task, [3.0, 2.0, 2.0], [None, None, None]) == 2


def tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "metrics", lambda *_: {"all": {"accuracy": 1.0, "roc_auc": 1.0}})


def test_an_epoch_that_ties_with_a_lower_loss_has_its_weights_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tie(monkeypatch)
    graphs, config, kept = class_graphs(), small_config(epochs=4, rate=0.03), list[bytes]()
    watch = Watch(epoch=lambda _: kept.append((tmp_path / "best.safetensors").read_bytes()))
    result = train_config(config, tmp_path, graphs=graphs, watch=watch)
    losses = [row["validation loss"] for row in result.history]
    assert result.best_epoch == 1 + int(np.argmin(losses)) > 1, "or there is nothing to see"
    for epoch, lowest in enumerate(np.minimum.accumulate(losses)):
        assert (kept[epoch] != kept[epoch - 1] or not epoch) == (losses[epoch] == lowest)
    # The loss is that of training, of the weights that were kept.
    chosen = result.parts.splits["validation"]
    model = RunFolder(tmp_path).load_best(config, result.parts)
    logits, rows = outputs(model, GraphStore(graphs), chosen)
    found, known = result.parts.task.loss(*map(torch.tensor, (logits, graphs.targets[rows])))
    assert int(known) < 2 * len(chosen)
    assert min(losses) == pytest.approx(float(found / known), rel=1e-6)


def test_a_run_of_a_version_without_the_loss_keeps_its_best_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tie(monkeypatch)
    monkeypatch.setattr(loop, "SHORT_EPOCH", 0.0)
    graphs = class_graphs()
    with pytest.raises(KeyboardInterrupt):
        train_config(small_config(), tmp_path, graphs=graphs, watch=stop_at(5))
    content, _ = load_checkpoint(tmp_path)
    assert content is not None
    (before,) = content["progress"]["history"]
    assert before.pop("validation loss") > 0
    save_checkpoint(tmp_path, content)
    kept = (tmp_path / "best.safetensors").read_bytes()
    result, _ = resume(tmp_path, graphs)
    assert result.best_epoch == 1
    assert (tmp_path / "best.safetensors").read_bytes() == kept
    assert [*map(len, map(list, Run(tmp_path).history))] == [5, 5, 5]


def test_the_best_weights_are_averages(tmp_path: Path) -> None:
    """Over the steps of one epoch, by hand: of the average (1 + t) / (10 + t) stays."""
    means: dict[str, torch.Tensor] = {}

    def start(loop: Any) -> None:
        means.update((name, p.detach().clone()) for name, p in loop.model.named_parameters())

    def step(loop: Any) -> None:
        kept = (1 + loop.progress.steps) / (10 + loop.progress.steps)
        for name, weight in loop.model.named_parameters():
            means[name] = kept * means[name] + (1 - kept) * weight.detach()

    config = small_config(epochs=1, ema=0.999)
    train_config(config, tmp_path, graphs=small_graphs(), watch=Watch(start=start, step=step))
    best = load_file(tmp_path / "best.safetensors")
    for name, mean in means.items():
        torch.testing.assert_close(best[name], mean)


def test_short_epochs_share_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    real = loop.save_checkpoint

    def save(folder: Path, content: dict[str, Any]) -> None:
        written.append(content["progress"]["epoch"])
        real(folder, content)

    monkeypatch.setattr(loop, "save_checkpoint", save)
    monkeypatch.setattr(loop, "SHORT_EPOCH", 1e6)
    run(tmp_path)
    last = small_config().epochs
    assert written == [last], "the end is always kept"
    assert learned_state(tmp_path)["progress"]["epoch"] == last


def test_a_pickle_in_place_of_the_best_weights_does_not_run(done: Result, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(mark),)

    folder = tmp_path / "run"
    folder.mkdir()
    for path in done.folder.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "manifest.json").unlink()  # which would have the file refused unread
    hostile = folder / "best.safetensors"
    for write in (
        lambda: hostile.write_bytes(pickle.dumps(Payload())),
        lambda: torch.save(Payload(), hostile),
    ):
        write()
        with pytest.raises(DataError, match="never unpickles"):
            Run(folder).evaluate("test")
    assert not mark.exists()


def test_folders_that_cannot_hold_a_run(done: Result, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match=r"holds other files \(letter.txt\)"):
        run(tmp_path)
    with pytest.raises(DataError, match=r"cannot write .*check that the folder can be written"):
        run(tmp_path / "letter.txt" / "run")
    with pytest.raises(DataError, match="holds a run already; go on with --resume"):
        run(done.folder)
    with pytest.raises(DataError, match="nothing to resume"):
        resume(tmp_path / "nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.txt"]


def test_a_run_killed_before_it_was_described_can_be_started_again(tmp_path: Path) -> None:
    for name in ("split.json", ".data.json.part"):
        (tmp_path / name).write_text("{")
    run(tmp_path, epochs=1)
    assert [path.name for path in tmp_path.glob(".*")] == [".lock"]


def with_unknown(rows: np.ndarray, column: int | slice) -> GraphSet:
    graphs = small_graphs()
    targets = graphs.targets.copy()
    targets[rows, column] = np.nan
    return replace(graphs, targets=targets)


def test_unknown_targets_are_masked_in_the_loss_and_counted(tmp_path: Path) -> None:
    graphs = with_unknown(np.arange(0, 30, 3), 0)
    config = small_config(recipe="paper", epochs=1, batch=30)
    parts = prepare(config, graphs)
    model = make_model(config, parts)
    made, rows = outputs(model, GraphStore(graphs), parts.splits["train"])
    expected = np.nanmean(np.abs(made - graphs.targets[rows]))
    assert np.isnan(graphs.targets[rows]).sum() == 10
    result = train_config(config, tmp_path, graphs=graphs)
    assert result.history[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert result.history[0]["rate"] == 1e-3, "the recipe's"
    said = " ".join(data_sentences(config, parts, model))
    assert "10 of 100 target values are missing (10 of triangle) and masked in the loss" in said


def test_parts_without_a_known_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("g2n2.training.session.draw", draw)
    held_out = np.arange(30, 50)  # validation and test
    result = run(tmp_path, with_unknown(held_out, slice(None)))
    assert result.best_epoch == 3
    assert not result.scores
    assert any("no validation graph has a known target" in note for note in result.parts.notes)
    with pytest.raises(
        DataError, match="no training graph has a known value of triangle, 4_cycle: fill"
    ):
        run(tmp_path / "none", with_unknown(np.arange(50), slice(None)))


@pytest.mark.parametrize("precision", ["bf16", "64"])
def test_every_precision_learns(tmp_path: Path, precision: str) -> None:
    result = run(tmp_path, precision=precision, epochs=8, rate=0.01)
    losses = [row["loss"] for row in result.history]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]
    expected = torch.float64 if precision == "64" else torch.float32
    assert {w.dtype for w in load_file(tmp_path / "best.safetensors").values()} == {expected}


def test_a_run_may_change_devices() -> None:
    """A GPU's optimiser has its rate in a tensor; a checkpoint of a CPU has a number."""
    weight = torch.nn.Parameter(torch.ones(2))
    cpu = torch.optim.AdamW([weight], lr=0.1)
    weight.grad = torch.ones(2)
    cpu.step()
    gpu = torch.optim.AdamW([weight], lr=torch.tensor(0.3), foreach=False)
    gpu.load_state_dict(loop.with_device_settings(cpu.state_dict(), gpu))
    assert isinstance(gpu.param_groups[0]["lr"], torch.Tensor)
    assert float(gpu.state[weight]["exp_avg"][0]) == pytest.approx(0.1), "what was learned is there"
    assert gpu.param_groups[0]["weight_decay"] == cpu.param_groups[0]["weight_decay"]


def test_two_passes_are_one_epoch_with_the_steps_of_two(tmp_path: Path) -> None:
    once = run(tmp_path / "once", epochs=4)
    twice = run(tmp_path / "twice", epochs=2, passes=2)
    assert [row["epoch"] for row in twice.history] == [1, 2]
    one, two = (learned_state(tmp_path / name) for name in ("once", "twice"))
    assert one["progress"]["steps"] == two["progress"]["steps"]
    assert same_bytes(one["model"], two["model"])
    losses = [row["loss"] for row in once.history]
    assert [row["loss"] for row in twice.history] == pytest.approx(
        [sum(losses[:2]) / 2, sum(losses[2:]) / 2]
    )


def test_a_network_with_running_statistics_goes_on_with_them(tmp_path: Path) -> None:
    """GIN's batch norms keep means and variances, which are no weights."""
    config = small_config(baseline="GIN")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train_config(config, whole, graphs=small_graphs())
    with pytest.raises(KeyboardInterrupt):
        train_config(config, parts, graphs=small_graphs(), watch=stop_at(5))
    train_config(config, parts, graphs=small_graphs(), resume=True)
    assert same_run(whole, parts)
    assert any("running_var" in name for name in learned_state(whole)["model"])


def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which every look at the time takes ten seconds."""
    ticks = count(0.0, 10.0)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(ticks)))


def test_in_its_minutes_a_run_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate comes down in time, in the middle of an epoch too, and test graphs are looked at."""
    clock(monkeypatch)
    rates: list[float] = []
    real = loop.Loop.step

    def step(self: loop.Loop, indices: Any) -> None:
        rates.append(self.rate)
        real(self, indices)

    monkeypatch.setattr(loop.Loop, "step", step)
    settings = small_config(minutes=5, epochs=1000)
    result = train_config(settings, tmp_path, graphs=small_graphs())
    done, planned = result.epochs
    assert planned == 1000
    assert 1 < done < 20
    top = rates.index(max(rates))
    assert rates == sorted(rates[: top + 1]) + sorted(rates[top + 1 :], reverse=True)
    assert max(rates) > 0.8e-3
    assert rates[-1] < 0.1 * max(rates)
    assert result.scores
    weights = learned_state(tmp_path)
    again = train_config(settings, tmp_path, graphs=small_graphs(), resume=True)
    assert (again.epochs, again.scores) == (result.epochs, result.scores)
    assert largest_difference(weights, learned_state(tmp_path)) == 0, "it has ended"


def test_minutes_that_suffice_change_no_weight(done: Result, tmp_path: Path) -> None:
    run(tmp_path, minutes=600.0)
    before, after = learned_state(done.folder), learned_state(tmp_path)
    assert all(torch.equal(after["model"][k], v) for k, v in before["model"].items())


def test_a_resumed_run_has_minutes_for_the_rest_of_its_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch)
    shares: list[float] = []

    def interrupt(of: Any) -> None:
        shares.append(of.progress.share)
        if of.progress.steps == 12:
            os.kill(os.getpid(), 2)

    settings, watch = small_config(minutes=10, epochs=1000), Watch(step=interrupt)
    with pytest.raises(KeyboardInterrupt):
        train_config(settings, tmp_path, graphs=small_graphs(), watch=watch)
    before, count_before = shares[-1], len(shares)
    assert 0.1 < before < 0.9
    train_config(settings, tmp_path, graphs=small_graphs(), resume=True, watch=watch)
    after = shares[count_before:]
    assert before <= after[0] < before + 0.2
    assert after[-1] == 1.0


def test_a_checkpoint_that_leaves_settings_to_its_recipe_goes_on(tmp_path: Path) -> None:
    """As those of 0.2 and before, which recorded neither epochs nor the learning rate."""
    settings = replace(small_config(recipe="modern-0.2"), epochs=None)
    with pytest.raises(KeyboardInterrupt):
        train_config(settings, tmp_path, graphs=small_graphs(), watch=stop_at(3))
    content, _ = load_checkpoint(tmp_path)
    assert content is not None
    assert content["config"]["epochs"] == 100
    content["config"] |= {"epochs": None, "rate": None}
    save_checkpoint(tmp_path, content)
    again = replace(settings, minutes=1e-9)
    result = train_config(again, tmp_path, graphs=small_graphs(), resume=True)
    assert result.epochs[1] == 100
