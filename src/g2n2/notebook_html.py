"""HTML for notebooks: tables, derivations, verdicts and small drawings; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from .grammars.grammar import Grammar
    from .pipeline import Derivation
    from .verdict import Verdict

LARGEST_DRAWN = 40
"""Nodes up to which a graph is drawn."""
_SIDE = 110
_LEFT = 'style="text-align:left;vertical-align:top"'


def typeset(text: str) -> str:
    """Escaped text with V_c, V_r, G_L3Σ and G_{·, Tr} as V and G with an index."""
    return re.sub(r"V_([cr])|G_(L\d+Σ*|\{[^{}]*\})", _index, escape(text))


def _index(found: re.Match[str]) -> str:
    return f"{found[0][0]}<sub>{found[1] or found[2]}</sub>"


def table(rows: Iterable[Sequence[str]], headers: Sequence[str] = (), caption: str = "") -> str:
    """Rows of text as a table; the cells of a row without headers begin with its name."""
    title = f"<caption>{typeset(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(text)}</th>" for text in headers)
    body = "".join(
        "<tr>" + "".join(f"<td {_LEFT}>{typeset(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>{title}{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def facts(caption: str, named: dict[str, str], drawing: str = "") -> str:
    """Named values as a table, and what is drawn of them."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in named.items()
    )
    last = f'<tr><td colspan="2">{drawing}</td></tr>' if drawing else ""
    return f"<table><caption>{escape(caption)}</caption>{rows}{last}</table>"


def grammar(shown: Grammar, struck: Iterable[Any] = ()) -> str:
    """A line for each variable; rules that are struck were removed."""
    gone = set(struck)
    if not gone:
        return table([(line,) for line in shown.lines()], caption=shown.name)
    lines: dict[str, list[str]] = {}
    for rule in shown.all_rules:
        head, _, body = str(rule).partition(" → ")
        text = typeset(body)
        shown_rule = f'<s style="opacity:.5">{text}</s>' if rule in gone else f"<b>{text}</b>"
        lines.setdefault(head, []).append(shown_rule)
    rows = "".join(
        f"<tr><td {_LEFT}>{typeset(head)} → {' | '.join(bodies)}</td></tr>"
        for head, bodies in lines.items()
    )
    return f"<table><caption>{typeset(shown.name)}</caption>{rows}</table>"


def derivation(result: Derivation) -> str:
    """Both grammars, the steps from one to the other, what stays and why, the verdict."""
    removed = [rule for step in result.steps for rule in step.removed]
    parts = [f"<div><b>{escape(str(result.fragment))}</b></div>"]
    parts.append(grammar(result.exhaustive, removed))
    for number, step in enumerate(result.steps, 1):
        rules = typeset(", ".join(map(str, step.removed)))
        notes = [step.reason, *step.identities]
        notes += [f"paper: {step.paper}"] * bool(step.paper) + [f"ours: {step.ours}"] * bool(
            step.ours
        )
        listed = "".join(f"<li>{typeset(note)}</li>" for note in notes)
        summary = f"Step {number}: {escape(step.title)} ({escape(step.status)}): <s>{rules}</s>"
        parts.append(f"<details><summary>{summary}</summary><ul>{listed}</ul></details>")
    if result.reduced != result.exhaustive:
        parts.append(grammar(result.reduced))
    parts.append(table([(str(k.rule), k.reason) for k in result.kept], ("rule that stays", "why")))
    return "".join(parts) + verdict(result.verdict)


def verdict(found: Verdict) -> str:
    """Statements as rows, their evidence folded."""
    rows, about = "", ""
    for statement in found.statements:
        title = "" if statement.about == about else typeset(about := statement.about)
        summary = f"{escape(statement.relation)} {typeset(statement.against)}"
        evidence = "<br>".join(map(typeset, statement.evidence))
        rows += (
            f"<tr><td {_LEFT}>{title}</td><td {_LEFT}>"
            f"<details><summary>{summary}</summary>{evidence}</details></td></tr>"
        )
    notes = "".join(f"<p>{typeset(note)}</p>" for note in found.notes)
    return f"<table><caption>Verdict, for simple undirected graphs</caption>{rows}</table>{notes}"


@dataclass(frozen=True)
class DrawnGraphs:
    """Graphs drawn side by side; shown by a notebook.

    Attributes:
        graphs: Anything `g2n2.adjacency` takes.
        names: A line below each.
    """

    graphs: tuple[Any, ...]
    names: tuple[str, ...]

    def _repr_html_(self) -> str:
        from .graphs import adjacency

        cells = "".join(
            f'<td style="text-align:center">{graph_svg(adjacency(graph))}<br>{escape(name)}</td>'
            for graph, name in zip(self.graphs, self.names, strict=True)
        )
        return f"<table><tr>{cells}</tr></table>"


def draw(*graphs: Any) -> DrawnGraphs:
    """Draw graphs in a notebook, each above its name, or its graph6 where it has none."""
    from .graphs.names import graph_text

    return DrawnGraphs(graphs, tuple(map(graph_text, graphs)))


def graph_svg(matrix: npt.NDArray[Any]) -> str:
    """A small drawing of a graph, its components side by side; only its size if it is large."""
    if len(matrix) > LARGEST_DRAWN:
        return f"{len(matrix):,} nodes"
    from .graphs.layout import graph_layout

    places = [(round(_SIDE * x), round(_SIDE * y)) for x, y in graph_layout(matrix)]
    links = (
        f"M{places[i][0]} {places[i][1]}L{places[j][0]} {places[j][1]}"
        for i in range(len(matrix))
        for j in range(i)
        if matrix[i, j] or matrix[j, i]
    )
    dots = (f"M{x} {y}h0" for x, y in places)
    return (
        f'<svg width="{_SIDE}" height="{_SIDE}" fill="none" stroke="currentColor">'
        f'<path d="{"".join(links)}"/><path stroke-width="7" stroke-linecap="round" '
        f'd="{"".join(dots)}"/></svg>'
    )
