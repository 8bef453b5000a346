"""Q4: spectral filters, the networks beside published rows and linear ceilings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from ..demonstration.blocks import Block, Table, Text
from ..experiments.q4.cells import BEST, MEDIAN, WORST
from ..experiments.q4.settings import BUDGETS
from .cited import cited
from .figures.q4 import drawing
from .numbers import EMPTY, Entry, Row, bold, entry, fixed, mark, plain
from .section import Aim, Section, nothing_yet
from .standings import Results, Standing

FILTERS = ("low", "high", "band")
SAID = {
    "G2N2": "G²N²",
    "G2N2-chebyshev": "G²N², Chebyshev start",
    "G2N2-paper": "G²N², the paper's equations",
    "G2N2-slow": "G²N², a fifth of the rate",
    "G2N2-solved": "G²N², read-out solved first",
    "G2N2-released": "G²N², as in the released script",
    "PPGN-alike": "PPGN, blocks of G²N²",
}
_NORMALISED, _COMBINATORIAL = "polynomial of the normalised Laplacian", "polynomial of D − A"
_ADJACENCY = "polynomial of A"
_ITSELF = "test R² fitted on the test image"
CEILINGS = {
    "the image itself, scaled": "image itself, test R²",
    f"{_ADJACENCY}, degree 30": f"{_ADJACENCY}, test R²",
    f"{_ADJACENCY}, on the test image itself": f"{_ADJACENCY}, {_ITSELF}",
    f"{_NORMALISED}, degree 30": f"{_NORMALISED}, test R²",
    f"{_NORMALISED}, on the test image itself": f"{_NORMALISED}, {_ITSELF}",
    f"{_COMBINATORIAL}, degree 30": f"{_COMBINATORIAL}, test R²",
    f"{_COMBINATORIAL}, on the test image itself": f"{_COMBINATORIAL}, {_ITSELF}",
    "the true filter, border pixels repeated": "true filter with the border repeated, test R²",
}
"""What a table says to the metric of the cell `ceilings`, the filter's name left out."""
LEARNED, WRITTEN = "trained from random weights", "with a Chebyshev start"
NOT_RANDOM = ("G2N2-chebyshev", "G2N2-solved")
"""Networks that do not begin with random weights alone."""
LOST = 0.001
"""How much of low- and high-pass may be lost for band-pass."""

Known = Mapping[str, Standing]
Place = tuple[str, int]
"""A network and its number of layers."""


def section(results: Results) -> Section:
    """What there is of Q4."""
    known = results.of("q4")
    blocks: list[Block] = [] if known else [nothing_yet("q4")]
    blocks += [_networks(known), Text(f"Cited: {cited('filters').citation}. {_WORDS}")]
    blocks += [
        Text(
            "**Ceilings of linear filters** on the test image, fitted on the training image or, "
            "which no polynomial of that degree can pass, on the test image itself."
        ),
        _ceilings(known),
    ]
    found = (_standing(known, name, place) for name in FILTERS for place in _places())
    responses = any("response" in r.detail for one in found if one for r in one.records)
    return Section(
        "q4",
        "Q4: spectral filters",
        tuple(blocks),
        tuple(
            _aim(known, bar, before, start)
            for bar, before in ((0.90, ""), (0.95, "stretch: "))
            for start in (LEARNED, WRITTEN)
        ),
        drawing(known, best_places(known)) if responses else None,
        known.seen,
        {"q4-ceilings": (_ceilings(known), _ppgn(known))},
    )


_WORDS = (
    "In brackets the worst and the best run. Each run's weights are those that are best on the "
    "validation image; *best step* is the median step after which they were, `+` where that is the "
    "last one there was. Chebyshev start: the weights begin as Chebyshev polynomials of two "
    "Laplacians of the grid, one of which lets border pixels keep their own value, in 8 channels "
    "of C, and the read-out as a ridge fit to the training image. The validation image chose the "
    "strength of that fit among six and, for band-pass with six layers, two numbers of the "
    "Laplacians among twelve pairs. It has the paper's equations and learns no bias in the update "
    "of C. Read-out solved first: the same fit over random layers, 8 channels of C. Where step 0 "
    "is best, training added "
    "nothing (and all runs with a Chebyshev start are one): such a number says what the network "
    "can represent, not what gradient descent found in it."
)


