"""Tables of Q4: spectral filters."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import pandas as pd

from ..q4 import BEST, MEDIAN, NETWORKS, WORST
from ..record import CellRecord
from .cited import cited
from .frame import Results
from .numbers import EMPTY, TableEntry, r2, table, whole

FILTERS = ("low", "high", "band")
SCORES = tuple(f"{name}-pass R²" for name in FILTERS)
LABELS = {
    "G2N2": "G²N²",
    "G2N2-chebyshev": "G²N², Chebyshev start",
    "G2N2-paper": "G²N², the paper's equations",
    "G2N2-slow": "G²N², a fifth of the rate",
    "G2N2-solved": "G²N², read-out solved first",
    "G2N2-projected": "G²N², read-out solved at every step",
    "G2N2-released": "G²N², as in the released script",
    "PPGN-alike": "PPGN, blocks of G²N²",
}
Network = tuple[str, int]
"""A network and its number of layers."""


def networks_by_depth() -> list[Network]:
    """All networks: G²N² first, then in the order they are run; by depth."""
    names = list(dict.fromkeys(n.name for n in NETWORKS))
    order = {name: ("G2N2" not in name, names.index(name)) for name in names}
    return sorted(((n.name, n.layers) for n in NETWORKS), key=lambda r: (order[r[0]], r[1]))


def cell(name: str, network: Network) -> str:
    return f"{name}/{network[0]}/layers-{network[1]}"


def label(name: str) -> str:
    return LABELS.get(name, name)


def score(results: Results, name: str, network: Network) -> float | None:
    """Median test R² of a network on a filter."""
    value = results.value("q4", cell(name, network), MEDIAN)
    return value.mean if value else None


def score_entry(results: Results, name: str, network: Network) -> TableEntry:
    """The median, and in brackets the worst and the best run."""
    value = score(results, name, network)
    if value is None:
        return TableEntry(EMPTY)
    ends = [results.entry("q4", cell(name, network), metric, r2).text for metric in (WORST, BEST)]
    return TableEntry(f"{r2(value)} ({'–'.join(ends)})", value)


def q4(results: Results, chosen: Iterable[Network] | None = None) -> pd.DataFrame:
    """Networks beside the published rows; all that were run, or those chosen."""
    rows: list[list[object]] = []
    for name, numbers in cited("filters").rows.items():
        published = [TableEntry(numbers[f].text, numbers[f].value) for f in FILTERS]
        rows.append([f"{name}, cited", "3" if name == "G²N²" else "", *published, "", "", "10"])
    for network in networks_by_depth() if chosen is None else chosen:
        entries = [score_entry(results, name, network) for name in FILTERS]
        records = [results.first("q4", cell(name, network)) for name in FILTERS]
        if not any(records):
            continue
        sizes = [results.entry("q4", r.cell, "parameters", whole).text for r in records if r]
        behind = _best_steps(records), next(iter(sizes), EMPTY), _runs(records)
        rows.append([label(network[0]), str(network[1]), *entries, *behind])
    tail = ("best step, low / high / band", "parameters", "runs of each filter")
    frame = table(("network", "layers", *SCORES, *tail), rows, best_in_column=max)
    return frame if chosen is None else frame.drop(columns=list(tail))


def _best_steps(records: list[CellRecord | None]) -> str:
    """Median best step of each filter's runs, `+` if it is the last one: `120 / 400+ / 0`."""
    texts = []
    for record in records:
        middle = round(median(run["best_step"] for run in record.detail["runs"])) if record else 0
        last = record is not None and middle == record.config["steps"]
        texts.append(f"{middle:,}" + "+" * last if record else EMPTY)
    return " / ".join(texts)


def _runs(records: list[CellRecord | None]) -> str:
    """Runs, steps and rate: `10; at most 400 steps at rate 0.005`."""
    configs = [record.config for record in records if record]
    if not configs:
        return EMPTY
    done = [str(record.done) if record else EMPTY for record in records]
    counts = done[0] if len(set(done)) == 1 else " / ".join(done)
    return f"{counts}; at most {configs[0]['steps']:,} steps at rate {configs[0]['rate']}"


def q4_ppgn(results: Results) -> pd.DataFrame:
    """PPGN: published and ours."""
    published = cited("filters").rows["PPGN"]
    rows: list[list[object]] = [["cited", *(published[f].text for f in FILTERS)]]
    for name, ppgn in (("ours", "PPGN"), ("ours, blocks of G²N²", "PPGN-alike")):
        rows.append([name, *(score_entry(results, f, (ppgn, 3)) for f in FILTERS)])
    return table(("PPGN", *SCORES), rows)
