"""Every field of a certificate changed: the digest tells, and so does the mathematics without it.

Edits that may pass once the digest is made to fit, because the certificate still proves what it
says (`why_harmless`): another spelling or bracketing of a word, an equal word, another order of
factors or of obligations, another isomorphism, a form that differs only on matrices where there are
none, the transpose lemma where there are no matrix words, a stronger assumption, and a level that
owes the same obligations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from g2n2.language.parsing import parse, parse_body
from g2n2.language.patterns import ASSUMPTIONS, collapsed, equal, pattern_of
from g2n2.reduction.checker import check
from g2n2.reduction.simulation import combined
from reduction.forging import (
    CERTIFICATES,
    NAMES,
    Json,
    Place,
    changed,
    look_up,
    places,
    sealed,
    valid,
)


def mutations(value: Json, pool: list[str]) -> Iterator[Json]:
    """Other values for one place; the pool holds strings found elsewhere in the certificate."""
    match value:
        case bool():
            yield from (not value, int(value), None)
        case int():
            yield from (value + 1, value - 1, float(value), str(value), None, 10**30)
        case str():
            yield from (value + " ", value[:-1], value.replace("ᵀ", ""), "", None, 0, [value])
            yield from pool
        case list():
            yield from ([], value[1:], value[:-1], value + value[:1], value[::-1], [None])
            yield from (None, {}, "", 1)
        case dict():
            yield from ({k: v for k, v in value.items() if k != gone} for gone in value)
            yield from ({**value, "note": ""}, {}, [], None, list(value.values()))


def all_mutations(content: Json, rng: Random, most: int) -> Iterator[tuple[Place, Json]]:
    """Every place with mutations of it, all or at most so many; three of the pool for a string."""
    found_at = list(places(content))
    strings = sorted({v for p in found_at if isinstance(v := look_up(content, p), str)})
    for place in found_at:
        old = look_up(content, place)
        found = mutations(old, rng.sample(strings, 3))
        real = [new for new in found if json.dumps(new) != json.dumps(old)]
        yield from ((place, new) for new in rng.sample(real, min(most, len(real))))


def refused(content: Json) -> bool:
    verdict = check(content)
    assert verdict.valid == (verdict.failure == "")
    return not verdict.valid


def check_mutations(
    name: str, share: float, most: int, judge: Callable[[Json, Place, Json], None]
) -> int:
    """Judge a share of the mutations of a certificate; returns how many."""
    content, rng, done = valid(name), Random(1), 0
    for place, new in all_mutations(content, rng, most):
        if rng.random() < share:
            judge(content, place, new)
            done += 1
    return done


def is_caught(content: Json, place: Place, new: Json) -> None:
    assert refused(changed(content, place, new)), (place, new)


def means_nothing_else(content: Json, place: Place, new: Json) -> None:
    forged = changed(content, place, new)
    if not refused(sealed(forged) if isinstance(forged, dict) else forged):
        assert why_harmless(content, place, new), (place, look_up(content, place), new)


ALL = 1000


@pytest.mark.parametrize(
    ("name", "judge"), [("L1", is_caught), *((name, means_nothing_else) for name in CERTIFICATES)]
)
def test_some_fields_changed(name: str, judge: Callable[..., None]) -> None:
    assert check_mutations(name, 0.05 if name == "L1" else 0.006, ALL, judge) > 25


@pytest.mark.slow
@pytest.mark.parametrize("name", CERTIFICATES)
def test_many_fields_changed(name: str) -> None:
    """All changes of every field of a small certificate, one of every fifth of the larger ones."""
    share, most, least = (1, ALL, 2000) if name == "L1" else (0.2, 1, 80)
    assert check_mutations(name, share, most, means_nothing_else) > least


# --- what may pass, and why ----------------------------------------------------------------------


def why_harmless(content: Json, place: Place, new: Json) -> str:
    """Why a certificate with this one change proves what it says; empty if it does not."""
    if place == ("digest",) or (not place and new.keys() | {"digest"} == content.keys()):
        return "the digest was made to fit"
    key, old = place[-1], look_up(content, place)
    where = key if isinstance(key, str) else place[-2]
    link = content["links"][place[1]] if len(place) > 1 else {}
    match where:
        case "rule" if parse_body(new.partition("→")[2]) == parse_body(old.partition("→")[2]):
            return "another spelling of the rule"
        case "term" if parse(new, NAMES) == parse(old, NAMES):
            return "another spelling of the term"
        case "obligations" if is_reordered(old, new):
            return "another order of obligations"
        case "factors" if isinstance(new, list) and is_reordered(old, new):
            return "another order of factors"
        case "factors" | "words" if isinstance(new, str):
            same = equal(parse(old, NAMES), parse(new, NAMES), link["assume"])
            return "an equal word" if same else ""
        case "bijection" if is_isomorphism(content, place, new):
            return "another isomorphism"
        case "transpose_lemma" if new and not matrices(link, place, smaller=True):
            return "there are no matrix words"
        case "form" if {old, new} <= {"plain", "shape", "action"}:
            return "" if matrices(link, place, smaller=False) else "the forms agree but on matrices"
        case "assume" if ASSUMPTIONS.index(new) > ASSUMPTIONS.index(old):
            return "a stronger assumption"
        case "level":
            forms = {link[part]["form"] for part in ("proof", "converse")}
            return "the same obligations are owed" if forms <= {"plain", "shape"} else ""
    return ""


def is_reordered(old: Json, new: Json) -> bool:
    return sorted(map(json.dumps, old)) == sorted(map(json.dumps, new))


def matrices(link: Json, place: Place, smaller: bool) -> bool:
    """Whether one of the two grammars of a proof has rules of M."""
    end = "to" if smaller == (place[2] == "proof") else "from"
    return any(rule.startswith("M →") for rule in link[end])


def is_isomorphism(content: Json, place: Place, new: Json) -> bool:
    """Whether a list of vertices carries an obligation's pattern onto its witness's."""
    link = content["links"][place[1]]
    form, entry = link[place[2]]["form"], look_up(content, place[: place.index("bijection")])
    bijection = new if place[-1] == "bijection" else changed(entry["bijection"], place[-1:], new)
    term = parse(entry["term"], NAMES)
    factors, words = ([parse(t, NAMES) for t in entry[k]] for k in ("factors", "words"))
    left = pattern_of(term, link["assume"])
    right = combined(factors, words, term.sort, form, link["assume"])
    if link["assume"] == "simple":
        left, right = collapsed(left), collapsed(right)
    if sorted(bijection) != list(range(right.vertices)):
        return False

    def moved(edges: Any, place: list[int]) -> list[tuple[str, tuple[int, ...]]]:
        ends = [(e, tuple(place[v] for v in e.ends)) for e in edges]
        return sorted((e.label, tuple(sorted(x)) if e.symmetric else x) for e, x in ends)

    unmoved = list(range(right.vertices))
    boundary = tuple(bijection[v] for v in left.boundary)
    return boundary == right.boundary and moved(left.edges, bijection) == moved(
        right.edges, unmoved
    )


HARMLESS = [
    ("L3", ("links", 0, "proof", "obligations", 4, "rule"), "S  → (V_r)·(V_c)", False),
    ("L3", ("links", 0, "proof", "obligations", 4, "rule"), "S → (V_r)·(V_c)", True),
    ("L3", ("links", 0, "proof", "obligations", 23, "term"), "(s0×m0)·(s1 × m1)", True),
    ("L3", ("links", 0, "proof", "obligations", 23, "words", 0), "m0·m1", True),
    ("L3", ("links", 0, "assume"), "simple", True),
    ("L3", ("links", 0, "assume"), "none", False),
    ("L3", ("links", 0, "level"), "pair", True),
    ("L1", ("links", 0, "level"), "node", True),
    ("L1", ("links", 0, "level"), "pair", False),
    ("the alternative of L3", ("links", 0, "level"), "node", False),
    ("the alternative of L3", ("links", 0, "assume"), "symmetric", False),
    ("L1", ("links", 0, "proof", "transpose_lemma"), True, True),
    ("L3", ("links", 0, "proof", "transpose_lemma"), False, False),
    ("L1", ("links", 0, "converse", "form"), "shape", True),
    ("L3", ("links", 0, "converse", "form"), "shape", False),
    ("L3", ("links", 0, "proof", "form"), "plain", False),
]


@pytest.mark.parametrize(("name", "place", "new", "passes"), HARMLESS)
def test_harmless_edits(name: str, place: Place, new: Json, passes: bool) -> None:
    assert check(sealed(changed(valid(name), place, new))).valid == passes


def test_the_order_of_obligations_and_factors_may_change() -> None:
    content = valid("L3")
    proof = content["links"][0]["proof"]
    proof["obligations"].reverse()
    for entry in proof["obligations"]:
        entry["factors"].reverse()
    assert content != valid("L3")
    assert check(sealed(content)).valid
