"""What cases are measured by: arithmetic, memory, peaks, the product alone, kernels, an epoch."""

from __future__ import annotations

import hashlib
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from torch import Tensor
from torch.profiler import ProfilerActivity
from torch.profiler import profile as record

import g2n2
from g2n2.bench import (
    TOLERANCE,
    Effort,
    EqualityCheck,
    Precision,
    Timing,
    Workload,
    measure,
    relative_error,
)
from g2n2.data.graph_set import Ints
from g2n2.ops import packed
from g2n2.ops.packing import Packing
from g2n2.ops.precision import float32_products
from g2n2.ops.rule_kernels.spec import MOST_NODES, KernelRule
from g2n2.training.config import RunConfig
from g2n2.training.display import Display
from g2n2.training.loop import Loop
from g2n2.training.precompute import InputRows
from g2n2.training.session import Watch, train_config

from .cases import Case

BYTES: dict[Precision, int] = {"bf16": 2, "tf32": 4, "32": 4}
MATMUL = {"cuda": 8192, "cpu": 1024}
"""Size of the square matrices a peak is measured with."""
COPIED = {"cuda": 4096, "cpu": 256}
"""MiB of a copy, far more than any cache."""
EPOCHS = 5
PARTS: Mapping[str, tuple[str, ...]] = {
    "library products": ("nvjet", "cutlass", "gemm", "splitK", "gemv", "scal_kernel"),
    "rules: products and entries": (
        "product_kernel", "product_back_kernel", "entries_kernel", "entries_back_kernel",
    ),
    "edges of the MLP": ("back_kernel", "finish_kernel", "out_kernel"),
    "norms and pooling": (
        "normalise_kernel", "normalise_gradient_kernel", "select_kernel", "graph_means_kernel",
        "pool_kernel", "_spread_kernel",
    ),
    "sums of partial sums": ("column_sums_kernel",),
    "optimiser, clipping, average": ("squares_kernel", "step_kernel"),
    "gathering the batch": ("scatter_gather", "gather_kernel", "index_kernel"),
}  # fmt: skip
"""Part of a training step to parts of its kernels' names; the first that fits."""
REST = "everything else, small"

Product = Callable[[Tensor, Tensor], Tensor]


def pair_flops(width: int, nodes: float) -> float:
    """Forward FLOP of one layer of r-G_L3 for one pair of nodes.

    Five selectors S × S; the MLP from 3S (the memory and the two products) over 8S to S, as `diag`
    adds n entries, not n²; and the channel-wise product.
    """
    s = width
    return 2.0 * (5 * s * s + 3 * s * 8 * s + 8 * s * s + nodes * s)


def useful_flops(case: Case, sizes: Ints) -> float:
    """FLOP of a case for graphs of these sizes, without padding; training takes three times."""
    counts = np.bincount(sizes).tolist()
    forward = sum(float(count) * n**2 * pair_flops(case.width, n) for n, count in enumerate(counts))
    return forward * case.layers * (3.0 if case.training else 1.0)


def copies(work: Workload) -> float:
    """How often a layer computes the pairs of a graph: with marks, its copies, as pairs count."""
    model = work.network()
    counts = InputRows(model, work.store, None).copies(training=True)
    pairs = work.graphs.sizes**2
    return 1.0 if counts is None else float((counts[:, -1] * pairs).sum() / pairs.sum())


def flops_per_byte(case: Case, sizes: Ints) -> float:
    """Useful FLOP for each byte a fused layer moves: eight numbers for each pair and channel."""
    nodes = float((sizes**3).sum() / (sizes**2).sum())
    return pair_flops(case.width, nodes) / (8.0 * case.width * BYTES[case.precision])


def peak_tflops(precision: Precision, device: torch.device, size: int, effort: Effort) -> float:
    """TFLOP/s of a large matrix product, the fastest of several."""
    n = size or MATMUL[device.type]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    x, y = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    with float32_products(precision != "32"):
        torch.mm(x, y)
        return 2.0 * n**3 / measure(lambda: torch.mm(x, y), device, effort).least / 1e12


def bandwidth(device: torch.device, mebibytes: int, effort: Effort) -> float:
    """Bytes a second of a large copy, read and written, the fastest of several."""
    count = (mebibytes or COPIED[device.type]) * 2**20
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2.0 * count / measure(lambda: target.copy_(source), device, effort).least


class PeakMemory:
    """The most memory used since it was made: of the GPU, or of the whole process on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            return
        with suppress(OSError):  # then it is the peak of the process's life, which is not less
            Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_reserved(self.device))
        with suppress(OSError):
            for line in Path("/proc/self/status").read_text("utf-8").splitlines():
                if line.startswith("VmHWM"):
                    return 1024 * int(line.split()[1])
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def our_product(device: torch.device) -> Product:
    """`[B, N, N, S] × [B, N, N, S]`, channel by channel, as networks compute it on a device."""

    def product(x: Tensor, y: Tensor) -> Tensor:
        return selected(x, y, device)().reshape(x.shape)

    return product


def selected(x: Tensor, y: Tensor, device: torch.device) -> Callable[[], Tensor]:
    """The product of operands that lie as layers select them."""
    packing = Packing([x.shape[1]] * len(x), device)
    rows = torch.cat([x.flatten(0, 2), y.flatten(0, 2)], dim=1)
    if device.type == "cuda" and packing.most <= MOST_NODES:
        from g2n2.ops.rule_kernels.triton import apply

        width = x.shape[3]
        rule = KernelRule("product", (0, width), 0, width)
        return lambda: apply(None, rows, None, packing.scale, [rule], packing.index)[0]
    if device.type == "cuda":
        (run,) = packing.runs
        left, right = rows.T.contiguous().view(2, -1, run.size, run.size).unbind()
        return lambda: packed.scaled_product(left, right, run, 0).view(x.shape[3], -1).T
    return lambda: packed.matrix_matrix(rows, packing)


def operands(case: Case, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two random stacks of matrices `[B, N, N, S]`."""
    draw = torch.Generator(device).manual_seed(0)
    shape = (case.batch, case.nodes, case.nodes, case.width)
    dtype = torch.bfloat16 if case.precision == "bf16" else torch.float32
    x, y = (torch.randn(shape, generator=draw, device=device).to(dtype) for _ in range(2))
    return x, y


