"""The naive twin of `grammar_test`: dictionaries of exact rational numbers, entry by entry.

Slow and obviously right. A memory gives every entry a vector, written as {feature: number}. A rule
body is evaluated on these vectors as it is written, operation by operation, with formal features:
the value of an entry is the polynomial {(operand, feature), …: number}, which is the weighted
multiset of the definition. It shares no code with the fast path: no patterns, no primes, no random
numbers. Supports and constants with functions are not taken; graphs are integer matrices.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.language.sorts import S, Sort
from g2n2.language.terms import Apply, Hole, Leaf, Number, Term

Monomial = tuple[tuple[int, Hashable], ...]
Polynomial = dict[Monomial, Fraction]
Vector = dict[Hashable, Fraction]
Entry = tuple[int, int]
Values = dict[Entry, Polynomial]
Memory = dict[Entry, Vector]
Graph = Sequence[Sequence[int]]


def reference_grammar_test(
    grammar: Grammar,
    graphs: Sequence[Graph],
    rounds: int,
    readout: Sequence[Rule],
    functions: Mapping[Sort, str],
    last_functions: Mapping[Sort, str] | None = None,
    coloured_inputs: bool = False,
) -> list[list[int]]:
    """The colours of all graphs after each round from 0 on.

    Args:
        grammar: A grammar without supports.
        graphs: Adjacency matrices of integers.
        rounds: How many rounds.
        readout: Rules of S.
        functions: `any`, `zero` or `homogeneous` for each variable.
        last_functions: The same for the last round before a read-out; as in all where None.
        coloured_inputs: Whether a function with f(0) = 0 stands before the first round.
    """
    memories = [_first(grammar, graph) for graph in graphs]
    if coloured_inputs:
        numbers: dict[Hashable, int] = {}
        memories = [
            {
                sort: {e: _mixed(sort, vector, "zero", numbers) for e, vector in memory.items()}
                for sort, memory in of_graph.items()
            }
            for of_graph in memories
        ]
    history = [_graph_colours(readout, graphs, memories)]
    for _ in range(rounds):
        last = _round(grammar, graphs, memories, last_functions or functions)
        history.append(_graph_colours(readout, graphs, last))
        memories = _round(grammar, graphs, memories, functions)
    return history


def _first(grammar: Grammar, graph: Graph) -> dict[Sort, Memory]:
    """The vector of an entry holds one number for each terminal."""
    memories: dict[Sort, Memory] = {}
    for number, rule in enumerate(grammar.rules):
        if not rule.holes:
            for entry, polynomial in _value(rule.body, graph, {}, count()).items():
                vector = memories.setdefault(rule.head, {}).setdefault(entry, {})
                if polynomial:
                    vector[number] = polynomial[()]
    return memories


def _round(
    grammar: Grammar,
    graphs: Sequence[Graph],
    memories: Sequence[dict[Sort, Memory]],
    functions: Mapping[Sort, str],
) -> list[dict[Sort, Memory]]:
    new: list[dict[Sort, Memory]] = [{} for _ in graphs]
    numbers: dict[Hashable, int] = {}
    for sort in dict.fromkeys(rule.head for rule in grammar.rules):
        for index, graph in enumerate(graphs):
            inputs = _inputs(grammar, sort, graph, memories[index])
            if inputs is not None:
                new[index][sort] = {
                    entry: _mixed(sort, vector, functions[sort], numbers)
                    for entry, vector in inputs.items()
                }
    return new


def _inputs(
    grammar: Grammar, sort: Sort, graph: Graph, memories: dict[Sort, Memory]
) -> Memory | None:
    """What the function on a memory reads at each entry; None where there is nothing to read."""
    parts: list[tuple[Hashable, Mapping[Entry, Mapping[Any, Fraction]]]] = []
    if sort in memories:
        parts.append(("old", memories[sort]))
    for number, rule in enumerate(grammar.rules):
        if rule.head == sort and rule.holes and set(rule.holes) <= memories.keys():
            parts.append((number, _value(rule.body, graph, memories, count())))
    if not parts:
        return None
    return {
        entry: {
            (name, feature): value
            for name, values in parts
            for feature, value in values[entry].items()
        }
        for entry in _entries(sort, len(graph))
    }


def _mixed(sort: Sort, vector: Vector, functions: str, numbers: dict[Hashable, int]) -> Vector:
    """The vector after a function that is free, but for what `functions` says."""
    if functions != "any" and not vector:
        return {}
    length = sum(vector.values(), Fraction(0)) if functions == "homogeneous" else Fraction(1)
    key = sort, frozenset((feature, value / length) for feature, value in vector.items())
    return {numbers.setdefault(key, len(numbers)): length}


def _graph_colours(
    readout: Sequence[Rule], graphs: Sequence[Graph], memories: Sequence[dict[Sort, Memory]]
) -> list[int]:
    numbers: dict[Hashable, int] = {}
    colours = []
    for graph, memory in zip(graphs, memories, strict=True):
        seen: list[Hashable] = [
            frozenset(_value(rule.body, graph, memory, count())[0, 0].items())
            for rule in readout
            if set(rule.holes) <= memory.keys()
        ]
        if S in memory:
            seen.append(frozenset(memory[S][0, 0].items()))
        colours.append(numbers.setdefault(tuple(seen), len(numbers)))
    return colours


def _entries(sort: Sort, nodes: int) -> list[Entry]:
    rows, columns = (range(nodes) if axis == "n" else range(1) for axis in sort.axes)
    return [(i, j) for i in rows for j in columns]


def _value(
    term: Term, graph: Graph, memories: Mapping[Sort, Memory], slots: Iterator[int]
) -> Values:
    """The polynomial at every entry; variables are numbered left to right."""
    entries = _entries(term.sort, len(graph))
    if isinstance(term, Hole):
        slot = next(slots)
        memory = memories[term.sort]
        return {e: {((slot, f),): value for f, value in memory[e].items()} for e in entries}
    if isinstance(term, Number):
        return {e: _constant(term.value) for e in entries}
    if isinstance(term, Leaf):
        return {(i, j): _constant(_leaf(term.name, graph, i, j)) for i, j in entries}
    assert isinstance(term, Apply), term
    args = [_value(arg, graph, memories, slots) for arg in term.args]
    if term.function:
        # A function nothing is known of: its value is a feature named by its argument.
        return {e: {((-1, frozenset(args[0][e].items())),): Fraction(1)} for e in entries}
    inner = range(len(graph)) if term.args[0].sort.axes[1] == "n" else range(1)
    result: Values = {}
    for i, j in entries:
        match term.op:
            case "matmul":
                result[i, j] = _sum(_times(args[0][i, k], args[1][k, j]) for k in inner)
            case "hadamard":
                result[i, j] = _times(args[0][i, j], args[1][i, j])
            case "scale":
                result[i, j] = _times(args[0][0, 0], args[1][i, j])
            case "add":
                result[i, j] = _sum(arg[i, j] for arg in args)
            case "transpose":
                result[i, j] = args[0][j, i]
            case "diag":
                result[i, j] = args[0][i, 0] if i == j else {}
            case "trace":
                result[i, j] = _sum(args[0][k, k] for k in inner)
            case _:
                raise AssertionError(f"no value for {term.op}")
    return result


def _leaf(name: str, graph: Graph, i: int, j: int) -> Fraction:
    match name:
        case "A":
            return Fraction(graph[i][j])
        case "1":
            return Fraction(1)
        case "I":
            return Fraction(int(i == j))
        case "J":
            return Fraction(int(i != j))
    raise AssertionError(f"no value for {name}")


def _constant(value: Fraction) -> Polynomial:
    return {(): value} if value else {}


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    # Each variable occurs once, so sorting only brings its factors into one order.
    return _sum(
        {tuple(sorted(a + b, key=lambda x: x[0])): x * y}
        for a, x in left.items()
        for b, y in right.items()
    )


def _sum(parts: Iterator[Polynomial] | Any) -> Polynomial:
    total: Polynomial = {}
    for part in parts:
        for monomial, value in part.items():
            total[monomial] = total.get(monomial, Fraction(0)) + value
    return {monomial: value for monomial, value in total.items() if value}
