"""Q2: the cells the question asks for, slices that change no number, equal time, collapse."""

import json
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np
import pytest

from g2n2.errors import DataError
from g2n2.experiments import q2
from g2n2.experiments.cell import NothingYetError, Slice
from g2n2.experiments.record import Record
from g2n2.experiments.speed import equal_time
from g2n2.experiments.sums_cells import sums_cell
from g2n2.experiments.training_cells import mae_key, training_cell
from g2n2.training.config import RunConfig
from g2n2.training.task import Task
from small_sets import small_set

TARGETS = ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u", "h", "g", "cv")


def required(budget="short"):
    return [cell.name for cell in q2.cells(budget) if not cell.optional]


def test_the_required_cells_are_those_of_the_question():
    joint = {
        f"joint/width{width}/{track}/{network}/modern"
        for width in (32, 64)
        for track in ("distance", "bonds")
        for network in ("G2N2", "PPGN")
    }
    single = {f"single/{target}/distance/G2N2/modern" for target in TARGETS}
    compared = {
        f"single/{target}/{rest}"
        for target in ("r2", "u0")
        for rest in ("distance/PPGN/modern", "bonds/G2N2/modern", "distance/G2N2/paper")
    }
    equal = {
        "joint/width32/distance/PPGN/modern/equal-time",
        "joint/width32/bonds/PPGN/modern/equal-time",
        "single/r2/distance/PPGN/modern/equal-time",
        "single/u0/distance/PPGN/modern/equal-time",
    }
    extent = {
        f"{what}/distance/G2N2/modern/extent"
        for what in ("joint/width32", "joint/width64", "single/r2")
    }
    longer = {
        "joint/width32/distance/G2N2/modern/extent/long",
        "single/r2/distance/G2N2/modern/long",
    }
    alike = {"joint/width32/distance/PPGN-alike/modern"}
    sums = {"sums/elements", "sums/extent"}
    timed = {
        "speed/joint-width32/distance",
        "speed/joint-width32/bonds",
        "speed/single/distance",
        "speed/single-bf16/distance",
    }
    beside = {"collapse/u0"} | {
        f"precision/{target}/{bits}" for target in ("r2", "u0") for bits in ("bf16", "tf32")
    }
    assert (
        set(required())
        == joint | single | compared | equal | extent | longer | alike | sums | timed | beside
    )


def test_a_long_cell_differs_in_its_epochs_only():
    for longer in q2.LONG:
        beside = replace(longer, long=False)
        configs = [one.config(q2.BUDGETS["full"]) for one in (longer, beside)]
        assert configs[0].epochs > configs[1].epochs
        assert replace(configs[0], epochs=configs[1].epochs) == configs[1]


def test_they_run_in_the_order_of_the_question():
    found = [name.split("/") for name in required()]
    groups = list(dict.fromkeys(p[1] if p[0] == "single" else p[0] for p in found))
    assert groups[:6] == ["speed", "joint", "r2", "u0", "mu", "alpha"]
    assert groups[-3:] == ["collapse", "precision", "sums"]


def test_runs_of_several_precisions_differ_in_nothing_else():
    found = [c for c in q2.cells("short") if c.name.startswith("precision/u0/") and c.seed == 1]
    assert len(found) == 2
    assert found[0].settings["target"] == ("u0",)
    others = [{k: v for k, v in c.settings.items() if k != "precision"} for c in found]
    assert others[0] == others[1]
    assert [cell.settings["precision"] for cell in found] == ["bf16", "tf32"]
    assert all(cell.needs_gpu for cell in found), "a CPU would train both in 32 bits"
    assert len([c for c in q2.cells("short") if c.name == "precision/r2/tf32"]) == 3, "seeds"


def test_every_equal_time_cell_comes_after_the_speed_it_needs():
    names = [cell.name for cell in q2.cells("short")]
    for place, name in enumerate(names):
        if name.endswith("equal-time"):
            task, width_or_target, track = name.split("/")[:3]
            fine = width_or_target in ("r2", "zpve") and track == "distance"
            alone = "single" if fine else "single-bf16"
            what = f"joint-{width_or_target}" if task == "joint" else alone
            assert names.index(f"speed/{what}/{track}") < place


