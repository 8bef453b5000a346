"""Numbers and verdicts that templates put into sentences."""

from __future__ import annotations

from decimal import Decimal
from statistics import fmean
from typing import Any

from ..brec import BEYOND, TRAINED
from ..contenders import BOUND, CONTENDERS, PPGN_ALIKE
from ..counting import BEYOND_COUNTS, NORMALISED
from ..molecule_sets import SETS as MOLECULE_SETS
from ..molecules import CITED
from ..molecules import CONTENDERS as ON_MOLECULES
from ..q1 import EXHAUSTIVE, FAIR, GRAMMARS, REDUCED, fair_cell
from ..q2 import (
    COLLAPSE_SEEDS,
    COMPARED,
    EQUAL_TIME,
    JOINT,
    LEAST_SPREAD,
    R2_EXTENT,
    R2_LONG,
    SPREAD,
    epochs_in_equal_time,
    single,
    speed_name,
)
from ..q3 import ERRICA_ACCURACY, FOLDS, GIN, RELEASED, SETS
from ..q4 import MEDIAN
from ..runner import cells_of
from . import long_runs, tu
from .entries import (
    FILTER_LABELS,
    FILTERS,
    MOLECULE_LABELS,
    molecule_problems,
    molecule_score,
    networks_by_depth,
)
from .tables import TARGETS, Best, Results, Value, cited, entry, mae_of, written

ERRICA_AIMS = {"NCI1": 80.0, "PROTEINS": 75.8, "IMDB-BINARY": 71.2, "IMDB-MULTI": 49.1}
OURS = "G2N2"


def _of_folds(results: Results, name: str) -> str:
    """What is said of a set whose folds have not all been run."""
    done = min(record.done for record in results.of("q3", f"errica/{name}/G2N2"))
    return f" (on {done} of {FOLDS} folds)" if done < FOLDS else ""


def all_facts(results: Results) -> dict[str, Any]:
    """Facts by question, and words for verdicts."""
    questions = {"q1": q1, "q2": q2, "q3": q3, "q4": q4, "power": power, "molecules": molecules}
    facts: dict[str, Any] = {name: facts(results) for name, facts in questions.items()}
    facts["cells"] = {question: len(cells_of(question)) for question in questions}
    facts["missing"] = {question: missing(results, question) for question in questions}
    return facts | {"verdict": lambda met: "met" if met else "**missed**"}


def missing(results: Results, question: str) -> dict[str, list[str]]:
    """Cells without a whole record, with the seeds that lack: `0`, or `0 (363 of 400 run)`."""
    done = {(r.cell, r.seed): r.done for r in results.records if r.question == question}
    seeds: dict[str, list[str]] = {}
    for cell in cells_of(question):
        have = done.get((cell.name, cell.seed), 0)
        if have < cell.parts:
            run = f" ({have} of {cell.parts} run)" if have else ""
            seeds.setdefault(cell.name, []).append(f"{cell.seed}{run}")
    return seeds


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
        "ratio": f"{many.mean / few.mean:.2f}",
        "comparable": not _clearly_above(reduced, exhaustive),
        "larger": [g for g, error in ablations.items() if error.mean > reduced.mean],
        "unclear": [g for g, error in ablations.items() if not _clearly_above(error, reduced)],
        "fair": {group: _fair(results, group, what) for group, what in FAIR.items()},
    }


