"""doctor, bench, demo, workbench: this machine, the whole chain, and the page in the browser."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from ..described import counted
from ..errors import DataError
from . import show
from .options import AsJson, Device

PURPOSES = {
    "pyg": "PyG graphs as input, PyG networks as baselines",
    "train": "g2n2 train and sweep, curves for TensorBoard",
    "sweep": "g2n2 sweep",
    "postgres": "sweeps that several machines share",
    "scale": "g2n2 predict --engine ray",
    "export": "ONNX files",
    "chem": "SMILES, SDF and XYZ files, QM9",
    "plot": "pictures in run folders, g2n2 power --plot",
    "web": "g2n2 workbench",
    "kernels": "fast kernels on an NVIDIA GPU",
}
"""What each extra of the package is for."""
CORE = ("numpy", "networkx", "typer", "rich", "safetensors", "filelock")


def doctor(json: AsJson = False) -> None:
    """What is installed, what is missing, and the pip line that gets it."""
    report = diagnosis()
    if json:
        show.as_json(report)
        return
    show.say(f"g2n2 {report['g2n2']}, Python {report['python']} on {report['system']}")
    show.say(f"torch {report['torch']}: {report['device']}")
    show.say(f"backends: {', '.join(report['backends'])}")
    show.say("core: " + ", ".join(f"{name} {version}" for name, version in report["core"].items()))
    show.title("Optional parts")
    rows = [
        (name, ", ".join(part["installed"]) or "–", ", ".join(part["missing"]) or "–", part["for"])
        for name, part in report["extras"].items()
    ]
    show.table(("extra", "installed", "missing", "what it is for"), rows, narrow=1)
    show.title("Folders")
    for what, folder in report["folders"].items():
        show.say(f"  {what}: {folder}")
    missing = [name for name, part in report["extras"].items() if part["missing"]]
    if missing:
        show.say(f'\nto get what is missing: pip install "g2n2[{",".join(missing)}]"')
    else:
        show.say("\nnothing is missing")


def diagnosis() -> dict[str, Any]:
    """What `doctor` shows, as data."""
    from .. import __version__
    from ..data.files import cache_folder

    torch_version, device, backends = _torch()
    return {
        "g2n2": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "torch": torch_version,
        "device": device,
        "backends": backends,
        "core": {name: _version(name) or "missing" for name in CORE},
        "extras": {
            name: {
                "for": PURPOSES[name],
                "installed": [f"{p} {_version(p)}" for p in packages if _version(p)],
                "missing": [p for p in packages if not _version(p)],
            }
            for name, packages in extras().items()
        },
        "folders": {
            "cache of data sets": _described(str(cache_folder())),
            "G2N2_DATA, searched first": _described(os.environ.get("G2N2_DATA", "")),
        },
    }


def extras() -> dict[str, list[str]]:
    """The packages of each extra in `PURPOSES`, as the installed package declares them."""
    declared: dict[str, list[str]] = {name: [] for name in PURPOSES}
    for line in metadata.requires("g2n2") or ():
        package = re.match(r"[\w.-]+", line)
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", line)
        elsewhere = "sys_platform == 'linux'" in line.replace('"', "'") and sys.platform != "linux"
        if package and extra and extra[1] in declared and not elsewhere:
            declared[extra[1]].append(package[0])
    return declared


def _version(package: str) -> str:
    """The installed version; nothing where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _torch() -> tuple[str, str, list[str]]:
    """The version of torch, the device networks run on, and the backends that work on it."""
    try:
        import torch
    except Exception as fault:  # a broken installation is what this command is asked about
        return "missing", f"cannot be imported: {fault}", []
    backends = ["reference", "packed"]
    if not torch.cuda.is_available():
        threads = torch.get_num_threads()
        return torch.__version__, f"no GPU, {counted(threads, 'CPU thread')}", backends
    gpu = torch.cuda.get_device_properties(0)
    count = torch.cuda.device_count()
    if _version("triton"):
        backends[-1] += " with kernels"
    shown = f"{count} × {gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    return torch.__version__, shown, backends


def _described(folder: str) -> str:
    """A folder, and whether it is there and can be written."""
    if not folder:
        return "not set"
    if not os.path.isdir(folder):
        return f"{folder} (not made yet)"
    return folder if os.access(folder, os.W_OK) else f"{folder} (cannot be written)"


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


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report, figure and runs.")] = Path(
        "build/demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of graphs, weights and batches.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Takes seconds and shows the steps; claims nothing.")
    ] = False,
) -> None:
    """Derive a network with its proof, train it against a GIN.

    Exit code 1 means that a claim about R² does not hold.
    """
    from ..demo import findings
    from ..demo.run import closing, demonstrate
    from ..training.display import plain_console

    chosen = replace(findings.QUICK if quick else findings.FULL, seed=seed)
    try:
        outcome = demonstrate(chosen, out, plain_console())
    except KeyboardInterrupt:
        show.say("\nstopped; begin anew with the same command")
        raise typer.Exit(130) from None
    show.say()
    for claim in outcome.claims:
        show.say(f"{'✓' if claim.holds else '✗ does not hold:'} {claim.text}")
    if quick:
        show.say("--quick trains too briefly to claim anything; leave it out for the real run.")
    for line in closing(outcome, out):
        show.say(line)
    raise typer.Exit(0 if outcome.holds else 1)


def workbench(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8765,
    open_browser: Annotated[bool, typer.Option("--show/--no-show", help="Open a browser.")] = True,
) -> None:
    """Open the workbench in a browser; it is served to this machine alone."""
    from ..workbench.server import serve

    serve(port, open_browser)
