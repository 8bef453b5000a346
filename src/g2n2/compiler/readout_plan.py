"""What is read out of the last memories, and the decision layers behind it.

The rules of S are lowered like all others, as a last stage: their outputs, beside the memory of S
where scalars feed back into words, are what the decision layers read, and those are the function of
S. Pooling is the same stage with other rules of S: `1ᵀV_c`, `V_r1`, `Tr(M)` and `1ᵀ(M⊙J)1`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, cast, get_args

from ..errors import LoweringError
from ..grammars.network_rules import POOL_RULES
from ..grammars.rules import Rule, spans
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import Hole, MarkSum, leaves
from .presets import Preset, ReadoutMode

if TYPE_CHECKING:
    from .plan import Linear, RuleStep

Task = Literal["graph", "node", "edge"]
Pooling = Literal["sum", "mean", "max", "none"]


class ReadoutPart(NamedTuple):
    """What can be pooled: a part of a memory, the sort of the entries it has, and its symbol."""

    memory: Sort
    entries: Sort
    symbol: str


PARTS: dict[str, ReadoutPart] = {
    "nodes": ReadoutPart(V, V, "H"),
    "rows": ReadoutPart(R, R, "R"),
    "scalars": ReadoutPart(S, S, "s"),
    "diagonal": ReadoutPart(M, V, "diag C"),
    "off-diagonal": ReadoutPart(M, M, "offdiag C"),
}

WAYS = ("sum", "mean", "max", "none")
"""Ways of pooling; what the option `readout` meant before it named the rules that are read out."""


@dataclass(frozen=True)
class ReadoutPlan:
    """Parts of the memories, how each is pooled, rules of S, and the decision layers."""

    task: Task  # what an output belongs to
    # `grammar`: the rules of S. `pooled`: pooled memories, joined by the rules of S that pooling
    # does not contain. `pooled-only`: pooled memories.
    mode: ReadoutMode
    # (part, how) of the pooled vector, in the order it is concatenated
    pools: tuple[tuple[str, Pooling], ...]
    pooled_width: int  # channels of that vector; 0 where the task does not use it
    # the rules of S that are applied to the last memories; their outputs follow the pooled vector.
    # A rule that is linear in its one variable has no selector: it reads every channel. One without
    # variables is a number of the graph.
    steps: tuple[RuleStep, ...]
    # what stands beside it for a node or an edge: `H`, `R`, `diag C`, `row sums C` or `C`, `H_i`,
    # `H_j`, `R_i`, `R_j`
    local: tuple[str, ...]
    local_width: int
    local_pooling: Pooling  # how a row of C is pooled for a node
    maps: tuple[Linear, ...]  # the decision layers
    linear_path: bool  # whether the first map runs beside the others and is added to them
    context: bool  # whether nodes and edges see the pooled vector and the rules of S too

    @property
    def sort(self) -> Sort:
        """Over which entries the decision layers run."""
        return {"graph": S, "node": V, "edge": M}[self.task]

    @property
    def out(self) -> int:
        return self.maps[-1].width_out

    @property
    def graph_width(self) -> int:
        """Channels that belong to the whole graph: pooled ones and those of rules of S."""
        return self.pooled_width + sum(step.copies for step in self.steps)

    def maps_from(self, width: int) -> tuple[Linear, ...]:
        """The decision layers, reading so many numbers."""
        beside, first = int(self.linear_path), self.maps[int(self.linear_path)]
        read = [replace(self.maps[0], width_in=width)] * beside
        return (*read, replace(first, width_in=width), *self.maps[beside + 1 :])

    def pool_rules(self) -> tuple[Rule, ...]:
        """The rules of S that pooling stands for; the memory of S is no rule."""
        if not self.pooled_width:
            return ()
        return tuple(POOL_RULES[part] for part, _ in self.pools if part in POOL_RULES)


def readout_options(
    readout: str | Mapping[str, str] | None, pooling: str | Mapping[str, str] | None
) -> tuple[ReadoutMode | None, str | Mapping[str, str] | None]:
    """What is read out and how parts are pooled; `readout="mean"` is how pooling was once asked."""
    if isinstance(readout, Mapping) or readout in WAYS:
        if pooling is not None and pooling != readout:
            raise LoweringError(
                f"readout={readout!r} is the old spelling of pooling={readout!r}, and pooling is "
                f"{pooling!r}: leave readout out, or say grammar or pooled"
            )
        return None, readout
    if readout is None or readout in get_args(ReadoutMode):
        return cast(ReadoutMode | None, readout), pooling
    raise LoweringError(
        f"the read-out is grammar (the rules of S) or pooled, got {readout!r}; how memories are "
        "pooled is said by pooling: sum, mean, max or none"
    )


def plan_readout(
    widths: Mapping[Sort, int],
    task: Task,
    preset: Preset,
    pooling: str | Mapping[str, str] | None,
    decision: tuple[int, ...],
    out: int,
    context: bool,
    mode: ReadoutMode = "pooled-only",
    steps: Sequence[RuleStep] = (),
) -> ReadoutPlan:
    """Plan the read-out of memories with these widths.

    `steps` are the rules of S as far as the memories have what they need; those that pooling
    contains are left out here.
    """
    from .plan import Linear

    if task not in ("graph", "node", "edge"):
        raise LoweringError(f"the task is graph, node or edge, got {task!r}")
    ways = _ways(pooling, preset.pooling)
    if mode == "grammar" and pooling not in (None, "sum"):
        raise LoweringError(
            f"the rules of S say what is summed, so pooling={pooling!r} has no meaning with "
            'readout="grammar": leave it out, or use readout="pooled"'
        )
    pools: tuple[tuple[str, Pooling], ...] = tuple(
        (part, "sum" if mode == "grammar" else ways[part])
        for part, (memory, *_) in PARTS.items()
        if widths.get(memory, 0)
        and (part == "scalars" if mode == "grammar" else ways[part] != "none")
    )
    of_the_graph = task == "graph" or context
    applied: tuple[RuleStep, ...] = ()
    if mode == "grammar" and of_the_graph:
        applied = tuple(steps)
    elif mode == "pooled" and task == "graph":
        applied = tuple(step for step in steps if not is_pooled(step.rule, pools, bool(decision)))
    pooled = sum(widths[PARTS[part].memory] for part, _ in pools) if of_the_graph else 0
    local = _local(task, widths, mode)
    local_width = sum(widths[sort] for _, sort in local)
    total = pooled + sum(step.copies for step in applied) + local_width
    has_memories = any(widths.values())
    if not total or (mode != "grammar" and task == "graph" and has_memories and not pools):
        raise LoweringError(
            "the read-out leaves nothing: every part is set to none; for the rules of S alone use "
            'readout="grammar"'
        )
    maps = [Linear(a, b, True) for a, b in pairwise([total, *decision, out])]
    linear_path = preset.linear_path and bool(decision)
    if linear_path:
        maps.insert(0, Linear(total, out))
    names = tuple(name for name, _ in local)
    rows = ways["off-diagonal"] if ways["off-diagonal"] != "none" else preset.pooling
    return ReadoutPlan(
        task, mode, pools, pooled, applied, names, local_width, rows, tuple(maps), linear_path,
        context,
    )  # fmt: skip


def is_pooled(rule: Rule, pools: Sequence[tuple[str, Pooling]], mlp: bool) -> bool:
    """Whether what a rule of S gives can be computed by decision layers from what is pooled.

    - A rule that is linear in one variable is contained if, as a combination of patterns, it is one
      of the sums over that variable's memory: the first map makes any combination of channels, so
      any selector. `1ᵀV_c`, `V_r1`, `Tr(M)`, `1ᵀM1` are, and whatever equals them. Only sums count:
      neither a mean nor a maximum gives the sum back.
    - A rule of scalars alone (`SS`, `f(S)`) is a function of the memory of S, which is read out as
      it is. An MLP (`mlp`) computes it, one linear map does not; `diag(S)` is S itself and always
      contained. A constant beside S (`S(1ᵀA1)`) is not known to be in that memory.
    - A rule without variables is contained if there is a memory of S: that starts with it.
    - A sum over marks is not: what is pooled are memories outside the marks.
    """
    if isinstance(rule.body, MarkSum):
        return False
    scalars = any(part == "scalars" for part, _ in pools)
    if not rule.holes:
        return scalars
    if set(rule.holes) == {S} and not leaves(rule.body):
        return scalars and (mlp or spans([Rule(S, Hole(S))], rule))
    return spans([POOL_RULES[x] for x, how in pools if how == "sum" and x != "scalars"], rule)


def pool_rules_of(sorts: Collection[Sort]) -> tuple[Rule, ...]:
    """The rules of S that pooling stands for where there are memories of these sorts."""
    return tuple(rule for rule in POOL_RULES.values() if rule.holes[0] in sorts)


def _local(task: Task, widths: Mapping[Sort, int], mode: ReadoutMode) -> list[tuple[str, Sort]]:
    if task == "graph":
        return []
    has = {sort for sort, width in widths.items() if width}
    if task == "node":
        parts = [("H", V), ("R", R), ("row sums C", M)]
        parts += [("diag C", M)] if V not in has else []
    else:
        parts = [("C", M), ("H_i", V), ("H_j", V), ("R_i", R), ("R_j", R)]
    if mode == "grammar":
        parts = parts[:1]
    return [(name, sort) for name, sort in parts if sort in has]


def _ways(pooling: str | Mapping[str, str] | None, default: Pooling) -> dict[str, Pooling]:
    """How each part is pooled."""
    asked = pooling if isinstance(pooling, Mapping) else dict.fromkeys(PARTS, pooling or default)
    ways: dict[str, Pooling] = dict.fromkeys(PARTS, default)
    for part, how in asked.items():
        if part not in PARTS:
            raise LoweringError(f"no part is called {part!r}; the parts are {', '.join(PARTS)}")
        if how not in WAYS:
            raise LoweringError(f"a part is pooled by sum, mean, max or none, got {how!r}")
        ways[part] = cast(Pooling, how)
    return ways
