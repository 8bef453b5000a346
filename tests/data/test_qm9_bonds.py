"""The bonds rebuilt from geometry and SMILES are the SMILES' bonds, and fit the geometry."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from g2n2.data.qm9_build import AROMATIC_BIT, Arrays, molecule_from_smiles
from g2n2.errors import DataError

Chem = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")

# Floats like `0.` in the first five; non-bonded pairs shorter than a bond in the last two.
STRETCHED = {"133857", "133859"}
AWKWARD = {"4", "23", "24", "486", "59818"} | STRETCHED

WATER = ("O", "['O','H','H']", "[[0.,0.,0.119],[0.,0.763,-0.477],[0.,-0.763,-0.477]]")


def as_rdkit(molecule: Arrays) -> Any:
    """The molecule again, from its arrays alone; orders are Kekulé orders."""
    orders = {1: Chem.BondType.SINGLE, 2: Chem.BondType.DOUBLE, 3: Chem.BondType.TRIPLE}
    built = Chem.RWMol()
    for number, charge in zip(molecule["elements"].tolist(), molecule["atoms"][:, 5], strict=True):
        atom = Chem.Atom(number)
        atom.SetFormalCharge(int(charge) - 8)
        atom.SetNoImplicit(True)
        built.AddAtom(atom)
    sources = np.repeat(np.arange(len(molecule["elements"])), molecule["degrees"])
    for begin, end, order in zip(
        sources.tolist(), molecule["neighbours"].tolist(), molecule["orders"].tolist(), strict=True
    ):
        if begin < end:
            built.AddBond(begin, end, orders[order & (AROMATIC_BIT - 1)])
    conformer = Chem.Conformer(len(molecule["elements"]))
    for place, position in enumerate(molecule["positions"].tolist()):
        conformer.SetAtomPosition(place, position)
    built.AddConformer(conformer)
    return built


def bond_lengths(molecule: Arrays) -> Any:
    sources = np.repeat(np.arange(len(molecule["elements"])), molecule["degrees"])
    steps = molecule["positions"][sources] - molecule["positions"][molecule["neighbours"]]
    return np.linalg.norm(steps, axis=1)


@pytest.fixture(scope="module")
def rows(qm9pack: Path) -> list[dict[str, str]]:
    """Every 500th row of qm9pack, and the awkward ones."""
    chosen: list[dict[str, str]] = []
    for part in (1, 2, 3):
        path = qm9pack / "data" / f"qm9_part{part}.csv"
        with path.open(encoding="utf-8") as file:
            header = next(file)
            lines = [
                line
                for place, line in enumerate(file)
                if place % 500 == 0 or line.split(",", 2)[1] in AWKWARD
            ]
        chosen += csv.DictReader([header, *lines])
    return chosen


def rebuilt(row: dict[str, str]) -> Arrays:
    return molecule_from_smiles(row["Index"], row["SMILES"], row["Elements"], row["XYZ_Ang"])


def test_canonical_smiles_agrees_with_the_file(rows: list[dict[str, str]]) -> None:
    assert {row["Index"] for row in rows} >= AWKWARD
    assert len(rows) > 260
    for row in rows:
        found = as_rdkit(rebuilt(row))
        Chem.SanitizeMol(found)
        expected = Chem.MolFromSmiles(row["SMILES"])
        assert Chem.MolToSmiles(Chem.RemoveHs(found), isomericSmiles=False) == Chem.MolToSmiles(
            expected, isomericSmiles=False
        ), row["Index"]


def test_bond_lengths_are_chemical(rows: list[dict[str, str]]) -> None:
    # The SMILES check above cannot see two like atoms exchanged; the lengths can. The longest C-C
    # bond known in a stable molecule is 1.8 Å; C-H, N-H and O-H are 0.95 to 1.15. The two stretched
    # molecules opened a ring in the DFT relaxation that their SMILES still closes.
    for row in rows:
        molecule = rebuilt(row)
        lengths = bond_lengths(molecule)
        sources = np.repeat(np.arange(len(molecule["elements"])), molecule["degrees"])
        to_hydrogen = (molecule["elements"][sources] == 1) | (
            molecule["elements"][molecule["neighbours"]] == 1
        )
        assert lengths.max() < (2.2 if row["Index"] in STRETCHED else 1.8), row["Index"]
        assert ((lengths[to_hydrogen] > 0.94) & (lengths[to_hydrogen] < 1.2)).all(), row["Index"]


def test_atoms_keep_the_order_of_the_geometry() -> None:
    smiles, elements, xyz = (
        "O",
        "['H','O','H']",
        "[[0,0.763,-0.477],[0.,0.,0.119],[0,-0.763,-0.477]]",
    )
    molecule = molecule_from_smiles("water", smiles, elements, xyz)
    assert molecule["elements"].tolist() == [1, 8, 1]
    assert molecule["degrees"].tolist() == [1, 2, 1]
    assert molecule["neighbours"].tolist() == [1, 0, 2, 1]
    assert molecule["orders"].tolist() == [1, 1, 1, 1]
    assert molecule["atoms"][:, 4].tolist() == [0, 2, 0]
    assert molecule["positions"][1].tolist() == [0, 0, 0.119]


def test_among_several_matches_the_tightest_is_taken() -> None:
    # F-O-O-F pressed into a rectangle: O-O and F-F 1.0, O-F 1.4 along a side, 1.72 across. The
    # three shortest make F-F-O-O; of the loose matches only that along the sides is right.
    xyz = "[[0,0,0],[1,0,0],[0,1.4,0],[1,1.4,0]]"
    molecule = molecule_from_smiles("x", "FOOF", "['O','O','F','F']", xyz)
    assert molecule["degrees"].tolist() == [2, 2, 1, 1]
    assert molecule["neighbours"].tolist() == [1, 2, 0, 3, 0, 1]


@pytest.mark.parametrize(
    ("smiles", "elements", "xyz", "complaint"),
    [
        ("C", *WATER[1:], "'C' does not fit its geometry"),
        ("OO", *WATER[1:], "'OO' does not fit its geometry"),
        ("O(", *WATER[1:], "is damaged"),
        ("O", WATER[1], "[[0.,0.,0.119],[0.,0.763,-0.477]]", "3 elements, 2 positions"),
        ("O", "['O','H','Cl']", WATER[2], "holds ['Cl']"),
    ],
)
def test_what_does_not_fit_is_refused(smiles: str, elements: str, xyz: str, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        molecule_from_smiles("molecule 7", smiles, elements, xyz)
    assert complaint in str(caught.value)
    assert "molecule 7" in str(caught.value)
