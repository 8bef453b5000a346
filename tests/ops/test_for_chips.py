"""Kernels compiled for chips that need not be there: that they compile, and fit their memory."""

import os
import subprocess
import sys

import pytest

from g2n2.ops.tiling import SHARED_BYTES

COMPILE = """
import sys
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from g2n2.ops.adam import kernels as adam
from g2n2.ops.adam.triton import BLOCK
from g2n2.ops.gathering import kernels as gathering
from g2n2.ops.norms import kernels as norms
from g2n2.ops.pair_mlp import rows
from g2n2.ops.pair_mlp.kernels import edges
from g2n2.ops.pooling import kernels as pooling
from g2n2.ops.pooling.triton import CHANNELS as POOLED, ENTRIES, MANY, ROW
from g2n2.ops.rule_kernels import kernels as rule_kernels
from g2n2.ops.rule_kernels.triton import CHANNELS, REGISTERS, WARPS
from g2n2.ops.selecting import kernels as selecting
from g2n2.ops.selecting.triton import OPERANDS, ROWS as SELECTED
from g2n2.ops.sums import kernels as sums
from g2n2.ops.sums.triton import COLUMNS, ROWS
from g2n2.ops.tiled_rules import kernels as tiled_rules
from g2n2.ops.tiled_rules.triton import CHANNELS as TILED, TILE
from g2n2.ops.tiling import SHARED_BYTES

chip, dtype, w = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
size = 4 if dtype == "fp32" else 2
wide = {"DGAIN", "SUMS", "ALONG", "SCALE", "OUT_SCALE"}
whole_numbers = dict(SIZES="i32", WIDTHS="i32", NODES="i32", OWNERS="i32", PAIRS="i64", FLAGS="i64")
whole_numbers |= {name: "i64" for name in ("NODE_TOTAL", "PAIR_TOTAL", "CHOSEN", "COUNT", "TOTALS")}
whole_numbers |= dict(NODE_STARTS="i64", PAIR_STARTS="i64", OUT_SIZES="i32", OUT_NODES="i32", OUT_PAIRS="i64")
numbers = {"small", "clip", "log_beta1", "log_beta2", "beta1", "beta2", "per_node", "per_pair"}
modules = dict(
    adam=adam, edges=edges, gathering=gathering, norms=norms, pooling=pooling,
    rule_kernels=rule_kernels, selecting=selecting, sums=sums, tiled_rules=tiled_rules,
)
left = {
    f"{family}.{name}"
    for family, module in modules.items()
    for name in vars(module)
    if name.endswith("_kernel")
}


def show(name, warps=4, full=(), whole=None, **settings):
    family, _, own = name.partition(".")
    kernel = getattr(modules[family], own)
    whole = whole_numbers | (whole or {})
    kinds = {}
    for argument in kernel.arg_names:
        if argument in settings:
            kinds[argument] = "constexpr"
        elif argument.isupper() and argument not in ("N", "H"):
            kind = "fp32" if argument in wide | {*full} else dtype
            kinds[argument] = "*" + whole.get(argument, kind)
        else:
            kinds[argument] = "fp32" if argument in numbers else "i32"
    settings = {key: value for key, value in settings.items() if key in kinds}
    # As launched: pointers and the widths of tensors are multiples of 16, so loads are pipelined.
    even = [
        i
        for i, argument in enumerate(kernel.arg_names)
        if kinds[argument].startswith("*") or argument == "H" or "stride" in argument
    ]
    made = triton.compile(
        ASTSource(kernel, kinds, constexprs=settings, attrs={(i,): [["tt.divisibility", 16]] for i in even}),
        target=GPUTarget("cuda", chip, 32),
        options={"num_warps": warps},
    )
    print(name, made.metadata.shared)
    left.discard(name)


show("edges.finish_kernel", S=w, P=w, ADD=True, COUNTED=True, BM=64)
chip_bytes = SHARED_BYTES[chip]
if dtype != "fp32":
    show("edges.out_kernel", 4 if w <= 64 else 8, SO=w, PO=w, BM=rows.TALL, BH=rows.out_width(w, 8 * w, size, chip_bytes), BIAS=True, ADD=True, COUNTED=True, PRECISION="tf32")
left.discard("edges.out_kernel")
tall = rows.back_height(w, 64, size, chip_bytes)
show("edges.back_kernel", SO=w, PO=w, BM=tall, BH=64, WEIGHT=dtype != "fp32", COUNTED=True, PRECISION="tf32")
taken = max(16, SELECTED * 128 // max(128, w * size))
show("selecting.select_kernel", S=w, P=w, BM=taken, BK=OPERANDS, PRECISION="tf32")
show("norms.forward_kernel", S=w, P=w, BM=64)
show("norms.backward_kernel", S=w, P=w, BM=64, ADD=True, PAST=True)
multiplying = dict(S=w, P=32, BC=CHANNELS * 2 // size, POWER=1, PRECISION="tf32x3")
show("rule_kernels.product_kernel", WARPS * 2 // size, **multiplying)
show("rule_kernels.product_back_kernel", WARPS * 2 // size, **multiplying)
entries = dict(S=w, P=32, PS=w, HADAMARD=True, DIAGONAL=True, MV=True, POWER=1, TAIL=True)
show("rule_kernels.entries_kernel", 2, **entries)
show("rule_kernels.entries_back_kernel", 2, **entries)
for turned in ((False, False), (True, False), (False, True)):
    show("tiled_rules.matrix_matrix_kernel", 8, S=w, T=TILE, BC=TILED, PRECISION="tf32x3",
         TURN_X=turned[0], TURN_Y=turned[1])
show("tiled_rules.matrix_column_kernel", 2, S=w, BM=32, BC=64, TURN=True)
if w < 256:  # the others differ little between widths, and take what they take at the largest
    left = set()
else:
    pools = dict(SM=w, SV=w, OF_NODES=True, OF_DIAGONAL=True, OF_REST=True)
    show("pooling.pool_kernel", 8, **pools, BC=POOLED, BM=MANY, FEW=ROW, full=["OUT"])
    show("pooling.pool_back_kernel", **pools, PM=w, PV=w, BM=ENTRIES, TAIL=True, full=["DOUT"])
    show("gathering.index_kernel", BLOCK=1024, whole={"SIZES": "i64"})
    show("gathering.gather_kernel", HAS_M=True, HAS_V=True, PT=16, BLOCK=2048, full=["TARGETS", "OUT_TARGETS"])
    show("sums.column_sums_kernel", BM=ROWS, BC=COLUMNS, full=["X"])
    show("adam.squares_kernel", BLOCK=BLOCK, full=["FULL", "OUT"])
    flat = ["W", "FULL", "MEAN", "SQUARE", "SHADOW", "DECAY", "SQUARES", "NORM", "RATE", "STEP", "SHARE"]
    show("adam.step_kernel", 4, BLOCKS=512, BLOCK=BLOCK, CLIP=True, AVERAGE=True, full=flat)
assert not left, f"not compiled: {left}"
"""


