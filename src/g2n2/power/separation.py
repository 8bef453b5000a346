"""Whether a grammar tells two graphs (nodes, pairs of nodes) apart, by which sentence, how deep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from ..described import counted
from ..errors import DataError, GrammarError
from ..grammars.coercion import GrammarLike, as_grammar
from ..grammars.grammar import LEVELS, Level
from ..grammars.layered_grammar import LayeredGrammar
from ..grammars.shared_subterms import Definition, regrouped, with_shared_subterms
from ..graphs import Adjacency, GraphLike, adjacency, are_isomorphic
from ..language.exact_values import exact_value
from ..language.modular import PRIMES
from ..language.terms import Term
from ..notebook_html import table as html_table
from ..validation import check_option
from .closure import Place, SentenceDifference, close, descend
from .memory_limit import DEFAULT_MEMORY_LIMIT, check_memory
from .random_probes import LAYERS, WIDTH, probe_pair
from .refinement import Refinement
from .shortest import MAX_SIZE, shortest_sentence
from .wl_tests import ONE_WL, WLTest, bound_of, bounded_by_1wl

__all__ = [
    "Engine",
    "Separation",
    "separate",
    "separate_nodes",
    "separate_pairs",
    "with_shared_subterms",
]


@dataclass(frozen=True)
class Separation:
    """The verdict on two graphs, nodes or pairs.

    Attributes:
        verdict: `different`, `same`, or `same up to d layers`.
        level: What was compared: graph, node or pair.
        readout: The read-out, in words.
        engine: `closure` or `random_probes`.
        primes: The moduli the verdict rests on; a difference needs one.
        depth: The fewest layers at which any sentence differs.
        sentence: One that differs, in the grammar's own notation; at node and pair level a word.
        values: Its values on both sides.
        modulus: The prime the values are residues of; None where they are exact.
        sentence_depth: The layers this sentence takes; the shortest may take more than `depth`.
        shortest: Whether no sentence with fewer operations differs.
        searched: All sentences with at most so many operations have been tried.
        note: What else a reader should know.
    """

    verdict: str
    level: Level
    readout: str
    engine: str
    primes: tuple[int, ...]
    depth: int | None = None
    sentence: Term | None = None
    values: tuple[int | Fraction, ...] | None = None
    modulus: int | None = None
    sentence_depth: int | None = None
    shortest: bool = False
    searched: int | None = None
    note: str = ""

    @property
    def different(self) -> bool:
        return self.verdict == "different"

    def definitions(self) -> list[Definition]:
        """The sentence with its shared parts named, last; empty where there is none."""
        return [] if self.sentence is None else with_shared_subterms(self.sentence)

    def _repr_html_(self) -> str:
        return html_table([(line,) for line in str(self).splitlines()])

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.sentence is not None and self.values is not None:
            what = "no shorter sentence differs" if self.shortest else "not proved shortest"
            lines += [f"  {definition}" for definition in self.definitions()[:-1]]
            last = self.definitions()[-1].term
            shown = " and ".join(map(str, self.values))
            modulo = f" (modulo {self.modulus})" if self.modulus else ""
            lines.append(f"  {last} has the values {shown}{modulo}; {what}")
        if self.depth is not None:
            lines.append(f"  layers: {self.depth}")
        lines.append(f"  read-out: {self.readout}")
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)


ISOMORPHIC = "the graphs are isomorphic: no grammar and no test tells them apart"


def separate(
    grammar: GrammarLike,
    g: GraphLike,
    h: GraphLike,
    engine: Engine = "auto",
    level: Level = "graph",
    readout: str | None = None,
    at: tuple[int, int] | tuple[Pair, Pair] | None = None,
    directed: bool = False,
    layers: int | None = None,
    width: int = WIDTH,
    max_size: int = MAX_SIZE,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Separation:
    """Decide whether a grammar tells two graphs, nodes or pairs of nodes apart.

    >>> import networkx as nx
    >>> from g2n2 import separate
    >>> triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    >>> found = separate("r-G_L3", nx.cycle_graph(6), triangles)
    >>> found.verdict, str(found.sentence), found.values
    ('different', '1ᵀ(A²⊙A)1', (0, 12))

    Args:
        grammar: Any grammar without pointwise functions: a Grammar, what `derive` gives, its name
            or rules, a fragment, a file of rules or with a certificate; for its power with
            functions, pass it with V → V⊙V | 1 and M → M⊙M | 1·1ᵀ added. Or a WL test, `3-WL`.
        g: The first graph, as `g2n2.graphs.adjacency` takes it.
        h: The second graph; it may be the first again.
        engine: `closure` is complete: its `same` is exact but for an unlucky choice of two primes.
            `random_probes` is for large graphs and goes `layers` deep. `auto` takes the closure up
            to 35 nodes.
        level: `graph`, or `node` (words of V) or `pair` (words of M) with `at`.
        readout: None for the grammar's own, `network` for 1ᵀV, Tr(M) and 1ᵀM1 as far as it has the
            variables, or rules such as `S → VᵀV | Tr(M)`.
        at: A node of each graph, or a pair of nodes of each.
        directed: Allow matrices that are not symmetric.
        layers: The most layers of a sentence; None for as many as there are, and 8 for the random
            probes.
        width: Random probes per rule and layer.
        max_size: The most operations of a sentence in the search for the shortest.
        memory_limit: Bytes an engine may take; checked before anything is allocated.

    Raises:
        DataError: A graph is malformed, directed without `directed`, has weights that are not
            integers, or is too large; or `at` does not fit the level and the graphs.
        GrammarError: The grammar cannot be evaluated exactly, or has no words of that level.
    """
    engine = _OLD_ENGINES.get(engine, engine)
    check_option("engine", engine, ENGINES)
    check_option("level", level, LEVELS)
    test = WLTest.find(grammar) if isinstance(grammar, str) else None
    if test is not None:
        return _by_test(test, (g, h), level)
    grammar = as_grammar(grammar)
    graphs = (adjacency(g), adjacency(h))
    if not directed:
        check_symmetric(graphs)
    if level == "graph" and readout is None and not grammar.sentence_rules:
        note = "the grammar has no sentences: it tells nothing apart"
        return Separation("same", level, "none", "closure", (), note=note)
    layered = LayeredGrammar.of(grammar, readout, level)
    places = compared_places(level, at, graphs)
    chosen: str = engine
    if engine == "auto":
        most = MARKED_CLOSURE_ENTRIES if layered.scope else CLOSURE_ENTRIES
        chosen = "closure" if _word_entries(layered, graphs) <= most else "random_probes"
    comparison = _Comparison(layered, graphs, places, level, chosen, layers, memory_limit)
    difference, complete = comparison.difference(width)
    if difference is None:
        return comparison.same(complete)
    return comparison.different(difference, max_size)


def _by_test(test: WLTest, graphs: tuple[GraphLike, GraphLike], level: Level) -> Separation:
    """A WL test in the place of a grammar: colours decide, and there is no sentence."""
    if level != "graph":
        raise GrammarError(
            f"{test.name} has no words to compare at a {level}; g2n2.refine gives its colours of "
            "nodes and pairs"
        )
    matrices = [adjacency(graph) for graph in graphs]
    at = test.refine(matrices).separated_at()
    verdict = "same" if at is None else "different"
    note = _size_note(matrices)
    if at is None and are_isomorphic(*matrices):
        note = ISOMORPHIC
    return Separation(verdict, level, "colours", test.name, (), depth=at, note=note)


def separate_nodes(
    grammar: GrammarLike, g: GraphLike, i: int, h: GraphLike, j: int, engine: Engine = "auto"
) -> Separation:
    """Decide whether some word of V has different values at node i of g and node j of h."""
    return separate(grammar, g, h, engine, "node", at=(i, j))


def separate_pairs(
    grammar: GrammarLike,
    g: GraphLike,
    pair: Pair,
    h: GraphLike,
    other: Pair,
    engine: Engine = "auto",
) -> Separation:
    """Decide whether some word of M has different values at a pair of g and a pair of h."""
    return separate(grammar, g, h, engine, "pair", at=(pair, other))


@dataclass(frozen=True)
class _Comparison:
    """Two places whose words are compared, and how."""

    grammar: LayeredGrammar
    graphs: tuple[Adjacency, Adjacency]
    places: tuple[Place, Place]
    level: Level
    engine: str
    layers: int | None
    memory_limit: int

    @property
    def most_layers(self) -> int:
        return LAYERS if self.layers is None else self.layers

    def difference(self, width: int) -> tuple[SentenceDifference | None, bool]:
        """A sentence over combinations of words that differs modulo one of two primes.

        And whether all words were compared.
        """
        grammar, graphs, places, limit = self.grammar, self.graphs, self.places, self.memory_limit
        if self.engine == "closure":
            check_closure_memory(grammar, graphs, limit)
        for prime in PRIMES[:2]:
            if self.engine == "closure":
                closure = close(grammar, graphs, places, prime, limit, self.layers)
                difference, complete = closure.difference, closure.complete
            else:
                deep = self.most_layers
                difference = probe_pair(grammar, graphs, places, deep, width, prime, limit)
                complete = False
            if difference is not None:
                break
        return difference, complete

    def different(self, difference: SentenceDifference, max_size: int) -> Separation:
        """The verdict with a sentence: the shortest, or where none is found one that differs."""
        memory = difference.memory
        shortest = shortest_sentence(
            self.grammar, self.graphs, self.places, max_size, prime=memory.prime
        )
        too_deep = self.layers is not None and (shortest.depth or 0) > self.layers
        if shortest.term is not None and not too_deep:
            term, depth, word = regrouped(shortest.term), shortest.depth, None
        else:
            word = descend(difference)
            term, depth = word.term, word.depth
        supports = dict(self.grammar.supports)
        exact = [
            exact_value(term, self.graphs[place.graph], supports, place.row, place.column)
            for place in self.places
        ]
        values = tuple(value for value in exact if value is not None)
        modulus = None
        if len(values) < len(exact):
            modulus = memory.prime
            batch = word.values if word else [stack.values(term, ()) for stack in memory.stacks]
            values = tuple(int(batch[s][0, g, i, j]) for s, g, i, j in difference.places)
        return Separation(
            "different",
            self.level,
            self.grammar.readout,
            self.engine,
            (memory.prime,),
            depth=difference.layer,
            sentence=term,
            values=values,
            modulus=modulus,
            sentence_depth=depth,
            shortest=word is None,
            searched=shortest.searched if shortest.searched >= 0 else None,
            note=_size_note(self.graphs),
        )

    def same(self, complete: bool) -> Separation:
        """The verdict where no difference was found."""
        if self.level == "graph" and are_isomorphic(*self.graphs):
            verdict, note = "same", ISOMORPHIC
        elif complete:
            sizes = _size_note(self.graphs)
            verdict, note = "same", f"{sizes}, which no sentence here sees" if sizes else ""
        else:
            verdict, note = self._same_by_bound()
        readout = self.grammar.readout
        return Separation(verdict, self.level, readout, self.engine, PRIMES[:2], note=note)

    def _same_by_bound(self) -> tuple[str, str]:
        """A WL test that bounds the grammar decides, where it merges the places."""
        verdict = f"same up to {counted(self.most_layers, 'layer')}"
        rules = (*self.grammar.rules, *self.grammar.sentences)
        bound = bound_of(rules, self.grammar.operations)
        if self.level == "graph" and bounded_by_1wl(rules, self.grammar.operations):
            undirected = all(np.array_equal(graph, graph.T) for graph in self.graphs)
            bound = ONE_WL if undirected else bound
        if bound is None or (bound.marks and self.level != "graph"):
            return verdict, "more layers may tell them apart"
        try:
            colours = bound.refine(self.graphs, self.memory_limit)
        except DataError as error:
            return verdict, f"{bound.name} was not asked: {error}"
        if self.level == "graph":
            separated = colours.separated()
        else:
            assert isinstance(colours, Refinement), "tests with marks colour graphs only"
            of_pairs = colours.pair_colours()
            nodes = ((p.row, p.column if self.level == "pair" else p.row) for p in self.places)
            first, second = (of_pairs[graph][pair] for graph, pair in enumerate(nodes))
            separated = bool(first != second)
        if separated:
            other = "" if self.engine == "closure" else ", or engine 'closure',"
            more = f"more layers{other} may do so too"
            return verdict, f"{bound.name} tells them apart; {more}"
        return "same", f"{bound.name} merges them too, which bounds the grammar"


def _size_note(graphs: Sequence[Adjacency]) -> str:
    first, second = map(len, graphs)
    return "" if first == second else f"the graphs have {first} and {second} nodes"


Engine = Literal["auto", "closure", "random_probes"]
ENGINES: tuple[Engine, ...] = ("auto", "closure", "random_probes")
_OLD_ENGINES: dict[str, Engine] = {"mixing": "random_probes"}  # its name before 0.2
Pair = tuple[int, int]

CLOSURE_ENTRIES = 2 * 35**2
"""Up to so many numbers per word, `auto` closes a basis: two graphs of 35 nodes with M."""
MARKED_CLOSURE_ENTRIES = 2 * 16**3
"""The same inside marks, where far fewer words differ: two graphs of 16 nodes with M′."""

_LEAST_BASIS = 32  # words; a closure that cannot hold so many is not begun


def _word_entries(grammar: LayeredGrammar, graphs: Sequence[Adjacency]) -> int:
    """Numbers in one word of the largest sort, on all graphs."""
    largest = max((sort.boundary + sort.scope for sort in grammar.sorts), default=0)
    return sum(len(graph) ** largest for graph in graphs)


def check_closure_memory(grammar: LayeredGrammar, graphs: Sequence[Adjacency], limit: int) -> None:
    shown = " and ".join(f"{len(graph):,}" for graph in graphs)
    check_memory(
        f"engine 'closure' on {shown} nodes keeps {_LEAST_BASIS} words or far more, at least",
        16 * _word_entries(grammar, graphs) * _LEAST_BASIS,
        limit,
        "use engine='random_probes', whose memory grows with its layers only",
    )


def check_symmetric(graphs: Sequence[Adjacency]) -> None:
    for number, graph in enumerate(graphs, start=1):
        odd = np.argwhere(graph != graph.T)
        if len(odd):
            i, j = (int(index) for index in odd[0])
            raise DataError(
                f"graph {number} is directed: A[{i}, {j}] = {graph[i, j]:g} and A[{j}, {i}] = "
                f"{graph[j, i]:g}; pass directed=True to compare digraphs (and give the grammar Aᵀ)"
            )


def compared_places(
    level: Level,
    at: tuple[int, int] | tuple[Pair, Pair] | None,
    graphs: tuple[Adjacency, Adjacency],
) -> tuple[Place, Place]:
    if level == "graph":
        if at is not None:
            raise DataError("`at` names nodes or pairs; pass level='node' or level='pair' with it")
        return Place(0), Place(1)
    example = "(i, j)" if level == "node" else "((i, k), (j, l))"
    if at is None or len(at) != 2:
        raise DataError(f"level {level!r} compares one {level} of each graph: pass at={example}")
    first, second = (_place(level, number, at[number], graphs[number]) for number in (0, 1))
    return first, second


def _place(level: Level, number: int, entry: int | Pair, graph: Adjacency) -> Place:
    wanted = (entry,) if isinstance(entry, int | np.integer) else tuple(entry)
    if len(wanted) != (1 if level == "node" else 2):
        raise DataError(f"{entry!r} is no {level} of graph {number + 1}")
    if not all(0 <= node < len(graph) for node in wanted):
        raise DataError(
            f"{entry!r} is not in graph {number + 1}: its nodes are 0 to {len(graph) - 1}"
        )
    return Place(number, *wanted)
