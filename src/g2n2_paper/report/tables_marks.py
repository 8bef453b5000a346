"""Tables of networks with marks: BREC, layers needed, counts, classes."""

from __future__ import annotations

import pandas as pd

from ..beyond import BEYOND_COUNTS
from ..brec import BEYOND, TRAINED
from ..contenders import BOUND, CONTENDERS, MARKED, Contender
from ..marked_layers import LAYERS, SEPARATED, STARTS
from ..power import ACCURACY, NORMALISED
from .cited import cited
from .frame import Results
from .numbers import Notes, TableEntry, fixed, table, whole
from .tables_power import CATEGORIES, label

CITED = ("PPGN", "3-WL, the test", "I²-GNN", "N²-GNN")


def brec(results: Results) -> pd.DataFrame:
    """Pairs of BREC told apart after training by networks with marks, beside others."""
    published, notes = cited("brec"), Notes()
    rows: list[list[object]] = [
        [f"{name}, cited", *(notes.entry(n) for n in published.rows[name].values()), "", "", ""]
        for name in CITED
    ]
    for contender in (CONTENDERS["G2N2-8"], *MARKED.values()):
        cell = f"brec/{contender.name}"
        record = results.first("power", cell)
        if record is None:
            continue
        counts = [
            sum(v.mean for p in parts if (v := results.value("power", cell, f"{TRAINED}, {p}")))
            for parts in CATEGORIES.values()
        ]
        rest = [results.entry("power", cell, m, whole) for m in (TRAINED, BEYOND, BOUND)]
        separated, beyond, bound = rest
        entries = [*(TableEntry(whole(n), n) for n in counts), separated]
        rows.append([f"{named(contender)}, ours", *entries, whole(record.done), beyond, bound])
    headers = ["network", *published.columns, "judged", "beyond its bound", "exact bound"]
    return table(headers, rows)


def layers(results: Results) -> pd.DataFrame:
    """Pairs of BREC with at most 40 nodes that words of each depth tell apart, exactly."""
    depths = range(2, LAYERS + 1)
    texts = {
        "plain": "read out by 1ᵀV′",
        "plain, network": "the network's read-out",
        "seeded, network": "and Av, diag(v), diag(Av) given",
    }
    rows = [
        [
            texts[start],
            *(
                results.entry(
                    "power", f"layers/{start.replace(', ', '/')}", SEPARATED.format(depth), whole
                )
                for depth in depths
            ),
        ]
        for start in STARTS
    ]
    return table(["layers", *map(str, depths)], rows)


def counting(results: Results) -> pd.DataFrame:
    """Test MAE of each count over its deviation, without marks and with one."""
    contenders = (CONTENDERS["G2N2-3"], MARKED["G2N2Σ-3"])
    cells = [f"counting/beyond/{contender.name}" for contender in contenders]
    rows: list[list[object]] = [
        [
            count.replace("_", " "),
            *(results.entry("power", cell, NORMALISED.format(count)) for cell in cells),
        ]
        for count in BEYOND_COUNTS
    ]
    sizes = [results.entry("power", cell, "parameters", whole).text for cell in cells]
    rows.append(["parameters", *sizes])
    return table(["count", *map(named, contenders)], rows, best_in_row=min)


def classes(results: Results) -> pd.DataFrame:
    """Accuracy on sets of classes after training."""
    rows: list[list[object]] = []
    for name in ("csl", "exp", "sr25"):
        cell = f"{name}/G2N2Σ-3"
        accuracy = results.entry("power", cell, ACCURACY, fixed(1))
        rows.append([name.upper(), accuracy, results.work("power", cell)])
    return table(["set", "accuracy (%)", "seeds × folds"], rows)


def named(contender: Contender) -> str:
    """`r-G_L3Σ, 5 layers`, or as without marks."""
    if contender.name in MARKED:
        return f"{contender.network}, {contender.layers} layers"
    return label(contender)
