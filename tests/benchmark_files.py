"""The benchmark files, where `$G2N2_DATA` names a folder with them."""

import os
from pathlib import Path

import pytest

from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.power.suites import Suite


def real_file(subfolder: str, name: str) -> Path:
    """The path of a benchmark file; the test is skipped where it is absent."""
    folder = os.environ.get("G2N2_DATA", "")
    path = Path(folder, subfolder, name)
    if not folder or not path.is_file():
        pytest.skip(f"needs {subfolder}/{name} in the folder $G2N2_DATA names: {folder!r}")
    return path


def real_suite(name: str) -> Suite:
    """A suite of pairs that is read from files; the test is skipped where they are absent."""
    try:
        return load_suite(name)
    except DataError as error:
        folder = os.environ.get("G2N2_DATA", "unset")
        pytest.skip(f"needs the {name} files in $G2N2_DATA ({folder}): {error}")
