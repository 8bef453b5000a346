"""Graphs written as text: graph6 and its relatives, SMILES and edge lists.

One rule says what a string is (`parse_graph_text`): a prefix `graph6:`, `sparse6:`, `digraph6:`,
`smiles:` or `name:` settles it; else `:` starts sparse6 and `&` digraph6; else a string that is
graph6 is read as graph6, even where it is a SMILES too (`CC`, with a warning); else a name such as
`C6` or `2·C3` is that graph; what is left is SMILES.
"""

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, G2N2Warning

HEADER = re.compile(">>(graph6|sparse6|digraph6)<<")
FORMATS = ("graph6", "sparse6", "digraph6", "smiles", "name")
"""Formats of one graph in a string, as the prefix before a colon names them."""
_PREFIX = re.compile(rf"\s*(?:>>({'|'.join(FORMATS[:3])})<<|({'|'.join(FORMATS)}):)", re.IGNORECASE)
# Two of these letters are a molecule for a chemist, whatever graph6 makes of them.
_ATOMS = re.compile(r"(?:Br|Cl|[BCNOPSFIbcnops]){2,}")
_COPIED = "; check that the line was copied whole"
# A first line of these words names columns; read as an edge it would silently add two nodes.
_EDGE_LIST_HEADERS = ({"source", "target"}, {"from", "to"}, {"src", "dst"})
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}")  # more digits are a name: int() refuses over 4,300
DECIMAL_COMMA = re.compile(r"[+\-\N{MINUS SIGN}]?\d*,\d+(?:[eE][+-]?\d+)?")
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
    """
    body, where = HEADER.sub("", text.strip()), f"{source}: " if source else ""
    if not body:
        raise DataError(f"{where}empty text where a graph6 string was expected, such as 'C~' (K4)")
    if body[0] in _OTHER_FORMATS:
        name, move = _OTHER_FORMATS[body[0]]
        raise DataError(f"{where}{quoted(body)} is {name}, not graph6: {move}")
    nodes, bits = _decode(body, "graph6", where)
    matrix = np.zeros((nodes, nodes))
    # graph6 lists the upper triangle by columns, which is the lower triangle by rows.
    matrix[np.tril_indices(nodes, -1)] = bits
    return read_only(matrix + matrix.T)


def parse_digraph6(text: str) -> NDArray[np.float64]:
    """Decode one digraph6 string: `&`, the number of nodes, and the rows of A bit by bit."""
    if text[:1] != "&" or len(text) == 1:
        raise DataError(f"{quoted(text)} is not digraph6: expected '&' and characters '?' to '~'")
    nodes, bits = _decode(text, "digraph6", "")
    return read_only(bits.reshape(nodes, nodes).astype(np.float64))


def _decode(text: str, form: str, where: str) -> tuple[int, NDArray[np.uint8]]:
    """The number of nodes and the bits of graph6 or digraph6."""
    body = text.removeprefix("&")
    odd = next((c for c in body if not 63 <= ord(c) <= 126), None)
    reason = ""
    if odd is not None:
        at = text.index(odd)
        reason = f"character {odd!r} at position {at}, expected one of '?' to '~' (codes 63 to 126)"
    else:
        values = np.frombuffer(body.encode("ascii"), dtype=np.uint8) - 63
        nodes, first, stop = _node_count(values)
        bit_count = nodes * nodes if form == "digraph6" else nodes * (nodes - 1) // 2
        got, expected = len(values) - stop, math.ceil(bit_count / 6)
        if got < 0:
            reason = (
                f"'~' announces {stop - first} characters for the number of nodes, got "
                f"{len(values) - first}"
            )
        elif not nodes:
            reason = "it has no nodes, expected at least one"
        elif got != expected:
            reason = (
                f"it declares {nodes} nodes and has {got} characters of edges, expected {expected}"
            )
        else:
            bits = np.unpackbits(values[stop:, None], axis=1)[:, 2:].ravel()
            if not bits[bit_count:].any():
                return nodes, bits[:bit_count]
            reason = f"its {len(bits) - bit_count} padding bits are not all 0"
    raise DataError(f"{where}{quoted(text)} is not {form}: {reason}{_COPIED}")


def _node_count(values: NDArray[np.uint8]) -> tuple[int, int, int]:
    """The number of nodes that graph6 and its relatives begin with, and where it stands."""
    # It takes 1 character, or 3 after one `~`, or 6 after two.
    first, stop = (0, 1) if values[0] < 63 else (2, 8) if 63 in values[1:2] else (1, 4)
    nodes = sum(int(v) << 6 * k for k, v in enumerate(values[first:stop][::-1]))
    return nodes, first, stop


def encode_graph6(matrix: NDArray[np.float64]) -> str:
    """Encode a simple graph as one graph6 line, without header or newline."""
    import networkx as nx

    line: bytes = nx.to_graph6_bytes(nx.from_numpy_array(matrix), header=False)
    return line.decode("ascii").strip()


def parse_sparse6(text: str) -> NDArray[np.float64]:
    """Decode one sparse6 string by networkx; parallel edges add up."""
    import networkx as nx

    try:
        content = text.encode("ascii")
        nodes = _node_count(np.frombuffer(content[1:9], dtype=np.uint8) - 63)[0]
        require_matrix(nodes, f"the sparse6 string {quoted(text)}")
        graph = nx.from_sparse6_bytes(content)
    except DataError:
        raise
    except (nx.NetworkXException, ValueError, IndexError, StopIteration) as fault:
        ended = isinstance(fault, IndexError | StopIteration)
        reason = "it ends too early" if ended else str(fault)
        raise DataError(f"{quoted(text)} is not sparse6: {reason}{_COPIED}") from fault
    if not len(graph):
        raise DataError(f"the sparse6 string {quoted(text)} has no nodes: expected at least one")
    matrix: NDArray[np.float64] = nx.to_numpy_array(graph, dtype=np.float64)
    return read_only(matrix)


def parse_graph_text(text: str) -> NDArray[np.float64]:
    """Decode one graph written as graph6, sparse6, digraph6, a name or SMILES.

    A molecule's nodes are its heavy atoms in the order of the SMILES, and every bond counts 1.

    Raises:
        DataError: It is none of them; the message says why, for each reading.
    """
    if prefix := _PREFIX.match(text):
        form, body = (prefix[1] or prefix[2]).lower(), text[prefix.end() :].strip()
        if form == "name":
            from .names import named_graph

            return named_graph(body)
        if form != "smiles":
            return _READERS[form](body)
        try:
            return _smiles_graph(body)
        except DataError as fault:
            raise DataError(f"{quoted(body)} is not a SMILES: {fault}") from fault
    body = text.strip()
    if body[:1] in (":", "&"):
        return _READERS["sparse6" if body[0] == ":" else "digraph6"](body)
    try:
        matrix = parse_graph6(body)
    except DataError as fault:
        if not body or body[0] == ";":
            raise
        from .names import graph_of_name

        if (named := graph_of_name(body)) is not None:
            return named
        try:
            return _smiles_graph(body)
        except DataError as no_smiles:
            raise DataError(
                f"{str(fault).removesuffix(_COPIED)}. Nor is it a SMILES: {no_smiles}; nor a name "
                "such as C6 or K1,4. Start with graph6:, smiles: or name: to say which is meant"
            ) from fault
    if _ATOMS.fullmatch(body):
        warnings.warn(
            f"{body!r} is read as graph6, a graph of {len(matrix)} nodes, and is a SMILES too: "
            f"write 'smiles:{body}' for the molecule, or 'graph6:{body}' to say that this is meant",
            G2N2Warning,
            stacklevel=3,
        )
    return matrix


_READERS = {"graph6": parse_graph6, "sparse6": parse_sparse6, "digraph6": parse_digraph6}


@contextmanager
def chemistry() -> Iterator[Any]:
    """`rdkit.Chem` with its own messages held back: ours name the record at fault."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise DataError(
            "RDKit, which reads molecules, is not installed (pip install 'g2n2[chem]')"
        ) from None
    with rdBase.BlockLogs():
        yield Chem


