"""What the memories hold before the first layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import LoweringError
from ..grammars.free_functions import identity_is_a_word
from ..grammars.grammar import Grammar
from ..grammars.rules import ARROWS, Rule, mentions
from ..language.operations import OPERATIONS
from ..language.printing import to_text
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import IDENTITY, ONE, A, Apply, Hole, Term, apply, subterms
from .marks import seeds
from .presets import Preset


@dataclass(frozen=True)
class InputPlan:
    """Channels of the first memories, in this order.

    A rule without variables is an input: its body, printed, is the name of a channel.
    """

    # of C⁰: `I`, `A`, `Aᵀ`, the other matrices the grammar starts from, `E` (edge features) and
    # `diag(X)` (node features, where no column vectors can hold them)
    matrix: tuple[str, ...]
    # of H⁰: `X` (node features), `1` and the other columns the grammar starts from
    column: tuple[str, ...]
    row: tuple[str, ...]  # of the row vectors
    scalar: tuple[str, ...]  # of the scalars
    terms: tuple[tuple[str, Term], ...]  # what each name but `E`, `X` and `diag(X)` stands for
    node_features: int  # columns of X
    edge_features: int  # channels of E
    directed_safe: bool  # whether words can tell A from Aᵀ, so that directed graphs may enter
    # marks that words name; those words are the last channels of their memories
    marks: tuple[str, ...] = ()

    @cached_property
    def unmarked(self) -> InputPlan:
        """The channels that no mark decides, which all marked copies of a graph share."""
        return self._only(lambda name: name not in self._marked) if self.marks else self

    @cached_property
    def marked(self) -> InputPlan:
        """The channels that a mark decides; the columns of the marks are its node features."""
        only = self._only(self._marked.__contains__)
        return replace(only, node_features=0, edge_features=0, marks=self.marks)

    @property
    def _marked(self) -> frozenset[str]:
        return frozenset(name for name, term in self.terms if mentions(term, self.marks))

    def _only(self, keeps: Callable[[str], bool]) -> InputPlan:
        matrix, column, row, scalar = (tuple(filter(keeps, part)) for part in self.parts.values())
        terms = tuple((name, term) for name, term in self.terms if keeps(name))
        return replace(
            self, matrix=matrix, column=column, row=row, scalar=scalar, terms=terms, marks=()
        )

    def places(self, part: InputPlan) -> dict[Sort, list[int]]:
        """Where the channels of a part of this plan are, by sort; only sorts it has channels of."""
        places: dict[Sort, list[int]] = {}
        for sort, names in self.parts.items():
            end = 0
            for name in names:
                start, end = end, end + self._sizes.get(name, 1)
                if name in part.parts[sort]:
                    places.setdefault(sort, []).extend(range(start, end))
        return places

    @property
    def parts(self) -> Mapping[Sort, tuple[str, ...]]:
        """The names of the channels of each memory."""
        return {M: self.matrix, V: self.column, R: self.row, S: self.scalar}

    @property
    def widths(self) -> Mapping[Sort, int]:
        sizes = self._sizes
        return {s: sum(sizes.get(name, 1) for name in names) for s, names in self.parts.items()}

    @property
    def _sizes(self) -> Mapping[str, int]:
        """Channels of the features; every other name is one channel."""
        return {"E": self.edge_features, "X": self.node_features, "diag(X)": self.node_features}


@dataclass(frozen=True)
class ScopedInputs:
    """Which inputs the memories outside a mark start with, and which those inside, where they meet.

    Features are in both, where both have variables for them.
    """

    outside: InputPlan
    inside: InputPlan  # without the channels that a mark decides


def plan_scoped_inputs(
    grammar: Grammar,
    preset: Preset,
    node_features: int,
    edge_features: int,
    directed: bool,
    only_words: bool,
) -> tuple[InputPlan, ScopedInputs]:
    """All inputs of a grammar whose copies meet, and which of them each scope starts with.

    A rule V′ → V lets V′ start with the terminals of V too.
    """
    scopes = [[r.plain for r in grammar.rules if r.head.scope == scope] for scope in (0, 1)]

    def planned(rules: Sequence[Rule], marks: tuple[str, ...] = ()) -> InputPlan:
        words = replace(grammar, rules=tuple(dict.fromkeys(rules)), readout=grammar.sentence_rules)
        pairs, nodes = (
            any(rule.head in sorts for rule in rules)
            or not any(rule.head in sorts for each in scopes for rule in each)
            for sorts in ({M}, {M, V})
        )
        given = node_features if nodes else 0, edge_features if pairs else 0, directed and pairs
        return plan_inputs(words, preset, *given, only_words, marks)

    outside = planned(scopes[0])
    lifts = {rule.head.plain for rule in grammar.rules if isinstance(rule.body, Hole)}
    terms = dict(outside.terms)
    lifted = [
        Rule(sort, terms[name])
        for sort, names in outside.parts.items()
        for name in names
        if sort in lifts and name in terms
    ]
    inside = planned([*scopes[1], *lifted], grammar.marks)
    every = replace(
        inside,
        matrix=tuple(dict.fromkeys(outside.matrix + inside.matrix)),
        column=tuple(dict.fromkeys(outside.column + inside.column)),
        row=tuple(dict.fromkeys(outside.row + inside.row)),
        scalar=tuple(dict.fromkeys(outside.scalar + inside.scalar)),
        terms=tuple((terms | dict(inside.terms)).items()),
        node_features=node_features,
        edge_features=edge_features,
        directed_safe=outside.directed_safe or inside.directed_safe,
    )
    return every, ScopedInputs(outside, inside.unmarked)


def with_transpose(grammar: Grammar, marks: int = 0) -> str:
    """The advice to add the rule that reads Aᵀ to a grammar without matrices, in its notation.

    `marks`: inside so many of them its variables are written without their primes.
    """
    reading = [rule.head for rule in grammar.rules if rule.head.plain == V and rule.holes]
    variable = (reading or [V])[0].within(marks).variable
    rule = f"{variable} → (Aᵀ){variable}"
    if not grammar.name or any(arrow in grammar.name for arrow in ARROWS):
        return f"add the rule {rule} to its rules"
    return f"add the rule {rule}, as in {f'{grammar.name} ∪ {rule}'!r}"


def plan_inputs(
    grammar: Grammar,
    preset: Preset,
    node_features: int,
    edge_features: int,
    directed: bool,
    only_words: bool = False,
    marks: tuple[str, ...] = (),
) -> InputPlan:
    """Which inputs each memory starts with; `only_words`: I only where it is a word."""
    heads = {rule.head for rule in grammar.rules}
    name = grammar.name or "this grammar"
    if M not in heads and edge_features:
        raise LoweringError(
            f"{name} has no matrix variable, so the {edge_features} edge features have nowhere to "
            "go; leave them out (edge_features=0) or choose a grammar with M, such as r-G_L3"
        )
    if not {M, V} & heads and node_features:
        raise LoweringError(
            f"{name} has neither columns nor matrices, so the {node_features} node features have "
            "nowhere to go; leave them out (node_features=0) or choose a grammar with V_c"
        )
    if M not in heads and directed:
        raise LoweringError(
            f"{name} has no matrix memory to hold Aᵀ; {with_transpose(grammar, len(marks))}, and "
            "leave directed out"
        )
    if not {M, V} & heads and not grammar.sentence_rules:
        raise LoweringError(f"{name} has neither matrices, columns nor sentences to compute with")
    terminals = [rule for rule in grammar.rules if not rule.holes]
    words = {s: [rule.body for rule in terminals if rule.head == s] for s in (M, V, R, S)}
    words[M] = _matrices(grammar, words[M], directed, only_words)
    if preset.ones == "without features" and node_features:
        words[V] = [term for term in words[V] if term != ONE]
    more = seeds(grammar, marks) if marks else {}
    words = {sort: [*terms, *more.get(sort.letter, [])] for sort, terms in words.items()}
    named, marked = (
        {
            sort: tuple(to_text(term) for term in terms if mentions(term, marks) == by_mark)
            for sort, terms in words.items()
        }
        for by_mark in (False, True)
    )
    features = ("X",) if node_features and V in heads else ()
    on_diagonal = ("diag(X)",) if node_features and V not in heads else ()
    return InputPlan(
        named[M] + (("E",) if edge_features else ()) + on_diagonal + marked[M],
        features + named[V] + marked[V],
        named[R] + marked[R],
        named[S] + marked[S],
        tuple((to_text(term), term) for terms in words.values() for term in terms),
        node_features,
        edge_features,
        directed or _reads_columns(grammar),
        marks,
    )


def _matrices(
    grammar: Grammar, terminals: list[Term], directed: bool, only_words: bool
) -> list[Term]:
    """I first, iff diag(V_c) or the terminal I is in the grammar; then A, Aᵀ and the others."""
    identities = {apply("diag", ONE), IDENTITY}
    diagonals = any(rule.head == M and rule.body_text() == "diag(V_c)" for rule in grammar.rules)
    diagonals = diagonals and (not only_words or identity_is_a_word(grammar))
    first: list[Term] = [IDENTITY] if diagonals or identities & set(terminals) else []
    first += [A] if A in terminals else []
    first += [apply("transpose", A)] if directed else []
    return first + [term for term in terminals if term not in identities | set(first)]


def _reads_columns(grammar: Grammar) -> bool:
    """Whether some rule or support transposes a matrix, or multiplies a row by one."""
    bodies = [rule.body for rule in grammar.rules] + [term for _, term in grammar.supports]
    return any(
        OPERATIONS[term.op].contraction(tuple(arg.sort for arg in term.args)).reads_columns
        for body in bodies
        for term in subterms(body)
        if isinstance(term, Apply) and OPERATIONS[term.op].multilinear
    )
