"""QM9's features `smiles` are those of the same molecules read from SMILES."""

from itertools import islice
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.qm9 import QM9_TARGETS, load_qm9, ring_edges, write_cache
from g2n2.data.qm9_build import find_source, read_entries, rebuild
from g2n2.data.readers import Options
from g2n2.data.readers.molecules import read_smiles_list

pytest.importorskip("rdkit", reason="rdkit is not installed")


def test_ring_edges_are_those_that_are_no_bridge() -> None:
    random = np.random.default_rng(0)
    graphs = [nx.gnm_random_graph(n, m, seed=n) for n in (1, 2, 9, 9, 20) for m in (n - 1, n + 1)]
    graphs += [nx.cycle_graph(40), nx.path_graph(40), nx.barbell_graph(5, 3), nx.empty_graph(3)]
    sizes = np.array([len(graph) for graph in graphs])
    listed = [[*graph.edges, *((b, a) for a, b in graph.edges)] for graph in graphs]
    shuffled = [[row[i] for i in random.permutation(len(row))] for row in listed]
    edges = np.array([pair for row in shuffled for pair in row]).T
    flags = ring_edges(sizes, np.array([len(row) for row in shuffled]), edges)
    expected = []
    for graph, row in zip(graphs, shuffled, strict=True):
        bridges = {frozenset(bridge) for bridge in nx.bridges(graph)} if graph.edges else set()
        expected += [frozenset(pair) not in bridges for pair in row]
    assert flags.tolist() == expected
    assert any(expected)
    assert not all(expected)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, qm9pack: Path) -> tuple[GraphSet, list[str]]:
    """Every 200th molecule of the last 40,000, as the training side sees it, and their SMILES."""
    columns = [target.column for target in QM9_TARGETS]
    entries = list(islice(read_entries(find_source()[2:], columns), 0, None, 200))
    arrays = rebuild(entries)
    path = tmp_path_factory.mktemp("qm9") / "sample.cache"
    about = {"origin": "qm9pack", "files": {}, "rdkit": ""}
    write_cache(path, arrays, about)
    return load_qm9("smiles", cache=path).check(), [texts[0] for _, _, texts in entries]


def as_networkx(graphs: GraphSet, index: int) -> nx.Graph:
    made = nx.Graph()
    nodes = graphs.node_features[slice(*graphs.node_offsets[index : index + 2])]
    span = slice(*graphs.edge_offsets[index : index + 2])
    made.add_nodes_from((i, {"row": tuple(row)}) for i, row in enumerate(nodes.tolist()))
    ends, rows = graphs.edges[:, span].T.tolist(), graphs.edge_features[span].tolist()
    made.add_edges_from((i, j, {"row": tuple(row)}) for (i, j), row in zip(ends, rows, strict=True))
    return made


def test_features_of_the_cache_are_those_of_the_smiles(
    sample: tuple[GraphSet, list[str]],
) -> None:
    trained_on, smiles = sample
    assert len(smiles) >= 200
    given = read_smiles_list(smiles, Options(target=(), hydrogens=True, stereo=False))
    assert given.node_names == trained_on.node_names
    assert given.edge_names == trained_on.edge_names
    assert given.source["elements"] == trained_on.source["elements"]
    same = lambda a, b: a["row"] == b["row"]  # noqa: E731
    for index in range(len(smiles)):
        one, other = (as_networkx(graphs, index) for graphs in (trained_on, given))
        assert nx.is_isomorphic(one, other, same, same), smiles[index]


@pytest.mark.parametrize("smiles", ["C[C@H](O)F", "F/C=C/F"])
def test_without_stereo_a_molecule_is_its_flat_self(smiles: str) -> None:
    flat = smiles.translate(str.maketrans("", "", "@/")).replace("[CH]", "C")
    labelled, plain, same = (
        read_smiles_list([text], Options(target=(), stereo=stereo))
        for text, stereo in ((smiles, True), (smiles, False), (flat, True))
    )
    for name in ("node_features", "edge_features", "edges"):
        assert np.array_equal(getattr(plain, name), getattr(same, name))
    both = [labelled.node_features.sum(), labelled.edge_features.sum()]
    assert both != [plain.node_features.sum(), plain.edge_features.sum()]
