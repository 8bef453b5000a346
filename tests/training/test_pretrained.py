"""Networks that come with the package: from a run to `g2n2 predict qm9`."""

import csv
import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import g2n2
from g2n2.cli import app
from g2n2.data.qm9 import build_qm9
from g2n2.errors import DataError
from g2n2.training import run as shipped
from g2n2.training.config import RunConfig
from g2n2.training.fine_tuning import Start
from g2n2.training.run import Run
from g2n2.training.session import train_config
from g2n2_paper.ship import ship

pytest.importorskip("rdkit", reason="molecules are read with RDKit")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run on the first 100 molecules of QM9, and what is shipped of it."""
    if importlib.util.find_spec("qm9pack") is None:
        pytest.skip("qm9pack is not installed")
    folder = tmp_path_factory.mktemp("shipped")
    build_qm9(folder / "qm9.cache", rows=100, processes=1, progress=False)
    options = {"track": "bonds", "features": "smiles", "cache": str(folder / "qm9.cache")}
    config = RunConfig("qm9", options=options, references=True, width=4, layers=1, epochs=1)
    train_config(config, folder / "run", pictures=False)
    ship(folder / "run", folder / "qm9.cache", folder / "networks" / "qm9")
    return folder / "run", folder / "networks"


@pytest.fixture
def networks(made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "PRETRAINED", made[1])
    return made[1] / "qm9"


def test_predictions_for_smiles_are_those_of_the_training_side(
    made: tuple[Path, Path], networks: Path
) -> None:
    """The molecules of held_out.csv, read from SMILES, against the run's own test part."""
    run = Run(made[0])
    graphs = run.evaluate("test")
    expected = {row["id"]: row for row in graphs.rows()}
    with (networks / "held_out.csv").open(newline="") as file:
        smiles = {row["id"]: row["smiles"] for row in csv.DictReader(file)}
    assert smiles.keys() == expected.keys()
    outcome = g2n2.pretrained("qm9").predict(list(smiles.values()))
    for row, name in zip(outcome.rows(), smiles, strict=True):
        wanted = expected[name]
        for column, value in row.items():
            if isinstance(value, float):
                assert value == pytest.approx(wanted[column], rel=1e-4, abs=1e-4), (name, column)
    assert outcome.intervals is not None
    assert not (networks / "split.json").exists()
    assert "cache" not in (networks / "config.json").read_text()


