"""Graphs written as text: graph6 strings and edge lists, without any file access."""

import math

import numpy as np
from numpy.typing import NDArray

from g2n2.errors import DataError

GRAPH6_HEADER = ">>graph6<<"
# A first line of these words names columns; read as an edge it would silently add two nodes.
_EDGE_LIST_HEADERS = ({"source", "target"}, {"from", "to"}, {"src", "dst"})
_OTHER_FORMATS = {
    ":": ("sparse6", "read it with networkx.from_sparse6_bytes, or convert it with nauty's copyg"),
    ";": ("incremental sparse6", "convert it with nauty's copyg -g"),
    "&": ("digraph6", "write it as an edge list and read that with directed=True"),
}


def parse_graph6(text: str, source: str = "") -> NDArray[np.float64]:
    """Decode one graph6 string, with or without the `>>graph6<<` header.

    Args:
        text: One graph.
        source: Where the text comes from, named in errors (`file:line`).

    Returns:
        A read-only float64 array `[n, n]`, symmetric, zero diagonal, entries 0 and 1.

    Raises:
        DataError: If it is empty, has a character outside `?`..`~`, is too short or too long,
            has no node, or is sparse6 or digraph6.
    """
    body = text.strip().removeprefix(GRAPH6_HEADER)
    where = f"{source}: " if source else ""
    shown = repr(body if len(body) <= 40 else body[:37] + "...")
    if not body:
        raise DataError(f"{where}empty text where a graph6 string was expected, such as 'C~' (K4)")
    if body[0] in _OTHER_FORMATS:
        name, move = _OTHER_FORMATS[body[0]]
        raise DataError(f"{where}{shown} is {name}, not graph6: {move}")
    for position, character in enumerate(body):
        if not 63 <= ord(character) <= 126:
            raise DataError(
                f"{where}{shown} is not graph6: character {character!r} at position {position}, "
                "expected one of '?' to '~' (codes 63 to 126); check that the line was copied whole"
            )
    values = np.frombuffer(body.encode("ascii"), dtype=np.uint8) - 63
    nodes, start = _graph6_order(values, where, shown)
    if nodes == 0:
        raise DataError(
            f"{where}the graph6 string {shown} has no nodes: expected at least one; drop it"
        )
    bit_count = nodes * (nodes - 1) // 2
    expected = math.ceil(bit_count / 6)
    if len(values) - start != expected:
        raise DataError(
            f"{where}{shown} is not graph6: it declares {nodes} nodes and has {len(values) - start}"
            f" characters of edges, expected {expected}; check that the line was copied whole"
        )
    bits = np.unpackbits(values[start:, None], axis=1)[:, 2:].ravel()
    if bits[bit_count:].any():
        raise DataError(
            f"{where}{shown} is not graph6: its {len(bits) - bit_count} padding bits are not all 0,"
            " so the last character is damaged; get the line again"
        )
    matrix = np.zeros((nodes, nodes))
    # graph6 lists the upper triangle by columns, which is the lower triangle by rows.
    matrix[np.tril_indices(nodes, -1)] = bits[:bit_count]
    return read_only(matrix + matrix.T)


def encode_graph6(matrix: NDArray[np.float64]) -> str:
    """Encode the lower triangle of a 0/1 matrix as one graph6 line, without header or newline."""
    nodes = len(matrix)
    bits = matrix[np.tril_indices(nodes, -1)].astype(np.uint8)
    padded = np.pad(bits, (0, -len(bits) % 6)).reshape(-1, 6)
    values = np.packbits(np.pad(padded, ((0, 0), (2, 0))), axis=1).ravel()
    if nodes <= 62:
        order = [nodes]
    else:
        short = nodes <= 258047
        digits = range(12 if short else 30, -1, -6)
        order = [63] * (1 if short else 2) + [nodes >> digit & 63 for digit in digits]
    return bytes([*(63 + value for value in order), *(63 + values)]).decode("ascii")


def read_only(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Freeze a matrix in place: a graph is a value."""
    matrix.flags.writeable = False
    return matrix


def _graph6_order(values: NDArray[np.uint8], where: str, shown: str) -> tuple[int, int]:
    """Return the number of nodes and where the edges start: 1, 4 or 8 characters hold it."""
    if values[0] < 63:
        return int(values[0]), 1
    start, stop = (2, 8) if len(values) > 1 and values[1] == 63 else (1, 4)
    if len(values) < stop:
        raise DataError(
            f"{where}{shown} is not graph6: '~' announces {stop - start} characters for the number "
            f"of nodes, got {len(values) - start}; check that the line was copied whole"
        )
    nodes = 0
    for value in values[start:stop]:
        nodes = nodes << 6 | int(value)
    return nodes, stop


def parse_edge_list(text: str, source: str, directed: bool) -> NDArray[np.float64]:
    """Read lines `u v` or `u,v`, optional weight, `#` comments, any node names.

    Args:
        text: The whole list.
        source: The file it comes from, named in errors.
        directed: Give `A[u, v]` only; otherwise an edge is entered both ways.

    Returns:
        A read-only float64 array `[n, n]`, rows by node number where every name is an integer,
        by first appearance otherwise.
    """
    weights: dict[tuple[str, str], float] = {}
    first = True
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        fields = [field.strip() for field in content.split(",")]
        if len(fields) == 1:
            fields = content.split()
        is_header = first and {field.lower() for field in fields[:2]} in _EDGE_LIST_HEADERS
        first = False
        if is_header:
            continue
        u, v, weight = _parse_edge(fields, f"{source}:{number}")
        for edge in ((u, v),) if directed else ((u, v), (v, u)):
            if weights.setdefault(edge, weight) != weight:
                raise DataError(
                    f"{source}:{number}: edge {u} {v} has weight {weight:g} here and "
                    f"{weights[edge]:g} before; expected one weight per edge: remove one line"
                    + ("" if directed else ", or read with directed=True")
                )
    if not weights:
        raise DataError(f"{source} holds no edge: expected lines 'u v', 'u,v' or 'u v weight'")
    names = list(dict.fromkeys(name for edge in weights for name in edge))
    if all(name.removeprefix("-").isdecimal() for name in names):
        names.sort(key=int)
    row = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for (u, v), weight in weights.items():
        matrix[row[u], row[v]] = weight
    return read_only(matrix)


def _parse_edge(fields: list[str], where: str) -> tuple[str, str, float]:
    """Check one line of an edge list."""
    if len(fields) not in (2, 3) or not all(fields):
        raise DataError(
            f"{where}: got {len(fields)} field(s) {' '.join(fields)!r}, expected 'u v' or "
            "'u v weight' (a node without edges is 'u u 0'); a graph6 file is named .g6"
        )
    if len(fields) == 2:
        return fields[0], fields[1], 1.0
    try:
        weight = float(fields[2])
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise DataError(
            f"{where}: weight {fields[2]!r} is not a finite number; correct it, "
            "or start the line with # if it is a header"
        )
    return fields[0], fields[1], weight
