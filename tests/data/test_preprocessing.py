"""Preprocessing is fitted on the training graphs and gives every other graph the same columns."""

import json
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.preprocessing import MOST_DEGREES, UNSEEN, Preprocessing
from g2n2.data.reading import read_graphs
from g2n2.errors import DataError


def graph_set(*graphs: nx.Graph, **fields: Any) -> GraphSet:
    return GraphSet(**{**vars(read_graphs(list(graphs))), **fields})


def test_degrees_of_two_training_graphs_are_classes_and_others_one_more() -> None:
    train = [nx.path_graph(4), nx.star_graph(3), nx.star_graph(5), nx.complete_graph(6)]
    fitted = Preprocessing.fit(graph_set(*train))
    # 1 is in three of them, 2 in the path alone, 3 in one star, 5 in the other star and in K6.
    assert fitted.degrees == (1, 5)
    new = [nx.path_graph(3), nx.star_graph(5), nx.star_graph(7)]
    applied = fitted.apply(graph_set(*new))
    assert applied.node_names == ("degree 1", "degree 5", UNSEEN)
    place = {1: 0, 5: 1}
    expected = [place.get(degree, 2) for graph in new for _, degree in graph.degree()]
    assert applied.node_features.argmax(1).tolist() == expected
    assert (applied.node_features.sum(1) == 1).all()
    assert not any("constant 1" in note for note in applied.notes)
    assert fitted.notes(applied) == [
        "Nodes have no features: they get their degree, as one of 3 classes."
    ]


def test_degrees_of_directed_graphs_count_edges_that_leave() -> None:
    star = nx.DiGraph([(0, 1), (0, 2)])
    fitted = Preprocessing.fit(graph_set(star, star))
    assert fitted.degrees == (0, 2)
    assert fitted.apply(graph_set(star)).node_features.argmax(1).tolist() == [1, 0, 0]


def test_known_sets_get_degrees_only_where_they_have_no_column() -> None:
    own = graph_set(nx.path_graph(4), nx.path_graph(5))
    known = GraphSet(**{**vars(own), "source": {"generator": "counting"}})
    assert Preprocessing.fit(known).degrees == ()
    bare = GraphSet(**{**vars(known), "node_features": own.node_features[:, :0], "node_names": ()})
    assert Preprocessing.fit(bare).degrees == Preprocessing.fit(own).degrees == (1, 2)


def test_many_degrees_leave_the_most_common() -> None:
    train = [nx.star_graph(degree) for degree in range(2, MOST_DEGREES + 12) for _ in range(2)]
    degrees = Preprocessing.fit(graph_set(*train)).degrees
    assert len(degrees) == MOST_DEGREES
    assert degrees[:2] == (1, 2)


@pytest.mark.parametrize("how", ["auto", "none"])
def test_what_stays_as_it_is(how: str) -> None:
    regular = graph_set(nx.cycle_graph(4), nx.cycle_graph(5))
    labelled = nx.path_graph(3)
    nx.set_node_attributes(labelled, 2.0, "x")
    graphs = [regular, graph_set(labelled)]
    graphs += [graph_set(nx.path_graph(4), nx.path_graph(5))] * (how == "none")
    for unchanged in graphs:
        fitted = Preprocessing.fit(unchanged, how)
        assert fitted == Preprocessing()
        assert (fitted.apply(unchanged).node_features == unchanged.node_features).all()
        assert fitted.apply(unchanged).notes == unchanged.notes


def columns_of(values: list[list[float]], *names: str) -> GraphSet:
    graphs = [nx.path_graph(2 + number % 3) for number in range(len(values))]
    return graph_set(*graphs, graph_features=np.array(values), graph_names=names)


