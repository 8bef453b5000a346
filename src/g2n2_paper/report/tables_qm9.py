"""Tables of Q1 and Q2: QM9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from g2n2.data.qm9.targets import QM9_TARGETS

from ..q1 import GRAMMARS
from ..q2 import (
    COMPARED,
    JOINT,
    JOINT_EXTENT,
    PRECISIONS,
    R2_EXTENT,
    R2_LONG,
    WIDE_EXTENT,
    Epochs,
    Qm9Run,
    seconds_key,
    single,
)
from ..runs import mae_key
from .cited import cited
from .frame import Results, Value
from .numbers import EMPTY, Notes, TableEntry, bold, entry, fixed, minus, whole

TARGETS = {target.name: target for target in QM9_TARGETS}
SUMS = {"sums of elements": "sums/elements", "with the extent": "sums/extent"}
SPEEDS = {
    "each target alone, width 64, with distances": ("speed/single/distance", "single"),
    "the same in bf16, as all targets but R² and ZPVE": ("speed/single-bf16/distance", ""),
    "all twelve, width 32, with distances": ("speed/joint-width32/distance", "joint"),
    "all twelve, width 32, bonds only": ("speed/joint-width32/bonds", ""),
}
PPGN = replace(JOINT, network="PPGN")
JOINT_COLUMNS = {
    32: {
        "G²N²": JOINT.name,
        "G²N², less the extent": JOINT_EXTENT.name,
        "PPGN, blocks of G²N²": replace(JOINT, network="PPGN-alike").name,
        "PPGN": PPGN.name,
        "PPGN, equal time": f"{PPGN.name}/equal-time",
    },
    64: {
        "G²N²": replace(JOINT, width=64).name,
        "G²N², less the extent": WIDE_EXTENT.name,
        "PPGN": replace(PPGN, width=64).name,
    },
}


def symbol(target: str) -> str:
    """A target and its unit, as in the paper."""
    return f"{TARGETS[target].symbol} ({TARGETS[target].unit})"


def mae(results: Results, cell: str, target: str) -> Value | None:
    """Test MAE of a target in a cell of Q2."""
    return results.value("q2", cell, mae_key(target, TARGETS[target].unit))


def q1(results: Results) -> pd.DataFrame:
    """Error and exact power of every grammar."""
    errors = [results.value("q1", f"train/{g}", "test MAE r2 (bohr²)") for g in GRAMMARS]
    sizes = [results.value("q1", f"train/{g}", "parameters") for g in GRAMMARS]
    return pd.DataFrame(
        {
            "grammar": list(GRAMMARS.values()),
            "parameters": [entry(size, whole).printed for size in sizes],
            "test MAE of R² (a₀²)": bold([entry(error) for error in errors], min),
            "seeds × work": [results.work("q1", f"train/{g}") for g in GRAMMARS],
            "BREC, own read-out: 3 layers / any": [_pairs(results, g, "own") for g in GRAMMARS],
            "BREC, network read-out: 3 layers / any": [
                _pairs(results, g, "network") for g in GRAMMARS
            ],
        }
    )


def q1_short(results: Results) -> pd.DataFrame:
    """The same with the network's read-out only."""
    table = q1(results).drop(columns=["seeds × work", "BREC, own read-out: 3 layers / any"])
    return table.rename(columns=lambda name: name.replace(", network read-out", ""))


def _pairs(results: Results, grammar: str, readout: str) -> str:
    record = results.first("q1", f"exact/{grammar}/{readout}")
    if record is None:
        return EMPTY
    found = record.metrics
    layers = len(record.detail["by_layer"]) - 1
    limit = "" if found["proved"] else f" up to {layers} layers,"
    counts = f"{found['pairs separated, 3 layers']:.0f} / {found['pairs separated']:.0f}"
    return f"{counts}{limit} of {found['pairs']:.0f}"


