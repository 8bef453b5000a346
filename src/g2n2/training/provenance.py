"""What a result was got with: machine, versions, commit of the source."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from .. import __version__


def provenance(device: torch.device) -> dict[str, Any]:
    """Hardware and software of this process."""
    return {
        "g2n2": __version__,
        "commit": commit(),
        "source": source_digest(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
    }


def commit() -> str | None:
    """The commit of the g2n2 source, marked where files differ from it; None outside git."""
    source = Path(__file__).resolve().parents[1]
    try:
        tracked = _git(source, "ls-files", "--error-unmatch", "__init__.py")
        head = _git(source, "rev-parse", "HEAD") if tracked else ""
        changed = _git(source, "status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head} with changes" if changed else head or None


def source_digest() -> str:
    """Of the package's own files: what ran, whatever a commit says of it."""
    package = Path(__file__).resolve().parents[1]
    made = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        made.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return made.hexdigest()


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=True
    )
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
