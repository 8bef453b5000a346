"""The one place where a graph enters: object, array, text or file -> adjacency matrix.

Everything behind this module sees a read-only float64 array `[n, n]` with `n >= 1` and finite
entries; `A[i, j]` is the weight of the edge from `i` to `j`.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..input_files import open_text, read_text_file, require_regular
from .text import (
    FORMATS,
    HEADER,
    bonds,
    encode_graph6,
    parse_edge_list,
    parse_graph6,
    parse_graph_text,
    read_only,
    require_matrix,
)

if TYPE_CHECKING:
    import networkx as nx

Adjacency = NDArray[np.float64]


class _EdgeIndex(Protocol):
    """A PyG `Data`; PyG itself is not imported."""

    edge_index: Any


class _Sparse(Protocol):
    """A scipy.sparse matrix or array."""

    def toarray(self) -> NDArray[Any]: ...


GraphLike: TypeAlias = "nx.Graph | ArrayLike | str | bytes | Path | _EdgeIndex | _Sparse"
"""One graph, as `adjacency` takes it."""

_EXPECTED = "expected graph6 lines or an edge list"
_ACCEPTED = (
    "a networkx graph, a PyG Data, an RDKit molecule, a square array of real numbers (numpy, "
    "scipy.sparse, torch or lists), a Path, or text: graph6, sparse6, digraph6, a name or SMILES"
)
_EDGES_MOVE = "a list of edges goes through networkx.Graph(edges)"
_GRAPH6_SUFFIXES = (".g6", ".graph6", ".g6.gz", ".graph6.gz")


def adjacency(graph: GraphLike) -> Adjacency:
    """Turn whatever holds one graph into its adjacency matrix.

    >>> from g2n2 import adjacency
    >>> adjacency("Bw").astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> adjacency(":An").astype(int).tolist()  # sparse6
    [[0, 1], [1, 0]]

    Args:
        graph: One of

            - a networkx graph or digraph, no multigraph: attribute `weight` is used where present,
              rows follow the graph's own node order;
            - a PyG `Data` of one graph: `edge_index`, and `edge_weight` where there is one;
              parallel edges add up;
            - a square array: numpy, a list of lists (tuples would be edges, which are refused),
              scipy.sparse, a torch tensor, dense or sparse;
            - an RDKit molecule: every bond counts 1;
            - a `Path`, which `read_graph` reads;
            - text: graph6, sparse6 (starts with `:`), digraph6 (starts with `&`), a name (`C6`,
              `2·C3`, `K1,4`, `Petersen`) or SMILES, which needs RDKit. What is valid graph6 is read
              as graph6, even where it is a SMILES too (`CC`, with a warning), and a name before a
              SMILES; `smiles:CC`, `graph6:CC` and `name:C6` settle it.

    Returns:
        A read-only float64 array `[n, n]`.

    Raises:
        DataError: If it is not a graph, has no node, or has an entry that is not finite.
    """
    if isinstance(graph, bytes):  # as networkx.to_graph6_bytes gives it
        graph = graph.decode("ascii", errors="replace")
    if isinstance(graph, str):
        return parse_graph_text(graph)
    if isinstance(graph, Path):
        return read_graph(graph)
    nx = sys.modules.get("networkx")  # no networkx graph exists before networkx is imported
    if nx is not None and isinstance(graph, nx.Graph):
        return _of_networkx(nx, graph)
    if hasattr(graph, "edge_index") and hasattr(graph, "num_nodes"):
        return _of_pyg(graph)
    if hasattr(graph, "edge_types") and hasattr(graph, "to_homogeneous"):
        raise DataError(
            f"got {type(graph).__name__}, with several kinds of nodes or edges; expected one kind: "
            "data.to_homogeneous()"
        )
    if type(graph).__module__.startswith("rdkit.") and hasattr(graph, "GetNumAtoms"):
        return bonds(graph)
    rows = graph if isinstance(graph, list | tuple) else ()
    # A matrix is a list of lists; tuples of two, or three with a weight, are edges.
    if rows and all(isinstance(row, tuple) and len(row) in (2, 3) for row in rows):
        raise DataError(
            f"{rows[0]!r} is an edge, and a row of a matrix is a list of numbers; {_EDGES_MOVE}"
        )
    return _checked(to_numpy(graph))


def _of_networkx(nx: Any, graph: Any) -> Adjacency:
    if graph.number_of_nodes() == 0:
        raise _no_nodes("the networkx graph")
    refuse_multigraph(graph, "the networkx graph")
    require_matrix(graph.number_of_nodes(), "the networkx graph")
    try:
        matrix = nx.to_numpy_array(graph, weight="weight", dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"an edge attribute 'weight' of the networkx graph is not a number ({error}); "
            "expected a finite number on every edge that has one: convert it or drop it"
        ) from error
    return _checked(matrix)


def refuse_multigraph(graph: Any, what: str) -> None:
    """Refuse a networkx MultiGraph: whether parallel edges count once or add up is open."""
    if graph.is_multigraph():
        raise DataError(
            f"{what} is a multigraph; make its edges single with networkx.Graph(g), or sum them "
            "into the attribute 'weight'"
        )


def _of_pyg(data: Any) -> Adjacency:
    """The matrix of a PyG `Data`, its parallel edges added up."""
    nodes = int(data.num_nodes or 0)
    if not nodes:
        raise _no_nodes("the PyG data")
    require_matrix(nodes, "the PyG data")
    refuse_batch(data, "the PyG data")
    ends = np.asarray(to_numpy(pyg_edges(data, np.zeros((2, 0), dtype=np.int64))))
    check_edge_index(ends, nodes, "the PyG data")
    weights = getattr(data, "edge_weight", None)
    entries = np.ones(ends.shape[1]) if weights is None else np.asarray(to_numpy(weights)).ravel()
    if len(entries) != ends.shape[1]:
        raise DataError(
            f"edge_weight has {len(entries)} entries, edge_index has {ends.shape[1]} columns"
        )
    matrix = np.zeros((nodes, nodes))
    np.add.at(matrix, (ends[0].astype(np.int64), ends[1].astype(np.int64)), entries)
    return _checked(matrix)


def refuse_batch(data: Any, what: str) -> None:
    """Refuse a PyG `Batch` of several graphs where one is read."""
    owner = np.asarray(to_numpy(getattr(data, "batch", None)))
    of_nodes = owner.dtype.kind in "iu" and owner.shape == (int(data.num_nodes or 0),)
    if of_nodes and len(owner) and owner.max() > 0:
        raise DataError(
            f"{what} is a batch of {int(owner.max()) + 1} graphs, expected one: take it apart with "
            "batch.to_data_list()"
        )


def pyg_edges(data: Any, none: Any) -> Any:
    """The `edge_index` of PyG data; `none` where it has no edges."""
    if data.edge_index is not None:
        return data.edge_index
    if getattr(data, "adj_t", None) is not None:
        raise DataError("the PyG data has adj_t and no edge_index; leave out ToSparseTensor")
    return none


def check_edge_index(edge_index: Any, nodes: int, what: str) -> None:
    """Refuse a tensor or array that is not `[2, E]` whole numbers from 0 and below `nodes`."""
    shape, dtype = list(edge_index.shape), str(edge_index.dtype)
    if len(shape) != 2 or shape[0] != 2 or (shape[1] and "int" not in dtype):
        turned = "; transpose it: edge_index.t()" if len(shape) == 2 and shape[1] == 2 else ""
        raise DataError(
            f"edge_index of {what} has shape {shape} and dtype {dtype}, expected whole numbers "
            f"[2, edges]{turned}"
        )
    low, high = (int(edge_index.min()), int(edge_index.max())) if shape[1] else (0, 0)
    if shape[1] and not 0 <= low <= high < nodes:
        raise DataError(
            f"edge_index names nodes {low} to {high}, but {what} has {nodes} nodes, counted from "
            "0; correct it or set num_nodes"
        )


def to_numpy(values: Any) -> Any:
    """Sparse matrices and torch tensors as what numpy reads; anything else as it is."""
    if hasattr(values, "detach"):
        tensor = values.detach()
        tensor = tensor if str(tensor.layout) == "torch.strided" else tensor.to_dense()
        tensor = tensor.double() if tensor.is_floating_point() else tensor  # numpy has no bfloat16
        return tensor.cpu().numpy()
    return values.toarray() if hasattr(values, "toarray") else values


def to_graph6(graph: GraphLike) -> str:
    """Encode a simple undirected graph as one graph6 line, without header or newline."""
    matrix = adjacency(graph)
    if not is_simple(matrix):
        raise DataError(
            "graph6 holds simple undirected graphs only, got loops, directions or weights: "
            "write an edge list instead"
        )
    return encode_graph6(matrix)


def is_simple(matrix: Adjacency) -> bool:
    """Say whether the graph is undirected, without loops, with all weights 0 or 1."""
    return bool(
        np.array_equal(matrix, matrix.T)
        and not matrix.diagonal().any()
        and np.isin(matrix, (0, 1)).all()
    )


def read_graph6_file(path: str | Path) -> tuple[Adjacency, ...]:
    """Read every graph of a graph6 file, gzipped or not; blank lines are skipped."""
    return tuple(parse_graph6(line, f"{path}:{number}") for number, line in graph6_lines(path))


def graph6_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each graph in a graph6 file, header and blank lines removed."""
    empty = True
    with open_text(path, _EXPECTED) as lines:
        for number, line in enumerate(lines, start=1):
            if body := HEADER.sub("", line.strip()):
                empty = False
                yield number, body
    if empty:
        raise DataError(f"{path} holds no graph: expected one graph6 string per line")


