"""The obligations of one simulation in a certificate: which are owed, and whether each is met.

Part of the independent checker; it shares no code with the search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any

from ..language.operations import OPERATIONS, Operation, registered_operations
from ..language.parsing import CONSTANTS, parse, parse_body
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import (
    ONE,
    Apply,
    Hole,
    Leaf,
    MarkSum,
    Term,
    apply,
    fill,
    holes,
    operators,
)
from .checker_patterns import SlotGraph, require

Rule = tuple[Sort, Term]
Key = tuple[str, Rule, tuple[str, ...]]
"""Kind, rule and choice of an obligation."""
_HEADS = {"S": S, "V_c": V, "V_r": R, "M": M}
_LETTERS = {"s": S, "v": V, "w": V, "u": V, "r": R, "m": M}
FUNCTIONS = frozenset(f"u{i}" for i in range(10))
"""Columns that stand for pointwise functions of columns."""
_NAMES: dict[str, Term] = {
    **CONSTANTS,
    **{name: Leaf(name, V) for name in "xyz"},
    **{name: Leaf(name, M) for name in "CD"},
    **{f"C_{i}": Leaf(f"C_{i}", M) for i in range(100)},
    **{f"{a}{i}": Leaf(f"{a}{i}", sort) for a, sort in _LETTERS.items() for i in range(20)},
}
MAX_CHOICES = 4096
MARK_RULE: Rule = (V, Leaf("z", V))
_RULE = re.compile(r"(S|V_c|V_r|M)(′|″|) → (.+)", re.DOTALL)
_OBLIGATION_KEYS = {"kind", "rule", "choice", "term", "factors", "words", "bijection"}


class Judge:
    """Checks the obligations of one direction of one link."""

    def __init__(
        self,
        larger: list[Rule],
        smaller: list[Rule],
        form: str,
        assume: str,
        lemma: bool,
        declared: Mapping[str, str] | None = None,
    ) -> None:
        self.larger, self.smaller = larger, smaller
        self.declared = declared
        self.form, self.assume, self.lemma = form, assume, lemma
        self.turns = False
        self.known: dict[tuple[Term, Sort], bool] = {}
        require(not (lemma and form == "exact"), "the exact form has no transpose lemma")

    @cached_property
    def of_lemma(self) -> Judge:
        return Judge(self.larger, self.smaller, "plain", self.assume, True, self.declared)

    def check_all(self, entries: list[dict[str, Any]], level: str, where: str) -> int:
        return read_entries(entries, dict(self.owed(level)), self.check_one, where)

    def owed(self, level: str) -> Iterator[tuple[Key, Term]]:
        """The obligations this direction owes, by key."""
        if self.lemma:
            for head, body in self.smaller:
                if head == M:
                    leaves = [opaque_leaf(sort, i) for i, sort in enumerate(holes(body))]
                    yield ("transpose", (head, body), ()), fill(body, list(leaves)).T
        reached = {S, *{"graph": (), "node": (V,), "pair": (V, M)}[level]}
        for _ in range(4):
            reached |= {h for head, body in self.larger if head in reached for h in holes(body)}
        rules = [rule for rule in self.larger if rule[0] in reached]
        if self.form == "exact":
            rules = [rule for rule in rules if rule not in self.smaller]
        used = {op for _, body in rules for op in operators(body)}
        self.turns = any(OPERATIONS[op].axes.turns for op in used)
        for head, body in rules:
            options = [self.shapes(sort, i) for i, sort in enumerate(holes(body))]
            require(prod(map(len, options)) <= MAX_CHOICES, f"{body} has too many variables")
            for names in product(*options):
                parts = [o[n] for o, n in zip(options, names, strict=True)]
                term = fill(body, parts)
                acts = head == M and self.form in ("action", "diagonal")
                if not (acts and self.form == "action"):
                    yield ("simulate", (head, body), names), term
                if acts:
                    probe = _NAMES["x"]
                    yield ("right", (head, body), names), term @ probe
                    if self.turns:
                        yield ("left", (head, body), names), term.T @ probe

    def shapes(self, sort: Sort, i: int) -> dict[str, Term]:
        """What a word of the larger grammar may look like under the form."""
        s, v, w, m = opaque_leaf(S, i), opaque_leaf(V, i), _NAMES[f"w{i}"], opaque_leaf(M, i)
        if self.form == "exact" or sort == S:
            leaf = opaque_leaf(sort, i)
            return {leaf.name[0]: leaf}
        if sort == M and self.form == "action":
            return {"m": m}
        shapes: dict[str, Term] = {"v": v} if sort == V else {"vᵀ": v.T} if sort == R else {"m": m}
        if sort == M and self.form in ("shape", "broadcast", "diagonal"):
            shapes["vwᵀ"] = v @ w.T
        return {name: apply("scale", s, shape) for name, shape in shapes.items()}

    def check_one(self, entry: dict[str, Any], term: Term, name: str) -> None:
        factors = [read_term(text) for text in entry["factors"]]
        words = [read_term(text) for text in entry["words"]]
        strict = self.form == "exact" or entry["kind"] == "transpose"
        # The lemma is about all words of the smaller grammar, so no invariant may be used for it.
        judge = self.of_lemma if entry["kind"] == "transpose" else self
        if strict:
            require(not factors, f"{name}: no factor may be split off here")
        for factor in factors:
            opaque = isinstance(factor, Leaf) and factor.name[0] == "s"
            require(opaque or self.is_word(factor, S), f"{name}: {factor} is no sentence")
        sort = term.sort
        stands_for = V if self.form not in ("broadcast", "diagonal") else M
        if strict:
            expected = [sort]
        elif sort == S:
            expected = []
        elif sort == M:
            two = self.form in ("shape", "broadcast", "diagonal") and len(words) == 2
            expected = [stands_for, stands_for] if two else [M]
        else:
            expected = [stands_for]
        require(len(words) == len(expected), f"{name}: wrong number of words")
        for word, wanted in zip(words, expected, strict=True):
            require(
                word.sort == wanted and judge.is_word(word, wanted), f"{name}: {word} is no word"
            )
        left = SlotGraph(self.assume, self.declared)
        left.boundary = left.build(term)
        right = SlotGraph(self.assume, self.declared)
        for factor in factors:
            right.build(factor)
        ends = [right.build(word) for word in words]
        if not strict and (sort != M or len(words) == 2):
            ends = [
                self.column(right, end, w.sort, name) for end, w in zip(ends, words, strict=True)
            ]
        right.boundary = tuple(v for end in ends for v in end)
        require(left.matches(right, entry["bijection"]), f"{name}: the bijection is no isomorphism")

    def column(
        self, graph: SlotGraph, ends: tuple[int, ...], sort: Sort, name: str
    ) -> tuple[int, ...]:
        """The column a word stands for: itself, or the one broadcast or on the diagonal."""
        if sort != M:
            return ends
        a, b = graph.find(ends[0]), graph.find(ends[1])
        if self.form == "diagonal":
            require(a == b, f"{name}: the word is not diagonal")
            return (a,)
        bare = all(b not in map(graph.find, slots) for _, slots in graph.edges)
        require(a != b and bare, f"{name}: the word is not a column times 1ᵀ")
        graph.hidden.add(b)
        return (a,)

    def is_word(self, term: Term, sort: Sort) -> bool:
        """Whether a term is a word of the smaller grammar over the opaque leaves."""
        key = term, sort
        if key not in self.known:
            derived = self.is_hypothesis(term, sort) or self.is_derived(term, sort)
            self.known[key] = derived or self.is_action(term, sort)
        return self.known[key]

    def is_derived(self, term: Term, sort: Sort) -> bool:
        for head, body in self.smaller:
            if head == sort:
                parts: list[tuple[Sort, Term]] = []
                if _matches(body, term, parts) and all(self.is_word(t, s) for s, t in parts):
                    return True
        return False

    def is_hypothesis(self, term: Term, sort: Sort) -> bool:
        if term.sort != sort:
            return False
        letter = term.name[0] if isinstance(term, Leaf) and term.name not in ("1",) else ""
        if self.form == "exact":
            return letter in ("s", "v", "r", "m") and isinstance(term, Leaf)
        if sort == M and self.form != "action":
            inner = term.args[0] if isinstance(term, Apply) and term.op == "transpose" else None
            if letter == "m":
                return True
            if inner is not None and self.lemma:
                return self.is_opaque_matrix(inner)
            return self.is_opaque_matrix(term)
        if sort == R:
            return letter == "r"
        return (
            sort == V
            and letter in ("v", "w", "x", "u")
            and self.form not in ("broadcast", "diagonal")
        )

    def is_opaque_matrix(self, term: Term) -> bool:
        """m itself, or the matrix that stands for an opaque column."""
        match term:
            case Leaf(name=name):
                return name[0] == "m"
            case Apply(op="matmul", args=(Leaf(name=name), Apply(op="transpose", args=(one,)))):
                return self.form == "broadcast" and name[0] in "vwx" and one == ONE
            case Apply(op="diag", args=(Leaf(name=name),)):
                return self.form == "diagonal" and name[0] in "vwx"
        return False

    def is_action(self, term: Term, sort: Sort) -> bool:
        """m·v and mᵀ·v in the action form; diag(m·(D1)), D diagonal, in the diagonal form."""
        if self.form == "diagonal" and sort == M:
            match term:
                case Apply(
                    op="diag", args=(Apply(op="matmul", args=(m, Apply(op="matmul", args=(d, o)))),)
                ):
                    graph = SlotGraph(self.assume, self.declared)
                    row, column = graph.build(d) if d.sort == M else (0, 1)
                    diagonal = d.sort == M and graph.find(row) == graph.find(column)
                    return o == ONE and self.acts(m) and diagonal and self.is_word(d, M)
        if self.form == "action" and sort == V:
            match term:
                case Apply(op="matmul", args=(m, v)):
                    return self.acts(m) and v.sort == V and self.is_word(v, V)
        return False

    def acts(self, term: Term) -> bool:
        """Whether the invariant gives the action of this matrix: m, and mᵀ where `left` is owed."""
        if isinstance(term, Apply) and term.op == "transpose" and self.turns:
            term = term.args[0]
        return isinstance(term, Leaf) and term.name[0] == "m"


def read_entries(
    entries: list[dict[str, Any]],
    owed: Mapping[Key, Term],
    check: Callable[[dict[str, Any], Term, str], None],
    where: str,
) -> int:
    """Check that the entries of a certificate are the obligations that are owed, and each holds."""
    require(isinstance(entries, list), f"{where}: the obligations are not a list")
    seen: set[Key] = set()
    for entry in entries:
        keys(entry, _OBLIGATION_KEYS, where)
        for field in ("choice", "factors", "words", "bijection"):
            require(isinstance(entry[field], list), f"{where}: {field} is not a list")
        key = (entry["kind"], parse_rule(entry["rule"]), tuple(entry["choice"]))
        name = f"{where}: {entry['kind']} {entry['rule']} {list(entry['choice'])}"
        require(key in owed, f"{name} is not owed")
        require(key not in seen, f"{name} stands twice")
        seen.add(key)
        require(read_term(entry["term"]) == owed[key], f"{name}: the term is not the rule's")
        check(entry, owed[key], name)
    for key in owed:
        missing = f"{key[0]} {key[1][0].variable} → {key[1][1]} {list(key[2])}"
        require(key in seen, f"{where}: obligation {missing} is missing")
    return len(seen)


def _matches(body: Term, term: Term, parts: list[tuple[Sort, Term]]) -> bool:
    """Match a rule body against a term, collecting what stands for each variable."""
    if isinstance(body, Hole):
        parts.append((body.sort, term))
        return body.sort == term.sort
    if isinstance(body, Apply):
        return (
            isinstance(term, Apply)
            and (body.op, body.function) == (term.op, term.function)
            and all(_matches(b, t, parts) for b, t in zip(body.args, term.args, strict=True))
        )
    return body == term


def opaque_leaf(sort: Sort, index: int) -> Leaf:
    """The opaque leaf of a sort for a rule's variable of that number."""
    letter = {S: "s", V: "v", R: "r", M: "m"}[sort]
    return Leaf(f"{letter}{index}", sort)


