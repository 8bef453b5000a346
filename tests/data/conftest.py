"""What tests of data share: a place without data, and QM9's package."""

import importlib.util
import urllib.request
from pathlib import Path
from typing import Any, NoReturn

import pytest


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data folder, an empty cache (returned), and no network."""

    def no_network(*_: Any, **__: Any) -> NoReturn:
        raise OSError("no network in this test")

    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    return tmp_path / "cache" / "g2n2"


@pytest.fixture(scope="session")
def qm9pack() -> Path:
    """The folder of the package qm9pack; the test is skipped without it."""
    spec = importlib.util.find_spec("qm9pack")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("qm9pack is not installed")
    return Path(spec.submodule_search_locations[0])
