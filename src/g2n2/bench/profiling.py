"""Where the time of a recorded training step goes, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

PARTS: Mapping[str, tuple[str, ...]] = {
    "library products": ("nvjet", "cutlass", "gemm", "splitK", "gemv", "scal_kernel"),
    "rules: products and entries": ("product_kernel", "entries_kernel", "entries_back_kernel"),
    "edges of the MLP": ("back_kernel", "finish_kernel", "join_kernel", "out_kernel"),
    "norms and pooling": ("forward_kernel", "backward_kernel", "row_kernel", "row_spread"),
    "sums of partial sums": ("column_sums_kernel",),
    "optimiser, clipping, average": ("squares_kernel", "step_kernel"),
    "gathering the batch": ("scatter_gather", "gather_kernel"),
}
"""Part of a step to what its kernels are called; the first that fits."""
REST = "everything else, small"


def part_of(kernel: str) -> str:
    """The part a kernel belongs to."""
    fits = (part for part, names in PARTS.items() if any(name in kernel for name in names))
    return next(fits, REST)


def shares(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each part's share of the time of all kernels, given as name and microseconds."""
    spent = dict.fromkeys((*PARTS, REST), 0.0)
    for name, microseconds in kernels:
        spent[part_of(name)] += microseconds
    total = sum(spent.values())
    return {part: time / total for part, time in spent.items()} if total else spent


def profile(one_pass: Callable[[], None]) -> dict[str, float]:
    """Shares of one pass on a GPU; kernels side by side count in full."""
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as recorded

    one_pass()
    torch.cuda.synchronize()
    with recorded(activities=[ProfilerActivity.CUDA]) as record:
        one_pass()
        torch.cuda.synchronize()
    return shares((event.key, event.device_time_total) for event in record.key_averages())
