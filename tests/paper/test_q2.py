"""Q1 and Q2: settings of the cells, equal time, what is measured beside errors."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.nn.model import GrammarGNN
from g2n2_paper import q1, q2
from g2n2_paper.q2 import (
    JOINT,
    config,
    epochs_in_equal_time,
    equal_time_epochs,
    single,
    spread_of_predictions,
)
from g2n2_paper.record import CellRecord
from g2n2_paper.runner import Job
from g2n2_paper.runs import epoch_seconds, training_cell


def test_every_grammar_of_q1_has_the_same_run():
    configs = [q1.config(name, seed=0) for name in q1.GRAMMARS]
    shared = [replace(c, grammar="", readout=None) for c in configs]
    assert len(configs) == 9
    assert all(config == shared[0] for config in shared)
    assert (shared[0].width, shared[0].epochs, shared[0].target) == (32, 12, ("r2",))
    names = [cell.name for cell in q1.cells()]
    assert len(names) == 9 * 3 + 9 * 2 + 1 + 9 * 3 + 8 * 3
    assert names.count("train/r-G_L3 ∖ {MM}") == 0 < names.count("train/r-G_L3-product")


def test_q1_at_equal_parameters_and_at_equal_time():
    """Widths are those with the most nearly equal numbers of weights; QM9 has 13 and 22 features."""

    def weights(name: str, width: int) -> int:
        run = q1.equal_config(name, seed=0)
        with torch.device("meta"):
            network = GrammarGNN(
                find_grammar(run.grammar), 13, 22, width=width, layers=3, readout=run.readout
            )
        return sum(weight.numel() for weight in network.parameters())

    wanted = weights("r-G_L3", 32)
    for name, width in q1.EQUAL_WIDTHS.items():
        away = [abs(weights(name, width + step) - wanted) for step in (-1, 0, 1)]
        assert min(away) == away[1], name
    plain = q2.config("single/r2/distance/G2N2/defaults/epochs-40")
    assert q1.equal_config("r-G_L3", 0) == replace(plain, width=32)
    by_name = {cell.name: cell for cell in q1.cells() if cell.seed == 2}
    assert by_name["equal-parameters/four-rule"].settings["width"] == 47
    assert by_name["equal-time/four-rule"].settings["width"] == 32
    assert "equal-time/r-G_L3" not in by_name
    assert q1.fair_cell("equal-time", "r-G_L3") == "equal-parameters/r-G_L3"
    assert q1.fair_cell("equal-time", "G_L3") == "equal-time/G_L3"
    timed = next(cell for cell in q1.cells() if cell.timed).settings
    assert [settings["limit"] for settings in timed.values()] == [20_000] * 9
    assert "limit" not in by_name["equal-time/four-rule"].settings or (
        by_name["equal-time/four-rule"].settings["limit"] == 0
    )


def test_exact_power_of_q1_on_a_generated_suite(tmp_path):
    found = q1.exact_cell("four-rule", "csl", "network").run(Job(tmp_path)).metrics
    assert found["pairs"] == 45
    assert found["pairs separated, 3 layers"] <= found["pairs separated"] == 45


def test_names_say_what_a_run_is():
    names = {cell.name for cell in q2.cells()}
    assert len([c for c in q2.cells() if c.name == "collapse/u0"]) == 20
    assert {"single/u0/distance/PPGN/modern/equal-time", "joint/width64/bonds/PPGN/modern"} <= names
    for name in set(q2.run_names()) - {q2.SCHNET, q2.VISNET}:
        run = config(name)
        words = name.split("/")
        assert run.target == ((words[1],) if words[0] == "single" else ())
        assert run.options["track"] == words[2]
        assert (run.preset == "ppgn") == (words[3] == "PPGN")
        width = 128 if "width-128" in words else 64
        assert run.width == (width if run.target or "width64" in words else 32)
        assert run.references == ("paper" not in words)
        assert run.extent == ("extent" in words)
        assert (run.distance is not None) == ("wider" in words)
    speeds = [cell.name for cell in q2.cells() if cell.timed]
    assert sorted(speeds) == sorted(
        {"speed/networks"}
        | {q2.speed_name(n) for n in q2.run_names() if "32" in n}
        | {q2.speed_name(single(target)) for target in ("r2", "u0")}
    )


@pytest.mark.parametrize(
    ("name", "precision", "rate", "epochs"),
    [
        (JOINT, "tf32", 2e-3, 50),
        (single("r2"), "tf32", None, 60),
        (single("mu"), "bf16", None, 50),
        (single("zpve"), "tf32", None, 50),
        ("single/r2/bonds/G2N2/modern", "bf16", None, 60),
        ("single/u0/distance/G2N2/paper", "tf32", None, 10),
        (q2.R2_LONG, "tf32", None, 300),
    ],
)
def test_precision_rate_and_epochs(name, precision, rate, epochs):
    run = config(name)
    assert (run.precision, run.rate, run.epochs) == (precision, rate, epochs)


def test_runs_of_the_defaults_differ_in_one_thing_each():
    runs = {name: config(name) for name in q2.run_names() if "/epochs-" in name}
    assert len(runs) == 3 + 5 + 2 + 3 + 2 + 2
    plain = runs["single/r2/distance/G2N2/defaults/epochs-100"]
    assert (plain.recipe, plain.preset, plain.epochs, plain.width) == ("modern", None, 100, 64)
    assert config("single/r2/distance/G2N2/defaults/epochs-20") == replace(plain, epochs=20)
    wider = runs["single/r2/distance/G2N2/defaults/wider/epochs-100"]
    assert wider == replace(plain, distance=("raw", "square", "inverse", "rbf16", "rbf32:6"))
    moments = runs["single/r2/distance/G2N2+D/defaults/epochs-100"]
    assert moments == replace(plain, grammar=q2.GRAMMARS["G2N2+D"])
    # the same rules, and supports that differ by a number alone
    own, named = Grammar.parse(q2.GRAMMARS["G2N2+D"]), find_grammar("r-G_L3+D")
    rules = "; ".join(line for line in str(own).splitlines() if "=" not in line)
    respelled = rules.replace("C_1", "D").replace("C_2", "C")
    assert respelled.split("; ") == [line for line in str(named).splitlines() if "=" not in line]
    larger = runs["single/u0/distance/G2N2/defaults/wider/tuned/width-128/epochs-150"]
    wide = runs["single/u0/distance/G2N2/defaults/wider/epochs-100"]
    assert larger == replace(wide, width=128, epochs=150, rate=2e-3, decay=0.05)
    assert larger == config("single/u0/distance/G2N2/defaults/epochs-150/width-128/tuned/wider")
    paper = runs["single/r2/distance/G2N2/paper/epochs-100"]
    assert paper == replace(config("single/r2/distance/G2N2/paper"), epochs=100)


def test_seeds_of_long_runs():
    seeds: dict[str, list[int]] = {}
    for cell in q2.cells():
        seeds.setdefault(cell.name, []).append(cell.seed)
    assert {
        name: found for name, found in seeds.items() if len(found) == 3 and "/epochs-" in name
    } == {
        "single/u0/distance/G2N2/defaults/wider/epochs-100": [0, 1, 2],
        "single/r2/distance/G2N2+D/defaults/epochs-100": [0, 1, 2],
    }
    assert all(len(set(found)) == len(found) for found in seeds.values())


@pytest.mark.parametrize("name", [q2.SCHNET, q2.VISNET])
def test_networks_of_pyg_have_their_published_shape_and_our_data(name):
    run, ours = config(name), config("single/u0/distance/G2N2/defaults/epochs-20")
    assert run.baseline in name
    assert (run.width, run.layers, run.distance) == (128, 6, ("raw",))
    shape = {"baseline": None, "width": 64, "layers": 3, "distance": None, "precision": "bf16"}
    assert replace(run, **shape, grammar=ours.grammar, epochs=20) == ours


def test_equal_time_gives_a_slower_network_fewer_epochs(tmp_path):
    assert epochs_in_equal_time(50, 1.25) == 40
    assert epochs_in_equal_time(60, 0.95) == 63
    assert epochs_in_equal_time(1, 7.0) == 1
    job, speed = Job(tmp_path, tmp_path / "results"), q2.speed_cell(single("r2"), smoke=False)
    metrics = {"PPGN / G2N2": 1.5}

    def time_with(settings):
        given = "q2", "speed/single/distance", 0, 2, "networks", metrics, settings, {}, {}, 1.0
        CellRecord(*given).write(job.results)

    with pytest.raises(DataError, match="g2n2-paper q2 --only speed/single/distance"):
        equal_time_epochs(config(single("r2")), job, speed)
    time_with({**speed.settings, "PPGN": {**speed.settings["PPGN"], "width": 7}})
    with pytest.raises(DataError, match="g2n2-paper q2 --only speed/single/distance"):
        equal_time_epochs(config(single("r2")), job, speed)
    time_with(speed.settings)
    assert equal_time_epochs(config(single("r2")), job, speed) == 40


def test_epochs_decided_at_the_start_stay_decided(tmp_path, monkeypatch):
    from g2n2_paper import runs

    seen = []
    monkeypatch.setattr(runs, "_measure_run", lambda config, *_: seen.append(config.epochs))
    answers = iter([7, 9])
    cell = training_cell("q2", "x", config(single("r2")), epochs=lambda *_: next(answers))
    for _ in range(2):
        cell.run(Job(tmp_path))
    assert seen == [7, 7]
    assert json.loads((tmp_path / "epochs.json").read_text()) == 7
    assert "epochs" not in cell.settings


def test_precisions_of_a_gpu_are_not_compared_on_a_cpu(tmp_path):
    cell = next(cell for cell in q2.cells() if cell.name == "precision/r2/bf16")
    with pytest.raises(DataError, match="the device is a CPU"):
        cell.run(Job(tmp_path, device="cpu"))


def test_the_first_epoch_is_not_timed():
    history = [{"seconds": s} for s in (100.0, 102.0, 104.0, 109.0)]
    assert epoch_seconds(history) == 2.0
    assert epoch_seconds(history[:1]) is None


def test_spread_is_what_the_elements_do_not_explain(tmp_path, monkeypatch):
    fitted = np.array([[100.0], [200.0], [300.0]])
    scaling = SimpleNamespace(reference=lambda task, graphs: fitted)
    monkeypatch.setattr(
        q2, "RunFolder", lambda _: SimpleNamespace(trained_on=SimpleNamespace(scaling=scaling))
    )
    monkeypatch.setattr(q2, "Task", SimpleNamespace(of=lambda graphs: None))
    targets = fitted + np.array([[1.0], [-1.0], [3.0]])
    for values, expected in ((fitted, 0.0), (targets, 1.0), ((fitted + targets) / 2, 0.5)):
        rows = {"index": np.arange(3), "predicted": values, "targets": targets}
        outcome = SimpleNamespace(graphs=None, **rows)
        (found,) = spread_of_predictions(outcome, tmp_path).values()
        assert found == pytest.approx(expected)
