"""The independent checker where sums over one mark bring columns and matrices out of it.

Two kinds of proof. In the first (`sums` is `all`) every word of the larger grammar is a product of
sentences of the smaller one times a word of it, or an outer product of two of its columns:

* inside the mark by the simulation inside, where the mark is a column z, 1 is Σz. z (`unit`), and
  the smaller grammar's rules outside stand inside too. What a plain rule outside makes has no z,
  and comes back by `return`: v₀ = Σz. w and m₀ = Σz. m for words w and m with z;
* under a sum, factors without z leave it. The others are one uᵀz by `reroot` and `merge`, see
  `marked_checker`. If z occurs in the word, uᵀz goes into it: (uᵀz)z is a word by `absorb`, and a
  rule is linear in each of its variables; an outer product takes it into one of its columns.
  Otherwise Σz. uᵀz is a sentence by `sum`, since a sentence of one variable takes sums of it, and
  Σz. 1 by `count`. What is left is one of V → Σv. V′, M → Σv. M′ and M → Σv. V′V′ᵀ;
* the transpose lemma also speaks of sums, which is `turn`, and of words from outside, by induction.

In the second (with `outside`) every word is itself a word of the smaller grammar, at each scope.
Part of the independent checker; it shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..language.sorts import M, R, S, Sort, V
from ..language.terms import ONE, Hole, Leaf, MarkSum, Term, apply, holes, leaves, mark_sum
from .checker_patterns import SlotGraph, require
from .marked_checker import Laws, mark_names, owed_laws, require_plain, unprimed
from .obligation_checker import (
    MARK_RULE,
    Judge,
    Key,
    Rule,
    keys,
    opaque_leaf,
    read_entries,
    read_term,
)

_Z = Leaf("z", V)
_V1, _M1 = V.within(1), M.within(1)
_PROOF_KEYS = {"form", "transpose_lemma", "obligations"}


def check_full(
    larger: list[Rule],
    smaller: list[Rule],
    proof: Any,
    assume: str,
    declared: dict[str, str],
    where: str,
) -> int:
    """Check a proof for sums of all sorts; how many obligations hold."""
    keys(proof, {"inside", "laws", "sums"}, where)
    require(proof["sums"] == "all", f"{where}: unknown sums")
    inside = proof["inside"]
    keys(inside, _PROOF_KEYS, f"{where}, inside")
    require(inside["form"] in ("plain", "shape"), f"{where}: this form says nothing of sums")
    lemma = inside["transpose_lemma"]
    require(isinstance(lemma, bool), f"{where}: transpose_lemma")
    big = _larger_inside(larger, where)
    small = _smaller_inside(smaller, inside["form"] == "shape", where)
    judge = Judge(big, small, inside["form"], assume, lemma, declared)
    total = judge.check_all(inside["obligations"], "graph", f"{where}, inside")
    laws = _FullLaws(Judge(small, small, "plain", assume, lemma, declared))
    owed = dict(_owed(small, lemma, where))
    return total + read_entries(proof["laws"], owed, laws.check, f"{where}, laws")


def _larger_inside(rules: list[Rule], where: str) -> list[Rule]:
    """The rules without primes, lifts and sums."""
    names = mark_names(rules, where)
    require(len(names) <= 1, f"{where}: two marks")
    inside: dict[Rule, None] = {}
    for head, body in rules:
        marks = names[: head.scope]
        if isinstance(body, MarkSum):
            require(not head.scope, f"{where}: a sum inside a mark")
            marks, body = names, body.body
        require_plain(body, where)
        if not isinstance(body, Hole):
            inside[head.plain, unprimed(body, marks, 1)] = None
    return list(inside)


def _smaller_inside(rules: list[Rule], outer: bool, where: str) -> list[Rule]:
    """The rules inside the mark, 1, and the sentences; nothing else may be there."""
    names = mark_names(rules, where)
    require(len(names) == 1, f"{where}: one mark is expected")
    (mark,) = names
    sums = {(V, MarkSum(mark, Hole(_V1))), (M, MarkSum(mark, Hole(_M1)))}
    outer_sum = (M, MarkSum(mark, Hole(_V1) @ Hole(_V1).T))
    lifts = {(_V1, Hole(V)), (_M1, Hole(M))}
    needed = sums | lifts | ({outer_sum} if outer else set())
    require(needed <= set(rules), f"{where}: a sum or a lift is missing")
    inside: dict[Rule, None] = {(V, ONE): None}
    outside: list[Rule] = []
    for rule in rules:
        head, body = rule
        if rule in sums | lifts | {outer_sum}:
            continue
        require(head in (S, V, M, _V1, _M1), f"{where}: a variable of another sort")
        require_plain(body, where)
        require(all(h.scope == head.scope for h in holes(body)), f"{where}: scopes are mixed")
        plain = head.plain, unprimed(body, names[: head.scope], 1)
        if head == S:
            sorts = holes(body)
            require(len(sorts) == 1 and sorts[0] in (V, M), f"{where}: {body} has no one variable")
        if head.scope or head == S or not holes(body):
            inside[plain] = None
        else:
            outside.append(plain)
        require(plain == MARK_RULE or _Z not in leaves(plain[1]), f"{where}: the mark in {body}")
    require(MARK_RULE in inside, f"{where}: the mark is no word")
    require(set(outside) <= inside.keys(), f"{where}: a rule outside does not stand inside")
    return list(inside)


def _owed(small: list[Rule], lemma: bool, where: str) -> Iterator[tuple[Key, Term]]:
    """The laws, by key, with the term each is about."""
    v, w, m = opaque_leaf(V, 0), opaque_leaf(V, 1), opaque_leaf(M, 0)
    yield ("unit", MARK_RULE, ()), ONE
    yield from (law for law in owed_laws(small, True, where) if law[0][0] != "return")
    yield ("absorb", MARK_RULE, ()), _at_every_mark(apply("scale", v.T @ _Z, _Z))
    yield ("return", MARK_RULE, ("V",)), v
    yield ("return", MARK_RULE, ("M",)), m
    if lemma:
        yield ("turn", MARK_RULE, ("m",)), mark_sum("z", m).T
        yield ("turn", MARK_RULE, ("vwᵀ",)), mark_sum("z", v @ w.T).T


class _FullLaws(Laws):
    """Checks what is said to meet a law."""

    def check(self, entry: dict[str, Any], term: Term, name: str) -> None:
        kind, choice = entry["kind"], tuple(entry["choice"])
        if kind not in ("unit", "turn", "absorb", "return"):
            super().check(entry, term, name)
            return
        require(not entry["factors"], f"{name}: no factor may be split off here")
        words = [read_term(text) for text in entry["words"]]
        require(len(words) == (kind in ("absorb", "return")), f"{name}: wrong number of words")
        for word in words:
            sort: Sort = V if kind == "absorb" else term.sort
            derivable = word.sort == sort and self.judge.is_word(word, sort)
            require(derivable, f"{name}: {word} is no word")
        v, w, m = opaque_leaf(V, 0), opaque_leaf(V, 1), opaque_leaf(M, 0)
        match kind:
            case "unit":
                right = mark_sum("z", _Z)
            case "turn":
                right = mark_sum("z", m.T if choice == ("m",) else w @ v.T)
            case "absorb":
                right = _at_every_mark(words[0])
            case _:
                right = mark_sum("z", words[0])
        left, other = (SlotGraph(self.judge.assume, self.judge.declared) for _ in range(2))
        left.boundary, other.boundary = left.build(term), other.build(right)
        require(left.matches(other, entry["bijection"]), f"{name}: the bijection is no isomorphism")


def _at_every_mark(column: Term) -> Term:
    """Equal for every column x iff the columns are equal wherever the mark is."""
    return mark_sum("z", apply("scale", Leaf("x", V).T @ _Z, column))


def check_words(
    larger: list[Rule],
    smaller: list[Rule],
    proof: Any,
    assume: str,
    declared: dict[str, str],
    where: str,
) -> int:
    """Check that every word is a word of the smaller grammar; how many obligations hold."""
    keys(proof, {"inside", "outside"}, where)
    names, marks = mark_names(larger, where), mark_names(smaller, where)
    require(len(marks) == 1 >= len(names), f"{where}: one mark is expected")
    owed: tuple[list[Rule], list[Rule]] = ([], [])
    present: tuple[list[Rule], list[Rule]] = ([], [])
    for head, body in larger:
        scope = head.scope
        if isinstance(body, MarkSum):
            total = head, MarkSum(marks[0], Hole(head.within(1)))
            require(total in smaller, f"{where}: a sum is missing")
            scope, body = scope + 1, body.body
        require(scope <= 1 and head.plain != R, f"{where}: two marks, or rows")
        require_plain(body, where)
        if isinstance(body, Hole):
            lifted = body.scope == scope or (head.plain.within(scope), body) in smaller
            require(lifted, f"{where}: a lift is missing")
            continue
        require(all(h.scope == scope for h in holes(body)), f"{where}: scopes are mixed")
        owed[scope].append((head.plain, unprimed(body, names[:scope], 1)))
    for head, body in smaller:
        if head.scope <= 1 and not isinstance(body, Hole | MarkSum):
            require_plain(body, where)
            if all(h.scope == head.scope for h in holes(body)):
                present[head.scope].append((head.plain, unprimed(body, marks[: head.scope], 1)))
    count = 0
    for scope, part in enumerate(("outside", "inside")):
        keys(proof[part], _PROOF_KEYS, f"{where}, {part}")
        exact = proof[part]["form"] == "exact" and proof[part]["transpose_lemma"] is False
        require(exact, f"{where}, {part}: words have to be words")
        rules = list(dict.fromkeys(owed[scope]))
        judge = Judge(rules, present[scope], "exact", assume, False, declared)
        count += judge.check_all(proof[part]["obligations"], "pair", f"{where}, {part}")
    return count