def parse_smiles(chem: Any, text: str) -> Any:
    """An RDKit molecule with hydrogens implicit."""
    if len(text) > LONGEST_SMILES:
        raise DataError(f"it has {len(text):,} characters; at most {LONGEST_SMILES:,} are read")
    # RDKit takes what follows white space for a name, so a sentence may pass for a molecule, and
    # stops at a character beyond ASCII without a word.
    if len(text.split()) > 1 and "|" not in text:
        raise DataError("it holds white space")
    if not text.strip() or not text.isascii():
        raise DataError("it is empty" if text.isascii() else "it holds a character beyond ASCII")
    molecule = chem.MolFromSmiles(text)
    if molecule is None:
        raw = chem.MolFromSmiles(text, sanitize=False)
        raise DataError(chemistry_fault(chem, raw) or "RDKit cannot parse it")
    if not molecule.GetNumAtoms():
        raise DataError("it has no atoms")
    return molecule


def chemistry_fault(chem: Any, molecule: Any) -> str:
    """What RDKit says is wrong with a molecule it did not sanitise; None was not even parsed."""
    problems = [] if molecule is None else chem.DetectChemistryProblems(molecule)
    return str(problems[0].Message()) if problems else ""


def _smiles_graph(text: str) -> NDArray[np.float64]:
    """Heavy atoms and bonds of a SMILES."""
    with chemistry() as chem:
        return bonds(parse_smiles(chem, text))


