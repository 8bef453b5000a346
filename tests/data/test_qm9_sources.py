"""QM9's files are found without importing qm9pack; what is absent is said with its remedy."""

import importlib.util
import sys
from pathlib import Path

import pytest

from g2n2.data import qm9_build
from g2n2.data.qm9 import QM9_TARGETS, build_qm9, load_qm9, write_cache
from g2n2.data.qm9_build import find_source, rebuild
from g2n2.errors import DataError

HEADER = "mol_id,A,B,C,mu,alpha,homo,lumo,gap,r2,zpve,u0,u298,h298,g298,cv,u0_atom,u298_atom,h298_atom,g298_atom"
NUMBERS = "157.7,157.7,157.7,0.1,13.2,-0.38,0.11,0.50,35.3,0.04,-40.4,-40.3,-40.2,-40.1,6.4,-395.9,-398,-401,-372"
WATER = '"[[0.,0.,0.119],[0.,0.763,-0.477],[0.,-0.763,-0.477]]"'


def test_qm9pack_is_found_and_not_imported(qm9pack: Path) -> None:
    assert [path.name for path in find_source()] == [f"qm9_part{k}.csv" for k in (1, 2, 3)]
    assert "qm9pack" not in sys.modules


def test_without_qm9pack_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r'qm9pack.*pip install "g2n2\[chem\]"'):
        load_qm9(cache=tmp_path / "none")


def test_without_rdkit_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, qm9pack: Path) -> None:
    spec = importlib.util.find_spec("qm9pack")
    monkeypatch.setattr("importlib.util.find_spec", {"qm9pack": spec}.get)
    with pytest.raises(DataError, match=r'RDKit.*pip install "g2n2\[chem\]"'):
        find_source()


def table(path: Path, cells: str) -> Path:
    header = ",".join(["Index", "SMILES", "Elements", "XYZ_Ang", *(t.column for t in QM9_TARGETS)])
    path.write_text(f"{header}\n{cells}{',1.0' * len(QM9_TARGETS)}\n")
    return path


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        (f"1,O,\"['O','H','H']\",{WATER}", "holds 1 molecules, QM9 has 130,831"),
        (f"one,O,\"['O','H','H']\",{WATER}", r"cannot read QM9 from part\.csv .*'one'"),
    ],
)
def test_incomplete_and_damaged_sources_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: str, complaint: str
) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    monkeypatch.setattr(qm9_build, "find_source", lambda: [table(tmp_path / "part.csv", cells)])
    with pytest.raises(DataError, match=complaint):
        build_qm9(tmp_path / "cache", processes=1, progress=False)
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_features_are_those_of_pyg(tmp_path: Path) -> None:
    chem = pytest.importorskip("rdkit.Chem.AllChem", reason="rdkit is not installed")
    datasets = pytest.importorskip("torch_geometric.datasets", reason="PyG is not installed")
    blocks, entries = [], []
    for number, smiles in enumerate(("c1ccccc1F", "O", "CC#N", "[NH3+]CC(=O)[O-]"), 1):
        molecule = chem.AddHs(chem.MolFromSmiles(smiles))
        chem.EmbedMolecule(molecule, randomSeed=1)
        molecule.SetProp("_Name", f"gdb_{number}")
        blocks.append(chem.MolToMolBlock(molecule) + "$$$$\n")
        elements = str([atom.GetSymbol() for atom in molecule.GetAtoms()])
        xyz = str(molecule.GetConformer().GetPositions().round(4).tolist())
        entries.append((number, (1.0,) * 12, (smiles, elements, xyz)))
    path = tmp_path / "qm9.cache"
    write_cache(path, rebuild(entries), {"origin": "qm9pack"})
    graphs = load_qm9(track="distance", cache=path)
    folder = tmp_path / "data" / "raw"
    folder.mkdir(parents=True)
    (folder / "gdb9.sdf.csv").write_text(
        "\n".join([HEADER, *(f"gdb_{k},{NUMBERS}" for k in (1, 2, 3, 4)), ""])
    )
    (folder / "gdb9.sdf").write_text("".join(blocks))
    (folder / "uncharacterized.txt").write_text("\n".join([*("----",) * 9, "----", ""]))
    reference = datasets.QM9(str(folder.parent))
    assert len(reference) == len(graphs) == 4
    for index, data in enumerate(reference):
        nodes = slice(*graphs.node_offsets[index : index + 2])
        edges = slice(*graphs.edge_offsets[index : index + 2])
        assert graphs.node_features[nodes].tolist() == data.x.tolist()
        assert graphs.edge_features[edges].tolist() == data.edge_attr.tolist()
        assert graphs.edges[:, edges].tolist() == data.edge_index.tolist()
        assert graphs.positions is not None
        assert abs(graphs.positions[nodes] - data.pos.numpy()).max() < 6e-6
        assert graphs.ids[index] == data.name
