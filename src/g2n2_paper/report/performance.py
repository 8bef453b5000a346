"""Recorded benchmark figures as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..bench.cases import CASES, GIB
from ..bench.measures import PARTS, REST, kernel_digest
from ..bench.run import Row
from .tables import EMPTY, markdown

UNITS = {"graphs_per_second": "graphs/s", "epoch_seconds": "s", "peak_bytes": "GiB"}
_SCALING = ("graphs/s", "ms a batch", "TFLOP/s", "of peak", "GiB")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "epoch": ("case", "s an epoch", "of it steps", "first epoch, s", "molecules", "floor", "met"),
    "product": (
        "nodes", "TFLOP/s", "of peak", "TFLOP/s, contiguous", "cuBLAS TFLOP/s", "× cuBLAS",
    ),
    "profile": ("batch", *PARTS, REST),
    "large": ("case", "s a step", "TFLOP/s", "of peak", "GiB", "floor", "met"),
    "marks": (
        "case", "marks", "trunk", "batch", "copies a graph", "graphs/s", "spread", "TFLOP/s",
        "of peak", "GiB", "floor", "met",
    ),
    "marks-nodes": ("nodes", "marks", "copies a graph", *_SCALING, "batch", "spread"),
    "nodes": ("nodes", *_SCALING, "batch"),
    "batch": ("batch", *_SCALING),
    "width": ("width", *_SCALING),
    "": (
        "case", "graphs/s", "spread", "TFLOP/s", "of peak", "GiB", "× reference", "× compiled",
        "× PPGN", "× block-diagonal", "× FloydNet", "× GINE", "× SchNet", "floor", "met",
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
    "copies a graph": ("copies", 3, 1.0),
    "TFLOP/s, contiguous": ("tflops_of_contiguous", 3, 1.0),
}
"""Header to figure, digits and scale."""
SHARES = {"spread": "spread", "of peak": "share_of_peak"} | {p: p for p in (*PARTS, REST)}
OLDER = "measured with older kernels"
PEERS = {
    "× reference": "reference",
    "× compiled": "compiled",
    "× PPGN": "ppgn",
    "× block-diagonal": "block-diagonal",
    "× FloydNet": "floydnet",
    "× GINE": "gine",
    "× SchNet": "schnet",
    "× cuBLAS": "bmm",
}
PRECISIONS = ("bf16", "tf32", "32")


def group_table(
    rows: Sequence[Row], group: str, reasons: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of a group; peers of none have no column.

    A case that was not measured says so in its second cell. With `reasons` it also says why, and
    so does a peer that was not; without, peers that no case was compared with have no column.
    """
    used_headers = {
        header
        for header, peer in PEERS.items()
        if any(
            peer in row["peers"] and (reasons or row["peers"][peer].get("ratio")) for row in rows
        )
    }
    headers = [h for h in COLUMNS.get(group, COLUMNS[""]) if h not in PEERS or h in used_headers]
    lines = []
    for row in rows:
        cells = [cell(row, header) for header in headers]
        if row["status"] != "measured":
            cells[1] = why_not(row) if reasons else row["status"]
        lines.append(cells)
    return headers, lines


def why_not(row: Row) -> str:
    """Why a case was not measured."""
    verb = "differs from the reference" if row["status"] == "differs" else row["status"]
    return f"{verb}: {row['reason']}"


def cell(row: Row, header: str) -> str:
    figures, peers = row["figures"], row["peers"]
    if header == "marks":
        return row["settings"]["marks"] if "Σ" in row["settings"]["grammar"] else "none"
    if header in ("nodes", "batch", "width", "trunk"):
        return f"{row['settings'][header]:,}"
    if header in FIGURES:
        name, digits, scale = FIGURES[header]
        return number(figures[name] * scale, digits) if name in figures else EMPTY
    if header in SHARES:
        return f"{100 * figures[SHARES[header]]:.1f} %" if SHARES[header] in figures else EMPTY
    if header in PEERS:
        peer = peers.get(PEERS[header])
        if peer is None:
            return EMPTY
        return number(peer["ratio"]) if "ratio" in peer else str(peer["skipped"])
    if header == "cuBLAS TFLOP/s":
        return number(peers["bmm"]["tflops"]) if peers else EMPTY
    if header == "floor":
        return floor_text(row["settings"]["floor"])
    return {True: "yes", False: "no", None: EMPTY}[is_met(row)] if header == "met" else row["case"]


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
        return EMPTY
    metric, value = floor["metric"], floor["value"]
    value = value / GIB if metric == "peak_bytes" else value
    return f"{'≤' if floor['at_most'] else '≥'} {number(value)} {UNITS.get(metric, metric)}"


def number(value: float, digits: int = 3) -> str:
    """So many digits, with commas between thousands."""
    size = len(f"{abs(value):.0f}") if abs(value) >= 1 else 0
    if value and value == value and size >= digits:
        return f"{round(value, digits - size):,.0f}"
    return f"{value:.{digits}g}" if value else "0"


