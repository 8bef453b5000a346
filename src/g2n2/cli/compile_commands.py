"""compile, trace, formula: plan and cost of a network, how it computes a word, exact formulas."""

from __future__ import annotations

import re
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..atomic_files import write_output
from ..described import bytes_text, number_text
from ..errors import DataError, GrammarError, LoweringError
from . import show
from .options import (
    HELP,
    AsJson,
    FunctionsOption,
    MarksOption,
    PairBias,
    PairNormOption,
    PoolingOption,
    ReadoutOption,
    Reduce,
    TrunkOption,
    of_network,
    of_words,
)

if TYPE_CHECKING:
    from ..compiler.plan import NetworkPlan
    from ..grammars.fragments import Fragment
    from ..grammars.grammar import Grammar
    from ..language.terms import Term
    from ..pipeline import Chosen


Figure = Literal["layer", "architecture", "overview"]
Diagram = Annotated[Path | None, typer.Option(help="Draw it into this SVG file.")]


def compile_(
    grammar: Annotated[str, typer.Argument(help=HELP)],
    width: Annotated[int, typer.Option(min=1, help="Channels of every memory.")] = 64,
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 3,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of a graph.")] = 29,
    batch: Annotated[int, typer.Option(min=1, help="Graphs in a batch.")] = 32,
    node_features: Annotated[int, typer.Option(min=0, help="Columns of X.")] = 0,
    edge_features: Annotated[int, typer.Option(min=0, help="Channels of E besides A.")] = 0,
    out: Annotated[
        int, typer.Option(min=1, help="Number of outputs for each graph, node or edge.")
    ] = 1,
    task: Annotated[
        Literal["graph", "node", "edge"], typer.Option(help="What an output belongs to.")
    ] = "graph",
    preset: Annotated[
        Literal["paper", "official", "ppgn", "modern"],
        typer.Option(help="Selectors, MLPs, norms, pooling: what rules leave open."),
    ] = "modern",
    readout: ReadoutOption = None,
    pooling: PoolingOption = None,
    functions: FunctionsOption = None,
    pair_bias: PairBias = None,
    pair_norm: PairNormOption = None,
    marks: MarksOption = None,
    trunk: TrunkOption = None,
    context: Annotated[
        bool,
        typer.Option(
            show_default=False, help="Outputs of nodes and edges read the whole graph too."
        ),
    ] = False,
    directed: Annotated[
        bool, typer.Option(show_default=False, help="Give Aᵀ as an input too.")
    ] = False,
    reduce: Reduce = None,
    diagram: Diagram = None,
    figure: Annotated[Figure, typer.Option(help="What --diagram draws.")] = "layer",
    json: AsJson = False,
) -> None:
    """The network of a grammar: shapes, parameters, FLOPs, memory."""
    given = dict(locals())  # before any other name is bound here
    from ..compiler.costs import NetworkCost
    from ..compiler.grammar_to_plan import plan_network, undefined_supports
    from ..compiler.marks import marks_named, refuse_without_marks
    from ..compiler.plan_to_text import plan_as_json, plan_text
    from ..language.terms import DISTANCES
    from ..verdict import network_verdict

    chosen = of_network(grammar, reduce)
    if marks is not None:
        refuse_without_marks(marks_named(marks), chosen.grammar)

    options = {name: given[name] for name in signature(plan_network).parameters if name in given}
    options |= {"functions": functions or "mlp", "marks": marks_named(marks or "all")}
    options |= {"trunk": trunk or 0, "supports": True}

    def planned(taken: Grammar) -> NetworkPlan:
        return plan_network(**{**options, "grammar": taken})

    plan = planned(chosen.grammar)
    note = chosen.sized_note(lambda taken: NetworkCost(planned(taken), 1, 1).weights)
    verdict = network_verdict(plan)
    if diagram is not None:  # before printing, so that `| head` loses nothing
        _write_svg(_drawn(plan, figure, grammar), diagram)
    if json:
        content = plan_as_json(plan, batch, nodes)
        if chunk := _copies_at_once(plan, batch, nodes):
            content["copies_at_once"] = {"copies": chunk[0], "activation_bytes": chunk[1]}
        show.as_json({**content, "note": note, "verdict": verdict.to_json()})
        return
    if note:
        show.say(f"{note}\n")
    show.say(plan_text(plan, batch, nodes))
    if chunk := _copies_at_once(plan, batch, nodes):
        copies, size = chunk
        show.say(
            f"\nThe memory above is that of all copies at once. A training step computes "
            f"{copies:,} at a time, and again in the backward pass: {bytes_text(size)} of "
            "activations.\nOn a GPU it computes as many as fit into an eighth of its memory"
        )
    missing = undefined_supports(plan.grammar)
    if DISTANCES.name in missing:
        show.say("\nD: the squared distances between nodes; the graphs need positions")
    if missing := tuple(name for name in missing if name != DISTANCES.name):
        show.say(f"\n{', '.join(missing)}: not defined here; the network takes their values")
    show.say(f"\n{verdict}")
    if diagram is not None:
        show.say(f"\n{figure} drawn in {diagram}")


