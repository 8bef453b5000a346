"""Sums of partial sums."""