def _places() -> Iterator[Place]:
    """Every network the full budget asks for: G²N² first, then as they are listed there."""
    networks = BUDGETS["full"].networks
    names = sorted(dict.fromkeys(n.name for n in networks), key=lambda name: "G2N2" not in name)
    for name in names:
        yield from (
            (name, layers) for layers in sorted(n.layers for n in networks if n.name == name)
        )


def _standing(known: Known, name: str, place: Place) -> Standing | None:
    return known.get(f"{name}/{place[0]}/layers-{place[1]}")


def _score(known: Known, name: str, place: Place) -> float | None:
    standing = _standing(known, name, place)
    found = standing.mean(MEDIAN) if standing else None
    return found.value if found else None


def _entry(known: Known, name: str, place: Place) -> Entry:
    standing, score = _standing(known, name, place), _score(known, name, place)
    if standing is None or score is None:
        return Entry(EMPTY)
    ends = [standing.mean(metric) for metric in (WORST, BEST)]
    between = "–".join(_r2(end.value) for end in ends if end is not None)
    return Entry(f"{_r2(score)} ({between}){mark(standing)}", score)


_r2 = fixed(4)


def _runs(known: Known, place: Place) -> str:
    """What stands behind a row: `10; at most 400 steps at rate 0.005`, or `– / 10 / 1 of 10; …`."""
    standings = [_standing(known, name, place) for name in FILTERS]
    records = [record for standing in standings if standing for record in standing.records]
    if not records:
        return EMPTY
    behind = [_behind(standing) if standing else EMPTY for standing in standings]
    done = behind[0] if len(set(behind)) == 1 else " / ".join(behind)
    steps = _each(
        [
            f"{max(record.config.get('steps', 0) for record in one.records):,}" if one else EMPTY
            for one in standings
        ]
    )
    rates = ", ".join(dict.fromkeys(f"{record.config.get('rate', EMPTY)}" for record in records))
    dead = sum(run.get("died", False) for r in records for run in r.detail.get("runs", ()))
    died = f"; {dead} died" if dead else ""
    return f"{done}; at most {steps} steps at rate {rates}{died}"


def _each(texts: list[str]) -> str:
    """What is said of each filter, once where it is the same for all that were run."""
    said = {text for text in texts if text != EMPTY} or {EMPTY}
    return said.pop() if len(said) == 1 else " / ".join(texts)


def _behind(standing: Standing) -> str:
    """How many runs: `10`, or `1 of 10, partial, earlier settings`."""
    done, planned = (sum(getattr(r, n) for r in standing.records) for n in ("done", "planned"))
    of = f" of {planned}" if standing.stopped else ""
    return f"{done}{of}{standing.caveats}"


def _best_step(known: Known, place: Place) -> str:
    """The median best step of each filter's runs: `120 / 400+ / 0`."""
    texts = []
    for name in FILTERS:
        standing = _standing(known, name, place)
        runs = [run for r in standing.records for run in r.detail["runs"]] if standing else []
        if not standing or not runs:
            texts.append(EMPTY)
            continue
        middle = round(median(run["best_step"] for run in runs))
        last = max(r.config.get("steps", 0) for r in standing.records)
        texts.append(f"{middle:,}" + ("+" if middle == last else ""))
    return " / ".join(texts)


def _networks(known: Known) -> Table:
    table = cited("filters")
    rows: list[tuple[str, str, list[Entry], tuple[str, str, str]]] = []
    for name, cells in table.rows.items():
        published = [Entry(cells[f].text, cells[f].value) for f in FILTERS]
        rows.append((f"{name}, cited", "3" if name == "G²N²" else "", published, ("", "", "10")))
    for place in _places():
        entries = [_entry(known, name, place) for name in FILTERS]
        behind = _best_step(known, place), _parameters(known, place), _runs(known, place)
        rows.append((SAID.get(place[0], place[0]), str(place[1]), entries, behind))
    columns = [bold(column, "higher") for column in zip(*(row[2] for row in rows), strict=True)]
    lines = (
        (name, layers, *texts, *behind)
        for (name, layers, _, behind), *texts in zip(rows, *columns, strict=True)
    )
    passed = (f"{name}-pass R²" for name in FILTERS)
    steps = "best step, low / high / band"
    headers = ("network", "layers", *passed, steps, "parameters", "runs of each filter")
    return Table(headers, tuple(lines))


