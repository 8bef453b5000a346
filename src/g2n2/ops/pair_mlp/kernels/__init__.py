"""Triton kernels of the matrix-memory update: untyped, and imported only where they run."""
