"""Run a benchmark case: refuse what does not fit, check equality, then measure it and its peers."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np
import torch

from g2n2.bench import (
    QUICK,
    Effort,
    EqualityCheck,
    Pass,
    Precision,
    Workload,
    compare,
    drawn_molecules,
    eager_pass,
    fast_pass,
    forward_of,
    measure,
    qm9_sizes,
    reference,
    times_slower,
)
from g2n2.data.assembly import plain_graphs
from g2n2.data.batching import epoch_batches, padding_waste
from g2n2.data.graph_set import GraphSet, Ints, Target
from g2n2.graphs import Adjacency
from g2n2.ops.precision import float32_products
from g2n2.training.processes import out_of_memory
from g2n2.training.run_folder import provenance

from . import block_diagonal, measures
from .cases import PASS_SECONDS, TABLE_SECONDS, Case, Peer
from .tables import kernel_digest

FREE_SHARE = 0.8
"""Of the free memory, at most, for what a case is estimated to keep."""
EXPECTED = {"cpu": 0.2, "cuda": 0.03}
"""Share of the peak that a case reaches at least, to predict its time."""
GRAPHS, NODES = 8, 48
"""Sizes of the equality check: unequal graphs in one batch, small enough for float64."""
PEAK = Effort(repeats=5, seconds=0.1)


class SkippedError(Exception):
    """A case or a peer cannot be measured here; the message says why."""


class DiffersError(Exception):
    """A fast path differs from the reference."""


@dataclass(eq=False)
class Bench:
    """Measures cases on one device.

    Attributes:
        device: Where.
        cache: The cache file of QM9, for real molecules; None for drawn ones.
        quick: Tiny sizes that only show the steps.
    """

    device: torch.device
    cache: Path | None = None
    quick: bool = False
    peaks: dict[Precision, float] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else Effort()

    def run(self, case: Case) -> dict[str, Any]:
        """The result of one case, as it is kept in JSON; a failure is part of the result."""
        started = time.perf_counter()
        case = case.quick() if self.quick else case
        kinds = {"product": self._product, "epoch": self._epoch, "profile": self._profile}
        try:
            with float32_products(case.precision != "32"):
                self._refuse(case)
                result = {"status": "measured", **kinds.get(case.kind, self._network)(case)}
        except SkippedError as reason:
            result = {"status": "skipped", "reason": str(reason)}
        except DiffersError as reason:
            result = {"status": "differs", "reason": str(reason)}
        except Exception as error:  # a kernel may fail in many ways, and other cases still count
            result = {"status": "skipped", "reason": "memory does not suffice"}
            if not out_of_memory(error):
                traceback.print_exc()
                result = {"status": "failed", "reason": _first_line(error)}
        self._clean()
        seconds = time.perf_counter() - started
        self.spent[case.group] = self.spent.get(case.group, 0.0) + seconds
        return {
            "case": case.name,
            "group": case.group,
            "settings": asdict(case) | {"graphs": _source(case, self.cache)},
            "figures": {},
            "check": {},
            "peers": {},
            "reason": "",
            "made_with": self.made_with | {"peak_tflops": dict(self.peaks)},
            "seconds": round(seconds, 3),
        } | result

    @cached_property
    def made_with(self) -> dict[str, Any]:
        """Hardware and versions, and how fast memory is copied."""
        size, effort = (16, QUICK) if self.quick else (0, PEAK)
        speed = measures.bandwidth(self.device, size, effort)
        return provenance(self.device) | {
            "kernels": kernel_digest(),
            "triton": _version("triton"),
            "cuda": torch.version.cuda if self.device.type == "cuda" else None,
            "memory_gib": round(measures.free_memory(self.device) / 2**30, 1),
            "bandwidth_gb_per_second": round(speed / 1e9, 1),
            "when": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        }

    def peak(self, precision: Precision) -> float:
        """TFLOP/s of a large product, measured once."""
        if precision not in self.peaks:
            size, effort = (256, QUICK) if self.quick else (0, PEAK)
            tflops = measures.peak_tflops(precision, self.device, size, effort)
            self.peaks[precision] = round(tflops, 4)
        return self.peaks[precision]

    def _refuse(self, case: Case) -> None:
        """Skip what would not fit, or take too long; a case with a floor may take any time."""
        if case.kind in ("epoch", "product"):
            return
        sizes = _sizes(case)
        need = measures.kept_bytes(case, sizes)
        free = FREE_SHARE * measures.free_memory(self.device)
        if need > free:
            raise SkippedError(f"needs about {need / 2**30:.0f} GiB, {free / 2**30:.0f} are free")
        if case.floor is not None:
            return
        if self.spent.get(case.group, 0.0) > TABLE_SECONDS:
            raise SkippedError(f"the {TABLE_SECONDS:.0f} s for this table were spent")
        flops = measures.useful_flops(sizes, case.width, case.layers, case.training)
        precision: Precision = case.precision if self.device.type == "cuda" else "32"
        seconds = flops / (self.peak(precision) * 1e12 * EXPECTED[self.device.type])
        limit = PASS_SECONDS[self.device.type]
        if seconds > limit:
            raise SkippedError(f"would take about {seconds:.0f} s, more than {limit:.0f} s")

    def _workload(self, case: Case) -> Workload:
        graphs = _graphs(case, None if case.nodes else self.cache)
        shape: dict[str, Any] = {"width": case.width, "layers": case.layers}
        shape["precision"] = case.precision
        return Workload.of(graphs, case.batch, self.device, case.preset, **shape)

    def _network(self, case: Case) -> dict[str, Any]:
        checked = self._compared(case)
        work = self._workload(case)
        memory = measures.PeakMemory(self.device)
        started = time.perf_counter()
        action = fast_pass(work, work.network(), case.training, case.graphed)
        action()
        ready = time.perf_counter() - started
        timing = measure(action, self.device, self.effort)
        ours = action if self.device.type == "cpu" else None  # a GPU's memory is for the peers
        del action
        sizes = work.graphs.sizes
        flops = measures.useful_flops(sizes, case.width, case.layers, case.training)
        tflops = flops / timing.seconds / 1e12
        nodes = float((sizes**3).sum() / (sizes**2).sum())
        figures = {
            "graphs_per_second": len(sizes) / timing.seconds,
            "milliseconds_per_batch": 1e3 * timing.seconds / len(work.batches),
            "spread": timing.spread,
            "repeats": timing.repeats,
            "tflops": tflops,
            "share_of_peak": tflops / self.peak(case.precision),
            "flops_per_byte": measures.flops_per_byte(case.width, nodes, case.precision),
            "peak_bytes": memory.bytes(),
            "ready_seconds": ready,
            "padding_waste": padding_waste(sizes, work.batches),
        }
        peers = {peer: self._peer(case, work, peer, timing.seconds, ours) for peer in case.peers}
        return {"figures": figures, "check": checked, "peers": peers}

    def _peer(
        self, case: Case, work: Workload, peer: Peer, seconds: float, ours: Pass | None
    ) -> dict[str, Any]:
        """A peer on the same batches, or why not; in turns with ours if that is given."""
        self._clean()
        try:
            action = self._peer_pass(case, work, peer)
            action()
            timing = measure(action, self.device, self.effort)
            ratio = timing.seconds / seconds
            if ours is not None:
                ratio = times_slower(ours, action, self.device, self.effort.repeats)
        except SkippedError as reason:
            return {"skipped": str(reason)}
        except (RuntimeError, MemoryError) as error:
            small = out_of_memory(error)
            return {"skipped": "memory does not suffice" if small else _first_line(error)}
        graphs = len(work.graphs) / timing.seconds
        return {"graphs_per_second": graphs, "spread": timing.spread, "ratio": ratio}

    def _peer_pass(self, case: Case, work: Workload, peer: Peer) -> Pass:
        """PPGN the way ours goes, the reference and the released algorithm step by step."""
        if peer == "ppgn":
            return fast_pass(work, work.network("PPGN", "ppgn"), case.training, case.graphed)
        model = work.network()
        if peer == "reference":
            model = reference(model, torch.float32)
            return eager_pass(work, model, forward_of(model), case.training)
        need = measures.block_diagonal_bytes(case, work.graphs.sizes)
        if need > FREE_SHARE * measures.free_memory(self.device):
            raise SkippedError(f"needs about {need / 2**30:.0f} GiB")
        return eager_pass(
            work, model, lambda batch: block_diagonal.network(model, batch), case.training
        )

    def _product(self, case: Case) -> dict[str, Any]:
        x, y = measures.operands(case, self.device)
        product = measures.our_product(self.device)
        checked = _accepted(measures.compare_product(x, y, product, case.precision))
        timings = measures.time_products(x, y, product, self.device, self.effort)
        ours, theirs = timings["ours"], timings["bmm"]
        flops = 2.0 * case.batch * case.width * case.nodes**3 / 1e12
        figures = {
            "tflops": flops / ours.seconds,
            "tflops_of_contiguous": flops / timings["contiguous"].seconds,
            "share_of_peak": flops / ours.seconds / self.peak(case.precision),
            "milliseconds_per_batch": 1e3 * ours.seconds,
            "spread": ours.spread,
        }
        ratio = theirs.seconds / ours.seconds
        bmm = {"tflops": flops / theirs.seconds, "spread": theirs.spread, "ratio": ratio}
        return {"figures": figures, "check": checked, "peers": {"bmm": bmm}}

    def _profile(self, case: Case) -> dict[str, Any]:
        checked = self._compared(case)
        work = self._workload(case)
        return {
            "figures": measures.profile(fast_pass(work, work.network(), True)),
            "check": checked,
        }

    def _epoch(self, case: Case) -> dict[str, Any]:
        if self.cache is None:
            raise SkippedError("QM9's cache file is not here; name it with --cache")
        checked = self._compared(case)
        figures = measures.time_epochs(case, self.cache, self.device.type, self.quick)
        return {"figures": figures, "check": checked}

    def _compared(self, case: Case) -> dict[str, Any]:
        """Check small graphs in every way the batches of a case go."""
        few = replace(case, batch=min(case.batch, GRAPHS), nodes=min(case.nodes, NODES), batches=1)
        found = {}
        for large in ways(case, self.device):
            with as_large(large, self.device):
                work = self._workload(few)
                found = _accepted(compare(work, case.training, case.graphed))
        self._clean()
        return found

    def _clean(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def ways(case: Case, device: torch.device) -> list[bool]:
    """Whether batches of a case are too large to keep the hidden layer: none, all, or some."""
    if device.type == "cpu" and not case.training:
        return [True]  # nothing is kept for a backward pass
    sizes = _sizes(case)
    batches = epoch_batches(sizes, case.batch, 0, 0)
    most = getattr(*_threshold(device))
    return sorted({measures.hidden_bytes(case, sizes[chosen]) > most for chosen in batches})


@contextmanager
def as_large(large: bool, device: torch.device) -> Iterator[None]:
    """Let small graphs go the way of large ones: no hidden layer is kept."""
    module, name = _threshold(device)
    before = getattr(module, name)
    setattr(module, name, 0 if large else before)
    try:
        yield
    finally:
        setattr(module, name, before)


def _threshold(device: torch.device) -> tuple[ModuleType, str]:
    """The module and name of the largest hidden layer that is kept."""
    if device.type == "cuda":
        from g2n2.ops.pair_mlp import streamed

        return streamed, "HIDDEN_BYTES"
    from g2n2.ops import packed_mlp

    return packed_mlp, "KEPT_BYTES"


def _accepted(checked: EqualityCheck) -> dict[str, Any]:
    if not checked.holds:
        raise DiffersError(str(checked))
    return asdict(checked)


def _graphs(case: Case, cache: Path | None) -> GraphSet:
    """The graphs of one pass: of a given size, QM9's own, or drawn at QM9's sizes."""
    count = case.batch * case.batches
    if case.nodes:
        return grids(count, case.nodes) if case.shape == "grid" else sparse(count, case.nodes)
    return real_molecules(count, cache) if cache else drawn_molecules(count)


def _sizes(case: Case) -> Ints:
    count = case.batch * case.batches
    return np.full(count, case.nodes) if case.nodes else qm9_sizes(count)


def _source(case: Case, cache: Path | None) -> str:
    if case.kind == "product":
        return "random matrices"
    if case.nodes:
        return "grids" if case.shape == "grid" else "random graphs"
    return "QM9's own" if cache or case.kind == "epoch" else "drawn at QM9's sizes"


def real_molecules(count: int, cache: Path, seed: int = 0) -> GraphSet:
    """Random molecules of QM9, with one target of mean 0 and deviation 1."""
    from g2n2.data.qm9 import load_qm9

    everything = load_qm9(track="distance", targets="r2", cache=cache, progress=False)
    draw = np.random.default_rng(seed)
    chosen = everything.select(draw.choice(len(everything), count, replace=count > len(everything)))
    targets = (chosen.targets - everything.targets.mean()) / everything.targets.std()
    return replace(chosen, targets=targets)


def sparse(count: int, nodes: int) -> GraphSet:
    """Random graphs with three edges for each node."""
    graphs = [nx.gnm_random_graph(nodes, 3 * nodes, seed) for seed in range(count)]
    return _featureless("random graphs", [nx.to_numpy_array(graph) for graph in graphs])


def grids(count: int, nodes: int) -> GraphSet:
    """Square grids, of the largest side that needs no more nodes."""
    side = int(np.sqrt(nodes))
    return _featureless("grids", [nx.to_numpy_array(nx.grid_2d_graph(side, side))] * count)


def _featureless(name: str, graphs: list[Adjacency]) -> GraphSet:
    nothing = np.zeros((sum(map(len, graphs)), 0), dtype=np.float32)
    columns, targets = (Target("value"),), np.zeros((len(graphs), 1))
    return plain_graphs(name, graphs, nothing, targets=targets, columns=columns)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
