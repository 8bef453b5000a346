"""Graphs in: one ragged container on the host, one dense batch for the network, many readers."""