def q2_short(results: Results) -> pd.DataFrame:
    """G²N² beside the paper's, alone and jointly."""
    alone, joint, notes = cited("qm9-single").rows, cited("qm9-joint").rows, Notes()
    rows = []
    for target in TARGETS:
        pairs = [
            [notes.entry(alone[target]["G²N²"]), entry(mae(results, single(target).name, target))],
            [notes.entry(joint[target]["G²N²"]), entry(mae(results, JOINT.name, target))],
        ]
        rows.append((symbol(target), *(text for pair in pairs for text in bold(pair, min))))
    headers = ("alone, paper", "alone, ours", "all twelve, paper", "all twelve, ours")
    return pd.DataFrame(rows, columns=["target", *headers])


def q2_single(results: Results) -> pd.DataFrame:
    """Every target alone, beside all published columns."""
    table, notes = cited("qm9-single"), Notes()
    lines = [(target, single(target).name, "") for target in TARGETS]
    after = list(TARGETS).index("r2") + 1
    lines[after:after] = [
        ("r2", R2_LONG.name, f", {Epochs().long} epochs"),
        ("r2", R2_EXTENT.name, ", less its extent"),
    ]
    rows = []
    for target, cell, tail in lines:
        published = [notes.entry(table.rows[target][column]) for column in table.columns]
        texts = bold([*published, entry(mae(results, cell, target))], min)
        rows.append((symbol(target) + tail, *texts, results.work("q2", cell)))
    size = entry(results.value("q2", single("mu").name, "parameters"), whole).text
    rows.append(("parameters", *[""] * len(table.columns), size, ""))
    headers = (*(f"{column}, cited" for column in table.columns), "G²N², ours", "seeds × work")
    return pd.DataFrame(rows, columns=["target", *headers])


def q2_variants(results: Results) -> pd.DataFrame:
    """R² and U₀ with another network, track or recipe."""
    rows, columns = [], _changes("r2")
    for target in COMPARED:
        cells = _changes(target).values()
        entries = [_with_work(results, cell, target) for cell in cells]
        plain = entry(mae(results, single(target).name, target))
        rows.append((symbol(target), *bold([plain, *entries], min)))
    names = [single("r2").name, *columns.values()]
    rows.append(("parameters", *_sizes(results, names)))
    return pd.DataFrame(rows, columns=["target", "G²N²", *columns])


def _changes(target: str) -> dict[str, str]:
    plain = single(target)
    ppgn = replace(plain, network="PPGN").name
    return {
        "PPGN": ppgn,
        "PPGN, equal time": f"{ppgn}/equal-time",
        "G²N², bonds": replace(plain, track="bonds").name,
        "G²N², paper recipe": replace(plain, recipe="paper").name,
    }


def _with_work(results: Results, cell: str, target: str) -> TableEntry:
    """A number and, in brackets, seeds × epochs."""
    found = entry(mae(results, cell, target))
    return TableEntry(f"{found.text} ({results.work('q2', cell, unit=False)})", found.value)


def _sizes(results: Results, cells: Iterable[str]) -> list[str]:
    return [entry(results.value("q2", cell, "parameters"), whole).printed for cell in cells]


def q2_joint(results: Results, width: int) -> pd.DataFrame:
    """All targets at once with distances, beside the published columns."""
    table, notes, columns = cited("qm9-joint"), Notes(), JOINT_COLUMNS[width]
    published = {
        target: [notes.entry(table.rows[target][column]) for column in table.columns]
        for target in TARGETS
    }
    headers = [f"{column}, cited" for column in table.columns]
    return _joint(results, columns, published, headers)


def q2_bonds(results: Results) -> pd.DataFrame:
    """All targets at once, bonds only."""
    columns: dict[str, str] = {}
    for width in (32, 64):
        plain = Qm9Run(None, width, "bonds", "G2N2")
        ppgn = replace(plain, network="PPGN").name
        columns |= {f"G²N², width {width}": plain.name, f"PPGN, width {width}": ppgn}
        columns |= {"PPGN, width 32, equal time": f"{ppgn}/equal-time"} if width == 32 else {}
    return _joint(results, columns, {target: [] for target in TARGETS}, [])


def _joint(
    results: Results,
    columns: Mapping[str, str],
    published: Mapping[str, list[TableEntry]],
    headers: Sequence[str],
) -> pd.DataFrame:
    rows = []
    for target, known in published.items():
        ours = [entry(mae(results, cell, target)) for cell in columns.values()]
        rows.append((symbol(target), *bold([*known, *ours], min)))
    empty = [""] * len(headers)
    rows.append(("parameters", *empty, *_sizes(results, columns.values())))
    rows.append(("seeds × work", *empty, *(results.work("q2", c) for c in columns.values())))
    return pd.DataFrame(rows, columns=["target", *headers, *columns])


