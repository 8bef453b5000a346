"""Settings: what is refused, and how."""

import json
from dataclasses import replace

import pytest

from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.training.config import (
    RunConfig,
    merged,
    read_settings,
    run_grammar,
    upgraded,
    with_rules,
)
from g2n2.training.run_folder import RunFolder, next_run_folder

BAD = [
    ({"width": 0}, "width must be at least 1, got 0"),
    ({"layers": -2}, "layers must be at least 1"),
    ({"batch": 0}, "batch must be at least 1"),
    ({"epochs": 0}, "epochs must be at least 1"),
    ({"seed": -1}, "seed must be at least 0"),
    ({"devices": 0}, "devices must be at least 1"),
    ({"seed": 2**64}, "seed must be at most 9223372036854775807, got 18446744073709551616"),
    ({"width": 10**9}, "width must be at most 65536, got 1000000000"),
    ({"width": 65536, "layers": 256}, "width 65536 and layers 256 ask for more than"),
    ({"layers": 10**6}, "layers must be at most 256, got 1000000"),
    ({"threads": 100_000}, "threads must be at most 1024, got 100000"),
    ({"minutes": float("nan")}, "minutes must be at least 0, got nan"),
    ({"minutes": float("inf")}, "minutes must be at most 10000000, got inf"),
    ({"minutes": -1}, "minutes must be at least 0, got -1"),
    ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds must be at least 0, got nan"),
    ({"batch": 10**12}, "batch must be at most 1000000, got 1000000000000"),
    ({"epochs": 10**20}, "epochs must be at most 10000000, got 1"),
    ({"decision": [10**9]}, "a width in decision must be at most 65536, got 1000000000"),
    ({"decision": [8] * 1000}, "the number of decision layers must be at most 256, got 1000"),
    ({"devices": 10**6}, "devices must be at most 4096, got 1000000"),
    ({"rate": float("nan")}, "rate must be above 0 and below 10, got nan"),
    ({"rate": 0.0}, "rate must be above 0 and below 10"),
    ({"rate": 50.0}, "rate must be above 0 and below 10"),
    ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ({"ema": -0.1}, "ema must be at least 0 and below 1, got -0.1"),
    ({"decay": float("nan")}, "decay must be at least 0 and below 10, got nan"),
    ({"decay": 0.1, "recipe": "paper"}, "the recipe 'paper' has no weight decay"),
    ({"precision": "16"}, "precision is one of 32, tf32, bf16, 64, got '16'"),
    ({"device": "tpu"}, "device is one of auto, cpu, cuda, got 'tpu'"),
    ({"recipe": "modem"}, "no recipe is called 'modem'; known: paper, modern"),
    ({"wdith": 8}, "no setting called 'wdith'; did you mean width?"),
    ({"zzz": 8}, "no setting called 'zzz'"),
    ({"sweep": {"rate": [1, 2]}}, "a table [sweep] is read by g2n2 sweep"),
    ({"width": "8"}, "width in here should be a whole number, got '8'"),
    ({"width": True}, "width in here should be a whole number, got True"),
    ({"width": 8.5}, "width in here should be a whole number, got 8.5"),
    ({"target": 3}, "target in here should be a list, each text, got 3"),
    ({"target": ["a", 3]}, "target in here should be a list, each text"),
    ({"decision": ["a"]}, "decision in here should be a list, each a whole number"),
    ({"options": 3}, "options in here should be a table, got 3"),
    ({"references": 1}, "references in here should be true or false, got 1"),
]


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[str(s) for s, _ in BAD])
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(DataError) as caught:
        RunConfig.from_dict({"dataset": "x", **settings}, "here")
    assert message in str(caught.value)


def test_a_config_names_a_dataset():
    with pytest.raises(DataError, match="here names no dataset"):
        RunConfig.from_dict({"width": 8}, "here")


def test_one_text_is_a_list_of_it():
    config = RunConfig.from_dict({"dataset": "x", "target": "logp", "distance": "raw"})
    assert (config.target, config.distance) == (("logp",), ("raw",))


def test_plain_types_and_back():
    config = RunConfig(
        "x", target=("a", "b"), decision=(4, 2), options={"track": "bonds"}, rate=1e-4
    )
    as_json = {k: list(v) if isinstance(v, tuple) else v for k, v in config.as_dict().items()}
    assert RunConfig.from_dict(as_json) == config


def test_own_settings_win_over_the_recipe():
    recipe = RunConfig("x", recipe="paper", rate=0.5, batch=7).effective_recipe()
    assert (recipe.rate, recipe.batch, recipe.optimiser) == (0.5, 7, "adam")
    assert RunConfig("x", recipe="paper").effective_recipe().rate == 1e-3


