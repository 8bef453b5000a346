"""QM9's files are found without importing qm9pack; what is absent is said with its remedy."""

import importlib.util
import sys
from pathlib import Path

import pytest

from g2n2.data.qm9 import build_qm9, find_source, load_qm9
from g2n2.errors import DataError

HEADER = "mol_id,A,B,C,mu,alpha,homo,lumo,gap,r2,zpve,u0,u298,h298,g298,cv,u0_atom,u298_atom,h298_atom,g298_atom"
NUMBERS = "157.7,157.7,157.7,{},13.2,-0.38,0.11,0.50,35.3,0.04,-40.4,-40.3,-40.2,-40.1,6.4,-395.9,-398,-401,-372"
WATER = """gdb_{}

comment
  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.1190 O   0  0
    0.0000    0.7630   -0.4770 H   0  0
    0.0000   -0.7630   -0.4770 H   0  0
  1  2  1  0
  1  3  1  0
M  END
> <field>
ignored

$$$$
"""


FOUR_WATERS = "".join(WATER.format(number) for number in (1, 2, 3, 4))


def write_raw(folder: Path, blocks: str = FOUR_WATERS) -> None:
    """Four molecules as PyG's raw folder, the second uncharacterised; μ is the number of each."""
    folder.mkdir(parents=True)
    rows = [f"gdb_{k},{NUMBERS.format(k)}" for k in (1, 2, 3, 4)]
    (folder / "gdb9.sdf.csv").write_text("\n".join([HEADER, *rows, ""]))
    (folder / "gdb9.sdf").write_text(blocks)
    heading = ["3 a heading that begins with a number"] + 8 * ["----"]
    (folder / "uncharacterized.txt").write_text("\n".join([*heading, "    2  O  a  b", "----", ""]))


def test_qm9pack_is_found_and_not_imported() -> None:
    if importlib.util.find_spec("qm9pack") is None:
        pytest.skip("qm9pack is not installed")
    assert [path.name for path in find_source()] == [f"qm9_part{k}.csv" for k in (1, 2, 3)]
    assert "qm9pack" not in sys.modules


def test_without_qm9pack_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError) as caught:
        load_qm9(cache=tmp_path / "none", data=tmp_path)
    assert 'pip install "g2n2[chem]"' in str(caught.value)
    assert "gdb9.sdf" in str(caught.value)


def test_without_rdkit_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_raw(tmp_path / "raw")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r'RDKit.*pip install "g2n2\[chem\]"'):
        find_source(tmp_path)


def test_a_data_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder"):
        load_qm9(data=tmp_path / "nowhere")


@pytest.mark.parametrize("below", ["", "raw", "QM9/raw"])
def test_raw_files_of_pyg_are_read_instead(tmp_path: Path, below: str) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    folder, path = tmp_path / "data", tmp_path / "sdf.cache"
    write_raw(folder / below)
    build_qm9(path, data=folder, rows=10, processes=1, progress=False)
    graphs = load_qm9(track="distance", data=folder, cache=path).check()
    assert graphs.source["origin"] == "gdb9.sdf"
    assert graphs.ids == ("gdb_1", "gdb_3", "gdb_4")
    assert graphs.targets[:, 0].tolist() == [1, 3, 4]
    assert graphs.targets[0, 7:].tolist() == [-40.4, -40.3, -40.2, -40.1, 6.4]
    assert graphs.sizes.tolist() == [3, 3, 3]
    assert graphs.node_features[0].tolist() == [0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 2]


def test_a_cache_from_another_source_is_not_passed_off(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    if importlib.util.find_spec("qm9pack") is None:
        pytest.skip("qm9pack is not installed")
    path = tmp_path / "qm9.cache"
    build_qm9(path, rows=3, processes=1, progress=False)
    write_raw(tmp_path / "raw")
    with pytest.raises(DataError, match=r"built from qm9pack, but .* holds gdb9\.sdf"):
        load_qm9(data=tmp_path, cache=path)


def test_an_incomplete_source_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    write_raw(tmp_path / "raw")
    with pytest.raises(DataError, match="holds 3 molecules, QM9 has 130,831"):
        build_qm9(tmp_path / "cache", data=tmp_path, processes=1, progress=False)
    assert not (tmp_path / "cache").exists()


def test_a_table_that_does_not_fit_the_sdf_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    write_raw(tmp_path / "raw")
    table = tmp_path / "raw" / "gdb9.sdf.csv"
    table.write_text(table.read_text().rsplit("\n", 2)[0])
    with pytest.raises(DataError, match=r"cannot read QM9 from gdb9.sdf.*get the files again"):
        build_qm9(tmp_path / "cache", data=tmp_path, processes=1, progress=False)


@pytest.mark.slow
def test_features_are_those_of_pyg(tmp_path: Path) -> None:
    chem = pytest.importorskip("rdkit.Chem.AllChem", reason="rdkit is not installed")
    datasets = pytest.importorskip("torch_geometric.datasets", reason="PyG is not installed")
    blocks = []
    for number, smiles in enumerate(("c1ccccc1F", "O", "CC#N", "[NH3+]CC(=O)[O-]"), 1):
        molecule = chem.AddHs(chem.MolFromSmiles(smiles))
        chem.Compute2DCoords(molecule)
        molecule.SetProp("_Name", f"gdb_{number}")
        blocks.append(chem.MolToMolBlock(molecule) + "$$$$\n")
    folder, path = tmp_path / "data", tmp_path / "sdf.cache"
    write_raw(folder / "raw", "".join(blocks))
    build_qm9(path, data=folder, rows=10, processes=1, progress=False)
    graphs = load_qm9(track="distance", data=folder, cache=path)
    reference = datasets.QM9(str(folder))
    assert len(reference) == len(graphs)
    for index, data in enumerate(reference):
        nodes = slice(*graphs.node_offsets[index : index + 2])
        edges = slice(*graphs.edge_offsets[index : index + 2])
        assert graphs.node_features[nodes].tolist() == data.x.tolist()
        assert graphs.edge_features[edges].tolist() == data.edge_attr.tolist()
        assert graphs.edges[:, edges].tolist() == data.edge_index.tolist()
        assert graphs.positions is not None
        assert abs(graphs.positions[nodes] - data.pos.numpy()).max() < 6e-6
        assert graphs.ids[index] == data.name
        # PyG turns energies into eV.
        assert graphs.targets[index, 7] * 27.211386246 == pytest.approx(data.y[0, 7].item())
