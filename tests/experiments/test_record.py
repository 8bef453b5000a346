"""Records: what is written is read back, and nothing else passes for one."""

from dataclasses import replace
from pathlib import Path

import pytest

from g2n2.errors import DataError
from g2n2.experiments.record import Record, read_records, record_path

RECORD = Record(
    question="q2",
    cell="single/r2/distance/G2N2/modern",
    seed=3,
    budget="short",
    done=7,
    planned=20,
    unit="epochs",
    metrics={"test MAE r2 (bohr²)": 1.25, "not measured": None},
    config={"width": 64, "target": ["r2"]},
    data={"qm9": "ab12"},
    provenance={"device": "cpu"},
    seconds=12.5,
    detail={"validation": [3.0, 2.0]},
)


def test_what_is_written_is_read_back(tmp_path):
    path = RECORD.write(tmp_path)
    assert path == tmp_path / "q2" / "single-r2-distance-G2N2-modern.s3.short.json"
    assert Record.read(path) == RECORD
    assert "bohr²" in path.read_text(encoding="utf-8")  # readable, not \\u00b2
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_record_is_partial_until_all_is_done():
    assert RECORD.partial
    assert not replace(RECORD, done=20).partial


def test_not_a_number_is_refused_and_the_old_record_stays(tmp_path):
    path = RECORD.write(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        replace(RECORD, metrics={"x": float("nan")}).write(tmp_path)
    assert Record.read(path) == RECORD


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"question": "q2"}'])
def test_a_file_that_is_no_record_is_named(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"bad\.json is no result"):
        Record.read(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"budget": "huge"}, "its budget is 'huge'"),
        ({"metrics": [1.0]}, "its metrics are no object"),
        ({"metrics": {"x": "much"}}, "x is 'much'"),
        ({"done": "all"}, "done is 'all'"),
        ({"planned": None}, "planned is None"),
        ({"done": 21}, "21 of 20 epochs cannot be"),
        ({"done": 0, "planned": 0}, "0 of 0 epochs cannot be"),
        ({"seconds": -5.0}, "it took -5.0 seconds"),
        ({"done": True}, "done is True"),
        ({"seed": "0"}, "seed is '0'"),
        ({"provenance": {"earlier slices": ["GPU"]}}, "its earlier slices are"),
        ({"cell": "a", "question": "q2", "unit": None}, "unit is None"),
        ({"metrics": {"x": 10**400}}, "too large"),
    ],
)
def test_a_record_no_table_could_read_is_named(tmp_path, change, complaint):
    path = replace(RECORD, **change).write(tmp_path)
    with pytest.raises(DataError, match=complaint):
        Record.read(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ['"seconds": 12.5', '"test MAE r2 (bohr²)": 1.25', '"done": 7'])
def test_no_number_of_a_record_is_infinite(tmp_path, name, number):
    path = RECORD.write(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert name in text
    path.write_text(text.replace(name, f"{name.rpartition(' ')[0]} {number}"), encoding="utf-8")
    with pytest.raises(DataError, match="is no result"):
        Record.read(path)


def test_nor_is_one_of_its_detail(tmp_path):
    path = replace(RECORD, detail={"curve": [0.5]}).write(tmp_path)
    path.write_text(path.read_text("utf-8").replace("0.5\n", "NaN\n"), encoding="utf-8")
    with pytest.raises(DataError, match="NaN is no number"):
        Record.read(path)


def test_a_file_of_brackets_is_named(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"deep\.json is no result"):
        Record.read(path)


def test_a_copy_is_not_another_seed(tmp_path):
    path = RECORD.write(tmp_path)
    (path.parent / "copy.json").write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=rf"copy\.json holds .*{path.name}: is it a copy"):
        read_records(tmp_path, "q2")


def test_a_record_of_another_question_is_not_read_as_one_of_this(tmp_path):
    path = RECORD.write(tmp_path)
    (tmp_path / "q3").mkdir()
    (tmp_path / "q3" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=r"holds the record of q2 .*is it a copy"):
        read_records(tmp_path, "q3")
    (tmp_path / "withdrawn").mkdir()
    (tmp_path / "q3").rename(tmp_path / "withdrawn/q2-by-size")
    assert len(read_records(tmp_path, "withdrawn/q2-by-size")) == 1


def test_the_records_of_a_question_come_by_name(tmp_path):
    for seed, question in ((1, "q1"), (0, "q1"), (0, "q2")):
        replace(RECORD, question=question, seed=seed).write(tmp_path)
    assert [record.seed for record in read_records(tmp_path, "q1")] == [0, 1]
    assert read_records(tmp_path, "q4") == []


def test_the_path_of_a_cell_and_of_its_record_are_one():
    path = record_path(Path("results"), "q2", RECORD.cell, 3, "short")
    assert path == RECORD.path(Path("results"))
