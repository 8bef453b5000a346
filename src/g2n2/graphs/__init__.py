"""Graphs from objects, arrays, text, names or files, as adjacency matrices; families of graphs."""

from .conversion import (
    Adjacency,
    GraphLike,
    adjacency,
    graph6_lines,
    is_simple,
    parse_graph6,
    read_graph,
    read_graph6_file,
    refuse_multigraph,
    to_graph6,
)

__all__ = [
    "Adjacency",
    "GraphLike",
    "adjacency",
    "graph6_lines",
    "is_simple",
    "parse_graph6",
    "read_graph",
    "read_graph6_file",
    "refuse_multigraph",
    "to_graph6",
]
