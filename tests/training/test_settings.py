"""Settings files against the command line; names of run folders."""

import json

import pytest

from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.training.config import RunConfig
from g2n2.training.run_folder import RunFolder
from g2n2.training.settings import (
    merged,
    next_run_folder,
    read_settings,
    run_grammar,
    with_rules,
)


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
