"""The WL test of a grammar: what its networks tell apart, layer by layer, read off its rules.

Round 0: the memory of a variable holds the values of its terminals. In every further round an
entry's new colour is a function of its old one and, for each rule whose operands exist, of the
weighted multiset of operand colours that meet in the rule's sum; a weight is the sum of the
constants' products over the indices where those colours meet. The first round reads values, as no
function stands between inputs and rules. The colour of a graph is what the rules of S give on the
last memories, through any function. Scalars inside marks that only scalars read (S′ in S → Σu. S′)
belong to the read-out: they are coloured when it is read. For networks with linear selectors,
biased MLPs and sum read-outs the test is exact: some network of that depth separates two graphs iff
the test does.

Rounds before the marks (`trunk`) are those of the same rules without marks. Their memories, beside
the terminals that name a mark, are what the rules inside the marks start from.

**How multisets are compared.** The weights of a rule are the coefficients of a multilinear form in
random numbers, one for each operand and colour: the rule itself on matrices of random numbers,
`DRAWS` times modulo each of two primes near 2 ** 26, drawn once for all graphs. Equal multisets
have equal values, so "different" is exact. Unequal ones agree at one point with chance at most
(operands + 1) / prime (Schwartz-Zippel): for up to three operands below 2 ** -192 over all draws.
Supports with square roots are mapped into a field that has the roots (`exact_constants`).
The tests hold it against a naive twin, `tests/naive_grammar_test.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..described import Described, some
from ..errors import DataError, GrammarError
from ..grammars.grammar import Grammar
from ..grammars.network_rules import Mixing, mixing_by_sort, pooled_readout, words_of_test
from ..grammars.rules import Rule, mentions
from ..graphs import Adjacency, GraphLike, adjacency
from ..language.sorts import M, R, S, Sort, V
from .colour_memories import (
    DRAWS,
    ColourMemory,
    JoinedMemory,
    LiftedMemory,
    Memory,
    ValueMemory,
    renewed,
)
from .colours import SEED, ColourHistory, Colours, chunks_by_size, in_order, joint_ranks
from .exact_constants import EXACT_FUNCTIONS, check_supports, functions_in
from .random_probes import graph_classes, probe_graphs
from .rule_sums import Constants, RuleSums, applies_free_function, constant_functions

__all__ = ["GrammarColours", "Mixing", "grammar_test", "pooled_readout", "words_of_test"]

_NOISE = 1e-9
STACK_ENTRIES = 2**22
"""Numbers of a memory that are computed together."""

Functions = Mixing | Mapping[Sort, Mixing]
Inputs = Literal["values", "colours", "functions"]
"""What stands between the terminals and the first round."""


def grammar_test(
    grammar: Grammar,
    graphs: Sequence[GraphLike],
    *,
    rounds: int | None = None,
    readout: Literal["grammar", "pooled"] | Sequence[Rule] = "grammar",
    functions: Functions = "any",
    last_functions: Functions | None = None,
    inputs: Inputs = "values",
    supports: Mapping[str, Sequence[ArrayLike]] | None = None,
    trunk: int = 0,
) -> GrammarColours:
    """Colour graphs by the WL test of a grammar.

    >>> from g2n2 import find_grammar, grammar_test
    >>> grammar_test(find_grammar("G_L1"), ["C6", "2C3"], rounds=3).separated_at(0, 1)
    2

    Args:
        grammar: Any grammar; its rules without variables are what the memories start from.
        graphs: Whatever `adjacency` takes; sizes may differ. The size is no colour of its own.
        rounds: How many rounds, the layers of a network; until nothing changes where None.
        readout: `grammar` for its own rules of S, `pooled` for 1ᵀV, V_r1, Tr(M) and 1ᵀ(M⊙J)1 as
            far as it has the variables, or rules of S.
        functions: What stands on the memories after every round (`Mixing`), for all variables or by
            variable. With linear mixing words decide (`words_of_test`).
        last_functions: The same after the last round before a read-out, where that differs.
        inputs: `values` where the first round reads the terminals as numbers; `colours` where a
            function with f(0) = 0 stands before it, as the norm of the preset `modern`; `functions`
            where any function does, as the MLPs in the selectors of PPGN.
        supports: Values `[n, n]` per graph of the matrices the grammar names and does not define.
        trunk: Rounds before the marks of a grammar; `rounds` counts those after them.

    Raises:
        DataError: A graph is malformed, or values of supports do not fit the graphs.
        GrammarError: No sentence to read out, a support without value, or an unknown option.
    """
    if isinstance(graphs, str) or len(graphs) == 0:
        raise DataError("nothing to colour: expected a list of at least one graph")
    if rounds is not None and (not isinstance(rounds, int) or rounds < 0):
        raise DataError(f"rounds must be a whole number, at least 0, got {rounds!r}")
    if not isinstance(trunk, int) or trunk < 0 or (trunk and not grammar.scope):
        raise DataError(
            f"trunk is the number of rounds before the marks of a grammar, got {trunk!r}"
            f"{'' if grammar.scope else ', and this grammar has no marks'}"
        )
    if inputs not in get_args(Inputs):
        raise GrammarError(f"inputs are read as {', '.join(get_args(Inputs))}, got {inputs!r}")
    matrices = [adjacency(graph) for graph in graphs]
    sentences = _readout(grammar, readout)
    given = _given_supports(supports, matrices)
    bodies = [rule.body for rule in (*grammar.rules, *sentences)]
    check_supports(bodies, dict(grammar.supports), given, grammar.marks)
    mixing = mixing_by_sort(functions)
    last = mixing_by_sort(last_functions) if last_functions is not None else None
    heads = {rule.head.plain for rule in grammar.rules}
    if any(kinds[sort] == "linear" for kinds in (mixing, last or {}) for sort in heads & {*kinds}):
        return _decided_by_words(grammar, matrices, rounds, sentences, mixing, trunk)
    test = _Test(grammar, sentences, matrices, given)
    history, memories, stable = test.run(rounds, mixing, last, inputs, trunk)
    note = _note(test, bool(given))
    return GrammarColours(history, grammar, sentences, memories, stable, not note, bool(note), note)


@dataclass(frozen=True, eq=False, repr=False)
class GrammarColours(Described, ColourHistory):
    """Colours of several graphs under the WL test of a grammar, comparable between them.

    Attributes:
        grammar: The grammar.
        readout: The rules of S that were applied.
        graph_history: After each round from 0 to the last, one colour per graph.
        memories: Per variable the colours of its entries after the last round, one read-only array
            per graph: `[n, n]` for M, `[n]` for V_c and V_r, `[]` for S, with an axis for each mark
            in front; empty memories are absent.
        stable: Whether a further round is known to change nothing.
        exact: Whether graphs have equal colours iff they are the same for every network of that
            depth, but for chances below 2 ** -80.
        bound: Whether graphs of equal colour are merged, and others may be too.
        note: Why it is not exact, or nothing.
    """

    grammar: Grammar
    readout: tuple[Rule, ...]
    memories: Mapping[Sort, tuple[Colours, ...]]
    stable: bool
    exact: bool = True
    bound: bool = False
    note: str = ""

    def facts(self) -> dict[str, str]:
        return {
            "grammar": some([self.grammar.name]),
            "graphs": f"{len(self.graph_colours):,}",
            "colours": f"{len(set(self.graph_colours.tolist())):,}",
            "rounds": str(self.rounds),
            "stable": "yes" if self.stable else "no",
            "exact": "yes" if self.exact else "no",
        }

    def node_colours(self) -> tuple[Colours, ...]:
        """Return one colour per node and graph, `[n]`: of V_c, else V_r, else the pair (i, i)."""
        for sort in (V, R):
            if sort in self.memories:
                return self.memories[sort]
        if M in self.memories:
            return tuple(array.diagonal() for array in self.memories[M])
        raise GrammarError("the test gives no colours to nodes: the grammar has neither V nor M")

    def pair_colours(self) -> tuple[Colours, ...]:
        """Return one colour per pair of nodes and graph, `[n, n]`."""
        if M not in self.memories:
            raise GrammarError("the test gives no colours to pairs: the grammar has no M")
        return self.memories[M]


class _Test:
    """The state of one test: stacks of graphs of equal size, and the rules on them."""

    def __init__(
        self,
        grammar: Grammar,
        sentences: Sequence[Rule],
        matrices: Sequence[Adjacency],
        given: Mapping[str, Sequence[NDArray[np.float64]]],
    ) -> None:
        self.rng = np.random.default_rng(SEED)
        self.rules, self.sentences = grammar.rules, tuple(sentences)
        self.pools = _pools(grammar.rules)
        self.layer_rules = [rule for rule in grammar.rules if rule.head not in self.pools]
        self.marks = grammar.marks
        # Graphs of one size, as many as are evaluated together.
        self.by_size = chunks_by_size(
            matrices, lambda n: DRAWS * n ** (2 + grammar.scope), STACK_ENTRIES
        )
        self.sizes = [len(matrices[group[0]]) for group in self.by_size]
        bodies = [rule.body for rule in (*self.rules, *self.sentences)]
        self.free = applies_free_function(bodies)
        self.constant_terms = constant_functions(bodies)
        constants = Constants(
            [np.stack([matrices[i] for i in group]) for group in self.by_size],
            dict(grammar.supports),
            [
                {name: np.stack([values[i] for i in group]) for name, values in given.items()}
                for group in self.by_size
            ],
            self.constant_terms,
            self.marks,
            self.rng,
        )
        self.sums = RuleSums(constants, self.rng, self.marks)
        self.primes = constants.primes

    def run(
        self,
        rounds: int | None,
        mixing: Mapping[Sort, Mixing],
        last: Mapping[Sort, Mixing] | None,
        inputs: Inputs,
        trunk: int = 0,
    ) -> tuple[tuple[Colours, ...], dict[Sort, tuple[Colours, ...]], bool]:
        """Colours of graphs after every round and of entries after the last; whether they stay."""
        rules = self.layer_rules
        shared = self.trunk(trunk, mixing, inputs) if trunk else {}
        memories = self.first(rules, inputs, shared)
        final = memories | self.pooled(memories, mixing)
        history = [self.graph_colours(final)]
        stable = False
        while rounds is None or len(history) <= rounds:
            if stable and last is None:
                history.append(history[-1])
                continue
            new = self.round(rules, memories, mixing)
            # The first round may see more than values do without splitting a colour.
            stable = len(history) > 1 and _signature(new) == _signature(memories)
            if stable and rounds is None:
                break
            final = new if last is None else self.round(rules, memories, last)
            final = final | self.pooled(final, mixing)
            memories = new
            history.append(self.graph_colours(final))
        entries = {}
        for sort, memory in final.items():
            # An axis for each mark, after that of the graphs, and none of length 1.
            axes = sort.scope + sort.boundary
            parts = [
                part.reshape(len(group), *(nodes,) * axes)
                for part, group, nodes in zip(memory.colours, self.by_size, self.sizes, strict=True)
            ]
            entries[sort] = in_order(self.by_size, parts)
        return tuple(history), entries, stable

    def trunk(
        self, rounds: int, mixing: Mapping[Sort, Mixing], inputs: Inputs
    ) -> dict[Sort, Memory]:
        """The memories after the rounds before the marks, as those of the marked copies."""
        scope = len(self.marks)
        rules = [rule.plain for rule in self.layer_rules if not mentions(rule.body, self.marks)]
        memories = self.first(rules, inputs)
        for _ in range(rounds):
            memories = self.round(rules, memories, mixing)
        copies = [nodes**scope for nodes in self.sizes]
        return {
            sort.within(scope): LiftedMemory(memory, copies) for sort, memory in memories.items()
        }

    def first(
        self, rules: Sequence[Rule], inputs: Inputs, shared: Mapping[Sort, Memory] | None = None
    ) -> dict[Sort, Memory]:
        """The values of the terminals, or functions of them.

        Where memories are shared by marked copies, terminals that name no mark are in them.
        """
        memories: dict[Sort, Memory] = {}
        constants = self.sums.constants
        given = [r for r in rules if not r.holes and (not shared or mentions(r.body, self.marks))]
        for sort in dict.fromkeys(rule.head for rule in rules):
            bodies = [rule.body for rule in given if rule.head == sort]
            if bodies:
                memories[sort] = ValueMemory(constants.channels(bodies, self.marks[: sort.scope]))
        for sort, memory in (shared or {}).items():
            memories[sort] = JoinedMemory(memory, memories[sort]) if sort in memories else memory
        if inputs == "values":
            return memories
        return {
            sort: ColourMemory(
                memory.colours, memory.count, memory.zero if inputs == "colours" else None
            )
            for sort, memory in memories.items()
        }

    def round(
        self,
        rules: Sequence[Rule],
        memories: Mapping[Sort, Memory],
        mixing: Mapping[Sort, Mixing],
    ) -> dict[Sort, Memory]:
        """All memories, each renewed from those before the round."""
        new: dict[Sort, Memory] = {}
        for sort in dict.fromkeys(rule.head for rule in rules):
            applied = [rule for rule in rules if rule.head == sort and rule.holes]
            sums = self.sums.joined(applied, memories)
            mixed = mixing[sort.plain]
            memory = renewed(memories.get(sort), sums, mixed, self.primes, self.rng)
            if memory is not None:
                new[sort] = memory
        return new

    def pooled(
        self, memories: Mapping[Sort, Memory], mixing: Mapping[Sort, Mixing]
    ) -> dict[Sort, Memory]:
        """The scalars between the sums over marks, the innermost first."""
        pools: dict[Sort, Memory] = {}
        for sort in self.pools:
            rules = [rule for rule in self.rules if rule.head == sort]
            sums = self.sums.joined(rules, {**memories, **pools})
            memory = renewed(None, sums, mixing[S], self.primes, self.rng)
            if memory is not None:
                pools[sort] = memory
        return pools

    def graph_colours(self, memories: Mapping[Sort, Memory]) -> Colours:
        """What the rules of S give, and the scalars where they are a memory."""
        scalars = memories.get(S)
        sums = self.sums.joined(self.sentences, memories)
        memory = renewed(scalars, sums, "any", self.primes, self.rng)
        if memory is None:
            colours = [np.zeros(len(group), dtype=np.int64) for group in self.by_size]
        else:
            colours = [part.ravel() for part in memory.colours]
        result = np.array(in_order(self.by_size, colours), dtype=np.int64)
        result.flags.writeable = False
        return result


def _pools(rules: Sequence[Rule]) -> tuple[Sort, ...]:
    """The scalars inside marks that no other variable reads, the innermost first."""
    pools = {rule.head for rule in rules if rule.head.plain == S and rule.head.scope}
    while True:
        read = {hole for rule in rules if rule.head not in pools for hole in rule.holes}
        if not pools & read:
            return tuple(sorted(pools, key=lambda sort: -sort.scope))
        pools -= read


def _signature(memories: Mapping[Sort, Memory]) -> dict[Sort, tuple[int, bool]]:
    """Colours only split and zeros only vanish, so these numbers change whenever something does."""
    return {
        sort: (memory.count, any(zero.any() for zero in memory.zero))
        for sort, memory in memories.items()
    }


def _readout(
    grammar: Grammar, readout: Literal["grammar", "pooled"] | Sequence[Rule]
) -> tuple[Rule, ...]:
    if readout == "grammar":
        if not grammar.sentence_rules:
            raise GrammarError(
                f"{grammar.name or 'the grammar'} has no sentences, so its own read-out tells "
                "nothing apart; pass readout='pooled', or rules of S"
            )
        return grammar.sentence_rules
    if readout == "pooled":
        return pooled_readout(grammar)
    if isinstance(readout, str):
        raise GrammarError(f"a read-out is 'grammar', 'pooled' or rules of S, got {readout!r}")
    rules = tuple(readout)
    for rule in rules:
        if rule.head != S:
            raise GrammarError(f"{rule} is no read-out: rules of S are expected")
    return rules


def _given_supports(
    supports: Mapping[str, Sequence[ArrayLike]] | None, matrices: Sequence[Adjacency]
) -> dict[str, list[NDArray[np.float64]]]:
    values_of: dict[str, list[NDArray[np.float64]]] = {}
    for name, values in (supports or {}).items():
        arrays = [np.asarray(value, dtype=np.float64) for value in values]
        sizes = [array.shape for array in arrays]
        if sizes != [matrix.shape for matrix in matrices]:
            raise DataError(
                f"the values of {name} do not fit the graphs: expected one matrix [n, n] for each "
                f"of the {len(matrices)} graphs"
            )
        values_of[name] = _without_rounding_noise(arrays)
    return values_of


def _without_rounding_noise(arrays: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Give values that are equal up to rounding one value: the least of a run without a gap."""
    distinct, where = np.unique(np.concatenate([a.ravel() for a in arrays]), return_inverse=True)
    starts = np.diff(distinct, prepend=-np.inf) > _NOISE * np.maximum(1.0, np.abs(distinct))
    values = distinct[starts][np.cumsum(starts) - 1][where.ravel()]
    bounds = np.cumsum([array.size for array in arrays])[:-1]
    parts = np.split(values, bounds)
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def _note(test: _Test, given: bool) -> str:
    """Why the colours are an upper bound only; nothing where they are exact."""
    if test.free:
        return "functions inside rule bodies are taken as free"
    if given:
        return "the values given for supports are floats, whose sums may differ by rounding alone"
    constants = [*test.sums.constants.supports.values(), *test.constant_terms]
    functions = {part.function for part in functions_in(constants)} - EXACT_FUNCTIONS
    if functions - {"f"}:
        return f"{', '.join(sorted(functions))} inside constants are taken as free"
    return ""


