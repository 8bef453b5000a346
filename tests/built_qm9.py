"""All of QM9, built once for every test that needs it."""

import importlib.util
import os
from pathlib import Path
from typing import NamedTuple

import pytest


class BuiltQM9(NamedTuple):
    """Its cache, and the processor seconds it took to build, 0 for one that was there before."""

    cache: Path
    seconds: float


def build_once(folder: Path) -> BuiltQM9:
    """The cache in a folder all workers share; whoever is first builds it, the others wait."""
    if cache := os.environ.get("G2N2_QM9_CACHE"):
        return BuiltQM9(Path(cache), 0.0)
    for package in ("qm9pack", "rdkit"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"QM9 comes with the package {package}, which is not installed")
    from filelock import FileLock

    from g2n2.data.qm9 import build_qm9

    built, took = folder / "qm9.cache", folder / "qm9.seconds"
    with FileLock(folder / "qm9.lock"):
        if not took.is_file():
            begun = sum(os.times()[:4])
            build_qm9(built, progress=False)
            took.write_text(str(sum(os.times()[:4]) - begun))
    return BuiltQM9(built, float(took.read_text()))
