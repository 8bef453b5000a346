"""Run a case: refuse what cannot fit, check equality, then measure it and its peers."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ..data.batching import padding_waste
from ..ops.precision import float32_products
from ..training.processes import out_of_memory
from ..training.run_folder import provenance
from . import work
from .cases import PASS_SECONDS, TABLE_SECONDS, Case, Peer, Precision
from .epochs import time_epochs
from .equality import Check, check
from .molecules import sizes_of, source_of
from .networks import Pass, Setting, our_pass, peer_pass
from .precision import PEAK, bandwidth, peak_tflops
from .products import Operands, check_product, our_product, product_flops, time_products
from .profiling import profile
from .results import Result
from .timing import Effort, PeakMemory, device_memory, measure, times_slower

ROOM = 0.8
"""Of the free memory, at most, for what a case is estimated to keep."""


class Skip(Exception):
    """A case or a peer that cannot be measured here; the message is the reason."""


class Differs(Exception):
    """A fast path that gives other numbers than the reference."""


@dataclass(eq=False)
class Bench:
    """Measures cases on one device.

    Attributes:
        device: Where.
        cache: The cache file of QM9, for real molecules; drawn ones where None.
        quick: Sizes and clocks that show the steps only.
        clock: Seconds, of which a table has so many.
    """

    device: torch.device
    cache: Path | None = None
    quick: bool = False
    peaks: dict[Precision, float] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter

    @property
    def effort(self) -> Effort:
        return Effort(repeats=2, seconds=0.0, most=0.5) if self.quick else Effort()

    def run(self, case: Case) -> Result:
        """One case, equality first; what goes wrong is part of the result."""
        started = self.clock()
        case = case.quick() if self.quick else case
        found: dict[str, Any] = {"status": "measured"}
        try:
            with float32_products(case.precision != "32"):
                self._refuse(case)
                measuring = {
                    "product": self._product,
                    "epoch": self._epoch,
                    "profile": self._profile,
                }
                found |= measuring.get(case.kind, self._network)(case)
        except Skip as reason:
            found = {"status": "skipped", "reason": str(reason)}
        except Differs as reason:
            found = {"status": "differs", "reason": str(reason), "check": reason.args[1]}
        except Exception as error:  # a kernel may fail in many ways, and other cases still count
            found = {"status": "skipped", "reason": "memory does not suffice"}
            if not out_of_memory(error):
                traceback.print_exc()
                found = {"status": "failed", "reason": _in_a_line(error)}
        self._clean()
        seconds = self.clock() - started
        self.spent[case.group] = self.spent.get(case.group, 0.0) + seconds
        return Result(
            case.name,
            case.group,
            settings=case.settings() | {"graphs": source_of(case, self.cache)},
            made_with=self.made_with | {"peak_tflops": dict(self.peaks)},
            seconds=round(seconds, 3),
            **found,
        )

    @cached_property
    def made_with(self) -> dict[str, Any]:
        """Hardware and versions of this run, and how fast it copies memory."""
        size, effort = (16, self.effort) if self.quick else (0, PEAK)
        return provenance(self.device) | {
            "triton": _version("triton"),
            "cuda": torch.version.cuda if self.device.type == "cuda" else None,
            "memory_gib": round(device_memory(self.device) / 2**30, 1),
            "bandwidth_gb_per_second": round(bandwidth(self.device, size, effort) / 1e9, 1),
            "when": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        }

    def peak(self, precision: Precision) -> float:
        """TFLOP/s of a large product, measured once in a run."""
        if precision not in self.peaks:
            size, effort = (256, self.effort) if self.quick else (0, PEAK)
            self.peaks[precision] = round(peak_tflops(precision, self.device, size, effort), 4)
        return self.peaks[precision]

    def _refuse(self, case: Case) -> None:
        """Skip what would not fit; what has a floor is measured however long it takes."""
        if case.kind in ("epoch", "product"):
            return
        sizes = sizes_of(case)
        need, room = work.kept_bytes(case, sizes), ROOM * device_memory(self.device)
        if need > room:
            raise Skip(f"needs about {need / 2**30:.0f} GiB, {room / 2**30:.0f} are free")
        if case.floor is not None:
            return
        if self.spent.get(case.group, 0.0) > TABLE_SECONDS:
            raise Skip(f"the {TABLE_SECONDS:.0f} s for this table were spent")
        flops = work.useful_flops(sizes, case.width, case.layers, case.training)
        precision = case.precision if self.device.type == "cuda" else "32"
        speed = self.peak(precision) * 1e12 * work.EXPECTED[self.device.type]
        limit = PASS_SECONDS[self.device.type]
        if flops / speed > limit:
            raise Skip(f"would take about {flops / speed:.0f} s, more than {limit:.0f} s")

    def _network(self, case: Case) -> dict[str, Any]:
        checked = self._checked(check(case, self.device))
        self._clean()
        setting = Setting.of(case, self.device, None if case.nodes else self.cache)
        memory = PeakMemory(self.device)
        started = time.perf_counter()
        action = our_pass(setting, setting.network())
        action()
        ready = time.perf_counter() - started
        timing = measure(action, self.device, self.effort)
        ours = action if self.device.type == "cpu" else None  # a GPU's memory is the peers'
        del action
        sizes = setting.graphs.sizes
        flops = work.useful_flops(sizes, case.width, case.layers, case.training)
        tflops = flops / timing.seconds / 1e12
        figures = {
            "graphs_per_second": len(sizes) / timing.seconds,
            "milliseconds_per_batch": 1e3 * timing.seconds / len(setting.batches),
            "spread": timing.spread,
            "repeats": timing.repeats,
            "tflops": tflops,
            "share_of_peak": tflops / self.peak(case.precision),
            "flops_per_byte": work.intensity(
                case.width, float((sizes**3).sum() / (sizes**2).sum()), case.precision
            ),
            "peak_bytes": memory.bytes(),
            "ready_seconds": ready,
            "padding_waste": padding_waste(sizes, setting.batches),
        }
        peers = {peer: self._peer(setting, peer, timing.seconds, ours) for peer in case.peers}
        return {"figures": figures, "check": asdict(checked), "peers": peers}

    def _peer(
        self, setting: Setting, peer: Peer, seconds: float, ours: Pass | None
    ) -> dict[str, Any]:
        """A peer on the same batches, or why not; in turns with ours where that is given."""
        case, sizes = setting.case, setting.graphs.sizes
        self._clean()
        try:
            if peer == "block-diagonal":
                need = work.block_diagonal_bytes(case, sizes)
                if need > ROOM * device_memory(self.device):
                    raise Skip(f"needs about {need / 2**30:.0f} GiB")
            action = peer_pass(setting, peer)
            action()
            timing = measure(action, self.device, self.effort)
            ratio = timing.seconds / seconds
            if ours is not None:
                ratio = times_slower(ours, action, self.device, self.effort.repeats)
        except Skip as reason:
            return {"skipped": str(reason)}
        except (RuntimeError, MemoryError) as error:
            small = out_of_memory(error)
            return {"skipped": "memory does not suffice" if small else _in_a_line(error)}
        return {
            "graphs_per_second": len(sizes) / timing.seconds,
            "spread": timing.spread,
            "ratio": ratio,
        }

    def _product(self, case: Case) -> dict[str, Any]:
        operands, product = Operands.of(case, self.device), our_product(self.device)
        checked = self._checked(check_product(operands, product, case))
        timings = time_products(operands, product, self.device, self.effort)
        ours, theirs = timings["ours"], timings["bmm"]
        flops = product_flops(case) / 1e12
        figures = {
            "tflops": flops / ours.seconds,
            "tflops_of_contiguous": flops / timings["contiguous"].seconds,
            "share_of_peak": flops / ours.seconds / self.peak(case.precision),
            "milliseconds_per_batch": 1e3 * ours.seconds,
            "spread": ours.spread,
        }
        bmm = {
            "tflops": flops / theirs.seconds,
            "spread": theirs.spread,
            "ratio": theirs.seconds / ours.seconds,
        }
        return {"figures": figures, "check": asdict(checked), "peers": {"bmm": bmm}}

    def _profile(self, case: Case) -> dict[str, Any]:
        checked = self._checked(check(case, self.device))
        setting = Setting.of(case, self.device, self.cache)
        figures = profile(our_pass(setting, setting.network()))
        return {"figures": figures, "check": asdict(checked)}

    def _epoch(self, case: Case) -> dict[str, Any]:
        if self.cache is None:
            raise Skip("QM9's cache file is not here; name it with --option cache=PATH")
        checked = self._checked(check(case, self.device))
        figures = time_epochs(case, self.cache, self.device.type, self.quick)
        return {"figures": figures, "check": asdict(checked)}

    def _checked(self, checked: Check) -> Check:
        if checked.passed:
            return checked
        raise Differs(
            f"outputs are off by {checked.outputs:.1e} (allowed {checked.outputs_allowed:.1e}), "
            f"the gradient of {checked.worst} by {checked.gradients:.1e} (allowed "
            f"{checked.gradients_allowed:.1e})",
            asdict(checked),
        )

    def _clean(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _in_a_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
