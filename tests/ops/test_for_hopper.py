"""Kernels compiled for a Hopper chip, which needs no chip: that they compile, and what they take."""

import os
import subprocess
import sys

import pytest

SHARED = 232_448
"""Bytes of shared memory a program may have on an H100 or H200."""

COMPILE = """
import sys
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from g2n2.ops.adam import kernels as adam
from g2n2.ops.adam.triton import BLOCK
from g2n2.ops.pair_mlp import triton as pair_mlp
from g2n2.ops.pair_mlp.kernels import edges, fused, weights
from g2n2.ops.pair_mlp.layout import WIDEST
from g2n2.ops.norms import kernels as norms
from g2n2.ops.pooling import kernels as pooling
from g2n2.ops.pooling.triton import ENTRIES
from g2n2.ops.rule_kernels import kernels as rule_kernels
from g2n2.ops.rule_kernels.triton import CHANNELS
from g2n2.ops.sums import kernels as sums
from g2n2.ops.sums.triton import COLUMNS, ROWS
from g2n2.ops.to_channel_last import kernels as to_channel_last
from g2n2.ops.to_channel_last.triton import CHANNELS as TURNED

dtype, w = sys.argv[1], int(sys.argv[2])
tiles = pair_mlp.tiles_for(torch.float32 if dtype == "fp32" else torch.bfloat16, w)
places = {f"{a}{k}": w for a in "SP" for k in range(4)} | {f"C{k}": k * w for k in range(4)}
whole = places | dict(SO=w, PO=w, BIAS=True, DIAGONAL=True, SILU=False, PRECISION="tf32")
joined = {f"{a}{k}": w for a in "SP" for k in "012HV"} | {f"C{k}": 0 for k in "012HV"}
wide = {"DW1", "DB1", "DW2", "DGAIN", "DOWN", "ALONG", "SCALE"}
whole_numbers = dict(SIZES="i32", WIDTHS="i32", NODES="i32", OWNERS="i32", PAIRS="i64", TOTAL="i64")
numbers = {"small", "clip", "log_beta1", "log_beta2", "beta1", "beta2"}
modules = dict(
    adam=adam, edges=edges, fused=fused, weights=weights,
    norms=norms, pooling=pooling, rule_kernels=rule_kernels, sums=sums, to_channel_last=to_channel_last,
)
left = {
    f"{family}.{name}"
    for family, module in modules.items()
    for name in vars(module)
    if name.endswith("_kernel")
}


def show(name, warps=4, tile=None, full=(), **settings):
    family, _, own = name.partition(".")
    kernel = getattr(modules[family], own)
    options = tiles[tile].cut(8 * w) if tile else {}
    settings |= {key: options[key] for key in ("BM", "BH") if tile}
    kinds = {}
    for argument in kernel.arg_names:
        if argument in settings:
            kinds[argument] = "constexpr"
        elif argument.isupper() and argument not in ("N", "H"):
            bytes_ = argument in ("MASK", "FLAGS")
            kind = "fp32" if argument in wide | {*full} else dtype
            kinds[argument] = "*" + whole_numbers.get(argument, "i8" if bytes_ else kind)
        else:
            kinds[argument] = "fp32" if argument in numbers else "i32"
    settings = {key: value for key, value in settings.items() if key in kinds}
    # As launched: pointers and the widths of tensors are multiples of 16, so loads are pipelined.
    even = [
        i
        for i, argument in enumerate(kernel.arg_names)
        if kinds[argument].startswith("*") or argument == "H" or "stride" in argument
        or argument == "total"
    ]
    attrs = {(i,): [["tt.divisibility", 16]] for i in even}
    made = triton.compile(
        ASTSource(kernel, kinds, constexprs=settings, attrs=attrs),
        target=GPUTarget("cuda", 90, 32),
        options={key: options[key] for key in ("num_warps", "num_stages") if tile}
        or {"num_warps": warps},
    )
    print(name, made.metadata.shared)
    left.discard(name)


if w <= WIDEST:
    show("fused.forward_kernel", tile="forward", **whole, ADD=True)
    show("fused.inputs_kernel", tile="inputs", **whole, ADD=True)
    show("weights.weights_kernel", tile="weights", **whole)
else:
    left -= {"fused.forward_kernel", "fused.inputs_kernel", "weights.weights_kernel"}
show("edges.join_kernel", **joined, BM=64)
show("edges.finish_kernel", S=w, P=w, ADD=True, BM=64)
if dtype != "fp32":
    show("edges.out_kernel", 4 if w <= 64 else 8, SO=w, PO=w, BM=128, BH=64, BIAS=True, ADD=True)
else:
    left.discard("edges.out_kernel")
tall = min(128, 32768 // (w * (4 if dtype == "fp32" else 2)))
show("edges.back_kernel", SO=w, PO=w, BM=tall, BH=64, PRECISION="tf32")
show("edges.hadamard_back_kernel", S=w, P=w, BM=64)
show("norms.forward_kernel", S=w, P=w, BM=64)
show("norms.backward_kernel", S=w, P=w, BM=64, ADD=True, PAST=True)
if w < 256:  # the others differ little between widths, and take what they take at the largest
    left = {name for name in left if name.split(".")[0] in ("edges", "fused", "norms", "weights")}
else:
    for turned in ((False, False), (True, False), (False, True)):
        for precision in ("tf32", "tf32x3"):
            show(
                "rule_kernels.product_kernel", 8, S=w, P=32, BC=CHANNELS, POWER=1, PRECISION=precision,
                TURN_X=turned[0], TURN_Y=turned[1],
            )
    entries = dict(S=w, P=32, PS=w, HADAMARD=True, DIAGONAL=True, MV=True, POWER=1)
    show("rule_kernels.entries_kernel", 2, **entries, COPY=True)
    show("rule_kernels.entries_back_kernel", 2, **entries)
    show("rule_kernels.zero_tail_kernel", BM=64, BC=64)
    for masked in (False, True):
        sums_of = dict(S=w, P=w, BM=ENTRIES, MASKED=masked)
        show("pooling.forward_kernel", **sums_of, full=["OUT"])
        show("pooling.backward_kernel", **sums_of, full=["DOUT"])
    show("pooling.row_kernel", S=w, P=w, BM=32, full=["OUT"])
    show("pooling.row_spread_kernel", S=w, P=w, BM=32, full=["DOUT"])
    show("sums.column_sums_kernel", BM=ROWS, BC=COLUMNS, full=["X"])
    show("to_channel_last.turn_kernel", BR=64, BC=TURNED)
    show("adam.squares_kernel", BLOCK=BLOCK, full=["FULL", "OUT"])
    flat = ["W", "FULL", "MEAN", "SQUARE", "SHADOW", "DECAY", "SQUARES", "NORM", "RATE", "STEP", "SHARE"]
    show("adam.step_kernel", 8, BLOCKS=512, BLOCK=BLOCK, CLIP=True, AVERAGE=True, full=flat)
assert not left, f"not compiled: {left}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "width"), [("bf16", 64), ("bf16", 256), ("fp32", 256)])
def test_every_kernel_compiles_and_fits(dtype, width, tmp_path):
    pytest.importorskip("triton", reason="the kernels need triton")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    process = subprocess.run(
        [sys.executable, "-c", COMPILE, dtype, str(width)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    for line in process.stdout.splitlines():
        name, size = line.split()
        assert int(size) <= SHARED, f"{name} takes {size} bytes of shared memory"
