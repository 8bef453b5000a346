"""How a word is made out of memories: the four-step procedure of the paper's figure 2.

Each step chooses a rule, chooses its inputs from the memories, computes, and stores the output in
the memory of its variable. A subword that occurs twice is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..described import counted, number_text
from ..grammars.coercion import GrammarLike, as_grammar
from ..grammars.derivations import DerivationTree
from ..grammars.grammar import Grammar
from ..grammars.least_depth import least_depth_derivation
from ..grammars.rules import Rule, mentions
from ..grammars.words import parse_word
from ..graphs import GraphLike
from ..language.evaluation import Array, evaluate
from ..language.sorts import M, S, Sort
from ..language.terms import IDENTITY, ONE, Term, apply, substitute
from .grammar_to_plan import UPDATE_ORDER
from .inputs import plan_inputs
from .presets import PRESETS

Memories = Mapping[Sort, tuple[Term, ...]]
_DIAGONAL = apply("diag", ONE)


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One turn of the procedure."""

    rule: Rule  # what was chosen to apply
    # what was chosen from the memories, one word for each variable of the rule
    inputs: tuple[Term, ...]
    output: Term  # the word made, stored in the memory of the rule's variable
    layer: int | None  # the first layer of a network that can make it; None for the read-out
    memories: Memories  # every memory after storing
    # what the output is worth on the graph, where one was given and no mark has to be chosen
    value: Array | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """All steps of one word, layer by layer."""

    grammar: Grammar  # whose rules are used
    word: Term  # what is made
    start: Memories  # the memories before the first step: the terminals, and I where it is an input
    steps: tuple[TraceStep, ...]  # the steps, no word made twice
    depth: int  # layers a network needs; no derivation of the word takes fewer

    def __str__(self) -> str:
        lines = [title(self), "", *_memory_lines("start", self.start)]
        layer: int | None = 0
        for number, step in enumerate(self.steps, start=1):
            if step.layer != layer:
                layer = step.layer
                lines += ["", "read-out" if layer is None else f"layer {layer}"]
            lines += _step_lines(number, step)
        return "\n".join(lines)


def trace(grammar: GrammarLike, word: Term | str, graph: GraphLike | None = None) -> Trace:
    """How a grammar makes a word, step by step, in as few layers as can be.

    >>> from g2n2 import trace
    >>> triangles = trace("r-G_L3", "1ᵀ(A²⊙A)1", "C~")
    >>> triangles.depth, [str(step.output) for step in triangles.steps]
    (3, ['A²', 'A²⊙A', '(A²⊙A)1', '1ᵀ(A²⊙A)1'])

    Args:
        grammar: Any grammar, its name or its rules.
        word: A word or sentence of it, or its text.
        graph: Evaluate every step on this graph, but words of a mark, which have many values.

    Raises:
        GrammarError: The term is not a word of the grammar.
    """
    grammar = as_grammar(grammar)
    term = parse_word(grammar, word) if isinstance(word, str) else word
    identity = "I" in plan_inputs(grammar, PRESETS["paper"], 0, 0, False).matrix
    derivation = least_depth_derivation(grammar, term, (_DIAGONAL, IDENTITY) if identity else ())
    start = _start(grammar, derivation, identity)
    steps: list[TraceStep] = []
    memories = start
    for node, layer in _in_layers(derivation):
        sort = node.rule.head
        memories = _stored(memories, sort, node.term)
        inputs = tuple(child.term for child in node.children)
        written = substitute(node.term, dict(grammar.supports))
        by_mark = mentions(written, grammar.marks[: sort.scope])
        value = None if graph is None or by_mark else evaluate(written, graph)
        steps.append(TraceStep(node.rule, inputs, node.term, layer, memories, value))
    depth = max((step.layer for step in steps if step.layer is not None), default=0)
    return Trace(grammar, term, start, tuple(steps), depth)


