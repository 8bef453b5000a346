"""Tables and facts of the molecule sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from g2n2.errors import DataError

from ..molecule_sets import SETS, MoleculeSet
from ..molecules import CONTENDERS, CPU, GPU, SEEDS
from .cited import cited
from .frame import Results, duration
from .numbers import Best, TableEntry, Value, bold, entry, fixed

LABELS = {
    "forest-morgan": "forest, Morgan",
    "forest-descriptors": "forest, descriptors",
    "Chemprop": "Chemprop",
    "GINE": "GINE",
    "G2N2": "g2n2 defaults",
}
OURS = "G2N2"


def problems() -> Iterator[tuple[MoleculeSet, str]]:
    """Every set with each of its splits."""
    return ((molecules, how) for molecules in SETS for how in molecules.splits)


def score(results: Results, molecules: MoleculeSet, how: str, contender: str) -> Value | None:
    cell = f"{molecules.name}/{how}/{contender}"
    return results.value("molecules", cell, f"test {molecules.metric}")


def better(molecules: MoleculeSet) -> Best:
    return min if molecules.metric == "RMSE" else max


def scores(results: Results) -> pd.DataFrame:
    """Score and time of each contender: CPU time, or wall time on a GPU."""
    check_same_molecules(results)
    rows = []
    for molecules, how in problems():
        entries = [_entry(results, molecules, how, contender) for contender in CONTENDERS]
        label = f"{molecules.name}, {how} ({molecules.metric})"
        rows.append([label, *bold(entries, better(molecules))])
    return pd.DataFrame(rows, columns=["test score (time)", *(LABELS[c] for c in CONTENDERS)])


def _entry(results: Results, molecules: MoleculeSet, how: str, contender: str) -> TableEntry:
    value = score(results, molecules, how, contender)
    shown, cell = entry(value, fixed(3)), f"{molecules.name}/{how}/{contender}"
    if value is None:
        return shown
    times = ((results.value("molecules", cell, label), label) for label in (CPU, GPU))
    remarks = [
        duration(time.mean) + (" GPU" if label == GPU else "") for time, label in times if time
    ]
    if value.seeds < len(SEEDS):
        remarks.append(f"{value.seeds} seed" + "s" * (value.seeds > 1))
    return TableEntry(f"{shown.text} ({', '.join(remarks)})", shown.value)


def check_same_molecules(results: Results) -> None:
    """Refuse records of one set, split and seed whose file or split differ."""
    digests: dict[tuple[str, str, int], tuple[str, str]] = {}
    for record in (r for r in results.records if r.question == "molecules"):
        name, how, _ = record.cell.split("/")
        digest = record.data[name], record.data["split"]
        if digests.setdefault((name, how, record.seed), digest) != digest:
            raise DataError(
                f"molecules {record.cell}, seed {record.seed}: its file or split is not that of "
                "the other contenders; delete its record and run it again"
            )


def facts(results: Results) -> dict[str, Any]:
    """The best of the others where several were run, and where the library's defaults reach it.

    Numbers are compared as printed, on molhiv with the published ones too. `absent` names the
    contenders that were not run, by the splits where they are missing and ours is not.
    """
    best: dict[str, str] = {}
    reached: list[str] = []
    behind: list[str] = []
    absent: dict[str, list[str]] = {}
    listed = cited("molhiv").rows
    for molecules, how in problems():
        values = {c: score(results, molecules, how, c) for c in CONTENDERS}
        others = {LABELS[c]: round(v.mean, 3) for c, v in values.items() if v and c != OURS}
        if molecules.name == "molhiv":
            others |= {f"{name} (cited)": row["ROC-AUC"].bar for name, row in listed.items()}
        label = f"{molecules.name} ({how})"
        if not others:
            continue
        top = better(molecules)(others.values())
        if len(others) > 1:
            best[label] = next(name for name, value in others.items() if value == top)
        if ours := values[OURS]:
            mean = round(ours.mean, 3)
            (reached if better(molecules)((mean, top)) == mean else behind).append(label)
            for contender in (LABELS[c] for c, value in values.items() if value is None):
                absent.setdefault(contender, []).append(label)
    published = {name: row["ROC-AUC"].text for name, row in listed.items()}
    top_of_list = cited("molhiv-best").rows["forests and GNNs"]["ROC-AUC"].text
    labels = {m.name: {f"{m.name} ({how})" for how in m.splits} for m in SETS}
    return {
        "best": best,
        "sets": [name for name, splits in labels.items() if splits <= set(reached)],
        "reached": reached,
        "behind": behind,
        "absent": absent,
        "molhiv": {**published, "first": top_of_list},
    }
