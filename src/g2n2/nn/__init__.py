"""Networks of grammars: `GrammarGNN` for any grammar, `G2N2` for r-G_L3."""

from .model import G2N2, GrammarGNN

__all__ = ["G2N2", "GrammarGNN"]