def _parameters(known: Known, place: Place) -> str:
    found = [_standing(known, name, place) for name in FILTERS]
    sizes = [one.mean("parameters") if one else None for one in found]
    return _each([f"{size.value:,.0f}" if size else EMPTY for size in sizes])


def _ceilings(known: Known) -> Table:
    standing = known.get("ceilings")
    rows: list[Row] = []
    for said, metric in CEILINGS.items():
        found = [standing.mean(f"{name}: {metric}") if standing else None for name in FILTERS]
        rows.append((said, [entry(one, _r2) for one in found]))
    return plain(("linear filter", *(f"{name}-pass R²" for name in FILTERS)), rows)


def _ppgn(known: Known) -> Table:
    table = cited("filters")
    published = [Entry(table.at("PPGN", name).text) for name in FILTERS]
    ours = {
        said: [_entry(known, name, (network, 3)) for name in FILTERS]
        for said, network in (("ours", "PPGN"), ("ours, blocks of G²N²", "PPGN-alike"))
    }
    headers = ("PPGN", *(f"{name}-pass R²" for name in FILTERS))
    return plain(headers, [("cited", published), *ours.items()])


def _never_better(standing: Standing) -> bool:
    """Whether no run was better at any later step than at its start."""
    runs = [run for record in standing.records for run in record.detail.get("runs", ())]
    return bool(runs) and all(run["best_step"] == 0 for run in runs)


def best_places(known: Known) -> dict[str, Place]:
    """For each network the depth that is best at band-pass, as far as it was run."""
    best: dict[str, tuple[tuple[bool, float], Place]] = {}
    for place in _places():
        scores = [_score(known, name, place) for name in reversed(FILTERS)]
        score = next((one for one in scores if one is not None), None)
        if score is None:
            continue
        worth = (scores[0] is not None, score)
        if place[0] not in best or worth > best[place[0]][0]:
            best[place[0]] = (worth, place)
    return {SAID.get(name, name): place for name, (_, place) in best.items()}


def _aim(known: Known, bar: float, before: str, start: str) -> Aim:
    table = cited("filters")
    floors = {name: (table.at("G²N²", name).value or 0) - LOST for name in ("low", "high")}
    text = (
        f"{before}band-pass R² of G²N², {start}, at least {bar:.2f}, low- and high-pass within "
        f"{LOST} of the paper's"
    )
    whole, open_yet = [], False
    for place in _places():
        scores = {name: _score(known, name, place) for name in FILTERS}
        own = place[0] == "G2N2-chebyshev" if start == WRITTEN else place[0] not in NOT_RANDOM
        if "G2N2" in place[0] and own and scores["band"] is not None:
            kept = [(s, scores[name]) for name, s in floors.items()]
            fine = all(score is not None and score >= floor for floor, score in kept)
            may_be = all(score is None or score >= floor for floor, score in kept)
            open_yet = open_yet or (may_be and not fine and scores["band"] >= bar)
            whole.append((fine, scores["band"], place, scores))
    if not whole:
        return Aim(text, EMPTY, None)
    _, _, place, scores = max(whole, key=lambda row: row[:2])
    standings = [_standing(known, name, place) for name in FILTERS]
    said = ", ".join(
        f"{name} {_r2(score) + mark(standing) if score is not None and standing else EMPTY}"
        for (name, score), standing in zip(scores.items(), standings, strict=True)
    )
    met = any(fine and score >= bar for fine, score, *_ in whole)
    solved = standings[-1] is not None and _never_better(standings[-1])
    if solved:
        said += " (start chosen by the validation image, read-out solved; at band-pass training "
        said += "added nothing)"
    found = f"{SAID.get(place[0], place[0])}, {place[1]} layers: {said}"
    # Where band-pass alone misses the bar, the others decide nothing.
    deciding = standings if met or (scores["band"] or 0.0) >= bar else standings[-1:]
    partial = any(standing is not None and standing.partial for standing in deciding)
    return Aim(text, found, None if open_yet and not met else met, partial)
