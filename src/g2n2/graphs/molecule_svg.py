"""Molecules drawn by RDKit, atoms and bonds coloured by numbers: red raises, blue lowers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..described import signed

Values = NDArray[np.float64]
Colour: TypeAlias = tuple[float, float, float]

RAISES: Colour = (0.84, 0.19, 0.15)
LOWERS: Colour = (0.13, 0.40, 0.67)
WHITE: Colour = (1.0, 1.0, 1.0)
PANEL = (360, 320)
"""Pixels of one molecule."""
TEXTS, LINE = 0.2, 19
"""Share of a panel for the lines below a molecule; pixels of a line."""
BOND = 52
"""Pixels of a bond; fewer in large molecules."""
FONT = "font-size:14px;font-family:sans-serif;fill:#222222"
COLUMNS = 4
MOST_NUMBERS = 16
"""Atoms of a molecule whose numbers are written beside them."""


@dataclass(frozen=True, eq=False)
class ColouredMolecule:
    """A molecule with a number for each atom and bond, and lines of text below it."""

    molecule: Any  # an RDKit molecule; hydrogens that are atoms are not drawn
    atoms: Values  # `[n]`
    bonds: dict[tuple[int, int], float]  # by the two atoms, the smaller first
    text: str  # below it


def draw_molecules(coloured: Sequence[ColouredMolecule], caption: str) -> str:
    """All molecules as one SVG, on one scale of colours, above a caption."""
    from rdkit.Chem.Draw import rdMolDraw2D

    folded = [_without_hydrogens(one) for one in coloured]
    numbers = [abs(x) for one in folded for x in (*one.atoms.tolist(), *one.bonds.values())]
    top = max(numbers, default=0.0) or 1.0
    width, height = PANEL
    columns = min(COLUMNS, len(folded))
    rows = -(-len(folded) // columns)
    canvas = rdMolDraw2D.MolDraw2DSVG(width * columns, height * rows, width, height)
    options: Any = canvas.drawOptions()
    options.legendFraction = TEXTS
    options.fixedBondLength = BOND
    options.annotationFontScale = 0.6
    options.highlightBondWidthMultiplier = 14
    options.useBWAtomPalette()
    molecules, atom_colours, bond_colours, radii = [], [], [], []
    for one in folded:
        molecule = _prepared(one.molecule)
        if len(one.atoms) <= MOST_NUMBERS:
            for atom, number in zip(molecule.GetAtoms(), one.atoms.tolist(), strict=False):
                atom.SetProp("atomNote", signed(number, 2))  # RDKit's font has no minus sign
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
        legends=[" "] * len(folded),  # keeps the place free
    )
    canvas.FinishDrawing()
    return _with_texts(canvas.GetDrawingText(), [one.text for one in folded], columns, caption)


def _with_texts(drawing: str, texts: Sequence[str], columns: int, caption: str) -> str:
    """A drawing with lines of text below each molecule, and a caption below all of them."""
    rows = -(-len(texts) // columns)
    width, height = PANEL[0] * columns, PANEL[1] * rows
    lines = wrap(caption, width // 7)
    whole = height + LINE * (len(lines) + 1)
    added = [f"<rect style='fill:#FFFFFF' x='0' y='{height}' width='{width}' height='{whole}'/>"]
    for number, text in enumerate(texts):
        x = PANEL[0] * (number % columns + 0.5)
        y = PANEL[1] * (number // columns + 1 - TEXTS) + LINE
        added += [
            f"<text x='{x:.0f}' y='{y + LINE * k:.0f}' text-anchor='middle' style='{FONT}'>"
            f"{escape(line)}</text>"
            for k, line in enumerate(text.split("\n"))
        ]
    added += [
        f"<text x='{LINE}' y='{height + LINE * (k + 1)}' style='{FONT}'>{escape(line)}</text>"
        for k, line in enumerate(lines)
    ]
    head, body = drawing.split(f"viewBox='0 0 {width} {height}'", 1)
    head = head.replace(f"height='{height}px'", f"height='{whole}px'")
    head = head.replace("iso-8859-1", "utf-8")  # so are the texts
    body = body.replace("</svg>", "\n".join([*added, "</svg>"]))
    return f"{head}viewBox='0 0 {width} {whole}'{body}"


def _prepared(molecule: Any) -> Any:
    """With coordinates and Kekulé bonds; as it is, where RDKit finds no such bonds."""
    from rdkit.Chem.Draw import rdMolDraw2D

    try:
        return rdMolDraw2D.PrepareMolForDrawing(molecule)
    except (ValueError, RuntimeError):
        return rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False)


def _without_hydrogens(one: ColouredMolecule) -> ColouredMolecule:
    """The molecule of heavy atoms, with their numbers."""
    from rdkit import Chem

    atoms = list(one.molecule.GetAtoms())
    heavy = [atom.GetIdx() for atom in atoms if atom.GetAtomicNum() != 1]
    if len(heavy) == len(atoms) or not heavy:
        return one
    # As drawn, no hydrogen stays an atom: labels of atoms say how many there are.
    molecule = Chem.RemoveHs(one.molecule, sanitize=False)
    if molecule.GetNumAtoms() != len(heavy):  # one that RDKit keeps, such as that of a hydride
        return one
    place = {old: new for new, old in enumerate(heavy)}
    bonds = one.bonds.items()
    left = {(place[a], place[b]): x for (a, b), x in bonds if a in place and b in place}
    return ColouredMolecule(molecule, one.atoms[heavy], left, one.text)


def _colour(share: float) -> Colour:
    """From white to red for a share up to 1, and to blue down to −1."""
    end = RAISES if share > 0 else LOWERS
    weight = 0.9 * min(1.0, abs(share)) ** 0.8
    red, green, blue = (w + (e - w) * weight for w, e in zip(WHITE, end, strict=True))
    return red, green, blue
