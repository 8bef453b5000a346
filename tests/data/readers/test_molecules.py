"""Molecules from SMILES tables, SDF and XYZ: atoms, bonds, ids and targets as chemistry has them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.readers import Options
from g2n2.data.readers.molecules import read_smiles_list
from g2n2.data.reading import read_graphs
from g2n2.errors import DataError
from g2n2.graphs import adjacency

pytest.importorskip("rdkit", reason="molecules are read with RDKit")

WATER = "3\n{comment}\nO 0.0 0.0 0.117\nH 0.0 0.757 -0.471\nH 0.0 -0.757 -0.471\n"
CARBON_DIOXIDE = "3\n{comment}\n6 0 0 0\n8 0 0 1.16\n8 0 0 -1.16\n"
ETHANOL_SDF = """{name}
  made by hand

  3  2  0  0  0  0            999 V2000
    0.0000    0.0000    {z:.4f} C   0  0
    1.5000    0.0000    0.0000 C   0  0
    2.1000    1.2000    0.0000 O   0  0
  1  2  1  0
  2  3  1  0
M  END
> <energy>
{energy}

$$$$
"""


def table(folder: Path, text: str, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def feature(graphs: GraphSet, name: str) -> list[float]:
    return graphs.node_features[:, graphs.node_names.index(name)].tolist()


def bond(graphs: GraphSet, name: str) -> list[float]:
    return graphs.edge_features[:, graphs.edge_names.index(name)].tolist()


def test_a_table_gives_graphs_ids_and_targets(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "id,smiles,y\na,CCO,1.5\nb,C#N,-2\n"))
    assert graphs.name == "mine"
    assert graphs.ids == ("a", "b")
    assert graphs.sizes.tolist() == [3, 2]
    assert graphs.targets.tolist() == [[1.5], [-2.0]]
    assert [column.kind for column in graphs.columns] == ["regression"]
    assert graphs.adjacency(0).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert feature(graphs, "C") == [1, 1, 0, 1, 0]
    assert feature(graphs, "hydrogens") == [3, 2, 1, 1, 0]
    assert sum(bond(graphs, "triple")) == 2  # one bond, listed both ways
    assert not graphs.directed


@pytest.mark.parametrize(
    ("smiles", "name", "total"),
    [
        ("c1ccccc1", "aromatic", 6),
        ("C1CCCCC1C", "in ring", 6),
        ("CC(=O)[O-].[Na+]", "formal charge", 0),
        ("C[NH3+]", "formal charge", 1),
        ("CC(=O)[O-].[Na+]", "other element", 1),
        ("C#CC=C", "sp", 2),
        ("C#CC=C", "sp2", 2),
        ("CC", "sp3", 2),
        ("C[C@@H](C(=O)O)N", "S (stereo)", 1),  # L-alanine as PubChem writes it
        ("C[C@@H](C(=O)O)N", "R", 0),
        ("C[C@H](C(=O)O)N", "R", 1),
        ("CC(N)C(=O)O", "R", 0),
    ],
)
def test_atom_features(tmp_path: Path, smiles: str, name: str, total: float) -> None:
    graphs = read_graphs(table(tmp_path, f"smiles\n{smiles}\n"))
    assert sum(feature(graphs, name)) == total


@pytest.mark.parametrize(
    ("smiles", "e", "z"), [("F/C=C/F", 2, 0), ("F/C=C\\F", 0, 2), ("FC=CF", 0, 0)]
)
def test_double_bond_geometry(tmp_path: Path, smiles: str, e: int, z: int) -> None:
    graphs = read_graphs(table(tmp_path, f"smiles\n{smiles}\n"))
    assert (sum(bond(graphs, "E")), sum(bond(graphs, "Z"))) == (e, z)


def test_features_do_not_depend_on_how_a_molecule_is_written(tmp_path: Path) -> None:
    two = read_graphs(
        table(tmp_path, "smiles\nC[C@H](N)C(=O)O\nN[C@H](C)C(=O)O\nOC(=O)[C@H](C)N\n")
    )
    rows = [sorted(map(tuple, two.select([k]).node_features.tolist())) for k in range(3)]
    assert rows[0] == rows[2]
    assert rows[0] != rows[1]  # the other enantiomer


def test_hydrogens_become_atoms_when_asked(tmp_path: Path) -> None:
    path = table(tmp_path, "smiles\nCCO\n[H]C([H])([H])[H]\n")
    assert read_graphs(path).sizes.tolist() == [3, 1]
    assert read_graphs(path, hydrogens=True).sizes.tolist() == [9, 5]


def test_the_smiles_column_is_found_by_what_it_holds(tmp_path: Path) -> None:
    text = "sex,what,note,y\nF,CCO,likes it,1\nF,c1ccccc1,In stock,2\nF,CC(=O)O,C,3\n"
    assert read_graphs(table(tmp_path, text)).sizes.tolist() == [3, 6, 4]


def test_a_table_without_a_header_loses_no_molecule(tmp_path: Path) -> None:
    path = table(tmp_path, "CCO,ethanol\nc1ccccc1,benzene\n")
    with pytest.raises(DataError, match="no header: its first line has the SMILES 'CCO'"):
        read_graphs(path)
    assert read_graphs(path, smiles="CCO").sizes.tolist() == [6]


def test_a_bad_row_is_named_and_skipped_or_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "key,smiles,y\nk1,CCO,1\nk2,C1CC,2\nk3,C(C)(C)(C)(C)C,3\nk4,O,4\n")
    graphs = read_graphs(path, id="key")
    assert graphs.ids == ("k1", "k4")
    assert graphs.targets.tolist() == [[1], [4]]
    note = next(note for note in graphs.notes if "skipped" in note)
    for part in ("2 of 4", "line 3 (k2): 'C1CC'", "line 4 (k3)", "valence for atom # 0 C, 5"):
        assert part in note
    with pytest.raises(DataError, match=r"2 of the 4 .* \(k2\): 'C1CC'.*on_bad='skip'"):
        read_graphs(path, id="key", on_bad="refuse")


def test_rows_keep_their_number_when_one_before_is_skipped(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "smiles,y\nCCO,1\nxx,2\nO,3\n"))
    assert graphs.ids == ("0", "2")
    slip = table(tmp_path, "smiles,y\nCCO,1\nxx,2\nO,much\nC,4\nN,5\n", "slip.csv")
    with pytest.raises(DataError, match="line 4: 'much' is not a number"):
        read_graphs(slip, target=["y"])


def test_missing_targets_are_nan(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "smiles,y,z\nCC,1.5,\nO,NaN,2\nN,n/a,3.5\n"))
    assert np.isnan(graphs.targets).tolist() == [[False, True], [True, False], [True, False]]


@pytest.mark.parametrize(
    ("cells", "task", "kind", "classes", "values"),
    [
        ("0.5 1.5 2", None, "regression", (), [0.5, 1.5, 2]),
        ("1 0 1", None, "binary", ("0", "1"), [1, 0, 1]),
        ("1 -1 1", None, "binary", ("-1", "1"), [1, 0, 1]),
        ("active inactive active", None, "binary", ("inactive", "active"), [1, 0, 1]),
        ("low mid high low mid high", None, "multiclass", ("high", "low", "mid"), [1, 2, 0] * 2),
        ("10 2 10", "multiclass", "multiclass", ("2", "10"), [1, 0, 1]),
        ("10 2 10", "binary", "binary", ("2", "10"), [1, 0, 1]),
        ("1 0 1", "regression", "regression", (), [1, 0, 1]),
        ("0 0 0", "multilabel", "binary", ("0", "1"), [0, 0, 0]),
        ("yes yes", None, "multiclass", ("yes",), [0, 0]),
        ("+ - -", None, "binary", ("-", "+"), [1, 0, 0]),
        ("0 1 unknown 0 1", "multiclass", "multiclass", ("0", "1", "unknown"), [0, 1, 2, 0, 1]),
        ("c b a", "multiclass", "multiclass", ("a", "b", "c"), [2, 1, 0]),
        ("1234567 1234568", "multiclass", "multiclass", ("1234567", "1234568"), [0, 1]),
        ("3 1 2", None, "regression", (), [3, 1, 2]),
    ],
)
def test_the_task_is_inferred_or_said(
    tmp_path: Path,
    cells: str,
    task: str | None,
    kind: str,
    classes: tuple[str, ...],
    values: list[float],
) -> None:
    rows = "".join(f"CC,{cell}\n" for cell in cells.split())
    graphs = read_graphs(table(tmp_path, f"smiles,y\n{rows}"), target="y", task=task)  # type: ignore[arg-type]
    assert (graphs.columns[0].kind, graphs.columns[0].classes) == (kind, classes)
    only = [note for note in graphs.notes if "nothing to learn" in note]
    assert bool(only) == (len(set(cells.split())) == 1)
    assert all(f"the value {cells.split()[0]} only" in note for note in only)
    assert graphs.targets[:, 0].tolist() == values


def test_a_label_of_one_class_has_the_classes_of_those_beside_it(tmp_path: Path) -> None:
    text = "smiles,a,b,c\nCC,no,yes,yes\nO,yes,,yes\nN,no,no,\n"
    graphs = read_graphs(table(tmp_path, text), target=("a", "b", "c"))
    assert [column.kind for column in graphs.columns] == ["binary"] * 3
    assert {column.classes for column in graphs.columns} == {("no", "yes")}
    assert graphs.targets[:2, 2].tolist() == [1, 1]
    assert any("nothing to learn" in note and " c" in note for note in graphs.notes), graphs.notes
    assert np.isnan(graphs.targets[2, 2])


def test_whole_numbers_and_classes_that_differ_in_case_are_said(tmp_path: Path) -> None:
    numbers = table(tmp_path, "smiles,y\n" + "CC,1\nCCC,2\n" * 5)
    assert any("2 whole numbers" in note for note in read_graphs(numbers).notes)
    assert not any("whole" in note for note in read_graphs(numbers, task="regression").notes)
    texts = table(tmp_path, "smiles,y\n" + "CC,No\nCCC,yes\nCCO,no\n" * 3)
    notes = read_graphs(texts, target="y").notes
    assert any("'No' and 'no', which count as two" in note for note in notes)


@pytest.mark.parametrize(
    "header", ["index,name", "Unnamed: 0,compound_id", "Unnamed: 0.1,Unnamed: 0", ",id", "id,name"]
)
def test_a_column_with_a_name_of_ids_is_no_target_unless_named(tmp_path: Path, header: str) -> None:
    rows = "".join(f"{k},a{k},{'C' * (k + 1)},0.{k}\n" for k in range(4))
    path = table(tmp_path, f"{header},smiles,y\n{rows}")
    assert [column.name for column in read_graphs(path).columns] == ["y"]
    named = header.partition(",")[0] or "index"
    assert [c.name for c in read_graphs(path, target=(named,)).columns] == [named]


def test_several_labels_with_gaps(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "smiles,a,b,c\nCC,1,,0\nO,0,1,0\nN,,0,\n"))
    assert [column.kind for column in graphs.columns] == ["binary"] * 3
    assert np.isnan(graphs.targets).sum() == 3


def test_a_split_column_is_read(tmp_path: Path) -> None:
    text = "smiles,y,split\nC,1,train\nxx,9,train\nO,2,Valid\nN,3,test\nCC,4,train\n"
    graphs = read_graphs(table(tmp_path, text))
    assert {part: rows.tolist() for part, rows in graphs.splits.items()} == {
        "train": [0, 3],
        "validation": [1],
        "test": [2],
    }
    assert [column.name for column in graphs.columns] == ["y"]


def test_a_split_column_with_gaps_is_read_and_one_with_a_slip_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("smiles,y,split\nCC,1,train\nCCO,2,\nCCC,3,test\n")
    splits = {part: rows.tolist() for part, rows in read_graphs(path).splits.items()}
    assert splits == {"train": [0], "test": [2]}
    path.write_text("smiles,y,split\nCC,1,train\nCCO,2,tset\n")
    graphs = read_graphs(path)
    assert graphs.splits == {}
    assert any("gives no split, as 'tset'" in note for note in graphs.notes)


def test_an_sdf_cut_within_a_value_does_not_give_half_of_it(tmp_path: Path) -> None:
    block = ETHANOL_SDF.format(name="one", z=0.4, energy=1).partition(">")[0]
    path = tmp_path / "a.sdf"
    path.write_text(f"{block}> <y>\n1.5\n\n$$$$\n{block}> <y>\n2")  # of 2.5
    graphs = read_graphs(path)
    assert graphs.targets.tolist() == [[1.5]]
    assert any("molecule 2 (one): its last data item has no end" in note for note in graphs.notes)
    for start in ("> <y>\n", "> <y>"):  # of a value
        path.write_text(f"{block}> <y>\n1.5\n\n$$$$\n{block}{start}")
        assert read_graphs(path).targets.tolist() == [[1.5]]
    for end in ("2\n\n", "2\n", "2\r\n"):  # whole lines; $$$$ and the blank line may be missing
        path.write_bytes(f"{block}> <y>\n1.5\n\n$$$$\n{block}> <y>\n{end}".encode())
        assert read_graphs(path).targets.tolist() == [[1.5], [2]]


def test_an_sdf_cut_before_its_charges_gives_no_neutral_molecule(tmp_path: Path) -> None:
    from rdkit import Chem

    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC(=O)[O-]"))
    path = tmp_path / "a.sdf"
    for end in ("M  CHG", "M  END"):
        path.write_text(f"{block}$$$$\n{block.partition(end)[0]}")
        graphs = read_graphs(path)
        assert graphs.source["smiles"] == ("CC(=O)[O-]",)
        assert any("molecule 2: it has no line M  END" in note for note in graphs.notes)
    for end in ("", "\n", "\n\n"):  # whole, but without $$$$
        path.write_text(f"{block}$$$$\n{block.rstrip()}{end}")
        assert read_graphs(path).source["smiles"] == ("CC(=O)[O-]",) * 2


def test_semicolons_tabs_gzip_and_the_mark_of_excel(tmp_path: Path) -> None:
    expected = [3, 1]
    for name, text in (
        ("a.csv", "smiles;y\r\nCCO;1\r\nO;2\r\n"),
        ("b.tsv", "smiles\ty\nCCO\t1\n\nO\t2\n"),
        ("c.csv", "\ufeffsmiles,y\nCCO,1\nO,2\n"),
        ("d.csv", ',smiles,y\n0,"CCO",1\n1,O,2\n'),
        ("e.smi", "CCO ethanol\nO water\n"),
    ):
        assert read_graphs(table(tmp_path, text, name)).sizes.tolist() == expected
    packed = tmp_path / "f.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles,y\nCCO,1\nO,2\n"))
    assert read_graphs(packed).sizes.tolist() == expected
    assert read_graphs(tmp_path / "e.smi").ids == ("ethanol", "water")


def test_an_sdf_with_positions_and_data(tmp_path: Path) -> None:
    text = ETHANOL_SDF.format(name="one", z=0.4, energy=-154.5) + ETHANOL_SDF.format(
        name="two", z=0.3, energy=-1
    )
    graphs = read_graphs(table(tmp_path, text, "mine.sdf"))
    assert graphs.ids == ("one", "two")
    assert graphs.targets.tolist() == [[-154.5], [-1.0]]
    assert graphs.positions is not None
    assert graphs.positions[:2].tolist() == [[0, 0, pytest.approx(0.4)], [1.5, 0, 0]]
    assert graphs.adjacency(1).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_a_flat_sdf_has_no_positions_and_a_bad_record_is_skipped(tmp_path: Path) -> None:
    flat = ETHANOL_SDF.format(name="flat", z=0, energy=1)
    broken = flat.replace("flat", "broken").replace("  1  2  1  0\n", "  1  9  1  0\n")
    graphs = read_graphs(table(tmp_path, flat + broken, "mine.sdf"))
    assert graphs.ids == ("flat",)
    assert graphs.positions is None
    assert any("molecule 2 (broken)" in note for note in graphs.notes)


def test_xyz_bonds_come_from_distances(tmp_path: Path) -> None:
    text = WATER.format(comment="energy=-76.4 id=water") + CARBON_DIOXIDE.format(
        comment="energy=-188 id=co2"
    )
    graphs = read_graphs(table(tmp_path, text, "mine.xyz"))
    assert graphs.ids == ("water", "co2")
    assert graphs.targets.tolist() == [[-76.4], [-188.0]]
    assert graphs.adjacency(0).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert sum(bond(graphs, "double")) == 4
    assert graphs.positions is not None
    assert graphs.positions.shape == (6, 3)


def test_a_folder_of_xyz_files_and_an_unknown_element(tmp_path: Path) -> None:
    table(tmp_path, WATER.format(comment=""), "b.xyz")
    table(tmp_path, CARBON_DIOXIDE.format(comment="as drawn"), "a.xyz")
    table(tmp_path, "1\n\nXx 0 0 0\n", "c.xyz")
    graphs = read_graphs(tmp_path)
    assert graphs.ids == ("a", "b")
    assert any("'Xx' is no element" in note for note in graphs.notes)


def test_xyz_without_a_valid_structure_has_single_bonds(tmp_path: Path) -> None:
    # A lone CH3 has no closed-shell bond orders at charge 0.
    methyl = "4\nm\nC 0 0 0\nH 1.08 0 0\nH -0.54 0.935 0\nH -0.54 -0.935 0\n"
    graphs = read_graphs(table(tmp_path, methyl, "mine.xyz"))
    assert graphs.adjacency(0)[0].tolist() == [0, 1, 1, 1]
    assert sum(bond(graphs, "single")) == 6


def test_a_charge_in_the_comment_is_used(tmp_path: Path) -> None:
    hydroxide = "2\ncharge=-1\nO 0 0 0\nH 0 0 0.96\n"
    graphs = read_graphs(table(tmp_path, hydroxide, "mine.xyz"))
    assert feature(graphs, "formal charge") == [-1, 0]
    assert graphs.columns == ()


def test_the_cell_of_extended_xyz_is_no_id(tmp_path: Path) -> None:
    comments = [f'Lattice="{k} 0 0" Properties=species:S:1:pos:R:3 energy={k}.5' for k in (1, 2)]
    text = "".join(WATER.format(comment=comment) for comment in comments)
    graphs = read_graphs(table(tmp_path, text, "mine.xyz"))
    assert graphs.ids == ("0", "1")
    assert graphs.targets.tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize(
    ("text", "why", "names"),
    [
        ("id,smiles,y\na,CCO,1\na,CCC,2\n", "'a' occurs more than once", ("a", "a")),
        ("id,smiles,y\na,CCO,1\n,CCC,2\n", "a cell is empty", ("a", "")),
    ],
)
def test_ids_that_name_no_row_are_said_and_kept_for_predictions(
    tmp_path: Path, text: str, why: str, names: tuple[str, ...]
) -> None:
    graphs = read_graphs(table(tmp_path, text))
    assert graphs.ids == ("0", "1")
    assert f"Column id gives no ids, as {why}: rows are numbered from 0." in graphs.notes
    assert graphs.source["record_ids"] == names


@pytest.mark.parametrize(
    ("table", "options", "ids", "said"),
    [
        ("smiles,product\nCCO,C=O\nCCC,CCF\n", {}, ("CCO", "CCC"), "product looks like"),
        ("product,smiles\nC1CC1,CCN\nCCC,CCF\n", {}, ("CCN", "CCF"), "product looks like"),
        ("smiles,product,id\nCCO,C(N)C,a\nCCC,CCF,b\n", {}, ("a", "b"), "product looks like"),
        ("a,b\nCCON,CCCCCC\nCCN,CCC\n", {}, ("CCON", "CCN"), "b looks like"),
        ("smiles,product\nCCO,CCN\nCCC,CCF\n", {"smiles": "product"}, ("CCN", "CCF"), ""),
        ("smiles,product\nCCO,C#N\nCCO,CCF\n", {}, ("0", "1"), "'CCO' occurs more than once"),
        ("smiles,a,b\nCCO,c1cc[nH]c1,[Na+]\nCCC,CCF,CC\n", {}, ("CCO", "CCC"), "a, b look like"),
        ("smiles,code\nCCO,X-1\nCCC,X-2\n", {}, ("X-1", "X-2"), ""),
        ("smiles,code\nCCO,PBS\nCCC,CBS\nCC,CNN\n", {}, ("PBS", "CBS", "CNN"), ""),
        ("smiles,code\nCCO,PBS\nCCC,BrCCl\nCC,not-1\n", {}, ("PBS", "BrCCl", "not-1"), ""),
    ],
)
def test_smiles_of_other_molecules_are_no_ids(
    tmp_path: Path, table: str, options: dict[str, Any], ids: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "two.csv"
    path.write_text(table)
    graphs = read_graphs(path, **options)
    assert graphs.ids == ids
    notes = " ".join(graphs.notes)
    assert said in notes
    assert ("SMILES too" in notes) == bool(said)


def test_text_is_no_id_beside_a_column_called_one(tmp_path: Path) -> None:
    text = "name,smiles,comment,y\nethanol,CCO,good,1\nethanol,OCC,bad,2\nm2,CCC,ugly,3\n"
    graphs = read_graphs(table(tmp_path, text), target="y")
    assert graphs.ids == ("0", "1", "2")
    assert graphs.source["record_ids"] == ("ethanol", "ethanol", "m2")
    assert any("Column name gives no ids, as 'ethanol' occurs" in note for note in graphs.notes)
    empty = read_graphs(table(tmp_path, text.replace("ethanol", "").replace("m2", "")), target="y")
    assert empty.ids == empty.source["record_ids"] == ("good", "bad", "ugly")


def test_another_usual_column_gives_the_ids_where_the_first_repeats(tmp_path: Path) -> None:
    text = "id,name,smiles,y\n7,a,CCO,1\n7,b,CCC,2\n"
    graphs = read_graphs(table(tmp_path, text), target="y")
    assert graphs.ids == graphs.source["record_ids"] == ("a", "b")


def test_a_target_names_no_row(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "id,smiles\n1.5,CCO\n2.5,CCC\n"), target="id")
    assert graphs.ids == graphs.source["record_ids"] == ("0", "1")


def test_bars_separate_where_nothing_else_does(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "id|smiles|y\na|CCO|1\nb|O|2\n"))
    assert (graphs.ids, graphs.targets.tolist()) == (("a", "b"), [[1.0], [2.0]])
    graphs = read_graphs(table(tmp_path, "smiles,|y|\nCCO,1\nO,2\n"))
    assert [column.name for column in graphs.columns] == ["|y|"]
    assert len(read_graphs(table(tmp_path, "smiles\nCCO\nO |c:1|\n"), target=())) == 2


def test_numbers_with_a_slip_among_them_are_no_ids(tmp_path: Path) -> None:
    graphs = read_graphs(table(tmp_path, "smiles,y\nCCO,1.5\nC#N,>5\nCCC,2.5\n"))
    assert graphs.ids == ("0", "1", "2")
    assert any("line 3: '>5'" in note for note in graphs.notes)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1\n\nC 0 0 0\n", "a single C atom of charge 0 with free valences"),
        ("1\n\n" + "9" * 5000 + " 0 0 0\n", "999...' is no element"),
        ("2\n\nC 0 0 0\nC 0 zero 0\n", "got 'C 0 zero 0', expected an element and x y z"),
        ("2\n\nC 0 0 0\nC 1e300 0 0\n", "a coordinate is NaN, infinite or too large"),
        ("2\ncharge=much\nO 0 0 0\nH 1 0 0\n", "charge='much' is no whole number"),
        ("1\ncharge=1e300\nNa 0 0 0\n", "RDKit cannot use it"),
    ],
)
def test_one_bad_xyz_molecule_among_thirty_is_named_and_skipped(
    tmp_path: Path, bad: str, reason: str
) -> None:
    text = WATER.format(comment="") * 15 + bad + WATER.format(comment="") * 15
    path = table(tmp_path, text, "mine.xyz")
    graphs = read_graphs(path)
    assert len(graphs) == 30
    assert graphs.notes[0].startswith("1 of 31 records is skipped: molecule 16")
    assert reason in graphs.notes[0]
    with pytest.raises(DataError, match="molecule 16"):
        read_graphs(path, on_bad="refuse")


@pytest.mark.parametrize("atom", ["1\n\nHe 0 0 0\n", "1\ncharge=1\nNa 0 0 0\n"])
def test_an_atom_that_stands_by_itself_is_a_graph_of_one_node(tmp_path: Path, atom: str) -> None:
    graphs = read_graphs(table(tmp_path, atom, "mine.xyz"))
    assert graphs.sizes.tolist() == [1]
    assert graphs.edges.shape == (2, 0)


def test_a_file_that_is_no_xyz_is_one_bad_record_of_its_folder(tmp_path: Path) -> None:
    table(tmp_path, WATER.format(comment=""), "a.xyz")
    table(tmp_path, "7\ncut short\nC 0 0 0\n", "b.xyz")
    graphs = read_graphs(tmp_path)
    assert graphs.ids == ("a",)
    assert "b.xyz" in graphs.notes[0]
    assert "7 atoms are announced and 1 follow" in graphs.notes[0]


@pytest.mark.parametrize("broken", ["MolFromMolBlock", "MolToSmiles", "RemoveHs"])
def test_whatever_rdkit_raises_for_a_record_names_that_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    from rdkit import Chem

    original, calls = getattr(Chem, broken), iter(range(99))

    def fails_once(*args: object, **options: object) -> object:
        if next(calls) == 1:
            raise RuntimeError("Pre-condition Violation\n\tgetNumImplicitHs()\n")
        return original(*args, **options)

    molecule = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    path = table(tmp_path, (Chem.MolToMolBlock(molecule) + "$$$$\n") * 3, "mine.sdf")
    monkeypatch.setattr(Chem, broken, fails_once)
    graphs = read_graphs(path)
    assert len(graphs) == 2
    assert "molecule 2: RDKit cannot use it (Pre-condition Violation getNum" in graphs.notes[0]


SALTS = "id,smiles,y\na,CCO.Cl,1.5\nb,[Na+].CC(=O)[O-],2.5\nc,CCC,3.5\nd,CC.CC,4.5\n"


def test_the_largest_fragment_of_a_salt_is_kept_when_asked(tmp_path: Path) -> None:
    path = table(tmp_path, SALTS)
    whole = read_graphs(path)
    assert whole.sizes.tolist() == [4, 5, 3, 4]
    note = "3 molecules have several fragments, as salts do; --option largest=true keeps"
    assert any(text.startswith(note) for text in whole.notes)
    graphs = read_graphs(path, largest=True)
    assert graphs.sizes.tolist() == [3, 4, 3, 2]
    assert graphs.source["smiles"] == ("CCO", "CC(=O)[O-]", "CCC", "CC")
    assert "3 molecules have several fragments; the largest is kept." in graphs.notes
    assert feature(graphs, "Cl") == [0.0] * 12
    assert not any("fragments" in text for text in read_graphs(table(tmp_path, GOOD)).notes)


def test_the_largest_fragment_keeps_its_features_and_places(tmp_path: Path) -> None:
    alone = read_graphs(table(tmp_path, "smiles,y\nC[C@H](O)/C=C/N,1.5\n"))
    salt = read_graphs(table(tmp_path, "smiles,y\nCl.C[C@H](O)/C=C/N,1.5\n"), largest=True)
    assert np.array_equal(alone.node_features, salt.node_features)
    assert np.array_equal(alone.edge_features, salt.edge_features)
    apart = WATER.format(comment="").replace("3\n", "4\n", 1) + "Ne 0 0 9\n"
    kept = read_graphs(table(tmp_path, apart, "mine.xyz"), largest=True)
    assert kept.sizes.tolist() == [3]
    assert kept.positions is not None
    with pytest.raises(DataError, match="largest=True says nothing about an edge list"):
        read_graphs(table(tmp_path, "graph,source,target\n1,0,1\n", "edges.csv"), largest=True)


GOOD = "id,smiles,y\na,CC,1.5\nb,CCO,2.5\n"


def test_molecules_rdkit_would_crash_on_are_named_and_skipped():
    graphs = read_graphs(["smiles:CCO", f"smiles:{'C' * 20_000}"])
    assert len(graphs) == 1
    assert any("20,000 characters" in note for note in graphs.notes)
    with pytest.raises(DataError, match="20,000 characters"):
        adjacency(f"smiles:{'C' * 20_000}")


def test_a_list_without_molecules_is_refused() -> None:
    with pytest.raises(DataError, match="the list is empty; expected at least one"):
        read_smiles_list([], Options())


def test_a_few_targets_that_are_no_numbers_are_missing_or_refused(tmp_path: Path) -> None:
    """One in ten at most: more of them are another way to write numbers."""
    path = tmp_path / "slips.csv"
    for slip in ('"1,5"', "inf", "-1e999", "high"):
        for slips, rows in ((1, 10), (2, 20), (2, 19)):
            cells = [slip] * slips + ["0.5"] * (rows - slips)
            lines = [f"{'C' * (n + 1)},{cell}" for n, cell in enumerate(cells)]
            path.write_text("\n".join(["smiles,y", *lines]))
            if slips * 10 > rows:
                with pytest.raises(DataError, match="line 2"):
                    read_graphs(path, target="y")
                if slip != "inf" and "e" not in slip:
                    assert not read_graphs(path).columns
                continue
            unnamed = read_graphs(path)
            graphs = read_graphs(path, target="y")
            assert np.array_equal(unnamed.targets, graphs.targets, equal_nan=True)
            assert {*graphs.notes} <= {*unnamed.notes}
            assert not any("left out" in note for note in unnamed.notes)
            assert np.isnan(graphs.targets[:, 0]).tolist() == [n < slips for n in range(rows)]
            (note,) = [note for note in graphs.notes if "as missing" in note]
            assert f"{slips} of {rows} values" in note
            assert "line 2" in note
            with pytest.raises(DataError, match="line 2"):
                read_graphs(path, target="y", on_bad="refuse")


def test_elements_without_a_feature_are_named(tmp_path: Path) -> None:
    path = tmp_path / "metals.csv"
    path.write_text("smiles,y\nCCO,1\nCl[Pt]Cl,2\n[U],3\n")
    assert any("of their own: Pt, U;" in note for note in read_graphs(path).notes)
    path.write_text("smiles,y\nCCO,1\nCCN,2\n")
    assert not any("of their own" in note for note in read_graphs(path).notes)


def test_the_molecules_before_the_end_of_a_cut_xyz_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.xyz"
    water = "3\nname=w y={}\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
    whole = water.format(1) + water.format(2)
    path.write_text(whole + water.format(3)[:-25])
    graphs = read_graphs(path)
    assert graphs.targets[:, 0].tolist() == [1, 2]
    assert any("1 of 3 records is skipped" in note and "cut short" in note for note in graphs.notes)
    with pytest.raises(DataError, match="cut short"):
        read_graphs(path, on_bad="refuse")


def test_a_last_coordinate_that_is_cut_off_is_not_read(tmp_path: Path) -> None:
    path, whole = tmp_path / "cut.xyz", WATER.format(comment="y=1") + WATER.format(comment="y=2")
    for lost in (2, 3, 4):  # of `-0.471` and its newline
        path.write_text(whole[:-lost])
        graphs = read_graphs(path)
        assert graphs.targets.tolist() == [[1]]
        assert any("line 10: the file ends within 'H 0.0 -0.757 -0." in n for n in graphs.notes)
    for end in ("", "\n", "\r\n"):
        path.write_bytes(whole[:-1].encode() + end.encode())
        assert read_graphs(path).targets.tolist() == [[1], [2]]
    path.write_text("1\n\nHe 0 0 0")
    assert read_graphs(path).sizes.tolist() == [1]
    path.write_text("1\n\nHe 0.25 0 0.5 7")  # the cut may be in a column that is not read
    assert read_graphs(path).sizes.tolist() == [1]
