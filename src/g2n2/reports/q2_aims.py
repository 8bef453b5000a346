"""Whether Q2 is below the paper's G²N²."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from ..experiments.q2 import JOINT_32, JOINT_64, R2_ALONE
from ..experiments.record import BUDGETS
from .cited import CitedTable, cited
from .numbers import EMPTY
from .q2_names import LONGER, OURS, TARGETS, mae, single_name
from .section import Aim
from .standings import Standing

Known = Mapping[str, Standing]


def aims(known: Known) -> Iterator[Aim]:
    """Whether we are below the paper's G²N² on every target, alone and jointly."""
    alone = {target: single_name(target) for target in TARGETS}
    single, joint = cited("qm9-single"), cited("qm9-joint")
    yield _aim(known, "each target alone", alone, single)
    less = "each target alone, R² less its extent"
    yield _aim(known, less, {**alone, "r2": R2_ALONE.name}, single)
    printed, held = joint.at("zpve", "G²N²").text, joint.at("zpve", "G²N²").bar
    zpve = f"ZPVE against {held:.6f}, our reading of a printed {printed}"
    for how, name in (
        ("width 32", OURS.name),
        ("width 32, less the extent", JOINT_32.name),
        ("width 64 (the paper has 32), less the extent", JOINT_64.name),
    ):
        text = f"all twelve at once, {how} ({zpve})"
        yield _aim(known, text, dict.fromkeys(TARGETS, name), joint)


def _aim(known: Known, how: str, cells: Mapping[str, str], table: CitedTable) -> Aim:
    """By the runs with more epochs, unless those are stopped ones and the others suffice."""
    longest = {target: _longest(known, name, mae(target)) for target, name in cells.items()}
    planned, longer = _judged(known, how, cells, table), _judged(known, how, longest, table)
    return planned if planned.met and not planned.partial and longer.partial else longer


def _judged(known: Known, how: str, cells: Mapping[str, str], table: CitedTable) -> Aim:
    text = f"below the paper's G²N² on all twelve targets, {how}"
    below: list[str] = []
    equal: list[str] = []
    above: list[str] = []
    partial, seeds = False, 0
    longer: dict[str, str] = {}
    for target, name in cells.items():
        if name in LONGER.values():
            longer[TARGETS[target].symbol] = known[name].brief.partition("× ")[2]
        found = known[name].mean(mae(target)) if name in known else None
        bar = table.at(target, "G²N²").bar
        if found is None or bar is None:
            continue
        value = _to_digits_of(bar, found.value)
        group = below if value < bar else equal if value == bar else above
        group.append(TARGETS[target].symbol)
        partial, seeds = partial or found.partial, max(seeds, found.seeds)
    run = len(below) + len(equal) + len(above)
    if not run:
        return Aim(text, EMPTY, None)
    said = f"below on {len(below)} of {run} run"
    said += f"; equal to the printed digits on {', '.join(equal)}" if equal else ""
    said += f"; above on {', '.join(above)}" if above else ""
    if longer:
        which = "all" if len(longer) == run else ", ".join(longer)
        said += f"; {which} with {' and '.join(dict.fromkeys(longer.values()))} epochs"
    said += "; one seed each" if seeds == 1 else ""
    met = False if equal or above else (True if run == len(TARGETS) else None)
    return Aim(text, said, met, partial)


def _longest(known: Known, name: str, metric: str) -> str:
    """A cell, or the same with more epochs where it has had more by now and nothing less."""
    longer = known.get(LONGER.get(name, ""))
    if longer is None or longer.outdated or longer.mean(metric) is None:
        return name
    sooner = known.get(name)
    if sooner is None:
        return longer.cell
    smaller = BUDGETS.index(longer.budget) < BUDGETS.index(sooner.budget)
    least = min(record.done for record in longer.records)
    farther = least > max(record.done for record in sooner.records)
    return longer.cell if farther and not smaller else name


def _to_digits_of(printed: float, value: float) -> float:
    """A number rounded to as many decimals as a printed one has."""
    exponent = Decimal(str(printed)).as_tuple().exponent
    assert isinstance(exponent, int)
    return round(value, -exponent)