def group_tables(rows: Iterable[Row], group: str) -> str:
    """Markdown: the table of a group for each machine it was measured on.

    A table measured with other kernels than those of the package says so. A change of the kernels
    then makes the committed page differ from its records until it is written again.
    """
    parts = []
    by_machine: dict[str, list[Row]] = {}
    places = {case.name: place for place, case in enumerate(CASES)}
    for row in sorted(rows, key=lambda row: places.get(row["case"], len(places))):
        if row["group"] == group:
            by_machine.setdefault(machine(row), []).append(row)
    for name, measured in by_machine.items():
        note = f", {OLDER}" if any(map(is_older, measured)) else ""
        parts.append(f"{name}{note}:\n\n{markdown(*group_table(measured, group, reasons=False))}")
        parts += [f"{r['case']} {why_not(r)}." for r in measured if r["status"] != "measured"]
    return "\n\n".join(parts) or f"*Not measured yet: `g2n2-paper bench --case {group}`.*"


def is_older(row: Row) -> bool:
    """Whether a result was measured with other kernels than those of the package."""
    return bool(row["made_with"].get("kernels") != kernel_digest())


def older_groups(rows: Iterable[Row]) -> list[str]:
    """What the tables are called that have such a result, as "nodes (NVIDIA H200)"."""
    order = list(dict.fromkeys(case.group for case in CASES))
    older = {(row["group"], machine(row)) for row in rows if is_older(row)}
    known = sorted((x for x in older if x[0] in order), key=lambda x: (order.index(x[0]), x[1]))
    return [f"`{group}` ({name})" for group, name in known]


def figure(rows: Iterable[Row], case: str, header: str) -> str:
    """A figure of a case as its table has it; a dash where it was not measured."""
    found = [row for row in rows if row["case"] == case and row["status"] == "measured"]
    return cell(found[-1], header) if found else EMPTY


def ratios(rows: Sequence[Row], header: str, *cases: str) -> str:
    """The least and the largest ratio to a peer over some cases, as "8.9 to 33"."""
    peers = (r["peers"].get(PEERS[header], {}) for r in rows if r["case"] in cases)
    found = sorted(peer["ratio"] for peer in peers if "ratio" in peer)
    ends = [number(value, 2) for value in found[:: max(1, len(found) - 1)]]
    return " to ".join(dict.fromkeys(ends)) or EMPTY


def missed_floors(rows: Iterable[Row]) -> list[str]:
    """Cases below their floor, with what they reach."""
    texts = []
    for row in rows:
        if is_met(row) is False:
            floor, figures = row["settings"]["floor"], row["figures"]
            unit = UNITS.get(floor["metric"], floor["metric"])
            reached = figures.get(floor["metric"])
            got = f", {number(reached)} {unit}" if reached is not None else ""
            texts.append(f"`{row['case']}` ({floor_text(floor)}{got})")
    return texts


def kernel_table(folder: Path) -> str:
    """Markdown: how many times longer a step takes without each kernel."""
    records = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    rows = [row for record in records for row in record["steps"] if row["without"]]
    if not rows:
        return "*Not measured yet: `python benchmarks/without_kernels.py`.*"
    kinds = sorted({(row["by"] == "compiled", row["batch"], row["by"]) for row in rows})
    headers = ["without", *(f"{by}, batch {batch}" for _, batch, by in kinds)]
    found = {(row["without"], row["batch"], row["by"]): _times(row) for row in rows}
    names = dict.fromkeys(row["without"] for row in rows)
    lines = [[n, *(found.get((n, batch, by), EMPTY) for _, batch, by in kinds)] for n in names]
    return markdown(headers, lines)


def _times(row: Row) -> str:
    if "times" not in row:
        return "failed"
    return f"{row['times']:.2f}" + ("" if row.get("equal", True) else " (differs)")


def machine_table(rows: Iterable[Row]) -> str:
    """Markdown: measured peaks of the machines; shares of a peak refer to them."""
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        hardware = row["made_with"]
        line = lines.setdefault(machine(row), dict.fromkeys(PRECISIONS, EMPTY))
        line |= {name: f"{peak:.3g}" for name, peak in hardware.get("peak_tflops", {}).items()}
        line["GB/s"] = f"{hardware['bandwidth_gb_per_second']:,.0f}"
        line["with"] = f"torch {hardware['torch']}, triton {hardware['triton']}"
    headers = ["machine", "bf16 TFLOP/s", "tf32 TFLOP/s", "fp32 TFLOP/s", "GB/s", "with"]
    table = [(name, *line.values()) for name, line in lines.items()]
    return markdown(headers, table)


def machine(row: Row) -> str:
    hardware = row["made_with"]
    cpu = f"{hardware['cpu']}, {hardware['threads']} threads"
    return cpu if hardware["device"] == "cpu" else str(hardware["device"])
