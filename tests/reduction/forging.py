"""Writing certificates as an attacker would: the digest fits, and so do the bijections if they can."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from g2n2.errors import SortError
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar, Level
from g2n2.language.parsing import CONSTANTS, parse
from g2n2.language.patterns import Assumption, canonical_with_order, collapsed, pattern_of
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import Leaf, Term
from g2n2.reduction.certificates import certificate, digest
from g2n2.reduction.invariants import Claim, Form, Obligation, obligations, transpose_obligations
from g2n2.reduction.reduce import reduce
from g2n2.reduction.simulation import combined

Json = Any
Place = tuple[str | int, ...]
"""Where a value stands in a certificate: the keys that lead to it."""

CERTIFICATES = ["L1", "L3", "L3 in the paper's order", "L3 Tr × + f", "the alternative of L3"]
SORTS = {"s": S, "v": V, "w": V, "u": V, "r": R, "m": M}
NAMES: dict[str, Term] = {
    **CONSTANTS,
    "x": Leaf("x", V),
    "C": Leaf("C", M),
    **{f"{a}{i}": Leaf(f"{a}{i}", sort) for a, sort in SORTS.items() for i in range(3)},
}


@cache
def written(name: str) -> str:
    """A true certificate as the text of its file: a fragment's, or one of CERTIFICATES."""
    grammar = Fragment("L3" if "paper" in name or "alternative" in name else name).exhaustive()
    if "alternative" in name:
        (other,) = reduce(grammar).alternatives
        return json.dumps(certificate(grammar, other.grammar, other.links))
    order: Any = "paper" if "paper" in name else "direct"
    reduction = reduce(grammar, order=order, alternatives=False)
    return json.dumps(certificate(grammar, reduction.reduced, reduction.links))


def valid(name: str) -> Json:
    """A fresh copy of a true certificate."""
    return json.loads(written(name))


def places(value: Json, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, the value itself first."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def look_up(content: Json, place: Place) -> Json:
    for key in place:
        content = content[key]
    return content


def changed(content: Json, place: Place, new: Json) -> Json:
    """The content with one value replaced; the rest is shared."""
    if not place:
        return new
    result = content.copy()
    result[place[0]] = changed(content[place[0]], place[1:], new)
    return result


class Claimed(NamedTuple):
    """How the attacker says an obligation is met; factors and words are joined by commas."""

    term: str
    factors: str = ""
    words: str = ""


def sealed(content: Json) -> Json:
    """The same content with a digest that fits."""
    return {**content, "digest": digest(content)}


def forge(
    larger: str | Grammar,
    smaller: str | Grammar,
    form: Form,
    claimed: Iterable[Claimed],
    assume: Assumption = "symmetric",
    level: Level = "graph",
    lemma: bool = False,
) -> Json:
    """A certificate with the obligations whose terms are claimed, in the order of the claims."""
    big, small = (Grammar.parse(g) if isinstance(g, str) else g for g in (larger, smaller))
    claim = Claim(big, small, form, assume, level)
    owed = [*(transpose_obligations(claim) if lemma else ()), *obligations(claim)]
    entries = []
    for said in claimed:
        obligation = next(o for o in owed if o.term == parse(said.term, NAMES))
        owed.remove(obligation)
        entries.append(_entry(obligation, said, form, assume))
    proof = {"form": form, "transpose_lemma": lemma, "obligations": entries}
    ends = {"from": list(map(str, big.all_rules)), "to": list(map(str, small.all_rules))}
    link = {"kind": "inclusion", "status": "checked", **ends, "assume": assume, "level": level}
    return sealed({"format": "g2n2 certificate 1", **ends, "links": [{**link, "proof": proof}]})


def lemma_link(larger: Iterable[str], smaller: Iterable[str], **fields: str) -> Json:
    """A certificate that cites the lemma on sums and functions, and nothing else."""
    ends = {"from": list(larger), "to": list(smaller)}
    lemma = "sums and pointwise functions are free"
    link = {"kind": "lemma", "lemma": lemma, "status": "cited", **ends, **fields}
    return sealed({"format": "g2n2 certificate 1", **ends, "links": [link]})


def _entry(obligation: Obligation, said: Claimed, form: Form, assume: Assumption) -> Json:
    factors, words = ([t.strip() for t in x.split(",") if t] for x in (said.factors, said.words))
    return {
        "kind": obligation.kind,
        "rule": str(obligation.rule),
        "choice": list(obligation.choice),
        "term": said.term,
        "factors": factors,
        "words": words,
        "bijection": _isomorphism(obligation.term, factors, words, form, assume),
    }


def _isomorphism(
    term: Term, factors: list[str], words: list[str], form: Form, assume: Assumption
) -> list[int]:
    """An isomorphism if there is one; otherwise any list, for something must be written."""
    parts = [[parse(text, NAMES) for text in texts] for texts in (factors, words)]
    try:
        left, right = pattern_of(term, assume), combined(*parts, term.sort, form, assume)
    except (KeyError, SortError):  # not the matrix its form says it is, or a sum
        return [0]
    if assume == "simple":
        left, right = collapsed(left), collapsed(right)
    (form_l, order_l), (form_r, order_r) = map(canonical_with_order, (left, right))
    if form_l != form_r:
        return list(range(left.vertices))
    place = {k: v for v, k in enumerate(order_r)}
    return [place[k] for k in order_l]
