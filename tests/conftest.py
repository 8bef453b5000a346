"""Without a GPU, Triton's kernels run in its interpreter.

Triton reads the variable while kernels are decorated, its own library included, so it has to stand
before anything imports triton: here, before any test module is read. A process that has a GPU runs
the same tests on compiled kernels.
"""

import gc
import os
from collections import Counter
from importlib.util import find_spec
from itertools import islice

import pytest
import torch
from hypothesis import settings

# A busy machine is no fault, and what fails on one machine fails on all.
settings.register_profile("g2n2", deadline=None, derandomize=True)
settings.load_profile("g2n2")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


def pytest_collection_finish():
    """What was imported stays: each `gc.collect` of a training run would walk it for a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def one_thread():
    """Where matrices are small: on a busy machine threads wait five times longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def poisoned(monkeypatch):
    """`torch.empty` and its kin give NaN, so that whatever is read before it is written shows."""

    def poison(owner, name):
        plain = getattr(owner, name)

        def full_of_nan(*args, **options):
            made = plain(*args, **options)
            return made.fill_(torch.nan) if made.is_floating_point() else made

        monkeypatch.setattr(owner, name, full_of_nan)

    poison(torch, "empty")
    poison(torch, "empty_like")
    poison(torch.Tensor, "new_empty")


class Counted:
    """A kernel that says when it is launched."""

    def __init__(self, name, kernel, launches):
        self.name, self.kernel, self.launches = name, kernel, launches

    def __getitem__(self, grid):
        self.launches[self.name] += 1
        return self.kernel[grid]


@pytest.fixture
def launches(monkeypatch):
    """How often each kernel has been launched, by its name."""
    pytest.importorskip("triton", reason="the kernels need triton")
    from g2n2.ops import (
        adam,
        gathering,
        pair_mlp,
        pooling,
        selecting,
        sums,
        tiled_rules,
    )
    from g2n2.ops.rule_kernels import kernels as rule_kernels

    counts = Counter()
    families = (adam, pair_mlp, gathering, pooling, rule_kernels, selecting)
    for module in (*families, sums, tiled_rules):
        for name in [name for name in vars(module) if name.endswith("_kernel")]:
            family = module.__name__.split(".")[2]
            counted = Counted(f"{family}.{name}", getattr(module, name), counts)
            monkeypatch.setattr(module, name, counted)
    return counts


@pytest.fixture
def by_kernels(monkeypatch):
    """Small graphs are computed as on a GPU; without one, in Triton's interpreter."""
    pytest.importorskip("triton", reason="the kernels need triton")
    from g2n2.nn import packed
    from g2n2.ops import packing

    monkeypatch.setattr(packed, "has_kernels", lambda _, dtype: dtype in packed.KERNEL_DTYPES)
    monkeypatch.setattr(packing, "pads", lambda _, most: most <= packing.PADDED_NODES)


@pytest.fixture
def bfloat16_in_the_interpreter(monkeypatch):
    """Triton's interpreter keeps bfloat16 as whole numbers, and would multiply those matrices."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    interpreter = pytest.importorskip("triton.runtime.interpreter", reason="triton is missing")
    plain = interpreter.InterpreterBuilder.create_dot

    def widened(handle):
        if handle.dtype.scalar != interpreter.tl.bfloat16:
            return handle
        bits = handle.data.astype("uint32") << 16
        return interpreter.TensorHandle(bits.view("float32"), interpreter.tl.float32)

    def create_dot(self, a, b, *rest):
        return plain(self, widened(a), widened(b), *rest)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)


@pytest.fixture(scope="session")
def some_qm9(tmp_path_factory):
    """A cache with every tenth molecule of QM9, built once for all workers."""
    for package in ("qm9pack", "rdkit"):
        if find_spec(package) is None:
            pytest.skip(f"QM9 comes with the package {package}, which is not installed")
    from g2n2.atomic_files import sole_builder
    from g2n2.data.qm9 import QM9_TARGETS, write_cache
    from g2n2.data.qm9_build import find_source, read_entries, rebuild

    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    path = shared / "qm9.cache"
    with sole_builder(path):
        if not path.exists():
            entries = read_entries(find_source(), [target.column for target in QM9_TARGETS])
            write_cache(path, rebuild(islice(entries, 0, None, 10)), {"origin": "qm9pack"})
    return path
