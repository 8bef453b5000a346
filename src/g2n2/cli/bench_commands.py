"""bench: how fast networks are on this machine, equality first."""

from __future__ import annotations

from typing import Annotated

import typer

from . import show
from .options import Device


def bench(
    device: Annotated[Device, typer.Option(help="Where to measure.")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes that only show the steps.")
    ] = False,
) -> None:
    """How fast networks are on this machine, after an equality check.

    Exit code 1 means that the fast path differs from the reference; its speed is not shown.
    """
    import torch

    from ..bench import speeds
    from ..errors import DataError

    gpu = torch.cuda.is_available()
    if device == "cuda" and not gpu:
        raise DataError("--device cuda: there is no GPU here; leave --device out")
    if threads is not None:
        torch.set_num_threads(threads)
    on = torch.device("cuda" if gpu and device != "cpu" else "cpu")
    rows, differs = [], False
    for speed in speeds(on, quick):
        if speed.graphs_per_second is None:
            differs = True
            rows.append((speed.case, f"differs from the reference: {speed.equality}", "", ""))
            continue
        errors = f"{speed.equality.outputs:.0e}, {speed.equality.gradients:.0e}"
        rate, ratio = f"{speed.graphs_per_second:,.0f}", f"{speed.times_reference:.2f}"
        rows.append((speed.case, rate, ratio, errors))
    headers = ("3 layers of width 64, QM9's sizes", "graphs/s", "× reference", "relative errors")
    show.table(headers, rows, narrow=1)
    show.say("× reference: times as fast as the layer as written; errors: outputs, gradients")
    if quick:
        show.say("--quick: these figures say nothing about speed.")
    raise typer.Exit(1 if differs else 0)
