"""Molecules drawn by RDKit, atoms and bonds coloured by numbers: red raises, blue lowers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Colour: TypeAlias = tuple[float, float, float]

RAISES: Colour = (0.84, 0.19, 0.15)
LOWERS: Colour = (0.13, 0.40, 0.67)
WHITE: Colour = (1.0, 1.0, 1.0)
PANEL = (360, 320)
"""Pixels of one molecule."""
COLUMNS = 4
MOST_NUMBERS = 16
"""Atoms of a molecule whose numbers are written beside them."""


@dataclass(frozen=True, eq=False)
class ColouredMolecule:
    """A molecule with a number for each atom and bond, and a line of text below it.

    Attributes:
        molecule: An RDKit molecule; hydrogens that are atoms are drawn into their neighbours.
        atoms: `[n]`.
        bonds: By the two atoms, the smaller first.
        text: Below it.
    """

    molecule: Any
    atoms: Values
    bonds: dict[tuple[int, int], float]
    text: str


def draw_molecules(coloured: Sequence[ColouredMolecule]) -> str:
    """All molecules as one SVG, on one scale of colours."""
    from rdkit.Chem.Draw import rdMolDraw2D

    folded = [_without_hydrogens(one) for one in coloured]
    numbers = [abs(x) for one in folded for x in (*one.atoms.tolist(), *one.bonds.values())]
    top = max(numbers, default=0.0) or 1.0
    width, height = PANEL
    columns = min(COLUMNS, len(folded))
    rows = -(-len(folded) // columns)
    canvas = rdMolDraw2D.MolDraw2DSVG(width * columns, height * rows, width, height)
    options: Any = canvas.drawOptions()
    options.legendFontSize = 16
    options.annotationFontScale = 0.6
    options.highlightBondWidthMultiplier = 14
    options.useBWAtomPalette()
    molecules, atom_colours, bond_colours, radii = [], [], [], []
    for one in folded:
        molecule = _prepared(one.molecule)
        if len(one.atoms) <= MOST_NUMBERS:
            for atom, number in zip(molecule.GetAtoms(), one.atoms.tolist(), strict=False):
                atom.SetProp("atomNote", f"{number:+.2g}")  # RDKit's font has no minus sign
        molecules.append(molecule)
        atom_colours.append({i: _colour(x / top) for i, x in enumerate(one.atoms.tolist())})
        bond_colours.append(
            {molecule.GetBondBetweenAtoms(*ends).GetIdx(): _colour(x / top)
             for ends, x in one.bonds.items()}
        )  # fmt: skip
        radii.append(dict.fromkeys(range(len(one.atoms)), 0.38))
    canvas.DrawMolecules(
        molecules,
        highlightAtoms=[list(colours) for colours in atom_colours],
        highlightBonds=[list(colours) for colours in bond_colours],
        highlightAtomColors=atom_colours,
        highlightBondColors=bond_colours,
        highlightAtomRadii=radii,
        legends=[one.text for one in folded],
    )
    canvas.FinishDrawing()
    text: str = canvas.GetDrawingText()
    return text


def _prepared(molecule: Any) -> Any:
    """With coordinates and Kekulé bonds; as it is, where RDKit finds no such bonds."""
    from rdkit.Chem.Draw import rdMolDraw2D

    try:
        return rdMolDraw2D.PrepareMolForDrawing(molecule)
    except (ValueError, RuntimeError):
        return rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False)


def _without_hydrogens(one: ColouredMolecule) -> ColouredMolecule:
    """The molecule of heavy atoms: a hydrogen and its bond count with the atom it is on."""
    from rdkit import Chem

    atoms = list(one.molecule.GetAtoms())
    heavy = [atom.GetIdx() for atom in atoms if atom.GetAtomicNum() != 1]
    if len(heavy) == len(atoms) or not heavy:
        return one
    numbers, bonds = one.atoms.copy(), dict(one.bonds)
    for atom in atoms:
        near = [other.GetIdx() for other in atom.GetNeighbors()]
        if atom.GetAtomicNum() == 1 and len(near) == 1:
            first, last = sorted((atom.GetIdx(), near[0]))
            numbers[near[0]] += numbers[atom.GetIdx()] + bonds.pop((first, last), 0.0)
    # As drawn, no hydrogen stays an atom: labels of atoms say how many there are.
    molecule = Chem.RemoveHs(one.molecule, sanitize=False)
    if molecule.GetNumAtoms() != len(heavy):  # one that RDKit keeps, such as that of a hydride
        return one
    place = {old: new for new, old in enumerate(heavy)}
    left = {(place[a], place[b]): x for (a, b), x in bonds.items() if a in place and b in place}
    return ColouredMolecule(molecule, numbers[heavy], left, one.text)


def _colour(share: float) -> Colour:
    """From white to red for a share up to 1, and to blue down to −1."""
    end = RAISES if share > 0 else LOWERS
    weight = 0.9 * min(1.0, abs(share)) ** 0.8
    red, green, blue = (w + (e - w) * weight for w, e in zip(WHITE, end, strict=True))
    return red, green, blue
