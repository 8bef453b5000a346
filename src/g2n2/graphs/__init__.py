"""Graphs from objects, arrays, text, names or files, as adjacency matrices; families of graphs."""

from .conversion import Adjacency as Adjacency
from .conversion import GraphLike as GraphLike
from .conversion import adjacency as adjacency
from .conversion import graph6_lines as graph6_lines
from .conversion import is_simple as is_simple
from .conversion import read_graph as read_graph
from .conversion import read_graph6_file as read_graph6_file
from .conversion import refuse_multigraph as refuse_multigraph
from .conversion import to_graph6 as to_graph6
from .symmetry import are_isomorphic as are_isomorphic
from .text import parse_graph6 as parse_graph6