def read_graph(text_or_path: str | Path, directed: bool = False) -> Adjacency:
    """Read the one graph a command line names.

    Args:
        text_or_path: Text as `adjacency` takes it, a `.g6` file with one graph, or an edge-list
            file: lines `u v` or `u,v`, an optional weight, `#` comments, any node names. A file
            wins over a string of the same spelling. Rows follow the node numbers where every name
            is an integer, and the order of first appearance otherwise.
        directed: Read an edge list as directed. graph6 is always undirected.
    """
    text, path = str(text_or_path), Path(text_or_path)
    # os.path, as pathlib raises on a name the system refuses, which a long graph6 string is.
    if os.path.isfile(text):
        if text.lower().endswith(_GRAPH6_SUFFIXES):
            graphs = read_graph6_file(path)
            if len(graphs) != 1:
                raise DataError(
                    f"{path} holds {len(graphs)} graphs, expected one: "
                    "pass one of its lines as text instead"
                )
            return graphs[0]
        return parse_edge_list(read_text_file(path, _EXPECTED), text, directed)
    require_regular(text)
    named = text.strip().lower().startswith(tuple(f"{name}:" for name in FORMATS))
    # Neither character can occur in graph6, so the user meant a file; SMILES can say so.
    if not named and ("/" in text or "." in text):
        raise DataError(
            f"no file {text!r}: check the path, or pass a graph6 string; a SMILES is smiles:{text}"
        )
    try:
        return parse_graph_text(text)
    except DataError as fault:
        raise DataError(f"no file of that name, so read as a graph: {fault}") from fault


def _checked(values: Any) -> Adjacency:
    """Check an array-like and return it as a read-only float64 copy."""
    try:
        matrix = np.asarray(values)
    except ValueError as error:
        raise DataError(
            f"rows of unequal length are no adjacency matrix ({error}); expected shape [n, n]"
        ) from error
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"got {type(values).__name__} (dtype {matrix.dtype}), expected {_ACCEPTED}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"an adjacency matrix is square, got shape {list(matrix.shape)}, expected [n, n]; "
            f"{_EDGES_MOVE}"
        )
    if matrix.size == 0:
        raise _no_nodes("the adjacency matrix")
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        i, j = (int(index) for index in bad[0])
        raise DataError(
            f"entry ({i}, {j}) of the adjacency matrix is {matrix[i, j]}, expected a finite number:"
            " write 0 where there is no edge"
        )
    return read_only(np.array(matrix, dtype=np.float64))


def _no_nodes(what: str) -> DataError:
    return DataError(f"{what} has no nodes: expected at least one; drop the empty graph")
