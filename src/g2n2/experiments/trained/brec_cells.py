"""BREC's cells: as many pairs as a slice allows, and the record of what is known then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from ...data.suites import load_suite
from ...power.suites import Suite
from ..cell import Cell, Slice
from ..exact_cells import suite_checksum
from ..kept import NOT_UNDERSTOOD
from ..machines import device_called, machine
from ..record import Record
from .brec import Ledger, PairVerdict, Protocol, judge, sample
from .exact import Exact, exact_power, some_pairs

TRAINED = "trained separated"
HOTELLING = "trained separated, Hotelling's T²"
CLEAR = "trained separated, clear of noise"
BEYOND = "separated beyond the bound"
BEYOND_HOTELLING = "separated beyond the bound, Hotelling's T²"
WITHIN = "judged within the bound"
UNRELIABLE = "unreliable"
UNRELIABLE_HOTELLING = "unreliable, Hotelling's T²"
NOT_FINITE = "not finite"
ALL_PAIRS = 400
"""Of the suite."""


def brec_cell(budget: str, protocol: Protocol, each: int, nodes: int = 0) -> Cell:
    """A contender on BREC.

    Args:
        budget: Whose settings it has.
        protocol: How a pair is judged.
        each: Pairs of every category; 0 for all.
        nodes: The largest graphs; 0 for all.
    """

    name = f"brec/{protocol.contender.name}"

    def run(given: Slice) -> Record:
        return run_brec(name, budget, protocol, sample(_brec(given.data), each, nodes), given)

    return Cell(
        "power",
        name,
        protocol.seed,
        budget,
        run,
        ("brec",),
        planned=0 if each or nodes else ALL_PAIRS,
        settings=protocol.as_dict(),
        goes_on=True,
    )


def run_brec(
    name: str, budget: str, protocol: Protocol, chosen: tuple[int, ...], given: Slice
) -> Record:
    """Judge pairs until all are judged or the slice is over.

    Pairs that no weights can tell apart come last: they take every epoch there is, and a stopped
    run has judged what was to be seen.
    """
    begun = time.monotonic()
    suite = _brec(given.data)
    data = {"brec": suite_checksum(suite)}
    given = given.on(data)
    ledger = Ledger(given.work, protocol)
    known_before = known_verdicts(given.known_detail)
    tested = _some(given.data, chosen)
    exact = exact_power(protocol.contender, tested, given.work / f"exact-{len(chosen)}.json")
    beyond = {chosen[place] for place in exact.beyond}
    order = sorted(chosen, key=lambda i: (i in beyond, len(suite.graphs[suite.pairs[i][0]])))
    verdicts = judge_pairs(suite, order, known_before, ledger, protocol, given, begun)
    known = [verdicts[index] for index in chosen if index in verdicts]
    return Record(
        question="power",
        cell=name,
        seed=protocol.seed,
        budget=budget,
        done=len(known),
        planned=len(chosen),
        unit="pairs",
        metrics=metrics(known, exact, beyond),
        config={**protocol.as_dict(), "pairs": list(chosen)},
        data=data,
        provenance=machine(given.device),
        # Pairs judged elsewhere were not on this folder's clock.
        seconds=round(max(given.seconds(begun), sum(one.seconds for one in known)), 3),
        detail={"pairs": [asdict(verdict) for verdict in known]},
    )


def known_verdicts(detail: Mapping[str, Any]) -> dict[int, PairVerdict]:
    """The verdicts a record's detail holds, by pair."""
    kept, found = detail.get("pairs"), {}
    for said in kept if isinstance(kept, list) else []:
        with suppress(*NOT_UNDERSTOOD):
            verdict = PairVerdict.of(said)
            found[verdict.pair] = verdict
    return found


def judge_pairs(
    suite: Suite,
    chosen: Sequence[int],
    known: Mapping[int, PairVerdict],
    ledger: Ledger,
    protocol: Protocol,
    given: Slice,
    begun: float,
) -> dict[int, PairVerdict]:
    """The verdicts there are, with as many new ones as the slice has time for; one at least."""
    device = device_called(given.device)
    verdicts = {**known, **ledger.read()}
    left = [index for index in chosen if index not in verdicts]
    for number, index in enumerate(left):
        if number and time.monotonic() > given.ends(begun):
            break
        verdicts[index] = judge(protocol, suite, index, device)
        ledger.add(verdicts[index])
        given.note()
        apart = sum(verdict.released == "separated" for verdict in verdicts.values())
        sentence = f"{verdicts[index].category} {index}: {verdicts[index].released}"
        done = len(chosen) - len(left) + number + 1
        given.tell(f"{sentence}, {apart} separated", done, len(chosen))
    return verdicts


def metrics(
    known: Sequence[PairVerdict], exact: Exact, beyond: set[int]
) -> dict[str, float | None]:
    """What tables read."""
    apart = [verdict for verdict in known if verdict.released == "separated"]
    by_hotelling = [verdict for verdict in known if verdict.hotelling == "separated"]
    found: dict[str, float | None] = {
        TRAINED: len(apart),
        HOTELLING: len(by_hotelling),
        CLEAR: sum(verdict.clear for verdict in known),
        BEYOND: sum(verdict.pair in beyond for verdict in apart),
        BEYOND_HOTELLING: sum(verdict.pair in beyond for verdict in by_hotelling),
        WITHIN: sum(verdict.pair not in beyond for verdict in known),
        UNRELIABLE: sum(verdict.released == "unreliable" for verdict in known),
        UNRELIABLE_HOTELLING: sum(verdict.hotelling == "unreliable" for verdict in known),
        NOT_FINITE: sum(verdict.released == "not finite" for verdict in known),
        **exact.metrics(),
    }
    by_category = Counter(verdict.category for verdict in apart)
    for category, count in (exact.categories or {}).items():
        found[f"{TRAINED}, {category}"] = by_category[category]
        found[f"exact separated, {category}"] = count
    return found


@lru_cache(maxsize=1)
def _brec(data: str | None) -> Suite:
    return load_suite("brec", data)


@lru_cache(maxsize=2)
def _some(data: str | None, chosen: tuple[int, ...]) -> Suite:
    """One suite for one choice, so that what is known of it is found again by the next cell."""
    return some_pairs(_brec(data), chosen)
