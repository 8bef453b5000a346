"""Run a benchmark case: skip what does not fit, check equality, then time it and its rivals."""

from __future__ import annotations

import gc
import json
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch

from g2n2 import bench
from g2n2.atomic_files import disk_errors, replace_file, sole_builder
from g2n2.compiler.marks import marks_named
from g2n2.data.graph_set import GraphSet, Target, plain_graphs
from g2n2.data.qm9 import load_qm9
from g2n2.errors import DataError
from g2n2.ops.precision import float32_products
from g2n2.training.processes import out_of_memory
from g2n2.training.run_folder import provenance

from . import block_diagonal, measures, peers
from .cases import Case, Peer

Row = Mapping[str, Any]
"""A result as it is kept in JSON."""
Figures = dict[str, Any]
MANY = 10**6
PEAK = bench.Effort(repeats=5, seconds=0.1)
NO_MEMORY = "memory does not suffice"
MODULES = {"floydnet": "floydnet", "gine": "torch_geometric", "schnet": "torch_geometric"}
"""What a peer needs."""


class SkippedError(Exception):
    """A case or a peer cannot be measured here; the message says why."""


class DiffersError(Exception):
    """A fast path differs from the reference."""


def read_results(folder: Path) -> list[Row]:
    """All kept results, by file: one for each group and machine."""
    return [row for path in sorted(folder.glob("*.json")) for row in read_rows(path)]


