"""The twelve QM9 targets in one table: names, symbols, units, columns of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...errors import DataError
from ..graph_set import Target

EnergyUnit = Literal["hartree", "meV"]

MEV_PER_HARTREE = 27211.386245988
"""CODATA 2018."""


@dataclass(frozen=True)
class QM9Target:
    """One property of QM9.

    Attributes:
        name: How it is called on the command line.
        symbol: How the paper prints it.
        unit: Unit in the files.
        column: Column of the qm9pack CSV.
        raw_column: Column of `gdb9.sdf.csv`, the raw file PyG downloads; same unit.
        mev: How many meV one unit is; None where the property is no energy.
        aliases: Other names it is found by.
    """

    name: str
    symbol: str
    unit: str
    column: str
    raw_column: str
    mev: float | None = None
    aliases: tuple[str, ...] = ()

    def factor(self, energy_unit: EnergyUnit) -> float:
        """What a value of the files is multiplied by."""
        return self.mev if self.mev is not None and energy_unit == "meV" else 1.0

    def as_target(self, energy_unit: EnergyUnit) -> Target:
        """The column as a `GraphSet` names it."""
        unit = self.unit if self.mev is None else energy_unit
        return Target(self.name, unit, symbol=self.symbol)


_HA = ("hartree", MEV_PER_HARTREE)

QM9_TARGETS = (
    QM9Target("mu", "μ", "D", "Dipole_debye", "mu"),
    QM9Target("alpha", "α", "a₀³", "Polarizability_bohr3", "alpha"),
    QM9Target("homo", "ε_homo", _HA[0], "HOMO_au", "homo", _HA[1], ("e_homo",)),
    QM9Target("lumo", "ε_lumo", _HA[0], "LUMO_au", "lumo", _HA[1], ("e_lumo",)),
    QM9Target("gap", "Δε", _HA[0], "HOMO_LUMO_gap_au", "gap", _HA[1], ("delta_e",)),
    QM9Target("r2", "R²", "a₀²", "R2_bohr2", "r2"),
    QM9Target("zpve", "ZPVE", _HA[0], "ZPVE_au", "zpve", _HA[1]),
    QM9Target("u0", "U₀", _HA[0], "InternalEnergy_0K_au", "u0", _HA[1], ("U_0",)),
    QM9Target("u", "U", _HA[0], "InternalEnergy_298K_au", "u298", _HA[1]),
    # The file spells enthalpy so.
    QM9Target("h", "H", _HA[0], "Enthalphy_298K_au", "h298", _HA[1]),
    QM9Target("g", "G", _HA[0], "GibbsFreeEnergy_298K_au", "g298", _HA[1]),
    QM9Target("cv", "C_v", "cal/(mol K)", "Heatcapacity_Cv_cal_mol_K", "cv"),
)


def find_target(name: str) -> QM9Target:
    """The target of that name or symbol, whatever its case.

    Raises:
        DataError: If there is none, listing them all.
    """
    wanted = name.strip().casefold()
    for target in QM9_TARGETS:
        known = (target.name, target.symbol, target.raw_column, *target.aliases)
        if wanted in {word.casefold() for word in known}:
            return target
    listing = ", ".join(f"{target.name} ({target.symbol})" for target in QM9_TARGETS)
    raise DataError(f"QM9 has no target {name!r}; choose among: {listing}")
