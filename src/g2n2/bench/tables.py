"""Results as rows of text: one choice of columns for each group, for terminal and page alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .cases import GIB, Floor
from .profiling import PARTS, REST
from .results import Result

TITLES = {
    "training": "Training step, QM9 sizes, 3 layers of width 64",
    "inference": "Inference, QM9 sizes, 3 layers of width 64",
    "epoch": "A QM9 epoch through g2n2 train",
    "profile": "Where the time of a training step goes, QM9 sizes, preset modern",
    "product": "The channel-wise product beside cuBLAS on contiguous matrices",
    "large": "Large graphs, one training step",
    "cpu": "CPU, batch 32",
    "nodes": "Training against the number of nodes",
    "batch": "Training against the batch, QM9 sizes",
    "width": "Training against the width, QM9 sizes",
}
LABELS = {
    "graphs_per_second": "graphs/s",
    "epoch_seconds": "s",
    "peak_bytes": "GiB",
    "× block-diagonal": "× block-diagonal",
}


@dataclass(frozen=True)
class Column:
    """A column of a table: its header and what it says of a result."""

    header: str
    cell: Callable[[Result], str]


def headers(group: str) -> tuple[str, ...]:
    return tuple(column.header for column in COLUMNS.get(group, NETWORK))


def rows(results: Sequence[Result], group: str) -> list[tuple[str, ...]]:
    """One row for each result; what was not measured says why in place of its speed."""
    columns = COLUMNS.get(group, NETWORK)
    return [tuple(_row(result, columns)) for result in results if result.group == group]


def _row(result: Result, columns: Sequence[Column]) -> list[str]:
    cells = [column.cell(result) for column in columns]
    if result.status != "measured":
        verb = "differs from the reference" if result.status == "differs" else result.status
        cells[1] = f"{verb}: {result.reason}"
    return cells


def figure(result: Result, name: str, digits: int = 3, scale: float = 1.0) -> str:
    """A figure in so many digits, with thousands apart; a dash where there is none."""
    value = result.value(name)
    return "–" if value is None else number(value * scale, digits)


def number(value: float, digits: int = 3) -> str:
    if value == 0 or value != value:
        return f"{value:g}"
    size = len(f"{abs(value):.0f}") if abs(value) >= 1 else 0
    if size >= digits:
        return f"{round(value, digits - size):,.0f}"
    return f"{value:.{digits}g}"


def _of(header: str, name: str, digits: int = 3, scale: float = 1.0) -> Column:
    return Column(header, lambda result: figure(result, name, digits, scale))


def _percent(header: str, name: str) -> Column:
    def cell(result: Result) -> str:
        value = result.value(name)
        return "–" if value is None else f"{100 * value:.1f} %"

    return Column(header, cell)


def _peer(header: str, peer: str) -> Column:
    def cell(result: Result) -> str:
        found = result.peers.get(peer)
        if found is None:
            return "–"
        return number(found["ratio"]) if "ratio" in found else str(found["skipped"])

    return Column(header, cell)


def floor_text(floor: Floor) -> str:
    """`≥ 50,000 graphs/s`, `≤ 6 GiB`."""
    value = floor.value / GIB if floor.metric == "peak_bytes" else floor.value
    return f"{'≤' if floor.at_most else '≥'} {number(value)} {LABELS[floor.metric]}"


def _floor(result: Result) -> str:
    return "–" if result.floor is None else floor_text(result.floor)


def _met(result: Result) -> str:
    return {True: "yes", False: "no", None: "–"}[result.met]


def _setting(header: str, name: str) -> Column:
    return Column(header, lambda result: f"{result.settings[name]:,}")


_CASE = Column("case", lambda result: result.case)
_SPEED = _of("graphs/s", "graphs_per_second")
_SPREAD = _percent("spread", "spread")
_TFLOPS = _of("TFLOP/s", "tflops")
_SHARE = _percent("of peak", "share_of_peak")
_MEMORY = _of("GiB", "peak_bytes", scale=1 / GIB)
_REFERENCE = _peer("× reference", "reference")
_FLOOR, _MET = Column("floor", _floor), Column("met", _met)
NETWORK = (
    _CASE, _SPEED, _SPREAD, _TFLOPS, _SHARE, _MEMORY, _REFERENCE, _peer("× PPGN", "ppgn"),
    _peer("× block-diagonal", "block-diagonal"), _FLOOR, _MET,
)  # fmt: skip
_SCALING = (_SPEED, _of("ms a batch", "milliseconds_per_batch"), _TFLOPS, _SHARE, _MEMORY)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "epoch": (
        _CASE, _of("s an epoch", "epoch_seconds"), _of("of it steps", "steps_seconds"),
        _of("first epoch, s", "first_epoch_seconds"), _of("molecules", "molecules", 6), _FLOOR,
        _MET,
    ),
    "product": (
        _setting("nodes", "nodes"), _TFLOPS, _SHARE,
        _of("TFLOP/s, contiguous", "tflops_of_contiguous"),
        Column("cuBLAS TFLOP/s", lambda r: number(r.peers["bmm"]["tflops"]) if r.peers else "–"),
        _peer("× cuBLAS", "bmm"),
    ),
    "profile": (
        _setting("batch", "batch"), *(_percent(part, part) for part in (*PARTS, REST)),
    ),
    "large": (
        _CASE, _of("s a step", "milliseconds_per_batch", scale=1e-3), _TFLOPS, _SHARE, _MEMORY,
        _FLOOR, _MET,
    ),
    "nodes": (_setting("nodes", "nodes"), *_SCALING, _setting("batch", "batch")),
    "batch": (_setting("batch", "batch"), *_SCALING),
    "width": (_setting("width", "width"), *_SCALING),
}  # fmt: skip
"""Of the groups that are not about networks at QM9's sizes with peers."""