def _fair(results: Results, group: str, what: str) -> dict[str, Any]:
    """The reduced and the exhaustive grammar where something is equal, and which has less error.

    `verdict` is that on the claim that they are comparable, `order` says it in words; both are
    empty unless both were run. `clear` has the grammars clearly below the reduced one.
    """
    errors = {
        grammar: value
        for grammar in GRAMMARS
        if (value := results.value("q1", fair_cell(group, grammar), "test MAE r2 (bohr²)"))
    }
    facts: dict[str, Any] = {"what": what, "ran": len(errors), "order": "", "verdict": ""}
    facts["others"] = [g for g in errors if g != REDUCED]
    reduced, exhaustive = errors.get(REDUCED), errors.get(EXHAUSTIVE)
    facts["below"] = [
        GRAMMARS[g] for g, error in errors.items() if reduced and _clearly_above(reduced, error)
    ]
    if not (reduced and exhaustive):
        return facts
    facts["errors"] = f"{entry(reduced)} and {entry(exhaustive)}"
    if min(reduced.seeds, exhaustive.seeds) < 2:
        return facts | {"order": "one seed cannot tell them apart", "verdict": "open: one seed"}
    if _clearly_above(reduced, exhaustive):
        return facts | {"order": "the reduced one is above", "verdict": "**not reproduced**"}
    if _clearly_above(exhaustive, reduced):
        return facts | {"order": "the reduced one is below", "verdict": "reproduced"}
    return facts | {"order": "they differ by less than both deviations", "verdict": "reproduced"}


def _clearly_above(value: Value, other: Value) -> bool:
    return value.mean > other.mean + (value.spread or 0.0) + (other.spread or 0.0)


def q2(results: Results) -> dict[str, Any]:
    """On which targets an error is not below the paper's, by the paper's digits; what collapses."""
    alone = {target: single(target) for target in TARGETS}
    facts: dict[str, Any] = {
        "alone": _not_below(results, "qm9-single", {**alone, "r2": R2_LONG}),
        "alone_extent": _not_below(results, "qm9-single", {**alone, "r2": R2_EXTENT}),
    }
    wide = JOINT.replace("32", "64") + "/extent"
    joint = {"joint": JOINT, "joint_extent": f"{JOINT}/extent", "wide_extent": wide}
    for name, cell in joint.items():
        facts[name] = _not_below(results, "qm9-joint", dict.fromkeys(TARGETS, cell))
    results.need("q2", "collapse/u0", SPREAD)
    spreads = [record.metrics[SPREAD] or 0.0 for record in results.of("q2", "collapse/u0")]
    dead = sum(spread < LEAST_SPREAD for spread in spreads)
    facts |= {"dead": dead, "seeds": len(spreads), "least_spread": f"{min(spreads):.2f}"}
    facts["none_dies"] = dead == 0 and len(spreads) >= COLLAPSE_SEEDS
    facts |= _long_runs(results)
    facts["faster"] = _faster(results)
    ppgn = JOINT.replace("G2N2", "PPGN")
    plain, given = (results.first("q2", ppgn + tail) for tail in ("", EQUAL_TIME))
    ratio = results.need("q2", speed_name(JOINT), "PPGN / G2N2")
    if plain and given:
        facts["equal_time"] = given.done, epochs_in_equal_time(plain.done, ratio.mean)
    return facts


SPEEDS = {
    "speed/single/distance": "one target with distances",
    "speed/single-bf16/distance": "the same in bf16",
    "speed/joint-width32/distance": "all twelve with distances",
    "speed/joint-width32/bonds": "all twelve, bonds only",
}
"""Cells that time PPGN and G²N² to what they train."""


def _faster(results: Results) -> list[tuple[str, bool]]:
    """Seconds per epoch of PPGN over those of G²N², and whether they are more."""
    ratios = {what: results.value("q2", cell, "PPGN / G2N2") for cell, what in SPEEDS.items()}
    return [(f"{what} {v.mean:.2f}", v.mean > 1.0) for what, v in ratios.items() if v]


def _long_runs(results: Results) -> dict[str, Any]:
    """Errors of the present defaults and whether they meet their aims; those of `paper` for long.

    Of several runs of a target it is the one with the lowest validation error; `chosen` says which.
    """
    defaults, chosen = [], []
    for target, aim in long_runs.AIMS.items():
        if best := long_runs.chosen(results, target):
            label, error = best
            symbol = TARGETS[target].symbol
            defaults.append((f"{symbol} {entry(error)}", error.mean <= aim))
            seeds = f" ({error.seeds} seeds)" if error.seeds > 1 else ""
            chosen.append(f"{symbol} {label}{seeds}")
    paper = []
    for label, pattern in long_runs.patterns(results, "paper").items():
        for target in COMPARED:
            if of_paper := results.value("q2", pattern.format(target), mae_of(target)):
                bar = cited("qm9-single").rows[target]["G²N²"].text
                symbol = TARGETS[target].symbol
                paper.append(f"{symbol} {entry(of_paper)} after {label} (the paper has {bar})")
    return {"defaults": defaults, "chosen": chosen, "paper_long": paper}


