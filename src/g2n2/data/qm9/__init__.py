"""QM9: 130,831 molecules with DFT geometry, bonds in the order of the atoms, twelve targets."""

from .loading import load_qm9

__all__ = ["load_qm9"]
