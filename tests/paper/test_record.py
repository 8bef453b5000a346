"""Records: round trip, what is refused, and the committed ones."""

import json
import re
from pathlib import Path

import pytest

from g2n2.errors import DataError
from g2n2_paper.record import QUESTIONS, CellRecord, read_records
from g2n2_paper.runner import cells_of

ROOT = Path(__file__).parents[2]
MISSING = {
    ("q4", "low/G2N2-slow/layers-5", 0),
}
"""Cells that have not been run to their end."""
UNFINISHED = re.compile(
    r"q1/(equal|speed)|molecules/|q3/errica/|q2/single/\w+/distance/(G2N2(\+D)?/defaults|SchNet|ViSNet)"
    r"|q2/speed/networks|q2/single/\w+/distance/G2N2/paper/epochs-|q4/\w+/G2N2-projected|power/brec/(L1ΣΣ|PPGN-alike)"
)
"""Groups of cells of which none or few have been run."""


def made_up(**changes) -> CellRecord:
    content = {
        "question": "q2", "cell": "single/r2", "seed": 1, "done": 3, "unit": "epochs",
        "metrics": {"test MAE": 0.5, "absent": None}, "config": {"width": 8}, "data": {"qm9": "abc"},
        "provenance": {"device": "cpu", "commit": "0123456789"}, "seconds": 1.5, "detail": {},
    }  # fmt: skip
    return CellRecord(**{**content, **changes})


def test_a_record_is_read_as_it_was_written(tmp_path):
    path = made_up().write(tmp_path)
    assert path == tmp_path / "q2" / "single-r2.s1.json"
    assert CellRecord.read(path) == made_up()
    assert read_records(tmp_path) == [made_up()]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"done": 2, "planned": 3}, "partial: 2 of 3"),
        ({"metrics": {"x": "1.0"}}, "not a finite number"),
        ({"metrics": {"x": float("nan")}}, "NaN is not a JSON number"),
        ({"seed": "0"}, "seed is '0'"),
        ({"config": []}, "config is"),
        ({"seed": 7}, "belongs in"),
        ({"cell": "single/mu"}, "belongs in"),
    ],
)
def test_what_no_table_could_read_is_refused(tmp_path, changes, said):
    path = made_up().write(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(DataError, match=said):
        read_records(tmp_path)


def test_a_file_that_is_no_record_and_a_missing_folder_are_told(tmp_path):
    (tmp_path / "q1").mkdir()
    (tmp_path / "q1" / "x.s0.json").write_text("{}")
    with pytest.raises(DataError, match=r"x\.s0\.json is not a complete record"):
        read_records(tmp_path)
    with pytest.raises(DataError, match="no folder"):
        read_records(tmp_path / "nowhere")


def test_every_committed_record_has_the_settings_of_its_cell():
    records = {(r.question, r.cell, r.seed): r for r in read_records(ROOT / "results")}
    cells = {(c.question, c.name, c.seed): c for q in QUESTIONS for c in cells_of(q)}
    assert set(records) <= set(cells), "a record without a cell"
    missing = {key for key in set(cells) - set(records) if not UNFINISHED.match("/".join(key[:2]))}
    assert missing == MISSING
    assert [key for key, record in records.items() if not cells[key].matches(record)] == []


def test_a_record_of_other_settings_does_not_match():
    cell = next(c for c in cells_of("q1") if c.name == "train/r-G_L3")
    record = CellRecord.read(ROOT / "results" / "q1" / "train-r-G_L3.s0.json")
    assert cell.matches(record)
    for changed in ({"width": 64}, {"epochs": 13}, {"grammar": "G_L3"}):
        other = made_up(config={**record.config, **changed})
        assert not cell.matches(other)
