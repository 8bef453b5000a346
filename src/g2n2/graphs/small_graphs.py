"""All connected graphs of up to 8 nodes, grown node by node, and the canonical form they need.

The canonical form is exact: the least adjacency code over every node order that respects an
invariant order of node colours. The colours only shorten the search, so a collision between them
costs time and never correctness. Nothing here uses `refinement`, whose tests run on these graphs.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

LARGEST_ORDER = 8  # 9 nodes: 261,080 connected graphs and up to 362,880 orders each
_COLOUR_ROUNDS = 4
_CHUNK = 2**22

Stack = NDArray[np.float64]
Codes = NDArray[np.int64]


@cache
def connected_graphs(nodes: int) -> Stack:
    """Return every connected simple graph with that many nodes once, up to isomorphism.

    Every connected graph has a node whose removal leaves it connected, so each comes from a
    smaller connected graph by adding one node with some non-empty neighbourhood.

    Returns:
        A read-only stack `[graphs, n, n]`, ordered by canonical code.
    """
    if not 1 <= nodes <= LARGEST_ORDER:
        raise DataError(
            f"connected graphs are listed for 1 to {LARGEST_ORDER} nodes, got {nodes}: "
            "for larger ones read a graph6 file of nauty's geng -c"
        )
    if nodes == 1:
        stack = np.zeros((1, 1, 1))
    else:
        parents = connected_graphs(nodes - 1)
        neighbourhoods = np.array(list(product((0.0, 1.0), repeat=nodes - 1))[1:])
        stack = np.zeros((len(parents), len(neighbourhoods), nodes, nodes))
        stack[..., :-1, :-1] = parents[:, None]
        stack[..., -1, :-1] = stack[..., :-1, -1] = neighbourhoods
        codes = canonical_codes(stack.reshape(-1, nodes, nodes))
        stack = decode(np.unique(codes), nodes)
    stack.flags.writeable = False
    return stack


def canonical_codes(stack: Stack) -> Codes:
    """Return one number per simple graph, equal exactly for isomorphic graphs of that size.

    Args:
        stack: Adjacency matrices `[graphs, n, n]`, n at most `LARGEST_ORDER`.
    """
    nodes = stack.shape[-1]
    colours = _node_colours(stack)
    order = np.argsort(colours, axis=1, kind="stable")
    colours = np.take_along_axis(colours, order, axis=1)
    # Sort nodes by colour first: many copies of one graph become equal and are searched once.
    edges = np.take_along_axis(
        np.take_along_axis(stack, order[:, :, None], axis=1), order[:, None, :], axis=2
    )[:, *np.tril_indices(nodes, -1)]
    cells = (colours[:, 1:] != colours[:, :-1]) @ (1 << np.arange(nodes - 1))
    rows, back = np.unique(np.column_stack([cells, edges]), axis=0, return_inverse=True)
    least = np.empty(len(rows), dtype=np.int64)
    shapes: dict[int, list[int]] = defaultdict(list)
    for row, shape in enumerate(rows[:, 0].astype(int).tolist()):
        shapes[shape].append(row)
    for shape, members in shapes.items():
        weights = _order_weights(nodes, shape)
        step = max(1, _CHUNK // weights.shape[1])
        for start in range(0, len(members), step):
            some = members[start : start + step]
            least[some] = (rows[some, 1:] @ weights).min(axis=1)
    return least[back.ravel()]


def decode(codes: Codes, nodes: int) -> Stack:
    """Turn codes back into adjacency matrices `[graphs, n, n]`."""
    rows, columns = np.tril_indices(nodes, -1)
    stack = np.zeros((len(codes), nodes, nodes))
    stack[:, rows, columns] = codes[:, None] >> np.arange(len(rows)) & 1
    return stack + np.swapaxes(stack, 1, 2)


def _node_colours(stack: Stack) -> NDArray[np.uint64]:
    """Mix degrees and triangle counts along edges; equal for nodes an isomorphism exchanges."""
    matrices = stack.astype(np.uint64)
    triangles = np.einsum("gij,gjk,gki->gi", stack, stack, stack, optimize=True)
    colours: NDArray[np.uint64] = triangles.astype(np.uint64) * np.uint64(64)
    colours = colours + matrices.sum(axis=2)
    for _ in range(_COLOUR_ROUNDS):
        # Odd multiplier and shift: arithmetic modulo 2 ** 64 that is the same on every machine.
        mixed = (colours + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        colours = colours * np.uint64(31) + (matrices @ (mixed * mixed)[..., None])[..., 0]
    return colours


@cache
def _order_weights(nodes: int, shape: int) -> NDArray[np.float64]:
    """Return the code weight `2 ** position` of each edge under each order of a cell shape.

    Args:
        nodes: Size of the graphs.
        shape: Bit `i` set where a new cell starts at node `i + 1`; orders permute within cells.

    Returns:
        An array `[edges, orders]`; sums of its columns stay below 2 ** 28, exact in float64.
    """
    cells: list[list[int]] = [[0]]
    for node in range(1, nodes):
        if shape >> node - 1 & 1:
            cells.append([])
        cells[-1].append(node)
    orders = np.array([sum(order, ()) for order in product(*map(permutations, cells))])
    place = np.empty_like(orders)
    np.put_along_axis(place, orders, np.arange(nodes)[None, :], axis=1)
    rows, columns = np.tril_indices(nodes, -1)
    high = np.maximum(place[:, rows], place[:, columns])
    low = np.minimum(place[:, rows], place[:, columns])
    positions: NDArray[np.float64] = (high * (high - 1) // 2 + low).T.astype(np.float64)
    return np.exp2(positions)
