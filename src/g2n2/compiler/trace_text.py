"""A trace as text and as JSON."""

from __future__ import annotations

from typing import Any

from ..language.evaluation import Array
from ..language.terms import ONE, Term, apply
from .trace import Memories, Trace, TraceStep

_LARGEST = 12
"""Values of graphs with more nodes are described and not printed."""


def trace_text(trace: Trace) -> str:
    """Every step with its four parts: rule, inputs, computation, memories."""
    lines = [title(trace), "", *_memory_lines("start", trace.start)]
    layer: int | None = 0
    for number, step in enumerate(trace.steps, start=1):
        if step.layer != layer:
            layer = step.layer
            lines += ["", "read-out" if layer is None else f"layer {layer}"]
        lines += _step_lines(number, step)
    return "\n".join(lines)


def title(trace: Trace) -> str:
    """The word, the grammar and how many layers it takes."""
    depth = trace.depth
    layers = "no layer" if depth == 0 else "1 layer" if depth == 1 else f"{depth} layers"
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
    return "I" if term == apply("diag", ONE) else str(term)


def _step_lines(number: int, step: TraceStep) -> list[str]:
    inputs = ", ".join(f"{word_text(word)} from {word.sort.variable}" for word in step.inputs)
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
        return [f"{value.shape[0]}×{value.shape[1]} values from {value.min():g} to {value.max():g}"]
    rows = value.T if value.shape[1] == 1 else value
    cells = [[f"{number:g}" for number in row] for row in rows]
    width = max(len(cell) for row in cells for cell in row)
    return [" ".join(cell.rjust(width) for cell in row) for row in cells]


def _memories_json(memories: Memories) -> dict[str, list[str]]:
    return {sort.letter: [word_text(word) for word in words] for sort, words in memories.items()}
