"""Exports of the workbench: certificate, LaTeX, SVG, Python snippet, train command, permalink."""

from __future__ import annotations

import json
import shlex

from ..errors import G2N2Error
from ..grammars.catalogue import TEXTS, find_grammar
from ..grammars.grammar import Grammar
from .chain import DerivedChain
from .languages import GIVEN, Language
from .state import State


def texts(state: State, language: Language, chain: DerivedChain, drawing: str) -> dict[str, str]:
    """For each tab of the take-away its text; the permalink is the page's own address."""
    return {
        "python": python_snippet(state, language, chain),
        "train": train_command(state, chain.reduced),
        "latex": latex(chain),
        "certificate": json.dumps(chain.certificate, ensure_ascii=False, indent=1),
        "svg": drawing,
        "permalink": "?" + state.query(),
    }


def python_snippet(state: State, language: Language, chain: DerivedChain) -> str:
    """Python that makes the same network; it runs as it stands."""
    if language.fragment is not None:
        start = f"grammar = derive({_literal(state.language.strip())}).reduced"
        names = "GrammarGNN, derive"
    else:
        start = f"grammar = {grammar_source(chain.exhaustive)}"
        if chain.reduced != chain.exhaustive:
            start += ".reduce().reduced"
        names = "GrammarGNN, Grammar" if "Grammar.parse" in start else "GrammarGNN, find_grammar"
    return (
        f"import networkx as nx\n"
        f"from g2n2 import GraphBatch, {names}\n\n"
        f"{start}\n"
        f"print(grammar)\n\n"
        f"model = GrammarGNN(grammar, width={state.width}, layers={state.layers})\n"
        f"graphs = [nx.cycle_graph(6), nx.petersen_graph()]\n"
        f"print(model(GraphBatch.of(graphs)))  # one number a graph; train it with g2n2.train\n"
        f"print(model.power())\n"
    )


def train_command(state: State, grammar: Grammar) -> str:
    """The command that trains the network on a CSV of molecules."""
    return (
        "# a table with a column of SMILES; a clone has examples/molecules.csv to try\n"
        "g2n2 train molecules.csv --target logp \\\n"
        f"    --grammar {shlex.quote(grammar_argument(grammar))} \\\n"
        f"    --width {state.width} --layers {state.layers}\n"
    )


def grammar_argument(grammar: Grammar) -> str:
    """A grammar's name where `--grammar` knows it, else its rules on one line."""
    try:
        if grammar.name and grammar.name != GIVEN and find_grammar(grammar.name) == grammar:
            return grammar.name
    except G2N2Error:
        pass
    return "; ".join(grammar.lines())


def grammar_source(grammar: Grammar) -> str:
    """Python that makes a grammar."""
    if grammar.name in TEXTS and find_grammar(grammar.name) == grammar:
        return f"find_grammar({_literal(grammar.name)})"
    return f"Grammar.parse({_literal(chr(10).join(grammar.lines()))})"


def latex(chain: DerivedChain) -> str:
    """Both grammars as LaTeX, and what was removed."""
    parts = [
        f"% {_title(chain.exhaustive)}, {chain.exhaustive.rule_count}",
        chain.exhaustive.to_latex(),
        f"% {_title(chain.reduced)}, {chain.reduced.rule_count}",
        chain.reduced.to_latex(),
    ]
    return "\n".join(parts) + "\n"


def _title(grammar: Grammar) -> str:
    return " ".join((grammar.name or GIVEN).split())


def _literal(text: str) -> str:
    if "\n" in text:
        return '"""\n' + text.replace("\\", "\\\\").replace('"""', '\\"""') + '\n"""'
    return json.dumps(text, ensure_ascii=False)