@pytest.mark.parametrize("chip", SHARED_BYTES)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("width", [16, 64, 128, 256])
def test_tiles_are_chosen_by_the_memory_of_the_chip(chip, size, width):
    pytest.importorskip("triton", reason="the kernels need triton")
    from g2n2.ops.pair_mlp.rows import TALL, back_height, out_width

    shared, largest = SHARED_BYTES[chip], SHARED_BYTES[90]
    wide, tall = out_width(width, 8 * width, size, shared), back_height(width, 64, size, shared)
    assert min(wide, tall) >= 16
    assert 4 * (TALL + width) * wide * size <= shared or wide == 16
    assert wide <= out_width(width, 8 * width, size, largest)
    assert tall <= back_height(width, 64, size, largest)


@pytest.mark.slow
@pytest.mark.parametrize("chip", SHARED_BYTES)
@pytest.mark.parametrize(("dtype", "width"), [("bf16", 64), ("bf16", 256), ("fp32", 128)])
def test_every_kernel_compiles_and_fits(chip, dtype, width, tmp_path):
    pytest.importorskip("triton", reason="the kernels need triton")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    process = subprocess.run(
        [sys.executable, "-c", COMPILE, str(chip), dtype, str(width)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    for line in process.stdout.splitlines():
        name, size = line.split()
        assert int(size) <= SHARED_BYTES[chip], f"{name} takes {size} bytes of shared memory"
