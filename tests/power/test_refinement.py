"""Refinement against its naive twin, networkx, and the figures of the literature."""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmark_files import real_file, real_suite
from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.graphs import adjacency, parse_graph6, read_graph6_file
from g2n2.graphs.families import (
    bicyclopentyl,
    decalin,
    rook_graph,
    shrikhande_graph,
)
from g2n2.power.colours import PRIME, dense_ranks, joint_ranks, product_in_field
from g2n2.power.pair_types import first_colours, pair_types
from g2n2.power.refinement import Fingerprints, Refinement, neighbours, refine
from hard_graphs import group_table, latin_square_graph
from naive_refinement import reference_refine

TESTS = [(1, "wl"), (1, "fwl"), (2, "wl"), (2, "fwl"), (3, "wl"), (3, "fwl")]
C6, TWO_TRIANGLES = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))

# BREC pairs, as text so that they never skip: 1-WL merges all of them; does 2-FWL separate?
HARD_PAIRS = [
    ("ICZJvZsNg", "ICrbut{{W", True),
    ("IEzf~~~~w", "IQzV~~~~w", True),
    ("I?`a`_uTW", "I?`a``eKw", True),
    ("I?otQjuvw", "I?q`qj{^w", True),
    ("I??F?zOJ_", "I??FCpSJ_", True),
    ("I~o__[M@w", "I}op_WJ@w", True),
    ("I}`HXOTCw", "I}`HPOVDo", True),
    ("I}`H`STBg", "I}`@pW[@w", True),
    ("I~rH`SVBw", "I~r@pWVBw", True),
    ("I~~el\\^Nw", "I~ze|x^Nw", True),
    ("IEhzvzy|o", "IErtv\\}}o", True),
    ("I?qbByz~w", "I?qbFo~~w", True),
    ("I?rDrqs\\_", "I?rDtps\\_", True),
    ("I?opuJw{g", "I?q`qjw{g", True),
    ("J~og_SF@~~_", "J~o_gWJ@~~_", True),
    ("O~`HW}GPHDaNaGPCcPWaN", "OlfJHsHBGK_\\oHWKeBK_\\", False),
    (
        "X}vEKiJlTTUUjQWxKkZKo]EXZBQxH`a]kguuC}NGZquAptYBdrJ",
        "X}rUTEdmTpQybiSwhkjgeYbLrHBX`HI\\wavYEFxwrroAt`tBsdr",
        False,
    ),
    (
        "X}rM\\QTeLEuUlQY[I\\IgtWfTxCrhEOZo{FfwEew`LXMbWp}JDtM",
        "X~rM[Ihi[eQVlQPTkTiqrWwxXgZgiGX^KfWqEdu?nG\\dRP}NGk]",
        False,
    ),
]