def _in_layers(root: DerivationTree) -> list[tuple[DerivationTree, int | None]]:
    """Every word that is computed, once, by layer; the read-out, which is no layer, last.

    The last rule of a sentence is applied by the read-out, also where scalars feed back into words.
    """
    layers: dict[tuple[Sort, Term], int] = {}
    computed: dict[tuple[Sort, Term], tuple[DerivationTree, int | None]] = {}
    for node in reversed(list(root.nodes())):  # children stand before their parents
        stored = node.rule.head, node.term
        if node.children:
            layer = 1 + max(layers[child.rule.head, child.term] for child in node.children)
            layers.setdefault(stored, layer)
            last = node is root and node.rule.head == S
            computed.setdefault(stored, (node, None if last else layer))
        else:
            layers.setdefault(stored, 0)
    end = 1 + max(layers.values())
    return sorted(computed.values(), key=lambda item: end if item[1] is None else item[1])


def _start(grammar: Grammar, derivation: DerivationTree, identity: bool) -> Memories:
    """The rules without variables, and what the derivation takes as given."""
    given = [(rule.head, rule.body) for rule in grammar.rules if not rule.holes]
    given += [(node.rule.head, node.term) for node in derivation.nodes() if not node.children]
    given += [(M, IDENTITY)] if identity else []
    heads = {rule.head for rule in grammar.rules}
    memories: Memories = {sort: () for sort in UPDATE_ORDER if sort in heads}
    for sort, term in given:
        memories = _stored(memories, sort, IDENTITY if term == _DIAGONAL else term)
    return memories


def _stored(memories: Memories, sort: Sort, term: Term) -> Memories:
    kept = memories.get(sort, ())
    return memories if term in kept else {**memories, sort: (*kept, term)}


_LARGEST = 12
"""Values of graphs with more nodes are described and not printed."""


def title(trace: Trace) -> str:
    """The word, the grammar and how many layers it takes."""
    layers = counted(trace.depth, "layer") if trace.depth else "no layer"
    return f"{word_text(trace.word)} in {trace.grammar.name or 'the given grammar'}: {layers}"


def trace_json(trace: Trace) -> dict[str, Any]:
    """The same as data."""
    return {
        "grammar": trace.grammar.name,
        "word": str(trace.word),
        "depth": trace.depth,
        "start": _memories_json(trace.start),
        "steps": [
            {
                "rule": str(step.rule),
                "inputs": [word_text(term) for term in step.inputs],
                "output": word_text(step.output),
                "layer": step.layer,
                "memories": _memories_json(step.memories),
                "value": None if step.value is None else step.value.tolist(),
            }
            for step in trace.steps
        ],
    }


def word_text(term: Term) -> str:
    """A word; diag(1) by its name I."""
    return "I" if term == _DIAGONAL else str(term)


def _step_lines(number: int, step: TraceStep) -> list[str]:
    chosen = zip(step.inputs, step.rule.holes, strict=True)
    inputs = ", ".join(f"{word_text(word)} from {sort.variable}" for word, sort in chosen)
    lines = [
        f"  step {number}",
        f"    1 rule     {step.rule}",
        f"    2 inputs   {inputs}",
        f"    3 compute  {word_text(step.output)}",
    ]
    if step.value is not None:
        lines += [f"               {line}" for line in _value_lines(step.value)]
    return lines + ["  " + line for line in _memory_lines("4 store", step.memories)]


def _memory_lines(label: str, memories: Memories) -> list[str]:
    shown = [
        f"{sort.variable:<3} {', '.join(map(word_text, words)) or 'empty'}"
        for sort, words in memories.items()
    ]
    return [f"  {label if k == 0 else '':<10} {line}" for k, line in enumerate(shown)]


def _value_lines(value: Array) -> list[str]:
    if max(value.shape) > _LARGEST:
        ends = f"{number_text(value.min())} to {number_text(value.max())}"
        return [f"{value.shape[0]}×{value.shape[1]} values from {ends}"]
    rows = value.T if value.shape[1] == 1 else value
    cells = [[number_text(number) for number in row] for row in rows]
    width = max(len(cell) for row in cells for cell in row)
    return [" ".join(cell.rjust(width) for cell in row) for row in cells]


def _memories_json(memories: Memories) -> dict[str, list[str]]:
    return {sort.letter: [word_text(word) for word in words] for sort, words in memories.items()}