def test_pooling_in_its_old_spelling():
    assert RunConfig.from_dict({"dataset": "x", "readout": "mean"}).pooling == "mean"
    assert RunConfig.from_dict({"dataset": "x", "readout": "mean"}).readout is None
    assert RunConfig.from_dict({"dataset": "x", "readout": "grammar"}).readout == "grammar"
    old = {"dataset": "x", "readout": "mean"}
    assert RunConfig.completed(old) == RunConfig.completed({"dataset": "x", "pooling": "mean"})
    with pytest.raises(DataError, match="old spelling of pooling = 'mean'"):
        RunConfig.from_dict({"dataset": "x", "readout": "mean", "pooling": "max"})


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("readout", "words", "readout is one of grammar, pooled, pooled-only, got 'words'"),
        ("pooling", "median", "pooling is one of sum, mean, max, got 'median'"),
        ("functions", "all", "functions is one of mlp, free, got 'all'"),
        ("pair_bias", "no", "pair_bias in the configuration should be true or false"),
    ],
)
def test_bad_read_outs_are_refused(setting, value, message):
    with pytest.raises(DataError) as caught:
        RunConfig.from_dict({"dataset": "x", setting: value})
    assert message in str(caught.value)


def test_settings_of_a_run_from_before_rules_of_s_were_read_out():
    new = RunConfig("x", epochs=3).as_dict()
    assert upgraded(new) == new
    old = {k: v for k, v in new.items() if k not in ("pooling", "functions", "pair_bias")}
    assert RunConfig.from_dict(upgraded(old)) == RunConfig("x", epochs=3, readout="pooled-only")
    pooled = RunConfig("x", epochs=3, readout="pooled-only", pooling="max")
    assert RunConfig.from_dict(upgraded({**old, "readout": "max"})) == pooled


def test_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('dataset = "mutag"\nwidth = 16\nlayers = 5\n[options]\na = 1\nb = 2\n')
    config = merged(file, {"width": 8, "rate": None, "target": ()}, {"b": 3})
    assert (config.dataset, config.width, config.layers) == ("mutag", 8, 5)
    assert config.seed == 0
    assert dict(config.options) == {"a": 1, "b": 3}


def test_a_network_named_on_the_command_line_replaces_the_file_s(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('dataset = "mutag"\nbaseline = "GIN"\n')
    assert merged(file, {"grammar": "r-G_L1"}, {}).baseline is None
    assert merged(file, {"width": 3}, {}).baseline == "GIN"


def test_a_grammar_beside_a_baseline_is_refused(tmp_path):
    with pytest.raises(DataError, match="GIN takes the place of the grammar L1: leave out"):
        merged(None, {"dataset": "mutag", "baseline": "GIN", "grammar": "L1"}, {})
    file = tmp_path / "config.json"  # a run's own names the default grammar beside its baseline
    file.write_text(json.dumps(RunConfig("mutag", baseline="GIN").as_dict()))
    assert merged(file, {}, {}).baseline == "GIN"
    mine = tmp_path / "mine.toml"
    mine.write_text('dataset = "mutag"\nbaseline = "GIN"\ngrammar = "r-G_L1"\n')
    with pytest.raises(DataError, match=r"the grammar r-G_L1.*mine\.toml"):
        merged(mine, {}, {})
    assert merged(mine, {"baseline": "GCN"}, {}).baseline == "GCN"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "width = ", "a.toml is not TOML"),
        ("a.json", "{", "a.json is not JSON"),
        ("a.json", "[1]", "holds no settings"),
        ("a.toml", "wdith = 3\ndataset='x'", "did you mean width?"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, name, text, message):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        merged(file, {}, {})
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DataError, match="no file"):
        read_settings(tmp_path / "none.toml")


def test_a_path_holds_in_any_folder_and_a_name_stays_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").touch()
    (tmp_path / "mutag").mkdir()
    assert merged(None, {"dataset": "own.csv"}, {}).dataset == str(tmp_path / "own.csv")
    assert merged(None, {"dataset": "mutag"}, {}).dataset == "mutag"


def test_run_folders_are_numbered(tmp_path):
    config = RunConfig("/somewhere/My Molecules.csv", target=("logP",))
    first = next_run_folder(config, tmp_path)
    assert first == tmp_path / "my_molecules-logp-001"
    first.mkdir()
    (tmp_path / "my_molecules-logp-041").mkdir()
    assert next_run_folder(config, tmp_path).name == "my_molecules-logp-042"
    assert next_run_folder(RunConfig("mutag"), tmp_path).name == "mutag-001"


