"""The checker accepts what is true, refuses every edit that means something, and never raises.

Edits that may pass once the digest is made to fit, because the certificate still proves what it
says (`why_harmless`): another spelling or bracketing of a word, an equal word, another order of
factors or of obligations, another isomorphism, a form that differs only on matrices where there are
none, the transpose lemma where there are no matrix words, a stronger assumption, and a level that
owes the same obligations.
"""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

import g2n2
from g2n2.errors import G2N2Error
from g2n2.grammars.fragments import Fragment
from g2n2.language.parsing import CONSTANTS, parse, parse_body
from g2n2.language.patterns import ASSUMPTIONS, collapsed, equal, pattern_of
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import Leaf, Term
from g2n2.reduction.certificates import certificate, digest, read_certificate, write_certificate
from g2n2.reduction.checker import check
from g2n2.reduction.reduce import reduce
from g2n2.reduction.simulation import combined

Json = Any
Path_ = tuple[str | int, ...]

CERTIFICATES = ["L1", "L3", "L3 in the paper's order", "L3 Tr × + f", "the alternative of L3"]
OBLIGATIONS = dict(zip(CERTIFICATES, [24, 39, 61, 47, 63], strict=True))


@cache
def written(name: str) -> str:
    """A certificate as the text of its file."""
    fragment = "L3" if ("L3 " in name and "Tr" not in name) or "of L3" in name else name
    grammar = Fragment(fragment).exhaustive()
    if name == "the alternative of L3":
        (other,) = reduce(grammar).alternatives
        return json.dumps(certificate(grammar, other.grammar, other.links))
    order: Any = "paper" if "paper" in name else "direct"
    reduction = reduce(grammar, order=order, alternatives=False)
    return json.dumps(certificate(grammar, reduction.reduced, reduction.links))


def valid(name: str) -> Json:
    return json.loads(written(name))


def sealed(content: Json) -> Json:
    """The same with a digest that fits, as a forger would write it."""
    return {**content, "digest": digest(content)}


# --- what is true --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CERTIFICATES)
def test_true_certificates_are_accepted(name: str) -> None:
    verdict = check(valid(name))
    assert verdict.valid, verdict.failure
    assert verdict.failure == ""
    assert verdict.checked == OBLIGATIONS[name]
    assert len(verdict.cited) == ("f" in name.split())


def test_a_certificate_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "cert.json"
    write_certificate(valid("L3"), path)
    assert read_certificate(path) == valid("L3")
    assert check(read_certificate(path)).valid
    assert not list(tmp_path.glob("*.part"))


# --- every field, changed ------------------------------------------------------------------------


