"""Tables of Q1 and Q2: QM9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from g2n2.data.qm9 import QM9_TARGETS

from ..q1 import GRAMMARS
from ..q2 import COMPARED, JOINT, PRECISIONS, R2_EXTENT, R2_LONG, SECONDS, Epochs, single
from ..runs import mae_key
from .cited import cited
from .frame import Results
from .numbers import EMPTY, Notes, TableEntry, Value, bold, entry, fixed, minus, table, whole

TARGETS = {target.name: target for target in QM9_TARGETS}


def symbol(target: str) -> str:
    """A target and its unit, as in the paper."""
    return f"{TARGETS[target].symbol} ({TARGETS[target].unit})"


def mae(results: Results, cell: str, target: str) -> Value | None:
    """Test MAE of a target in a cell of Q2."""
    return results.value("q2", cell, mae_key(target, TARGETS[target].unit))


def q1(results: Results) -> pd.DataFrame:
    """Error and exact power of every grammar."""
    errors = [results.entry("q1", f"train/{g}", "test MAE r2 (bohr²)") for g in GRAMMARS]
    sizes = [results.entry("q1", f"train/{g}", "parameters", whole) for g in GRAMMARS]
    columns = {
        "grammar": list(GRAMMARS.values()),
        "parameters": [size.printed for size in sizes],
        "test MAE of R² (a₀²)": bold(errors, min),
        "seeds × work": [results.work("q1", f"train/{g}") for g in GRAMMARS],
    }
    for readout in ("own", "network"):
        pairs = [_pairs(results, f"exact/{g}/{readout}") for g in GRAMMARS]
        columns[f"BREC, {readout} read-out: 3 layers / any"] = pairs
    return pd.DataFrame(columns)


def q1_short(results: Results) -> pd.DataFrame:
    """The same with the network's read-out only."""
    frame = q1(results).drop(columns=["seeds × work", "BREC, own read-out: 3 layers / any"])
    return frame.rename(columns=lambda name: name.replace(", network read-out", ""))


def _pairs(results: Results, cell: str) -> str:
    record = results.first("q1", cell)
    if record is None:
        return EMPTY
    metrics, layers = record.metrics, len(record.detail["by_layer"]) - 1
    limit = "" if metrics["proved"] else f" up to {layers} layers,"
    counts = f"{metrics['pairs separated, 3 layers']:.0f} / {metrics['pairs separated']:.0f}"
    return f"{counts}{limit} of {metrics['pairs']:.0f}"


def q2_short(results: Results) -> pd.DataFrame:
    """G²N² beside the paper's, alone and jointly."""
    notes, rows = Notes(), []
    for target in TARGETS:
        texts = []
        for name, cell in (("qm9-single", single(target).name), ("qm9-joint", JOINT.name)):
            published = notes.entry(cited(name).rows[target]["G²N²"])
            texts += bold([published, entry(mae(results, cell, target))], min)
        rows.append((symbol(target), *texts))
    headers = ("alone, paper", "alone, ours", "all twelve, paper", "all twelve, ours")
    return table(("target", *headers), rows)


def q2_single(results: Results) -> pd.DataFrame:
    """Every target alone, beside all published columns."""
    published, notes = cited("qm9-single"), Notes()
    lines = [(target, single(target).name, "") for target in TARGETS]
    after = list(TARGETS).index("r2") + 1
    lines[after:after] = [
        ("r2", R2_LONG.name, f", {Epochs().long} epochs"),
        ("r2", R2_EXTENT.name, ", less its extent"),
    ]
    rows: list[list[object]] = []
    for target, cell, change in lines:
        theirs = [notes.entry(number) for number in published.rows[target].values()]
        ours = entry(mae(results, cell, target))
        rows.append([symbol(target) + change, *theirs, ours, results.work("q2", cell)])
    size = results.entry("q2", single("mu").name, "parameters", whole).text
    rows.append(["parameters", *[""] * len(published.columns), size, ""])
    headers = (*(f"{column}, cited" for column in published.columns), "G²N², ours", "seeds × work")
    return table(("target", *headers), rows, best_in_row=min)


def changes(target: str) -> dict[str, str]:
    """Cells of one target with another network, track or recipe, by header."""
    plain = single(target)
    ppgn = replace(plain, network="PPGN").name
    return {
        "PPGN": ppgn,
        "PPGN, equal time": f"{ppgn}/equal-time",
        "G²N², bonds": replace(plain, track="bonds").name,
        "G²N², paper recipe": replace(plain, recipe="paper").name,
    }


def q2_variants(results: Results) -> pd.DataFrame:
    """R² and U₀ with another network, track or recipe."""
    rows: list[list[object]] = []
    for target in COMPARED:
        plain = entry(mae(results, single(target).name, target))
        others = [_with_work(results, cell, target) for cell in changes(target).values()]
        rows.append([symbol(target), plain, *others])
    columns = changes("r2")
    rows.append(["parameters", *results.sizes("q2", [single("r2").name, *columns.values()])])
    return table(["target", "G²N²", *columns], rows, best_in_row=min)


