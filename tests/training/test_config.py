"""Settings: what is refused, and how."""

import pytest

from g2n2.errors import DataError
from g2n2.training.config import RunConfig, as_then

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
    ({"rate": float("nan")}, "rate must lie between 0 and 10, got nan"),
    ({"rate": 0.0}, "rate must lie between 0 and 10"),
    ({"rate": 50.0}, "rate must lie between 0 and 10"),
    ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ({"ema": -0.1}, "ema must be at least 0 and below 1, got -0.1"),
    ({"decay": float("nan")}, "decay must be at least 0 and below 10, got nan"),
    ({"decay": 0.1, "recipe": "paper"}, "the recipe 'paper' has no weight decay"),
    ({"precision": "16"}, "precision is one of 32, tf32, bf16, 64, got '16'"),
    ({"device": "tpu"}, "device is auto, cpu or cuda, got 'tpu'"),
    ({"recipe": "modem"}, "no recipe is called 'modem'; known: paper, modern"),
    ({"wdith": 8}, "no setting called 'wdith'; did you mean width?"),
    ({"zzz": 8}, "no setting called 'zzz'"),
    ({"width": "8"}, "width in here should be int, got '8'"),
    ({"width": True}, "width in here should be int, got True"),
    ({"width": 8.5}, "width in here should be int, got 8.5"),
    ({"target": "logp"}, "target in here should be a list of str, got 'logp'"),
    ({"target": ["a", 3]}, "target in here should be a list of str"),
    ({"decision": ["a"]}, "decision in here should be a list of int"),
    ({"options": 3}, "options in here should be a table, got 3"),
    ({"references": 1}, "references in here should be bool, got 1"),
]


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[str(s) for s, _ in BAD])
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(DataError) as caught:
        RunConfig.from_dict({"dataset": "x", **settings}, "here")
    assert message in str(caught.value)


def test_a_config_names_a_dataset():
    with pytest.raises(DataError, match="here names no dataset"):
        RunConfig.from_dict({"width": 8}, "here")


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
        ("readout", "words", "readout is one of grammar, pooled, sum, mean, max, got 'words'"),
        ("pooling", "median", "pooling is one of sum, mean, max, got 'median'"),
        ("functions", "all", "functions is one of mlp, free, got 'all'"),
        ("pair_bias", "no", "pair_bias in the configuration should be bool"),
    ],
)
def test_bad_read_outs_are_refused(setting, value, message):
    with pytest.raises(DataError) as caught:
        RunConfig.from_dict({"dataset": "x", setting: value})
    assert message in str(caught.value)


def test_settings_of_a_run_from_before_rules_of_s_were_read_out():
    new = RunConfig("x").as_dict()
    assert as_then(new) == new
    old = {k: v for k, v in new.items() if k not in ("pooling", "functions", "pair_bias")}
    assert RunConfig.from_dict(as_then(old)) == RunConfig("x", readout="pooled-only")
    pooled = RunConfig("x", readout="pooled-only", pooling="max")
    assert RunConfig.from_dict(as_then({**old, "readout": "max"})) == pooled
