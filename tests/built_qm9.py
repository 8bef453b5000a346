"""All of QM9, built once for every test that needs it."""

import importlib.util
import os
from pathlib import Path

import pytest


def build_once(folder: Path) -> Path:
    """The cache in a folder all workers share; whoever is first builds it, the others wait."""
    if cache := os.environ.get("G2N2_QM9_CACHE"):
        return Path(cache)
    for package in ("qm9pack", "rdkit"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"QM9 comes with the package {package}, which is not installed")
    from g2n2.data.qm9 import qm9_cache

    return qm9_cache(folder / "qm9.cache", progress=False)
