"""Functions on memories as rules: the words that tell apart what a WL test does in the limit.

On finitely many graphs a function of an entry's channels is a polynomial in them, and products of
channels come from X⊙X by polarisation; the constant term is the word of ones. So `any` function on
X is as strong as X → X⊙X | ones, and a function with f(0) = 0 as X → X⊙X. Linear mixing adds no
rule. Functions that are only free on rays are no such set of words.
"""

from collections.abc import Mapping
from fractions import Fraction

from ..errors import GrammarError
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule
from ..language.sorts import SORTS, M, R, S, Sort, V
from ..language.terms import ONE, Hole, Number, Term, apply
from .colour_memories import MIXINGS, Mixing

_ONES: dict[Sort, Term] = {
    S: Number(Fraction(1)),
    V: ONE,
    R: apply("transpose", ONE),
    M: apply("matmul", ONE, apply("transpose", ONE)),
}


def mixing_by_sort(functions: Mixing | Mapping[Sort, Mixing]) -> dict[Sort, Mixing]:
    """What stands on each variable's memory; `any` where nothing is said.

    Raises:
        GrammarError: If a kind of function is unknown.
    """
    named = functions if isinstance(functions, Mapping) else dict.fromkeys(SORTS, functions)
    for mixing in named.values():
        if mixing not in MIXINGS:
            raise GrammarError(f"functions are {', '.join(MIXINGS)}, got {mixing!r}")
    everywhere: dict[Sort, Mixing] = dict.fromkeys(SORTS, "any")
    return everywhere | dict(named)


def words_of_test(grammar: Grammar, functions: Mixing | Mapping[Sort, Mixing] = "any") -> Grammar:
    """The grammar whose words tell apart what the WL test of a grammar does in the limit.

    Args:
        grammar: Any grammar.
        functions: What stands on the memories: `any`, `zero` (f(0) = 0) or `linear`, for all
            variables or by variable.

    Raises:
        GrammarError: If functions are homogeneous: no set of words has exactly their power.
    """
    mixing = mixing_by_sort(functions)
    added: list[Rule] = []
    for sort in dict.fromkeys(rule.head for rule in grammar.rules):
        if mixing[sort] == "homogeneous":
            raise GrammarError(
                f"functions on {sort.variable} that are free on rays only have no grammar of their "
                "own: use grammar_test, or 'zero' for an upper and 'linear' for a lower bound"
            )
        if mixing[sort] in ("any", "zero"):
            added.append(Rule(sort, apply("hadamard", Hole(sort), Hole(sort))))
        if mixing[sort] == "any":
            added.append(Rule(sort, _ONES[sort]))
    rules = (*grammar.rules, *(rule for rule in added if rule not in grammar.rules))
    name = f"{grammar.name} with functions" if grammar.name and added else grammar.name
    return Grammar(rules, grammar.readout, name, grammar.supports)
