"""Where a result comes from."""

import subprocess
from pathlib import Path

import pytest
import torch

import g2n2
from g2n2.training import provenance as provenance_module
from g2n2.training.provenance import commit, provenance


def test_machine_and_versions_are_named():
    found = provenance(torch.device("cpu"))
    assert found["torch"] == torch.__version__
    assert found["g2n2"] == g2n2.__version__
    assert found["device"] == "cpu"
    assert found["cpu"]
    assert found["threads"] == torch.get_num_threads()


def test_the_commit_is_git_s():
    source = Path(g2n2.__file__).parent
    told = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if told.returncode:
        pytest.skip("g2n2 does not run from a git checkout here")
    found = commit()
    assert found is not None
    assert found.split(" with changes")[0] == told.stdout.strip()


def test_outside_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit() is None


def test_the_source_is_known_by_its_content(monkeypatch, tmp_path):
    package = tmp_path / "g2n2"
    (package / "training").mkdir(parents=True)
    (package / "training" / "provenance.py").write_text("a = 1\n")
    monkeypatch.setattr(provenance_module, "__file__", str(package / "training" / "provenance.py"))
    first = provenance_module.source_digest()
    assert first == provenance_module.source_digest()
    (package / "training" / "provenance.py").write_text("a = 2\n")
    assert provenance_module.source_digest() != first