def read_term(text: str) -> Term:
    """A term over opaque leaves, as a certificate writes it."""
    return _parsed_term(text, registered_operations())


def parse_rule(text: str) -> Rule:
    """A rule as a certificate writes it; its body must have the head's sort."""
    return _parsed_rule(text, registered_operations())


@lru_cache(maxsize=10_000)
def _parsed_term(text: str, operations: tuple[Operation, ...]) -> Term:
    return parse(text, _NAMES)


@lru_cache(maxsize=10_000)
def _parsed_rule(text: str, operations: tuple[Operation, ...]) -> Rule:
    written = _RULE.fullmatch(text)
    require(written is not None, f"{text!r} is no rule")
    assert written is not None
    head, body = _HEADS[written[1]], written[3]
    scope = {"": 0, "′": 1, "″": 2}[written[2]]
    marks = "uvwxyz" if scope else "yz"
    names = {name: Leaf(name, V) for name in (*FUNCTIONS, *marks)}
    term = parse_body(body, names)
    require(term.sort == head, f"{text!r} is no rule: {body} is {term.sort.english}")
    require(_in_scope(term, scope), f"{text!r}: a variable stands outside its mark")
    lifts = isinstance(term, Hole) and term.scope < scope
    require(lifts or not isinstance(term, Hole), f"{text!r} applies no operation")
    return head.within(scope), term


def _in_scope(term: Term, scope: int) -> bool:
    """Whether every variable stands inside as many sums over marks as it has primes."""
    match term:
        case Hole():
            return term.scope <= scope
        case MarkSum():
            return _in_scope(term.body, scope + 1)
        case Apply():
            return all(_in_scope(arg, scope) for arg in term.args)
    return True


def keys(value: Any, keys: set[str], where: str) -> None:
    require(isinstance(value, dict), f"{where} is not an object")
    odd = sorted(set(value) ^ keys)
    require(not odd, f"{where}: missing or unknown field {', '.join(odd)}")
