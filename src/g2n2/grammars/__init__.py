"""Grammars: fragments and their exhaustive grammars, the paper's catalogue, words and derivations."""
