"""Kept benchmark figures, one JSON file for each group and machine, as tables and as a roofline."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import g2n2
from g2n2.atomic_files import replace_file
from g2n2.errors import DataError

from ..report.drawing import Drawing
from ..report.numbers import markdown
from .cases import GIB
from .measures import PARTS, REST

Row = Mapping[str, Any]
"""A result as `Bench.run` gives it."""
UNITS = {
    "graphs_per_second": "graphs/s",
    "epoch_seconds": "s",
    "peak_bytes": "GiB",
    "× block-diagonal": "× block-diagonal",
}
_SCALING = ("graphs/s", "ms a batch", "TFLOP/s", "of peak", "GiB")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "epoch": ("case", "s an epoch", "of it steps", "first epoch, s", "molecules", "floor", "met"),
    "product": (
        "nodes", "TFLOP/s", "of peak", "TFLOP/s, contiguous", "cuBLAS TFLOP/s", "× cuBLAS",
    ),
    "profile": ("batch", *PARTS, REST),
    "large": ("case", "s a step", "TFLOP/s", "of peak", "GiB", "floor", "met"),
    "nodes": ("nodes", *_SCALING, "batch"),
    "batch": ("batch", *_SCALING),
    "width": ("width", *_SCALING),
    "": (
        "case", "graphs/s", "spread", "TFLOP/s", "of peak", "GiB", "× reference", "× PPGN",
        "× block-diagonal", "floor", "met",
    ),
}  # fmt: skip
"""Columns of each group; "" is for networks at QM9's sizes."""
FIGURES = {
    "graphs/s": ("graphs_per_second", 3, 1.0),
    "TFLOP/s": ("tflops", 3, 1.0),
    "GiB": ("peak_bytes", 3, 1 / GIB),
    "ms a batch": ("milliseconds_per_batch", 3, 1.0),
    "s a step": ("milliseconds_per_batch", 3, 1e-3),
    "s an epoch": ("epoch_seconds", 3, 1.0),
    "of it steps": ("steps_seconds", 3, 1.0),
    "first epoch, s": ("first_epoch_seconds", 3, 1.0),
    "molecules": ("molecules", 6, 1.0),
    "TFLOP/s, contiguous": ("tflops_of_contiguous", 3, 1.0),
}
"""Header to figure, digits and scale."""
SHARES = {"spread": "spread", "of peak": "share_of_peak"} | {p: p for p in (*PARTS, REST)}
OLDER = "measured with older kernels"
PEERS = {
    "× reference": "reference",
    "× PPGN": "ppgn",
    "× block-diagonal": "block-diagonal",
    "× cuBLAS": "bmm",
}
COLOURS = {"bf16": "#2a6f97", "tf32": "#d1603d", "32": "#5b8e4d"}
NAMES = {"bf16": "bfloat16", "tf32": "tf32", "32": "float32"}


def read_results(folder: Path) -> list[Row]:
    """All kept results, by file."""
    rows: list[Row] = []
    for path in sorted(folder.glob("*.json")):
        try:
            rows += json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path} is damaged ({error}); delete it and measure again") from None
    return rows


def keep_result(folder: Path, row: Row) -> Path:
    """Write a result beside those of other cases; it replaces an older one of its case."""
    device = re.sub(r"[^a-z0-9]+", "-", str(row["made_with"]["device"]).lower()).strip("-")
    path = folder / f"{row['group']}.{device}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    rows = {old["case"]: old for old in kept} | {row["case"]: row}
    text = json.dumps(list(rows.values()), indent=1, ensure_ascii=False)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, f"{text}\n".encode(), shared=True)
    return path


def table(rows: Sequence[Row], group: str) -> pd.DataFrame:
    """The results of a group; one that was not measured says why."""
    headers = COLUMNS.get(group, COLUMNS[""])
    lines = []
    for row in rows:
        cells = [cell(row, header) for header in headers]
        if row["status"] != "measured":
            verb = "differs from the reference" if row["status"] == "differs" else row["status"]
            cells[1] = f"{verb}: {row['reason']}"
        lines.append(cells)
    return pd.DataFrame(lines, columns=list(headers))


def cell(row: Row, header: str) -> str:
    """The text of one cell."""
    figures, peers = row["figures"], row["peers"]
    if header in ("nodes", "batch", "width"):
        return f"{row['settings'][header]:,}"
    if header in FIGURES:
        name, digits, scale = FIGURES[header]
        return number(figures[name] * scale, digits) if name in figures else "–"
    if header in SHARES:
        return f"{100 * figures[SHARES[header]]:.1f} %" if SHARES[header] in figures else "–"
    if header in PEERS:
        peer = peers.get(PEERS[header])
        if peer is None:
            return "–"
        return number(peer["ratio"]) if "ratio" in peer else str(peer["skipped"])
    if header == "cuBLAS TFLOP/s":
        return number(peers["bmm"]["tflops"]) if peers else "–"
    if header == "floor":
        return floor_text(row["settings"]["floor"])
    return {True: "yes", False: "no", None: "–"}[is_met(row)] if header == "met" else row["case"]


