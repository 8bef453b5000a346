"""The output folder: made by the demonstration, marked as its own, replaced by the next one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ..atomic_files import make_folder
from ..errors import DataError

MARK = "demo.json"
CERTIFICATE = "certificate.json"
FIGURE = "figure"
REPORT = "report"
OWN = (
    CERTIFICATE,
    f"{FIGURE}.png",
    f"{FIGURE}.svg",
    f"{REPORT}.md",
    f"{REPORT}.html",
    "derived",
    "gin",
)
"""Everything a demonstration writes besides its mark; nothing else is ever removed."""


def take(path: Path) -> Path:
    """An empty place for a demonstration; what an earlier one left there goes.

    Raises:
        DataError: The folder holds something else, or cannot be written.
    """
    try:
        make_folder(path)
        if not (path / MARK).is_file() and any(path.iterdir()):
            raise DataError(
                f"{path} holds files that no demonstration left there; "
                "name another folder with --out, or an empty one"
            )
        mark(path, {"made_by": "g2n2 demo", "finished": False})
        for name in OWN:
            _remove(path / name)
    except OSError as fault:
        raise DataError(f"cannot write to {path}: {fault.strerror or fault}") from None
    return path


def mark(path: Path, content: dict[str, Any]) -> None:
    """Write the mark that says whose folder it is; in the end it holds the results."""
    text = json.dumps(content, ensure_ascii=False, indent=2)
    (path / MARK).write_text(text + "\n", encoding="utf-8")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
