"""The independent checker on grammars with marks: what is inside, and which laws are owed.

Sums Σ may stand on scalars only, by themselves. Inside, the marks are columns: z the innermost, y
the one around it. A word of the larger grammar at any scope is, by the simulation inside, a word of
the smaller one inside times a product of sentences. Induction over the larger grammar needs that
such sentences come out of the sums as words of the smaller grammar:

* `count`, `return`: the number of nodes and any sentence without z are sums over z of a sentence;
  rules that name z make no such sentence;
* a sum over z of a product of sentences is one. Factors without z leave the sum. For the others
  either products are sentences, S → SS, or by `reroot` each is uᵀz, by `merge` so is the product,
  and by `sum` u₀ᵀz is a sentence.

The induction of `reroot`: let z occur in a word w of V or m of M. Then cᵀw, and 1ᵀ(m⊙n)1 and xᵀmy,
are uᵀz for all words c, x, y of V and n of M. Where the rule of w has z itself, that is owed
directly. Otherwise z occurs in what one of its variables takes; for each of them it is owed that
the rule in a context is that variable in another context of the same kinds. A sentence is such a
context by itself. At scopes in between S has to have Σ. S and SS, and rules with z have twins with
y, so that a sum over z without y is one over y, which `return` turns into a sum over both. Part of
the independent checker; it shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..language.sorts import M, S, Sort, V
from ..language.terms import (
    ONE,
    Hole,
    Leaf,
    MarkSum,
    Number,
    Term,
    apply,
    fill,
    has_mark_sum,
    holes,
    leaves,
    mark_sum,
    substitute,
)
from .checker_patterns import SlotGraph, require
from .obligation_checker import (
    MARK_RULE,
    Judge,
    Key,
    Rule,
    keys,
    opaque_leaf,
    parse_rule,
    read_entries,
    read_term,
)

_Z = Leaf("z", V)
_FORMS = ("plain", "shape", "action")


def check_marked(
    larger: list[Rule],
    smaller: list[Rule],
    proof: Any,
    assume: str,
    declared: dict[str, str],
    where: str,
) -> int:
    """Check one direction of a link between grammars with marks; how many obligations hold."""
    keys(proof, {"inside", "laws"}, where)
    inside = proof["inside"]
    keys(inside, {"form", "transpose_lemma", "obligations"}, f"{where}, inside")
    require(inside["form"] in _FORMS, f"{where}: this form says nothing inside marks")
    require(isinstance(inside["transpose_lemma"], bool), f"{where}: transpose_lemma")
    depth = max(rule[0].scope for rule in smaller)
    require(0 < depth <= 2, f"{where}: the smaller grammar has {depth} marks")
    big, small = _inside_larger(larger, depth, where), _inside_smaller(smaller, depth, where)
    lemma = inside["transpose_lemma"]
    judge = Judge(big, small, inside["form"], assume, lemma, declared)
    total = judge.check_all(inside["obligations"], "graph", f"{where}, inside")
    innermost = max(map(_depth, larger)) == depth
    owed = dict(owed_laws(small, innermost, where))
    laws = Laws(Judge(small, small, "plain", assume, lemma, declared))
    return total + read_entries(proof["laws"], owed, laws.check, f"{where}, laws")


def _inside_larger(rules: list[Rule], depth: int, where: str) -> list[Rule]:
    """The rules without primes, lifts and sums."""
    names = mark_names(rules, where)
    inside: dict[Rule, None] = {}
    for head, body in rules:
        marks = names[: head.scope]
        while isinstance(body, MarkSum):
            marks, body = [*marks, body.mark], body.body
            require(head.plain == S, f"{where}: a sum over marks that is no scalar")
        require(len(marks) <= depth, f"{where}: the larger grammar has more marks")
        require_plain(body, where)
        if not isinstance(body, Hole):
            inside[head.plain, unprimed(body, marks, depth)] = None
    return list(inside)


def _inside_smaller(rules: list[Rule], depth: int, where: str) -> list[Rule]:
    """The rules over variables inside all marks, and the sentences that are summed."""
    names = mark_names(rules, where)
    for j in range(1, depth):
        summed = (S.within(j - 1), MarkSum(names[j - 1], Hole(S.within(j)))) in rules
        multiplied = not _products(j).isdisjoint(rules)
        require(summed and multiplied, f"{where}: Σ. S or SS is missing at a scope between")
    outer = S.within(depth - 1)
    through = (outer, MarkSum(names[-1], Hole(S.within(depth)))) in rules
    inside: dict[Rule, None] = {}
    for head, body in (*rules, *_linear_sums(rules, names[-1], outer)):
        marks = names[: head.scope]
        if head == outer and isinstance(body, MarkSum) and not through:
            if any(hole.plain == S for hole in holes(body)):
                continue  # the scalars it sums products of are not those that are summed
            marks, body = names, body.body
        elif head.scope < depth:
            lifts = [
                (head.plain.within(j + 1), Hole(head.plain.within(j)))
                for j in range(head.scope, depth)
            ]
            if holes(body) or not set(lifts) <= set(rules):
                continue
        elif head.plain == S and not through:
            continue
        if isinstance(body, Hole) or any(hole.scope < depth for hole in holes(body)):
            continue
        require_plain(body, where)
        inside[head.plain, unprimed(body, marks, depth)] = None
    if depth == 2:
        twins = {(head, substitute(body, {"z": Leaf("y", V)})) for head, body in inside}
        require(twins <= inside.keys(), f"{where}: a rule has the inner mark and not the outer")
    return list(inside)


def _linear_sums(rules: list[Rule], mark: str, outer: Sort) -> Iterator[Rule]:
    """S → Σv. 1ᵀV′ is a word of S where S → 1ᵀV, with V once, and V → Σv. V′ are rules."""
    for head, body in rules:
        variables = holes(body)
        if head == outer and len(variables) == 1 and variables[0].scope == outer.scope:
            inner = Hole(variables[0].within(1))
            if not has_mark_sum(body) and (variables[0], MarkSum(mark, inner)) in rules:
                yield head, MarkSum(mark, fill(body, [inner]))


def _products(scope: int) -> set[Rule]:
    """S → SS at a scope, by each of the operations that multiply two scalars."""
    scalar = S.within(scope)
    multiply = ("matmul", "hadamard", "scale")
    return {(scalar, apply(op, Hole(scalar), Hole(scalar))) for op in multiply}


def owed_laws(small: list[Rule], innermost: bool, where: str) -> Iterator[tuple[Key, Term]]:
    """The laws, by key, with the term each is about."""
    products = not _products(0).isdisjoint(small)
    yield ("count", MARK_RULE, ()), ONE.T @ ONE
    for head, body in small:
        if isinstance(body, Number):
            require(body.value == 1, f"{where}: {body} is no product of sentences")
        elif head == S and S not in holes(body):
            if _Z not in leaves(body):  # a rule that names z makes no sentence without it
                yield ("return", (head, body), ()), _filled(body)
        elif head == S:
            require(set(holes(body)) == {S} and not leaves(body), f"{where}: {body} is no product")
    if products or not innermost:
        return
    for head, body in small:
        marked = _Z in leaves(body)
        targets = ["z"] if marked else [str(i) for i in range(len(holes(body)))]
        contexts = {S: ("",), V: ("c",), M: ("n", "xyᵀ")}.get(head, ())
        require(bool(contexts) or not targets, f"{where}: rows cannot be rerooted")
        for target in targets:
            for context in contexts:
                yield ("reroot", (head, body), (target, context)), _in_context(body, context)
    u, w = opaque_leaf(V, 0), opaque_leaf(V, 1)
    yield ("merge", MARK_RULE, ()), _at_every_mark(apply("scale", u.T @ _Z, w.T @ _Z))
    yield ("sum", MARK_RULE, ()), u.T @ _Z


class Laws:
    """Checks what is said to meet a law."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def check(self, entry: dict[str, Any], term: Term, name: str) -> None:
        kind = entry["kind"]
        words = [read_term(text) for text in entry["words"]]
        factors = [read_term(text) for text in entry["factors"]]
        by_words = kind in ("reroot", "merge")
        require(not (factors if by_words else words), f"{name}: words and sentences are mixed up")
        if kind == "reroot":
            right = self._rerooted(entry, words, name)
        elif kind == "merge":
            require([word.sort for word in words] == [V], f"{name}: one column is expected")
            right = _at_every_mark(words[0].T @ _Z)
        else:
            require(len(factors) == 1, f"{name}: one sentence is expected")
            require(self.judge.is_word(factors[0], S), f"{name}: {factors[0]} is no sentence")
            right = mark_sum("z", factors[0]) if kind == "return" else factors[0]
        for word in words:
            require(self.judge.is_word(word, word.sort), f"{name}: {word} is no word")
        left, other = (SlotGraph(self.judge.assume, self.judge.declared) for _ in range(2))
        left.boundary, other.boundary = left.build(term), other.build(right)
        require(left.matches(other, entry["bijection"]), f"{name}: the bijection is no isomorphism")

    def _rerooted(self, entry: dict[str, Any], words: list[Term], name: str) -> Term:
        """The part in which z occurs, in the context that the words make."""
        target, (_, body) = entry["choice"][0], parse_rule(entry["rule"])
        part = _Z if target == "z" else opaque_leaf(holes(body)[int(target)], int(target))
        sorts = [word.sort for word in words]
        if part.sort == V and sorts == [V]:
            return words[0].T @ part
        require(part.sort == M, f"{name}: the part with z is neither a column nor a matrix")
        if sorts == [M]:
            return ONE.T @ apply("hadamard", part, words[0]) @ ONE
        require(sorts == [V, V], f"{name}: a context is one matrix or two columns")
        return words[0].T @ part @ words[1]


