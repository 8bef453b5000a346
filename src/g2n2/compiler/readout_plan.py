"""What is read out of the last memories, and the decision layers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ..errors import LoweringError
from ..language.sorts import M, R, S, Sort, V
from .presets import Preset

if TYPE_CHECKING:
    from .plan import Linear

Task = Literal["graph", "node", "edge"]
Pooling = Literal["sum", "mean", "max", "none"]
PARTS = ("nodes", "rows", "scalars", "diagonal", "off-diagonal")
"""H, the row vectors, the scalars, and the two parts of C."""


@dataclass(frozen=True)
class ReadoutPlan:
    """Parts of the memories, how each is pooled, and the decision layers.

    Attributes:
        task: What an output belongs to.
        pools: (part, how) of the pooled vector, in the order it is concatenated.
        pooled_width: Channels of that vector; 0 where the task does not use it.
        local: What stands beside it for a node or an edge: `H`, `R`, `diag C`, `row sums C` or
            `C`, `H_i`, `H_j`, `R_i`, `R_j`.
        local_pooling: How a row of C is pooled for a node.
        maps: The decision layers.
        linear_path: Whether the first map runs beside the others and is added to them.
        context: Whether nodes and edges see the pooled vector too.
    """

    task: Task
    pools: tuple[tuple[str, Pooling], ...]
    pooled_width: int
    local: tuple[str, ...]
    local_width: int
    local_pooling: Pooling
    maps: tuple[Linear, ...]
    linear_path: bool
    context: bool

    @property
    def sort(self) -> Sort:
        """Over which entries the decision layers run."""
        return {"graph": S, "node": V, "edge": M}[self.task]

    @property
    def out(self) -> int:
        return self.maps[-1].width_out


def plan_readout(
    widths: Mapping[Sort, int],
    task: Task,
    preset: Preset,
    readout: str | Mapping[str, str] | None,
    decision: tuple[int, ...],
    out: int,
    context: bool,
) -> ReadoutPlan:
    """Plan the read-out of memories with these widths.

    Raises:
        LoweringError: An unknown task, part or way of pooling, or nothing left to read.
    """
    from .plan import Linear

    if task not in ("graph", "node", "edge"):
        raise LoweringError(f"the task is graph, node or edge, got {task!r}")
    present = {"nodes": V, "rows": R, "scalars": S, "diagonal": M, "off-diagonal": M}
    ways = _ways(readout, preset.pooling)
    pools = tuple(
        (part, ways[part])
        for part in PARTS
        if widths.get(present[part], 0) and ways[part] != "none"
    )
    pooled = sum(widths[present[part]] for part, _ in pools) if task == "graph" or context else 0
    local = _local(task, widths)
    local_width = sum(widths[sort] for _, sort in local)
    total = pooled + local_width
    if not total:
        raise LoweringError("the read-out leaves nothing: every part is set to none")
    sizes = [total, *decision, out]
    maps = [Linear(a, b, True) for a, b in pairwise(sizes)]
    if preset.linear_path and decision:
        maps.insert(0, Linear(total, out))
    return ReadoutPlan(
        task,
        pools,
        pooled,
        tuple(name for name, _ in local),
        local_width,
        ways["off-diagonal"] if ways["off-diagonal"] != "none" else preset.pooling,
        tuple(maps),
        preset.linear_path and bool(decision),
        context,
    )


def _local(task: Task, widths: Mapping[Sort, int]) -> list[tuple[str, Sort]]:
    if task == "graph":
        return []
    has = {sort for sort, width in widths.items() if width}
    if task == "node":
        parts = [("H", V), ("R", R), ("row sums C", M)]
        parts += [("diag C", M)] if V not in has else []
    else:
        parts = [("C", M), ("H_i", V), ("H_j", V), ("R_i", R), ("R_j", R)]
    return [(name, sort) for name, sort in parts if sort in has]


def _ways(readout: str | Mapping[str, str] | None, default: Pooling) -> dict[str, Pooling]:
    """How each part is pooled."""
    asked = readout if isinstance(readout, Mapping) else dict.fromkeys(PARTS, readout or default)
    ways: dict[str, Pooling] = dict.fromkeys(PARTS, default)
    for part, how in asked.items():
        if part not in PARTS:
            raise LoweringError(f"no part is called {part!r}; the parts are {', '.join(PARTS)}")
        match how:
            case "sum" | "mean" | "max" | "none":
                ways[part] = how
            case _:
                raise LoweringError(f"a part is pooled by sum, mean, max or none, got {how!r}")
    return ways
