"""Numbers and verdicts that templates put into sentences."""

from __future__ import annotations

from decimal import Decimal
from statistics import fmean
from typing import Any

from ..beyond import BEYOND_COUNTS
from ..brec import BEYOND, TRAINED
from ..contenders import BOUND, CONTENDERS, MARKED
from ..power import NORMALISED
from ..q1 import GRAMMARS
from ..q2 import (
    COLLAPSE_SEEDS,
    JOINT,
    LEAST_SPREAD,
    R2_EXTENT,
    R2_LONG,
    SPREAD,
    epochs_in_equal_time,
    single,
)
from ..q3 import GIN, RELEASED, SETS
from .cited import cited
from .frame import Results
from .numbers import Value, entry, r2, whole
from .tables_filters import FILTERS, label, networks_by_depth, score
from .tables_molecules import facts as molecules
from .tables_power import COUNTED, ON_ZINC, ZINC_ERROR
from .tables_qm9 import TARGETS, mae
from .tables_tu import (
    OTHERS,
    clear_differences,
    differences,
    errica_sets,
    rank_of_ours,
    shortfalls,
    statistic_gaps,
)

PPGN = "joint/width32/distance/PPGN/modern"


def all_facts(results: Results) -> dict[str, Any]:
    """Facts by question, and words for verdicts."""
    questions = {"q1": q1, "q2": q2, "q3": q3, "q4": q4, "power": power, "molecules": molecules}
    facts: dict[str, Any] = {name: facts(results) for name, facts in questions.items()}
    return facts | {"verdict": lambda met: "met" if met else "**missed**"}


def q1(results: Results) -> dict[str, Any]:
    """Errors of the grammars, and which ablations are clearly worse than the reduced grammar.

    Clearly means: by more than both deviations over seeds together.
    """
    metric = "test MAE r2 (bohr²)"
    errors = {g: results.need("q1", f"train/{g}", metric) for g in GRAMMARS}
    reduced, exhaustive = errors["r-G_L3"], errors["G_L3"]
    few, many = (results.need("q1", f"train/{g}", "parameters") for g in ("r-G_L3", "G_L3"))
    ablations = {GRAMMARS[g]: error for g, error in errors.items() if g.startswith("r-G_L3-")}
    return {
        "reduced": entry(reduced).text,
        "exhaustive": entry(exhaustive).text,
        "ratio": f"{many.mean / few.mean:.2f}",
        "comparable": not _clearly_above(reduced, exhaustive),
        "larger": [g for g, error in ablations.items() if error.mean > reduced.mean],
        "unclear": [g for g, error in ablations.items() if not _clearly_above(error, reduced)],
    }


def _clearly_above(value: Value, other: Value) -> bool:
    return value.mean > other.mean + (value.spread or 0.0) + (other.spread or 0.0)


def q2(results: Results) -> dict[str, Any]:
    """On which targets an error is not below the paper's, by the paper's digits."""
    alone = {target: single(target).name for target in TARGETS}
    joint = {"joint": "width32", "joint_extent": "width32", "wide_extent": "width64"}
    facts: dict[str, Any] = {
        "alone": _not_below(results, "qm9-single", {**alone, "r2": R2_LONG.name}),
        "alone_extent": _not_below(results, "qm9-single", {**alone, "r2": R2_EXTENT.name}),
    }
    for name, width in joint.items():
        cell = f"joint/{width}/distance/G2N2/modern" + "/extent" * name.endswith("extent")
        facts[name] = _not_below(results, "qm9-joint", dict.fromkeys(TARGETS, cell))
    results.need("q2", "collapse/u0", SPREAD)
    spreads = [record.metrics[SPREAD] or 0.0 for record in results.of("q2", "collapse/u0")]
    facts["dead"] = sum(spread < LEAST_SPREAD for spread in spreads)
    facts["seeds"], facts["least_spread"] = len(spreads), f"{min(spreads):.2f}"
    facts["none_dies"] = facts["dead"] == 0 and len(spreads) >= COLLAPSE_SEEDS
    cells = {"r2": alone["r2"], "r2_long": R2_LONG.name, "r2_extent": R2_EXTENT.name}
    for name, cell in (*cells.items(), ("r2_sums", "sums/extent")):
        facts[name] = entry(mae(results, cell, "r2")).text
    facts["r2_paper"] = cited("qm9-single").rows["r2"]["G²N²"].text
    plain, given = (results.first("q2", PPGN + tail) for tail in ("", "/equal-time"))
    ratio = results.need("q2", JOINT.speed_name, "PPGN / G2N2")
    if plain and given:
        facts["equal_time"] = given.done, epochs_in_equal_time(plain.done, ratio.mean)
    return facts


