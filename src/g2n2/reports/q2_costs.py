"""What Q2 costs, and whether runs die: seconds per epoch, and spread of predictions."""

from __future__ import annotations

from collections.abc import Mapping

from ..demonstration.blocks import Block, Table, Text
from ..experiments.collapse import LEAST_SPREAD, SPREAD
from ..experiments.q2 import COMPARED, PRECISIONS
from ..experiments.speed import epochs_in_equal_time, seconds_key
from .cited import cited
from .numbers import EMPTY, OPTIONAL, PARTIAL, fixed, mean_entry
from .q2_names import TARGETS, mae
from .section import Aim
from .standings import Standing

WANTED_SEEDS = 20

_SPEEDS = {
    "each target alone, width 64, with distances": ("speed/single/distance", "single", EMPTY),
    "the same in bf16, as all targets but R² and ZPVE": ("speed/single-bf16/distance", "", EMPTY),
    "all twelve, width 32, with distances": ("speed/joint-width32/distance", "joint", EMPTY),
    "all twelve, width 32, bonds only": ("speed/joint-width32/bonds", "", EMPTY),
    "all twelve, width 64, with distances": ("speed/joint-width64/distance", "", OPTIONAL),
}
_EQUAL_TIME = {
    "R² alone": ("speed/single/distance", "single/r2/distance/PPGN/modern"),
    "U₀ alone": ("speed/single-bf16/distance", "single/u0/distance/PPGN/modern"),
    "jointly, with distances": (
        "speed/joint-width32/distance",
        "joint/width32/distance/PPGN/modern",
    ),
    "jointly, bonds only": ("speed/joint-width32/bonds", "joint/width32/bonds/PPGN/modern"),
}
"""What timed the networks, and the run of PPGN with the epochs of G²N²."""


def speeds(known: Mapping[str, Standing]) -> list[Block]:
    """Seconds per epoch of both networks, measured in one run, beside the published ones."""
    table = cited("qm9-time")
    rows = []
    for said, (name, row, absent) in _SPEEDS.items():
        published = [table.at(row, c).text if row else "" for c in ("PPGN", "G²N²")]
        ours = [
            mean_entry(known.get(name), metric, fixed(2), absent).text
            for metric in (seconds_key("PPGN"), seconds_key("G2N2"), "PPGN / G2N2")
        ]
        standing = known.get(name)
        machine = str(standing.records[0].provenance.get("device", "?")) if standing else absent
        rows.append((said, *published, *ours, machine))
    headers = (
        "seconds per epoch",
        "PPGN, cited",
        "G²N², cited",
        "PPGN, ours",
        "G²N², ours",
        "PPGN / G²N²",
        "machine",
    )
    return [
        Text("**Seconds per epoch**, both networks in one run."),
        Table(headers, tuple(rows)),
        Text(
            f"Cited: {table.citation}, on hardware it does not name: only the ratio compares."
            f"{_equal_time(known)}"
        ),
    ]


def _equal_time(known: Mapping[str, Standing]) -> str:
    """Where PPGN was given other epochs for its equal time than the table's ratios give."""
    apart = []
    for said, (timed, runs) in _EQUAL_TIME.items():
        equal, given, speed = (known.get(name) for name in (runs, f"{runs}/equal-time", timed))
        ratio = speed.mean("PPGN / G2N2") if speed else None
        if equal is None or given is None or ratio is None or equal.budget != given.budget:
            continue
        took = given.records[0].planned
        now = epochs_in_equal_time(equal.records[0].planned, ratio.value)
        if took != now:
            apart.append(f"{said} {took} epochs, by this one {now}")
    if not apart:
        return ""
    return f" The equal time of PPGN was set by an earlier timing: {'; '.join(apart)}."


def precisions(known: Mapping[str, Standing]) -> list[Block]:
    """What half precision costs: the same runs in bf16 and in tf32."""
    rows = []
    for target in COMPARED:
        cells = [known.get(f"precision/{target}/{precision}") for precision in PRECISIONS]
        half, full = cells
        entries = [mean_entry(cell, mae(target)).text for cell in cells]
        changed = change(full, half, mae(target))
        rows.append((TARGETS[target].symbol, *entries, changed, _works(half, full)))
    return [
        Text("**Precision**: the same runs in bf16 and in tf32, test MAE."),
        Table(("target", *PRECISIONS, "bf16 against tf32", "work"), tuple(rows)),
    ]


def change(before: Standing | None, after: Standing | None, metric: str) -> str:
    """By how much an error is larger after a change; not said where the two did other work."""
    if before is None or after is None or before.brief != after.brief:
        return EMPTY
    old, new = before.mean(metric), after.mean(metric)
    if old is None or new is None:
        return EMPTY
    partial = PARTIAL if old.partial or new.partial else ""
    return f"{100.0 * (new.value / old.value - 1.0):+.1f} %{partial}".replace("-", "−")


def _works(half: Standing | None, full: Standing | None) -> str:
    """What stands behind both, once where it is the same."""
    coarse, fine = (one.work if one else EMPTY for one in (half, full))
    return fine if coarse == fine else f"bf16 {coarse}; tf32 {fine}"


def collapse(known: Mapping[str, Standing]) -> tuple[list[Block], Aim]:
    """Whether any seed of U₀ died to a constant."""
    text = f"none of {WANTED_SEEDS} seeds of U₀ dies to a constant within 5 epochs"
    standing = known.get("collapse/u0")
    spreads = standing.values(SPREAD) if standing else []
    if standing is None or not spreads:
        return [Text("**Runs that die:** not measured yet.")], Aim(text, EMPTY, None)
    dead = sum(spread < LEAST_SPREAD for spread in spreads)
    found = f"{dead} of {len(spreads)} died; least spread {min(spreads):.2f} of the targets'"
    enough = len(spreads) >= WANTED_SEEDS
    said = Text(f"**Runs that die:** {found} ({standing.work}).")
    met = False if dead else (True if enough else None)
    return [said], Aim(text, found, met, standing.partial)