def test_it_is_found_by_name_and_a_folder_of_that_name_wins(
    networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(g2n2.load("qm9"), Run)
    shown = CliRunner().invoke(app, ["predict", "qm9", "--smiles", "CCO"])
    assert shown.exit_code == 0, shown.exception
    assert "u0 [hartree]" in shown.stdout
    assert "90 %: " in shown.stdout
    with pytest.raises(DataError, match="no network called 'qm8' comes with g2n2; there is: qm9"):
        g2n2.pretrained("qm8")
    with pytest.raises(DataError, match="score it on a file with targets"):
        g2n2.pretrained("qm9").evaluate()
    (tmp_path / "qm9").mkdir()
    with pytest.raises(DataError, match="qm9 is no run folder"):
        Run("qm9")


@pytest.mark.parametrize(
    ("smiles", "note"),
    [
        ("CCS", "not predicted: S was never seen in training"),
        ("CCO.CC", "2 fragments, in training always 1"),
        ("C[CH2]", "unpaired electrons are not read"),
        ("[13CH3]C", "isotopes are not told apart"),
        ("C[NH3+]", "a net charge of +1, in training always 0"),
        ("c1ccc2ccccc2c1", "10 heavy atoms, more than any training molecule"),
        ("C[C@H](O)C", ""),
        ("C[C@H](O)C#N", ""),
        ("C/C=C/O", "stereoisomers are not told apart"),
        ("C[C@H](O)[C@H](O)C#N", "stereoisomers are not told apart"),
    ],
)
def test_molecules_unlike_qm9_have_a_note(networks: Path, smiles: str, note: str) -> None:
    (row,) = g2n2.pretrained("qm9").predict([smiles]).rows()
    assert note in row["note"]
    assert ("stereoisomers" in row["note"]) == ("stereoisomers" in note)
    assert not any(word in row["note"] for word in ("R 1", "S (stereo)"))
    assert np.isnan(row["u0 [hartree]"]) == note.startswith("not predicted")


def test_files_of_molecules_are_read_as_smiles_are(networks: Path, tmp_path: Path) -> None:
    """With the hydrogens a 2D file leaves out, and those of a 3D file as they are."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    run, texts = g2n2.pretrained("qm9"), ["CCO", "c1ccccc1N"]
    expected = run.predict(texts).values
    for hydrogens in (False, True):
        with Chem.SDWriter(str(tmp_path / "some.sdf")) as file:
            for text in texts:
                molecule = Chem.MolFromSmiles(text)
                if hydrogens:
                    molecule = Chem.AddHs(molecule)
                    AllChem.EmbedMolecule(molecule, randomSeed=1)
                file.write(molecule)
        np.testing.assert_allclose(run.predict(tmp_path / "some.sdf").values, expected, rtol=1e-5)
    water = "3\nwater\nO 0 0 0.117\nH 0 0.757 -0.467\nH 0 -0.757 -0.467\n"
    (tmp_path / "water.xyz").write_text(water)
    found = run.predict(tmp_path / "water.xyz").values
    np.testing.assert_allclose(found, run.predict(["O"]).values, rtol=1e-5)


def test_stereo_changes_nothing(networks: Path) -> None:
    run = g2n2.pretrained("qm9")
    one, other, flat = run.predict(["C[C@H](O)F", "C[C@@H](O)F", "CC(O)F"]).predicted
    np.testing.assert_allclose([one, other], [flat, flat], rtol=1e-5)


def test_fine_tuning_reads_molecules_as_the_network_does(networks: Path, tmp_path: Path) -> None:
    start = Start.find("qm9")
    (tmp_path / "edges.csv").write_text("graph,source,target\na,0,1\n")
    with gzip.open(tmp_path / "mine.csv.gz", "wt") as file:
        file.write("smiles,y\nCCO,1\n")
    (tmp_path / "mine.sdf").write_text("a record that is read later\n$$$$\n")
    (tmp_path / "mine.npz").touch()
    for name, options in (
        ("mine.csv.gz", {"hydrogens": True}),
        ("mine.sdf", {"hydrogens": True}),
        ("mine.npz", {}),
        ("edges.csv", {}),
    ):
        assert start.settings(RunConfig(str(tmp_path / name))).options == options, name
    chosen = RunConfig(str(tmp_path / "mine.sdf"), options={"hydrogens": False})
    assert start.settings(chosen).options == {"hydrogens": False}


def test_altered_weights_are_refused(networks: Path) -> None:
    weights = networks / "best.safetensors"
    content = weights.read_bytes()
    try:
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(DataError, match="altered"):
            g2n2.pretrained("qm9").predict(["CC"])
    finally:
        weights.write_bytes(content)


def test_the_shipped_network_is_as_good_as_its_card_says() -> None:
    """On molecules it was not trained on, from their SMILES."""
    run = g2n2.pretrained("qm9")
    with (run.folder / "held_out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))[:40]]
    outcome = run.predict([row["smiles"] for row in rows])
    assert outcome.intervals is not None
    truth = np.array([[float(row[c.name]) for c in run.task.columns] for row in rows])
    inside = (outcome.intervals[0] <= truth) & (truth <= outcome.intervals[1])
    error = np.abs(outcome.predicted - truth).mean(0)
    known = np.array([run.scores[column.name]["mae"] for column in run.task.columns])
    assert (error < 2 * known).all(), error / known
    assert 0.8 < (error / known).mean() < 1.4
    assert 0.82 < inside.mean() < 0.97
    assert not any(outcome.notes[:20])
