"""Graphs written as text: graph6 and its relatives, SMILES and edge lists, without file access.

One rule says what a string is (`parse_graph_text`): a prefix `graph6:`, `sparse6:`, `digraph6:`,
`smiles:` or `name:` settles it; else `:` starts sparse6 and `&` digraph6; else a string that is
graph6 is read as graph6, even where it is a SMILES too (`CC`, with a warning); else a name such as
`C6` or `2·C3` is that graph; what is left is SMILES.
"""

import math
import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, G2N2Warning

GRAPH6_HEADER = ">>graph6<<"
FORMATS = ("graph6", "sparse6", "digraph6", "smiles", "name")
"""Formats of one graph in a string, as the prefix before a colon names them."""
_PREFIX = re.compile(rf"\s*(?:>>({'|'.join(FORMATS[:3])})<<|({'|'.join(FORMATS)}):)", re.IGNORECASE)
# Two of these letters are a molecule for a chemist, whatever graph6 makes of them.
_ATOMS = re.compile(r"(?:Br|Cl|[BCNOPSFIbcnops]){2,}")
# A first line of these words names columns; read as an edge it would silently add two nodes.
_EDGE_LIST_HEADERS = ({"source", "target"}, {"from", "to"}, {"src", "dst"})
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}")  # more digits are a name: int() refuses over 4,300
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
"""A number written `0,5`."""
LONGEST_SMILES = 10_000
"""Characters; RDKit runs out of stack on chains of 20,000 atoms, and takes the process with it."""
_OTHER_FORMATS = {
    ":": ("sparse6", "g2n2.graphs.adjacency reads it, or convert it with nauty's copyg -g"),
    ";": ("incremental sparse6", "convert it with nauty's copyg -g"),
    "&": ("digraph6", "g2n2.graphs.adjacency reads it"),
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
    shown = _shown(body)
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


def parse_graph_text(text: str) -> NDArray[np.float64]:
    """Decode one graph written as graph6, sparse6, digraph6, a name or SMILES.

    A molecule's nodes are its heavy atoms in the order of the SMILES, and every bond counts 1.

    Raises:
        DataError: It is none of them; the message says why, for each reading.
    """
    if named := _PREFIX.match(text):
        form = (named[1] or named[2]).lower()
        return _READERS[form](text[named.end() :].strip())
    body = text.strip()
    if body[:1] in (":", "&"):
        return _READERS["sparse6" if body[0] == ":" else "digraph6"](body)
    try:
        matrix = parse_graph6(body)
    except DataError as fault:
        if not body or body[0] == ";":
            raise
        named_one = _of_name(body)
        return _molecule_or(body, fault) if named_one is None else named_one
    if _ATOMS.fullmatch(body):
        warnings.warn(
            f"{body!r} is read as graph6, a graph of {len(matrix)} nodes, and is a SMILES too: "
            f"write 'smiles:{body}' for the molecule, or 'graph6:{body}' to say that this is meant",
            G2N2Warning,
            stacklevel=3,
        )
    return matrix


def parse_sparse6(text: str) -> NDArray[np.float64]:
    """Decode one sparse6 string by networkx; parallel edges add up."""
    import networkx as nx

    try:
        graph = nx.from_sparse6_bytes(text.encode("ascii"))
    except (nx.NetworkXException, ValueError, IndexError, StopIteration) as fault:
        reason = str(fault) or "it ends too early"
        raise DataError(
            f"{_shown(text)} is not sparse6: {reason}; check that the line was copied whole"
        ) from fault
    if not len(graph):
        raise DataError(f"the sparse6 string {_shown(text)} has no nodes: expected at least one")
    matrix: NDArray[np.float64] = nx.to_numpy_array(graph, dtype=np.float64)
    return read_only(matrix)


def parse_digraph6(text: str) -> NDArray[np.float64]:
    """Decode one digraph6 string: `&`, the number of nodes, and the rows of A bit by bit."""
    shown, body = _shown(text), text.removeprefix("&")
    if body == text or not body or not all(63 <= ord(c) <= 126 for c in body):
        raise DataError(
            f"{shown} is not digraph6: expected '&' and characters '?' to '~'; check that the line "
            "was copied whole"
        )
    values = np.frombuffer(body.encode("ascii"), dtype=np.uint8) - 63
    nodes, start = _graph6_order(values, "", shown)
    expected = math.ceil(nodes * nodes / 6)
    if not nodes or len(values) - start != expected:
        raise DataError(
            f"{shown} is not digraph6: it declares {nodes} nodes and has {len(values) - start} "
            f"characters of edges, expected {expected} and at least one node"
        )
    bits = np.unpackbits(values[start:, None], axis=1)[:, 2:].ravel()
    if bits[nodes * nodes :].any():
        raise DataError(f"{shown} is not digraph6: its padding bits are not all 0")
    return read_only(bits[: nodes * nodes].reshape(nodes, nodes).astype(np.float64))


def parse_smiles_graph(text: str) -> NDArray[np.float64]:
    """Decode one SMILES by RDKit: heavy atoms and bonds, each bond 1.

    Raises:
        DataError: It is no SMILES, or RDKit is not installed.
    """
    molecule = _molecule(text)
    if isinstance(molecule, str):
        raise DataError(f"{_shown(text)} is not a SMILES: {molecule}")
    return bonds(molecule)


def bonds(molecule: Any) -> NDArray[np.float64]:
    """The adjacency matrix of an RDKit molecule, every bond 1."""
    from rdkit import Chem

    if not molecule.GetNumAtoms():
        raise DataError("the molecule has no atoms: expected at least one")
    return read_only(np.array(Chem.GetAdjacencyMatrix(molecule), dtype=np.float64))


def _molecule(text: str) -> Any:
    """An RDKit molecule, or in words why there is none."""
    if len(text.split()) != 1 or not text.isascii():  # RDKit stops at either without a word
        return "it is empty, or holds white space or a character beyond ASCII"
    if len(text) > LONGEST_SMILES:
        return f"it has {len(text):,} characters, and RDKit is given {LONGEST_SMILES:,} at most"
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return "RDKit, which reads SMILES, is not installed (pip install 'g2n2[chem]')"
    with rdBase.BlockLogs():
        found = Chem.MolFromSmiles(text)
    return "RDKit cannot read it" if found is None or not found.GetNumAtoms() else found


def _of_name(text: str) -> NDArray[np.float64] | None:
    """The graph of a name such as `C6`; None where there is none."""
    from .names import graph_of_name

    return graph_of_name(text)


def _read_name(text: str) -> NDArray[np.float64]:
    from .names import named_graph

    return named_graph(text)


def _molecule_or(text: str, fault: DataError) -> NDArray[np.float64]:
    """The graph of a SMILES, or both reasons why the text is no graph."""
    molecule = _molecule(text)
    if not isinstance(molecule, str):
        return bonds(molecule)
    raise DataError(
        f"{fault}. Nor is it a SMILES: {molecule}. Expected graph6, sparse6, digraph6, a SMILES or "
        "a name such as C6 or K1,4; a prefix such as graph6:, smiles: or name: says which is meant"
    ) from fault


_READERS = {
    "graph6": lambda text: parse_graph6(text),
    "sparse6": parse_sparse6,
    "digraph6": parse_digraph6,
    "smiles": parse_smiles_graph,
    "name": _read_name,
}


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


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
    lines: dict[str, int] = {}
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
        _refuse_decimal_comma(content, f"{source}:{number}")
        u, v, weight = _parse_edge(fields, f"{source}:{number}")
        lines.setdefault(u, number)
        lines.setdefault(v, number)
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
    if (negative := negative_node(names)) is not None:
        raise DataError(f"{source}:{lines[negative]}: {NEGATIVE_NODE.format(negative)}")
    if are_numbers(names):
        names.sort(key=int)
    row = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for (u, v), weight in weights.items():
        matrix[row[u], row[v]] = weight
    return read_only(matrix)


def are_numbers(names: Iterable[str]) -> bool:
    """Whether every node name is a whole number, so that nodes are ordered by it."""
    return all(map(_WHOLE_NUMBER.fullmatch, names))


NEGATIVE_NODE = (
    "node {} is negative, and nodes are numbered from 0 or 1; drop the line if it means that there "
    "is no edge, or give the nodes names that are no numbers"
)


def negative_node(names: Iterable[str]) -> str | None:
    """The first negative number where every node name is a whole number; None without one."""
    found = list(names)
    if not all(_WHOLE_NUMBER.fullmatch(name.replace("\N{MINUS SIGN}", "-")) for name in found):
        return None
    return next((name for name in found if name.startswith(("-", "\N{MINUS SIGN}"))), None)


def _refuse_decimal_comma(line: str, where: str) -> None:
    """Refuse `0 1 0,5`, which cut at its comma would join the nodes `0 1 0` and `5`."""
    fields = re.split(r"[\s;]+", line)
    if len(fields) == 3 and DECIMAL_COMMA.fullmatch(fields[2]):
        raise DataError(
            f"{where}: weight {fields[2]!r} has a comma; write a decimal point, as in "
            f"{fields[2].replace(',', '.')}"
        )


def _parse_edge(fields: list[str], where: str) -> tuple[str, str, float]:
    """Check one line of an edge list."""
    if len(fields) not in (2, 3) or not all(fields):
        raise DataError(
            f"{where}: got {len(fields)} field(s) {' '.join(fields)!r}, expected 'u v' or "
            "'u v weight' (a node without edges is 'u u 0'), numbers with a decimal point; "
            "a graph6 file is named .g6"
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