def bonds(molecule: Any) -> NDArray[np.float64]:
    """The adjacency matrix of an RDKit molecule, every bond 1."""
    from rdkit import Chem

    if not molecule.GetNumAtoms():
        raise DataError("the molecule has no atoms: expected at least one")
    return read_only(np.array(Chem.GetAdjacencyMatrix(molecule), dtype=np.float64))


def quoted(text: str) -> str:
    """Text as it was given, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


LARGEST_MATRIX = 2**15
"""Nodes; a matrix of more takes over 8 GiB."""


def require_matrix(nodes: int, what: str) -> None:
    """Refuse a graph whose matrix would be too large, before it is made."""
    if nodes > LARGEST_MATRIX:
        raise DataError(
            f"{what} has {nodes:,} nodes; a graph is made a matrix up to {LARGEST_MATRIX:,}"
        )


def read_only(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Freeze a matrix in place: a graph is a value."""
    matrix.flags.writeable = False
    return matrix


def parse_edge_list(text: str, source: str, directed: bool) -> NDArray[np.float64]:
    """Read lines `u v` or `u,v`, optional weight, `#` comments, any node names.

    Rows are in the order of node numbers where every name is an integer, else of first appearance.
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
        u, v, weight = _parse_edge(content, fields, f"{source}:{number}")
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
    require_matrix(len(names), source)
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
    plain = {name: name.replace("\N{MINUS SIGN}", "-") for name in names}
    if not are_numbers(plain.values()):
        return None
    return next((name for name, number in plain.items() if number.startswith("-")), None)


def _parse_edge(line: str, fields: list[str], where: str) -> tuple[str, str, float]:
    """Check one line of an edge list, cut into fields."""
    # `0 1 0,5` cut at its comma would join the nodes `0 1 0` and `5`.
    blanks = re.split(r"[\s;]+", line)
    if len(blanks) == 3 and DECIMAL_COMMA.fullmatch(blanks[2]):
        raise DataError(
            f"{where}: weight {blanks[2]!r} has a comma; write a decimal point, as in "
            f"{blanks[2].replace(',', '.')}"
        )
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
