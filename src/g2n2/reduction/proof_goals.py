"""What meets an obligation: which patterns must be words, and which words are hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from math import factorial, prod

from ..language.patterns import Assumption, Pattern, beside, canonical, collapsed, pattern_of
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import Hole, Leaf, Term, apply
from .invariants import Form, Obligation

Need = tuple[Sort, Pattern]
"""A pattern that must be a word of the smaller grammar, of this sort."""


_ALIKE = ("s", "vwx", "u", "r", "m")
"""First letters of opaque leaves that play the same part."""


_MOST_RENAMINGS = 5040
"""More ways to rename opaque leaves are not gone through: then nothing is shared."""


@dataclass(frozen=True)
class Goal:
    """What an obligation asks for: all `factors`, and all words of one of the `options`."""

    factors: tuple[Need, ...]
    options: tuple[tuple[Need, ...], ...]


def hypotheses(obligation: Obligation, form: Form) -> Form:
    """The form whose opaque words may be used: the transpose lemma speaks of plain words only."""
    return "plain" if obligation.kind == "transpose" else form


def goal_of(obligation: Obligation, form: Form, assume: Assumption) -> Goal:
    """Which patterns must be words of the smaller grammar so that the obligation is met."""
    pattern = pattern_of(obligation.term, assume)
    if assume == "simple":
        pattern = collapsed(pattern)
    sort = obligation.term.sort
    if obligation.kind == "transpose" or form == "exact":
        return Goal((), (((sort, pattern),),))
    closed, ends = split(pattern)
    factors = tuple((S, part) for part in closed)
    if sort == S:
        return Goal(factors, ((),))
    whole = ends[0] if len(ends) == 1 else beside(*ends)
    if sort in (V, R):
        return Goal(factors, ((_vector_need(whole, form),),))
    options: list[tuple[Need, ...]] = [((M, whole),)]
    if form in ("shape", "broadcast", "diagonal") and len(ends) == 2:
        options.append(tuple(_vector_need(end, form) for end in ends))
    return Goal(factors, tuple(options))


def _vector_need(column: Pattern, form: Form) -> Need:
    """The word that must exist for a column: itself, or the matrix that stands for it."""
    b = column.boundary[0]
    if form == "broadcast":
        return M, Pattern(column.vertices + 1, column.edges, (b, column.vertices))
    if form == "diagonal":
        return M, Pattern(column.vertices, column.edges, (b, b))
    return V, column


def split(pattern: Pattern) -> tuple[list[Pattern], list[Pattern]]:
    """The closed components of a pattern, and the one or two with a boundary, in boundary order."""
    root = list(range(pattern.vertices))
    for edge in pattern.edges:
        for v in edge.ends[1:]:
            a, b = root[edge.ends[0]], root[v]
            root = [a if r == b else r for r in root]
    anchors = list(dict.fromkeys(root[b] for b in pattern.boundary))
    closed = [_part(pattern, root, r) for r in dict.fromkeys(root) if r not in anchors]
    scalars = [Pattern(0, (e,), ()) for e in pattern.edges if not e.ends]
    return scalars + closed, [_part(pattern, root, r) for r in anchors]


def _part(pattern: Pattern, root: list[int], wanted: int) -> Pattern:
    number = {v: i for i, v in enumerate(v for v in range(pattern.vertices) if root[v] == wanted)}
    edges = tuple(
        e._replace(ends=tuple(number[v] for v in e.ends))
        for e in pattern.edges
        if e.ends and root[e.ends[0]] == wanted
    )
    return Pattern(len(number), edges, tuple(number[b] for b in pattern.boundary if b in number))


def opaque_scalar(pattern: Pattern) -> Leaf | None:
    """s0, s1 …: an opaque product of sentences meets itself."""
    if pattern.vertices or len(pattern.edges) != 1:
        return None
    return Leaf(pattern.edges[0].label, S)


def opaque_leaves(pattern: Pattern) -> list[Leaf]:
    """The opaque leaves a pattern holds, told from A and the supports by their first letter."""
    sorts = {"s": S, "m": M, "v": V, "w": V, "x": V, "u": V, "r": R}
    names = sorted({e.label for e in pattern.edges})
    return [Leaf(name, sorts[name[0]]) for name in names if name[0] in sorts]


def opaque_words(pattern: Pattern, form: Form) -> list[tuple[Term, Sort, bool]]:
    """The opaque words there are by hypothesis; True marks those of the transpose lemma."""
    words: list[tuple[Term, Sort, bool]] = []
    for leaf in opaque_leaves(pattern):
        if form == "exact":
            words.append((leaf, leaf.sort, False))
        elif leaf.sort == M and form != "action":
            words += [(leaf, M, False), (leaf.T, M, True)]
        elif leaf.sort == R:
            words.append((leaf, R, False))
        elif leaf.name[0] == "u" and form in ("broadcast", "diagonal"):
            continue  # a function of columns is free among columns
        elif leaf.sort == V and form == "broadcast":
            ones = leaf @ Leaf("1", V).T
            words += [(ones, M, False), (ones.T, M, True)]
        elif leaf.sort == V and form == "diagonal":
            words.append((apply("diag", leaf), M, False))
        elif leaf.sort == V:
            words.append((leaf, V, False))
    return words


def action_rules(pattern: Pattern, form: Form, turns: bool) -> list[tuple[Sort, Term]]:
    """What the hypothesis on an opaque matrix lets us build: m·V, or diag(m·(D1)).

    The same of mᵀ if the larger grammar `turns`. The second asks for a diagonal D; `instances_of`
    sees to it.
    """
    rules: list[tuple[Sort, Term]] = []
    for leaf in opaque_leaves(pattern):
        if leaf.sort != M:
            continue
        for matrix in (leaf, leaf.T) if turns else (leaf,):
            if form == "action":
                rules.append((V, matrix @ Hole(V)))
            elif form == "diagonal":
                rules.append((M, apply("diag", matrix @ (Hole(M) @ Leaf("1", V)))))
    return rules


@lru_cache(maxsize=10_000)
def anonymous(need: Need) -> tuple[Need, tuple[tuple[str, str], ...]]:
    """The need with its opaque leaves renamed, so that v1 and w0 share the work of v0 and v1.

    Also gives the pairs (new name, old name).
    """
    sort, pattern = need
    names = [leaf.name for leaf in opaque_leaves(pattern)]
    groups = [[n for n in names if n[0] in letters] for letters in _ALIKE]
    if prod(factorial(len(group)) for group in groups) > _MOST_RENAMINGS:
        return (sort, canonical(pattern)), tuple((name, name) for name in names)
    best, best_names = pattern, tuple[tuple[str, str], ...]()
    for orders in product(*(permutations(range(len(group))) for group in groups)):
        rename = {
            name: f"{letters[0]}{i}"
            for letters, group, order in zip(_ALIKE, groups, orders, strict=True)
            for name, i in zip(group, order, strict=True)
        }
        edges = tuple(e._replace(label=rename.get(e.label, e.label)) for e in pattern.edges)
        form = canonical(Pattern(pattern.vertices, edges, pattern.boundary))
        if not best_names or (form.edges, form.boundary) < (best.edges, best.boundary):
            best, best_names = form, tuple((new, old) for old, new in rename.items())
    return (sort, best), best_names
