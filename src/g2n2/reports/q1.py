"""Q1: error against parameters for each grammar, and its exact power beside it."""

from __future__ import annotations

from collections.abc import Mapping

from ..demonstration.blocks import Block, Table, Text
from ..experiments.q1 import GRAMMARS
from .figures.q1 import MAE, drawing, proved
from .numbers import EMPTY, Entry, bold, entry, mark
from .section import CLAIM, Aim, Section, nothing_yet
from .standings import Measured, Results, Standing

REDUCED, EXHAUSTIVE = "r-G_L3", "G_L3"
ABLATIONS = tuple(name for name in GRAMMARS if name.startswith("r-G_L3-"))
TOO_FEW = "too few seeds"
AT_DEPTH, AT_LAST = "pairs separated, 3 layers", "pairs separated"


def section(results: Results) -> Section:
    """What there is of Q1."""
    known = results.of("q1")
    errors = {name: _error(known, name) for name in GRAMMARS}
    blocks: list[Block] = []
    if not known:
        blocks.append(nothing_yet("q1"))
    blocks += [_table(known), Text(_said(known))]
    drawn = drawing(known) if any(errors.values()) else None
    return Section(
        "q1",
        "Q1: is the reduction relevant and optimal?",
        tuple(blocks),
        (_relevant(errors), _ablated(errors)),
        drawn,
        known.seen,
    )


def _table(known: Mapping[str, Standing]) -> Table:
    headers = (
        "grammar",
        "parameters",
        "test MAE of R² (a₀²)",
        "seeds × work",
        "BREC, own read-out: 3 layers / any",
        "BREC, network read-out: 3 layers / any",
    )
    maes = bold([entry(_error(known, name)) for name in GRAMMARS], "lower")
    rows = []
    for (name, said), mae in zip(GRAMMARS.items(), maes, strict=True):
        trained = known.get(f"train/{name}")
        powers = [known.get(f"exact/{name}/{readout}") for readout in ("own", "network")]
        rows.append(
            (
                said,
                _parameters(trained),
                mae,
                trained.work if trained else EMPTY,
                *(_pairs(power).text for power in powers),
            )
        )
    return Table(headers, tuple(rows))


def _parameters(trained: Standing | None) -> str:
    found = trained.mean("parameters") if trained else None
    return f"{found.value:,.0f}" if found else EMPTY


def _pairs(power: Standing | None) -> Entry:
    if power is None:
        return Entry(EMPTY)
    few, all_ = power.mean(AT_DEPTH), power.mean(AT_LAST)
    of = power.mean("pairs")
    if few is None or all_ is None or of is None:
        return Entry(EMPTY)
    by_layer = power.records[0].detail.get("by_layer")
    tried = f"{len(by_layer) - 1}" if isinstance(by_layer, list) else "some"
    upto = "" if proved(power) else f" up to {tried} layers,"
    counts = f"{few.value:.0f} / {all_.value:.0f}{upto} of {of.value:.0f}"
    return Entry(counts + mark(power))


def _said(known: Mapping[str, Standing]) -> str:
    """What the numbers say, in a sentence."""
    few = known.get(f"train/{REDUCED}")
    many = known.get(f"train/{EXHAUSTIVE}")
    sizes = [one.mean("parameters") if one else None for one in (many, few)]
    if sizes[0] is None or sizes[1] is None:
        return "Whether the reduction halves the parameters cannot be said before both were run."
    ratio = sizes[0].value / sizes[1].value
    return f"The exhaustive grammar has {ratio:.2f} times the parameters of the reduced one."


def _error(known: Mapping[str, Standing], name: str) -> Measured | None:
    standing = known.get(f"train/{name}")
    return standing.mean(MAE) if standing else None


def _relevant(errors: Mapping[str, Measured | None]) -> Aim:
    text = f"{CLAIM}errors of the reduced and the exhaustive grammar are comparable"
    few, many = errors[REDUCED], errors[EXHAUSTIVE]
    if few is None or many is None:
        return Aim(text, EMPTY, None)
    found = f"MAE of the target R²: reduced {entry(few).text}, exhaustive {entry(many).text}"
    partial = few.partial or many.partial
    if few.spread is None or many.spread is None:
        return Aim(text, found, None, partial, TOO_FEW)
    return Aim(text, found, not _clearly_above(few, many), partial)


def _clearly_above(one: Measured, other: Measured) -> bool:
    """By more than both deviations over seeds together; one seed has none."""
    if one.spread is None or other.spread is None:
        return False
    return one.value > other.value + one.spread + other.spread


def _ablated(errors: Mapping[str, Measured | None]) -> Aim:
    text = f"{CLAIM}without any one rule the error grows"
    whole = errors[REDUCED]
    less = {name: errors[name] for name in ABLATIONS}
    known = {name: one for name, one in less.items() if one is not None}
    if whole is None or len(known) < len(less):
        return Aim(text, EMPTY, None)
    better = [GRAMMARS[name] for name, one in known.items() if one.value <= whole.value]
    grows = [name for name, one in known.items() if _clearly_above(one, whole)]
    near = [GRAMMARS[name] for name in known if name not in grows]
    partial = whole.partial or any(one.partial for one in known.values())
    if better:
        return Aim(text, f"not for {', '.join(better)}", False, partial)
    if near:
        within = f"the mean does for all four; within the deviations for {', '.join(near)}"
        return Aim(text, within, None, partial, TOO_FEW)
    return Aim(text, "for all four", True, partial)
