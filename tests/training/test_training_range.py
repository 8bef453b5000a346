"""Graphs unlike the training graphs are noted; training graphs are not."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from g2n2.training.trained_on import MOST_SENTENCES, TrainingRange, joined
from g2n2.validation import read_as
from small_sets import small_set

TRAIN = small_set(graphs=40)
RANGE = TrainingRange.of(TRAIN, distances=False)


def placed(seed: int, scale: float = 1.0):
    """Graphs with positions."""
    graphs = small_set(graphs=20, seed=seed)
    points = np.random.default_rng(seed).normal(size=(graphs.sizes.sum(), 3)) * scale
    return replace(graphs, positions=points.astype(np.float32))


@pytest.mark.parametrize(
    "graphs", [TRAIN, small_set("edge", graphs=30), placed(0), placed(1).select([3, 1])]
)
def test_the_graphs_themselves_have_no_note_in_any_company(graphs):
    found = TrainingRange.of(graphs, distances=graphs.positions is not None)
    assert not any(found.notes(graphs))
    assert not any(found.notes(graphs.select([1])))
    as_json = json.loads(json.dumps(asdict(found)))
    assert read_as(TrainingRange, as_json, "training", "a file") == found
    found.checked("a file")


def test_what_is_out_of_range_is_named_for_its_graph_only():
    graphs = small_set(graphs=5, seed=3)
    inside = np.clip(graphs.node_features, *np.array(RANGE.node_features).T)
    graphs = replace(graphs, node_features=inside.astype(np.float32))
    assert not any(RANGE.notes(graphs))
    odd = graphs.node_features.copy()
    odd[graphs.node_offsets[2] : graphs.node_offsets[2] + 2, 1] = -50.0
    weights = np.ones(graphs.edges.shape[1], np.float32)
    weights[graphs.edge_offsets[4]] = 0.5
    notes = RANGE.notes(replace(graphs, node_features=odd, weights=weights))
    low, high = RANGE.node_features[1]
    assert notes[2] == [f"b -50 of a node, in training {low:.4g} to {high:.4g}"]
    assert notes[4] == ["an edge of weight 0.5, in training always 1"]
    assert notes[0] == notes[1] == notes[3] == []


def test_sizes_and_neighbours_on_either_side():
    star = replace(
        small_set(graphs=1),
        sizes=np.array([2000, 1]),
        edge_counts=np.array([2 * 1999, 0]),
        edges=np.array([[0] * 1999 + [*range(1, 2000)], [*range(1, 2000)] + [0] * 1999]),
        node_features=np.zeros((2001, 2), np.float32),
        edge_features=np.zeros((2 * 1999, 0), np.float32),
        targets=np.zeros((2, 1)),
        ids=(),
    ).check()
    large, small = RANGE.notes(star)
    low, high = RANGE.neighbours[0]
    assert large == [
        "2,000 nodes, more than any training graph (8)",
        f"a node with 1999 neighbours, in training {low:g} to {high:g}",
    ]
    assert small[0] == "1 node, fewer than any training graph (4)"
    into_the_middle = replace(
        star, edge_counts=np.array([1999, 0]), edges=star.edges[:, 1999:],
        edge_features=star.edge_features[:1999],
    )  # fmt: skip
    assert RANGE.notes(into_the_middle)[0] == large, "by the larger of in- and out-degree"


def test_distances_nearer_and_farther_than_any():
    near, far = placed(2, 1e-3), placed(2, 1e3)
    found = TrainingRange.of(placed(0), distances=True)
    pairs = [
        np.linalg.norm(p[:, None] - p[None], axis=-1)[np.triu_indices(len(p), 1)]
        for p in np.split(placed(0).positions, placed(0).node_offsets[1:-1])
    ]
    every = np.concatenate(pairs)
    np.testing.assert_allclose(found.distances[0], (every.min(), every.max()), rtol=1e-5)
    for graphs, nearer in ((near, True), (far, False)):
        for note in found.notes(graphs):
            assert any("Å apart, in training" in phrase for phrase in note)
            shown = float(next(p for p in note if "apart" in p).split()[1])
            assert (shown < every.min()) == nearer
    for scale, noted in ((1 + 1e-6, False), (1 + 1e-3, True)):  # machines round distances their way
        assert any(found.notes(placed(0, scale))) == noted


def test_long_lists_are_cut():
    assert joined([]) == ""
    phrases = [f"p{k}" for k in range(MOST_SENTENCES + 3)]
    assert joined(phrases).endswith("; and 3 more")


def test_molecules_unlike_those_of_training_are_noted(tmp_path: Path):
    pytest.importorskip("rdkit", reason="molecules need RDKit")
    from g2n2 import train

    chains = ["C" * (2 + i % 7) + "ON"[i % 2] * (i % 3 > 0) + "C" for i in range(60)]
    lines = [f"{smiles},{len(smiles) / 3}" for smiles in chains]
    path = tmp_path / "mol.csv"
    path.write_text("\n".join(["smiles,logp", *lines]))
    run = train(
        str(path), target="logp", out=str(tmp_path / "run"), grammar="GNNML1", width=4, layers=1,
        epochs=2, device="cpu", threads=1, pictures=False,
    )  # fmt: skip
    assert set(run.calibration.training.elements) == {"C", "N", "O"}
    assert not any(run.evaluate("train").notes)
    uranium, chain, charged, fluorine, usual = run.predict(
        ["[U]", "C" * 1200, "CC[NH3+]", "CCCF", "CCOC"]
    ).notes
    assert uranium.startswith(
        "not predicted: U was never seen in training; 1 atom, fewer than any training"
    )
    assert chain.startswith("1,200 atoms, more than any training graph (10)")
    assert chain.split("; ")[1].startswith("logp ")
    assert "formal charge 1 of an atom, in training always 0" in charged
    assert fluorine == "not predicted: F was never seen in training"
    assert usual == ""
    bare = replace(run.predict(["CCCF"]).graphs, source={})
    assert run.predict(bare).notes == [fluorine], "by its feature alone"
    salt, radical, isotope = run.predict(["CCO.CCN", "C[CH]CO", "[13CH3]CCO"]).notes
    assert salt.startswith("2 fragments, in training always 1")
    assert radical == "unpaired electrons are not read"
    assert isotope == "isotopes are not told apart"


def test_fragments_are_counted_by_edges_in_either_direction():
    chain = np.array([[4, 3, 2, 1], [3, 2, 1, 0]])  # each edge once, towards the first node
    graphs = replace(
        small_set(graphs=1),
        sizes=np.array([5, 3]),
        edge_counts=np.array([4, 1]),
        edges=np.concatenate([chain, [[2], [0]]], axis=1),
        node_features=np.zeros((8, 2), np.float32),
        edge_features=np.zeros((5, 0), np.float32),
        targets=np.zeros((2, 1)),
        ids=(),
    )
    assert TrainingRange.of(graphs, distances=False).fragments == ((1.0, 2.0),)
    one = TrainingRange.of(graphs.select([0]), distances=False)
    assert "2 parts, in training always 1" in one.notes(graphs)[1]


def test_a_feature_called_as_an_element_is_a_feature():
    graphs = replace(small_set(graphs=4), node_names=("C", "weight"))
    without, having = (
        replace(graphs, node_features=np.full_like(graphs.node_features, value)) for value in (0, 1)
    )
    found = TrainingRange.of(without, distances=False)
    assert found.unseen_elements(having) == [[]] * 4
    assert all(notes[0] == "C 1 of a node, in training always 0" for notes in found.notes(having))


def test_far_more_heavy_atoms_are_far_where_hydrogens_are_nodes() -> None:
    """Of as many nodes: the hydrogens are fewer."""
    graphs = small_set(graphs=2)
    sizes = np.array([10, 10])
    ends = np.stack([np.arange(9), np.arange(1, 10)])
    edges = np.concatenate([ends, ends[::-1]], axis=1)
    features = np.zeros((20, 2), np.float32)
    features[:5, 0] = 1  # hydrogens: 5 of the first graph, 1 of the second
    features[10, 0] = 1
    graphs = replace(
        graphs,
        sizes=sizes,
        edge_counts=np.array([18, 18]),
        edges=np.concatenate([edges, edges], axis=1),
        node_features=features,
        edge_features=np.zeros((36, 0), np.float32),
        node_names=("H", "formal charge"),
    )
    assert TrainingRange.of(graphs.select([0]), distances=False).far(graphs).tolist() == [0, 1]
    assert TrainingRange.of(graphs.select([1]), distances=False).far(graphs).tolist() == [1, 0]