def _with_work(results: Results, cell: str, target: str) -> TableEntry:
    """A number and, in brackets, seeds × epochs."""
    error = entry(mae(results, cell, target))
    return TableEntry(f"{error.text} ({results.work('q2', cell, unit=False)})", error.value)


def q2_joint(results: Results, columns: Mapping[str, str], published: str = "") -> pd.DataFrame:
    """All targets at once: header to cell, beside the columns of a published table."""
    theirs, notes = cited(published) if published else None, Notes()
    headers = theirs.columns if theirs else ()
    rows: list[list[object]] = []
    for target in TARGETS:
        numbers = [notes.entry(theirs.rows[target][c]) for c in headers] if theirs else []
        ours = [entry(mae(results, cell, target)) for cell in columns.values()]
        rows.append([symbol(target), *numbers, *ours])
    empty = [""] * len(headers)
    rows.append(["parameters", *empty, *results.sizes("q2", columns.values())])
    rows.append(["seeds × work", *empty, *(results.work("q2", c) for c in columns.values())])
    names = [*(f"{column}, cited" for column in headers), *columns]
    return table(["target", *names], rows, best_in_row=min)


def q2_extent(results: Results) -> pd.DataFrame:
    """Change of all errors if the extent is taken off R² first, in percent."""
    columns = {"target": [target.symbol for target in TARGETS.values()]}
    for width in (32, 64):
        plain = replace(JOINT, width=width)
        less = replace(plain, extent=True).name
        columns[f"width {width}"] = [
            change(mae(results, plain.name, t), mae(results, less, t)) for t in TARGETS
        ]
    return pd.DataFrame(columns)


def change(before: Value | None, after: Value | None) -> str:
    """By how many percent a mean is larger."""
    if before is None or after is None:
        return EMPTY
    return minus(f"{100.0 * (after.mean / before.mean - 1.0):+.1f} %")


def q2_sums(results: Results) -> pd.DataFrame:
    """Errors of the fitted sums alone."""
    rows = {symbol(name): mae_key(name, target.unit) for name, target in TARGETS.items()}
    cells = {"sums of elements": "sums/elements", "with the extent": "sums/extent"}
    best, fitted = None, "numbers fitted"
    return results.grid("q2", "test MAE", rows, cells, "{column}", "{row}", None, best, fitted)


def q2_sums_cited(results: Results) -> pd.DataFrame:
    """The same beside published errors, where the two are close."""
    targets = ("r2", "u0", "u", "h", "g")
    frame = q2_sums(results).set_index("test MAE").loc[[symbol(t) for t in targets]]
    for network, kind in (("PPGN", "joint"), ("G²N²", "joint"), ("PPGN", "single")):
        header = f"{network}, {'joint' if kind == 'joint' else 'alone'}, cited"
        frame[header] = [cited(f"qm9-{kind}").rows[t][network].text for t in targets]
    return frame.reset_index()


def q2_speed(results: Results, cells: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Seconds per epoch of both networks in one run: label to cell and published row."""
    published = cited("qm9-time").rows
    metrics = (SECONDS.format("PPGN"), SECONDS.format("G2N2"), "PPGN / G2N2")
    rows: list[list[object]] = []
    for label, (cell, row) in cells.items():
        theirs = [published[row][c].text if row else "" for c in ("PPGN", "G²N²")]
        ours = [results.entry("q2", cell, metric, fixed(2)) for metric in metrics]
        record = results.first("q2", cell)
        rows.append([label, *theirs, *ours, record.provenance["device"] if record else EMPTY])
    headers = ("PPGN, cited", "G²N², cited", "PPGN, ours", "G²N², ours", "PPGN / G²N²", "machine")
    return table(("seconds per epoch", *headers), rows)


def q2_precision(results: Results) -> pd.DataFrame:
    """The same runs in bf16 and in tf32."""
    rows: list[list[object]] = []
    for target in COMPARED:
        cells = [f"precision/{target}/{precision}" for precision in PRECISIONS]
        half, full = (mae(results, cell, target) for cell in cells)
        texts = entry(half), entry(full), change(full, half)
        rows.append([TARGETS[target].symbol, *texts, results.work("q2", cells[0])])
    return table(["target", *PRECISIONS, "bf16 against tf32", "work"], rows)


def q2_compared(results: Results, plain: str, other: str, changed: str) -> pd.DataFrame:
    """R² and U₀ of G²N² under one of `changes`, with headers for both columns."""
    rows = [
        [
            symbol(target),
            _with_work(results, single(target).name, target),
            _with_work(results, changes(target)[changed], target),
        ]
        for target in COMPARED
    ]
    return table(("test MAE of G²N², ours", plain, other), rows)
