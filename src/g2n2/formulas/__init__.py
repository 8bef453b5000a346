"""Formulas as weights (Theorem 3): which rules make a term, in which layers, with which weights."""
