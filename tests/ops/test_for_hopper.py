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
from g2n2.ops.mixing import triton as mixing
from g2n2.ops.mixing.kernels import edges, fused, weights
from g2n2.ops.norms import kernels as norms
from g2n2.ops.products import kernels as products, triton as product

dtype, w = sys.argv[1], int(sys.argv[2])
tiles = mixing.WIDE_TILES if dtype == "fp32" else mixing.TILES
places = {f"{a}{k}": w for a in "SP" for k in range(4)} | {f"C{k}": k * w for k in range(4)}
whole = places | dict(SO=w, PO=w, BIAS=True, DIAGONAL=True, SILU=False, PRECISION="tf32")
joined = {f"{a}{k}": w for a in "SP" for k in "012HV"} | {f"C{k}": 0 for k in "012HV"}
wide = {"DW1", "DB1", "DW2", "DGAIN"}


def show(kernel, name=None, **settings):
    options = tiles[name].cut(8 * w) if name else {}
    settings |= {key: options[key] for key in ("BM", "BH") if name}
    kinds = {}
    for argument in kernel.arg_names:
        if argument in settings:
            kinds[argument] = "constexpr"
        elif argument.isupper() and argument not in ("N", "H", "S", "NI", "NJ", "NK"):
            kind = "i8" if argument == "MASK" else "fp32" if argument in wide else dtype
            kinds[argument] = f"*{kind}"
        else:
            kinds[argument] = "fp32" if argument == "small" else "i32"
    settings = {key: value for key, value in settings.items() if key in kinds}
    made = triton.compile(
        ASTSource(kernel, kinds, constexprs=settings),
        target=GPUTarget("cuda", 90, 32),
        options={key: options[key] for key in ("num_warps", "num_stages") if name}
        or {"num_warps": 8},
    )
    print(kernel.fn.__name__, made.metadata.shared)


show(fused.forward_kernel, "forward", **whole, ADD=True)
show(fused.inputs_kernel, "inputs", **whole, ADD=True)
show(weights.weights_kernel, "weights", **whole)
show(edges.join_kernel, **joined, BM=64)
show(edges.finish_kernel, S=w, P=w, ADD=True, BM=64)
show(edges.back_kernel, SO=w, PO=w, BM=64 if dtype == "fp32" else 128, BH=64, PRECISION="tf32")
show(edges.hadamard_back_kernel, S=w, P=w, BM=64)
show(norms.forward_kernel, S=w, P=w, BM=64)
show(norms.backward_kernel, S=w, P=w, BM=64)
show(products.strip_kernel, BI=4, BJ=32, BC=64, SCALED=True)
show(products.tile_kernel, **product.TILE, PRECISION="tf32", SCALED=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
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
    taken = [line.split() for line in process.stdout.splitlines()]
    assert len(taken) == 11
    for name, size in taken:
        assert int(size) <= SHARED, f"{name} takes {size} bytes of shared memory"
