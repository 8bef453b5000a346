"""Bemis-Murcko scaffolds: the ring systems of a molecule and what joins them."""

from __future__ import annotations

from typing import Any

from ..errors import DataError
from .graph_set import GraphSet
from .readers.molecules import chemistry


def smiles_of(graphs: GraphSet) -> list[str] | None:
    """Canonical SMILES of every graph where the reader kept them, else None."""
    kept = graphs.source.get("smiles")
    return list(kept) if isinstance(kept, tuple) and len(kept) == len(graphs) else None


def scaffolds_of(graphs: GraphSet) -> list[str]:
    """The scaffold of each molecule as SMILES without stereochemistry; '' where it has no ring.

    Raises:
        DataError: If the set holds no molecules.
    """
    smiles = smiles_of(graphs)
    if smiles is None:
        raise DataError(
            f"{graphs.name} keeps no SMILES, which a scaffold split needs; split at random"
        )
    with chemistry() as chem:
        from rdkit.Chem.Scaffolds import MurckoScaffold

        murcko: Any = MurckoScaffold  # part of RDKit's Python code has no types
        found = []
        for text in smiles:
            molecule = chem.MolFromSmiles(text)
            found.append(
                text
                if molecule is None  # from a file whose bond orders are not known
                else murcko.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)
            )
        return found
