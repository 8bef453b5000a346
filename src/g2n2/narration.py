"""A derivation as text: what the command line prints and `str` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .described import counted
from .reduction.reduce import Simulation
from .verdict import advice

if TYPE_CHECKING:
    from .pipeline import Derivation

_INDENT = "  "


def narrate(result: Derivation) -> str:
    """The whole path: exhaustive grammar, steps, reduced grammar, what stays, alternatives."""
    lines: list[str] = []
    say = lines.append

    def title(text: str) -> None:
        lines.extend(["", text, "─" * len(text)])

    reduction = result.reduction
    title(f"{result.exhaustive.name}: every typed rule over {result.fragment}")
    lines.extend(_INDENT + line for line in result.exhaustive.lines())
    say(f"{_INDENT}{result.exhaustive.rule_count}")
    if not result.exhaustive.sentence_rules and reduction.level == "graph":
        say(f"\nno sentences: {advice(result.exhaustive)}".replace("it tells", "tells"))
        return "\n".join(lines)
    if not result.steps:
        say("\nNothing can be removed by proof: the grammar stays as it is.")
    if any(step.identities for step in result.steps):
        say("\nBelow, s, v and m stand for any sentence, column and matrix of the reduced grammar.")
    for number, step in enumerate(result.steps, 1):
        title(f"Step {number}: {step.title} ({step.status})")
        say(f"{_INDENT}removed  " + "   ".join(map(str, step.removed)))
        if step.added:
            say(f"{_INDENT}instead  " + "   ".join(map(str, step.added)))
        say(f"{_INDENT}why      {step.reason}")
        for identity in step.identities:
            say(f"{_INDENT}         {identity}")
        if step.paper:
            say(f"{_INDENT}paper    {step.paper}")
        if step.ours:
            say(f"{_INDENT}ours     {step.ours}")
    title(f"{result.reduced.name}: reduced")
    lines.extend(_INDENT + line for line in result.reduced.lines())
    say(f"{_INDENT}{result.reduced.rule_count}")
    for link in reduction.links:
        if isinstance(link, Simulation):
            proof = link.proof
            lemma = ", with the transpose lemma" if proof.transposed else ""
            count = counted(len(proof.witnesses), "obligation")
            say(
                f"{_INDENT}as strong: {count} ({proof.claim.form} form{lemma}); "
                f"no stronger: {len(link.converse.witnesses)}; docs/reductions.md explains them"
            )
    say(f"{_INDENT}assumed: {assumption(reduction.assume)}; {level(reduction.level)}")
    title("Rules that stay")
    for kept in result.kept:
        say(f"{_INDENT}{kept.rule!s:<22} {kept.reason}{_graph6(kept.witness)}")
    if reduction.alternatives:
        title("Alternatives, not substituted")
        for other in reduction.alternatives:
            say(f"{_INDENT}{'; '.join(map(str, other.grammar.rules))}")
            say(f"{_INDENT}{_INDENT}{other.note}")
    say(f"\n{result.verdict}")
    return "\n".join(lines)


def _graph6(witness: dict[str, Any] | None) -> str:
    """` (EhEG, EJaG)`: the graphs of a witness that was told by their names."""
    if witness is None or witness["graphs"] == witness["names"]:
        return ""
    return f" ({', '.join(witness['graphs'])})"


def assumption(assume: str) -> str:
    return {
        "none": "nothing of A (directed graphs; Aᵀ is a rule of its own)",
        "symmetric": "A symmetric",
        "simple": "A symmetric, 0/1, no loops",
    }[assume]


def level(chosen: str) -> str:
    return {
        "graph": "graph level",
        "node": "node level, the read-out joined to each node output",
        "pair": "pair level, the read-out and both node outputs joined to each pair output",
    }[chosen]
