"""g2n2: from a set of algebraic operations to a graph neural network of known power.

Nothing here imports torch: the language, the grammars and their reductions are pure Python, and the
network half is imported where it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.formulas.counting import formula as formula
    from .compiler.formulas.planning import requirements as requirements
    from .compiler.trace import trace as trace
    from .data.batch import GraphBatch as GraphBatch
    from .data.reading import read_graphs as read_graphs
    from .errors import G2N2Error as G2N2Error
    from .grammars.catalogue import catalogue as catalogue
    from .grammars.catalogue import find_grammar as find_grammar
    from .grammars.fragments import Fragment as Fragment
    from .grammars.grammar import Grammar as Grammar
    from .language.evaluation import evaluate as evaluate
    from .language.evaluation import evaluate_mod as evaluate_mod
    from .language.operations import Operation as Operation
    from .language.parsing import parse as parse
    from .language.patterns import equal as equal
    from .language.registry import register as register
    from .nn.model import G2N2 as G2N2
    from .nn.model import GrammarGNN as GrammarGNN
    from .nn.writing import write_formula as write_formula
    from .pipeline import derive as derive

__version__ = "0.1.0"

_HOMES = {
    "derive": "pipeline",
    "catalogue": "grammars.catalogue",
    "find_grammar": "grammars.catalogue",
    "Fragment": "grammars.fragments",
    "Grammar": "grammars.grammar",
    "evaluate": "language.evaluation",
    "evaluate_mod": "language.evaluation",
    "Operation": "language.operations",
    "parse": "language.parsing",
    "register": "language.registry",
    "equal": "language.patterns",
    "compare": "pipeline",
    "separate": "power.separation",
    "refine": "power.refinement",
    "G2N2Error": "errors",
    "G2N2": "nn.model",
    "GrammarGNN": "nn.model",
    "GraphBatch": "data.batch",
    "formula": "compiler.formulas.counting",
    "requirements": "compiler.formulas.planning",
    "read_graphs": "data.reading",
    "trace": "compiler.trace",
    "write_formula": "nn.writing",
}

__all__ = [*_HOMES, "__version__"]


def __dir__() -> list[str]:
    """What a notebook completes."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `--help` answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'g2n2' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
