"""g2n2: from a set of algebraic operations to a graph neural network of known power.

The whole library in a dozen names, each with an example in its docstring (docs/python.md):

    derive    operations -> reduced grammar, with a proof        check     a proof, independently
    compare   two grammars                                       power     grammars on hard graphs
    separate  two graphs, by which sentence                      refine    the same by WL tests
    compile   grammar -> network                                 GrammarLayer  a layer for PyG
    train     graphs -> run                                      predict   run or network, graphs
    load      a network or a run                                 export    to ONNX or torch.export
    explain   a network by words

Nothing here imports torch: the language, the grammars and their reductions are pure Python, and the
network half is imported where it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import check as check
    from .api import compare as compare
    from .api import compile as compile
    from .api import export as export
    from .api import load as load
    from .api import predict as predict
    from .compiler.trace import trace as trace
    from .data.batch import GraphBatch as GraphBatch
    from .data.reading import read_graphs as read_graphs
    from .errors import G2N2Error as G2N2Error
    from .formulas.formula_plan import requirements as requirements
    from .formulas.writing import write_formula as write_formula
    from .grammars.catalogue import catalogue as catalogue
    from .grammars.catalogue import find_grammar as find_grammar
    from .grammars.fragments import Fragment as Fragment
    from .grammars.grammar import Grammar as Grammar
    from .grammars.registry import register as register
    from .grammars.subgraph_counts import formula as formula
    from .grammars.words import enumerate_words as enumerate_words
    from .graphs import adjacency as adjacency
    from .language.evaluation import evaluate as evaluate
    from .language.evaluation import evaluate_mod as evaluate_mod
    from .language.operations import Operation as Operation
    from .language.parsing import parse as parse
    from .language.patterns import equal as equal
    from .nn.explaining import explain as explain
    from .nn.expressivity import network_separates as network_separates
    from .nn.model import G2N2 as G2N2
    from .nn.model import GrammarGNN as GrammarGNN
    from .nn.pyg_layer import GrammarLayer as GrammarLayer
    from .pipeline import derive as derive
    from .power import CallablePackage
    from .power.grammar_test import grammar_test as grammar_test
    from .power.grammar_test import words_of_test as words_of_test
    from .power.refinement import refine as refine
    from .power.separation import separate as separate
    from .training.run import Run as Run
    from .training.run import pretrained as pretrained
    from .training.session import train as train

    power: CallablePackage

__version__ = "0.2.0"

_HOMES = {
    "derive": "pipeline",
    "check": "api",
    "compare": "api",
    "separate": "power.separation",
    "refine": "power.refinement",
    "grammar_test": "power.grammar_test",
    "words_of_test": "power.grammar_test",
    "network_separates": "nn.expressivity",
    "compile": "api",
    "train": "training.session",
    "predict": "api",
    "load": "api",
    "pretrained": "training.run",
    "explain": "nn.explaining",
    "export": "api",
    "Run": "training.run",
    "GrammarGNN": "nn.model",
    "GrammarLayer": "nn.pyg_layer",
    "G2N2": "nn.model",
    "GraphBatch": "data.batch",
    "adjacency": "graphs",
    "read_graphs": "data.reading",
    "Fragment": "grammars.fragments",
    "Grammar": "grammars.grammar",
    "catalogue": "grammars.catalogue",
    "find_grammar": "grammars.catalogue",
    "enumerate_words": "grammars.words",
    "equal": "language.patterns",
    "evaluate": "language.evaluation",
    "evaluate_mod": "language.evaluation",
    "parse": "language.parsing",
    "Operation": "language.operations",
    "register": "grammars.registry",
    "formula": "grammars.subgraph_counts",
    "requirements": "formulas.formula_plan",
    "trace": "compiler.trace",
    "write_formula": "formulas.writing",
    "G2N2Error": "errors",
}

__all__ = [*_HOMES, "__version__", "power"]


def __dir__() -> list[str]:
    """What a notebook completes."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `--help` answers at once."""
    if name == "power":  # the package itself can be called
        return import_module(".power", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'g2n2' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