def paths(value: Json, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in a JSON value."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*at, key))


def look_up(content: Json, path: Path_) -> Json:
    for key in path:
        content = content[key]
    return content


def changed(content: Json, path: Path_, new: Json) -> Json:
    if not path:
        return new
    result = copy.copy(content)
    result[path[0]] = changed(content[path[0]], path[1:], new)
    return result


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


def all_mutations(content: Json, rng: Random, most: int) -> Iterator[tuple[Path_, Json]]:
    """Every place with mutations of it, all or at most so many; three of the pool for a string."""
    places = list(paths(content))
    strings = sorted({v for p in places if isinstance(v := look_up(content, p), str)})
    for path in places:
        old = look_up(content, path)
        found = mutations(old, rng.sample(strings, 3))
        real = [new for new in found if json.dumps(new) != json.dumps(old)]
        yield from ((path, new) for new in rng.sample(real, min(most, len(real))))


def refused(content: Json) -> bool:
    verdict = check(content)
    assert verdict.valid == (verdict.failure == "")
    return not verdict.valid


def check_mutations(
    name: str, share: float, most: int, judge: Callable[[Json, Path_, Json], None]
) -> int:
    """Judge a share of the mutations of a certificate; returns how many."""
    content, rng, done = valid(name), Random(1), 0
    for path, new in all_mutations(content, rng, most):
        if rng.random() < share:
            judge(content, path, new)
            done += 1
    return done


def is_caught(content: Json, path: Path_, new: Json) -> None:
    assert refused(changed(content, path, new)), (path, new)


def means_nothing_else(content: Json, path: Path_, new: Json) -> None:
    forged = changed(content, path, new)
    if not refused(sealed(forged) if isinstance(forged, dict) else forged):
        assert why_harmless(content, path, new), (path, look_up(content, path), new)


ALL = 1000


@pytest.mark.parametrize("judge", [is_caught, means_nothing_else])
@pytest.mark.parametrize("name", CERTIFICATES)
def test_some_fields_changed(name: str, judge: Callable[..., None]) -> None:
    assert check_mutations(name, 0.1 if name == "L1" else 0.025, ALL, judge) > 100


@pytest.mark.slow
@pytest.mark.parametrize("judge", [is_caught, means_nothing_else])
@pytest.mark.parametrize("name", CERTIFICATES)
def test_every_field_changed(name: str, judge: Callable[..., None]) -> None:
    most = ALL if name in ("L1", "L3") else 3
    assert check_mutations(name, 1, most, judge) > 2000


# --- what may pass, and why ----------------------------------------------------------------------

SORTS = {"s": S, "v": V, "w": V, "r": R, "m": M}
NAMES: dict[str, Term] = {
    **CONSTANTS,
    "x": Leaf("x", V),
    **{f"{a}{i}": Leaf(f"{a}{i}", sort) for a, sort in SORTS.items() for i in range(3)},
}


def why_harmless(content: Json, path: Path_, new: Json) -> str:
    """Why a certificate with this one change proves what it says; empty if it does not."""
    if path == ("digest",) or (not path and new.keys() | {"digest"} == content.keys()):
        return "the digest was made to fit"
    key, old = path[-1], look_up(content, path)
    where = key if isinstance(key, str) else path[-2]
    link = content["links"][path[1]] if len(path) > 1 else {}
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
        case "bijection" if is_isomorphism(content, path, new):
            return "another isomorphism"
        case "transpose_lemma" if new and not matrices(link, path, smaller=True):
            return "there are no matrix words"
        case "form" if {old, new} <= {"plain", "shape", "action"}:
            return "" if matrices(link, path, smaller=False) else "the forms agree but on matrices"
        case "assume" if ASSUMPTIONS.index(new) > ASSUMPTIONS.index(old):
            return "a stronger assumption"
        case "level":
            forms = {link[part]["form"] for part in ("proof", "converse")}
            return "the same obligations are owed" if forms <= {"plain", "shape"} else ""
    return ""


def is_reordered(old: Json, new: Json) -> bool:
    return sorted(map(json.dumps, old)) == sorted(map(json.dumps, new))


def matrices(link: Json, path: Path_, smaller: bool) -> bool:
    """Whether one of the two grammars of a proof has rules of M."""
    end = "to" if smaller == (path[2] == "proof") else "from"
    return any(rule.startswith("M →") for rule in link[end])


def is_isomorphism(content: Json, path: Path_, new: Json) -> bool:
    """Whether a list of vertices carries an obligation's pattern onto its witness's."""
    link = content["links"][path[1]]
    form, entry = link[path[2]]["form"], look_up(content, path[: path.index("bijection")])
    bijection = new if path[-1] == "bijection" else changed(entry["bijection"], path[-1:], new)
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
    return boundary == right.boundary and moved(left.edges, bijection) == moved(right.edges, unmoved)


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


@pytest.mark.parametrize(("name", "path", "new", "passes"), HARMLESS)
def test_harmless_edits(name: str, path: Path_, new: Json, passes: bool) -> None:
    assert check(sealed(changed(valid(name), path, new))).valid == passes


def test_the_order_of_obligations_and_factors_may_change() -> None:
    content = valid("L3")
    proof = content["links"][0]["proof"]
    proof["obligations"].reverse()
    for entry in proof["obligations"]:
        entry["factors"].reverse()
    assert content != valid("L3")
    assert check(sealed(content)).valid


# --- garbage -------------------------------------------------------------------------------------


def nested(depth: int, inner: Json = 0) -> Json:
    for _ in range(depth):
        inner = [inner]
    return inner


GARBAGE: list[Json] = [
    None, True, 0, -1.5, 10**400, "", "g2n2 certificate 1", [], [[]], {}, {"format": None},
    nested(3000), {"a": nested(3000)}, {1: 2}, {None: None}, float("nan"), float("inf"),
    {"format": "g2n2 certificate 1"},
]  # fmt: skip

VALUES: list[Json] = [
    None, True, 0, 10**400, -(10**5000), 1e308, float("nan"), "", " ", "→", "M → M", "M → ",
    "M → MMM | A", "S → A", "V_c → u0", "V → 1", "M → " + "M" * 40, "M → " + "(" * 500, "M → C_999A",
    "ᵀ" * 300, "\ud800", "\x00", "M → f(M)", "M → A + A", "M → J", "S → 1.0", "S → 2×S", "u0", "s19",
    [], [[]], [None], {}, {"form": {}}, nested(3000), ["M → A"] * 50, [0] * 1000, ["A" * 3000],
]  # fmt: skip


@pytest.mark.parametrize("content", GARBAGE, ids=lambda c: type(c).__name__)
def test_garbage_is_refused(content: Json) -> None:
    assert refused(content)


@pytest.mark.parametrize("name", ["L1", "L3 Tr × + f"])
def test_garbage_in_any_field_is_refused(name: str) -> None:
    """Each value in places of each kind, also where a digest cannot be made."""
    content = valid(name)
    first: dict[Path_, Path_] = {}
    for path in paths(content):
        first.setdefault(tuple(k if isinstance(k, str) else 0 for k in path), path)
    for path in first.values():
        for new in VALUES:
            if (type(new), new) == (type(old := look_up(content, path)), old):
                continue
            forged = changed(content, path, new)
            with suppress(ValueError, RecursionError, TypeError):
                forged = sealed(forged)
            if not refused(forged):
                assert why_harmless(content, path, new), (path, new)


def test_an_empty_chain_proves_that_a_grammar_is_itself_and_nothing_else() -> None:
    empty = {"format": "g2n2 certificate 1", "from": ["M → A"], "to": ["M → A"], "links": []}
    assert check(sealed(empty)).valid
    for end in (["M → AA"], [], 5, "M → A", ["M → "]):
        assert refused(sealed({**empty, "to": end}))
        assert refused(sealed({**empty, "from": end}))
    for both in (5, "M → A", ["nonsense"], [5], None):
        assert refused(sealed({**empty, "from": both, "to": both}))


def hard_words(text: str, *rules: str) -> Json:
    """A certificate for M → A with this word, by a grammar of these rules."""
    entry = {
        "kind": "simulate", "rule": "M → A", "choice": [], "term": "A",
        "factors": [], "words": [text], "bijection": [0, 1],
    }  # fmt: skip
    proof = {"form": "plain", "transpose_lemma": False, "obligations": [entry]}
    ends = {"from": ["M → A"], "to": list(rules)}
    link = {"kind": "inclusion", "status": "checked", **ends, "assume": "none", "level": "pair"}
    chain = [{**link, "proof": proof}]
    return sealed({"format": "g2n2 certificate 1", **ends, "links": chain})


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("C" + "ᵀ" * 190, ("M → Mᵀ", "M → (Mᵀ)ᵀ", "M → ((Mᵀ)ᵀ)ᵀ")),  # many ways to take it apart
        ("C" * 190, ("M → MM", "M → (MM)M", "M → ((MM)M)M", "M → A")),
        ("C", ("M → M",)),
        ("A", ("M → " + "(M⊙M)" * 20, "M → " + "M" * 15)),
    ],
)
def test_words_that_are_hard_to_take_apart_are_refused_at_once(
    text: str, rules: tuple[str, ...]
) -> None:
    assert refused(hard_words(text, *rules))
    assert check(hard_words("Aᵀᵀ", "M → Mᵀ", "M → A")).valid


