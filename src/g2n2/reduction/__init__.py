"""Reductions of grammars: simulations, the search for the smallest grammar, certificates, the checker."""