def classes(values: Iterable[Hashable]) -> set[tuple[int, ...]]:
    """The partition of positions by value, whatever the values are called."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for position, value in enumerate(values):
        found[value].append(position)
    return {tuple(members) for members in found.values()}


def random_graph(nodes: int, rng: np.random.Generator, directed: bool) -> NDArray[np.float64]:
    weights = rng.integers(0, 2, (nodes, nodes)) * rng.integers(1, 3, (nodes, nodes))
    matrix: NDArray[np.float64] = weights.astype(np.float64)
    if directed:
        return matrix
    upper: NDArray[np.float64] = np.triu(matrix, 1)
    return upper + upper.T


def assert_like_reference(
    graphs: Sequence[NDArray[np.float64]],
    k: int,
    variant: Any,
    node_labels: Any = None,
    edge_labels: Any = None,
) -> None:
    fast = refine(graphs, k, variant, node_labels, edge_labels)
    slow, rounds = reference_refine(graphs, k, variant, node_labels, edge_labels)
    assert fast.rounds == rounds
    flat_fast = [int(value) for array in fast.colours for value in array.ravel()]
    flat_slow = [
        colour[nodes]
        for colour, matrix in zip(slow, graphs, strict=True)
        for nodes in product(range(len(matrix)), repeat=k)
    ]
    assert classes(flat_fast) == classes(flat_slow)
    multisets = [
        (len(matrix), *sorted(colour.values())) for colour, matrix in zip(slow, graphs, strict=True)
    ]
    assert classes(fast.graph_colours.tolist()) == classes(multisets)


@pytest.mark.parametrize(("k", "variant"), TESTS)
def test_equals_the_naive_twin_on_small_graphs(k: int, variant: str) -> None:
    graphs = [
        adjacency(graph) for graph in nx.graph_atlas_g()[1 :: 1 if k < 3 else 7] if len(graph) < 6
    ]
    assert_like_reference(graphs, k, variant)


@pytest.mark.parametrize(("k", "variant"), TESTS)
@pytest.mark.parametrize(
    ("directed", "labelled"),
    [(False, "nodes"), (True, "none"), (True, "edges"), (False, "both"), (True, "both")],
)
def test_equals_the_naive_twin_on_weighted_labelled_graphs(
    k: int, variant: str, directed: bool, labelled: str
) -> None:
    rng = np.random.default_rng(k)
    graphs = [random_graph(n, rng, directed) for n in (1, 2, 3, 4, 4, 5, 5) for _ in range(2)]
    nodes = [rng.integers(0, 2, len(matrix)) for matrix in graphs]
    edges = [rng.integers(0, 2, matrix.shape) for matrix in graphs]
    assert_like_reference(
        graphs,
        k,
        variant,
        nodes if labelled in ("nodes", "both") else None,
        edges if labelled in ("edges", "both") else None,
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_first_colours_are_the_types_of_ordered_induced_subgraphs(k: int) -> None:
    matrix = random_graph(5, np.random.default_rng(5), directed=True)
    types = pair_types([matrix], None, None)
    (found,), count = first_colours([types.of_graph[0][None]], k)
    induced = [
        (matrix[np.ix_(nodes, nodes)].tobytes(), tuple(i == j for i in nodes for j in nodes))
        for nodes in product(range(5), repeat=k)
    ]
    assert classes(found.ravel().tolist()) == classes(induced)
    assert count == len(set(induced))


@pytest.mark.parametrize(("k", "variant"), TESTS)
def test_fingerprints_are_equal_exactly_for_equal_multisets(k: int, variant: Any) -> None:
    # Any colours, not only those refinement reaches: few, so that many multisets coincide.
    rng = np.random.default_rng(k)
    colours = rng.integers(0, 2, (40, *(3,) * k))
    types = rng.integers(0, 3, (40, 3, 3))
    is_edge = np.array([False, True, True])
    edges = neighbours(types, is_edge) if k == 1 else None
    keys = Fingerprints(k, variant, 2, is_edge, rng).keys(colours, edges)
    multisets: list[Hashable] = []
    for graph, kinds in zip(colours, types, strict=True):
        for nodes in product(range(3), repeat=k):
            replaced = [
                [int(graph[(*nodes[:at], w, *nodes[at + 1 :])]) for w in range(3)]
                for at in range(k)
            ]
            if k == 1:
                seen = [(int(kinds[nodes[0], w]), replaced[0][w]) for w in range(3)]
                multisets.append(tuple(sorted(pair for pair in seen if is_edge[pair[0]])))
            elif variant == "fwl":
                multisets.append(tuple(sorted(zip(*replaced, strict=True))))
            else:
                multisets.append(tuple(tuple(sorted(column)) for column in replaced))
    assert len(classes(multisets)) < len(multisets)
    rows = np.stack([key.ravel() for key in keys], axis=1).tolist()
    assert classes(map(tuple, rows)) == classes(multisets)


@pytest.mark.parametrize(("k", "variant"), [(2, "fwl"), (3, "wl"), (3, "fwl")])
@pytest.mark.parametrize("graph", [C6, TWO_TRIANGLES, nx.petersen_graph(), nx.hypercube_graph(3)])
def test_equals_the_naive_twin_on_regular_graphs(graph: nx.Graph, k: int, variant: str) -> None:
    assert_like_reference([adjacency(graph), adjacency(nx.path_graph(4))], k, variant)


@pytest.mark.filterwarnings("ignore:The hashes produced for graphs")
def test_1wl_partitions_the_atlas_as_networkx_does() -> None:
    graphs = nx.graph_atlas_g()[1:]
    hashes = [
        (len(graph), nx.weisfeiler_lehman_graph_hash(graph, iterations=len(graph)))
        for graph in graphs
    ]
    assert classes(refine(graphs).graph_colours.tolist()) == classes(hashes)


@pytest.mark.parametrize(
    ("k", "variant", "merged"), [(1, "wl", 26), (2, "wl", 26), (2, "fwl", 0), (3, "wl", 0)]
)
def test_pairs_merged_among_the_graphs_of_2_to_7_nodes(k: int, variant: Any, merged: int) -> None:
    assert len(refine(nx.graph_atlas_g()[2:], k, variant).merged_pairs()) == merged


@pytest.mark.slow
@pytest.mark.parametrize(("k", "variant", "merged"), [(1, "wl", 312), (2, "fwl", 0)])
def test_pairs_merged_in_graph8c(k: int, variant: Any, merged: int) -> None:
    suite = load_suite("graph8c")
    refinement = refine(suite.graphs, k, variant)
    assert len(refinement.merged_pairs()) == merged
    assert suite.merged(refinement.graph_colours.tolist()) == merged


@pytest.mark.parametrize(("first", "second", "separated"), HARD_PAIRS)
def test_hard_pairs(first: str, second: str, separated: bool) -> None:
    pair = [parse_graph6(first), parse_graph6(second)]
    assert not refine(pair, 1).separated()
    assert not refine(pair, 2, "wl").separated()
    assert refine(pair, 2, "fwl").separated() is separated
    if len(pair[0]) <= 16:
        assert refine(pair, 3, "wl").separated() is separated  # 3-WL is 2-FWL
        assert refine(pair, 3, "fwl").separated()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (C6, TWO_TRIANGLES, {(2, "fwl"), (3, "wl"), (3, "fwl")}),
        (decalin(), bicyclopentyl(), {(2, "fwl"), (3, "wl"), (3, "fwl")}),
        (rook_graph(4), shrikhande_graph(), {(3, "fwl")}),
        (latin_square_graph(group_table(4)), latin_square_graph(group_table(2, 2)), {(3, "fwl")}),
        (nx.star_graph(4), nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)), set(TESTS)),
    ],
    ids=["C6", "decalin", "rook", "latin", "cospectral"],
)
def test_known_pairs(first: Any, second: Any, expected: set[tuple[int, str]]) -> None:
    found = {(k, v) for k, v in TESTS if refine([first, second], k, v).separated()}  # type: ignore[arg-type]
    assert found == expected


def test_sr25_stays_merged_by_2fwl_and_falls_to_3fwl() -> None:
    graphs = read_graph6_file(real_file("expressivity", "sr251256.g6"))
    assert len(refine(graphs, 2, "fwl").merged_pairs()) == 105
    assert refine(graphs[:3], 3, "fwl").merged_pairs() == []


def test_csl_falls_to_2fwl_and_not_to_1wl() -> None:
    graphs = load_suite("csl").graphs
    assert len(refine(graphs).merged_pairs()) == 45
    assert refine(graphs, 2, "fwl").merged_pairs() == []


def test_exp_is_merged_by_1wl_and_separated_by_2fwl() -> None:
    suite = real_suite("exp")
    assert suite.node_labels is not None
    for i, j in suite.pairs[::5]:
        pair, labels = suite.graphs[i : j + 1], suite.node_labels[i : j + 1]
        assert not refine(pair, 1, "wl", labels).separated()
        assert refine(pair, 2, "fwl", labels).separated()


def test_2fwl_of_198_nodes_takes_seconds() -> None:
    # A random 4-regular graph against its relabeling: every round is run, all colours distinct.
    matrix = nx.to_numpy_array(nx.random_regular_graph(4, 198, seed=1))
    order = np.random.default_rng(0).permutation(198)
    start = time.process_time()
    refinement = refine([matrix, matrix[np.ix_(order, order)]], 2, "fwl")
    assert time.process_time() - start < 10
    assert not refinement.separated()
    assert len(np.unique(refinement.colours[0])) > 30_000


@pytest.mark.parametrize(("k", "variant"), TESTS)
def test_relabelled_graphs_have_relabelled_colours(k: int, variant: Any) -> None:
    rng = np.random.default_rng(3)
    matrix = random_graph(7, rng, directed=True)
    order = rng.permutation(7)
    first, second = refine([matrix, matrix[np.ix_(order, order)]], k, variant).colours
    assert np.array_equal(first[np.ix_(*(order,) * k)], second)


def test_node_and_pair_levels() -> None:
    path = nx.path_graph(4)
    for k, variant in TESTS:
        refinement: Refinement = refine([path], k, variant)  # type: ignore[arg-type]
        (nodes,), (pairs,) = refinement.node_colours(), refinement.pair_colours()
        assert classes(nodes.tolist()) == {(0, 3), (1, 2)}
        symmetric_pairs = classes(
            map(tuple, np.stack([pairs.ravel(), pairs[::-1, ::-1].ravel()]).T)
        )
        assert classes(pairs.ravel().tolist()) == symmetric_pairs  # the path's only symmetry
        if k == 3:
            assert pairs[0, 1] == refinement.colours[0][0, 1, 1]
    (distance_aware,) = refine([nx.cycle_graph(6)], 2, "fwl").pair_colours()
    assert len(np.unique(distance_aware)) == 4  # distances 0 to 3
    (blind,) = refine([nx.cycle_graph(6)], 1).pair_colours()
    assert len(np.unique(blind)) == 3  # equal, joined, neither


def test_node_colours_compare_between_graphs_of_different_size() -> None:
    refinement = refine([nx.path_graph(3), nx.star_graph(3)])
    path, star = refinement.node_colours()
    assert path[1] != star[0]
    assert set(path.tolist()).isdisjoint(star.tolist())
    single, double = refine([nx.cycle_graph(3), TWO_TRIANGLES]).node_colours()
    assert set(single.tolist()) == set(double.tolist())


def test_different_sizes_are_separated_at_round_0() -> None:
    refinement = refine([nx.empty_graph(2), nx.empty_graph(3)])
    assert refinement.separated()
    assert refinement.separated_at() == 0


def test_separated_at_counts_rounds() -> None:
    star, path = nx.star_graph(3), nx.path_graph(4)
    assert refine([star, path]).separated_at() == 1  # degrees
    assert refine([C6, TWO_TRIANGLES], 2, "fwl").separated_at() == 1
    assert refine([C6, TWO_TRIANGLES]).separated_at() is None
    assert refine([C6, TWO_TRIANGLES]).rounds == 0
    assert refine([nx.path_graph(9)]).rounds == 4  # one ring of nodes further per round


def test_labels_separate_and_labels_of_absent_edges_do_not() -> None:
    assert refine([C6, C6], node_labels=[[0] * 6, [0] * 5 + [1]]).separated()
    assert refine([C6, C6], node_labels=[["C"] * 6, ["C"] * 5 + ["N"]]).separated()
    absent = np.zeros((6, 6))
    absent[0, 3] = 7
    assert not refine([C6, C6], edge_labels=[np.zeros((6, 6)), absent]).separated()
    present = np.zeros((6, 6))
    present[0, 1] = present[1, 0] = 7
    assert refine([C6, C6], edge_labels=[np.zeros((6, 6)), present]).separated()
    wide = np.zeros((6, 6, 2))
    wide[..., 1] = present
    assert refine([C6, C6], edge_labels=[np.zeros((6, 6, 2)), wide]).separated()


def test_direction_is_seen() -> None:
    # THEORY's two digraphs on four nodes, and a cycle against one reversed edge.
    first, second = nx.DiGraph([(2, 1), (3, 1)]), nx.DiGraph([(2, 1), (3, 0)])
    for graph in (first, second):
        graph.add_nodes_from(range(4))
    assert refine([first, second]).separated()
    turned = nx.DiGraph([(0, 1), (1, 2), (0, 2)])
    assert refine([nx.DiGraph([(0, 1), (1, 2), (2, 0)]), turned]).separated()


def test_results_are_read_only() -> None:
    refinement = refine([C6], 2, "fwl")
    for array in (*refinement.colours, refinement.graph_colours):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("graphs", "options", "message"),
    [
        ([], {}, "nothing to refine"),
        ("C~", {}, "nothing to refine"),
        (["C~"], {"k": 4}, "expected k in 1, 2, 3"),
        (["C~"], {"variant": "cwl"}, "variant 'wl' or 'fwl'"),
        (["C~", "C~"], {"node_labels": [[0] * 4]}, "node labels for 1 of 2 graphs"),
        (["C~", "C~"], {"node_labels": [[0] * 4, None]}, "missing on graph 1"),
        (["C~"], {"node_labels": [[0] * 3]}, r"shape \[3\], expected \[4\]"),
        (["C~"], {"edge_labels": [[0] * 4]}, r"shape \[4\], expected \[4, 4\]"),
        (["C~"], {"node_labels": [[0, 1, 2, float("nan")]]}, "NaN"),
        (["C~"], {"node_labels": [[0, 1, 2, object()]]}, "dtype object"),
        (["C~", "C~"], {"node_labels": [[0] * 4, ["C"] * 4]}, "mix text and numbers"),
        ([np.zeros((5000, 5000))], {"k": 3, "variant": "fwl"}, r"3-FWL .* 125,000,000,000 tuples"),
        (["C~"], {"k": 2, "memory_limit": 1000}, "raise memory_limit"),
        ([np.eye(100, k=1)], {"k": 1, "memory_limit": 100_000}, "1-WL .* 10,000 tuples"),
    ],
)
def test_bad_input_is_refused(graphs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        refine(graphs, **options)


def test_ranks_are_exact_and_lexicographic() -> None:
    columns = [np.array([1, 0, 1, 0]), np.array([5, 9, 5, 2])]
    ranks, count = dense_ranks(columns)
    assert ranks.tolist() == [2, 1, 2, 0]
    assert count == 3
    parts, count = joint_ranks([[np.array([[3, 1]])], [np.array([1, 7, 3])]])
    assert [part.tolist() for part in parts] == [[[1, 0]], [0, 2, 1]]
    assert count == 3


def test_product_in_field_is_exact_beyond_one_block() -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(PRIME - 5, PRIME, (2, 20_000))
    right = rng.integers(PRIME - 5, PRIME, (20_000, 2))
    exact = left.astype(object) @ right.astype(object) % PRIME  # Python integers
    found = product_in_field(left.astype(np.float64), right.astype(np.float64))
    assert np.array_equal(found, exact.astype(np.int64))


def test_merged_pairs_are_the_pairs_of_equal_colour() -> None:
    refinement = refine([C6, nx.path_graph(6), TWO_TRIANGLES, C6])
    equal = [(i, j) for i, j in combinations(range(4), 2) if not refinement.separated(i, j)]
    assert refinement.merged_pairs() == equal == [(0, 2), (0, 3), (2, 3)]