# --- independence --------------------------------------------------------------------------------


def imports(module: str) -> set[str]:
    """Our own modules a module names in its import statements, dotted, from g2n2 down."""
    file = Path(g2n2.__file__).parent / Path(*module.split(".")).with_suffix(".py")
    package = module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.removeprefix("g2n2.") for a in node.names if a.name.startswith("g2n2")}
        elif isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            found.add(".".join([*above, *filter(None, [node.module])]))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("g2n2"):
            found.add((node.module or "").removeprefix("g2n2").lstrip("."))
    return found


def test_the_checker_imports_terms_and_parsing_only() -> None:
    """Whatever files it is split into, it names no module of the search and no pattern of ours."""
    own, outside = {"reduction.checker"}, set[str]()
    waiting = ["reduction.checker"]
    while waiting:
        for module in imports(waiting.pop()) - own - outside:
            if module in ("reduction.judge", "reduction.slots"):
                own.add(module)
                waiting.append(module)
            else:
                outside.add(module)
    assert outside == {"errors", "language.parsing", "language.sorts", "language.terms"}


def test_the_search_for_imports_sees_them() -> None:
    assert "reduction.forms" in imports("reduction.reduce")
    assert "language.patterns" in imports("reduction.goals")
    assert issubclass(G2N2Error, Exception)