def read_rows(path: Path) -> list[Row]:
    """The results of one group on one machine."""
    try:
        return [*json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and measure again") from None


def keep_result(folder: Path, row: Row) -> Path:
    """Write a result beside those of other cases; it replaces an older one of its case."""
    device = re.sub(r"[^a-z0-9]+", "-", str(row["made_with"]["device"]).lower()).strip("-")
    path = folder / f"{row['group']}.{device}.json"
    with sole_builder(path), disk_errors(f"write {path}"):
        kept = read_rows(path) if path.is_file() else []
        rows = {old["case"]: old for old in kept} | {row["case"]: row}
        text = json.dumps(list(rows.values()), indent=1, ensure_ascii=False)
        replace_file(path, f"{text}\n".encode(), shared=True)
    return path


@dataclass(eq=False)
class Bench:
    """Measures cases on one device."""

    device: torch.device
    cache: Path | None = None  # the cache file of QM9, for real molecules; None for drawn ones
    quick: bool = False  # tiny sizes that only show the steps
    # TFLOP/s by precision, as far as measured
    peaks: dict[bench.Precision, float] = field(default_factory=dict)

    @property
    def effort(self) -> bench.Effort:
        return bench.QUICK if self.quick else bench.Effort()

    def run(self, case: Case) -> dict[str, Any]:
        """The result of one case; a failure is part of the result."""
        started = time.perf_counter()
        case = case.quick() if self.quick else case
        kinds = {"product": self._product, "epoch": self._epoch, "profile": self._profile}
        try:
            with float32_products(case.precision != "32"):
                result = {"status": "measured", **kinds.get(case.kind, self._network)(case)}
        except SkippedError as reason:
            result = {"status": "skipped", "reason": str(reason)}
        except DiffersError as reason:
            result = {"status": "differs", "reason": str(reason)}
        except Exception as error:  # a kernel may fail in many ways, and other cases still count
            result = {"status": "skipped", "reason": NO_MEMORY}
            if not out_of_memory(error):
                traceback.print_exc()
                result = {"status": "failed", "reason": _first_line(error)}
        self._clean()
        return {
            "case": case.name,
            "group": case.group,
            "settings": asdict(case) | {"graphs": _source(case, self.cache)},
            "figures": {},
            "check": {},
            "peers": {},
            "reason": "",
            "made_with": self.made_with | {"peak_tflops": dict(self.peaks)},
            "seconds": round(time.perf_counter() - started, 3),
        } | result

    @cached_property
    def made_with(self) -> dict[str, Any]:
        """Hardware and versions, and how fast memory is copied."""
        size, effort = (16, bench.QUICK) if self.quick else (0, PEAK)
        speed = measures.bandwidth(self.device, size, effort)
        return provenance(self.device) | {
            "kernels": measures.kernel_digest(),
            "triton": _version("triton"),
            "cuda": torch.version.cuda if self.device.type == "cuda" else None,
            "bandwidth_gb_per_second": round(speed / 1e9, 1),
            "when": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        }

    def peak(self, precision: bench.Precision) -> float:
        """TFLOP/s of a large product, measured once."""
        if precision not in self.peaks:
            size, effort = (256, bench.QUICK) if self.quick else (0, PEAK)
            tflops = measures.peak_tflops(precision, self.device, size, effort)
            self.peaks[precision] = round(tflops, 4)
        return self.peaks[precision]

    def _workload(self, case: Case) -> bench.Workload:
        names = ("width", "layers", "precision", "grammar", "bonds")
        shape: Figures = {name: getattr(case, name) for name in names}
        shape["options"] = {"marks": marks_named(case.marks), "trunk": case.trunk}
        graphs = _graphs(case, self.cache)
        return bench.Workload.of(graphs, case.batch, self.device, case.preset, **shape)

    def _network(self, case: Case) -> Figures:
        checked = self._compared(case)
        work = self._workload(case)
        memory = measures.PeakMemory(self.device)
        started = time.perf_counter()
        action = bench.fast_pass(work, work.network(), case.training, case.graphed)
        action()
        ready = time.perf_counter() - started
        timing = bench.measure(action, self.device, self.effort)
        ours = action if self.device.type == "cpu" else None  # a GPU's memory is for the peers
        del action
        sizes = work.graphs.sizes
        copies = measures.copies(work)
        tflops = copies * measures.useful_flops(case, sizes) / timing.seconds / 1e12
        figures = {
            "graphs_per_second": len(sizes) / timing.seconds,
            "milliseconds_per_batch": 1e3 * timing.seconds / len(work.batches),
            "spread": timing.spread,
            "repeats": timing.repeats,
            "tflops": tflops,
            "share_of_peak": tflops / self.peak(case.precision),
            "flops_per_byte": measures.flops_per_byte(case, sizes),
            "peak_bytes": memory.bytes(),
            "ready_seconds": ready,
            "copies": copies,
        }
        beside = {peer: self._peer(case, work, peer, timing.seconds, ours) for peer in case.peers}
        return {
            "figures": figures,
            "check": checked,
            "peers": beside,
        }

    def _peer(
        self, case: Case, work: bench.Workload, peer: Peer, seconds: float, ours: bench.Pass | None
    ) -> Figures:
        """A peer on the same batches, or why not; in turns with ours if that is given."""
        self._clean()
        try:
            action = self._peer_pass(case, work, peer)
            action()
            timing = bench.measure(action, self.device, self.effort)
            ratio = timing.seconds / seconds
            if ours is not None:
                ratio = bench.times_slower(ours, action, self.device, self.effort.repeats)
        except SkippedError as reason:
            return {"skipped": str(reason)}
        except (RuntimeError, MemoryError) as error:
            return {"skipped": NO_MEMORY if out_of_memory(error) else _first_line(error)}
        graphs = len(work.graphs) / timing.seconds
        return {
            "graphs_per_second": graphs,
            "spread": timing.spread,
            "ratio": ratio,
        }

    def _peer_pass(self, case: Case, work: bench.Workload, peer: Peer) -> bench.Pass:
        """PPGN the way ours goes, what is compiled as a CUDA graph, all others step by step."""
        if peer == "ppgn":
            return bench.fast_pass(work, work.network("PPGN", "ppgn"), case.training, case.graphed)
        if peer in MODULES and find_spec(MODULES[peer]) is None:
            raise SkippedError(f"{MODULES[peer]} is not installed")
        if peer in peers.SPARSE:
            return peers.sparse_pass(work, peer, case.training)
        if peer in ("compiled", "floydnet") and self.device.type != "cuda":
            raise SkippedError("CUDA graphs need a GPU")
        if peer == "floydnet":
            return peers.compiled_pass(work, peers.Floyd(work).to(self.device), case.training)
        model = work.network()
        if peer == "compiled":
            model = bench.reference(model, torch.float32)
            return peers.compiled_pass(work, model, case.training)
        if peer == "reference":
            model = bench.reference(model, torch.float32)
            return bench.eager_pass(work, model, bench.forward_of(model), case.training)
        forward = block_diagonal.forward_of(model)
        return bench.eager_pass(work, model, forward, case.training)

    def _product(self, case: Case) -> Figures:
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

    def _profile(self, case: Case) -> Figures:
        checked, work = self._compared(case), self._workload(case)
        shares = measures.profile(bench.fast_pass(work, work.network(), training=True))
        return {"figures": shares, "check": checked}

    def _epoch(self, case: Case) -> Figures:
        if self.cache is None:
            raise SkippedError("QM9's cache file is not here; name it with --cache")
        checked = self._compared(case)
        figures = measures.time_epochs(case, self.cache, self.device.type, self.quick)
        return {"figures": figures, "check": checked}

    def _compared(self, case: Case) -> Figures:
        """Check unequal graphs, small enough for float64, with hidden layers kept and not kept.

        On a GPU more of them: in tf32 single units that a ReLU turns on or off weigh less.
        """
        count = 32 if self.device.type == "cuda" else 8
        few = case.at_most(batch=count, nodes=48, batches=1)
        if case.marks.isdigit():  # drawn at random; as many as there are vertices are all
            few = replace(few, marks=str(MANY))
        for keep in (True, False):
            with hidden_layers(keep, self.device):
                checked = _accepted(bench.compare(self._workload(few), case.training, case.graphed))
        self._clean()
        return checked

    def _clean(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


@contextmanager
def hidden_layers(keep: bool, device: torch.device) -> Iterator[None]:
    """Keep no hidden layer for the backward pass, as with graphs that are too large for it."""
    from g2n2.ops.packed import KEPT_BYTES

    before = KEPT_BYTES[device.type]
    KEPT_BYTES[device.type] = before if keep else 0
    try:
        yield
    finally:
        KEPT_BYTES[device.type] = before


def _accepted(checked: bench.EqualityCheck) -> Figures:
    if not checked.holds:
        raise DiffersError(str(checked))
    return asdict(checked)


def _graphs(case: Case, cache: Path | None) -> GraphSet:
    """The graphs of one pass: of a given size, QM9's own, or drawn at QM9's sizes."""
    count = case.batch * case.batches
    if case.nodes:
        return sized_graphs(case.shape, count, case.nodes)
    return real_molecules(count, cache) if cache else bench.drawn_molecules(count)


def _source(case: Case, cache: Path | None) -> str:
    if case.kind == "product":
        return "random matrices"
    if case.nodes:
        return "grids" if case.shape == "grid" else "random graphs"
    return "QM9's own" if cache or case.kind == "epoch" else "drawn at QM9's sizes"


def real_molecules(count: int, cache: Path, seed: int = 0) -> GraphSet:
    """Random molecules of QM9, with one target of mean 0 and deviation 1."""
    everything = _qm9(cache)
    draw = np.random.default_rng(seed)
    chosen = everything.select(draw.choice(len(everything), count, replace=count > len(everything)))
    targets = (chosen.targets - everything.targets.mean()) / everything.targets.std()
    return replace(chosen, targets=targets)


@lru_cache(maxsize=1)
def _qm9(cache: Path) -> GraphSet:
    return load_qm9(track="distance", targets="r2", cache=cache, progress=False)


def sized_graphs(shape: str, count: int, nodes: int) -> GraphSet:
    """Random graphs with three edges for each node, or the largest square grids that fit."""
    side = int(np.sqrt(nodes))
    if shape == "grid":
        graphs = [nx.to_numpy_array(nx.grid_2d_graph(side, side))] * count
    else:
        drawn = (nx.gnm_random_graph(nodes, 3 * nodes, seed) for seed in range(count))
        graphs = [nx.to_numpy_array(graph) for graph in drawn]
    nothing = np.zeros((sum(map(len, graphs)), 0), dtype=np.float32)
    columns, targets = (Target("value"),), np.zeros((count, 1))
    return plain_graphs(f"{shape} graphs", graphs, nothing, targets=targets, columns=columns)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
