"""Every question end to end on real but tiny data: cells, records, report."""

import os

import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.experiments.questions import QUESTIONS, cells_of
from g2n2.experiments.record import read_records


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_harness_works(question, tmp_path, monkeypatch, request):
    data = os.environ.get("G2N2_DATA")
    if data is None:
        pytest.skip("needs the data folder: set G2N2_DATA")
    words = ["--budget", "smoke", "--device", "cpu", "--data", data]
    if question in ("q1", "q2"):
        words += ["--option", f"cache={request.getfixturevalue('built_qm9').cache}"]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["experiment", question, *words])
    assert done.exit_code == 0, done.output
    records = read_records(tmp_path / "results", question)
    assert {r.cell for r in records} == {cell.name for cell in cells_of(question, "smoke")}
    for record in records:
        assert not record.partial
        assert record.data, "the data's checksum"
        assert record.provenance["source"]
        assert record.metrics
    said = CliRunner().invoke(app, ["report", "--smoke", "--out", "report"])
    assert said.exit_code == 0, said.output
    assert (tmp_path / "report" / "report.html").is_file()