def _copies_at_once(plan: NetworkPlan, batch: int, nodes: int) -> tuple[int, int] | None:
    """Copies a training step computes together, and the activations it holds; None for all."""
    from ..compiler.costs import COPIES_BYTES, NetworkCost

    if plan.marks is None or plan.scoped:
        return None
    cost = NetworkCost(plan, batch, nodes)
    each = NetworkCost(replace(plan, marks=None), 1, nodes).activation_bytes()
    copies = max(1, COPIES_BYTES // (each + 1))
    if copies >= cost.graphs:
        return None
    return copies, copies * each + (cost.trunk.activation_bytes() if cost.trunk else 0)


def trace(
    word: Annotated[str, typer.Argument(help="A word or sentence, for instance '1ᵀ(A²⊙A)1'.")],
    grammar: Annotated[str, typer.Option(help=HELP)] = "r-G_L3",
    reduce: Reduce = None,
    graph6: Annotated[str, typer.Option(help="Evaluate every step on this graph6 graph.")] = "",
    diagram: Diagram = None,
    json: AsJson = False,
) -> None:
    """How a network makes a word, rule by rule, and the layers needed."""
    from ..compiler.trace import trace as run
    from ..compiler.trace import trace_json
    from ..graphs import parse_graph6

    chosen = of_words(grammar, reduce)
    traced = run(chosen.grammar, word, parse_graph6(graph6) if graph6 else None)
    if diagram is not None:
        from ..compiler.plan_to_svg import trace_svg

        _write_svg(trace_svg(traced), diagram)
    if json:
        show.as_json({**trace_json(traced), "note": chosen.note})
        return
    if chosen.note:
        show.say(chosen.note)
    show.say(str(traced))
    if diagram is not None:
        show.say(f"\ndrawn in {diagram}")


def _drawn(plan: NetworkPlan, figure: Figure, grammar: str) -> str:
    from ..compiler import plan_to_svg

    if figure == "layer":
        return plan_to_svg.layer_svg(plan)
    if figure == "architecture":
        return plan_to_svg.architecture_svg(plan)
    from ..reduction.reduce import reduce

    fragment = _fragment(grammar)
    larger = plan.grammar if fragment is None else fragment.exhaustive()
    width = max(plan.layers[-1].widths().values())
    return plan_to_svg.overview_svg(larger, reduce(larger).reduced, fragment, width, plan.preset)


def _fragment(text: str) -> Fragment | None:
    """The operations an overview starts from; None for grammars that are no fragment's."""
    from ..grammars.fragments import Fragment

    named = re.fullmatch(r"(?:[ri]-)?G_?(L\d+)", text.strip())
    try:
        return Fragment.parse(named[1] if named else text)
    except GrammarError:
        return None


def _write_svg(content: str, path: Path) -> None:
    if path.suffix.lower() != ".svg":
        raise DataError(f"a diagram is written as SVG; name it for instance {path.stem}.svg")
    write_output(path, content.encode())


def formula(
    name: Annotated[
        str, typer.Argument(help="C6, induced C4, bull, K2,3, a Laplacian power; none lists all.")
    ] = "",
    grammar: Annotated[
        str, typer.Option(help=f"{HELP} [r-G_L3, or r-G_L3Σ where that takes a mark]")
    ] = "",
    reduce: Reduce = None,
    graph6: Annotated[str, typer.Option(help="Also print its value on this graph6 graph.")] = "",
    json: AsJson = False,
) -> None:
    """A ready formula as a sentence, and the network that can hold it."""
    from ..formulas.formula_plan import requirements
    from ..grammars.catalogue import find_grammar
    from ..grammars.subgraph_counts import FORMULAS, MARKED_FORMULAS
    from ..grammars.subgraph_counts import formula as named_formula
    from ..language.operations import BINDERS
    from ..language.terms import operators

    if not name:
        show.say("\n".join(FORMULAS | MARKED_FORMULAS))
        return
    asked = of_network(grammar, reduce) if grammar else None
    try:
        term = named_formula(name, asked.grammar if asked else None)
        marked = bool(operators(term) & set(BINDERS))
        chosen = asked.grammar if asked else find_grammar("r-G_L3Σ" if marked else "r-G_L3")
    except LoweringError as fault:
        raise LoweringError(f"{fault}{_merged_pair(name, asked)}") from None
    try:
        needs = f"{chosen.name}: {requirements(chosen, term)}"
    except LoweringError as fault:
        if asked:
            raise LoweringError(f"{fault}{_merged_pair(name, asked)}") from None
        needs = f"{chosen.name}: no weights: {fault}"
    value, shown = _formula_value(term, graph6) if graph6 else (None, "")
    if json:
        answer = {"name": name, "term": str(term), "grammar": chosen.name, "needs": needs}
        show.as_json({**answer, "value": value, "note": asked.note if asked else ""})
        return
    if asked and asked.note:
        show.say(asked.note)
    show.say(str(term))
    show.say(needs)
    if graph6:
        show.say(f"value: {shown}")


_PAIRS = (("C6", "2·C3"), ("rook 4×4", "Shrikhande graph"))
"""Graphs that 1-WL merges, and 3-WL."""


def _merged_pair(name: str, asked: Chosen | None) -> str:
    """Two graphs the grammar merges though the value differs: no sentence of it is the formula."""
    from ..grammars.subgraph_counts import formula as named_formula
    from ..graphs.names import graph_of_name
    from ..language.exact_values import exact_sentence
    from ..language.sorts import S
    from ..power.separation import separate

    if asked is None:
        return ""
    try:
        term, grammar = named_formula(name), asked.grammar
    except LoweringError:
        return ""
    for first, second in _PAIRS if term.sort == S else ():
        graphs = graph_of_name(first), graph_of_name(second)
        assert graphs[0] is not None
        assert graphs[1] is not None
        counts = [exact_sentence(term, graph) for graph in graphs if graph is not None]
        if counts[0] != counts[1] and separate(grammar, *graphs).verdict == "same":
            return (
                f"; {grammar.name} merges {first} and {second}, where the count is {counts[0]} "
                f"and {counts[1]}"
            )
    return ""


def _formula_value(term: Term, graph6: str) -> tuple[Any, str]:
    """The value of a formula on a graph, for JSON and for people: counts are exact."""
    from ..graphs import parse_graph6
    from ..language.evaluation import evaluate
    from ..language.exact_values import exact_sentence
    from ..language.sorts import S

    matrix = parse_graph6(graph6)
    if term.sort != S:
        entries = evaluate(term, matrix)
        return entries.tolist(), f"\n{show.matrix_text(entries)}"
    count = exact_sentence(term, matrix)
    if count is not None:
        return count, number_text(count)
    near = float(evaluate(term, matrix).item())
    return near, f"about {number_text(near)}, in float64"
