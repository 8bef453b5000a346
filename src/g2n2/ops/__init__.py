"""Tensor operations on memories: `[B, N, N, S]`, `[B, N, S]` and `[B, S]`, padding always zero."""
