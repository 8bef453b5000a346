"""The checker accepts what is true, names what fails, never raises, and shares no code of the search.

Single fields are changed in test_tampering, obligations judged one by one in test_judge, and false
reductions forged in test_forgery.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

import pytest

import g2n2
from g2n2 import derive
from g2n2.language.operations import BUILT_IN, OPERATIONS
from g2n2.reduction.certificates import read_certificate, write_certificate
from g2n2.reduction.checker import check
from g2n2.reduction.checker_patterns import SIGNATURES, WITHOUT_PATTERN
from reduction.forging import (
    CERTIFICATES,
    Json,
    Place,
    changed,
    look_up,
    places,
    sealed,
    valid,
)
from reduction.test_tampering import refused, why_harmless

OBLIGATIONS = dict(zip(CERTIFICATES, [24, 39, 61, 47, 63], strict=True))


# --- what is true --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CERTIFICATES)
def test_true_certificates_are_accepted(name: str) -> None:
    verdict = check(valid(name))
    assert verdict.valid, verdict.failure
    assert verdict.failure == ""
    assert verdict.checked == OBLIGATIONS[name]
    assert len(verdict.cited) == ("f" in name.split())


def test_the_table_of_the_checker_has_every_built_in_operation() -> None:
    """What it lacked would be refused, so that nothing using it could be removed."""
    built_in = {name: OPERATIONS[name] for name in BUILT_IN if name != "one"}
    contractions = {name: op.signature for name, op in built_in.items() if op.multilinear}
    assert contractions == SIGNATURES
    assert {*built_in} - {*contractions} == {*WITHOUT_PATTERN}


def test_a_chain_without_links_says_that_nothing_was_removed() -> None:
    derived = derive("· ᵀ", witnesses=False)
    assert derived.reduced == derived.exhaustive
    verdict = check(derived.certificate)
    assert (verdict.valid, verdict.checked) == (True, 0)
    assert verdict.claims == ("no rule was removed, so nothing had to be proved",)


def test_a_certificate_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "cert.json"
    write_certificate(valid("L3"), path)
    assert read_certificate(path) == valid("L3")
    assert check(read_certificate(path)).valid
    assert not list(tmp_path.glob("*.part"))


# --- edits that mean something, each with a digest that fits -------------------------------------

PROOF: Place = ("links", 0, "proof")
OWED: Place = (*PROOF, "obligations")


def entry(content: Json, term: str) -> int:
    """Which obligation of the first proof has this term."""
    return next(i for i, o in enumerate(look_up(content, OWED)) if o["term"] == term)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_obligations_deleted_doubled_foreign_and_mixed_up(name: str) -> None:
    content = valid(name)
    link = len(content["links"]) - 1
    for part in ("proof", "converse"):
        at: Place = ("links", link, part, "obligations")
        owed = look_up(content, at)
        others = look_up(valid("L1" if name != "L1" else "L3"), OWED)
        first, last = owed[0], owed[-1]
        assert first["rule"] != last["rule"]
        swapped = [{**first, "rule": last["rule"]}, {**last, "rule": first["rule"]}]
        for edited, fault in (
            (owed[1:], "is missing"),
            (owed[:-1], "is missing"),
            ([], "is missing"),
            ([*owed, last], "stands twice"),
            ([last, *owed], "stands twice"),
            ([*owed, *others], ""),
            ([*swapped, *owed[1:-1]], ""),
        ):
            verdict = check(sealed(changed(content, at, edited)))
            assert not verdict.valid
            assert fault in verdict.failure


def test_the_transpose_lemma_dropped() -> None:
    """The flag alone, its obligations alone, and both: then mᵀ is no word."""
    content = valid("L3")
    kept = [o for o in look_up(content, OWED) if o["kind"] != "transpose"]
    unflagged = changed(content, (*PROOF, "transpose_lemma"), False)
    assert "is not owed" in check(sealed(unflagged)).failure
    assert "is missing" in check(sealed(changed(content, OWED, kept))).failure
    assert "is no word" in check(sealed(changed(unflagged, OWED, kept))).failure


def test_the_first_failing_obligation_is_named() -> None:
    content = valid("L3")
    place = entry(content, "s0×m0(s1×m1)")
    verdict = check(sealed(changed(content, (*OWED, place, "words"), ["m1m0"])))
    assert verdict.failure == (
        "link 1, proof: simulate M → MM ['m', 'm']: the bijection is no isomorphism"
    )


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
    first: dict[Place, Place] = {}
    for place in places(content):
        if ("L3" in name and place[:2] == ("links", 1)) or "converse" in place[:-1]:
            continue  # a simulation as in L1, where one of its two proofs will do
        first.setdefault(tuple(k if isinstance(k, str) else 0 for k in place), place)
    for place in first.values():
        for new in VALUES:
            if (type(new), new) == (type(old := look_up(content, place)), old):
                continue
            forged = changed(content, place, new)
            with suppress(ValueError, RecursionError, TypeError):
                forged = sealed(forged)
            if not refused(forged):
                assert why_harmless(content, place, new), (place, new)


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


OWN_MODULES = {
    f"reduction.{x}"
    for x in ("checker_patterns", "full_marks_checker", "marked_checker", "obligation_checker")
}


def test_the_checker_imports_terms_and_parsing_only() -> None:
    """Whatever files it is split into, it names no module of the search and no pattern of ours."""
    own, outside = {"reduction.checker"}, set[str]()
    waiting = ["reduction.checker"]
    while waiting:
        for module in imports(waiting.pop()) - own - outside:
            if module in OWN_MODULES:
                own.add(module)
                waiting.append(module)
            else:
                outside.add(module)
    assert outside == {
        "errors",
        "language.operations",
        "language.parsing",
        "language.registry",
        "language.sorts",
        "language.terms",
    }


def test_the_search_for_imports_sees_them() -> None:
    assert "reduction.invariants" in imports("reduction.reduce")
    assert "language.patterns" in imports("reduction.proof_goals")