def test_the_command_line_wins_over_the_old_spelling_of_a_file(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('dataset = "x"\nreadout = "mean"\nfunctions = "free"\npair_bias = false\n')
    plain = merged(path, {}, {})
    assert (plain.readout, plain.pooling) == (None, "mean")
    assert (plain.functions, plain.pair_bias) == ("free", False)
    assert merged(path, {"pooling": "max"}, {}).pooling == "max"
    assert merged(path, {"readout": "sum"}, {}).pooling == "sum"
    own = merged(path, {"readout": "grammar", "pair_bias": True}, {})
    assert (own.readout, own.pooling, own.pair_bias) == ("grammar", "mean", True)


def test_a_run_writes_down_the_rules_of_its_grammar(tmp_path):
    trace = ("M → MM", "M → A", "S → Tr(M)")
    fragment = with_rules(RunConfig("mutag", grammar="· Tr"))
    assert (fragment.grammar, fragment.rules) == ("r-G_{·, Tr}", trace)
    assert with_rules(fragment) == fragment
    exhaustive = with_rules(RunConfig("mutag", grammar="G_{·, Tr}"))
    assert len(exhaustive.rules) == 5
    named = with_rules(RunConfig("mutag", grammar="ppgn"))
    assert named.grammar == "PPGN"
    file = tmp_path / "mine.txt"
    file.write_text("M → MM | A\nS → Tr(M)\n", encoding="utf-8")
    from_file = with_rules(RunConfig("mutag", grammar=str(file)))
    file.unlink()
    assert (from_file.grammar, from_file.rules) == ("mine", trace)
    assert run_grammar(from_file) == run_grammar(fragment)
    assert with_rules(RunConfig("mutag", baseline="GIN")).rules == ()


@pytest.mark.parametrize("name", ["r-G_L3", "GCN", "·", "M → A; S → Tr(MMM)", "G_L1", "MPNN-2"])
def test_the_rules_written_down_are_the_grammar(name):
    written = json.dumps(with_rules(RunConfig("x", grammar=name)).as_dict())
    config = RunConfig.from_dict(json.loads(written))
    assert run_grammar(config) == find_grammar(name)


def test_another_grammar_drops_the_rules_of_the_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(with_rules(RunConfig("mutag", grammar="· Tr")).as_dict()))
    assert run_grammar(merged(file, {}, {})) == find_grammar("r-G_{·, Tr}")
    assert run_grammar(merged(file, {"grammar": "r-G_L1"}, {})) == find_grammar("r-G_L1")
    assert merged(file, {"baseline": "GIN"}, {}).rules == ()


def test_a_pipe_is_not_read_by_several_processes():
    with pytest.raises(DataError, match="several processes cannot read one pipe"):
        with_rules(RunConfig("mutag", grammar="-", devices=2))


def test_runs_from_before_the_rules_were_written_keep_their_grammar(tmp_path):
    """A fragment stood for its exhaustive grammar then."""
    settings = RunConfig("mutag", grammar="· Tr").as_dict()
    del settings["rules"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert run_grammar(RunFolder(tmp_path).config()) == find_grammar("G_{·, Tr}")


def test_width_batch_and_epochs_suit_the_number_of_training_graphs():
    sizes = [RunConfig("x").sized(train, costly=True) for train in (50, 800, 4000, 100_000)]
    for name, order in (("batch", 1), ("epochs", -1)):
        values = [getattr(config, name) for config in sizes]
        assert values == sorted(values, reverse=order < 0)
        assert values[0] != values[-1]
    assert sizes[0].rate > RunConfig("x", width=64).sized(50, costly=True).rate
    on_gpu = RunConfig("x").sized(100_000, costly=False)
    assert (on_gpu.width > sizes[-1].width, on_gpu.epochs > sizes[-1].epochs) == (True, True)
    for name in ("width", "batch", "epochs"):
        given = [RunConfig("x", **{name: 99}).sized(n, costly=c) for n in (9, 999) for c in (0, 1)]
        assert {getattr(config, name) for config in given} == {99}
    for recipe, settings in (("paper", (64, 32, 200)), ("modern-0.2", (64, 8, 100))):
        config = RunConfig("x", recipe=recipe)
        width, batch, epochs = settings
        expected = replace(config, width=width, batch=batch, epochs=epochs, rate=1e-3)
        assert config.sized(9, costly=True) == expected, "as it was"


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({}, ("modern-0.2", None)),
        ({"recipe": "modern"}, ("modern-0.2", None)),
        ({"recipe": "paper"}, ("paper", None)),
        ({"recipe": "paper", "preset": "modern"}, ("paper", "modern-0.2")),
        ({"preset": "paper"}, ("modern-0.2", "paper")),
        ({"baseline": "G2N2"}, ("modern-0.2", "modern-0.2")),
        ({"baseline": "GIN"}, ("modern-0.2", None)),
        ({"pair_norm": None}, ("modern", None)),
    ],
)
def test_modern_of_an_older_run_is_what_it_was(then, now):
    config = RunConfig.from_dict(upgraded({"dataset": "x", "pooling": None, **then}))
    assert (config.recipe, config.preset) == now


def test_settings_of_an_older_run_are_trained_as_they_were(tmp_path):
    settings = RunConfig("csl", rules=("V_c → AV_c", "S → 1ᵀV_c")).as_dict()
    del settings["pair_norm"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(settings))
    assert merged(file, {}, {}).recipe == "modern-0.2"
    assert merged(file, {"recipe": "modern"}, {}).recipe == "modern"
