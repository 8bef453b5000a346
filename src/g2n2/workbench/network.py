"""A grammar's network before it is built: what it and each rule costs, what it tells apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..compiler.costs import Cost, NetworkCost
from ..compiler.grammar_to_plan import plan_network
from ..compiler.plan import NetworkPlan, numbered_selectors
from ..compiler.plan_to_svg import layer_svg
from ..grammars.grammar import Grammar
from ..reduction.explain import innermost_names
from ..verdict import Verdict, derivation_verdict, network_verdict
from .chain import Report

BATCH = 32


@dataclass(frozen=True)
class Share:
    """One part of the network and what it costs over all layers; `rule` where it is a rule's."""

    name: str
    rule: str
    cost: Cost


@dataclass(frozen=True)
class Network:
    """A planned network."""

    plan: NetworkPlan  # what it computes
    total: Cost  # its cost for a batch of 32 graphs
    # every rule, the MLPs, the read-out and the rest; they add up to the total
    shares: tuple[Share, ...]
    drawing: str  # the last layer as SVG
    # for each rule the selectors that bring its operands, as the drawing names them
    selectors: dict[str, tuple[str, ...]]


@lru_cache(maxsize=256)
def plan(grammar: Grammar, nodes: int, width: int, layers: int) -> Network:
    """The network of a grammar, preset `modern`.

    Raises:
        LoweringError: The grammar cannot be compiled; all reasons at once.
    """
    network_plan = plan_network(grammar, width=width, layers=layers, preset="modern")
    costs = NetworkCost(network_plan, BATCH, nodes)
    names = innermost_names(grammar)
    by_rule: dict[str, Cost] = {}
    mlps: dict[str, Cost] = {}
    norms = Cost()
    for number, layer in enumerate(network_plan.layers):
        norms += costs.norms(number)
        for update in layer.updates:
            name = f"MLP on {update.sort.variable}"
            mlps[name] = mlps.get(name, Cost()) + costs.mixer(update)
            for step in update.steps:
                rule = names.get(str(step.rule), str(step.rule))
                cost = costs.selectors(step) + costs.rule(step)
                by_rule[rule] = by_rule.get(rule, Cost()) + cost
    shares = [Share(rule, rule, cost) for rule, cost in by_rule.items()]
    shares += [Share(name, "", cost) for name, cost in mlps.items()]
    rest = costs.inputs() + norms + costs.decision()
    shares += [Share("read-out", "", costs.readout()), Share("inputs, norms, decision", "", rest)]
    selectors: dict[str, tuple[str, ...]] = {}
    for item in numbered_selectors(network_plan.layers[network_plan.shown_layer]):
        rule = names.get(str(item.step.rule), str(item.step.rule))
        selectors[rule] = (*selectors.get(rule, ()), f"L{item.number}")
    drawing = re.sub(
        r'(?<=class="box rule" data-name=")[^"]*',
        lambda name: names.get(name[0], name[0]),
        layer_svg(network_plan),
    )
    return Network(network_plan, costs.total, tuple(shares), drawing, selectors)


def words_power(exhaustive: Grammar, reduced: Grammar, report: Report) -> Verdict:
    """Both grammars as words, and with functions in the limit."""
    report(0.2, "1-WL and 3-WL")
    return derivation_verdict(exhaustive, reduced)


def network_power(reduced: Grammar, layers: int, report: Report) -> Verdict:
    """The network of the reduced grammar, with its MLPs, its read-out and its depth."""
    report(0.2, "1-WL and 3-WL")
    plan = plan_network(reduced, layers=layers, preset="modern")
    return network_verdict(plan).of_network()
