"""What the cells of Q2 are called, and how its tables name targets."""

from __future__ import annotations

from dataclasses import replace

from ..data.qm9 import QM9_TARGETS
from ..experiments.q2 import BUDGETS, LONG, Settings
from ..experiments.training_cells import mae_key

TARGETS = {target.name: target for target in QM9_TARGETS}
OURS = Settings(None, 32, "distance", "G2N2", "modern")
EQUAL_TIME = "/equal-time"
LONGER = {replace(one, long=False).name: one.name for one in LONG}
"""A cell to the same with more epochs."""
LONG_EPOCHS = BUDGETS["full"].long


def mae(target: str) -> str:
    """The metric of a target in the unit of the tables."""
    return mae_key(target, TARGETS[target].unit)


def symbol(target: str) -> str:
    """A target and its unit, as the paper has them."""
    return f"{TARGETS[target].symbol} ({TARGETS[target].unit})"


def single_name(target: str) -> str:
    return Settings(target, 64, "distance", "G2N2", "modern").name


def joint_name(width: int, track: str, network: str) -> str:
    return f"joint/width{width}/{track}/{network}/modern"
