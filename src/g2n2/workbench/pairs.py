"""The right panel: two graphs, what tells them apart, by which sentence, round by round."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..compiler.grammar_to_plan import plan_network
from ..compiler.plan import NetworkPlan
from ..described import counted
from ..errors import DataError, G2N2Error
from ..grammars.catalogue import find_grammar
from ..grammars.grammar import Grammar
from ..graphs import Adjacency, adjacency, are_isomorphic, is_simple, to_graph6
from ..graphs.layout import graph_layout
from ..graphs.names import graph_text
from ..language.patterns import Pattern, normal_form
from ..language.terms import Term
from ..power.grammar_test import grammar_test
from ..power.pair_types import pair_types
from ..power.refinement import colour_rounds
from ..power.separation import Separation, separate
from .chain import Report
from .state import MOST_GRAPH_CHARACTERS

GALLERY: dict[str, tuple[str, str]] = {
    "C6 / 2·C3": ("C6", "2·C3"),
    "decalin / bicyclopentyl": ("decalin", "bicyclopentyl"),
    "C5+K1 / bull+K1": ("C5+K1", "bull+K1"),
    "rook 4×4 / Shrikhande": ("rook 4×4", "Shrikhande graph"),
    "CSL(41, 2) / CSL(41, 3)": ("CSL(41, 2)", "CSL(41, 3)"),
    "CFI(K2,3) / twisted": ("CFI(K2,3)", "twisted CFI(K2,3)"),
    "K3,3 / prism": ("K3,3", "prism"),
}
"""Pairs that are hard for some test."""

RIVALS = ("r-G_L1", "GNNML1", "2-IGN", "PPGN", "TriMul", "r-G_L3")
MOST_NODES = 48
MOST_NODES_4WL = 20
MOST_PATTERN_VERTICES = 12
MOST_PLACES = 60
_MOST_IMAGES = 3000
_SEARCH_STEPS = 100_000

Colouring = tuple[tuple[int, ...], ...]
"""One colour for each node of each graph."""


@dataclass(frozen=True)
class Drawn:
    """One graph of the pair."""

    name: str  # its name, or its graph6
    text: str  # what was typed
    points: tuple[tuple[float, float], ...] = ()  # where its nodes are drawn, in a square of side 1
    edges: tuple[tuple[int, int], ...] = ()  # pairs of nodes, each once
    note: str = ""  # what a reader should know of how the text was read
    fault: str = ""  # why the text is no graph; the rest is empty then


@dataclass(frozen=True)
class PairAnswer:
    """What one grammar or test says of the pair; `different` is None where it cannot say."""

    name: str
    different: bool | None
    detail: str
    mine: bool = False


@dataclass(frozen=True)
class Rounds:
    """Colours of the nodes of both graphs after each round, and when the graphs differ first."""

    colours: tuple[Colouring, ...] = ()
    separated_at: int | None = None
    note: str = ""


@dataclass(frozen=True)
class PairReport:
    """All that is shown of a pair."""

    graphs: tuple[Drawn, Drawn]  # both graphs
    outcomes: tuple[PairAnswer, ...] = ()  # grammars and tests, the language's own first
    sentence: str = ""  # the shortest sentence that differs, of the own grammar or else of r-G_L3
    whose: str = ""  # which grammar's sentence that is
    values: tuple[str, ...] = ()  # its values on both graphs
    shortest: bool = False  # whether none with fewer operations differs
    pattern: Pattern | None = None  # the pattern it counts, where it is one
    # for each graph the sets of edges the pattern covers, as it maps into the graph
    places: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = ((), ())
    rounds: dict[str, Rounds] = field(default_factory=dict)  # the colours of each test
    # whether the graphs are known to be the same up to the order of their nodes
    isomorphic: bool = False

    @property
    def faulty(self) -> bool:
        return any(graph.fault for graph in self.graphs)


def read_graph_text(text: str) -> tuple[Adjacency, str]:
    """The graph a text names, and a note on how it was read.

    Raises:
        DataError: It names none, or one that is too large or not simple.
    """
    if len(text) > MOST_GRAPH_CHARACTERS:
        raise DataError(f"the text is longer than {MOST_GRAPH_CHARACTERS} characters")
    if not text.strip():
        raise DataError("write graph6, a SMILES or a name such as C6, or draw the graph")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matrix = adjacency(text.strip())
    if len(matrix) > MOST_NODES:
        raise DataError(
            f"this graph has {len(matrix):,} nodes; the workbench takes {MOST_NODES}, and "
            "g2n2 separate takes more"
        )
    if not is_simple(matrix):
        raise DataError("the workbench compares simple undirected graphs; this one is none")
    return matrix, "; ".join(str(warning.message) for warning in caught)


def drawn_graph(text: str) -> Drawn:
    """A graph to be drawn, or the fault of its text."""
    try:
        matrix, note = read_graph_text(text)
    except G2N2Error as fault:
        return Drawn("", text, fault=str(fault).split("\n")[0])
    edges = tuple((int(i), int(j)) for i, j in np.argwhere(np.triu(matrix)))
    return Drawn(graph_text(matrix), text, graph_layout(matrix), edges, note)


def draw_pair(texts: tuple[str, str], report: Report) -> tuple[Drawn, Drawn]:
    """Both graphs of a pair, before anything is asked about them."""
    report(0.5, "reading the graphs")
    return drawn_graph(texts[0]), drawn_graph(texts[1])


def compare_pair(
    grammar: Grammar, layers: int, texts: tuple[str, str], report: Report
) -> PairReport:
    """Everything about two graphs and a grammar.

    Args:
        grammar: The reduced grammar of the language.
        layers: Layers of its network.
        texts: The graphs as they were typed.
        report: Told what is being done.
    """
    report(0.0, "reading the graphs")
    first, second = (drawn_graph(text) for text in texts)
    if first.fault or second.fault:
        return PairReport((first, second))
    pair = (read_graph_text(texts[0])[0], read_graph_text(texts[1])[0])
    separations: dict[str, Separation] = {}
    outcomes = []
    rivals = [name for name in RIVALS if find_grammar(name) != grammar]
    for number, name in enumerate((grammar.name, *rivals)):
        report(0.1 + 0.6 * number / (len(rivals) + 1), f"asking {name}")
        rules = grammar if number == 0 else find_grammar(name)
        outcome, separation = _asked(rules, name, pair, mine=number == 0)
        outcomes.append(outcome)
        if separation is not None and separation.sentence is not None:
            separations.setdefault(name, separation)
    report(0.75, "running WL tests")
    network = _network_rounds(grammar, layers, pair)
    at = None if network.separated_at is None else f"after {counted(network.separated_at, 'layer')}"
    seen = not network.note
    outcomes.insert(
        1,
        PairAnswer(
            f"its network, {counted(layers, 'layer')}",
            network.separated_at is not None if seen else None,
            at or network.note,
            mine=True,
        ),
    )
    rounds = {"1-WL": wl_rounds(pair, 1), "3-WL": wl_rounds(pair, 2), "network": network}
    for name in ("1-WL", "3-WL"):
        separated = rounds[name].separated_at
        detail = "" if separated is None else f"in round {separated}"
        outcomes.append(PairAnswer(name, separated is not None, detail))
    if max(map(len, pair)) <= MOST_NODES_4WL:
        separation = separate("4-WL", *pair)
        detail = f"in round {separation.depth}" if separation.different else ""
        outcomes.append(PairAnswer("4-WL", separation.different, detail))
    report(0.9, "looking for the counted pattern")
    isomorphic = are_isomorphic(*pair) is True
    pair_report = PairReport((first, second), tuple(outcomes), rounds=rounds, isomorphic=isomorphic)
    whose = grammar.name if grammar.name in separations else next(iter(separations), "")
    return _with_sentence(pair_report, separations[whose], whose, pair) if whose else pair_report


def _asked(
    grammar: Grammar, name: str, pair: tuple[Adjacency, Adjacency], mine: bool
) -> tuple[PairAnswer, Separation | None]:
    try:
        separation = separate(grammar, *pair)
    except G2N2Error as fault:
        return PairAnswer(name, None, str(fault).split("\n")[0], mine), None
    if separation.sentence is None:
        if separation.verdict == "same":
            return PairAnswer(name, False, "", mine), separation
        return PairAnswer(name, None, separation.verdict, mine), separation
    *shared, last = separation.definitions()
    detail = f"in {counted(separation.depth or 0, 'layer')}" if shared else f"by {last.term}"
    return PairAnswer(name, True, detail, mine), separation


def _with_sentence(
    report: PairReport, found: Separation, whose: str, pair: tuple[Adjacency, Adjacency]
) -> PairReport:
    assert found.sentence is not None
    pattern = counted_pattern(found.sentence)
    places = tuple(
        () if pattern is None else tuple(pattern_places(pattern, graph)) for graph in pair
    )
    modulo = f" mod {found.modulus}" if found.modulus else ""
    return replace(
        report,
        sentence=str(found.sentence),
        whose=whose,
        values=tuple(f"{value}{modulo}" for value in found.values or ()),
        shortest=found.shortest,
        pattern=pattern,
        places=places,
    )


def counted_pattern(sentence: Term) -> Pattern | None:
    """The one graph whose maps into a simple graph a sentence counts; None where it is no such."""
    try:
        form = normal_form(sentence, "simple")
    except G2N2Error:
        return None
    if len(form) != 1:
        return None
    pattern = next(iter(form))
    plain = all(edge.label == "A" for edge in pattern.edges)
    return pattern if plain and pattern.vertices <= MOST_PATTERN_VERTICES else None


def pattern_places(pattern: Pattern, graph: Adjacency) -> list[tuple[tuple[int, int], ...]]:
    """The sets of edges onto which a pattern maps, each once, those with most edges first."""
    wanted: list[list[int]] = [[] for _ in range(pattern.vertices)]
    for edge in pattern.edges:
        a, b = edge.ends
        wanted[max(a, b)].append(min(a, b))
    seen: set[tuple[tuple[int, int], ...]] = set()
    images = [-1] * pattern.vertices
    steps = 0

    def extend(vertex: int) -> None:
        nonlocal steps
        if vertex == pattern.vertices:
            ends = ((images[e.ends[0]], images[e.ends[1]]) for e in pattern.edges)
            seen.add(tuple(sorted({(min(pair), max(pair)) for pair in ends})))
            return
        for node in range(len(graph)):
            steps += 1
            if steps > _SEARCH_STEPS or len(seen) >= _MOST_IMAGES:
                return
            if all(graph[images[other], node] for other in wanted[vertex]):
                images[vertex] = node
                extend(vertex + 1)

    extend(0)
    return sorted(seen - {()}, key=lambda place: (-len(place), place))[:MOST_PLACES]


def wl_rounds(pair: Sequence[Adjacency], k: int) -> Rounds:
    """1-WL (k = 1) or 2-FWL, which is 3-WL (k = 2); a node then shows the colour of (i, i)."""
    history: list[Colouring] = []
    separated = None
    for colours in colour_rounds(pair_types(pair, None, None), k, "wl" if k == 1 else "fwl"):
        first, second = (np.sort(part, axis=None) for part in colours)
        if separated is None and not np.array_equal(first, second):
            separated = len(history)
        nodes = colours if k == 1 else [part.diagonal() for part in colours]
        history.append(tuple(tuple(part.tolist()) for part in nodes))
    return Rounds(steady_colours(history), separated)


def _numbered(keys: Sequence[Sequence[object]]) -> Colouring:
    numbers: dict[object, int] = {}
    return tuple(tuple(numbers.setdefault(key, len(numbers)) for key in part) for part in keys)


def steady_colours(history: Sequence[Colouring]) -> tuple[Colouring, ...]:
    """The same colours renamed, so that the largest part of a class that splits keeps its name."""
    steady: list[Colouring] = []
    for colours in history:
        flat = [colour for part in colours for colour in part]
        if not steady:
            steady.append(_numbered(colours))
            continue
        before = [colour for part in steady[-1] for colour in part]
        taken: dict[int, int] = {}
        fresh = max(before, default=-1) + 1
        for (new, old), _ in Counter(zip(flat, before, strict=True)).most_common():
            if new in taken:
                continue
            if old in taken.values():
                taken[new], fresh = fresh, fresh + 1
            else:
                taken[new] = old
        steady.append(tuple(tuple(taken[colour] for colour in part) for part in colours))
    return tuple(steady)


def _network_rounds(grammar: Grammar, layers: int, pair: tuple[Adjacency, Adjacency]) -> Rounds:
    """The WL test of the network: what its nodes can hold after each layer."""
    try:
        plan: NetworkPlan = plan_network(grammar, layers=layers, preset="modern")
        tested, options = plan.test_grammar(), plan.test_options()
        history: list[Colouring] = []
        separated = None
        for rounds in range(layers + 1):
            test_result = grammar_test(
                tested,
                list(pair),
                rounds=rounds,
                functions=options.functions,
                last_functions=options.last_functions,
                inputs=options.inputs,
                trunk=options.trunk,
            )
            if separated is None and test_result.separated():
                separated = rounds
            if not tested.scope:  # with marks the colour of a node is another for each mark
                history.append(tuple(tuple(part.tolist()) for part in test_result.node_colours()))
    except G2N2Error as fault:
        return Rounds(note=str(fault).split("\n")[0])
    return Rounds(steady_colours(history), separated)


def graph6_of_edges(nodes: int, edges: Sequence[Sequence[int]]) -> str:
    """The text of a drawn graph.

    Raises:
        DataError: Too many nodes, none, or an edge that is none.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise DataError(f"a graph here has 1 to {MOST_NODES} nodes")
    matrix = np.zeros((nodes, nodes))
    for ends in edges:
        if len(ends) != 2 or not all(isinstance(v, int) and 0 <= v < nodes for v in ends):
            raise DataError("an edge joins two nodes of the drawing")
        if ends[0] != ends[1]:
            matrix[ends[0], ends[1]] = matrix[ends[1], ends[0]] = 1
    return to_graph6(matrix)