def test_every_optional_cell_differs_from_the_required_and_names_are_unique():
    cells = q2.cells("full")
    assert len({(cell.name, cell.seed) for cell in cells}) == len(cells)
    assert sum(cell.optional for cell in cells) > 50
    assert [cell.seed for cell in cells if cell.name == "collapse/u0"] == list(range(20))
    assert all(cell.alone == cell.name.startswith("speed/") for cell in cells)


def test_ppgn_and_the_paper_recipe_are_what_they_are_called():
    asked = q2.BUDGETS["full"]
    ppgn = q2.Settings("u0", 64, "distance", "PPGN", "modern").config(asked)
    assert (ppgn.grammar, ppgn.effective_recipe().preset) == ("PPGN", "ppgn")
    assert ppgn.effective_recipe().name == "modern"
    alike = q2.Settings("u0", 64, "distance", "PPGN-alike", "modern").config(asked)
    ours = q2.Settings("u0", 64, "distance", "G2N2", "modern").config(asked)
    assert replace(alike, grammar=ours.grammar) == ours, "nothing but the grammar"
    paper = q2.Settings("u0", 64, "distance", "G2N2", "paper").config(asked)
    assert (paper.grammar, paper.effective_recipe().preset) == ("r-G_L3", "paper")
    assert not paper.references  # the released script learns raw totals
    assert not any(
        q2.Settings(t, 64, "distance", "G2N2", "modern").config(asked).extent for t in ("r2", None)
    )
    assert all(settings.config(asked).extent for settings in q2.EXTENT)
    assert q2.Settings(None, 32, "bonds", "G2N2", "modern").config(asked).target == ()


@pytest.mark.parametrize(
    ("target", "unit", "key"),
    [
        ("r2", "a₀²", "test MAE r2 (bohr²)"),
        ("alpha", "a₀³", "test MAE alpha (bohr³)"),
        ("u0", "hartree", "test MAE u0 (hartree)"),
        ("count", "", "test MAE count"),
    ],
)
def test_the_unit_is_part_of_a_metric_s_name(target, unit, key):
    assert mae_key(target, unit) == key


def speed_record(seconds):
    metrics = {"seconds per epoch G2N2": 2.0, "PPGN / G2N2": seconds / 2.0}
    name = "speed/single/distance"
    return Record("q2", name, 0, "short", 2, 2, "networks", metrics, {}, {}, {}, 1.0)


@pytest.mark.parametrize(("seconds", "epochs"), [(4.0, 10), (1.0, 40), (5.0, 8), (900.0, 1)])
def test_equal_time_gives_the_epochs_that_fit(tmp_path, seconds, epochs):
    """20 epochs of G²N² at 2 s are 40 s."""
    speed_record(seconds).write(tmp_path)
    adapt = equal_time("q2", "speed/single/distance", "short")
    given = Slice(tmp_path, results=tmp_path)
    assert adapt(RunConfig("qm9", epochs=20), given) == epochs


def test_equal_time_without_a_measured_speed_says_what_to_run(tmp_path):
    adapt = equal_time("q2", "speed/single/distance", "short")
    with pytest.raises(DataError, match="--budget short --only speed/single/distance"):
        adapt(RunConfig("qm9", epochs=20), Slice(tmp_path, results=tmp_path))


SMALL = RunConfig(
    "regular", options={"count": 50, "nodes": 8}, width=4, layers=1, batch=8, epochs=3, threads=1
)


def test_slices_give_the_numbers_of_one_run(tmp_path):
    pytest.importorskip("lightning.fabric", reason="training needs lightning")
    cell = training_cell("q2", "small", "smoke", SMALL)
    whole = cell.run(Slice(tmp_path / "whole", device="cpu"))
    parts = [cell.run(Slice(tmp_path / "parts", minutes=1e-6, device="cpu")) for _ in range(3)]
    assert [record.done for record in parts] == [1, 2, 3]
    assert [record.partial for record in parts] == [True, True, False]
    errors = {name for name in whole.metrics if name.startswith("test MAE")}
    assert len(errors) == 2
    assert {name: parts[2].metrics[name] for name in errors} == {
        name: whole.metrics[name] for name in errors
    }
    assert parts[2].detail["validation"] == whole.detail["validation"]
    result = json.loads((tmp_path / "whole" / "run" / "result.json").read_text())
    assert whole.metrics["parameters"] == result["parameters"]
    assert whole.data == {"regular": result["data_sha256"]}
    assert whole.config["epochs"] == whole.planned == 3

    changed = training_cell("q2", "small", "smoke", replace(SMALL, width=5))
    with pytest.raises(DataError, match="width 4, now 5"):
        changed.run(Slice(tmp_path / "parts", device="cpu"))