def _in_context(body: Term, context: str) -> Term:
    closed = _filled(body)
    column = opaque_leaf(V, 9)
    match context:
        case "c":
            return column.T @ closed
        case "n":
            return ONE.T @ apply("hadamard", closed, opaque_leaf(M, 9)) @ ONE
        case "xyᵀ":
            return column.T @ closed @ Leaf("w9", V)
    return closed


def _at_every_mark(scalar: Term) -> Term:
    """Equal for every column x iff the scalars are equal wherever the mark is."""
    return mark_sum("z", apply("scale", Leaf("x", V).T @ _Z, scalar))


def _filled(body: Term) -> Term:
    return fill(body, [opaque_leaf(sort, i) for i, sort in enumerate(holes(body))])


def _depth(rule: Rule) -> int:
    head, body = rule
    depth = head.scope
    while isinstance(body, MarkSum):
        depth, body = depth + 1, body.body
    return depth


def mark_names(rules: list[Rule], where: str) -> list[str]:
    """The name of the mark of each scope, as the sums call it."""
    names: dict[int, str] = {}
    for head, body in rules:
        scope = head.scope
        while isinstance(body, MarkSum):
            called = names.setdefault(scope, body.mark)
            require(called == body.mark, f"{where}: one mark is called {called} and {body.mark}")
            scope, body = scope + 1, body.body
    require(sorted(names) == list(range(len(names))), f"{where}: a mark is never summed over")
    listed = [names[scope] for scope in sorted(names)]
    require(len(set(listed)) == len(listed), f"{where}: two marks have one name")
    require(max(head.scope for head, _ in rules) <= len(listed), f"{where}: a mark has no sum")
    return listed


def require_plain(body: Term, where: str) -> None:
    require(not has_mark_sum(body), f"{where}: {body} sums over marks inside a term")


def unprimed(body: Term, marks: list[str], depth: int) -> Term:
    """The body as it stands inside, the marks by their names there."""
    renamed: dict[str, Term] = {
        mark: Leaf(name, V) for mark, name in zip(marks, "yz"[2 - depth :], strict=False)
    }
    foreign = {leaf.name for leaf in leaves(body) if leaf.sort == V} - {*marks, "1"}
    require(not foreign & set("uvwxyz"), f"{body} uses a mark that is not in scope")
    variables: list[Term] = [Hole(sort.plain) for sort in holes(body)]
    return substitute(fill(body, variables), renamed)
