"""Products on packed graphs of several tiles, for batches of graphs of many different sizes."""

TILED_NODES = 256
"""Of a graph; products of larger ones are worth a launch each."""
