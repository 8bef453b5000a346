"""The canonical form is one, and growing finds every connected graph once."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from g2n2.errors import DataError
from g2n2.graphs import read_graph6_file
from g2n2.graphs.small_graphs import canonical_codes, connected_graphs, decode


def stack_of_order(nodes: int) -> np.ndarray:
    return np.stack([nx.to_numpy_array(g) for g in nx.graph_atlas_g() if len(g) == nodes])


@pytest.mark.parametrize("nodes", range(1, 8))
def test_canonical_codes_tell_all_graphs_of_the_atlas_apart(nodes: int) -> None:
    stack = stack_of_order(nodes)
    assert len(np.unique(canonical_codes(stack))) == len(stack)


@pytest.mark.parametrize("nodes", range(4, 8))
def test_canonical_codes_do_not_see_the_order_of_nodes(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    stack = stack_of_order(nodes)
    orders = np.stack([rng.permutation(nodes) for _ in stack])
    rows = np.arange(len(stack))[:, None, None]
    relabelled = stack[rows, orders[:, :, None], orders[:, None, :]]
    assert not np.array_equal(relabelled, stack)
    assert np.array_equal(canonical_codes(relabelled), canonical_codes(stack))


def test_a_code_decodes_to_the_same_graph() -> None:
    stack = stack_of_order(6)
    for code, decoded, matrix in zip(
        canonical_codes(stack), decode(canonical_codes(stack), 6), stack, strict=True
    ):
        assert canonical_codes(decoded[None])[0] == code
        assert nx.is_isomorphic(nx.from_numpy_array(decoded), nx.from_numpy_array(matrix))


# OEIS A001349: connected graphs on n nodes.
@pytest.mark.parametrize(
    ("nodes", "count"), [(1, 1), (2, 1), (3, 2), (4, 6), (5, 21), (6, 112), (7, 853), (8, 11117)]
)
def test_number_of_connected_graphs(nodes: int, count: int) -> None:
    stack = connected_graphs(nodes)
    assert stack.shape == (count, nodes, nodes)
    assert not stack.flags.writeable
    reached = np.linalg.matrix_power(stack + np.eye(nodes), nodes) > 0
    assert reached.all()


def test_seven_node_graphs_are_the_connected_ones_of_the_atlas() -> None:
    atlas = [g for g in nx.graph_atlas_g() if len(g) == 7 and nx.is_connected(g)]
    codes = canonical_codes(np.stack([nx.to_numpy_array(g) for g in atlas]))
    assert np.array_equal(np.sort(codes), canonical_codes(connected_graphs(7)))


def test_graph8c_is_the_published_list() -> None:
    folder = os.environ.get("G2N2_DATA", "")
    path = Path(folder, "expressivity", "graph8c.g6")
    if not folder or not path.is_file():
        pytest.skip(f"needs expressivity/graph8c.g6 in the folder $G2N2_DATA names, now {folder!r}")
    codes = canonical_codes(np.stack(read_graph6_file(path)))
    assert np.array_equal(np.sort(codes), canonical_codes(connected_graphs(8)))


@pytest.mark.parametrize("nodes", [0, 9])
def test_other_orders_are_refused(nodes: int) -> None:
    with pytest.raises(DataError, match=f"1 to 8 nodes, got {nodes}"):
        connected_graphs(nodes)