def _not_below(results: Results, published: str, cells: dict[str, str]) -> list[str]:
    """Symbols of targets whose error, to the paper's digits, is not below the paper's."""
    symbols = []
    for target, cell in cells.items():
        bar = cited(published).rows[target]["G²N²"].number
        value = results.value("q2", cell, mae_of(target))
        digits = -int(Decimal(str(bar)).as_tuple().exponent)
        if value is None or round(value.mean, digits) >= bar:
            symbols.append(TARGETS[target].symbol)
    return symbols


def q3(results: Results) -> dict[str, Any]:
    """How far G²N² is from published rows by each statistic, and what differs clearly."""
    short = tu.shortfalls(results, GIN, against_best=True)
    released = tu.shortfalls(results, RELEASED, against_best=False)
    gaps, clear = tu.statistic_gaps(results), tu.clear_differences(results)
    first = {}
    for model in tu.OTHERS:
        ranks = zip(SETS, tu.rank_of_ours(results, model, RELEASED), strict=True)
        if sets := [name for name, rank in ranks if rank == 1]:
            first[model] = sets
    every, accuracy = len(tu.differences(results)), ERRICA_ACCURACY.format("test")
    errica = {n: results.value("q3", f"errica/{n}/G2N2", accuracy) for n in ERRICA_AIMS}
    return {
        "short": {name: f"{points:.1f}" for name, points in short.items() if points > 0},
        "reached": [name for name, points in short.items() if points <= 0],
        "released_reached": [name for name, points in released.items() if points <= 0],
        "released_short": f"{max(released.values()):.1f}",
        "ranks": {
            name: ", ".join(map(str, tu.rank_of_ours(results, OURS, statistic)))
            for name, statistic in (("gin", GIN), ("released", RELEASED))
        },
        "first_too": first,
        "errica": [
            (f"{n} {v.mean:.1f}{_of_folds(results, n)}", v.mean >= ERRICA_AIMS[n])
            for n, v in errica.items()
            if v
        ],
        "gaps": {name: (f"{fmean(g):.1f}", f"{max(g):.1f}") for name, g in gaps.items()},
        "cells": len(gaps["released"]),
        "clear_sides": clear,
        "differences": every,
        "unclear": every - sum(map(len, clear.values())),
    }


def q4(results: Results) -> dict[str, Any]:
    """The best G²N² at band-pass, from random weights and with a Chebyshev start."""
    starts = {
        "random": ("G2N2", "G2N2-slow", "G2N2-projected", "G2N2-released", "G2N2-paper"),
        "chebyshev": ("G2N2-chebyshev",),
    }
    paper = cited("filters").rows["G²N²"]
    facts: dict[str, Any] = {}
    for start, names in starts.items():
        scores = {
            network: {
                f: value.mean
                for f in FILTERS
                if (value := results.value("q4", f"{f}/{network[0]}/layers-{network[1]}", MEDIAN))
            }
            for network in networks_by_depth()
            if network[0] in names
        }
        (name, layers), best = max(scores.items(), key=lambda item: item[1].get("band", -1.0))
        keeps = all(best.get(f, -1.0) >= paper[f].number - 0.001 for f in ("low", "high"))
        facts[start] = {
            "name": f"{FILTER_LABELS.get(name, name)}, {layers} layers",
            **{f: written(best[f], 4) if f in best else "–" for f in FILTERS},
            **{f"above_{bar}": keeps and best.get("band", 0.0) >= bar / 100 for bar in (90, 95)},
        }
    return facts


def power(results: Results) -> dict[str, Any]:
    """Pairs of BREC told apart, without those beyond the bound; and what marks change."""
    counts = {}
    for name in CONTENDERS:
        trained, beyond = (
            results.need("power", f"brec/{name}", metric) for metric in (TRAINED, BEYOND)
        )
        counts[name] = trained.mean - beyond.mean
    return {
        "brec": {name: written(count, 0) for name, count in counts.items()},
        "enough": counts["G2N2-8"] >= 258,
        "alike": grammar_of_ppgn(results),
        "marks": with_marks(results),
    }


