"""Result: what one case gave, in a JSON file for each group and machine."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ..atomic_files import make_folder, replace_file
from ..errors import DataError
from .cases import Floor

Status = Literal["measured", "differs", "skipped", "failed"]


@dataclass(frozen=True)
class Result:
    """What one case gave.

    Attributes:
        case: Its name.
        group: Its group.
        status: `differs` where the fast path gave other numbers than the reference: no speed then;
            `failed` where it gave none.
        settings: The case, and under `graphs` what it was measured on.
        figures: What was measured, by name; the unit is part of a name.
        check: Errors of the equality check, with what they may be.
        peers: Peer to its figures, or to the reason there are none.
        reason: Why there are no figures, in words.
        made_with: Hardware, versions, commit, and the peaks measured in the same run.
        seconds: Wall time of the case, compiling and checking included.
    """

    case: str
    group: str
    status: Status
    settings: Mapping[str, Any]
    figures: Mapping[str, float] = field(default_factory=dict)
    check: Mapping[str, Any] = field(default_factory=dict)
    peers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def floor(self) -> Floor | None:
        """What the case should reach."""
        given = self.settings.get("floor")
        return Floor(**given) if given else None

    @property
    def met(self) -> bool | None:
        """Whether it does; None where there is nothing to say."""
        value = None if self.floor is None else self.value(self.floor.metric)
        return None if self.floor is None or value is None else self.floor.met(value)

    def value(self, metric: str) -> float | None:
        """A figure, or the ratio to a peer (`× PEER`)."""
        if metric.startswith("× "):
            ratio = self.peers.get(metric[2:], {}).get("ratio")
            return None if ratio is None else float(ratio)
        return self.figures.get(metric)

    @property
    def device(self) -> str:
        """The machine in a word, as files are named: `nvidia-h200`, `cpu`."""
        return slug(str(self.made_with["device"]))


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Answer a place that cannot be written to in words."""
    try:
        yield
    except OSError as fault:
        raise DataError(
            f"cannot write {str(path)!r}: {fault.strerror}; name another place"
        ) from None


def probe(folder: Path) -> None:
    """See that results can be kept in a folder, before hours are spent on them.

    Raises:
        DataError: They cannot.
    """
    with writing(folder):
        make_folder(folder)
        tempfile.TemporaryFile(dir=folder).close()


def write_results(folder: Path, results: Iterable[Result]) -> list[Path]:
    """Put results beside those of other cases; a case measured again replaces its old result.

    Returns:
        The files, one for each group and machine.
    """
    together: dict[Path, dict[str, Result]] = {}
    for result in results:
        path = folder / f"{result.group}.{result.device}.json"
        if path not in together:
            together[path] = {old.case: old for old in _read(path)} if path.is_file() else {}
        together[path][result.case] = result
    for path, found in together.items():
        text = json.dumps([asdict(r) for r in found.values()], indent=1, ensure_ascii=False)
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, (text + "\n").encode(), shared=True)
    return list(together)


def read_results(folder: Path, group: str | None = None) -> list[Result]:
    """All results kept in a folder, by file and then as they were written."""
    pattern = f"{group or '*'}.*.json"
    return [result for path in sorted(folder.glob(pattern)) for result in _read(path)]


def _read(path: Path) -> list[Result]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [Result(**{f.name: row[f.name] for f in fields(Result)}) for row in content]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise DataError(
            f"{path} holds no results of g2n2 bench ({fault}); delete it and measure again"
        ) from None
