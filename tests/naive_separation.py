"""The naive twin of the closure: word by word, with the reference interpreter and Python integers.

It takes every rule on every choice of basis words and shares neither arithmetic, prime, randomness
nor elimination with `closure`. For graphs of a handful of nodes.
"""

from collections.abc import Sequence
from itertools import product

from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.graphs import Adjacency
from g2n2.language.evaluation import PRIME, Array, evaluate_mod
from g2n2.language.sorts import Sort
from g2n2.language.terms import Leaf, fill, substitute

Values = tuple[Array, ...]
"""A word's value on each graph."""


def first_depth(
    grammar: Grammar, graphs: Sequence[Adjacency], sentences: Sequence[Rule] | None = None
) -> int | None:
    """The fewest layers at which a sentence differs between the graphs; None if none ever does.

    Args:
        grammar: A grammar without pointwise functions.
        graphs: Graphs of a handful of nodes.
        sentences: Read-out rules, where they are not the grammar's own.
    """
    readout = grammar.sentence_rules if sentences is None else tuple(sentences)
    basis: dict[Sort, list[Values]] = {sort: [] for sort in grammar.variables}
    echelon: dict[Sort, dict[int, list[int]]] = {sort: {} for sort in grammar.variables}
    for rule in grammar.all_rules:
        if not rule.holes:
            _keep(_value(grammar, rule, (), graphs), basis[rule.head], echelon[rule.head])
    depth = 0
    while True:
        if any(_differs(grammar, rule, basis, graphs) for rule in readout):
            return depth
        before = {sort: list(words) for sort, words in basis.items()}
        for rule in grammar.all_rules:
            for words in product(*(before[sort] for sort in rule.holes)):
                _keep(_value(grammar, rule, words, graphs), basis[rule.head], echelon[rule.head])
        if all(len(basis[sort]) == len(words) for sort, words in before.items()):
            return None
        depth += 1


def _differs(
    grammar: Grammar, rule: Rule, basis: dict[Sort, list[Values]], graphs: Sequence[Adjacency]
) -> bool:
    for words in product(*(basis[sort] for sort in rule.holes)):
        first, *others = _value(grammar, rule, words, graphs)
        if any(other[0, 0] != first[0, 0] for other in others):
            return True
    return False


def _value(
    grammar: Grammar, rule: Rule, words: Sequence[Values], graphs: Sequence[Adjacency]
) -> Values:
    names = [Leaf(f"x{index}", sort) for index, sort in enumerate(rule.holes)]
    term = substitute(fill(rule.body, list(names)), dict(grammar.supports))
    return tuple(
        evaluate_mod(
            term,
            graph,
            variables={leaf.name: word[at] for leaf, word in zip(names, words, strict=True)},
        )
        for at, graph in enumerate(graphs)
    )


def _keep(word: Values, basis: list[Values], echelon: dict[int, list[int]]) -> None:
    """Add a word unless it is a combination, with coefficients that sum to one, of those kept."""
    row = [1, *(int(x) for part in word for x in part.ravel())]
    for pivot, other in echelon.items():
        factor = row[pivot]
        if factor:
            row = [(x - factor * y) % PRIME for x, y in zip(row, other, strict=True)]
    places = [at for at, x in enumerate(row) if x]
    if not places:
        return
    inverse = pow(row[places[0]], -1, PRIME)
    echelon[places[0]] = [x * inverse % PRIME for x in row]
    basis.append(word)
