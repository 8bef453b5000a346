"""Grammars: data, notation and checks of well-formedness; algorithms live elsewhere."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .. import notebook_html
from ..errors import GrammarError
from ..language.parsing import TERM_NAMES, parse
from ..language.printing import to_ascii, to_latex, to_text
from ..language.sorts import SORTS, M, S, Sort, V
from ..language.terms import (
    DISTANCES,
    MARKS,
    Hole,
    Leaf,
    Term,
    has_mark_sum,
    leaves,
    operators,
)
from .rules import ARROWS, Rule, bound_scopes, parse_rules

if TYPE_CHECKING:
    from ..language.patterns import Assumption
    from ..pipeline import Order, Reduction

__all__ = ["Grammar", "Level", "Rule", "parse_rules"]

Level = Literal["graph", "node", "pair"]
"""Whose words are compared."""
LEVELS: tuple[Level, ...] = ("graph", "node", "pair")

CHOICE = " | "
_LONGEST_NAME = 40
"""Characters of the rules that stand for a name."""
NO_SENTENCES = re.compile(rf"S\s*(?:{'|'.join(ARROWS)})\s*(?:∅|none)")
"""The line of a grammar that reads nothing out; one without any line of S has the default."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """A set of rules and the read-out that turns its words into sentences.

    >>> from g2n2 import Grammar
    >>> grammar = Grammar.parse("V → AV | 1") | "V → V⊙V"
    >>> print(grammar)
    V_c → AV_c | 1 | (V_c⊙V_c)
    S → 1ᵀV_c

    Inside a mark, Σv, stand variables of their own, V′ and M′, whose words may use v:

    >>> print(Grammar.parse("V′ → AV′ | 1 | v"))
    V_c′ → AV_c′ | 1 | v
    S → Σv. 1ᵀV_c′

    Attributes:
        rules: The productions. S has rules here only when scalars feed back into other words.
        readout: Otherwise the rules of S: what is read out of the words, and nothing more.
        name: What it is called, for printing; it takes no part in equality.
        supports: Definitions of the matrices it names besides A, such as C of a GCN.
    """

    rules: tuple[Rule, ...]
    readout: tuple[Rule, ...] = ()
    name: str = ""
    supports: tuple[tuple[str, Term], ...] = ()

    @classmethod
    def of(
        cls,
        rules: Iterable[Rule],
        name: str = "",
        supports: Iterable[tuple[str, Term]] = (),
        default_readout: bool = True,
    ) -> Grammar:
        """Build a grammar, telling read-out rules from rules and adding the default read-out."""
        unique = tuple(dict.fromkeys(rules))
        sentences = tuple(r for r in unique if r.head == S)
        if any(S in r.holes for r in unique):
            return cls(unique, (), name, tuple(supports))
        inner = tuple(r for r in unique if r.head != S)
        if not sentences and default_readout:
            sentences = _default_readout(inner)
        return cls(inner, sentences, name, tuple(supports))

    @classmethod
    def parse(cls, text: str, name: str = "") -> Grammar:
        """Parse the paper's notation: one variable a line (or `;`), alternatives after `|`.

        A line `C = …` defines a support. Text without S gets the read-out 1ᵀV if it has V,
        otherwise Tr(M) and 1ᵀM1 (inside a mark their sum over it); with `S → ∅` it gets none.

        Raises:
            GrammarError: A variable never ends in a word, a rule applies no operation, or a mark
                has two names.
        """
        productions, supports = _statements(text)
        rules = [
            rule
            for line in productions
            if not NO_SENTENCES.fullmatch(line)
            for rule in parse_rules(line)
        ]
        if not rules:
            raise GrammarError("the grammar has no rule; write for instance `V → AV | 1`")
        silent = any(map(NO_SENTENCES.fullmatch, productions))
        grammar = cls.of(rules, name, supports, default_readout=not silent)
        if silent and grammar.sentence_rules:
            raise GrammarError("S → ∅ says that there are no sentences, and S has rules; drop one")
        grammar.check()
        return grammar

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        return self.rules + self.readout

    @property
    def sentence_rules(self) -> tuple[Rule, ...]:
        return tuple(r for r in self.all_rules if r.head == S)

    @property
    def variables(self) -> tuple[Sort, ...]:
        """The variables that have rules, in the order S, V_c, V_r, M, then inside each mark."""
        return _in_order({r.head for r in self.all_rules})

    @property
    def has_matrices(self) -> bool:
        """Whether it has a matrix variable, outside its marks or inside."""
        return any(rule.head.plain == M for rule in self.rules)

    @property
    def scope(self) -> int:
        """How many marks its words can see at once; 0 for a grammar without marked variables."""
        return max((x.scope for r in self.all_rules for x in (r.head, *r.holes)), default=0)

    @property
    def marked(self) -> bool:
        """Whether a rule sums over marks."""
        return any(has_mark_sum(rule.body) for rule in self.all_rules)

    @property
    def marks(self) -> tuple[str, ...]:
        """The names of its marks, that of V′ first.

        Raises:
            GrammarError: One has two names, or a rule uses one that is not in its scope.
        """
        return _marks(self.all_rules, self.scope)

    @property
    def operations(self) -> frozenset[str]:
        """The operations its rules and read-out use."""
        return frozenset().union(*(operators(r.body) for r in self.all_rules))

    @property
    def readout_text(self) -> str:
        return CHOICE.join(r.body_text() for r in self.sentence_rules) or "none"

    @property
    def in_short(self) -> str:
        """Its rules on one line, in the place of a name; a default read-out is left out.

        >>> Grammar.parse("V → AV | 1").in_short
        '{V_c → AV_c | 1}'
        """
        lines = self.lines()
        if self.readout and self.readout == _default_readout(self.rules):
            del lines[len(self.variables) - 1]
        return f"{{{textwrap.shorten('; '.join(lines), _LONGEST_NAME, placeholder=' …')}}}"

    @property
    def rule_count(self) -> str:
        """How many rules there are, in words, those that only read out apart.

        >>> Grammar.parse("M → MM | A; S → Tr(M)").rule_count
        '2 rules and 1 read-out rule'
        """

        def counted(number: int, what: str) -> str:
            return f"{number} {what}{'' if number == 1 else 's'}"

        rules = counted(len(self.rules), "rule")
        if not self.readout:
            return rules
        return f"{rules} and {counted(len(self.readout), 'read-out rule')}"

    def of_sort(self, sort: Sort) -> tuple[Rule, ...]:
        return tuple(r for r in self.all_rules if r.head == sort)

    def unproductive(self) -> tuple[Sort, ...]:
        """Variables, used or headed, from which no finite word can be derived."""
        ends: set[Sort] = set()
        grew = True
        while grew:
            new = {r.head for r in self.all_rules if set(r.holes) <= ends} - ends
            ends |= new
            grew = bool(new)
        used = {r.head for r in self.all_rules} | {h for r in self.all_rules for h in r.holes}
        return _in_order(used - ends)

    def unreachable(self, outputs: Iterable[Sort] = (S,)) -> tuple[Sort, ...]:
        """Variables no sentence can use, nor any other word that is an output."""
        reached = set(outputs)
        grew = True
        while grew:
            new = {h for r in self.all_rules if r.head in reached for h in r.holes} - reached
            reached |= new
            grew = bool(new)
        return tuple(sort for sort in self.variables if sort not in reached)

    def reachable_part(self, outputs: Iterable[Sort] = (S,)) -> Grammar:
        """This grammar without the rules that no sentence, nor any other output, can use."""
        unused = self.unreachable(outputs)
        rules = (rule for rule in self.all_rules if rule.head not in unused)
        return Grammar.of(rules, self.name, self.supports, default_readout=False)

    def check(self) -> None:
        """Refuse a grammar that cannot generate."""
        for rule in self.all_rules:
            if isinstance(rule.body, Hole) and rule.body.scope == rule.head.scope:
                raise GrammarError(f"{rule} applies no operation; leave it out")
        _marks(self.all_rules, self.scope)
        # The variable without a rule is the cause, the sentence only suffers from it.
        for sort in sorted(self.unproductive(), key=lambda x: (bool(self.of_sort(x)), x == S)):
            rules = self.of_sort(sort)
            why = "every rule of it needs a variable that never ends" if rules else "it has no rule"
            terminal = {V: "1", M: "A"}.get(sort.plain, "…")
            example = f"{sort.variable} → {terminal}"
            raise GrammarError(
                f"{sort.variable} never becomes a word: {why}; add a rule such as {example}"
            )

    def __or__(self, other: Grammar | Rule | str) -> Grammar:
        """This grammar with more rules."""
        more = [r for r in _rules_of(other) if r not in self]
        return self._with((*self.all_rules, *more), self._changed_name("∪", more))

    def __sub__(self, other: Grammar | Rule | str) -> Grammar:
        """This grammar without some of its rules.

        Raises:
            GrammarError: A rule to remove is not there.
        """
        gone = _rules_of(other)
        for rule in gone:
            if rule not in self:
                raise GrammarError(f"{rule} is not a rule of {self.name or 'this grammar'}")
        rest = (r for r in self.all_rules if r not in gone)
        return self._with(rest, self._changed_name("∖", gone))

    def __contains__(self, rule: Rule | str) -> bool:
        return (Rule.parse(rule) if isinstance(rule, str) else rule) in self.all_rules

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return frozenset(self.rules), frozenset(self.readout), frozenset(self.supports)

    def _changed_name(self, sign: str, rules: Iterable[Rule]) -> str:
        """As the catalogue names such grammars: r-G_L3 ∖ {M⊙M}."""
        bodies = ", ".join(to_text(r.body, powers=False) for r in rules)
        return f"{self.name} {sign} {{{bodies}}}" if self.name and bodies else self.name

    def _with(self, rules: Iterable[Rule], name: str) -> Grammar:
        """Another rule set; a read-out whose variable lost its rules gives way to the default."""
        kept = tuple(rules)
        heads = {r.head for r in kept}
        usable = [r for r in kept if r.head != S or set(r.holes) <= heads]
        had_one = bool(self.sentence_rules)  # a grammar without sentences is not given any
        grammar = Grammar.of(usable, name, self.supports, default_readout=had_one)
        grammar.check()
        return grammar

    def reduce(
        self,
        assume: Assumption = "symmetric",
        level: Level = "graph",
        order: Order = "direct",
        alternatives: bool = True,
    ) -> Reduction:
        """The smallest grammar found with the same power; see `g2n2.reduction.reduce.reduce`."""
        from ..pipeline import reduce  # upward: a method users expect here

        return reduce(self, assume, level, order, alternatives)

    def named(self, name: str) -> Grammar:
        return Grammar(self.rules, self.readout, name, self.supports)

    def lines(self, style: str = "text") -> list[str]:
        """One line per variable, in the paper's notation, the read-out last if it stands apart."""
        arrow = {"text": "→", "ascii": "->", "latex": r"&\to"}[style]
        bar = r" \mid " if style == "latex" else CHOICE
        show = {"text": to_text, "ascii": to_ascii, "latex": to_latex}[style]
        shown = []
        for sort in self.variables:
            bodies = [r.body_text(style) for r in self.of_sort(sort)]
            shown.append(f"{show(Hole(sort))} {arrow} {bar.join(bodies)}")
        if self.readout:
            shown.append(shown.pop(0))
        if not self.sentence_rules:
            empty = {"text": "∅", "ascii": "none", "latex": r"\emptyset"}[style]
            shown.append(f"S {arrow} {empty}")
        sign = "&=" if style == "latex" else "="
        return shown + [
            f"{show(Leaf(name, M))} {sign} {show(definition)}" for name, definition in self.supports
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_latex(self) -> str:
        """The grammar as a LaTeX align environment."""
        return (
            "\\begin{align*}\n"
            + " \\\\\n".join(f"  {x}" for x in self.lines("latex"))
            + "\n\\end{align*}"
        )

    def _repr_html_(self) -> str:
        return notebook_html.grammar(self)


def _statements(text: str) -> tuple[list[str], list[tuple[str, Term]]]:
    """Split a text into production lines and support definitions."""
    productions: list[str] = []
    supports: list[tuple[str, Term]] = []
    for line in re.split(r"[\n;]", text):
        line = line.split("#")[0].strip()
        if not line:
            continue
        definition = re.match(r"(?:where\s+)?(C(?:_\d+)?)\s*=(?!>)", line)
        if definition and not any(a in line for a in ARROWS):
            term = parse(line[definition.end() :], {**TERM_NAMES, DISTANCES.name: DISTANCES})
            foreign = [x.name for x in leaves(term) if x.name not in ("A", "1", "I", "J", "D")]
            if term.sort != M or foreign:
                raise GrammarError(
                    f"{definition[1]} must be a matrix made of A, 1, I, J and D: {line}"
                )
            supports.append((definition[1], term))
        elif line.startswith("|") and productions:
            productions[-1] += " " + line
        else:
            productions.append(line)
    return productions, supports


def _default_readout(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    heads = {r.head for r in rules}
    deepest = max((head.scope for head in heads), default=0)
    names = _marks(rules, deepest)
    for scope in range(deepest + 1):
        binders = "".join(f"Σ{name}. " for name in names[:scope])
        if V.within(scope) in heads:
            return (Rule.parse(f"S → {binders}1ᵀV{'′' * scope}"),)
        if M.within(scope) in heads:
            matrix = f"M{'′' * scope}"
            return tuple(Rule.parse(f"S → {binders}{x}") for x in (f"Tr({matrix})", f"1ᵀ{matrix}1"))
    return ()


def _in_order(variables: Iterable[Sort]) -> tuple[Sort, ...]:
    return tuple(sorted(variables, key=lambda x: (x.scope, SORTS.index(x.plain))))


def _marks(rules: tuple[Rule, ...], scope: int) -> tuple[str, ...]:
    """The name of the mark of each scope: what binds it, else what the words inside call it."""
    bound = [pair for rule in rules for pair in bound_scopes(rule.body, rule.head.scope)]
    free = [(r, x.name) for r in rules for x in leaves(r.body) if x.name in MARKS and x.sort == V]
    names: list[str] = []
    for outer in range(scope):
        called = dict.fromkeys(name for name, at in bound if at == outer)
        if len(called) > 1:
            raise GrammarError(f"one mark is called {' and '.join(called)}: call it by one letter")
        inside = sorted((rule.head.scope, name) for rule, name in free if rule.head.scope > outer)
        used = [name for _, name in inside]
        default = MARKS if scope > 1 else f"v{MARKS}"
        others = [name for name in (*used, *default) if name not in (*dict(bound), *names)]
        names.append(next(iter([*called, *others])))
    for rule, name in free:
        if name not in names[: rule.head.scope]:
            has = ", ".join(names[: rule.head.scope]) or "none"
            raise GrammarError(f"{rule} uses the mark {name}, which is not in scope: {has} is")
    return tuple(names)


def _rules_of(other: Grammar | Rule | str) -> tuple[Rule, ...]:
    if isinstance(other, Grammar):
        return other.all_rules
    if isinstance(other, Rule):
        return (other,)
    return tuple(r for line in re.split(r"[\n;]", other) if line.strip() for r in parse_rules(line))