def is_met(row: Row) -> bool | None:
    """Whether a result reaches its floor; None if it has none or was not measured."""
    floor = row["settings"]["floor"]
    if not floor:
        return None
    metric = floor["metric"]
    peer = row["peers"].get(metric.removeprefix("× "), {})
    value = peer.get("ratio") if metric.startswith("× ") else row["figures"].get(metric)
    if value is None:
        return None
    return bool(value <= floor["value"] if floor["at_most"] else value >= floor["value"])


def floor_text(floor: Mapping[str, Any] | None) -> str:
    """`≥ 50,000 graphs/s`, `≤ 6 GiB`."""
    if not floor:
        return "–"
    value = floor["value"] / GIB if floor["metric"] == "peak_bytes" else floor["value"]
    return f"{'≤' if floor['at_most'] else '≥'} {number(value)} {UNITS[floor['metric']]}"


def number(value: float, digits: int = 3) -> str:
    """So many digits, with commas between thousands."""
    size = len(f"{abs(value):.0f}") if abs(value) >= 1 else 0
    if value and value == value and size >= digits:
        return f"{round(value, digits - size):,.0f}"
    return f"{value:.{digits}g}" if value else "0"


@cache
def kernel_digest() -> str:
    """Digest of the source of `g2n2.ops` and `g2n2.nn`: what a speed is the speed of."""
    package = Path(g2n2.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for name in ("ops", "nn") for path in (package / name).rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def group_tables(rows: Iterable[Row], group: str) -> str:
    """Markdown: the table of a group for each machine it was measured on.

    A table measured with other kernels than those of the package says so. A change of the kernels
    then makes the committed page differ from its records until it is written again.
    """
    parts = []
    by_machine: dict[str, list[Row]] = {}
    for row in rows:
        if row["group"] == group:
            by_machine.setdefault(machine(row), []).append(row)
    for name, mine in by_machine.items():
        older = any(row["made_with"].get("kernels") != kernel_digest() for row in mine)
        note = f", {OLDER}" if older else ""
        parts.append(f"{name}{note}:\n\n{markdown(table(mine, group))}")
    return "\n\n".join(parts) or f"*Not measured yet: `g2n2-paper bench --case {group}`.*"


def machine_table(rows: Iterable[Row]) -> pd.DataFrame:
    """Measured peaks of the machines; shares of a peak refer to them."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        made = row["made_with"]
        line = lines.setdefault(machine(row), ["–"] * 5)
        for place, precision in enumerate(("bf16", "tf32", "32")):
            if precision in made.get("peak_tflops", {}):
                line[place] = f"{made['peak_tflops'][precision]:.3g}"
        line[3] = f"{made['bandwidth_gb_per_second']:,.0f}"
        line[4] = f"torch {made['torch']}, triton {made['triton']}"
    headers = ["machine", "bf16 TFLOP/s", "tf32 TFLOP/s", "fp32 TFLOP/s", "GB/s", "with"]
    return pd.DataFrame([(name, *line) for name, line in lines.items()], columns=headers)


def machine(row: Row) -> str:
    made = row["made_with"]
    cpu = f"{made['cpu']}, {made['threads']} threads"
    return cpu if made["device"] == "cpu" else str(made["device"])


def roofline(rows: Iterable[Row]) -> Drawing:
    """Measured cases of the GPU under the roof of its measured peaks."""
    points = [
        row
        for row in rows
        if row["made_with"]["device"] != "cpu" and "flops_per_byte" in row["figures"]
    ]
    return Drawing((7.2, 4.4), lambda figure: _draw_roofline(figure, points))


def _draw_roofline(figure: Any, points: Sequence[Row]) -> None:
    axes = figure.subplots()
    made = points[-1]["made_with"]
    speed = made["bandwidth_gb_per_second"] * 1e9
    peaks: dict[str, float] = {}
    for row in points:
        peaks |= row["made_with"]["peak_tflops"]
    for precision, peak in peaks.items():
        label = f"{NAMES[precision]}: {peak:.0f} TFLOP/s"
        roof = [speed / 1e12, peak, peak]
        axes.plot([1.0, peak * 1e12 / speed, 4096.0], roof, color=COLOURS[precision], label=label)
    lowest: dict[float, float] = {}
    for row in sorted(points, key=lambda row: row["figures"]["tflops"]):
        x, y = row["figures"]["flops_per_byte"], row["figures"]["tflops"]
        named = bool(row["settings"]["floor"])
        style = {"markersize": 5 if named else 3, "alpha": 1.0 if named else 0.4}
        axes.plot(x, y, "o", color=COLOURS[row["settings"]["precision"]], **style)
        if not named:
            continue
        column = round(x, -1)  # names of one column are pushed up until they do not touch
        lowest[column] = max(y, 1.13 * lowest.get(column, 0.0))
        line = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.6"}
        where = {"ha": "right", "va": "center", "fontsize": 6}
        axes.annotate(row["case"], (x, y), (x / 1.2, lowest[column]), arrowprops=line, **where)
    axes.set(xscale="log", yscale="log", xlim=(8, 2048), ylabel="useful TFLOP/s")
    axes.set_xlabel("useful FLOP for each byte a fused layer moves")
    axes.set_title(f"{made['device']}, {speed / 1e12:.2g} TB/s measured")
    axes.grid(True)
    axes.legend(loc="upper left", fontsize=8)
