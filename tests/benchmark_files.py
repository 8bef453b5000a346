"""The benchmark files, where `$G2N2_DATA` names a folder with them."""

import os
from pathlib import Path

import pytest


def real_file(subfolder: str, name: str) -> Path:
    """The path of a benchmark file; the test is skipped where it is absent."""
    folder = os.environ.get("G2N2_DATA", "")
    path = Path(folder, subfolder, name)
    if not folder or not path.is_file():
        pytest.skip(f"needs {subfolder}/{name} in the folder $G2N2_DATA names: {folder!r}")
    return path