def _not_below(results: Results, table: str, cells: dict[str, str]) -> list[str]:
    """Symbols of targets whose error, to the paper's digits, is not below the paper's."""
    symbols = []
    for target, cell in cells.items():
        bar, value = cited(table).rows[target]["G²N²"].bar, mae(results, cell, target)
        exponent = Decimal(str(bar)).as_tuple().exponent
        assert isinstance(exponent, int)
        if value is None or round(value.mean, -exponent) >= bar:
            symbols.append(TARGETS[target].symbol)
    return symbols


def q3(results: Results) -> dict[str, Any]:
    """How far G²N² is from published rows by each statistic, and what differs clearly."""
    short = shortfalls(results, GIN, against_best=True)
    released = shortfalls(results, RELEASED, against_best=False)
    gaps, clear = statistic_gaps(results), clear_differences(results)
    first = {}
    for model in OTHERS:
        ranks = zip(SETS, rank_of_ours(results, model, RELEASED), strict=True)
        if sets := [name for name, rank in ranks if rank == 1]:
            first[model] = sets
    return {
        "short": {name: f"{points:.1f}" for name, points in short.items() if points > 0},
        "reached": [name for name, points in short.items() if points <= 0],
        "released_reached": [name for name, points in released.items() if points <= 0],
        "released_short": f"{max(released.values()):.1f}",
        "ranks": {
            "gin": ", ".join(map(str, rank_of_ours(results, "G2N2", GIN))),
            "released": ", ".join(map(str, rank_of_ours(results, "G2N2", RELEASED))),
        },
        "first_too": first,
        "gaps": {name: (f"{fmean(g):.1f}", f"{max(g):.1f}") for name, g in gaps.items()},
        "cells": len(gaps["released"]),
        "errica": errica_sets(results),
        "clear_sides": clear,
        "differences": len(differences(results)),
        "unclear": len(differences(results)) - sum(map(len, clear.values())),
    }


def q4(results: Results) -> dict[str, Any]:
    """The best G²N² at band-pass, from random weights and with a Chebyshev start."""
    starts = {
        "random": ("G2N2", "G2N2-slow", "G2N2-projected", "G2N2-released", "G2N2-paper"),
        "chebyshev": ("G2N2-chebyshev",),
    }
    paper = cited("filters").rows["G²N²"]
    facts: dict[str, Any] = {"paper": {name: paper[name].text for name in FILTERS}}
    for start, names in starts.items():
        candidates = [n for n in networks_by_depth() if n[0] in names]
        best = max(candidates, key=lambda network: score(results, "band", network) or -1.0)
        scores = {f: score(results, f, best) for f in FILTERS}
        keeps = all((scores[f] or -1.0) >= paper[f].bar - 0.001 for f in ("low", "high"))
        band = scores["band"] or 0.0
        facts[start] = {
            "name": f"{label(best[0])}, {best[1]} layers",
            **{f: r2(value) if value is not None else "–" for f, value in scores.items()},
            "above_90": keeps and band >= 0.90,
            "above_95": keeps and band >= 0.95,
        }
    return facts


def power(results: Results) -> dict[str, Any]:
    """Pairs of BREC told apart, without those beyond the bound."""
    counts = {}
    for name in CONTENDERS:
        trained, beyond = (
            results.need("power", f"brec/{name}", metric) for metric in (TRAINED, BEYOND)
        )
        counts[name] = trained.mean - beyond.mean
    published = cited("brec").rows["PPGN"]["total (400)"].text
    texts = {name: whole(count) for name, count in counts.items()}
    return {
        "brec": texts,
        "published": published,
        "enough": counts["G2N2-8"] >= 258,
        "marks": with_marks(results),
    }


def with_marks(results: Results) -> dict[str, Any]:
    """Pairs of BREC told apart, and which of two networks has the lower error.

    `counts` has those on which the network with the mark has it, and those on which it has not;
    it is None, as `zinc` is, if one of the two networks was not run.
    """
    plain, marked = (f"counting/beyond/{contender.name}" for contender in COUNTED)
    counts: dict[bool, list[str]] = {True: [], False: []}
    for count in BEYOND_COUNTS:
        left, right = (
            results.value("power", cell, NORMALISED.format(count)) for cell in (plain, marked)
        )
        if left and right:
            counts[right.mean < left.mean].append(count.replace("_", " "))
    errors = [results.value("power", f"zinc/{c.name}", ZINC_ERROR) for c in ON_ZINC]
    on_brec = f"brec/{MARKED['G2N2Σ-5'].name}"
    trained, beyond, bound = (
        results.need("power", on_brec, metric) for metric in (TRAINED, BEYOND, BOUND)
    )
    return {
        "brec": whole(trained.mean - beyond.mean),
        "bound": whole(bound.mean),
        "missing": whole(400 - record.done) if (record := results.first("power", on_brec)) else "",
        "published": cited("brec").rows["N²-GNN"]["total (400)"].text,
        "counts": counts if any(counts.values()) else None,
        "zinc": errors[1].mean < errors[0].mean if errors[0] and errors[1] else None,
    }
