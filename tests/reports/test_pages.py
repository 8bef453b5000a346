"""The pages of this repository say what its records do."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from g2n2.cli import app

ROOT = Path(__file__).parents[2]


def test_readme_and_docs_are_fresh():
    pytest.importorskip("matplotlib", reason="figures are compared by drawing them")
    words = ["report", "--check", "--root", str(ROOT), "--results", str(ROOT / "results")]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output) == (0, "")
