"""Columns of a table and descriptors as numbers of the graphs; what is wrong names its line."""

from pathlib import Path

import numpy as np
import pytest

from g2n2.data.readers import Options
from g2n2.data.reading import open_stream, read_chunk, read_graphs
from g2n2.errors import DataError

Chem = pytest.importorskip("rdkit.Chem", reason="molecules are read with RDKit")

TABLE = """id,smiles,MW,charge,y
a,CCO,46.07,0,1.5
b,CC[NH3+],46.09,1,2.5
c,c1ccccc1,78.11,0,0.5
"""


def written(folder: Path, text: str = TABLE, name: str = "molecules.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_joined_columns_are_numbers_of_the_graphs_and_no_targets(tmp_path: Path) -> None:
    for join in ("mw, charge", ("mw", "charge")):
        graphs = read_graphs(written(tmp_path), join=join)
        assert graphs.graph_names == ("column mw", "column charge")
        assert graphs.graph_features.tolist() == [[46.07, 0], [46.09, 1], [78.11, 0]]
        assert [column.name for column in graphs.columns] == ["y"]
        assert graphs.select([2]).graph_features.tolist() == [[78.11, 0]]


def test_a_file_in_chunks_has_the_same_numbers(tmp_path: Path) -> None:
    options = Options(target=(), join=("charge", "MW"), descriptors=True)
    stream = open_stream(written(tmp_path), options)
    chunks = [read_chunk(chunk, options) for chunk in stream.chunks(2)]
    whole = read_graphs(tmp_path / "molecules.csv", target=(), join="charge,MW", descriptors=True)
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert {chunk.graph_names for chunk in chunks} == {whole.graph_names}
    joined = np.concatenate([chunk.graph_features for chunk in chunks])
    np.testing.assert_array_equal(joined, whole.graph_features)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("", "line 3 (b): mw is empty, expected a finite number"),
        ("light", "line 3 (b): mw is 'light', expected a finite number"),
        ("inf", "line 3 (b): mw is 'inf', expected a finite number"),
        ('"46,09"', "mw is '46,09', expected a finite number: write numbers with a decimal point"),
    ],
)
def test_a_cell_without_a_number_is_named_with_its_line(
    tmp_path: Path, cell: str, why: str
) -> None:
    path = written(tmp_path, TABLE.replace("46.09", cell))
    graphs = read_graphs(path, join="mw")
    assert graphs.ids == ("a", "c")
    assert graphs.graph_features.tolist() == [[46.07], [78.11]]
    assert any(why in note for note in graphs.notes)
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_graphs(path, join="mw", on_bad="refuse")
    assert why in str(caught.value)
    options = Options(target=(), join=("mw",))
    (chunk,) = open_stream(path, options).chunks(9)
    assert list(read_chunk(chunk, options).source["unread"]) == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"join": "mass"},
            "no column 'mass', to be joined as a number of each row; its columns are",
        ),
        ({"join": "chargee"}, "did you mean charge"),
        ({"join": "mw,MW"}, "named twice"),
        ({"join": "y", "target": "y"}, "'y' is joined, so it cannot be the target too"),
        ({"join": 3}, "join should be a list, got 3"),
    ],
)
def test_what_cannot_be_joined_is_refused(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_graphs(written(tmp_path), **options)  # type: ignore[arg-type]


def test_other_formats_do_not_ignore_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="says nothing about graph6"):
        read_graphs(written(tmp_path, "C~\n", "k4.g6"), join="mw")
    with pytest.raises(DataError, match="says nothing about a list of graphs"):
        read_graphs(["C~"], descriptors=True)


def test_columns_of_the_graphs_file_are_joined(tmp_path: Path) -> None:
    edges = written(tmp_path, "graph,source,target\ng,0,1\nh,0,1\nh,1,2\n", "edges.csv")
    with pytest.raises(DataError, match="no graphs file beside it"):
        read_graphs(edges, join="t")
    written(tmp_path, "graph,t,y\nh,2.5,1.25\ng,-1,3.5\n", "graphs.csv")
    graphs = read_graphs(tmp_path, join="t")
    assert graphs.ids == ("h", "g")
    assert graphs.graph_features.tolist() == [[2.5], [-1]]
    assert [column.name for column in graphs.columns] == ["y"]
    written(tmp_path, "graph,t,y\nh,2.5,1.25\ng,,3.5\n", "graphs.csv")
    with pytest.raises(DataError, match=r"graphs\.csv, line 3: t is empty"):
        read_graphs(tmp_path, join="t")


def test_properties_of_an_sdf_are_joined(tmp_path: Path) -> None:
    blocks = [
        f"{Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))}> <pka>\n{pka}\n\n$$$$\n"
        for smiles, pka in (("CCO", 15.9), ("CC(=O)O", 4.76))
    ]
    path = written(tmp_path, "".join(blocks), "acids.sdf")
    assert read_graphs(path, join="pKa").graph_features.tolist() == [[15.9], [4.76]]


def test_descriptors_are_those_of_rdkit(tmp_path: Path) -> None:
    from rdkit.Chem import Descriptors

    path = written(tmp_path, "smiles,y\nCCO,1\nCC[NH3+].[Cl-],2\n[Cu+2],3\n")
    graphs = read_graphs(path, descriptors=True)
    names = [name.removeprefix("descriptor ") for name in graphs.graph_names]
    assert len(names) > 150
    for row, smiles in enumerate(("CCO", "CC[NH3+].[Cl-]", "[Cu+2]")):
        molecule = Chem.MolFromSmiles(smiles)
        for name in ("MolWt", "TPSA", "NumHDonors"):
            value = getattr(Descriptors, name)(molecule)
            assert graphs.graph_features[row, names.index(name)] == value
    salt = read_graphs(path, descriptors=True, largest=True).graph_features[1]
    assert salt[names.index("MolWt")] == Descriptors.MolWt(Chem.MolFromSmiles("CC[NH3+]"))
    assert np.isnan(graphs.graph_features).any()  # no partial charges for copper
    assert not np.isinf(graphs.graph_features).any()
