"""What the memories hold before the first layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import LoweringError
from ..grammars.grammar import Grammar
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import IDENTITY, ONE, Apply, Number, apply, subterms
from .presets import Preset


@dataclass(frozen=True)
class InputPlan:
    """Channels of the first memories, in this order.

    Attributes:
        matrix: Of C⁰: some of `I`, `A`, `Aᵀ`, `E` (edge features), `diag(X)` (node features, where
            the grammar has no column vectors to hold them).
        column: Of H⁰: some of `X` (node features) and `1`.
        node_features: Columns of X.
        edge_features: Channels of E.
        scalar: Whether the scalar memory starts with the number 1.
        directed_safe: Whether words can tell A from Aᵀ, so that directed graphs may enter.
    """

    matrix: tuple[str, ...]
    column: tuple[str, ...]
    node_features: int
    edge_features: int
    scalar: bool
    directed_safe: bool

    @property
    def widths(self) -> Mapping[Sort, int]:
        sizes = {"E": self.edge_features, "X": self.node_features, "diag(X)": self.node_features}
        return MappingProxyType(
            {
                M: sum(sizes.get(part, 1) for part in self.matrix),
                V: sum(sizes.get(part, 1) for part in self.column),
                R: 0,
                S: int(self.scalar),
            }
        )


def plan_inputs(
    grammar: Grammar, preset: Preset, node_features: int, edge_features: int, directed: bool
) -> InputPlan:
    """Which inputs each memory starts with.

    Raises:
        LoweringError: An input has no memory to go to, or Aᵀ none to be given in.
    """
    heads = {rule.head for rule in grammar.rules}
    name = grammar.name or "this grammar"
    if M not in heads and edge_features:
        raise LoweringError(
            f"{name} has no matrix variable, so the {edge_features} edge features have nowhere to "
            "go; leave them out (edge_features=0) or choose a grammar with M, such as r-G_L3"
        )
    if M not in heads and directed:
        raise LoweringError(
            f"{name} has no matrix memory to hold Aᵀ; add the rule itself, for instance "
            "V_c → (Aᵀ)V_c, and leave directed out"
        )
    column = _column(grammar, preset, node_features) if V in heads else ()
    if not {M, V} & heads:
        raise LoweringError(f"{name} has neither matrices nor column vectors to compute with")
    matrix = _matrix(grammar, V in heads, node_features, edge_features, directed)
    return InputPlan(
        matrix if M in heads else (),
        column,
        node_features,
        edge_features,
        any(rule.head == S and isinstance(rule.body, Number) for rule in grammar.rules),
        directed or _reads_columns(grammar),
    )


def _matrix(
    grammar: Grammar, columns: bool, node_features: int, edge_features: int, directed: bool
) -> tuple[str, ...]:
    """I is an input iff diag(V_c) or the terminal I is in the grammar."""
    diagonals = {apply("diag", ONE), IDENTITY}
    identity = any(
        rule.head == M and (rule.body in diagonals or rule.body_text() == "diag(V_c)")
        for rule in grammar.rules
    )
    parts = ["I"] if identity else []
    parts += ["A", "Aᵀ"] if directed else ["A"]
    parts += ["E"] if edge_features else []
    parts += ["diag(X)"] if node_features and not columns else []
    return tuple(parts)


def _column(grammar: Grammar, preset: Preset, node_features: int) -> tuple[str, ...]:
    parts = ["X"] if node_features else []
    wanted = preset.ones == "always" or not node_features
    if wanted and any(rule.head == V and rule.body == ONE for rule in grammar.rules):
        parts.append("1")
    if not parts:
        raise LoweringError(
            f"{grammar.name or 'this grammar'} starts its column vectors from nothing: add "
            "V_c → 1, or give node features"
        )
    return tuple(parts)


def _reads_columns(grammar: Grammar) -> bool:
    """Whether some rule transposes a matrix, or multiplies a row by one."""
    for rule in grammar.rules:
        for term in subterms(rule.body):
            if not isinstance(term, Apply):
                continue
            sorts = tuple(argument.sort for argument in term.args)
            if (term.op, sorts) in (("transpose", (M,)), ("matmul", (R, M))):
                return True
    return False
