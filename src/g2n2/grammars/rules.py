"""One production, and its notation."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import GrammarError
from ..language.parsing import GRAMMAR_NAMES, parse_body
from ..language.printing import to_ascii, to_latex, to_text
from ..language.sorts import Sort
from ..language.terms import Apply, Hole, MarkSum, Term, holes, subterms

ARROWS = ("→", "->", "::=", "⟶")


@dataclass(frozen=True, slots=True)
class Rule:
    """One production: a variable and the term it may become."""

    head: Sort
    body: Term

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse one production such as `M → (M⊙M)`."""
        rules = parse_rules(text)
        if len(rules) != 1:
            raise GrammarError(f"one production was expected, got {len(rules)}: {text!r}")
        return rules[0]

    @property
    def holes(self) -> tuple[Sort, ...]:
        return holes(self.body)

    def body_text(self, style: str = "text") -> str:
        show = {"text": to_text, "ascii": to_ascii, "latex": to_latex}[style]
        text = show(self.body, powers=False)
        bare = isinstance(self.body, Apply) and self.body.op == "hadamard"
        return f"({text})" if bare else text

    def __str__(self) -> str:
        return f"{self.head.variable} → {self.body_text()}"


def parse_rules(line: str) -> list[Rule]:
    """Parse `M → MM | A` into its productions."""
    arrow = next((a for a in ARROWS if a in line), None)
    if arrow is None:
        raise GrammarError(f"no arrow in {line.strip()!r}; write for instance `M → MM | A`")
    left, right = line.split(arrow, 1)
    head = GRAMMAR_NAMES.get(left.strip())
    if not isinstance(head, Hole):
        raise GrammarError(
            f"{left.strip()!r} is not a variable; the variables are S, V_c, V_r and M"
        )
    return [_rule(head.sort, body, line) for body in right.split("|")]


def _rule(head: Sort, body: str, line: str) -> Rule:
    if not body.strip():
        raise GrammarError(f"an alternative is empty in {line.strip()!r}")
    term = parse_body(body)
    if term.sort != head:
        raise GrammarError(
            f"{body.strip()} is {term.sort.english}, but {head.variable} is {head.english}"
        )
    if any(isinstance(part, MarkSum) for part in subterms(term)):
        raise GrammarError(
            f"{body.strip()} sums over a mark; terms may (g2n2 eval, g2n2 equal), rules may not yet"
        )
    return Rule(head, term)
