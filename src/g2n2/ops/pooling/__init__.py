"""Sums of matrix memories that a read-out needs."""