def compare_product(x: Tensor, y: Tensor, product: Product, precision: Precision) -> EqualityCheck:
    """Outputs and gradients of the product against the batched product in float64."""
    x, y = (value[:1].clone().requires_grad_() for value in (x, y))
    left, right = (channel_major(value.detach()).double().requires_grad_() for value in (x, y))
    value, truth = product(x, y), left @ right
    weight = torch.randn_like(value)
    ours = torch.autograd.grad(value, (x, y), weight)
    exact = torch.autograd.grad(truth, (left, right), channel_major(weight).double())
    errors = [relative_error(channel_major(a), b) for a, b in zip(ours, exact, strict=True)]
    outputs = relative_error(channel_major(value.detach()), truth.detach())
    least = TOLERANCE[precision]
    return EqualityCheck(outputs, max(errors), "xy"[errors.index(max(errors))], least, least)


def time_products(
    x: Tensor, y: Tensor, product: Product, device: torch.device, effort: Effort
) -> dict[str, Timing]:
    """The product of operands as layers select them, of contiguous ones, and cuBLAS's; forward.

    For graphs larger than those of the small kernels, layers select channel-major operands, and the
    MLP that follows reads the result channel-major too.
    """
    actions: dict[str, Callable[[], Tensor]] = {
        "ours": selected(x, y, device),
        "contiguous": partial(product, x, y),
        "bmm": partial(torch.bmm, channel_major(x), channel_major(y)),
    }
    for action in actions.values():
        action()
    return {name: measure(action, device, effort) for name, action in actions.items()}


def channel_major(value: Tensor) -> Tensor:
    """`[B, N, N, S]` as contiguous `[B·S, N, N]`."""
    return value.permute(0, 3, 1, 2).flatten(0, 1).contiguous()


def kernel_shares(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each part's share of the time of all kernels, given as name and microseconds."""
    spent = dict.fromkeys((*PARTS, REST), 0.0)
    for kernel, microseconds in kernels:
        fits = (part for part, names in PARTS.items() if any(name in kernel for name in names))
        spent[next(fits, REST)] += microseconds
    total = sum(spent.values()) or 1.0
    return {part: time / total for part, time in spent.items()}


def profile(one_pass: Callable[[], None]) -> dict[str, float]:
    """Shares of one pass on a GPU; kernels that run at the same time count in full."""
    one_pass()
    torch.cuda.synchronize()
    with record(activities=[ProfilerActivity.CUDA]) as events:
        one_pass()
        torch.cuda.synchronize()
    return kernel_shares((event.key, event.device_time_total) for event in events.key_averages())


def time_epochs(case: Case, cache: Path, device: str, quick: bool) -> dict[str, float]:
    """Seconds of an epoch of `g2n2 train` after the first, on R² with distances.

    An epoch lasts until the line of the next one is printed: data, validation, curves and
    checkpoints are included.
    """
    config = RunConfig(
        dataset="qm9",
        target=("r2",),
        options={"cache": str(cache), "track": "distance"},
        limit=600 if quick else 0,
        width=case.width,
        layers=case.layers,
        preset=case.preset,
        batch=case.batch,
        epochs=3 if quick else EPOCHS,
        precision=case.precision,
        device=device,
    )
    ends = [time.perf_counter()]
    display = Display(Console(file=StringIO(), width=120))  # prints as it would for a person

    def ended(loop: Loop) -> None:
        display.epoch(loop)
        ends.append(time.perf_counter())

    watch = Watch(display.summary, display.start, display.step, ended, display.note)
    with tempfile.TemporaryDirectory() as folder, display:
        result = train_config(config, Path(folder) / "run", watch=watch)
    steps = [row["seconds"] for row in result.history]
    first, *epochs = (later - earlier for earlier, later in pairwise(ends))
    return {
        "epoch_seconds": median(epochs),
        "steps_seconds": median(b - a for a, b in pairwise(steps)),
        "first_epoch_seconds": first,
        "molecules": float(len(result.parts.splits["train"])),
    }


OUTSIDE_STEPS = frozenset(
    f"nn/{name}.py"
    for name in (
        "baselines", "convolutions", "explaining", "exporting", "expressivity", "files",
        "pyg_layer",
    )
)  # fmt: skip
"""Modules of the package that no step runs, and none that a step runs imports."""


def step_sources() -> dict[str, Path]:
    """The files of `g2n2.ops` and `g2n2.nn` that a step runs, by their name in the package."""
    package = Path(g2n2.__file__).parent
    paths = [path for name in ("ops", "nn") for path in (package / name).rglob("*.py")]
    named = {path.relative_to(package).as_posix(): path for path in sorted(paths)}
    return {name: path for name, path in named.items() if name not in OUTSIDE_STEPS}


@cache
def kernel_digest() -> str:
    """Digest of the source a step runs: what a speed is the speed of."""
    digest = hashlib.sha256()
    for name, path in step_sources().items():
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