def grammar_of_ppgn(results: Results) -> dict[str, str] | None:
    """Pairs of BREC that the grammar of PPGN tells apart in the blocks of G²N²; None if not run.

    `missing` are those beyond its bound that were not run; with others missing there is no number.
    """
    cell = f"brec/{PPGN_ALIKE.name}"
    records = results.of("power", cell)
    names = TRAINED, BEYOND, BOUND, "judged within the bound"
    values = [results.value("power", cell, name) for name in names]
    if not records or None in values:
        return None
    trained, beyond, bound, judged = (value.mean for value in values if value)
    if judged < bound:
        return None
    return {
        "brec": written(trained - beyond, 0),
        "missing": written(400 - records[0].done, 0),
    }


def with_marks(results: Results) -> dict[str, Any]:
    """Pairs of BREC told apart, and which of two networks has the lower error.

    `counts` has those on which the network with the mark has it, and those on which it has not;
    it is None, as `zinc` is, if one of the two networks was not run.
    """

    def better(plain: str, marked: str, metric: str) -> bool | None:
        left, right = (results.value("power", cell, metric) for cell in (plain, marked))
        return right.mean < left.mean if left and right else None

    counts: dict[bool, list[str]] = {True: [], False: []}
    for count in BEYOND_COUNTS:
        cells = "counting/beyond/G2N2-3", "counting/beyond/G2N2Σ-3"
        if (lower := better(*cells, NORMALISED.format(count))) is not None:
            counts[lower].append(count.replace("_", " "))
    cell = "brec/G2N2Σ-5"
    trained, beyond, bound = (
        results.need("power", cell, metric).mean for metric in (TRAINED, BEYOND, BOUND)
    )
    return {
        "brec": written(trained - beyond, 0),
        "bound": written(bound, 0),
        "missing": written(400 - sum(record.done for record in results.of("power", cell)), 0),
        "counts": counts if any(counts.values()) else None,
        "zinc": better("zinc/G2N2-3", "zinc/G2N2Σ-2+1", "test MAE penalised_logP"),
    }


def molecules(results: Results) -> dict[str, Any]:
    """The best of the others where several were run, and where the library's defaults reach it.

    Numbers are compared as printed, on molhiv with the published ones too. `absent` names the
    contenders that were not run, by the splits where they are missing.
    """
    best: dict[str, str] = {}
    reached: list[str] = []
    behind: list[str] = []
    won: set[tuple[str, str]] = set()
    absent: dict[str, list[str]] = {}
    listed = cited("molhiv").rows
    for problem, how in molecule_problems():
        values = {c: molecule_score(results, problem, how, c) for c in ON_MOLECULES}
        others = {
            MOLECULE_LABELS[c]: round(v.mean, 3) for c, v in values.items() if v and c != OURS
        }
        if problem.name == "molhiv":
            others |= {f"{name} (cited)": row["ROC-AUC"].number for name, row in listed.items()}
        label = f"{problem.name} ({how})"
        for contender, value in values.items():
            if value is None and (problem.name, contender) not in CITED:
                absent.setdefault(MOLECULE_LABELS[contender], []).append(label)
        if not others:
            continue
        better: Best = min if problem.metric == "RMSE" else max
        top = better(others.values())
        if len(others) > 1:
            best[label] = next(name for name, value in others.items() if value == top)
        if ours := values[OURS]:
            mean = round(ours.mean, 3)
            few = {1: ", one seed", 2: ", two seeds"}.get(ours.seeds, "")
            mention = f"{problem.name} ({how}{few})"
            if better((mean, top)) == mean:
                reached.append(mention)
                won.add((problem.name, how))
            else:
                behind.append(mention)
    return {
        "best": best,
        "sets": [m.name for m in MOLECULE_SETS if all((m.name, how) in won for how in m.splits)],
        "reached": reached,
        "behind": behind,
        "absent": absent,
    }
