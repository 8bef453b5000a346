"""Networks of grammars: `GrammarGNN` for any grammar, `G2N2` for r-G_L3, and uses of them.

`GrammarLayer` is one layer of a grammar for a model made with PyG.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .model import G2N2, GrammarGNN

if TYPE_CHECKING:
    from .baselines import BASELINES as BASELINES
    from .baselines import baseline as baseline
    from .explaining import explain as explain
    from .exporting import export_onnx as export_onnx
    from .exporting import export_program as export_program
    from .files import load as load
    from .files import save as save
    from .pyg_layer import GrammarLayer as GrammarLayer
    from .pyg_layer import PairFeatures as PairFeatures
    from .replay import Replay as Replay
    from .supports import SpectralSupports as SpectralSupports

_HOMES = {
    "BASELINES": "baselines",
    "GrammarLayer": "pyg_layer",
    "PairFeatures": "pyg_layer",
    "Replay": "replay",
    "SpectralSupports": "supports",
    "baseline": "baselines",
    "explain": "explaining",
    "export_onnx": "exporting",
    "export_program": "exporting",
    "load": "files",
    "save": "files",
}

__all__ = ["G2N2", "GrammarGNN", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'g2n2.nn' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
