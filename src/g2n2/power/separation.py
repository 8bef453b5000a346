"""Whether a grammar tells two graphs (nodes, pairs of nodes) apart, by which sentence, how deep."""

from collections.abc import Iterable, Sequence

from ..errors import DataError, GrammarError
from ..grammars.coercion import GrammarLike, as_grammar
from ..graphs import Adjacency, GraphLike, adjacency
from ..language.operations import BUILT_IN, OPERATIONS
from ..language.terms import Term
from ..options import check_option
from .closure import DEFAULT_MEMORY_LIMIT, Difference, Place, close
from .descent import Word, descend
from .exact_values import exact_value
from .layered_grammar import LEVELS, LayeredGrammar, Level
from .modular import PRIMES
from .random_probes import LAYERS, WIDTH, mix_pair
from .refinement import refine
from .separation_input import (
    ENGINES,
    Engine,
    Pair,
    check_closure_memory,
    check_symmetric,
    choose_engine,
    compared_places,
)
from .separation_result import Separation
from .sharing import regrouped, with_shared_subterms
from .shortest import MAX_SIZE, Shortest, shortest_sentence
from .wl_tests import WLTest
from .word_memory import Batch

__all__ = [
    "Engine",
    "Separation",
    "separate",
    "separate_nodes",
    "separate_pairs",
    "with_shared_subterms",
]


def bounded_by_2fwl(operations: Iterable[str]) -> bool:
    """Whether graphs that 2-FWL merges have equal sentences over these operations.

    So it is where every word is a sum of patterns of treewidth at most 2: L3 + Tr with + and ×, and
    whatever operation joins such patterns to such a pattern.
    """
    used = [OPERATIONS[name] for name in operations]
    return all(op.kind != "pointwise" and op.axes.treewidth_two for op in used)


def separate(
    grammar: GrammarLike,
    g: GraphLike,
    h: GraphLike,
    engine: Engine = "auto",
    level: Level = "graph",
    readout: str | None = None,
    at: tuple[int, int] | tuple[Pair, Pair] | None = None,
    directed: bool = False,
    layers: int = LAYERS,
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
            `mixing` is for large graphs and goes `layers` deep. `auto` takes the closure up to 35
            nodes.
        level: `graph`, or `node` (words of V) or `pair` (words of M) with `at`.
        readout: None for the grammar's own, `network` for 1ᵀV, Tr(M) and 1ᵀM1 as far as it has the
            variables, or rules such as `S → VᵀV | Tr(M)`.
        at: A node of each graph, or a pair of nodes of each.
        directed: Allow matrices that are not symmetric.
        layers: How deep the mixing goes.
        width: Random combinations per rule and layer of the mixing.
        max_size: The most operations of a sentence in the search for the shortest.
        memory_limit: Bytes an engine may take; checked before anything is allocated.

    Raises:
        DataError: If a graph is malformed, not symmetric, has weights that are not integers, or is
            too large for the memory; or `at` does not fit the level and the graphs.
        GrammarError: If the grammar cannot be evaluated exactly, or has no words of that level.
    """
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
    chosen = choose_engine(engine, layered, graphs)
    if chosen == "closure":
        check_closure_memory(layered, graphs, memory_limit)
    difference: Difference | None = None
    for prime in PRIMES[:2]:
        if chosen == "closure":
            difference = close(layered, graphs, places, prime, memory_limit).difference
        else:
            difference = mix_pair(layered, graphs, places, layers, width, prime, memory_limit)
        if difference is not None:
            break
    if difference is None:
        verdict, note = _same(chosen, layered, graphs, places, level, layers, memory_limit)
        return Separation(verdict, level, layered.readout, chosen, PRIMES[:2], note=note)
    prime = difference.memory.prime
    shortest = shortest_sentence(layered, graphs, places, max_size, prime=prime)
    word = descend(difference) if shortest.term is None else None
    return _different(layered, graphs, places, level, chosen, difference, shortest, word)


def _by_test(test: WLTest, graphs: tuple[GraphLike, GraphLike], level: Level) -> Separation:
    """A WL test in the place of a grammar: colours decide, and there is no sentence."""
    if level != "graph":
        raise GrammarError(
            f"{test.name} has no words to compare at a {level}; g2n2.refine gives its colours of "
            "nodes and pairs"
        )
    matrices = [adjacency(graph) for graph in graphs]
    found = test.refine(matrices)
    verdict = "different" if found.separated() else "same"
    note = _size_note(matrices)
    return Separation(
        verdict, level, "colours", test.name, (), depth=found.separated_at(), note=note
    )


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


def _different(
    grammar: LayeredGrammar,
    graphs: tuple[Adjacency, Adjacency],
    places: tuple[Place, Place],
    level: Level,
    engine: str,
    difference: Difference,
    shortest: Shortest,
    word: Word | None,
) -> Separation:
    if word is None:
        assert shortest.term is not None
        term, depth = regrouped(shortest.term), shortest.depth
    else:
        term, depth = word.term, word.depth
    prime = difference.memory.prime
    exact = [
        exact_value(term, graphs[place.graph], dict(grammar.supports), place.row, place.column)
        for place in places
    ]
    values = tuple(value for value in exact if value is not None)
    modulus = None
    if len(values) < len(exact):
        modulus = prime
        batch = word.values if word is not None else _batch(term, difference)
        values = tuple(int(batch[s][0, g, i, j]) for s, g, i, j in difference.places)
    return Separation(
        "different",
        level,
        grammar.readout,
        engine,
        (prime,),
        depth=difference.layer,
        sentence=term,
        values=values,
        modulus=modulus,
        sentence_depth=depth,
        shortest=word is None,
        searched=shortest.searched if shortest.searched >= 0 else None,
        note=_size_note(graphs),
    )


def _batch(term: Term, difference: Difference) -> Batch:
    """The values of a word modulo the prime."""
    return [stack.values(term, ()) for stack in difference.memory.stacks]


def _same(
    engine: str,
    grammar: LayeredGrammar,
    graphs: tuple[Adjacency, Adjacency],
    places: tuple[Place, Place],
    level: Level,
    layers: int,
    memory_limit: int,
) -> tuple[str, str]:
    """The verdict where no difference was found, and a note."""
    if engine == "closure":
        note = _size_note(graphs)
        return "same", f"{note}, which no sentence here sees" if note else ""
    verdict = f"same up to {layers} layers"
    if not bounded_by_2fwl(grammar.operations):
        return verdict, "more layers may tell them apart"
    try:
        refinement = refine(graphs, 2, "fwl", memory_limit=memory_limit)
    except DataError as error:
        return verdict, f"2-FWL was not asked: {error}"
    if level == "graph":
        merged = not refinement.separated()
    else:
        first, second = (
            refinement.colours[p.graph][p.row, p.column if level == "pair" else p.row]
            for p in places
        )
        merged = bool(first == second)
    if merged:
        own = grammar.operations <= set(BUILT_IN)
        which = "no grammar within L3 + Tr sees" if own else "words of treewidth 2 see no"
        return "same", f"2-FWL merges them too, and {which} more"
    return verdict, "2-FWL tells them apart; more layers, or engine 'closure', may do so too"


def _size_note(graphs: Sequence[Adjacency]) -> str:
    first, second = map(len, graphs)
    return "" if first == second else f"the graphs have {first} and {second} nodes"
