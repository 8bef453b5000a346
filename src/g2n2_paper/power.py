"""Power, trained: what networks tell apart and count, beside the exact power of their grammars.

brec/CONTENDER                        see `brec`
layers/START                          how many layers words with one mark need on BREC
csl/…, exp/…, sr25/CONTENDER          see `classes`
graph8c/CONTENDER                     see `graph8c`
counting/…/CONTENDER                  see `counting`
zinc/CONTENDER                        penalised logP, resampled training set, equal parameters
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
from g2n2.training.config import RunConfig

from .brec import BrecTraining, brec_cell
from .classes import EPOCHS, calibrated_cell, class_cell
from .contenders import CONTENDERS, MARKED, PPGN_ALIKE, Contender, suite_checksum
from .counting import WRITTEN, beyond_cell, counting_cell, exact_cell, written_cell
from .graph8c import graph8c_cell
from .runner import Cell, Job, Measurement
from .runs import training_cell

MARKED_EPOCHS = 120
"""Of EXP for networks with marks; 40 of them take a minute of an H200 for each fold."""
RANDOM_NETWORKS = 10
SMOKE_PAIRS = (0, 60, 160)
"""Pairs of small graphs of BREC."""
ZINC_DECISION = {"r-G_L3": (480,), "r-G_L3Σ": (256,)}
"""Hidden units of the decision layers that make both networks equally large."""
Start = Literal["plain", "plain, network", "seeded, network"]
"""The grammar's read-out or the network's, and whether words begin with the network's seeds."""
STARTS: tuple[Start, ...] = get_args(Start)
MOST_NODES, LAYERS = 40, 7
SEPARATED = "exact separated, {} layers"


def cells(smoke: bool = False) -> list[Cell]:
    """BREC first, then classes, graph8c and counting, then networks with marks."""
    if smoke:
        small = CONTENDERS["G2N2-3"]
        return [
            brec_cell(small, SMOKE_PAIRS, BrecTraining(epochs=2)),
            class_cell("csl", small, epochs=1, folds=1, threads=1),
            graph8c_cell(small, networks=1, limit=200),
            exact_cell(small, limit=200),
            counting_cell(small, epochs=1, limit=150, threads=1),
        ]
    published = list(CONTENDERS.values())
    trained = [*published, PPGN_ALIKE]
    plain, marked, late = CONTENDERS["G2N2-3"], MARKED["G2N2Σ-3"], MARKED["G2N2Σ-2+1"]
    return [
        *map(brec_cell, trained),
        *(class_cell(name, contender) for name in EPOCHS for contender in trained),
        *(graph8c_cell(contender, RANDOM_NETWORKS) for contender in published),
        *(exact_cell(contender) for contender in trained if contender.grammar),
        *map(counting_cell, trained),
        *(brec_cell(MARKED[name]) for name in ("G2N2Σ-5", "L1ΣΣ-9")),
        class_cell("exp", MARKED["G2N2Σ-4+1"], MARKED_EPOCHS),
        *(calibrated_cell(name, marked) for name in ("csl", "sr25")),
        *map(layers_cell, STARTS),
        *map(beyond_cell, (plain, marked)),
        *map(written_cell, WRITTEN),
        *(zinc_cell(c, s) for c in (replace(plain, network="r-G_L3"), late) for s in (0, 1, 2)),
    ]


def zinc_cell(contender: Contender, seed: int) -> Cell:
    """A contender on ZINC; bonds are all it reads, so that marks on inner atoms lose nothing.

    Its training set is a resampled one: other molecules of the pool ZINC-12k was drawn from.
    """
    config = RunConfig(
        "zinc",
        grammar=contender.network,
        marks="heavy" if contender.options.get("marks") else "all",
        trunk=contender.options.get("trunk", 0),
        width=48,
        decision=ZINC_DECISION[contender.network],
        layers=contender.layers,
        batch=64,
        epochs=24,
        precision="tf32",
        seed=seed,
    )
    return training_cell("power", f"zinc/{contender.name}", config)


def layers_cell(start: Start) -> Cell:
    """The pairs of BREC of small graphs that random words of each depth tell apart, exactly."""

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
