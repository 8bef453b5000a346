"""The table of speedruns."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "speedrun.py"


@pytest.fixture
def speedrun():
    spec = importlib.util.spec_from_file_location("speedrun", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_record_does_not_say_where_the_cache_lies(speedrun):
    words = ["run", "out.json", "--cache", "/home/me/qm9.cache", "--epochs", "70"]
    assert speedrun.without_cache(words) == ["run", "out.json", "--epochs", "70"]
    assert speedrun.without_cache(words[:2]) == words[:2]
    kept = (path.read_text("utf-8") for path in (ROOT / "results" / "speedrun").glob("*.json"))
    assert not any("--cache" in text for text in kept)


def test_only_runs_that_reached_the_goal_are_records_and_the_fastest_is_first(
    speedrun, tmp_path, monkeypatch
):
    made = {"device": "GPU", "commit": "0123456789abcdef"}
    for name, seconds, reached in (("a", 90.4, True), ("b", 20.0, False), ("c", 61.6, True)):
        row = {"seconds": seconds, "reached": reached, "epochs": [7, 9], "made_with": made}
        row["validation MAE (meV)"] = 9.876
        (tmp_path / f"{name}.json").write_text(json.dumps(row))
    monkeypatch.setattr(speedrun, "RECORDS", tmp_path)
    assert speedrun.table().splitlines()[2:] == [
        "| 62 | 9.88 | 7 of 9 | GPU | 012345678 |",
        "| 90 | 9.88 | 7 of 9 | GPU | 012345678 |",
    ]
