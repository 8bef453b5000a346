"""Tables of Q4: spectral filters."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import pandas as pd

from ..q4 import BEST, MEDIAN, NETWORKS, WORST
from ..record import CellRecord
from .cited import cited
from .frame import Results
from .numbers import EMPTY, TableEntry, bold, entry, r2, whole

FILTERS = ("low", "high", "band")
LABELS = {
    "G2N2": "G²N²",
    "G2N2-chebyshev": "G²N², Chebyshev start",
    "G2N2-paper": "G²N², the paper's equations",
    "G2N2-slow": "G²N², a fifth of the rate",
    "G2N2-solved": "G²N², read-out solved first",
    "G2N2-released": "G²N², as in the released script",
    "PPGN-alike": "PPGN, blocks of G²N²",
}
_LAPLACIAN, _ITSELF = "polynomial of the normalised Laplacian", "test R² fitted on the test image"
CEILINGS = {
    "the image itself, scaled": "image itself, test R²",
    "polynomial of A, degree 30": "polynomial of A, test R²",
    "polynomial of A, on the test image itself": f"polynomial of A, {_ITSELF}",
    f"{_LAPLACIAN}, degree 30": f"{_LAPLACIAN}, test R²",
    f"{_LAPLACIAN}, on the test image itself": f"{_LAPLACIAN}, {_ITSELF}",
    "polynomial of D − A, degree 30": "polynomial of D − A, test R²",
    "polynomial of D − A, on the test image itself": f"polynomial of D − A, {_ITSELF}",
    "the true filter, border pixels repeated": "true filter with the border repeated, test R²",
}
SHORT = (
    ("G2N2-chebyshev", 6),
    ("G2N2-slow", 5),
    ("G2N2-released", 5),
    ("G2N2", 3),
    ("ChebNet", 3),
    ("GNNML3", 3),
    ("PPGN", 3),
)
Place = tuple[str, int]
"""A network and its number of layers."""


def places() -> list[Place]:
    """All networks: G²N² first, then in the order they are run; by depth."""
    names = dict.fromkeys(n.name for n in NETWORKS)
    ordered = sorted(names, key=lambda name: "G2N2" not in name)
    depths = {name: sorted(n.layers for n in NETWORKS if n.name == name) for name in ordered}
    return [(name, depth) for name in ordered for depth in depths[name]]


def cell(name: str, place: Place) -> str:
    return f"{name}/{place[0]}/layers-{place[1]}"


def label(network: str) -> str:
    return LABELS.get(network, network)


def score(results: Results, name: str, place: Place) -> float | None:
    """Median test R² of a network on a filter."""
    value = results.value("q4", cell(name, place), MEDIAN)
    return value.mean if value else None


def score_entry(results: Results, name: str, place: Place) -> TableEntry:
    """The median, and in brackets the worst and the best run."""
    ends = [results.value("q4", cell(name, place), metric) for metric in (WORST, BEST)]
    value = score(results, name, place)
    if value is None:
        return TableEntry(EMPTY)
    return TableEntry(f"{r2(value)} ({'–'.join(r2(end.mean) for end in ends if end)})", value)


def q4(results: Results, chosen: Iterable[Place] | None = None) -> pd.DataFrame:
    """Networks beside the published rows; all of them, or those chosen."""
    table = cited("filters")
    rows: list[tuple[str, str, list[TableEntry], tuple[str, ...]]] = []
    for name, cells in table.rows.items():
        published = [TableEntry(cells[f].text, cells[f].value) for f in FILTERS]
        rows.append((f"{name}, cited", "3" if name == "G²N²" else "", published, ("", "", "10")))
    for place in places() if chosen is None else chosen:
        entries = [score_entry(results, name, place) for name in FILTERS]
        records = [results.first("q4", cell(name, place)) for name in FILTERS]
        sizes = [entry(results.value("q4", r.cell, "parameters"), whole).text for r in records if r]
        behind = (_best_steps(records), next(iter(sizes), EMPTY), _runs(records))
        rows.append((label(place[0]), str(place[1]), entries, behind))
    columns = [bold(column, max) for column in zip(*(row[2] for row in rows), strict=True)]
    lines = [
        (name, layers, *texts, *behind)
        for (name, layers, _, behind), *texts in zip(rows, *columns, strict=True)
    ]
    scores = [f"{name}-pass R²" for name in FILTERS]
    tail = ["best step, low / high / band", "parameters", "runs of each filter"]
    frame = pd.DataFrame(lines, columns=["network", "layers", *scores, *tail])
    return frame if chosen is None else frame[["network", "layers", *scores]]


def _best_steps(records: list[CellRecord | None]) -> str:
    """Median best step of each filter's runs, `+` if it is the last one: `120 / 400+ / 0`."""
    texts = []
    for record in records:
        if record is None:
            texts.append(EMPTY)
            continue
        middle = round(median(run["best_step"] for run in record.detail["runs"]))
        texts.append(f"{middle:,}" + "+" * (middle == record.config["steps"]))
    return " / ".join(texts)


def _runs(records: list[CellRecord | None]) -> str:
    """Runs, steps and rate: `10; at most 400 steps at rate 0.005`."""
    done = [str(record.done) if record else EMPTY for record in records]
    configs = [record.config for record in records if record]
    if not configs:
        return EMPTY
    config = configs[0]
    counts = done[0] if len(set(done)) == 1 else " / ".join(done)
    return f"{counts}; at most {config['steps']:,} steps at rate {config['rate']}"


def q4_ceilings(results: Results) -> pd.DataFrame:
    """Linear filters, fitted on the training image or on the test image itself."""
    rows = [
        (
            said,
            *(entry(results.value("q4", "ceilings", f"{f}: {metric}"), r2).text for f in FILTERS),
        )
        for said, metric in CEILINGS.items()
    ]
    return pd.DataFrame(rows, columns=["linear filter", *(f"{f}-pass R²" for f in FILTERS)])


def q4_ppgn(results: Results) -> pd.DataFrame:
    """PPGN: published and ours."""
    rows = [("cited", *(cited("filters").rows["PPGN"][name].text for name in FILTERS))]
    for said, network in (("ours", "PPGN"), ("ours, blocks of G²N²", "PPGN-alike")):
        rows.append((said, *(score_entry(results, name, (network, 3)).text for name in FILTERS)))
    return pd.DataFrame(rows, columns=["PPGN", *(f"{name}-pass R²" for name in FILTERS)])