def test_columns_of_graphs_are_scaled_and_given_to_every_node() -> None:
    train = columns_of([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]], "column a", "column b")
    fitted = Preprocessing.fit(train, "none")
    new = fitted.apply(columns_of([[5.0, 1.0], [np.nan, 1.0]], "column a", "column b"))
    assert new.node_names == ("one", "column a")
    assert new.node_features[:, 1].tolist() == [3.0, 3.0, 0.0, 0.0, 0.0]  # (5 − 2) / 1
    assert new.graph_names == ()
    assert fitted.reading == {"join": ["a"]}
    assert "not used, as all training graphs have one value: column b." in " ".join(
        note.lower() for note in fitted.notes(train)
    )
    with pytest.raises(DataError, match="lacks column a, which the network was trained with"):
        fitted.apply(columns_of([[5.0]], "column c"))


def test_descriptors_are_clipped_and_columns_are_not() -> None:
    values = [[float(number), float(number), float(number < 20)] for number in range(1000)]
    values += [[1e30, 1e3, 0.0]]
    train = columns_of(values, "descriptor Ipc", "column a", "descriptor fr_nitro")
    rare = columns_of([[row[2] * (row[0] < 2)] for row in values], "descriptor fr_azide")
    assert Preprocessing.fit(rare, "none").graph == {}  # two of a thousand molecules have it
    fitted = Preprocessing.fit(train, "none")
    names = ("descriptor Ipc", "column a", "descriptor fr_nitro")
    far = fitted.apply(columns_of([[1e35, 1e5, 1.0], [-1e35, -1e5, 0.0]], *names))
    assert np.abs(far.node_features[:, 1]).max() < 2  # of an even spread, √3 at its ends
    assert np.abs(far.node_features[:, 2]).min() > 300
    assert far.node_features[:, 3].max() == pytest.approx(3)  # 7 deviations, as 2 % have it
    assert fitted.reading == {"join": ["a"], "descriptors": True}


def test_large_features_of_own_graphs_are_scaled_and_no_edge_stays_no_edge() -> None:
    graph = nx.path_graph(4)
    for node in graph:
        graph.nodes[node]["x"] = [node, 1000.0 + 10 * node]
    for number, edge in enumerate(graph.edges):
        graph.edges[edge]["e"] = [float(number == 0), 30.0 * number]
    train = graph_set(graph)
    fitted = Preprocessing.fit(train)
    applied = fitted.apply(train)
    assert applied.node_features[:, 0].tolist() == [0, 1, 2, 3]
    assert applied.node_features[:, 1].mean() == pytest.approx(0, abs=1e-6)
    assert applied.node_features[:, 1].std() == pytest.approx(1)
    assert applied.edge_features[:, 0].tolist() == train.edge_features[:, 0].tolist()
    assert applied.edge_features[:2, 1].tolist() == [0, 0]
    assert np.square(applied.edge_features[:, 1]).mean() == pytest.approx(1)
    published = GraphSet(**{**vars(train), "source": {"path": "NCI1.zip"}})
    assert Preprocessing.fit(published) == Preprocessing()


def test_it_is_written_and_read_back() -> None:
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {node: 99.0 * node for node in graph}, "x")
    fields = {"graph_features": np.array([[1.0], [2.0]]), "graph_names": ("descriptor x",)}
    fits = [Preprocessing.fit(graph_set(graph, graph, **fields))]
    fits += [Preprocessing.fit(graph_set(nx.path_graph(4), nx.star_graph(3)))]
    assert fits[0].node
    assert fits[1].degrees
    for fitted in fits:
        text = json.dumps(fitted.as_dict())
        assert Preprocessing.from_dict(json.loads(text), "data.json") == fitted


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"degrees": [3, 1]}, "degrees must ascend"),
        ({"degrees": ["1"]}, r"degrees\[0\] should be a whole number"),
        (
            {"graph": {"column a": {"mean": 0, "deviation": 0, "low": None, "high": None}}},
            "no deviation",
        ),
        ({"node": {"0": {"mean": 0}}}, "has no deviation"),
    ],
)
def test_damage_is_named(damage: dict[str, Any], message: str) -> None:
    content = {**Preprocessing().as_dict(), **damage}
    with pytest.raises(DataError, match=f"data.json is damaged.*{message}"):
        Preprocessing.from_dict(content, "data.json")
