"""Settings files against the command line; names of run folders."""

import json

import pytest

from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.settings import merged, next_run_folder, read_settings


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


def test_json_of_a_run_is_read_too(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(RunConfig("mutag", target=("a",), width=9).as_dict()))
    assert merged(file, {}, {}) == RunConfig("mutag", target=("a",), width=9)


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
    with pytest.raises(DataError, match="cannot read"):
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
