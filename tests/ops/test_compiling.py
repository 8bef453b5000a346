"""Kernels compiled for chips that are not here: that they compile, and what they take."""

import os
import subprocess
import sys

import pytest

SHARED = {80: 166_912, 89: 101_376, 90: 232_448}
"""Bytes of shared memory a program may have, by compute capability: A100, L4, H100 or H200."""

COMPILE = """
import sys
from types import SimpleNamespace
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from g2n2.ops import adam
from g2n2.ops.adam import BLOCK
from g2n2.ops import gathering
from g2n2.ops import pair_mlp, pooling, selecting
from g2n2.ops.pooling import ENTRIES, MANY, ROW
from g2n2.ops.pooling import CHANNELS as POOLED
from g2n2.ops.rule_kernels import kernels as rule_kernels
from g2n2.ops.rule_kernels.triton import CHANNELS, REGISTERS, WARPS
from g2n2.ops.selecting import OPERANDS
from g2n2.ops.selecting import ROWS as SELECTED
from g2n2.ops import sums
from g2n2.ops.sums import COLUMNS, ROWS
from g2n2.ops import tiled_rules
from g2n2.ops.tiled_rules import CHANNELS as TILED, TILE
from g2n2.ops.tiling import narrowed

dtype, w, capability, shared = sys.argv[1], *map(int, sys.argv[2:])
torch.cuda.get_device_properties = lambda _: SimpleNamespace(shared_memory_per_block_optin=shared)
size = 4 if dtype == "fp32" else 2


def side(length):
    return narrowed(length, w, torch.device("cuda"))


wide = {"DGAIN", "SUMS", "ALONG", "SCALE"}
whole_numbers = dict(
    SIZES="i32", NODES="i32", OWNERS="i32", PAIRS="i64", NODE_TOTAL="i64", PAIR_TOTAL="i64",
    TOTAL="i64",
)
numbers = {"beyond", "small", "clip", "log_beta1", "log_beta2", "beta1", "beta2", "per_node", "per_pair"}
modules = dict(
    adam=adam, gathering=gathering, pair_mlp=pair_mlp,
    pooling=pooling, rule_kernels=rule_kernels, selecting=selecting, sums=sums,
    tiled_rules=tiled_rules,
)
left = {
    f"{family}.{name}"
    for family, module in modules.items()
    for name in vars(module)
    if name.endswith("_kernel")
}


def show(name, warps=4, full=(), long=(), registers=None, **settings):
    family, _, own = name.partition(".")
    kernel = getattr(modules[family], own)
    kinds = {}
    for argument in kernel.arg_names:
        if argument in settings:
            kinds[argument] = "constexpr"
        elif argument.isupper() and argument not in ("N", "H"):
            kind = "fp32" if argument in wide | {*full} else dtype
            kind = whole_numbers.get(argument, kind)
            kinds[argument] = "*" + ("i64" if argument in long else kind)
        else:
            kinds[argument] = "fp32" if argument in numbers else "i32"
    settings = {key: value for key, value in settings.items() if key in kinds}
    # As launched: pointers and the widths of tensors are multiples of 16, so loads are pipelined.
    even = [
        i
        for i, argument in enumerate(kernel.arg_names)
        if kinds[argument].startswith("*") or argument == "H" or "stride" in argument
        or "width" in argument or argument in ("total", "operands")
    ]
    attrs = {(i,): [["tt.divisibility", 16]] for i in even}
    made = triton.compile(
        ASTSource(kernel, kinds, constexprs=settings, attrs=attrs),
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": warps} | ({"maxnreg": registers} if registers else {}),
    )
    print(name, made.metadata.shared)
    left.discard(name)


show("pair_mlp.finish_kernel", S=w, P=w, ADD=True, BM=64)
show(
    "pair_mlp.out_kernel", 4 if w <= 64 else 8, SO=w, PO=w, BM=256 // size, BH=side(128 // size),
    BIAS=True, ADD=True, PRECISION="tf32",
)
show(
    "pair_mlp.back_kernel", SO=w, PO=w, BM=side(256 // size // max(1, w // 128)), BH=side(64),
    WEIGHT=size == 2, PRECISION="tf32",
)
show("selecting.normalise_kernel", S=w, P=w, BM=64)
show("selecting.normalise_gradient_kernel", S=w, P=w, BM=64, ADD=True, PAST=True)
show(
    "selecting.select_kernel", S=w, P=w, BM=max(16, SELECTED * 128 // max(128, w * size)),
    BK=side(OPERANDS), PRECISION="tf32",
)
if w < 256:  # the others differ little between widths, and take what they take at the largest
    packed = ("pair_mlp", "selecting")
    left = {name for name in left if name.split(".")[0] in packed}
else:
    for way in ("", "_back"):
        for precision in ("tf32", "tf32x3"):
            show(
                f"rule_kernels.product{way}_kernel", WARPS, S=w, P=32, BC=CHANNELS * 2 // size, POWER=1,
                PRECISION=precision, registers=REGISTERS,
            )
        entries = dict(S=w, P=32, PS=w, HADAMARD=True, DIAGONAL=True, MV=True, POWER=1, TAIL=True)
        show(f"rule_kernels.entries{way}_kernel", 2, **entries)
    for turned in ((False, False), (True, False), (False, True)):
        show(
            "tiled_rules.matrix_matrix_kernel", 2, S=w, T=TILE, BC=TILED, TURN_X=turned[0],
            TURN_Y=turned[1],
        )
    show("tiled_rules.matrix_column_kernel", 2, S=w, BM=32, BC=64, TURN=True)
    pools = dict(SM=w, SV=w, OF_NODES=True, OF_DIAGONAL=True, OF_REST=True)
    show("pooling.pool_kernel", 8, **pools, BC=POOLED, BM=MANY, FEW=ROW, full=["OUT"])
    show("pooling.pool_spread_kernel", **pools, PM=w, PV=w, BM=ENTRIES, TAIL=True, full=["DOUT"])
    show("sums.column_sums_kernel", BM=ROWS, BC=COLUMNS, full=["X"])
    show("sums.graph_means_kernel", TAIL=True, BM=512, full=["X", "OUT"])
    show(
        "gathering.index_kernel", BLOCK=gathering.GRAPHS, full=["OUT_SCALE"],
        long=["CHOSEN", "COUNT", "SIZES", "OUT_SIZES", "OUT_NODES", "OUT_PAIRS", "TOTALS"],
    )
    show(
        "gathering.gather_kernel", HAS_M=True, HAS_V=True, PT=16, BLOCK=gathering.BLOCK,
        long=["CHOSEN", "COUNT", "TOTALS", "NODE_STARTS", "PAIR_STARTS"],
    )
    show("adam.squares_kernel", BLOCK=BLOCK, full=["FULL", "OUT"])
    flat = ["W", "FULL", "MEAN", "SQUARE", "SHADOW", "DECAY", "SQUARES", "NORM", "RATE", "STEP", "SHARE"]
    show("adam.step_kernel", 4, BLOCKS=512, BLOCK=BLOCK, CLIP=True, AVERAGE=True, full=flat)
assert not left, f"not compiled: {left}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "width", "capability"),
    [
        ("bf16", 64, 90),
        ("bf16", 256, 80),
        ("fp32", 256, 89),  # the least shared memory
    ],
)
def test_every_kernel_compiles_and_fits(dtype, width, capability, tmp_path):
    pytest.importorskip("triton", reason="the kernels need triton")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    room = SHARED[capability]
    process = subprocess.run(
        [sys.executable, "-c", COMPILE, dtype, str(width), str(capability), str(room)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    for line in process.stdout.splitlines():
        name, size = line.split()
        assert int(size) <= room, f"{name} takes {size} bytes of shared memory"