def _decided_by_words(
    grammar: Grammar,
    matrices: Sequence[Adjacency],
    rounds: int | None,
    sentences: tuple[Rule, ...],
    mixing: Mapping[Sort, Mixing],
    trunk: int,
) -> GrammarColours:
    """Linear mixing of a memory keeps words, not colours: compare those.

    Words that see the marks from the start bound those of a network with rounds before them.
    """
    heads = [rule.head for rule in grammar.rules]
    bounded: dict[Sort, Mixing] = {
        sort: "zero" if kind == "homogeneous" else kind for sort, kind in mixing.items()
    }
    words = words_of_test(grammar, bounded)
    text = "; ".join(map(str, sentences))
    limit = _numbered(graph_classes(words, matrices, text))
    linear = all(mixing[sort.plain] == "linear" for sort in heads)

    def colours(
        history: tuple[Colours, ...], exact: bool = True, bound: bool = False, note: str = ""
    ) -> GrammarColours:
        stable = rounds is None or not linear
        return GrammarColours(history, grammar, sentences, {}, stable, exact, bound, note)

    if linear and rounds is None:
        layers_of = map(_numbered, probe_graphs(grammar, matrices, readout=text).graph_history)
        # Layers up to the first that tells apart all that any does, which the limit then replaces.
        most = len(np.unique(limit))
        coarser = takewhile(lambda classes: len(np.unique(classes)) != most, layers_of)
        return colours((*coarser, limit))
    if linear:
        layers = (rounds or 0) + trunk
        probed = probe_graphs(grammar, matrices, layers, text).graph_history[trunk:]
        note = "random words of each layer were compared, not all"
        if trunk:
            note = "words with the marks from the start were compared"
        return colours(tuple(map(_numbered, probed)), False, bool(trunk), note)
    if rounds is None and all(mixing[sort.plain] != "homogeneous" for sort in heads):
        return colours((limit,))
    note = "linear and other functions together are decided by words, in the limit only"
    return colours((limit,) * ((rounds or 0) + 1), False, True, note)


def _numbered(classes: NDArray[np.int64]) -> Colours:
    numbers, _ = joint_ranks([[np.asarray(classes, dtype=np.int64)]])
    return numbers[0]