def test_a_slice_ends_within_an_epoch_that_takes_too_long(tmp_path, monkeypatch):
    pytest.importorskip("lightning.fabric", reason="training needs lightning")
    cell = training_cell("q2", "small", "smoke", SMALL)
    whole = cell.run(Slice(tmp_path / "whole", device="cpu"))
    monkeypatch.setattr("g2n2.experiments.training_cells.LATE", -1e9)
    given = Slice(tmp_path / "parts", minutes=1e-6, device="cpu")
    with pytest.raises(NothingYetError, match="none of 3 epochs is finished yet"):
        cell.run(given)
    found = []
    while len(found) < 100 and (not found or found[-1] is None or found[-1].partial):
        found.append(None)
        with suppress(NothingYetError):
            found[-1] = cell.run(given)
    training = len(json.loads((tmp_path / "whole" / "run" / "split.json").read_text())["train"])
    assert len(found) > training // 8 * 3 - 3, "a step a slice"
    assert found[-1].detail["validation"] == whole.detail["validation"]


def test_a_run_that_died_to_a_constant_is_found(tmp_path):
    """Two molecules, H₂ and HF; what the elements give varies, the network's part does not."""
    from g2n2.data.graph_set import GraphSet, Target
    from g2n2.experiments.collapse import spread_of_predictions
    from g2n2.training.evaluate import Predictions
    from g2n2.training.predict import Outcome

    graphs = GraphSet(
        name="two",
        sizes=np.array([2, 2]),
        edge_counts=np.array([0, 0]),
        edges=np.zeros((2, 0), dtype=np.int64),
        node_features=np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=np.float32),
        edge_features=np.zeros((0, 0), dtype=np.float32),
        targets=np.array([[-1.1], [-100.3]]),
        columns=(Target("u0", "hartree"),),
        node_names=("H", "F"),
    )
    scaling = {"mean": [0.0], "deviation": [1.0], "references": {"u0": {"H": -0.5, "F": -99.5}}}
    columns = [asdict(column) for column in graphs.columns]
    (tmp_path / "data.json").write_text(json.dumps({"scaling": scaling, "columns": columns}))
    # Left for the network: -0.1 and -0.3, a deviation of 0.1.
    for values, spread in (([-1.2, -100.2], 0.0), ([-1.05, -100.25], 1.0), ([-1.0, -100.1], 0.5)):
        made = Predictions(np.arange(2), np.array(values)[:, None], graphs.targets)
        found = spread_of_predictions(Outcome(graphs, made, {}, Task.of(graphs)), tmp_path)
        assert next(iter(found.values())) == pytest.approx(spread, abs=1e-9)


def test_sums_alone_are_scored_on_test_molecules_and_fitted_on_the_others(monkeypatch, tmp_path):
    """Planted charges explain the training molecules; test molecules are off by 1."""
    graphs = small_set()
    atoms = len(graphs.node_features)
    elements = np.eye(2, dtype=np.float32)[np.random.default_rng(0).integers(0, 2, atoms)]
    parts = np.split(np.arange(len(graphs)), [40, 50])
    totals = np.add.reduceat(elements @ [3.0, -2.0], graphs.node_offsets[:-1])
    totals[parts[2]] += 1.0
    made = replace(
        graphs,
        node_features=elements,
        node_names=("H", "C"),
        targets=totals[:, None],
        splits=dict(zip(("train", "validation", "test"), parts, strict=True)),
    )
    monkeypatch.setattr("g2n2.experiments.sums_cells.graphs_of", lambda *_: made)
    record = sums_cell("q2", "sums/elements", "smoke", RunConfig("x", references=True)).run(
        Slice(tmp_path)
    )
    assert record.metrics[mae_key("t0", made.columns[0].unit)] == pytest.approx(1.0)
    assert record.metrics["parameters"] == 3
    assert not record.partial
