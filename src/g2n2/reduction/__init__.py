"""Reductions of grammars: simulations, the search for a smaller grammar, certificates, checker."""