def q2_extent(results: Results) -> pd.DataFrame:
    """Change of all errors if the extent is taken off R² first, in percent."""
    widths = {
        "width 32": (JOINT, JOINT_EXTENT),
        "width 64": (replace(JOINT, width=64), WIDE_EXTENT),
    }
    return pd.DataFrame(
        {
            "target": [TARGETS[target].symbol for target in TARGETS],
            **{
                width: [
                    change(mae(results, plain.name, t), mae(results, less.name, t)) for t in TARGETS
                ]
                for width, (plain, less) in widths.items()
            },
        }
    )


def change(before: Value | None, after: Value | None) -> str:
    """By how many percent a mean is larger."""
    if before is None or after is None:
        return EMPTY
    return minus(f"{100.0 * (after.mean / before.mean - 1.0):+.1f} %")


def q2_sums(results: Results) -> pd.DataFrame:
    """Errors of the fitted sums alone."""
    rows = [
        (symbol(t), *(entry(mae(results, cell, t)).text for cell in SUMS.values())) for t in TARGETS
    ]
    rows.append(("numbers fitted", *_sizes(results, SUMS.values())))
    return pd.DataFrame(rows, columns=["test MAE", *SUMS])


def q2_sums_cited(results: Results) -> pd.DataFrame:
    """The same beside published errors, where the two are close."""
    joint, alone = cited("qm9-joint").rows, cited("qm9-single").rows
    targets = ("r2", "u0", "u", "h", "g")
    table = q2_sums(results).set_index("test MAE").loc[[symbol(t) for t in targets]]
    table["PPGN, joint, cited"] = [joint[t]["PPGN"].text for t in targets]
    table["G²N², joint, cited"] = [joint[t]["G²N²"].text for t in targets]
    table["PPGN, alone, cited"] = [alone[t]["PPGN"].text for t in targets]
    return table.reset_index()


def q2_speed(results: Results) -> pd.DataFrame:
    """Seconds per epoch of both networks, measured in one run."""
    published = cited("qm9-time").rows
    metrics = (seconds_key("PPGN"), seconds_key("G2N2"), "PPGN / G2N2")
    rows = []
    for said, (cell, row) in SPEEDS.items():
        known = [published[row][c].text if row else "" for c in ("PPGN", "G²N²")]
        ours = [entry(results.value("q2", cell, metric), fixed(2)).text for metric in metrics]
        record = results.first("q2", cell)
        rows.append((said, *known, *ours, record.provenance["device"] if record else EMPTY))
    headers = ("PPGN, cited", "G²N², cited", "PPGN, ours", "G²N², ours", "PPGN / G²N²", "machine")
    return pd.DataFrame(rows, columns=["seconds per epoch", *headers])


def q2_precision(results: Results) -> pd.DataFrame:
    """The same runs in bf16 and in tf32."""
    rows = []
    for target in COMPARED:
        cells = [f"precision/{target}/{precision}" for precision in PRECISIONS]
        half, full = (mae(results, cell, target) for cell in cells)
        texts = entry(half).text, entry(full).text, change(full, half)
        rows.append((TARGETS[target].symbol, *texts, results.work("q2", cells[0])))
    return pd.DataFrame(rows, columns=["target", *PRECISIONS, "bf16 against tf32", "work"])


def q2_compared(results: Results, change_of: str) -> pd.DataFrame:
    """R² and U₀ of G²N² under one change: of the track or of the recipe."""
    headers = {
        "track": ("with distances", "bonds only", "G²N², bonds"),
        "recipe": ("recipe modern", "recipe paper", "G²N², paper recipe"),
    }
    plain, other, column = headers[change_of]
    rows = [
        (
            symbol(target),
            _with_work(results, single(target).name, target).text,
            _with_work(results, _changes(target)[column], target).text,
        )
        for target in COMPARED
    ]
    return pd.DataFrame(rows, columns=["test MAE of G²N², ours", plain, other])
