"""Laplacians as words, the spectral response of words and layers, filters as networks."""
