"""How many layers words with one mark need on BREC, with and without the network's seeds.

Exact, nothing is trained: random words of growing depth, linear mixing, and the network's read-out
(`network`) or the grammar's, on the pairs of at most 40 nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from g2n2.compiler.marks import inside, seeds
from g2n2.data.suites import load_suite
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.network_rules import pooled_readout
from g2n2.grammars.rules import Rule
from g2n2.language.sorts import M, V
from g2n2.power.random_probes import probe_graphs
from g2n2.power.suites import Suite

from .contenders import suite_checksum
from .runner import Cell, Job, Measurement

Start = Literal["plain", "plain, network", "seeded, network"]
STARTS: tuple[Start, ...] = get_args(Start)
MOST_NODES, LAYERS = 40, 7
SEPARATED = "exact separated, {} layers"


def layers_cell(start: Start) -> Cell:
    """The pairs of BREC of small graphs that words of each depth tell apart."""

    def run(job: Job) -> Measurement:
        suite = load_suite("brec", job.data)
        pairs = [pair for pair in suite.pairs if len(suite.graphs[pair[0]]) <= MOST_NODES]
        by_layer = enumerate(separated_by_layer(start, suite, pairs))
        metrics = {SEPARATED.format(layer): count for layer, count in by_layer}
        metrics["pairs"] = len(pairs)
        return Measurement(len(pairs), "pairs", metrics, {"brec": suite_checksum(suite)})

    settings = {"start": start, "nodes": MOST_NODES, "layers": LAYERS, "grammar": "r-G_L3Σ"}
    return Cell("power", f"layers/{start.replace(', ', '/')}", run, settings)


def separated_by_layer(start: Start, suite: Suite, pairs: list[tuple[int, int]]) -> list[int]:
    """How many pairs words of 0, 1 … layers tell apart."""
    grammar = find_grammar("r-G_L3Σ")
    if start != "plain":
        grammar = replace(grammar, readout=pooled_readout(grammar))
    if start == "seeded, network":
        grammar = with_seeds(grammar)
    counts = [0] * (LAYERS + 1)
    for i, j in pairs:
        history = probe_graphs(grammar, (suite.graphs[i], suite.graphs[j]), LAYERS).graph_history
        for layer, (first, second) in enumerate(history):
            counts[layer] += int(first != second)
    return counts


def with_seeds(grammar: Grammar) -> Grammar:
    """The words a network with marks starts from, as rules."""
    seed_words = seeds(inside(grammar), grammar.marks)
    heads = {"V": V.within(1), "M": M.within(1)}
    rules = [Rule(heads[letter], term) for letter, terms in seed_words.items() for term in terms]
    return replace(grammar, rules=(*grammar.rules, *rules))
