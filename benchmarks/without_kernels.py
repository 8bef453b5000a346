"""What a training step loses without each hand-written kernel: PyTorch's operations in its place.

    python benchmarks/without_kernels.py [--batch 128 512] [--by plain compiled] [--out FILE]

Whole steps are recorded as CUDA graphs, in bfloat16, on molecules of QM9's sizes; all variants are
timed in one process. The operations are taken one by one (`plain`) or, where they are more than
one, through `torch.compile` (`compiled`), which takes a quarter of a minute for each kernel. A
kernel pays if the step without it takes at least 1.15 times as long both ways. Every variant is
first compared with the reference, as `g2n2 bench` compares. The last row of `compiled` is the whole
reference layer through `torch.compile`, padded, in one CUDA graph.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional

from g2n2 import bench
from g2n2.ops.graph_index import GraphIndex
from g2n2.ops.rule_kernels.reference import apply as apply_reference
from g2n2.ops.rule_kernels.spec import KernelRule
from g2n2.training.optimiser import init_optimiser_state
from g2n2.training.run_folder import provenance
from g2n2_paper.bench.measures import kernel_digest
from g2n2_paper.bench.peers import compiled_pass

WORTH = 1.15
Map = tuple[Tensor, Tensor | None]


def select(
    memory: Tensor, gain: Tensor | None, small: float, weight: Tensor, room: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """`ops.selecting.select`; nothing is put where later outputs go."""
    norm = functional.rms_norm
    read = memory if gain is None else norm(memory, memory.shape[-1:], gain, small)
    return read, functional.linear(read, weight), memory


def mix_rows(
    joined: Tensor, first: Map, second: Map, total: Tensor, residual: Tensor | None = None
) -> Tensor:
    """`ops.pair_mlp.mix_rows`."""
    out = functional.linear(functional.linear(joined, *first).relu(), *second)
    out = out if residual is None else out + residual
    return out * (torch.arange(len(out), device=out.device) < total).unsqueeze(1)


_places: WeakKeyDictionary[GraphIndex, tuple[Tensor, ...]] = WeakKeyDictionary()


def places(index: GraphIndex, pairs: int) -> tuple[Tensor, ...]:
    """From rows to padded graphs and back, of nodes and of pairs; found once for a batch."""
    if index not in _places:
        device, most = index.sizes.device, index.most
        sizes, starts = index.sizes.long(), index.pair_starts
        count = torch.arange(most, device=device)
        inside = count < sizes[:, None]
        node_at = (index.node_starts[:, None] + count) * inside
        inner = inside[:, :, None] & inside[:, None]
        pair_at = (starts[:, None, None] + count[:, None] * sizes[:, None, None] + count) * inner
        owner = index.owners.long().clamp(min=0)
        row = torch.arange(len(owner), device=device)
        node_from = owner * most + (row - index.node_starts[owner]) * (index.owners >= 0)
        row = torch.arange(pairs, device=device)
        graph = torch.searchsorted(starts + sizes.square(), row, right=True)
        there = graph < len(sizes)
        graph = graph.clamp(max=len(sizes) - 1)
        within, n = (row - starts[graph]) * there, sizes[graph].clamp(min=1)
        left, right = within // n, within % n
        pair_from = (graph * most + left) * most + right
        diagonal = (left == right) & there
        _places[index] = (
            node_at, inside, pair_at, inner, node_from, index.owners >= 0, pair_from, there, graph,
            diagonal,
        )  # fmt: skip
    return _places[index]


def apply_padded(
    kept: Tensor | None,
    matrices: Tensor,
    vectors: Tensor | None,
    scale: Tensor,
    rules: Sequence[KernelRule],
    at: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    node_at, inside, pair_at, inner, node_from, is_node, pair_from, is_pair, *_ = at
    padded = matrices[pair_at] * inner.unsqueeze(-1)
    columns = None if vectors is None else vectors[node_at] * inside.unsqueeze(-1)
    scale = scale.to(matrices.dtype)
    joined, column = apply_reference(None, padded, columns, scale, rules)
    rows = joined.flatten(0, 2)[pair_from] * is_pair.unsqueeze(1)
    column = column.flatten(0, 1)[node_from] * is_node.unsqueeze(1)
    return rows if kept is None else torch.cat([kept, rows], dim=1), column


def apply_rules(
    read: Tensor | None,
    matrices: Tensor,
    vectors: Tensor | None,
    scale: Tensor,
    rules: Sequence[KernelRule],
    index: GraphIndex,
    compute: Callable[..., Any] = apply_padded,
) -> tuple[Tensor, Tensor]:
    """`ops.rule_kernels.triton.apply` on padded copies of the operands."""
    at = places(index, len(matrices))
    found: tuple[Tensor, Tensor] = compute(read, matrices, vectors, scale, rules, at)
    return found


def packed_pools(
    matrix: Tensor | None,
    vector: Tensor | None,
    index: GraphIndex,
    pools: Sequence[str],
    unit: float = 1.0,
) -> Tensor:
    """`ops.pooling.packed_pools` by sums at indices."""
    parts = []
    for pool in pools:
        if pool == "nodes":
            assert vector is not None, "a pool over nodes reads them"
            values, owner, divisor = vector, index.owners.long(), unit
            owner, there = owner.clamp(min=0), owner >= 0
        else:
            assert matrix is not None, "a pool over pairs reads them"
            *_, is_pair, owner, diagonal = places(index, len(matrix))
            values, there = matrix, diagonal if pool == "diagonal" else is_pair & ~diagonal
            divisor = unit if pool == "diagonal" else unit**2
        zeros = values.new_zeros(len(index.sizes), values.shape[1], dtype=torch.float32)
        rows = torch.where(there.unsqueeze(1), values.float(), 0.0)
        parts.append(zeros.index_add(0, owner, rows) / divisor)
    return torch.cat(parts, dim=1)


def _unflattened(step: Any) -> None:
    init_optimiser_state(step.learner.optimiser, step.weights)


def _one_stream(branch: Any) -> None:
    branch.stream, branch._used = None, False


def replacements(compiled: bool) -> dict[str, dict[str, Any]]:
    """What stands in for each kernel: names of functions to other functions."""
    made: Any = partial(torch.compile, dynamic=True) if compiled else lambda function: function
    plain: dict[str, dict[str, Any]] = {
        "norm and selectors": {"g2n2.ops.selecting.select": made(select)},
        "rules": {
            "g2n2.ops.rule_kernels.triton.apply": partial(apply_rules, compute=made(apply_padded))
        },
        "edges of the MLP": {"g2n2.ops.pair_mlp.mix_rows": made(mix_rows)},
        "pooling": {"g2n2.ops.pooling.packed_pools": packed_pools},
    }
    if compiled:
        return plain
    return plain | {
        "gathering": {"g2n2.training.precompute.InputRows.by_kernels": property(lambda _: False)},
        "optimiser": {"g2n2.training.cuda_graphs.GraphedStep._flatten": _unflattened},
        "side streams (no kernel)": {
            "g2n2.training.cuda_graphs.side_stream": lambda _: nullcontext(),
            "g2n2.ops.side_stream.Branch.__init__": _one_stream,
        },
    }


@contextmanager
def replaced(functions: dict[str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(patch(name, function))
        yield


def measured(
    work: bench.Workload, few: bench.Workload, functions: dict[str, Any]
) -> dict[str, Any]:
    """Seconds of a pass with these functions, and how far it is from the reference."""
    try:
        with replaced(functions):
            check = bench.compare(few)
            action = bench.fast_pass(work, work.network(), training=True)
            action()
            timing = bench.measure(action, work.device, bench.Effort(seconds=0.1))
    except Exception as error:  # one variant that cannot be recorded does not stop the others
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    finally:
        gc.collect()
    return {"seconds": timing.seconds, "spread": timing.spread, "equal": check.holds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--by", nargs="+", choices=("plain", "compiled"), default=["plain"])
    parser.add_argument("--out", type=Path, default=Path("results/bench-kernels/steps.json"))
    parser.add_argument("--smoke", action="store_true", help="tiny, to see that it runs")
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    made_with = provenance(device) | {"kernels": kernel_digest()}
    rows: list[dict[str, Any]] = []
    for batch in [4] if given.smoke else given.batch:
        shape: dict[str, Any] = {"width": 8, "layers": 2} if given.smoke else {}
        graphs = bench.drawn_molecules(batch * (2 if given.smoke else 16))
        shape |= {"preset": "modern", "precision": "bf16"}
        work = bench.Workload.of(graphs, batch, device, **shape)
        few = bench.Workload.of(bench.drawn_molecules(32), 32, device, **shape)
        variants: list[tuple[str, dict[str, Any], str]] = [("all kernels", {}, "")]
        for how in given.by:
            variants += [(name, f, how) for name, f in replacements(how == "compiled").items()]
        base: float | None = None
        for name, functions, how in variants:
            started = time.monotonic()
            row: dict[str, Any] = {"batch": batch, "without": name if how else "", "by": how}
            row |= measured(work, few, functions)
            base = base or row.get("seconds")
            if base and "seconds" in row:
                row["times"] = row["seconds"] / base
                row["pays"] = row["times"] >= WORTH
            rows.append(row)
            given.out.write_text(json.dumps({"made_with": made_with, "steps": rows}, indent=1))
            print(f"{time.monotonic() - started:.0f} s", row, flush=True)
        if device.type == "cuda" and "compiled" in given.by:
            model = bench.reference(work.network(), torch.float32)
            action = compiled_pass(work, model, training=True)
            timing = bench.measure(action, device, bench.Effort(seconds=0.1))
            rows.append({"batch": batch, "without": "everything", "by": "compiled"})
            rows[-1] |= {"seconds": timing.seconds, "times": timing.seconds / (base or 1.0)}
            print(rows[-1], flush=True)
    given.out.write_text(json.dumps({"made_with": made_with, "steps": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
