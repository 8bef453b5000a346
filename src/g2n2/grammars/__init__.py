"""Grammars: fragments and their exhaustive grammars, the catalogue, words and derivations."""
