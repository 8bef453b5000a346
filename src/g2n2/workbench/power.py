"""What a grammar and its network tell apart, as the two columns 1-WL and 3-WL."""

from __future__ import annotations

from ..compiler.grammar_to_plan import plan_network
from ..grammars.grammar import Grammar
from ..verdict import Verdict, derivation_verdict, network_verdict
from .chain import Report


def words_power(exhaustive: Grammar, reduced: Grammar, report: Report) -> Verdict:
    """Both grammars as words, and with functions in the limit."""
    report(0.2, "1-WL and 3-WL")
    return derivation_verdict(exhaustive, reduced)


def network_power(reduced: Grammar, layers: int, report: Report) -> Verdict:
    """The network of the reduced grammar, with its MLPs, its read-out and its depth."""
    report(0.2, "1-WL and 3-WL")
    plan = plan_network(reduced, layers=layers, preset="modern")
    return network_verdict(plan).of_network()
